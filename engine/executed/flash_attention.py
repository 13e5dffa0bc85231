"""Attention in tiles: what it moves, and the algorithm itself, executed on numpy with every access counted.

As in the paper, each thread block has an SRAM of M values, and everything else lies in HBM. Standard
attention writes the N×N scores out and reads them again. Tiled attention keeps one tile of them in SRAM and
carries a running softmax (``online_softmax``) from tile to tile (Dao et al., FlashAttention,
arXiv:2205.14135). On a real GPU an L2 cache, which the paper leaves out, stands between the two:
``from_hbm_bytes`` is the part of what enters the SRAM that HBM still has to send.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration.attention import fused_s
from engine.calibration.products import gemm_s
from engine.catalog.hardware import Gpu
from engine.mechanism import online_softmax
from engine.mechanism.matmul import Chip, stream_s
from engine.mechanism.online_softmax import Partial

QUERIES_OUTSIDE, KEYS_OUTSIDE = 0, 1
ORDERS = (
    QUERIES_OUTSIDE,
    KEYS_OUTSIDE,
)  # FlashAttention-2 (arXiv:2307.08691) and Algorithm 1 of the first paper
SMALLEST_TILE = 16.0  # rows that a tensor core processes at once
REGISTER_FILE_BYTES = 262144.0  # per multiprocessor: 65,536 registers of 32 bits (CUDA C++ Programming Guide)


# -- the model -----------------------------------------------------------------------------------------------
def tile_rows(sram_bytes: Real, head_dim: Real, value_bytes: Real = 2.0) -> Real:
    """Rows of a tile of the outer loop: ⌊M/4d⌋, so that one tile each of Q, K, V and O fits the SRAM; from 16
    up, a multiple of 16.

    arXiv:2205.14135, Algorithm 1, line 1. The scores are in registers (``score_bytes``). Leaves out that real
    kernels keep O there too, and a second buffer for the next tile of K and V.
    """
    check.positive(sram_bytes=sram_bytes, head_dim=head_dim, value_bytes=value_bytes)
    rows = ops.maximum(ops.floor(sram_bytes / (value_bytes * 4.0 * head_dim)), 1.0)
    return ops.where(rows < SMALLEST_TILE, rows, ops.floor(rows / SMALLEST_TILE) * SMALLEST_TILE)


def inner_rows(rows: Real, head_dim: Real) -> Real:
    """Rows of a tile of the inner loop: min(B, d), so that its scores are no more values than a tile of Q.

    arXiv:2205.14135, Algorithm 1, line 1. It does not change the traffic, which depends on the outer loop's
    tiles.
    """
    check.positive(rows=rows, head_dim=head_dim)
    return ops.minimum(rows, head_dim)


def score_bytes(rows: Real, head_dim: Real, value_bytes: Real = 4.0) -> Real:
    """Bytes of the scores of one tile, B × min(B, d), in fp32; they are held in a multiprocessor's
    registers."""
    check.positive(value_bytes=value_bytes)
    return rows * inner_rows(rows, head_dim) * value_bytes


def tiles_of(seq: Real, rows: Real) -> Real:
    """Tiles along a sequence; the last may be short."""
    check.positive(seq=seq, rows=rows)
    return ops.ceil(seq / rows)


def standard_bytes(seq: Real, head_dim: Real, value_bytes: Real = 2.0) -> Real:
    """Forward, one head: Q, K and V read and O written once, scores and softmax each written and read: 4Nd +
    4N² values.

    arXiv:2205.14135, Algorithm 0. Leaves out a mask and dropout, which read and write the N² values again.
    """
    check.positive(seq=seq, head_dim=head_dim, value_bytes=value_bytes)
    return value_bytes * 4.0 * seq * (head_dim + seq)


def tiled_bytes(
    seq: Real, head_dim: Real, rows: Real, order: Real = QUERIES_OUTSIDE, value_bytes: Real = 2.0
) -> Real:
    """Forward, one head, in T = ⌈N/rows⌉ tiles. Queries outside: Q and O once, K and V for each tile of
    queries, (2 + 2T)·Nd values. Keys outside: K and V once; Q, the old O and the new O for each tile of keys,
    (2 + 3T)·Nd.

    With rows = M/4d that is Θ(N²d²/M) (arXiv:2205.14135, Theorem 2). It is what enters and leaves the SRAM;
    the L2 cache serves most of the repeated reads (``from_hbm_bytes``). Leaves out the softmax's one or two
    values per row.
    """
    check.positive(head_dim=head_dim, value_bytes=value_bytes)
    passes = ops.where(order == KEYS_OUTSIDE, 3.0, 2.0) * tiles_of(seq, rows)
    return value_bytes * seq * head_dim * (2.0 + passes)


def from_hbm_bytes(
    seq: Real,
    head_dim: Real,
    rows: Real,
    multiprocessors: Real,
    order: Real = QUERIES_OUTSIDE,
    value_bytes: Real = 2.0,
) -> Real:
    """What HBM sends and takes of ``tiled_bytes`` where the L2 cache serves the rest. A wave has one block of
    queries on each multiprocessor; its blocks walk along the same keys together, so K and V leave HBM once a
    wave: (2 + 2⌈T/multiprocessors⌉)·Nd values. With the keys outside, one block has a whole head to itself
    and shares nothing.

    Derived, as ``tiling.hbm_bytes`` is for products. Leaves out that blocks drift apart.
    """
    check.positive(head_dim=head_dim, multiprocessors=multiprocessors, value_bytes=value_bytes)
    waves = ops.ceil(tiles_of(seq, rows) / multiprocessors)
    alone = tiled_bytes(seq, head_dim, rows, KEYS_OUTSIDE, value_bytes)
    return ops.where(order == KEYS_OUTSIDE, alone, value_bytes * seq * head_dim * (2.0 + 2.0 * waves))


def once_bytes(seq: Real, head_dim: Real, value_bytes: Real = 2.0) -> Real:
    """Q, K and V read once and O written once: a lower bound for any order."""
    check.positive(seq=seq, head_dim=head_dim, value_bytes=value_bytes)
    return value_bytes * 4.0 * seq * head_dim


def flops(seq: int, head_dim: float) -> float:
    """Forward, one head, no mask: two products of 2·N²·d FLOPs. Leaves out the softmax."""
    check.positive(seq=seq, head_dim=head_dim)
    return 4.0 * seq * seq * head_dim


def standard_training_bytes(
    seq: int, head_dim: int, masks: float = 0.0, dropouts: float = 0.0, value_bytes: float = 2.0
) -> float:
    """Forward and backward of standard attention, one head: 12·Nd and 11·N² values, plus those of mask and
    dropout.

    arXiv:2205.14135, Algorithms 0 and 3. N² values: scores and softmax written and read (4); backward reads
    the softmax for dV, writes dP, reads both and writes dS, and reads dS for dQ and for dK (7). Adding a mask
    is a read and a write (2). Dropout is a read, a write and half a value of flags, forward and backward (5).
    """
    check.positive(seq=seq, head_dim=head_dim, value_bytes=value_bytes)
    check.non_negative(masks=masks, dropouts=dropouts)
    return value_bytes * seq * (12.0 * head_dim + (11.0 + 2.0 * masks + 5.0 * dropouts) * seq)


def tiled_training_bytes(seq: Real, head_dim: Real, rows: Real, value_bytes: Real = 2.0) -> Real:
    """Forward and backward of FlashAttention as published, keys outside, one head: (6 + 8T)·Nd values.

    arXiv:2205.14135, Algorithms 1 and 4: forward 2 + 3T; backward K, V, dK and dV once, and for each tile of
    keys Q, O and dO read, dQ read and written.
    """
    check.positive(head_dim=head_dim, value_bytes=value_bytes)
    return value_bytes * seq * head_dim * (6.0 + 8.0 * tiles_of(seq, rows))


def standard_s(seq: int, head_dim: int, heads: int, at: Chip) -> float:
    """Three kernels, one after the other: a product, the softmax, a product."""
    check.positive(heads=heads)
    products = gemm_s(seq, seq, head_dim, at.product, heads) + gemm_s(seq, head_dim, seq, at.product, heads)
    return products + stream_s(4.0 * heads * seq * seq, at)


def tiled_arithmetic_s(seq: Real, head_dim: Real, heads: Real, at: Chip) -> Real:
    """The single kernel as measured, without a mask."""
    check.positive(heads=heads, seq=seq)
    return fused_s(1.0, seq, heads, heads, head_dim, at.attention, causal=0.0)


def sram_bytes(gpu: Gpu) -> Real:
    """Shared memory of one multiprocessor."""
    return gpu.smem_bytes_per_sm


# -- the algorithm, executed ---------------------------------------------------------------------------------
class Hbm:
    """Named matrices outside the SRAM. Counts the values that are read and written, and passes copies in both
    directions."""

    def __init__(self, **matrices: np.ndarray) -> None:
        self.matrices, self.values_moved = matrices, 0

    def read(self, name: str, rows: slice | tuple[slice, slice]) -> np.ndarray:
        """These rows of a matrix, or a block of it."""
        block = self.matrices[name][rows].copy()
        self.values_moved += block.size
        return block

    def write(self, name: str, rows: slice, block: np.ndarray) -> None:
        """Write new values to these rows of a matrix."""
        self.matrices[name][rows] = block
        self.values_moved += block.size


@dataclass(frozen=True, eq=False)
class TiledRun:
    """An executed sweep. State 0 is before the first tile, state k after k of them."""

    tiles: np.ndarray  # [step, 2]: query tile and key tile
    states: tuple[Partial, ...]  # [state]: the running softmax of all queries
    values_moved: int  # between HBM and SRAM, of matrices only
    result: np.ndarray  # the matrix in HBM at the end
    dense: np.ndarray  # attention computed all at once

    @cached_property
    def differences(self) -> np.ndarray:
        """[state]: the largest difference from attention computed all at once, over all queries that have
        seen a key; 0 before any has."""
        off = np.array(
            [np.abs(online_softmax.output(state) - self.dense).max(axis=1) for state in self.states]
        )
        begun = np.array([state.total > 0 for state in self.states])
        return np.where(begun, off, 0.0).max(axis=1)


@dataclass(eq=False)
class _Running:
    """The running softmax of all queries, recorded after each tile."""

    now: Partial
    notes: list = field(default_factory=list)
    tiles: list = field(default_factory=list)

    def take_in(self, i: int, j: int, rows: slice, weighted: np.ndarray, part: Partial) -> np.ndarray:
        """The weighted sum of these queries after one more tile: the tile's part combined with the sum so
        far."""
        joined = online_softmax.joined(Partial(self.now.maximum[rows], self.now.total[rows], weighted), part)
        self.now = Partial(*(column.copy() for column in self.now))
        for column, block in zip(self.now, joined):
            column[rows] = block
        self.notes.append(self.now)
        self.tiles.append((i, j))
        return joined.weighted


def tiled(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, query_rows: int, key_rows: int, order: int = QUERIES_OUTSIDE
) -> TiledRun:
    """Attention of one head, [token, dim], tile by tile, without a mask.

    Queries outside: the weighted sum stays in SRAM until its queries have seen all keys. Keys outside: each
    tile reads it from HBM and writes it back. Both divide by the sum of weights at the end, as
    FlashAttention-2 does.
    """
    check.whole(query_rows=query_rows, key_rows=key_rows)
    check.one_of(ORDERS, order=order)
    start = online_softmax.nothing(len(q), v.shape[-1])
    hbm, running = Hbm(q=q, k=k, v=v, o=np.zeros_like(start.weighted)), _Running(start)
    sweep = _queries_outside if order == QUERIES_OUTSIDE else _keys_outside
    sweep(hbm, running, tiles(len(q), query_rows), tiles(len(k), key_rows))
    return TiledRun(
        np.array(running.tiles),
        (start, *running.notes),
        hbm.values_moved,
        online_softmax.output(running.now._replace(weighted=hbm.matrices["o"])),
        online_softmax.output(_part(q, k, v)),
    )


def written_out(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, int]:
    """Attention of one head in three kernels, which leave scores and softmax in HBM: the result, and the
    values moved."""
    scores, everything = np.zeros((len(q), len(k))), slice(None)
    hbm = Hbm(q=q, k=k, v=v, s=scores, p=scores.copy(), o=np.zeros((len(q), v.shape[-1])))
    hbm.write("s", everything, hbm.read("q", everything) @ hbm.read("k", everything).T)
    weights = hbm.read("s", everything) / np.sqrt(q.shape[-1])
    weights = np.exp(weights - weights.max(axis=1, keepdims=True))
    hbm.write("p", everything, weights / weights.sum(axis=1, keepdims=True))
    hbm.write("o", everything, hbm.read("p", everything) @ hbm.read("v", everything))
    return hbm.matrices["o"], hbm.values_moved


def _queries_outside(hbm: Hbm, running: _Running, queries, keys) -> None:
    for i, rows in enumerate(queries):
        q = hbm.read("q", rows)
        weighted = np.zeros_like(hbm.matrices["o"][rows])
        for j, columns in enumerate(keys):
            weighted = running.take_in(
                i, j, rows, weighted, _part(q, hbm.read("k", columns), hbm.read("v", columns))
            )
        hbm.write("o", rows, weighted)


def _keys_outside(hbm: Hbm, running: _Running, queries, keys) -> None:
    for j, columns in enumerate(keys):
        k, v = hbm.read("k", columns), hbm.read("v", columns)
        for i, rows in enumerate(queries):
            part = _part(hbm.read("q", rows), k, v)
            hbm.write("o", rows, running.take_in(i, j, rows, hbm.read("o", rows), part))


def _part(q, k, v) -> Partial:
    return online_softmax.of_keys(q, k, v, np.ones((len(q), len(k)), dtype=bool))


def tiles(size: int, block: int) -> list[slice]:
    """The blocks of a dimension, of which the last may be smaller."""
    return [slice(start, min(start + block, size)) for start in range(0, size, block)]


# -- sweeps for a figure -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Sweeps:
    """Executed sweeps over one small head, in both orders and with several tile sizes in the outer and the
    inner loop; flat columns, run by run."""

    sides: np.ndarray  # tokens per tile
    tokens: int
    starts: np.ndarray  # [run]: the index of its first state
    maximum: np.ndarray  # [run, state, query]; 0 before the first key
    total: np.ndarray
    output: np.ndarray
    dense: np.ndarray  # [query]: attention computed all at once
    difference_starts: np.ndarray
    differences: np.ndarray  # [run, state]

    def side_of(self, tokens: Real) -> Real:
        """The index of the largest side that is not longer than ``tokens``; the smallest where all are.
        Accepts symbols."""
        return ops.maximum(np.sum(np.where(self.sides <= tokens, 1.0, 0.0)) - 1.0, 0.0)

    def run(self, order: Real, outer: Real, inner: Real) -> Real:
        """The index of a run, from the indices of its sides; an inner side longer than the outer counts as
        equal to it."""
        return (order * len(self.sides) + outer) * len(self.sides) + inner

    def rows(self, start: Real, state: Real) -> Real:
        """[query]: the rows of a run's state in the columns."""
        return start + state * self.tokens + np.arange(self.tokens)


