"""Attention over a sequence that is split over ranks, executed on numpy: a ring of keys and values, or two
AllToAlls.

Ring attention (Liu et al., arXiv:2310.01889): each rank keeps its queries and uses every block of keys and
values, one per step, while it passes its current block to the next rank. The running softmax
(``online_softmax``) combines the parts. Ulysses (Jacobs et al., arXiv:2309.14509): an AllToAll swaps tokens
for heads, each rank computes attention over the whole sequence with its heads, and another AllToAll swaps
back. Both are compared with attention computed all at once.

Arrays are [heads, tokens, dim]; there may be fewer key-value heads, each shared by a group of query heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from engine.base import check
from engine.base.types import Real
from engine.executed import ranks
from engine.executed.ranks_operations import all_to_all
from engine.mechanism import context_parallel, online_softmax
from engine.mechanism.online_softmax import Partial

VALUE_BYTES = 2.0


@dataclass(frozen=True, eq=False)
class RingRun:
    """An executed ring. State 0 is before the first block, state k after k of them."""

    positions: np.ndarray  # [rank, token]: positions of each rank's tokens in the sequence
    blocks: np.ndarray  # [step, rank]: the rank from which the keys and values in use come
    pairs: np.ndarray  # [step, rank]: query-key pairs that the mask allows
    states: tuple[tuple[Partial, ...], ...]  # [state][rank]
    sent_bytes: np.ndarray  # [rank]
    dense: np.ndarray  # attention computed all at once

    def output(self, state: int) -> np.ndarray:
        """The ranks' output after this many blocks, in the order of the sequence."""
        out = np.zeros_like(self.dense)
        for tokens, part in zip(self.positions, self.states[state]):
            out[:, tokens] = online_softmax.output(part)
        return out

    @cached_property
    def differences(self) -> np.ndarray:
        """[state]: the largest difference of any output from attention computed all at once."""
        return np.array([np.abs(self.output(state) - self.dense).max() for state in range(len(self.states))])


@dataclass(frozen=True, eq=False)
class UlyssesRun:
    """Attention by AllToAll: the result, and what each rank sent."""

    result: np.ndarray
    dense: np.ndarray
    sent_bytes: np.ndarray  # [rank]

    @property
    def max_difference(self) -> float:
        """The largest difference of any output from attention computed all at once."""
        return float(np.abs(self.result - self.dense).max())


