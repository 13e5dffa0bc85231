"""Linear attention with the gated delta rule (Gated DeltaNet, arXiv:2412.06464), run: token by token as a
server decodes, and in chunks as a prompt is read.

A head keeps a matrix S that gives a value for a key. For each token it decays by a, what it gives for the key
k is corrected towards the value v by a share b, and the query q reads it:

    S ← a·S,   u = b·(v − Sᵀk),   S ← S + k·uᵀ,   o = Sᵀq

Within a chunk the corrections u depend on one another in order, a triangular system; all else is matrix
products. Both ways give the same numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base import check


class Mixed(NamedTuple):
    """What one head's tokens read, the state after the last of them, and the FLOPs that it took."""

    read: np.ndarray  # tokens × width of a value
    state: np.ndarray  # width of a key × width of a value
    flops: float


def _checked(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, decay: np.ndarray, share: np.ndarray
) -> tuple[int, int, int]:
    tokens, width = np.shape(key)
    check.one_of((np.shape(key),), query_shape=np.shape(query))
    check.one_of(
        (tokens,), tokens_of_value=len(value), tokens_of_decay=len(decay), tokens_of_share=len(share)
    )
    return tokens, width, np.shape(value)[1]


def token_by_token(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, decay: np.ndarray, share: np.ndarray
) -> Mixed:
    """The rule as it stands, 7 FLOPs for each value of the state and token."""
    tokens, keys, values = _checked(query, key, value, decay, share)
    state, read = np.zeros((keys, values)), np.zeros((tokens, values))
    for t in range(tokens):
        state = decay[t] * state
        correction = share[t] * (value[t] - state.T @ key[t])
        state = state + np.outer(key[t], correction)
        read[t] = state.T @ query[t]
    return Mixed(read, state, 7.0 * tokens * keys * values)


def in_chunks(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    decay: np.ndarray,
    share: np.ndarray,
    chunk: int = 64,
) -> Mixed:
    """The same in chunks of so many tokens: every product is counted as it is made, 2·m·n·k FLOPs, and the
    triangular inverse as C³."""
    check.whole(chunk=chunk)
    tokens, keys, values = _checked(query, key, value, decay, share)
    state, read, flops = np.zeros((keys, values)), np.zeros((tokens, values)), 0.0
    for start in range(0, tokens, chunk):
        at = slice(start, start + chunk)
        q, k, v, b = query[at], key[at], value[at], share[at][:, None]
        since = np.cumprod(decay[at])  # how much of the state before the chunk is left at each token
        between = np.tril(since[:, None] / since[None, :])  # … and of what an earlier token of it wrote
        size = len(k)
        lower = np.tril(b * between * (k @ k.T), -1)
        inverse = np.linalg.inv(np.eye(size) + lower)
        of_state = inverse @ (b * since[:, None] * k)
        corrections = inverse @ (b * v) - of_state @ state
        read[at] = since[:, None] * (q @ state) + (between * (q @ k.T)) @ corrections
        left = (since[-1] / since)[:, None]
        state = since[-1] * state + (left * k).T @ corrections
        within = 3 * keys + 2 * values  # k·kᵀ, q·kᵀ and the inverse times k; times v, and the corrections
        flops += 2.0 * size * size * within + 3 * 2.0 * size * keys * values + float(size) ** 3
    return Mixed(read, state, flops)
