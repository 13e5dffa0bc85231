"""The time of a layer of experts on the fullest rank: routing, permuting, grouped products, summing up."""

from __future__ import annotations

from dataclasses import dataclass

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration.products import WARM, either_s

EXPERT_TILE = 128.0  # rows, and columns, of a grouped product's tile
MOST_PARTS = 4.0  # the most that cutting tiles smaller speeds up a kernel with too few of them for the chip


@dataclass(frozen=True, slots=True)
class GroupedRates:
    """One GPU's constants for grouped products in one format, by one kernel."""

    flops_per_s: float
    multiprocessors: float
    memory_bytes_per_s: float
    permute_bytes_per_s: float  # rows gathered, quantised, activated and summed by separate kernels
    token_bytes_per_s: float  # hidden states of all tokens of the group, which the rank scans
    launch_s: float
    expert_s: float  # per expert that the rank holds, used or not
    pace_s: float  # per step along k of a wave of tiles, however few rows it holds
    padding: float  # half tiles by which an expert's last rows are padded
    weight_bytes: float  # bytes per stored weight


def experts_s(
    local_rows: Real,
    touched: Real,
    held: Real,
    tokens: Real,
    hidden: Real,
    width: Real,
    gated: Real,
    at: GroupedRates,
    weight_bytes: Real | None = None,
    cold: Real = 1.0,
) -> Real:
    """The time of ``local_rows`` (token, expert) pairs on this rank, over ``touched`` of its ``held`` experts
    of ``width`` columns; ``tokens`` counts the whole group's.

    A launch, and a fixed time per expert held. The weights of the experts in use are read once, overlapped
    with 2·h·f FLOPs per row and matrix, where each expert's rows are padded by part of a tile; this is slower
    where there are fewer tiles than multiprocessors, and never faster than a wave of tiles takes along k.
    Added to this are permuting and summing the rows, and scanning the group's tokens (none where the rows
    were sent here). ``weight_bytes`` is the size of a weight that is stored in another format than the
    kernel's; ``cold`` is the share of the weights that is not already in the L2 cache, for benchmarks that
    repeat one layer. Leaves out the router's product, shared experts and all communication.
    """
    if not check.is_trusted():
        check.positive(local_rows=local_rows, touched=touched, held=held, hidden=hidden, width=width)
        check.non_negative(tokens=tokens)
        check.between(0, 1, gated=gated, cold=cold)
    stored = at.weight_bytes if weight_bytes is None else weight_bytes
    return (
        _around_s(held, at)
        + tokens * hidden * 4.0 / at.token_bytes_per_s
        + _products_s(local_rows, touched, hidden, width, gated, at, stored, cold)
        + _moved_s(local_rows, hidden, (4.0 + 2.0 * gated) * width, at)
    )


def trained_experts_s(
    local_rows: Real,
    touched: Real,
    held: Real,
    hidden: Real,
    width: Real,
    gated: Real,
    sum_bytes: Real,
    at: GroupedRates,
    within: bool = False,
) -> tuple[Real, Real, Real]:
    """The times of a layer of experts in training: of the forward pass, of the backward pass, and of the part
    of the backward pass that computes weight gradients.

    Rows have been sent here, so no kernel looks for them among the group's tokens. The gradient of the input
    repeats the products of the forward pass. The gradient of the weights is a product with the expert's rows
    along k, added to a sum of ``sum_bytes`` a weight. The rows' gradients are permuted and summed as the rows
    were, and the activation function reads its inputs once more, unless the products do its work ``within``.
    """
    input_s = _products_s(local_rows, touched, hidden, width, gated, at, at.weight_bytes, 1.0)
    inside_f, inside_b = (0.0, 0.0) if within else ((4.0 + 2.0 * gated) * width, (6.0 + 4.0 * gated) * width)
    around_s = _around_s(held, at)
    weights = touched * (2.0 + gated) * hidden * width
    padded = local_rows + touched * at.padding * 0.5 * EXPERT_TILE
    weight_s = either_s(
        2.0 * (2.0 + gated) * padded * hidden * width / at.flops_per_s,
        weights * sum_bytes / at.memory_bytes_per_s,
    )
    return (
        around_s + input_s + _moved_s(local_rows, hidden, inside_f, at),
        around_s + input_s + weight_s + _moved_s(local_rows, hidden, inside_b, at),
        weight_s,
    )


def _around_s(held, at):
    """The time that a layer takes in addition to its products and its rows: launches, and a fixed time for
    each expert that the rank holds."""
    return at.launch_s + held * at.expert_s


def _moved_s(rows, hidden, inside_bytes, at):
    """The time of permuting rows, summing them up, and moving so many bytes of each inside an expert."""
    return rows * (8.0 * hidden + inside_bytes) / at.permute_bytes_per_s


def _products_s(rows, touched, hidden, width, gated, at, weight_bytes, cold):
    """The grouped products alone."""
    tiles = touched * ops.ceil(rows / touched / EXPERT_TILE)
    tiles_up = tiles * ops.ceil((1.0 + gated) * width / EXPERT_TILE) / at.multiprocessors
    tiles_down = tiles * ops.ceil(hidden / EXPERT_TILE) / at.multiprocessors
    idle = (1.0 + gated) * _idle(tiles_up) + _idle(tiles_down)
    steps = hidden * ops.ceil(tiles_up) + width * ops.ceil(tiles_down)
    padded = rows + touched * at.padding * 0.5 * EXPERT_TILE
    work_s = 2.0 * padded * hidden * width * idle / at.flops_per_s
    read_s = touched * (2.0 + gated) * hidden * width * weight_bytes / at.memory_bytes_per_s
    read_s = read_s * (cold + (1.0 - cold) * WARM)
    return either_s(ops.maximum(work_s, steps * at.pace_s), read_s)


def _idle(waves):
    """How many times longer a product takes because it has fewer tiles than the chip has multiprocessors."""
    return ops.minimum(MOST_PARTS, ops.maximum(1.0, 1.0 / waves))