def sweeps(q: np.ndarray, k: np.ndarray, v: np.ndarray, sides: tuple[int, int, int, int, int, int]) -> Sweeps:
    """Run all of them. The values are one wide."""
    pairs = [
        (order, outer, inner) for order in ORDERS for outer in sides for inner in sides if inner <= outer
    ]
    runs = [
        tiled(q, k, v, *((outer, inner) if order == QUERIES_OUTSIDE else (inner, outer)), order)
        for order, outer, inner in pairs
    ]
    maximum, total, output = (
        np.concatenate([np.stack([column(state) for state in run.states]).ravel() for run in runs])
        for column in (
            lambda s: np.where(s.total > 0, s.maximum, 0.0),
            lambda s: s.total,
            lambda s: online_softmax.output(s)[:, 0],
        )
    )
    states = np.array([len(run.states) for run in runs])
    first = dict(zip(pairs, (np.cumsum(states) - states).astype(float)))
    first = np.array(
        [first[order, outer, min(inner, outer)] for order in ORDERS for outer in sides for inner in sides]
    )
    return Sweeps(
        np.array(sides, dtype=float),
        len(q),
        first * float(len(q)),
        maximum,
        total,
        output,
        runs[0].dense[:, 0],
        first,
        np.concatenate([run.differences for run in runs]),
    )


def swept(inner_tiles: Real, order: Real, step: Real) -> tuple[Real, Real]:
    """(query tile, key tile) of a step of a sweep. Accepts symbols."""
    outer = ops.floor(step / inner_tiles)
    inner = step - inner_tiles * outer
    by_keys = order == KEYS_OUTSIDE
    return ops.where(by_keys, inner, outer), ops.where(by_keys, outer, inner)


def step_of(query_tile: Real, key_tile: Real, inner_tiles: Real, order: Real) -> Real:
    """The step in which a tile is computed. Accepts symbols."""
    return ops.where(
        order == KEYS_OUTSIDE, key_tile * inner_tiles + query_tile, query_tile * inner_tiles + key_tile
    )
