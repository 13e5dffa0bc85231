"""Attention in tiles: what it moves over HBM, and the algorithm itself, executed on numpy with every access counted.

Two levels of memory, as in the paper: HBM, and an SRAM of M values that one thread block has to itself. Standard
attention writes the N×N scores out and reads them again. The tiled one keeps a tile of them in SRAM and carries a
running softmax (``online_softmax``) from tile to tile (Dao et al., FlashAttention, arXiv:2205.14135).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine import check, online_softmax, ops
from engine.hardware import Gpu
from engine.matmul import Chip, fused_attention_s, product_s, stream_s
from engine.online_softmax import Partial

QUERIES_OUTSIDE, KEYS_OUTSIDE = 0, 1
ORDERS = (QUERIES_OUTSIDE, KEYS_OUTSIDE)    # FlashAttention-2 (arXiv:2307.08691) and the first one's Algorithm 1
SMALLEST_TILE = 16.0                        # rows that a tensor core takes at once
REGISTER_FILE_BYTES = 262144.0              # of a multiprocessor: 65,536 of 32 bits (CUDA C++ Programming Guide)


# -- the model ---------------------------------------------------------------------------------------------------------
def tile_rows(sram_bytes, head_dim, value_bytes=2.0):
    """Rows of a tile of the outer loop: ⌊M/4d⌋, so that one tile each of Q, K, V and O fits the SRAM; whole sixteens
    from 16 upwards.

    arXiv:2205.14135, Algorithm 1, line 1. The scores stand in registers (``score_bytes``). Leaves out that real kernels
    keep O there too, and a second buffer for the next tile of K and V.
    """
    check.positive(sram_bytes=sram_bytes, head_dim=head_dim, value_bytes=value_bytes)
    rows = ops.maximum(ops.floor(sram_bytes / (value_bytes * 4.0 * head_dim)), 1.0)
    return ops.where(rows < SMALLEST_TILE, rows, ops.floor(rows / SMALLEST_TILE) * SMALLEST_TILE)


def inner_rows(rows, head_dim):
    """Rows of a tile of the inner loop: min(B, d), so that its scores are no more values than a tile of Q.

    arXiv:2205.14135, Algorithm 1, line 1. Does not change the traffic, which counts the outer loop's tiles.
    """
    check.positive(rows=rows, head_dim=head_dim)
    return ops.minimum(rows, head_dim)


def score_bytes(rows, head_dim, value_bytes=4.0):
    """The scores of a tile, B × min(B, d), in fp32: what the registers of a multiprocessor hold of them."""
    check.positive(value_bytes=value_bytes)
    return rows * inner_rows(rows, head_dim) * value_bytes


def tiles_of(seq, rows):
    """Tiles along a sequence; the last may be short."""
    check.positive(seq=seq, rows=rows)
    return ops.ceil(seq / rows)


def standard_bytes(seq, head_dim, value_bytes=2.0):
    """Forward, one head: Q, K and V read and O written once, scores and softmax each written and read: 4Nd + 4N² values.

    arXiv:2205.14135, Algorithm 0. Leaves out a mask and dropout, which read and write the N² again.
    """
    check.positive(seq=seq, head_dim=head_dim, value_bytes=value_bytes)
    return value_bytes * 4.0 * seq * (head_dim + seq)


def tiled_bytes(seq, head_dim, rows, order=QUERIES_OUTSIDE, value_bytes=2.0):
    """Forward, one head, in T = ⌈N/rows⌉ tiles. Queries outside: Q and O once, K and V for each tile of queries,
    (2 + 2T)·Nd values. Keys outside: K and V once; Q, the old O and the new O for each tile of keys, (2 + 3T)·Nd.

    With rows = M/4d that is Θ(N²d²/M) (arXiv:2205.14135, Theorem 2). Leaves out the softmax's one or two numbers a row,
    and that the L2 cache catches many of the repeated reads.
    """
    check.positive(head_dim=head_dim, value_bytes=value_bytes)
    passes = ops.where(order == KEYS_OUTSIDE, 3.0, 2.0) * tiles_of(seq, rows)
    return value_bytes * seq * head_dim * (2.0 + passes)


def once_bytes(seq, head_dim, value_bytes=2.0):
    """Q, K and V read once and O written once: what no order can go below."""
    check.positive(seq=seq, head_dim=head_dim, value_bytes=value_bytes)
    return value_bytes * 4.0 * seq * head_dim


def flops(seq, head_dim):
    """Forward, one head, no mask: two products of 2·N²·d FLOPs. Leaves out the softmax."""
    check.positive(seq=seq, head_dim=head_dim)
    return 4.0 * seq * seq * head_dim


def standard_training_bytes(seq, head_dim, masks=0.0, dropouts=0.0, value_bytes=2.0):
    """Forward and backward of standard attention, one head: 12·Nd and 11·N² values and those of mask and dropout.

    arXiv:2205.14135, Algorithms 0 and 3. N² values: scores and softmax written and read (4); backward reads the softmax
    for dV, writes dP, reads both and writes dS, and reads dS for dQ and for dK (7). A mask that is added is a read and a
    write (2). Dropout is a read, a write and half a value of flags, there and back (5).
    """
    check.positive(seq=seq, head_dim=head_dim, value_bytes=value_bytes)
    check.non_negative(masks=masks, dropouts=dropouts)
    return value_bytes * seq * (12.0 * head_dim + (11.0 + 2.0 * masks + 5.0 * dropouts) * seq)


def tiled_training_bytes(seq, head_dim, rows, value_bytes=2.0):
    """Forward and backward of FlashAttention as printed, keys outside, one head: (6 + 8T)·Nd values.

    arXiv:2205.14135, Algorithms 1 and 4: forward 2 + 3T; backward K, V, dK and dV once, and Q, O, dO, and dQ both ways
    for each tile of keys.
    """
    check.positive(head_dim=head_dim, value_bytes=value_bytes)
    return value_bytes * seq * head_dim * (6.0 + 8.0 * tiles_of(seq, rows))


def standard_s(seq, head_dim, heads, at: Chip):
    """Three kernels, one after the other: a product, the softmax, a product."""
    check.positive(heads=heads)
    products = (product_s(seq, seq, head_dim, heads, at.matmul_flops_per_s, 2.0, 2.0, at)
                + product_s(seq, head_dim, seq, heads, at.matmul_flops_per_s, 2.0, 2.0, at))
    return products + stream_s(4.0 * heads * seq * seq, at)


def tiled_arithmetic_s(seq, head_dim, heads, at: Chip):
    """The products of the one kernel at the rate that fused attention reaches: ``matmul.fused_attention_s``, no mask."""
    check.positive(heads=heads, seq=seq)
    return fused_attention_s(heads * seq * seq, seq, head_dim, head_dim, 0.0, at)


def sram_bytes(gpu: Gpu):
    """Shared memory of one multiprocessor."""
    return gpu.smem_bytes_per_sm


# -- the algorithm, executed -------------------------------------------------------------------------------------------
class Hbm:
    """Named matrices outside the SRAM; counts the values that are read and written, and gives and takes copies."""

    def __init__(self, **matrices):
        self.matrices, self.values_moved = matrices, 0

    def read(self, name: str, rows: slice) -> np.ndarray:
        """These rows of a matrix."""
        block = self.matrices[name][rows].copy()
        self.values_moved += block.size
        return block

    def write(self, name: str, rows: slice, block: np.ndarray) -> None:
        """A matrix gets new values in these rows."""
        self.matrices[name][rows] = block
        self.values_moved += block.size


@dataclass(frozen=True, eq=False)
class TiledRun:
    """An executed sweep. State 0 is before the first tile, state k after k of them."""

    tiles: np.ndarray                   # [step, 2]: tile of queries and tile of keys
    states: tuple[Partial, ...]         # [state]: the running softmax of all queries
    values_moved: int                   # over HBM, matrices alone
    result: np.ndarray                  # what stands in HBM in the end
    dense: np.ndarray                   # attention over everything at once

    @cached_property
    def differences(self) -> np.ndarray:
        """[state]: the largest distance from attention over everything, of any query that has met a key; 0 before one has."""
        off = np.array([np.abs(online_softmax.output(state) - self.dense).max(axis=1) for state in self.states])
        begun = np.array([state.total > 0 for state in self.states])
        return np.where(begun, off, 0.0).max(axis=1)


@dataclass(eq=False)
class _Running:
    """The softmax of all queries, and a note of it after each tile."""

    now: Partial
    notes: list = field(default_factory=list)
    tiles: list = field(default_factory=list)

    def take_in(self, i, j, rows, weighted, part) -> np.ndarray:
        """The weighted sum of these queries after one more tile, joined with the one so far."""
        joined = online_softmax.joined(Partial(self.now.maximum[rows], self.now.total[rows], weighted), part)
        self.now = Partial(*(column.copy() for column in self.now))
        for column, block in zip(self.now, joined):
            column[rows] = block
        self.notes.append(self.now)
        self.tiles.append((i, j))
        return joined.weighted


def tiled(q, k, v, query_rows: int, key_rows: int, order=QUERIES_OUTSIDE) -> TiledRun:
    """Attention of one head, [token, dim], tile by tile, without a mask.

    Queries outside: the weighted sum stays in SRAM until its queries have met all keys. Keys outside: each tile reads it
    from HBM and writes it back. Either divides by the sum of weights at the end, as FlashAttention-2 does.
    """
    check.whole(query_rows=query_rows, key_rows=key_rows)
    check.one_of(ORDERS, order=order)
    start = online_softmax.nothing(len(q), v.shape[-1])
    hbm, running = Hbm(q=q, k=k, v=v, o=np.zeros_like(start.weighted)), _Running(start)
    sweep = _queries_outside if order == QUERIES_OUTSIDE else _keys_outside
    sweep(hbm, running, _tiles(len(q), query_rows), _tiles(len(k), key_rows))
    return TiledRun(np.array(running.tiles), (start, *running.notes), hbm.values_moved,
                    online_softmax.output(running.now._replace(weighted=hbm.matrices["o"])),
                    online_softmax.output(_part(q, k, v)))


def _queries_outside(hbm: Hbm, running: _Running, queries, keys) -> None:
    for i, rows in enumerate(queries):
        q = hbm.read("q", rows)
        weighted = np.zeros_like(hbm.matrices["o"][rows])
        for j, columns in enumerate(keys):
            weighted = running.take_in(i, j, rows, weighted, _part(q, hbm.read("k", columns), hbm.read("v", columns)))
        hbm.write("o", rows, weighted)


def _keys_outside(hbm: Hbm, running: _Running, queries, keys) -> None:
    for j, columns in enumerate(keys):
        k, v = hbm.read("k", columns), hbm.read("v", columns)
        for i, rows in enumerate(queries):
            part = _part(hbm.read("q", rows), k, v)
            hbm.write("o", rows, running.take_in(i, j, rows, hbm.read("o", rows), part))


def _part(q, k, v) -> Partial:
    return online_softmax.of_keys(q, k, v, np.ones((len(q), len(k)), dtype=bool))


def _tiles(tokens: int, rows: int) -> list[slice]:
    return [slice(start, min(start + rows, tokens)) for start in range(0, tokens, rows)]


# -- sweeps to look at -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Sweeps:
    """Executed sweeps over one small head, in both orders and with tiles of several sides in the outer and the inner loop;
    flat columns, run by run."""

    sides: np.ndarray                   # tokens along a tile
    tokens: int
    starts: np.ndarray                  # [run's number]: where its first state begins
    maximum: np.ndarray                 # [run, state, query]; 0 before the first key
    total: np.ndarray
    output: np.ndarray
    dense: np.ndarray                   # [query]: attention over everything
    difference_starts: np.ndarray
    differences: np.ndarray             # [run, state]

    def side_of(self, tokens):
        """The number of the largest side that is not longer; the smallest where all are. Takes symbols too."""
        return ops.maximum(np.sum(np.where(self.sides <= tokens, 1.0, 0.0)) - 1.0, 0.0)

    def run(self, order, outer, inner):
        """The number of a run, by the numbers of its sides; an inner one longer than the outer counts as equal."""
        return (order * len(self.sides) + outer) * len(self.sides) + inner

    def rows(self, start, state):
        """[query]: where a run's state stands in the columns."""
        return start + state * self.tokens + np.arange(self.tokens)


