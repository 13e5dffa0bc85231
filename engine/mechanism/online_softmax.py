"""Attention over some of the keys, in a form that can be combined with any other part: the running softmax.

A softmax over all keys needs a sum of weights and a weighted sum of values, both relative to the largest
score. Two parts of the keys may each use their own largest score; rescaled to the larger of the two, their
sums add up. So the keys may be processed in any order and in any parts (Milakov and Gimelshein,
arXiv:1805.02867; FlashAttention, arXiv:2205.14135 section 3.1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Partial(NamedTuple):
    """The contribution of some keys to each query; heads and queries on the leading axes."""

    maximum: np.ndarray  # the largest score so far; −inf before the first
    total: np.ndarray  # sum of exp(score − maximum)
    weighted: np.ndarray  # [..., dim]: sum of exp(score − maximum) · value


def nothing(*shape: int) -> Partial:
    """The state before the first key; ``shape`` is that of the output, with the width of a value last."""
    return Partial(np.full(shape[:-1], -np.inf), np.zeros(shape[:-1]), np.zeros(shape))


def of_keys(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> Partial:
    """The contribution of these keys; ``seen`` [query, key] is False where the mask hides a key from a
    query."""
    scores = np.where(seen, q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5, -np.inf)
    maximum = scores.max(axis=-1)
    weights = np.exp(scores - _finite(maximum)[..., None])
    return Partial(maximum, weights.sum(axis=-1), weights @ v)


def joined(one: Partial, other: Partial) -> Partial:
    """Both parts combined: the larger maximum, and both sums rescaled to it."""
    maximum, scale_one, scale_other = rescaled(one.maximum, other.maximum)
    return Partial(
        maximum,
        one.total * scale_one + other.total * scale_other,
        one.weighted * scale_one[..., None] + other.weighted * scale_other[..., None],
    )


def rescaled(one: Any, other: Any) -> Any:
    """The larger of two maxima, and what the sums that are relative to each are multiplied by."""
    maximum = np.maximum(one, other)
    return maximum, np.exp(one - _finite(maximum)), np.exp(other - _finite(maximum))


def output(part: Partial) -> np.ndarray:
    """The weighted mean of the values; zero for a query that has seen no key."""
    total = part.total[..., None]
    return np.where(total > 0, part.weighted / np.where(total > 0, total, 1.0), 0.0)


def _finite(maximum):
    """The maximum, or 0 where there is none yet, so that exp(−inf − maximum) is 0 rather than undefined."""
    return np.where(np.isfinite(maximum), maximum, 0.0)