def example(
    heads: int, tokens: int, dim: int = 4, kv_heads: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, keys and values with small numbers for display: scores are multiples of one half, values are
    digits from 1 to 9."""
    check.whole(heads=heads, tokens=tokens, dim=dim)
    kv_heads = heads if kv_heads is None else kv_heads

    def digits(count, width, shift):
        return (
            ranks.example(count * tokens + shift, width)[shift:].reshape(count, tokens, width).astype(float)
        )

    return digits(heads, dim, 0) % 5 - 2, digits(kv_heads, dim, 3) % 5 - 2, digits(kv_heads, 1, 7)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = True) -> np.ndarray:
    """Attention computed all at once: the reference for the runs."""
    tokens = q.shape[1]
    seen = np.tri(tokens, dtype=bool) if causal else np.ones((tokens, tokens), dtype=bool)
    return online_softmax.output(online_softmax.of_keys(q, _for_each(q, k), _for_each(q, v), seen))


def ring(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    ring_ranks: int,
    order: int = context_parallel.ZIGZAG,
    value_bytes: float = VALUE_BYTES,
) -> RingRun:
    """Ring attention in one of ``context_parallel.ORDERS``; ``context_parallel.FULL`` has no mask."""
    check.one_of(context_parallel.ORDERS, order=order)
    check.positive(value_bytes=value_bytes)
    tokens = q.shape[1]
    _require_divides(2 * ring_ranks if order == context_parallel.ZIGZAG else ring_ranks, "tokens", tokens)
    block = tokens // ring_ranks
    here = np.arange(ring_ranks)
    positions = context_parallel.position(here[:, None], np.arange(block), ring_ranks, block, order)
    held = list(here)  # the rank whose block each rank currently holds
    parts = [online_softmax.nothing(q.shape[0], block, v.shape[-1]) for _ in here]
    states, blocks, pairs, sent = [tuple(parts)], [], [], np.zeros(ring_ranks)
    for step in range(ring_ranks):
        blocks.append(list(held))
        pairs.append([])
        for rank in here:
            mine, theirs = positions[rank], positions[held[rank]]
            seen = (theirs <= mine[:, None]) | (order == context_parallel.FULL)
            pairs[-1].append(seen.sum())
            keys, values = _for_each(q, k[:, theirs]), _for_each(q, v[:, theirs])
            parts[rank] = online_softmax.joined(
                parts[rank], online_softmax.of_keys(q[:, mine], keys, values, seen)
            )
        states.append(tuple(parts))
        if step < ring_ranks - 1:  # after ranks − 1 hops every block has visited every rank
            sent += [
                (k[:, positions[owner]].size + v[:, positions[owner]].size) * value_bytes for owner in held
            ]
            held = held[-1:] + held[:-1]
    return RingRun(
        positions,
        np.array(blocks),
        np.array(pairs),
        tuple(states),
        sent,
        attention(q, k, v, order != context_parallel.FULL),
    )


def ulysses(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    ring_ranks: int,
    causal: bool = True,
    value_bytes: float = VALUE_BYTES,
) -> UlyssesRun:
    """Attention between two AllToAlls, which swap tokens for heads and back. The number of ranks must divide
    all heads."""
    check.whole(ranks=ring_ranks)
    _require_divides(ring_ranks, "tokens", q.shape[1])
    _require_divides(ring_ranks, "heads", q.shape[0])
    _require_divides(ring_ranks, "kv_heads", k.shape[0])
    by_heads, sent = [], np.zeros(ring_ranks)
    for tensor in (q, k, v):
        pieces, bytes_sent = _swapped(np.split(tensor, ring_ranks, axis=1), 0, 1, value_bytes)
        by_heads.append(pieces)
        sent += bytes_sent
    outputs = [attention(*pieces, causal=causal) for pieces in zip(*by_heads)]
    by_tokens, bytes_sent = _swapped(outputs, 1, 0, value_bytes)
    return UlyssesRun(np.concatenate(by_tokens, axis=1), attention(q, k, v, causal), sent + bytes_sent)


# -- frames of an animation ----------------------------------------------------------------------------------
class RingFrames(NamedTuple):
    """A ring's running softmax padded to ``most`` ranks, for one head and values of width one; flat
    arrays."""

    maximum: np.ndarray  # [state, rank, token]; 0 where no key has been seen
    total: np.ndarray  # [state, rank, token]; 0 where no key has been seen
    output: np.ndarray  # [state, rank, token]
    dense: np.ndarray  # [rank, token]: attention computed all at once
    differences: np.ndarray  # [state]


def frames(run: RingRun, most: int) -> RingFrames:
    """The run as arrays for ``most`` ranks; states after its last repeat the last one."""
    block = run.positions.shape[1]
    found = np.zeros((3, most + 1, most, block))
    for state in range(most + 1):
        for rank, part in enumerate(run.states[min(state, len(run.states) - 1)]):
            seen = part.total[0] > 0
            found[:, state, rank] = (
                np.where(seen, part.maximum[0], 0.0),
                part.total[0],
                online_softmax.output(part)[0, :, 0],
            )
    dense = np.zeros((most, block))
    dense[: len(run.positions)] = run.dense[0, run.positions, 0]
    differences = np.concatenate([run.differences, np.full(most + 1 - len(run.states), run.differences[-1])])
    return RingFrames(*(column.ravel() for column in (*found, dense, differences)))


def example_frames(ring_ranks: int, block: int, order: int, most: int) -> RingFrames:
    """A ring over the example, with ``block`` tokens on each rank."""
    return frames(ring(*example(1, ring_ranks * block), ring_ranks, order), most)


def row_at(column: Real, most: int, block: int, state: Real, token: Real) -> Real:
    """[rank]: the value in a column of ``frames`` after this many blocks, for one token of each rank. Accepts
    symbols."""
    rows = np.reshape(column, (most + 1, most, block))
    here = np.arange(most + 1)[:, None, None] == state
    return np.sum(np.sum(np.where(here & (np.arange(block) == token), rows, 0.0), axis=2), axis=0)


def dense_at(column: Real, most: int, block: int, token: Real) -> Real:
    """[rank]: attention computed all at once, for one token of each rank."""
    return np.sum(np.where(np.arange(block) == token, np.reshape(column, (most, block)), 0.0), axis=1)


def _swapped(tensors, cut_axis, join_axis, value_bytes):
    """(each rank's tensor with one axis split and another one whole, bytes that each rank sent): an AllToAll
    of the pieces."""
    count = len(tensors)
    shape = np.split(tensors[0], count, axis=cut_axis)[0].shape
    run = all_to_all(
        [
            np.concatenate([piece.ravel() for piece in np.split(tensor, count, axis=cut_axis)])
            for tensor in tensors
        ],
        cell_bytes=value_bytes,
    )
    received = [result.reshape(count, *shape) for result in run.each_result]
    return [np.concatenate(list(pieces), axis=join_axis) for pieces in received], run.sent_bytes


def _for_each(q, shared):
    """Keys or values repeated for each query head that shares them."""
    _require_divides(len(shared), "heads", len(q))
    return np.repeat(shared, len(q) // len(shared), axis=0)


def _require_divides(divisor, what, count) -> None:
    check.whole(ranks=divisor)
    if count % divisor:
        raise ValueError(f"{what} must be a multiple of {divisor}, got {count}")
