"""What the steps of a served model cost: an instance's seconds, by what it computes and reads, and how many
cached tokens it has room for.

The times come from ``inference.py``. An instance is ``tp`` GPUs that hold one copy of the model.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.mechanism import memory
from engine.mechanism.shape import shape
from engine.serving import inference, stages, wide
from engine.serving.inference import BYTES_PER_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.catalog.models import Model
    from engine.mechanism.matmul import Chip
    from engine.mechanism.shape import Shape
    from engine.step.layout import Machine

ROWS = np.array([1.0, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384])
USUAL_BATCH = 64.0  # batch size at which the time to read a cached token is computed


class Costs(NamedTuple):
    """The costs of one instance's steps."""

    rows: np.ndarray  # tokens that a step computes
    rows_s: np.ndarray  # … and the step's seconds, without attention over the cache
    pair_s: float  # per pair of a new token and one that it sees
    cached_s: float  # for reading one cached token
    capacity: float  # cached tokens that fit beside the weights
    kv_bytes: float  # per token, over all GPUs of the instance


def costs(
    model: Model,
    at: Machine,
    tp: Real,
    prompt: Real = 1024,
    kv_precision: str = "bf16",
    weight_precision: str | Real | None = None,
    all_reduce: str = "auto",
    context: Real | None = None,
    pp: Real = 1,
) -> Costs:
    """The costs of an instance's steps. ``prompt`` is the length for which attention's efficiency is
    computed, ``context`` is the length of the caches that a decode step reads: ``under_traffic.context_of``
    the traffic, or the prompt's length where no answers are written.

    With ``pp`` stages there are as many batches, each with requests of its own. These are the costs of one of
    them, whose step passes through all stages.

    Leaves out windows shorter than the context, that the attention of a chunk fills the chip less than that
    of a whole prompt, and that a batch in a pipeline waits for those that take longer.
    """
    check.whole(tp=tp, pp=pp)
    size, chip, tp, pp = shape(model), at.chip, tp * 1.0, pp * 1.0
    held = prompt if context is None else context
    with check.trusted():
        value_bytes = BYTES_PER_VALUE[kv_precision]
        start_s, cached_s = _cached_s(size, held, tp, value_bytes, chip)
        rows_s = (
            inference.products_s(size, ROWS, tp, inference.stored_bytes(at, weight_precision), chip)
            + inference.head_s(size, ops.minimum(ROWS, inference.HEAD_ROWS), tp, chip)
            + start_s
            + inference.other_s(size, ROWS, tp, chip)
            + inference.communication_s(size, ROWS, tp, all_reduce, at.wires)
            + stages.handed_s(size, ROWS, tp, pp, at.wires)
        )
        weights = stages.weight_bytes_per_gpu(model, at, tp, pp, weight_precision)
        pair_s = _pair_s(size, prompt, start_s, tp, chip)
        return _costs(model, at, rows_s, pair_s, cached_s, weights, kv_precision, tp, pp, held)


def spread_costs(
    model: Model,
    at: Machine,
    tp: Real,
    dp: Real,
    prompts: bool,
    prompt: Real = 1024,
    kv_precision: str = "bf16",
    weight_precision: str | Real | None = None,
    context: Real | None = None,
) -> Costs:
    """The costs of one of the ``dp`` groups of ``tp`` GPUs that share experts (``wide``), if the other groups
    have as much to do: for a replica that reads ``prompts``, or for one that writes answers.

    If a step is cut in halves, all of a step's work can hide the wires, so the attention that helps to hide
    them is counted for prompts and caches of the given lengths.
    """
    check.whole(tp=tp, dp=dp)
    size, chip, tp, dp = shape(model), at.chip, tp * 1.0, dp * 1.0
    held = prompt if context is None else context
    with check.trusted():
        start_s, cached_s = _cached_s(size, held, tp, BYTES_PER_VALUE[kv_precision], chip)
        pair_s = _pair_s(size, prompt, start_s, tp, chip)
        sees_s = ROWS * (0.5 * prompt * pair_s if prompts else held * cached_s)
        stored = inference.stored_bytes(at, weight_precision)
        of = wide.Batch(size, ROWS, start_s + sees_s, tp, dp, prompts, stored, chip, at.wires)
        step_s = wide.chosen(of).total_s
        weights = wide.weight_bytes_per_gpu(model, at, tp, dp, weight_precision)
        return _costs(model, at, step_s - sees_s, pair_s, cached_s, weights, kv_precision, tp, 1.0, held)


def _cached_s(size: Shape, held: Real, tp: Real, value_bytes: Real, chip: Chip) -> tuple[Real, Real]:
    """(seconds that a step's attention takes to start, seconds for each cached token that it reads)."""
    start_s, reading_s = (
        inference.attention_s(size, batch, cached, tp, value_bytes, chip)
        for batch, cached in ((1.0, 1.0), (USUAL_BATCH, held * 1.0))
    )
    return start_s, (reading_s - start_s) / (USUAL_BATCH * held)


def _pair_s(size: Shape, prompt: Real, start_s: Real, tp: Real, chip: Chip) -> Real:
    of_prompt_s = inference.prompt_attention_s(size, 1.0, prompt * 1.0, tp, chip)
    return (of_prompt_s - start_s) / (0.5 * prompt * prompt)


def _costs(
    model: Model,
    at: Machine,
    rows_s: Real,
    pair_s: Real,
    cached_s: Real,
    weights: Real,
    kv_precision: str,
    tp: Real,
    pp: Real,
    held: Real,
) -> Costs:
    """The costs, completed by the cached tokens that have room beside ``weights`` bytes on each GPU; each of
    ``pp`` batches has its part of this room. Copies of key and value heads are not sent twice."""
    size = shape(model)
    kv = memory.kv_bytes_per_token(size, BYTES_PER_VALUE[kv_precision])
    each = kv / inference.kv_shards(size, tp)
    if not ops.is_zero(size.state_bytes):  # a sequence's state, as if its tokens shared it
        each = inference.kept_bytes(size, held, 1.0, BYTES_PER_VALUE[kv_precision], tp) / held
    shared = each * stages.largest_share(size, pp) * pp
    free = ops.maximum(0.0, memory.server_bytes(at.gpu) - weights)
    return Costs(ROWS, rows_s, pair_s, cached_s, ops.floor(free / shared), kv)


def interpolated(
    at: float, places: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray
) -> float:
    """The value at a place between known ones, by linear interpolation; beyond the last, proportional to
    it."""
    last = len(places) - 1
    if at >= places[last]:
        return values[last] * at / places[last]
    if at <= places[0]:
        return values[0]
    i = bisect_left(places, at)
    share = (at - places[i - 1]) / (places[i] - places[i - 1])
    return values[i - 1] + (values[i] - values[i - 1]) * share


def whole_or_in_chunks_s(at: Costs, prompt: Real, chunk: Real) -> Real:
    """Seconds to process a prompt alone, at most ``chunk`` tokens per step: every chunk pays for its own
    products and for attention to everything before it. Leaves out that attention reads the cache again for
    each chunk, which is hidden by the products of a chunk of some hundreds of tokens."""
    check.whole(prompt=prompt, chunk=chunk)
    seconds, done = 0.0, 0
    while done < prompt:
        tokens = min(chunk, prompt - done)
        seconds += interpolated(tokens, at.rows, at.rows_s) + tokens * (done + tokens / 2) * at.pair_s
        done += tokens
    return seconds
