"""verl: ``python -m verl.trainer.main_ppo`` with Hydra's overrides.

Names and defaults: volcengine/verl verl/trainer/config/ppo_trainer.yaml and its parts (actor, ref, rollout,
critic) at v0.5; what is trained, under FSDP over all GPUs, in fp32 with products in bf16, and the reference
in bf16: verl/workers/fsdp_workers.py. From memory, not at a commit. The engine sleeps while others train
(``free_cache_engine``), and ``gpu_memory_utilization`` is of the whole GPU since vLLM 0.7.

Left out: Megatron as the trainer's backend, which is read and not modelled; engines that are no vLLM or
SGLang; reward models of their own pool.
"""

from __future__ import annotations

from typing import Any

from engine import catalog
from engine.catalog.models import Model
from engine.frameworks import rollouts
from engine.frameworks.described import CRITIC, Role
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, Where
from engine.frameworks.known_models import named
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Entry, Field, overrides
from engine.mechanism.adapters import ALL_LINEAR, Adapter
from engine.step.layout import Job, Layout

ACTOR, REF, ENGINE = "actor_rollout_ref.actor", "actor_rollout_ref.ref", "actor_rollout_ref.rollout"
MODEL = "actor_rollout_ref.model"
FIELDS = {
    f"{MODEL}.path": Field("model", TEXT),
    f"{MODEL}.enable_gradient_checkpointing": Field("checkpointing", FLAG),
    f"{MODEL}.enable_activation_offload": Field("activations_leave", FLAG),
    f"{MODEL}.lora_rank": Field("rank"),
    f"{MODEL}.lora_alpha": Field("alpha", NUMBER),
    f"{MODEL}.target_modules": Field("targets", TEXT),
    f"{MODEL}.use_fused_kernels": Field("fused", FLAG),
    f"{MODEL}.use_remove_padding": Field("packs", TEXT),
    f"{ACTOR}.strategy": Field("strategy", TEXT),
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": Field("micro_batch"),
    f"{ACTOR}.ppo_mini_batch_size": Field("mini_batch"),
    f"{ACTOR}.use_dynamic_bsz": Field("packs_tokens", FLAG),
    f"{ACTOR}.ppo_max_token_len_per_gpu": Field("tokens"),
    f"{ACTOR}.use_kl_loss": Field("kl", FLAG),
    f"{ACTOR}.entropy_coeff": Field("entropy", NUMBER),
    f"{ACTOR}.ulysses_sequence_parallel_size": Field("cp"),
    f"{ACTOR}.fsdp_config.param_offload": Field("parameters_leave", FLAG),
    f"{ACTOR}.fsdp_config.optimizer_offload": Field("optimizer_leaves", FLAG),
    f"{ACTOR}.fsdp_config.fsdp_size": Field("shard", TEXT),
    f"{REF}.fsdp_config.param_offload": Field("reference_leaves", FLAG),
    f"{ENGINE}.name": Field("engine", TEXT),
    f"{ENGINE}.gpu_memory_utilization": Field("share", NUMBER),
    f"{ENGINE}.tensor_model_parallel_size": Field("engine_tp"),
    f"{ENGINE}.free_cache_engine": Field("sleeps", FLAG),
    "data.max_prompt_length": Field("prompt"),
    "data.max_response_length": Field("answer"),
    "data.train_batch_size": Field("global_batch"),
    "algorithm.adv_estimator": Field("advantage", TEXT),
    "algorithm.use_kl_in_reward": Field("kl_in_reward", FLAG),
    "critic.model.path": Field("critic", TEXT),
    "critic.ppo_micro_batch_size_per_gpu": Field("critic_micro_batch"),
    "trainer.n_gpus_per_node": Field("per_node"),
    "trainer.nnodes": Field("nodes"),
}
UNMODELLED = {
    f"{ACTOR}.megatron.tensor_model_parallel_size": "verl's Megatron workers are not modelled",
    "reward_model.enable": "a reward model's workers are not modelled",
}
PROMPT, ANSWER, SHARE, TP = 512, 512, 0.5, 2  # the defaults of data and rollout
WITHOUT_CRITIC = ("grpo", "rloo", "reinforce_plus_plus", "remax", "opo", "gpg", "grpo_passk")


