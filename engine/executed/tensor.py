"""Tensor parallelism: Y = f(X·A)·B split over ranks and executed on numpy, and the cost of a layer's four
AllReduces.

Column then row (Shoeybi et al., arXiv:1909.08053 section 3): A is split by columns, so each rank can apply f
to its part; B by rows, so each rank has a partial sum of the whole Y. One AllReduce combines them. Row first:
X·A comes out as partial sums, and f of a sum is not the sum of f, so they must be combined before f, and the
columns of Y gathered afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.executed import ranks_operations as operations
from engine.executed.ranks import ExecutedRun
from engine.mechanism.interconnect import Wires, all_reduce_s, ranks_per_node

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

COLUMN_ROW, ROW_COLUMN = "column, row", "row, column"
ORDERS = (COLUMN_ROW, ROW_COLUMN)
VALUE_BYTES = 2.0
# X, A and B for display: whatever the order and the number of ranks, every number of the product has one
# digit
EXAMPLE = (
    ((1, 2, -1, 2), (1, 0, -1, -1)),
    ((1, 2, 2, -2), (-2, 0, 0, 2), (2, -1, 1, 1), (1, -1, 0, 0)),
    ((0, -1, 2, 2), (-1, 0, 1, 1), (-1, -1, -1, -2), (-2, 2, -2, 0)),
)


# -- executed ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class CutProduct:
    """A product that was cut: what each rank had, what it computed, how the parts were joined, and the dense
    product to compare with."""

    order: str
    a_pieces: tuple[np.ndarray, ...]  # [rank]
    b_pieces: tuple[np.ndarray, ...]
    products: tuple[np.ndarray, ...]  # each rank's product with its piece of A, before any collective
    inner: tuple[np.ndarray, ...]  # f(X·A), or its columns, as each rank has them
    partial: tuple[np.ndarray, ...]  # each rank's product with its piece of B, before the last collective
    result: np.ndarray
    dense: np.ndarray
    joins: tuple[ExecutedRun, ...]  # the collectives, in order

    @property
    def max_difference(self) -> float:
        """The largest difference of any number from the dense product."""
        return float(np.abs(self.result - self.dense).max())

    @property
    def last_places(self) -> float:
        """``max_difference`` in units in the last place (ulp) of the dense product's largest number."""
        return self.max_difference / float(np.spacing(np.abs(self.dense).max()))

    @property
    def sent_bytes(self) -> np.ndarray:
        """[rank]: bytes that each rank sent in all collectives."""
        return np.sum([join.sent_bytes for join in self.joins], axis=0)


def relu(values: np.ndarray) -> np.ndarray:
    """The larger of a value and 0."""
    return np.maximum(values, 0.0)


def gelu(values: np.ndarray) -> np.ndarray:
    """GeLU by its tanh form (Hendrycks and Gimpel, arXiv:1606.08415 section 2)."""
    return 0.5 * values * (1.0 + np.tanh((2.0 / np.pi) ** 0.5 * (values + 0.044715 * values**3)))


