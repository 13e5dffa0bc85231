"""OpenRLHF: ``python -m openrlhf.cli.train_ppo_ray``, whose roles have GPUs of their own unless they are
told to share.

Names and defaults: OpenRLHF/OpenRLHF openrlhf/cli/train_ppo_ray.py of releases 0.3 to 0.8 (every
``*_num_nodes`` 1 and ``*_num_gpus_per_node`` 8, ZeRO 2, no checkpointing, prompts and answers of 1,024
tokens); from memory, not at a commit. The actor is trained by DeepSpeed in bf16 with a state in fp32, whose
buffers on the host are pinned (openrlhf/utils/deepspeed/deepspeed_utils.py at 0a3fbcef). Attention keeps its
scores unless ``--flash_attn`` is given: transformers is asked for "eager" (openrlhf/models/actor.py).

What is judged is the actor's GPUs, and whoever shares them; the others' weights have to fit on theirs, too.
Left out: what ``--actor_init_on_gpu`` takes before the model is cut; critics and reward models on GPUs of
their own beyond their weights, packing, ring attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import catalog
from engine.catalog.models import Model
from engine.frameworks import host_memory, rollouts
from engine.frameworks.described import CRITIC, Role
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Entry, Field
from engine.mechanism.adapters import ALL_LINEAR, Adapter
from engine.step.layout import Job, Layout

if TYPE_CHECKING:
    from engine.frameworks.described import Launch

ROLES = ("actor", "ref", "reward", "critic")
FIELDS = {
    "pretrain": Field("model", TEXT),
    "micro_train_batch_size": Field("micro_batch"),
    "train_batch_size": Field("global_batch"),
    "prompt_max_len": Field("prompt"),
    "generate_max_len": Field("answer"),
    "zero_stage": Field("zero"),
    "bf16": Field("bf16", FLAG),
    "gradient_checkpointing": Field("checkpointing", FLAG),
    "adam_offload": Field("optimizer_leaves", FLAG),
    "advantage_estimator": Field("advantage", TEXT),
    "init_kl_coef": Field("beta", NUMBER),
    "use_kl_loss": Field("kl", FLAG),
    "lora_rank": Field("rank"),
    "load_in_4bit": Field("four_bits", FLAG),
    "use_liger_kernel": Field("liger", FLAG),
    "flash_attn": Field("fused", FLAG),
    "colocate_all_models": Field("shares_all", FLAG),
    "colocate_actor_ref": Field("shares_reference", FLAG),
    "ref_reward_offload": Field("reference_leaves", FLAG),
    "vllm_num_engines": Field("engines"),
    "vllm_tensor_parallel_size": Field("engine_tp"),
    "vllm_gpu_memory_utilization": Field("share", NUMBER),
    "vllm_enable_sleep": Field("sleeps", FLAG),
    "deepspeed_enable_sleep": Field("trained_leaves", FLAG),
}
FIELDS |= {f"{role}_num_nodes": Field(f"{role} nodes") for role in ROLES}
FIELDS |= {f"{role}_num_gpus_per_node": Field(f"{role} gpus") for role in ROLES}
UNMODELLED = {
    "ring_attn_size": "ring attention over several GPUs is not modelled",
    "ds_tensor_parallel_size": "DeepSpeed's AutoTP in training is not modelled",
}
LENGTH, SHARE = 1024, 0.95  # prompts and answers; of a GPU, for engines that share none
WITHOUT_CRITIC = ("rloo", "reinforce", "reinforce_baseline", "group_norm", "dr_grpo")


class OpenRlhf(Framework):
    """One program's flags."""

    key = "openrlhf"
    name = "OpenRLHF"
    place = 61
    fields = FIELDS
    unmodelled = UNMODELLED
    names_model = "give --pretrain, or its config.json"
    degrees = ()

    def claims(self, command: Command) -> Claim:
        """Its module or its script, or the GPUs of its roles."""
        for at, word in enumerate(command.words):
            if word.startswith("openrlhf.cli.train_ppo") or word.endswith("train_ppo_ray.py"):
                return Claim(Sure.NAMED, at + 1)
        own = command.flags & {"actor_num_gpus_per_node", "micro_train_batch_size"}
        return Claim(Sure.OWN_KEYS if own else Sure.NOT, command.script)

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """The flags; newer releases group some of them by dots (``actor.model_name_or_path``)."""
        return found

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """The actor's job on its own GPUs, and who shares them."""
        of = {role: (d.given(f"{role} nodes"), d.given(f"{role} gpus")) for role in ROLES}
        counts = {
            role: (1 if nodes is None else nodes) * (8 if each is None else each)
            for role, (nodes, each) in of.items()
        }
        actor = max(1, counts["actor"])
        if of["actor"] == (None, None):
            actor = gpus
        zero = d.get("zero", 2, "its default")
        if zero > 3:
            d.refuse(f"ValueError: zero_optimization.stage: Input should be 0, 1, 2 or 3, got {zero}", "zero")
            zero = 3
        prompt, answer = d.get("prompt", LENGTH), d.get("answer", LENGTH)
        micro = max(1, d.get("micro_batch", 4, "its default"))
        batch = rollouts.whole_batch(d.get("global_batch", 128, "its default"), micro * actor)
        rank = d.given("rank") or 0
        adapter = None
        if rank:
            adapter = Adapter(rank, (ALL_LINEAR,), base="nf4-double" if d.given("four_bits") else "bf16")
        software = catalog.training_software(
            "trainer",
            overlaps="data" if zero > 1 else "",
            loss="chunked" if d.given("liger") else "plain",
            attention="fused" if d.given("fused") else "scores",
        )
        recompute = "full" if d.given("checkpointing") else "none"
        moves = "optimizer+gradients" if d.given("optimizer_leaves") and zero else "none"
        layout = Layout(actor, 1, 1, 1, 1, zero, micro, recompute, offload=moves)
        job = Job(batch, prompt + answer, catalog.recipe("bf16-adam"), software, adapter=adapter)
        roles: list[Role] = []
        together, with_reference = bool(d.given("shares_all")), bool(d.given("shares_reference"))
        if (together or with_reference) and d.given("beta") != 0.0 and not rank:
            ranks = actor if zero > 2 else 1
            roles.append(rollouts.reference(d, shape, ranks, bool(d.given("reference_leaves"))))
        estimator = (d.get("advantage", "gae") or "gae").lower()
        if together and estimator not in WITHOUT_CRITIC:
            roles.append(Role(CRITIC, shape, actor))
        if together and d.given("engines"):
            share, tp = d.get("share", SHARE), max(1, d.given("engine_tp") or 1)
            roles.append(rollouts.rollout(d, shape, tp, share, bool(d.given("sleeps"))))
        d.ask("beta", "kl", "bf16", "engines", "engine_tp", "share", "sleeps", "four_bits")
        d.ask("reference_leaves")
        leaves = bool(d.given("trained_leaves"))
        elsewhere = [role for role in ROLES[1:] if counts[role] and not together]
        if elsewhere:
            d.assume("GPUs", actor, f"the actor's; {', '.join(elsewhere)} and the engines have their own")
        return Meant(actor, "bf16", job, layout, None, tuple(roles), leaves)

    def hosted_bytes(self, launch: Launch) -> float:
        """DeepSpeed's buffers for the optimizer, which are pinned; parameters stay on the GPUs."""
        return host_memory.deepspeed_bytes(launch, True, False)


FRAMEWORK: Framework = OpenRlhf()
