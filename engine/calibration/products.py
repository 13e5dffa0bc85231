"""The time of a dense matrix product on one GPU, and of quantising its activations.

A library cuts the product into tiles, chooses among many sizes, and splits k where there are few. Nobody can
predict each choice, but their total cost is smooth: rows that pad the last tiles, a part of a wave in which
some multiprocessors have nothing to do, and steps along k that fill the pipeline and write the result. The
constants are relative to the data sheet, fitted per GPU and format.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.base import check, ops
from engine.base.types import Real

TILE = 128.0 * 128.0  # elements of the result that a multiprocessor works on at a time
BURST_S = 1e-3  # from about this duration on, clocks start to fall
WARM = 0.25  # time to read from the L2 cache, over the time from memory
RESULT_BYTES = 2.0  # per element of a result that stays in 16 bits
SHOWS = 0.3  # share of the shorter of two overlapping times that adds to the longer, if they are equal


@dataclass(frozen=True, slots=True)
class Gemm:
    """One GPU's constants for a dense product in one format, at the clocks of a short burst."""

    flops_per_s: float  # of all multiprocessors together, in large tiles
    multiprocessors: float
    memory_bytes_per_s: float
    launch_s: float
    rows: float  # by which the last tiles are padded
    wave: float  # of a wave of tiles: the part of it that is wasted
    ramp: float  # steps along k that filling the pipeline and writing the result take
    slowing: float  # relative slowdown of a long product against a burst
    operand_bytes: float
    quantised_bytes: float  # moved per element of A by a quantisation inside the timing; 0 where it is apart


@dataclass(frozen=True, slots=True)
class Quantise:
    """One GPU's constants for casting activations to a narrower format, including finding the scale."""

    memory_bytes_per_s: float
    launch_s: float
    moved_bytes: float  # per element: read once or twice, written once
    warm: float  # time to read from the L2 cache, over the time from memory


def cold_share(working_bytes: Real, l2_bytes: Real) -> Real:
    """The part of the operands that comes from memory when a working set is used over and over.

    It is 0 up to half of the L2 cache and 1 from all of it on. This is for benchmarks, which repeat one
    product; in a real model weights and activations are read cold.
    """
    return ops.minimum(1.0, ops.maximum(0.0, 2.0 * working_bytes / ops.maximum(l2_bytes, 1.0) - 1.0))


def either_s(one_s: Real, other_s: Real) -> Real:
    """The time of two overlapping activities, a little more than the slower one takes; at least one of the
    two times is above 0."""
    slower = ops.maximum(one_s, other_s)
    faster = one_s + other_s - slower
    return slower + SHOWS * faster * faster / slower


def gemm_s(
    m: Real,
    n: Real,
    k: Real,
    at: Gemm,
    batch: Real = 1.0,
    weight_bytes: Real | None = None,
    result_bytes: Real = RESULT_BYTES,
    cold_a: Real = 1.0,
    cold_b: Real = 1.0,
) -> Real:
    """C[m, n] = A[m, k] · B[k, n], ``batch`` times in one kernel: a launch, the casting of A where it is part
    of the timing, then arithmetic and memory access, overlapped.

    2·((m + rows)·n + wave · a wave's tiles)·(k + ramp) FLOPs; both operands read once, the result written
    once. B may be stored in a format of other ``weight_bytes``. ``cold_a`` and ``cold_b`` are the shares that
    are not already in the L2 cache. Leaves out epilogues beyond writing the result, and cases where a library
    picks a poor kernel.
    """
    if not check.is_trusted():
        check.positive(m=m, n=n, k=k, batch=batch)
        check.non_negative(result_bytes=result_bytes)
        check.between(0, 1, cold_a=cold_a, cold_b=cold_b)
    start_s = at.launch_s
    if not ops.is_zero(at.quantised_bytes):
        start_s = start_s + _casting_s(m * k, at, cold_a)
    a = m * k * at.operand_bytes + m * n * result_bytes
    b = k * n * (at.operand_bytes if weight_bytes is None else weight_bytes)
    return start_s + _working_s(batch * (m + at.rows) * n, k, batch * (a * cold_a + b * cold_b), at)


def trained_product_s(rows: Real, k: Real, n: Real, sum_bytes: Real, rates: Gemm) -> tuple[Real, Real, Real]:
    """The three products of a weight k×n that ``rows`` tokens meet: forward, gradient of the input, gradient
    of the weight (added to a sum of ``sum_bytes`` an element).

    The same times as ``gemm_s`` gives for each of them, but the terms that they share are computed once.
    """
    if not check.is_trusted():
        check.positive(rows=rows, k=k, n=n)
        check.non_negative(sum_bytes=sum_bytes)
    inputs, outputs, weights = rows * k, rows * n, k * n
    forward_s = backward_s = rates.launch_s
    if not ops.is_zero(rates.quantised_bytes):
        forward_s, backward_s = forward_s + _casting_s(inputs, rates), backward_s + _casting_s(outputs, rates)
    value_bytes, padded = rates.operand_bytes, rows + rates.rows
    a, b, c = inputs * value_bytes, weights * value_bytes, outputs * value_bytes
    return (
        forward_s + _working_s(padded * n, k, a + outputs * RESULT_BYTES + b, rates),
        backward_s + _working_s(padded * k, n, c + inputs * RESULT_BYTES + b, rates),
        forward_s + _working_s((k + rates.rows) * n, rows, a + weights * sum_bytes + c, rates),
    )


def _working_s(padded: Real, k: Real, moved_bytes: Real, at: Gemm) -> Real:
    """The time of the arithmetic on ``padded`` elements of the result, overlapped with moving these bytes."""
    worked = padded + at.wave * TILE * at.multiprocessors
    work_s = 2.0 * worked * (k + at.ramp) / at.flops_per_s
    work_s = work_s * (1.0 + at.slowing * work_s / (work_s + BURST_S))
    return either_s(work_s, moved_bytes / at.memory_bytes_per_s)


def _casting_s(elements: Real, at: Gemm, cold: Real = 1.0) -> Real:
    """The time to cast this many elements of A, where casting is part of a product's timing."""
    return elements * at.quantised_bytes * ops.maximum(cold, WARM) / at.memory_bytes_per_s


def quantise_s(m: Real, k: Real, at: Quantise, cold: Real = 1.0, second_bytes: Real = 0.0) -> Real:
    """Finding the scale of m·k activations and casting them: launches, then bytes at the memory's rate.

    ``second_bytes`` are the bytes per value of a second copy: training also keeps the values by columns, for
    the product that computes the weight's gradient.
    """
    if not check.is_trusted():
        check.positive(m=m, k=k)
        check.between(0, 1, cold=cold)
        check.non_negative(second_bytes=second_bytes)
    moved = at.moved_bytes * (cold + (1.0 - cold) * at.warm) + second_bytes
    return at.launch_s + m * k * moved / at.memory_bytes_per_s