def matrices(
    tokens: int = 4, hidden: int = 8, ffn: int = 16, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, A and B with small whole numbers, for display."""
    check.whole(tokens=tokens, hidden=hidden, ffn=ffn)
    draw = np.random.default_rng(seed).integers
    x, a, b = (draw(-3, 4, shape).astype(float) for shape in ((tokens, hidden), (hidden, ffn), (ffn, hidden)))
    return x, a, b


def split_product(
    x: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    ranks: int,
    order: str = COLUMN_ROW,
    f: Callable[..., Any] = gelu,
    value_bytes: float = VALUE_BYTES,
) -> CutProduct:
    """f(X·A)·B on ``ranks`` ranks, each with its piece of A and B; every rank has all of X."""
    check.one_of(ORDERS, order=order)
    x, a, b = (np.asarray(matrix, dtype=float) for matrix in (x, a, b))
    if x.ndim != 2 or a.ndim != 2 or b.ndim != 2 or x.shape[1] != a.shape[0] or a.shape[1] != b.shape[0]:
        raise ValueError(
            f"x, a and b must be matrices that can be multiplied, got {x.shape}, {a.shape}, {b.shape}"
        )
    dense = f(x @ a) @ b
    return (_column_row if order == COLUMN_ROW else _row_column)(x, a, b, ranks, f, value_bytes, dense)


def _column_row(x, a, b, ranks, f, value_bytes, dense) -> CutProduct:
    _require_divides(ranks, "columns of a", a.shape[1])
    a_pieces, b_pieces = np.split(a, ranks, axis=1), np.split(b, ranks, axis=0)
    products, inner, partial = column_row_parts(x, a_pieces, b_pieces, f)
    result, join = _summed(partial, value_bytes)
    return CutProduct(
        COLUMN_ROW,
        tuple(a_pieces),
        tuple(b_pieces),
        tuple(products),
        tuple(inner),
        tuple(partial),
        result,
        dense,
        (join,),
    )


def column_row_parts(x: Any, a_pieces: Any, b_pieces: Any, f: Callable[..., Any]) -> tuple[list, list, list]:
    """([X·A], [f(X·A)], [f(X·A)·B]) of each rank, with its own pieces of A and B."""
    products = [x @ piece for piece in a_pieces]
    inner = [f(product) for product in products]
    return products, inner, [values @ piece for values, piece in zip(inner, b_pieces)]


def _row_column(x, a, b, ranks, f, value_bytes, dense) -> CutProduct:
    _require_divides(ranks, "rows of a", a.shape[0])
    _require_divides(ranks, "columns of b", b.shape[1])
    a_pieces, b_pieces = np.split(a, ranks, axis=0), np.split(b, ranks, axis=1)
    products = [part @ piece for part, piece in zip(np.split(x, ranks, axis=1), a_pieces)]
    sums, first = _summed(products, value_bytes)
    inner = [f(sums)] * ranks
    partial = [values @ piece for values, piece in zip(inner, b_pieces)]
    # a rank's columns are sent as rows, because the pieces of a buffer are contiguous
    second = operations.all_gather([part.T.ravel() for part in partial], cell_bytes=value_bytes)
    result = second.each_result[0].reshape(b.shape[1], x.shape[0]).T
    return CutProduct(
        ROW_COLUMN,
        tuple(a_pieces),
        tuple(b_pieces),
        tuple(products),
        tuple(inner),
        tuple(partial),
        result,
        dense,
        (first, second),
    )


def split_attention(
    x: np.ndarray,
    wq: np.ndarray,
    wk: np.ndarray,
    wv: np.ndarray,
    wo: np.ndarray,
    heads: int,
    ranks: int,
    value_bytes: float = VALUE_BYTES,
) -> CutProduct:
    """Causal attention with whole heads on each rank: Wq, Wk and Wv by columns, Wo by rows, one AllReduce.

    ``a_pieces`` hold a rank's Wq, Wk and Wv side by side, ``products`` its queries, keys and values,
    ``inner`` the output of its heads.
    """
    check.whole(heads=heads)
    _require_divides(ranks, "heads", heads)
    _require_divides(heads, "columns of wq", np.shape(wq)[1])
    dense = attention(x, wq, wk, wv, heads) @ wo
    cut = [np.split(np.asarray(w, dtype=float), ranks, axis=1) for w in (wq, wk, wv)]
    b_pieces = np.split(np.asarray(wo, dtype=float), ranks, axis=0)
    inner = [attention(x, *pieces, heads=heads // ranks) for pieces in zip(*cut)]
    partial = [values @ piece for values, piece in zip(inner, b_pieces)]
    result, join = _summed(partial, value_bytes)
    a_pieces = [np.hstack(pieces) for pieces in zip(*cut)]
    return CutProduct(
        COLUMN_ROW,
        tuple(a_pieces),
        tuple(b_pieces),
        tuple(x @ piece for piece in a_pieces),
        tuple(inner),
        tuple(partial),
        result,
        dense,
        (join,),
    )


def attention(x: np.ndarray, wq: np.ndarray, wk: np.ndarray, wv: np.ndarray, heads: int) -> np.ndarray:
    """Heads side by side: softmax(Q·Kᵀ/√d)·V of each, under a causal mask."""
    tokens = len(x)
    q, k, v = ((x @ w).reshape(tokens, heads, -1).transpose(1, 0, 2) for w in (wq, wk, wv))
    scores = np.where(np.tri(tokens, dtype=bool), q @ k.transpose(0, 2, 1) / q.shape[-1] ** 0.5, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    out = weights / weights.sum(axis=-1, keepdims=True) @ v
    return out.transpose(1, 0, 2).reshape(tokens, -1)


def _summed(parts, value_bytes):
    """(the sum of all ranks' parts, the AllReduce that computed it)."""
    join = operations.all_reduce([part.ravel() for part in parts], "ring", cell_bytes=value_bytes)
    return join.each_result[0].reshape(parts[0].shape), join


def _require_divides(ranks, what, count) -> None:
    check.whole(ranks=ranks)
    if count % ranks:
        raise ValueError(f"ranks must divide the {count} {what}, got {ranks}")


class HeldPieces(NamedTuple):
    """What each rank held in a split product, each piece at its place in the whole matrix, and padded to a
    fixed number of ranks."""

    products: np.ndarray  # [rank, row, column]: X·A, before f
    products_held: np.ndarray  # 1 where the rank holds that number
    inner: np.ndarray  # [row, column]: f(X·A), of all ranks together
    partial: np.ndarray  # [rank, row, column]: the product with its piece of B
    partial_held: np.ndarray
    result: np.ndarray  # [row, column]
    dense: np.ndarray
    last_places: np.ndarray  # [0]: the difference between result and dense product


def held(split: CutProduct, most: int) -> HeldPieces:
    """A split product in arrays of one shape, whatever the order and the number of ranks."""
    check.whole(most=most)
    check.non_negative(ranks_left_over=most - len(split.products))
    whole = split.order == COLUMN_ROW
    inner = np.hstack(split.inner) if whole else split.inner[0]
    products = _placed(split.products, inner.shape[1], most)
    partial = _placed(split.partial, split.dense.shape[1], most)
    return HeldPieces(*products, inner, *partial, split.result, split.dense, np.array([split.last_places]))


def _placed(pieces, width, most):
    """([rank, row, column] of the pieces' numbers, 1 where a rank holds a number). The pieces are as wide as
    the whole matrix, or lie side by side in it."""
    values, where = np.zeros((2, most, len(pieces[0]), width))
    for rank, piece in enumerate(pieces):
        start = 0 if piece.shape[1] == width else rank * piece.shape[1]
        values[rank, :, start : start + piece.shape[1]] = piece
        where[rank, :, start : start + piece.shape[1]] = 1
    return values, where


# -- bytes of each order -------------------------------------------------------------------------------------
def column_row_bytes(tokens: Real, hidden: Real, ranks: Real, value_bytes: Real = VALUE_BYTES) -> Real:
    """Bytes that each rank sends, forward: one AllReduce of Y, 2·(t−1)/t·T·h values."""
    check.positive(tokens=tokens, hidden=hidden, value_bytes=value_bytes)
    check.whole(ranks=ranks)
    return 2 * (ranks - 1) / ranks * tokens * hidden * value_bytes


def row_column_bytes(
    tokens: Real,
    hidden: Real,
    ffn: Real,
    ranks: Real,
    value_bytes: Real = VALUE_BYTES,
    matrices_of_mlp: Real = 2,
) -> Real:
    """Bytes that each rank sends, forward: an AllReduce of X·A, F wide, and an AllGather of Y: (t−1)/t·T·(2F
    + h) values.

    With F = 4h, 4.5 times as much as column then row. A gated MLP has three matrices, two of them before f,
    so 4F instead of 2F.
    """
    check.positive(
        tokens=tokens, hidden=hidden, ffn=ffn, value_bytes=value_bytes, matrices_of_mlp=matrices_of_mlp
    )
    check.whole(ranks=ranks)
    return (ranks - 1) / ranks * tokens * (2 * (matrices_of_mlp - 1) * ffn + hidden) * value_bytes


# -- time of a layer -----------------------------------------------------------------------------------------
class LayerShape(NamedTuple):
    """One transformer layer and its input, described by the ratios that models have in common."""

    tokens: float
    hidden: float
    ffn: float
    seq: float
    heads: float


def layer(hidden: Real, ffn_ratio: Real, batch: Real, seq: Real, head_dim: Real = 128) -> LayerShape:
    """A layer of width h with F = ratio·h and heads of 128, for ``batch`` sequences of ``seq`` tokens."""
    check.positive(hidden=hidden, ffn_ratio=ffn_ratio, batch=batch, seq=seq, head_dim=head_dim)
    return LayerShape(batch * seq, hidden, ffn_ratio * hidden, seq, ops.floor(hidden / head_dim))


def layer_flops(
    tokens: Real, hidden: Real, ffn: Real, seq: Real, matrices_of_mlp: Real = 2, kv_share: Real = 1.0
) -> Real:
    """Forward and backward of one layer: 6·T·((2 + 2k)·h² + m·h·F) and causal attention's 6·T·s·h.
    ``kv_share`` k is key-value heads over query heads; leaves out norms and everything else that is not a
    product."""
    check.positive(
        tokens=tokens, hidden=hidden, ffn=ffn, seq=seq, matrices_of_mlp=matrices_of_mlp, kv_share=kv_share
    )
    weights = (2 + 2 * kv_share) * hidden * hidden + matrices_of_mlp * hidden * ffn
    return 6 * tokens * weights + 6 * tokens * seq * hidden


def layer_compute_s(
    tokens: Real,
    hidden: Real,
    ffn: Real,
    seq: Real,
    ranks: Real,
    flops_per_s: Real,
    matrices_of_mlp: Real = 2,
    kv_share: Real = 1.0,
) -> Real:
    """A layer's arithmetic on one of t ranks. ``flops_per_s`` is what a GPU achieves; leaves out that thinner
    pieces achieve less."""
    check.positive(flops_per_s=flops_per_s)
    check.whole(ranks=ranks)
    return layer_flops(tokens, hidden, ffn, seq, matrices_of_mlp, kv_share) / ranks / flops_per_s


def layer_message_bytes(tokens: Real, hidden: Real, value_bytes: Real = VALUE_BYTES) -> Real:
    """The buffer of each AllReduce: T·h values."""
    check.positive(tokens=tokens, hidden=hidden, value_bytes=value_bytes)
    return tokens * hidden * value_bytes


def layer_all_reduces_s(
    tokens: Real, hidden: Real, ranks: Real, net: Wires, value_bytes: Real = VALUE_BYTES
) -> Real:
    """Four AllReduces of T·h values, two forward and two backward (arXiv:1909.08053 section 3). Nothing hides
    them. Across nodes they go through the NICs."""
    per_node = ranks_per_node(ranks, 1.0, net.gpus_per_node)
    return 4.0 * all_reduce_s(layer_message_bytes(tokens, hidden, value_bytes), ranks, per_node, net)


def layer_s(
    tokens: Real,
    hidden: Real,
    ffn: Real,
    seq: Real,
    ranks: Real,
    flops_per_s: Real,
    net: Wires,
    matrices_of_mlp: Real = 2,
    kv_share: Real = 1.0,
) -> Real:
    """compute/t + 4 AllReduces."""
    return layer_compute_s(
        tokens, hidden, ffn, seq, ranks, flops_per_s, matrices_of_mlp, kv_share
    ) + layer_all_reduces_s(tokens, hidden, ranks, net)


def efficiency(compute_s: Real, all_reduces_s: Real) -> Real:
    """The share of the time spent on arithmetic: one rank's time over that of t ranks, times 1/t."""
    check.positive(compute_s=compute_s)
    check.non_negative(all_reduces_s=all_reduces_s)
    return compute_s / (compute_s + all_reduces_s)


def largest_useful_ranks(
    ffn: int,
    bytes_per_s: float,
    flops_per_s: float,
    value_bytes: float = VALUE_BYTES,
    matrices_of_mlp: int = 2,
) -> float:
    """The number of ranks up to which the MLP's arithmetic takes at least as long as its AllReduce: about
    F·W/C.

    Forward 2·m·T·h·F/(t·C) against 2·(t−1)/t·g·T·h/W: t − 1 ≤ m/g·F·W/C, which is F·W/C with two matrices and
    two bytes per value; tokens and hidden width cancel. With more ranks, more than half of the time is
    communication. W is the slowest wire of the ring. Leaves out latency, and attention, which has less
    arithmetic for the same AllReduce.
    """
    check.positive(
        ffn=ffn,
        bytes_per_s=bytes_per_s,
        flops_per_s=flops_per_s,
        value_bytes=value_bytes,
        matrices_of_mlp=matrices_of_mlp,
    )
    return 1.0 + matrices_of_mlp / value_bytes * ffn * bytes_per_s / flops_per_s


def worthwhile_ranks(ranks: Real, compute_s: Real, all_reduces_s: Real) -> Real:
    """The largest of these numbers of ranks with which the AllReduces take no longer than the arithmetic; at
    least 1.

    Each time is for its own number of ranks, over the wires that this many ranks really use."""
    check.positive(compute_s=compute_s)
    check.non_negative(all_reduces_s=all_reduces_s)
    return np.max(np.where(all_reduces_s <= compute_s, ranks, 1.0))


def legal_ranks(heads: Real, kv_heads: Real, ranks: Real) -> Real:
    """1.0 where this many ranks get whole heads: it divides the query heads, and divides the key-value heads
    or is a multiple of them."""
    check.whole(heads=heads, kv_heads=kv_heads, ranks=ranks)
    whole_keys = (kv_heads / ranks == ops.floor(kv_heads / ranks)) | (
        ranks / kv_heads == ops.floor(ranks / kv_heads)
    )
    return ops.where((heads / ranks == ops.floor(heads / ranks)) & whole_keys, 1.0, 0.0)
