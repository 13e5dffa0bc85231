"""Reinforcement learning as several programs are told of it: who is there beside the model that is trained.

A reference model, unless its term has no weight or an adapter is trained, whose base is the reference; a
reward model; a critic; and the engine that writes the answers, on the same GPUs or on its own.

An adapter is merged into its base before the engine is handed the weights, and what ZeRO 3 shards has to be
gathered for that (``handed``).

Left out: what reward functions take that are no models; the engine's graphs; how fast any of it goes.
"""

from __future__ import annotations

from engine.catalog.models import Model
from engine.frameworks.described import REFERENCE, ROLLOUT, Role
from engine.frameworks.settings import Draft
from engine.step.layout import Job, Layout


def answers_share(prompt: int, answer: int) -> float:
    """Of the tokens of a sequence, those whose logits are made."""
    return max(0.001, min(1.0, (answer + 1) / max(1, prompt + answer)))


def whole_batch(sequences: int, each: int) -> int:
    """A batch that is cut to whole micro-batches of all ranks, of which there is at least one."""
    return max(sequences, each) // each * each


def reference(d: Draft, shape: Model, ranks: int, moves: bool = False) -> Role:
    """A frozen copy in 16 bits, over as many GPUs as share it."""
    d.assume("reference", "a copy in 16 bits", "the answers are held against the model as it was")
    return Role(REFERENCE, shape, ranks, leaves=moves)


def handed(job: Job | None, layout: Layout | None, batches: int = 1) -> float:
    """Share of the weights that each GPU gathers at once to hand them to the engine, ``batches`` times one
    after the other: all of them, under DeepSpeed's stage 3 with an adapter. Whole models are gathered
    parameter by parameter (huggingface/trl and axolotl, ``_move_model_to_vllm``; ms-swift's grpo_trainer.py,
    ``split_batches``)."""
    if job is None or layout is None or job.adapter is None:
        return 0.0
    return 1.0 / max(1, batches) if layout.zero > 2 and not job.software.fsdp else 0.0


def rollout(d: Draft, shape: Model, tp: int, share: float, sleeps: bool) -> Role:
    """The engine that writes the answers, on the GPUs that train."""
    if not 0.0 < share <= 1.0:
        d.refuse(f"ValueError: gpu_memory_utilization must be above 0 and at most 1, got {share:g}.", "share")
        share = 0.9
    return Role(ROLLOUT, shape, max(1, tp), share=share, leaves=sleeps)
