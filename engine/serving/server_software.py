"""What a server's software adds to the arithmetic, the memory traffic and the collectives of its steps.

``inference`` prices what has to happen, by the best kernels that were measured. Programs do more: they
sample, schedule and cast with kernels of their own, or launch each kernel from Python. What this module says
of a program is known from its source or its documents (``catalog/software.toml``); its times were fitted on
runs that are not used to judge the model.
"""

from __future__ import annotations

from dataclasses import replace

from engine import catalog
from engine.base import ops
from engine.calibration import launch_costs
from engine.calibration.products import quantise_s
from engine.catalog.software import ServingSoftware
from engine.mechanism.shape import shape
from engine.serving import inference, wide
from engine.serving.inference import Served, StepTime

EAGER_LAYER = 40.0
"""Kernels of a decoder layer that PyTorch launches one by one (record/decode_kernels.py)."""


def casts_s(said: Served, rows: float) -> float:
    """Seconds to cast the input of each dense product of all layers; zero in 16 bits. The times of experts
    contain their casts."""
    if not said.at.chip.casts:
        return 0.0
    size, tp = shape(said.model), float(said.serving.tp)
    return size.depth * sum(
        p.there * quantise_s(rows, p.k / (1.0 + (tp - 1.0) * p.splits_k), said.at.chip.quantise)
        for p in (*size.attention, *size.mlp_products)
    )


def waits_s(by: ServingSoftware, said: Served) -> float:
    """Seconds that a step's AllReduces wait until they have been launched on all GPUs."""
    size, tp = shape(said.model), said.serving.tp
    if not by.one_launcher or tp == 1:
        return 0.0
    return size.depth * size.all_reduces * tp * launch_costs.LAUNCH_FOR_ANOTHER_S


def experts_s(by: ServingSoftware, said: Served, rows: float) -> float:
    """Seconds that a step's layers of experts take longer than with the kernels that ``inference`` prices.

    vLLM's kernel for 16-bit experts is tuned for the shapes that are cut over tensor ranks. Where a rank
    keeps a few whole experts it mostly is not, and then cuts the rows into tiles of 16 as long as a step has
    no more tokens than the rank has experts, and into tiles of 64 beyond (get_default_config in its
    fused_moe.py).
    Leaves out which shapes of whole experts have been tuned.
    """
    size, s, at = shape(said.model), said.serving, said.at
    more_s = size.depth * sum(part.share for part in size.routed) * by.expert_layer_s
    stored, ranks = inference.stored_bytes(at, s.weight_precision), float(max(s.ep, s.tp * s.dp))
    if by.coarse_experts <= 1.0 or stored < 2.0 or s.ep * s.dp == 1:
        return more_s
    for part in size.routed:
        if rows * s.dp <= part.experts / ranks:
            continue
        layer_s = (
            wide.routed_s(size, part, rows / s.tp, ranks, stored, at.chip)
            if s.dp > 1
            else inference.kept_whole_s(part, rows, ranks, stored, at.chip)
        )
        more_s += size.depth * part.share * layer_s * (by.coarse_experts - 1.0)
    return more_s


def step(
    by: ServingSoftware,
    said: Served,
    time: StepTime,
    rows: float,
    captured: bool = True,
    written: float | None = None,
) -> StepTime:
    """The times of one step over ``rows`` tokens, run by this software, of which ``written`` are answers' or
    the last of a prompt (all, if it is not said): each of these gets a token."""
    cast_s = casts_s(said, rows) if by.casts else 0.0
    sent_s = time.communication_s + waits_s(by, said)
    products_s = time.weights_s + experts_s(by, said, rows)
    run = replace(time, weights_s=products_s, other_s=time.other_s + cast_s, communication_s=sent_s)
    issue_s = 0.0 if captured else said.model.depth * EAGER_LAYER * launch_costs.ISSUE_S
    late_s = launch_costs.step_s(issue_s, run.total_s) - run.total_s
    tokens = rows if written is None else written
    token_s = by.token_s + by.logit_s * said.model.vocab
    return replace(run, other_s=run.other_s + late_s + by.between_s + tokens * token_s)


def first(by: ServingSoftware, said: Served, time: StepTime, requests: int) -> StepTime:
    """The times of reading the prompts of ``requests`` requests, up to the first token of each."""
    s = said.serving
    run = step(by, said, time, 1.0 * requests * s.prompt, written=1.0 * requests)
    run = replace(run, other_s=run.other_s + by.request_s)
    if not by.last_alone or s.prompt == 1:
        return run
    how = s.kv_precision, s.all_reduce, s.weight_precision, s.shares_reads, s.ep
    alone = inference.decode_step(said.model, said.at, s.tp, requests, s.prompt, *how)
    return run + step(by, said, alone, 1.0 * requests)


def run_by(software: ServingSoftware | str, said: Served) -> Served:
    """The latencies and throughput of ``said`` if it is run by this software; groups that share experts step
    together, each with its part of the requests. Leaves out what a program does when requests wait."""
    if isinstance(software, str):
        software = catalog.serving_software(software)
    s = said.serving
    if s.pp > 1:
        raise ValueError(f"pp must be 1 where software is named, got {s.pp}")
    captured = s.prompt + s.output / 2.0 <= software.captured_tokens
    each = int(ops.ceil(s.batch / s.dp))
    return replace(
        said,
        prefill=first(software, said, said.prefill, each),
        prefill_one=first(software, said, said.prefill_one, 1),
        decode=step(software, said, said.decode, 1.0 * each, captured),
        software=software.key,
    )
