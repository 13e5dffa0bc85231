"""The fluid equilibrium of a server, in closed form: what it can serve at most, and how many answers it
writes at once under a given load.

The more answers a replica decodes at once, the more requests it finishes per second, because it reads the
weights once for all of them. So there is a number of answers with which requests leave as fast as they
arrive. If they arrive faster than even a full batch finishes them, there is no equilibrium. Leaves out
everything that chance does: queues, preemption, and replicas that are not equally busy.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

from engine.base.program import program
from engine.serving.modes import CHUNKED, DISAGGREGATED
from engine.serving.step_costs import interpolated

QUANTILES = tuple(NormalDist().inv_cdf((i + 0.5) / 200) for i in range(200))
LONGEST = 16.0  # no request is longer than so many medians, as in ``events.lengths``


def moment(median: float, spread: float, power: float) -> float:
    """The mean of a log-normal length raised to this power, no length past 16 medians."""
    total = 0.0
    for z in QUANTILES:
        total += min(LONGEST * median, median * math.exp(spread * z)) ** power
    return total / len(QUANTILES)


def context_tokens(prompt: float, prompt_spread: float, output: float, output_spread: float) -> float:
    """Cached tokens that a decode step reads for each answer, on average over the answers that are being
    written: the mean prompt and, since long answers are written for longer, half of E[o²]/E[o] of the
    answer."""
    answer = moment(output, output_spread, 1.0)
    return moment(prompt, prompt_spread, 1.0) + moment(output, output_spread, 2.0) / (2 * answer)


@program(tokens=())
def context(prompt: float, prompt_spread: float, output: float, output_spread: float) -> dict[str, Any]:
    """``context_tokens``, also for a page."""
    return {"tokens": context_tokens(prompt, prompt_spread, output, output_spread)}


def decoding_per_s(
    running: float,
    tokens: float,
    pairs_s: float,
    steps: float,
    context: float,
    rows: list[float],
    rows_s: list[float],
    cached_s: float,
    mode: int,
    budget: float,
) -> float:
    """Requests per second of one replica that decodes ``running`` answers at once, each in ``steps`` steps.
    Prompts of ``tokens`` are read between these steps, in the same steps, or elsewhere (``mode``)."""
    read_s = running * context * cached_s
    if mode == CHUNKED:
        joining = running / steps
        return joining / (interpolated(running + joining * tokens, rows, rows_s) + joining * pairs_s + read_s)
    answer_s = steps / running * (interpolated(running, rows, rows_s) + read_s)
    if mode == DISAGGREGATED:
        return 1 / answer_s
    together = max(1.0, min(running / steps, budget / tokens))  # prompts that are read in one prefill
    return 1 / (answer_s + interpolated(together * tokens, rows, rows_s) / together + pairs_s)


def prefilling_per_s(
    tokens: float, pairs_s: float, rows: list[float], rows_s: list[float], mode: int, budget: float
) -> float:
    """Requests per second of a replica that only prefills, without a pause."""
    if mode == CHUNKED:
        joining = budget / tokens
        return joining / (interpolated(budget, rows, rows_s) + joining * pairs_s)
    together = max(1.0, budget / tokens)
    return 1 / (interpolated(together * tokens, rows, rows_s) / together + pairs_s)


@program(per_s=(), running=())
def balance(
    rate: float,
    prompt: float,
    prompt_spread: float,
    output: float,
    output_spread: float,
    rows: list[float],
    rows_s: list[float],
    pair_s: float,
    cached_s: float,
    mode: float,
    instances: float,
    prefill_instances: float,
    budget: float,
    most_running: float,
    capacity: float,
    transfer_s: float,
) -> dict[str, Any]:
    """Requests per second that leave a server whose queue never runs empty, and the answers that one replica
    writes at once at this rate (a full batch, if it is no less).

    A full batch is limited by the answers that may run at once, by the cache, and by the room that a step
    must leave for the prompts of the requests that take the place of finished ones.
    """
    way = int(mode)
    tokens, squared = moment(prompt, prompt_spread, 1.0), moment(prompt, prompt_spread, 2.0)
    answer = moment(output, output_spread, 1.0)
    steps = max(0.0, answer - 1)  # the first token comes with the prompt
    context = context_tokens(prompt, prompt_spread, output, output_spread)
    pairs_s = squared / 2 * pair_s
    batch = max(1.0, min(most_running, capacity / context))
    if way == CHUNKED:
        batch = min(batch, budget * steps / (tokens + steps))
    fronts = prefill_instances if way == DISAGGREGATED else instances
    backs = instances - prefill_instances if way == DISAGGREGATED else instances
    most = fronts * prefilling_per_s(tokens, pairs_s, rows, rows_s, way, budget)
    if way == DISAGGREGATED:
        most = min(most, fronts / max(1e-30, (tokens + 1) * transfer_s))
    low, high = 0.0, batch
    if steps > 0:
        full = decoding_per_s(batch, tokens, pairs_s, steps, context, rows, rows_s, cached_s, way, budget)
        most = min(most, backs * full)
        for _ in range(40):
            middle = (low + high) / 2
            found = decoding_per_s(
                middle, tokens, pairs_s, steps, context, rows, rows_s, cached_s, way, budget
            )
            if backs * found < rate:
                low = middle
            else:
                high = middle
    return {"per_s": most, "running": low}