class Verl(Framework):
    """Hydra's overrides of one program."""

    key = "verl"
    name = "verl"
    place = 60
    fields = FIELDS
    unmodelled = UNMODELLED
    names_model = f"give {MODEL}.path, or its config.json"
    new_keys = (Where.OVERRIDE,)
    degrees = ()

    def claims(self, command: Command) -> Claim:
        """Its module, or its keys."""
        for at, word in enumerate(command.words):
            if word.startswith("verl.trainer.main") or word.endswith(("main_ppo.py", "main_ppo")):
                return Claim(Sure.NAMED, at + 1)
        return Claim(Sure.OWN_KEYS if any(key.startswith(ACTOR) for key in command.flags) else Sure.NOT)

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """The overrides, without Python's quotes."""
        return [entry._replace(value=entry.value.strip("'\"")) for entry in overrides(words)]

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A file with its sections."""
        sections = {entry.key.split(".")[0] for entry in entries}
        return Sure.OWN_SECTIONS if "actor_rollout_ref" in sections else Sure.NOT

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """Actor, reference, critic and rollout, all over the same GPUs."""
        gpus = (d.given("per_node") or 8) * (d.given("nodes") or 1) if gpus == 1 else gpus
        d.ask("per_node", "nodes")
        kind = (d.get("strategy", "fsdp") or "fsdp").lower()
        if kind not in ("fsdp", "fsdp2"):
            d.lacks("strategy", "verl's Megatron workers are not modelled")
        cp = max(1, d.given("cp") or 1)
        prompt, answer = d.get("prompt", PROMPT), d.get("answer", ANSWER)
        seq = prompt + answer
        micro = max(1, d.given("micro_batch") or 1)
        if d.given("packs_tokens"):
            micro = max(1, (d.given("tokens") or 16384) * cp // seq)
        else:
            d.ask("tokens")
        if gpus % cp:
            d.refuse(f"AssertionError: {cp} sequence ranks must divide the {gpus} GPUs", "cp")
            cp = 1
        dp = gpus // cp
        batch = rollouts.whole_batch(d.get("mini_batch", 256), micro * dp)
        rank = d.given("rank") or 0
        adapter = None
        if rank:
            targets = (d.given("targets") or "all-linear").strip("[]").replace(",", " ").split()
            adapter = Adapter(rank, (ALL_LINEAR,) if targets == ["all-linear"] else tuple(targets))
        d.ask("alpha", "targets", "packs")
        # both come back for each update, so they leave only while answers are written
        leaves = bool(d.given("parameters_leave")) and bool(d.given("optimizer_leaves"))
        d.ask("optimizer_leaves")
        software = catalog.training_software(
            "trainer",
            fsdp="each" if kind == "fsdp2" else "flat",
            gathers_ends=True,
            overlaps="data",
            loss="chunked" if d.given("fused") else "plain",
            loss_share=rollouts.answers_share(prompt, answer),
        )
        recompute = "full" if d.get("checkpointing", True) else "none"
        layout = Layout(gpus, 1, 1, cp, 1, 3, micro, recompute)
        if d.given("activations_leave"):
            layout = Layout(gpus, 1, 1, cp, 1, 3, micro, recompute, offload="activations")
        job = Job(batch, seq, catalog.recipe("bf16-adam"), software, adapter=adapter)
        d.ask("global_batch", "entropy", "critic_micro_batch", "shard")
        roles: list[Role] = []
        estimator = (d.get("advantage", "gae") or "gae").lower()
        if (d.given("kl") or d.given("kl_in_reward")) and not rank:
            roles.append(rollouts.reference(d, shape, gpus, bool(d.given("reference_leaves"))))
        if estimator not in WITHOUT_CRITIC:
            name = d.given("critic")
            d.assume("critic", name or "as the actor", "this estimator of advantages has one")
            roles.append(Role(CRITIC, named(name) if name else shape, gpus))
        d.ask("critic", "reference_leaves", "engine")
        share, tp = d.get("share", SHARE), max(1, d.get("engine_tp", TP))
        roles.append(rollouts.rollout(d, shape, tp, share, bool(d.get("sleeps", True))))
        return Meant(gpus, "bf16", job, layout, None, tuple(roles), leaves)


FRAMEWORK: Framework = Verl()
