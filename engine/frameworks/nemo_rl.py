"""NeMo-RL: ``uv run examples/run_grpo_math.py --config grpo.yaml``, and its YAML.

Names and defaults: NVIDIA-NeMo/RL examples/configs/grpo_math_1B.yaml and nemo_rl/models/policy at v0.3;
from memory, not at a commit. The policy is trained by FSDP 2 over all GPUs (DTensor), in fp32 with products
in bf16, and leaves for the host while a colocated engine writes (``offload_before_refit``); the engine
sleeps meanwhile.

Left out: Megatron as the policy's backend, which is read and not modelled.
"""

from __future__ import annotations

from typing import Any

from engine import catalog
from engine.catalog.models import Model
from engine.frameworks import rollouts
from engine.frameworks.described import Role
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, Where
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Entry, Field, overrides
from engine.step.layout import Job, Layout

FIELDS = {
    "policy.model_name": Field("model", TEXT),
    "policy.train_global_batch_size": Field("global_batch"),
    "policy.train_micro_batch_size": Field("micro_batch"),
    "policy.max_total_sequence_length": Field("seq"),
    "policy.precision": Field("precision", TEXT),
    "policy.dtensor_cfg.activation_checkpointing": Field("checkpointing", FLAG),
    "policy.dtensor_cfg.cpu_offload": Field("leaves", FLAG),
    "policy.dtensor_cfg.sequence_parallel": Field("sequence_parallel", FLAG),
    "policy.dtensor_cfg.tensor_parallel_size": Field("tp"),
    "policy.dtensor_cfg.context_parallel_size": Field("cp"),
    "policy.generation.backend": Field("engine", TEXT),
    "policy.generation.colocated.enabled": Field("colocated", FLAG),
    "policy.generation.vllm_cfg.tensor_parallel_size": Field("engine_tp"),
    "policy.generation.vllm_cfg.gpu_memory_utilization": Field("share", NUMBER),
    "loss_fn.reference_policy_kl_penalty": Field("beta", NUMBER),
    "cluster.gpus_per_node": Field("per_node"),
    "cluster.num_nodes": Field("nodes"),
}
UNMODELLED = {"policy.megatron_cfg.enabled": "NeMo-RL's Megatron policy is not modelled"}
SHARE = 0.6


class NemoRl(Framework):
    """Its YAML and the overrides behind it."""

    key = "nemo_rl"
    name = "NeMo-RL"
    place = 62
    fields = FIELDS
    unmodelled = UNMODELLED
    names_model = "give policy.model_name, or its config.json"
    new_keys = (Where.ARGUMENT,)
    degrees = ()

    def claims(self, command: Command) -> Claim:
        """One of its examples' scripts."""
        for at, word in enumerate(command.words):
            name = word.rsplit("/", 1)[-1]
            if name.startswith(("run_grpo", "run_dpo_nemo", "run_distillation")) and name.endswith(".py"):
                return Claim(Sure.NAMED, at + 1)
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A file with a policy and a cluster."""
        sections = {entry.key.split(".")[0] for entry in entries}
        return (
            Sure.OWN_SECTIONS if "policy" in sections and sections & {"cluster", "grpo", "dpo"} else Sure.NOT
        )

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """The overrides; what file is named is among the texts or not."""
        return [entry for entry in overrides(words) if "." in entry.key]

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """The policy over all GPUs, its reference and the engine."""
        gpus = (d.given("per_node") or 1) * (d.given("nodes") or 1) if gpus == 1 else gpus
        d.ask("per_node", "nodes")
        tp, cp = max(1, d.given("tp") or 1), max(1, d.given("cp") or 1)
        if gpus % (tp * cp):
            d.refuse(f"AssertionError: tp × cp = {tp * cp} must divide the {gpus} GPUs", "tp")
            tp = cp = 1
        dp = gpus // (tp * cp)
        seq = d.get("seq", 512, "its default")
        micro = max(1, d.get("micro_batch", 4, "its default"))
        batch = rollouts.whole_batch(d.get("global_batch", 512, "its default"), micro * dp)
        moves = "optimizer+gradients+parameters" if d.given("leaves") else "none"
        software = catalog.training_software(
            "trainer", sequence_parallel=bool(d.given("sequence_parallel")) or tp == 1
        )
        recompute = "full" if d.given("checkpointing") else "none"
        layout = Layout(gpus, tp, 1, cp, 1, 3, micro, recompute, offload=moves)
        job = Job(batch, seq, catalog.recipe("bf16-adam"), software)
        roles: list[Role] = []
        if d.given("beta") != 0.0:  # kept on the host, and swapped in for its own passes
            roles.append(rollouts.reference(d, shape, gpus, True))
        colocated = d.get("colocated", True)
        share, engine_tp = d.get("share", SHARE), max(1, d.get("engine_tp", 1))
        if colocated:
            roles.append(rollouts.rollout(d, shape, engine_tp, share, True))
        d.ask("engine", "precision")
        return Meant(gpus, "bf16", job, layout, None, tuple(roles), True)


FRAMEWORK: Framework = NemoRl()
