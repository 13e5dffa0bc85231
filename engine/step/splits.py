"""The legal splits of GPUs among the axes, in loops that the search runs, and that a page runs too."""

from __future__ import annotations

from typing import Any

from engine.step.legality import (
    cuts_a_head,
    cuts_tokens_unevenly,
    leaves_a_chunk_empty,
    leaves_gpus_over,
    leaves_sequences_over,
)

MICRO_BATCHES = (1, 2, 4, 8, 16, 32, 64)
LEAST_TOKENS = 1024  # tokens of a sequence that context parallelism must leave on each GPU


def divisors_to(most: float, number: float) -> list[int]:
    """The divisors of a number up to ``most``, ascending."""
    found = []
    for divisor in range(1, int(min(most, number)) + 1):
        if number % divisor == 0:
            found.append(divisor)
    return found


def least_of(values: list[float], otherwise: float) -> float:
    """The least of some numbers and another one."""
    least = otherwise
    for value in values:
        least = min(least, value)
    return least


def cuts_any_head(heads: list[float], tp: int) -> bool:
    """Whether tensor ranks would get parts of heads in any kind of layer; ``heads`` has a number for each."""
    cut = False
    for each in heads:
        cut = cut or cuts_a_head(each, tp)
    return cut


def legal_splits(
    gpus: float,
    global_batch: float,
    seq: float,
    heads: list[float],
    layers: float,
    experts: float,
    most: float,
) -> dict[str, Any]:
    """The first ``most`` legal (tp, pp, cp, ep, expert_tp, dp) in ascending order, a list for each."""
    tps, pps, cps, eps, expert_tps, dps = [], [], [], [], [], []
    contexts, pipelines = divisors_to(max(1, seq // LEAST_TOKENS), gpus), divisors_to(layers, gpus)
    expert_ranks = divisors_to(max(1, experts), max(1, experts))
    for tp in divisors_to(least_of(heads, gpus), gpus):
        if cuts_any_head(heads, tp):
            continue
        expert_cuts = [1, tp] if tp > 1 and experts > 0 else [1]
        for pp in pipelines:
            if leaves_gpus_over(gpus, tp * pp) or leaves_a_chunk_empty(layers, pp, 1):
                continue
            for cp in contexts:
                if leaves_gpus_over(gpus, tp * pp * cp) or (cp > 1 and cuts_tokens_unevenly(seq, cp)):
                    continue
                dp = gpus // (tp * pp * cp)
                if leaves_sequences_over(global_batch, dp):
                    continue
                for ep in expert_ranks:
                    for expert_tp in expert_cuts:
                        if leaves_gpus_over(gpus // pp, ep * expert_tp) or len(tps) >= most:
                            continue
                        tps.append(tp)
                        pps.append(pp)
                        cps.append(cp)
                        eps.append(ep)
                        expert_tps.append(expert_tp)
                        dps.append(dp)
    return {"tp": tps, "pp": pps, "cp": cps, "ep": eps, "expert_tp": expert_tps, "dp": dps}