def sweeps(q, k, v, sides) -> Sweeps:
    """Run them all. Values one wide."""
    pairs = [(order, outer, inner) for order in ORDERS for outer in sides for inner in sides if inner <= outer]
    runs = [tiled(q, k, v, *((outer, inner) if order == QUERIES_OUTSIDE else (inner, outer)), order)
            for order, outer, inner in pairs]
    maximum, total, output = (np.concatenate([np.stack([column(state) for state in run.states]).ravel() for run in runs])
                              for column in (lambda s: np.where(s.total > 0, s.maximum, 0.0), lambda s: s.total,
                                             lambda s: online_softmax.output(s)[:, 0]))
    states = np.array([len(run.states) for run in runs])
    first = dict(zip(pairs, (np.cumsum(states) - states).astype(float)))
    first = np.array([first[order, outer, min(inner, outer)] for order in ORDERS for outer in sides for inner in sides])
    return Sweeps(np.array(sides, dtype=float), len(q), first * float(len(q)), maximum, total, output, runs[0].dense[:, 0],
                  first, np.concatenate([run.differences for run in runs]))


def steps_of(outer_tiles, inner_tiles):
    """Tiles of a sweep."""
    check.positive(outer_tiles=outer_tiles, inner_tiles=inner_tiles)
    return outer_tiles * inner_tiles


def state_at(moment, steps):
    """Whole tiles swept at a moment; the last state once all are. Takes symbols too."""
    return ops.minimum(ops.floor(moment), steps)


def tile_of(token, side):
    """The tile that a token is in."""
    return ops.floor(token / side)


def swept(inner_tiles, order, step):
    """(query tile, key tile) of a step of a sweep. Takes symbols too."""
    outer = ops.floor(step / inner_tiles)
    inner = step - inner_tiles * outer
    by_keys = order == KEYS_OUTSIDE
    return ops.where(by_keys, inner, outer), ops.where(by_keys, outer, inner)


def step_of(query_tile, key_tile, inner_tiles, order):
    """The step in which a tile is computed. Takes symbols too."""
    return ops.where(order == KEYS_OUTSIDE, key_tile * inner_tiles + query_tile, query_tile * inner_tiles + key_tile)
