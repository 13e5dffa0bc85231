"""Kinds of attention that do not read all that they have seen: linear attention and state spaces, which keep
a state of fixed size; attention over tokens that an indexer picks; attention over compressed tokens; and
none.

Beside what every kind answers (``catalog.layers``), these say what they do with a context: ``decoding``, for
one new token; ``reading``, for a whole sequence; ``cache_bytes`` and ``state_bytes``, what a sequence keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.catalog.layers import COLUMN, ROW, WHOLE, GroupedAttention, LatentAttention, Projection, seen

STATE_BYTES, CONVOLVED_BYTES = 4.0, 2.0  # a value of a recurrent state, and of a convolution's last inputs
# bytes a value that training moves in a short convolution and in a norm that a gate follows, forward and
# backward (where both are computed again first): read and written; the gate read, too
CONVOLVING_BYTES, NORMING_BYTES = (4.0, 10.0), (6.0, 10.0)
CHUNK = 64.0  # tokens that a kernel of linear attention multiplies at once


class Work(NamedTuple):
    """What one layer's mixing takes, without its weights: the part that tensor ranks divide, and the part
    that each repeats."""

    flops: Real
    moved_bytes: Real
    repeated_flops: Real = 0.0
    repeated_bytes: Real = 0.0


class Mixer:
    """What the kinds here have in common: no latents, no biases, no cache but for what a kind says; and what
    follows from the rest."""

    family = "mixer"
    kernels = 2.0  # of a layer, to start for a new token
    starts = 2.0  # … and for a whole sequence
    # over a whole sequence: the share of fused attention's rate that its products reach; how many times what
    # has to be moved is moved, by kernels that hand on their results through memory (0: products and memory
    # overlap); the backward pass over the forward (0: as for fused attention); whether a kernel was timed,
    # and if so whether its backward pass was, too
    reached = 0.4
    passes = 0.0
    backward = 0.0
    timed = False
    both_timed = True
    cached = 0  # values that a token leaves in the cache of one layer
    latent = False
    q_lora = 0
    kv_lora = 0
    rope_dim = 0
    nope_dim = 0
    v_dim = 0
    biases = False
    qkv_bias = False
    projections = ()

    @property
    def matrices(self) -> Real:
        """Weights of all projections."""
        return sum(one.k * one.n for one in self.projections)

    @property
    def beside_bytes(self) -> tuple[Real, Real]:
        """Bytes a token that training moves between the projections and what ``reading`` counts, forward and
        backward."""
        return 0.0, 0.0

    def cache_bytes(self, context: Real, value_bytes: Real = 2.0) -> Real:
        """What a sequence keeps that grows with its context."""
        return context * self.cached * value_bytes


# -- states --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LinearAttention(Mixer):
    """Attention whose keys and values are summed into a matrix for each head, which decays: Gated DeltaNet
    (Qwen3-Next, arXiv:2412.06464), Kimi Delta Attention (arXiv:2510.26692), lightning attention (MiniMax-01,
    arXiv:2501.08313).

    ``decay`` says how the matrix forgets: by a number a head that the token gives ("head"), by one for each
    channel of the key ("channel"), or at a rate that is fixed ("fixed"). All but the last also correct what
    the matrix holds (the delta rule). A matrix of rank ``decay_rank`` gives the channels' decay, one of
    ``gate_rank`` the gate of the output; 0 where it has full rank.
    """

    hidden: int
    heads: int  # of values; each has a state
    key_heads: int
    key_dim: int
    value_dim: int
    convolution: int = 0  # tokens that a short convolution sums; 0 without one
    decay: str = "head"
    decay_rank: int = 0
    gate_rank: int = 0
    extra_params: int = 0

    # of the Triton kernels that trainers and servers call unless told otherwise (``mechanism.mixing``)
    starts = 8.0
    reached = 0.67
    passes = 2.7
    backward = 3.3  # FlashKDA's timings of the same library on an RTX 5090: 18.0 ms after 5.4

    @property
    def timed(self) -> bool:
        """The gated delta rule and Kimi's; lightning attention was not found."""
        return self.corrects

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(hidden=self.hidden, heads=self.heads, key_heads=self.key_heads)
            check.whole(key_dim=self.key_dim, value_dim=self.value_dim)
            check.whole(0, convolution=self.convolution, decay_rank=self.decay_rank, gate_rank=self.gate_rank)
            check.one_of(("head", "channel", "fixed"), decay=self.decay)

    @property
    def kv_heads(self) -> Real:
        """Heads of keys."""
        return self.key_heads

    @property
    def head_dim(self) -> Real:
        """Width of a head of values."""
        return self.value_dim

    @property
    def qk_dim(self) -> Real:
        """Width of one head's query, and of its key, for each head of values."""
        return self.key_dim * self.key_heads / self.heads

    @property
    def corrects(self) -> bool:
        """Whether what the state holds for a key is replaced, and not added to (the delta rule)."""
        return self.decay != "fixed"

    @property
    def keys(self) -> Real:
        """Values of a token's keys, and of its queries."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> Real:
        """Values of a token's values, of its gate, and of the result."""
        return self.heads * self.value_dim

    @property
    def state_bytes(self) -> Real:
        """Bytes of a sequence's state in one layer, whatever its length: heads·key_dim·value_dim in fp32, and
        the last inputs of the convolution."""
        convolved = (2 * self.keys + self.values) * ops.maximum(0, self.convolution - 1)
        return STATE_BYTES * self.heads * self.key_dim * self.value_dim + CONVOLVED_BYTES * convolved

    @property
    def beside_bytes(self) -> tuple[Real, Real]:
        """Of the convolution, if there is one, and of the norm with its gate."""
        convolved = (2 * self.keys + self.values) * min(1, self.convolution)
        return _beside_bytes(convolved, self.values)

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Queries, keys, values and what steers the state in one; the gate; the output."""
        width = 2 * self.keys + self.values
        width = width + (self.heads if self.corrects else 0) + (self.heads if self.decay == "head" else 0)
        found = [Projection(self.hidden, width, *COLUMN, casts_input=0.0)]
        if self.decay == "channel":
            found = found + _low_rank(self.hidden, self.decay_rank, self.keys)
        found = found + _low_rank(self.hidden, self.gate_rank, self.values)
        return (*found, Projection(self.values, self.hidden, *ROW))

    @property
    def parameters(self) -> Real:
        """Matrices, the convolution, decay and bias of each head or channel, and the norm of the result."""
        decays = {"head": 2 * self.heads, "channel": self.keys + self.heads, "fixed": 0}[self.decay]
        norm = self.value_dim if self.corrects else self.values
        convolved = self.convolution * (2 * self.keys + self.values)
        return self.matrices + convolved + decays + norm + self.extra_params

    def decoding(self, context: Real, value_bytes: Real = 2.0) -> Work:
        """One new token: the state decays, is read, corrected, and read again, about 7 FLOPs a value; it is
        read from memory and written back."""
        values = self.heads * self.key_dim * self.value_dim
        return Work(7.0 * values + 0.0 * context, 2.0 * STATE_BYTES * values)

    def reading(self, seq: Real, value_bytes: Real = 2.0) -> Work:
        """A whole sequence, in chunks: 6·d_k·d_v FLOPs a token and head for the state, and C·(6·d_k + 4·d_v)
        + C² within the chunk (counted from transformers' chunked form of the gated delta rule)."""
        k, v = self.key_dim, self.value_dim
        a_token = self.heads * (6.0 * k * v + CHUNK * (6.0 * k + 4.0 * v) + CHUNK * CHUNK)
        moved = CONVOLVED_BYTES * (2.0 * self.keys + 2.0 * self.values)
        states = 2.0 * STATE_BYTES * self.heads * k * v / CHUNK
        return Work(seq * a_token, seq * (moved + states))


def _beside_bytes(convolved: Real, normed: Real) -> tuple[Real, Real]:
    forward, backward = zip(CONVOLVING_BYTES, NORMING_BYTES)
    return (forward[0] * convolved + forward[1] * normed, backward[0] * convolved + backward[1] * normed)


def _low_rank(hidden: Real, rank: int, width: Real) -> list[Projection]:
    if rank:
        return [Projection(hidden, rank, *WHOLE, casts_input=0.0), Projection(rank, width, *COLUMN)]
    return [Projection(hidden, width, *COLUMN, casts_input=0.0)]


@dataclass(frozen=True)
class StateSpace(Mixer):
    """A state space that the token steers: Mamba-2 (arXiv:2405.21060), or with a ``step_rank`` Mamba
    (arXiv:2312.00752), whose step comes from a matrix of that rank and whose every channel is a head."""

    hidden: int
    heads: int
    head_dim: int
    state: int  # values of a state for each channel
    groups: int = 1  # heads of a group share what they write and read
    convolution: int = 4
    step_rank: int = 0
    normed: bool = True  # a norm over the result
    extra_params: int = 0

    starts = 5.0
    reached = 0.67
    passes = 0.85
    # of mamba_ssm's Triton, which computes states and products again and then runs ten kernels: 7, 10 and 14
    # times the forward pass meet how fast a Mamba-2 of 1.3 billion parameters trained on A100, H200 and GB200
    # (state-spaces/mamba, issue 904). One model is no measurement of a kernel, so estimates say so.
    backward = 10.0
    both_timed = False

    @property
    def timed(self) -> bool:
        """Mamba-2; Mamba's scan was not found."""
        return not self.step_rank

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(hidden=self.hidden, heads=self.heads, head_dim=self.head_dim, state=self.state)
            check.whole(groups=self.groups, convolution=self.convolution)
            check.whole(0, step_rank=self.step_rank)

    @property
    def inner(self) -> Real:
        """Channels."""
        return self.heads * self.head_dim

    @property
    def kv_heads(self) -> Real:
        """Groups, whose heads share what they write and read."""
        return self.groups

    @property
    def key_heads(self) -> Real:
        """Groups, likewise."""
        return self.groups

    @property
    def qk_dim(self) -> Real:
        """Of what a head reads from its state, its part of the group's."""
        return self.state * self.groups / self.heads

    @property
    def value_dim(self) -> Real:
        """Channels of a head."""
        return self.head_dim

    @property
    def convolved(self) -> Real:
        """Channels that the convolution runs over: in Mamba-2 also what is written and read."""
        return self.inner if self.step_rank else self.inner + 2 * self.groups * self.state

    @property
    def beside_bytes(self) -> tuple[Real, Real]:
        """Of the convolution, and in Mamba-2 of the norm with its gate."""
        return _beside_bytes(self.convolved, 0.0 if self.step_rank else self.inner)

    @property
    def state_bytes(self) -> Real:
        """Bytes of a sequence's state in one layer, whatever its length."""
        return STATE_BYTES * self.inner * self.state + CONVOLVED_BYTES * self.convolved * (
            self.convolution - 1
        )

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Into the channels with their gate (and in Mamba-2 what is written, read and the step), and out."""
        out = Projection(self.inner, self.hidden, *ROW)
        if self.step_rank:
            into = Projection(self.hidden, 2 * self.inner, *COLUMN, casts_input=0.0)
            steers = Projection(self.inner, self.step_rank + 2 * self.state, *ROW)
            return (into, steers, Projection(self.step_rank, self.inner, *COLUMN), out)
        width = 2 * self.inner + 2 * self.groups * self.state + self.heads
        return (Projection(self.hidden, width, *COLUMN, casts_input=0.0), out)

    @property
    def parameters(self) -> Real:
        """Matrices, the convolution with its bias, and for each head or channel decay, skip and step;
        norms."""
        convolution = (self.convolution + 1) * self.convolved
        if self.step_rank:
            own = self.inner * self.state + 2 * self.inner + self.step_rank + 2 * self.state
        else:
            own = 3 * self.heads + (self.inner if self.normed else 0)
        return self.matrices + convolution + own + self.extra_params

    def decoding(self, context: Real, value_bytes: Real = 2.0) -> Work:
        """One new token: the state decays, is written to and read, 5 FLOPs a value; it is read from memory
        and written back."""
        values = self.inner * self.state
        return Work(5.0 * values + 0.0 * context, 2.0 * STATE_BYTES * values)

    def reading(self, seq: Real, value_bytes: Real = 2.0) -> Work:
        """A whole sequence, in chunks of C: 4·d·n FLOPs a token and head for the state, and 2·C·(n + d)
        within the chunk (arXiv:2405.21060 section 6). Mamba's own scan has no chunks: 6·n a channel."""
        d, n = self.head_dim, self.state
        if self.step_rank:
            return Work(
                seq * 6.0 * self.inner * n, seq * CONVOLVED_BYTES * (3.0 * self.inner + 2.0 * self.state)
            )
        a_token = self.heads * (4.0 * d * n + 2.0 * CHUNK * (n + d))
        moved = CONVOLVED_BYTES * (3.0 * self.inner + 2.0 * self.groups * n)
        states = 2.0 * STATE_BYTES * self.inner * n / CHUNK
        return Work(seq * a_token, seq * (moved + states))


@dataclass(frozen=True)
class ShortConvolution(Mixer):
    """A gated convolution over the latest few tokens (LFM2, arXiv:2511.23404): one matrix gives what is
    convolved and two gates, another brings the result back."""

    hidden: int
    convolution: int = 3
    extra_params: int = 0

    heads = 1
    kv_heads = 1
    key_heads = 1
    head_dim = 0
    qk_dim = 0
    value_dim = 0

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(hidden=self.hidden, convolution=self.convolution)

    @property
    def state_bytes(self) -> Real:
        """The last inputs of the convolution."""
        return CONVOLVED_BYTES * self.hidden * (self.convolution - 1)

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Into what is convolved and both gates; out."""
        into = Projection(self.hidden, 3 * self.hidden, *COLUMN, casts_input=0.0)
        return (into, Projection(self.hidden, self.hidden, *ROW))

    @property
    def parameters(self) -> Real:
        """Matrices and the convolution."""
        return self.matrices + self.convolution * self.hidden + self.extra_params

    def decoding(self, context: Real, value_bytes: Real = 2.0) -> Work:
        """One new token: its window is read and moved on by one, gated twice."""
        moved = 2.0 * CONVOLVED_BYTES * self.hidden * self.convolution
        return Work(2.0 * self.hidden * (self.convolution + 1) + 0.0 * context, moved)

    def reading(self, seq: Real, value_bytes: Real = 2.0) -> Work:
        """A whole sequence: three values of a channel are read, one is written."""
        a_token = 2.0 * self.hidden * (self.convolution + 1)
        return Work(seq * a_token, seq * 4.0 * CONVOLVED_BYTES * self.hidden)


# -- attention over what an indexer picks --------------------------------------------------------------------
@dataclass(frozen=True)
class Indexer:
    """Cheap heads that score all tokens before, so that attention reads the best of them (DeepSeek-V3.2's
    lightning indexer). ``query_rank`` is the width of what its queries are projected from."""

    hidden: int
    query_rank: int
    heads: int
    dim: int
    pooled: int = 1  # tokens that one key stands for
    pool_rank: int = 0  # extra weights a key's channel has for pooling, times hidden
    norm_params: int = 2  # of the key's norm, a channel
    weighs_heads: bool = True  # the token gives each head a weight

    @property
    def matrices(self) -> Real:
        """Weights of queries, key, pooling and the heads' weights."""
        return (
            self.query_rank * self.heads * self.dim
            + self.hidden * self.dim * (1 + self.pool_rank)
            + self.hidden * (self.heads if self.weighs_heads else 0)
        )

    @property
    def parameters(self) -> Real:
        """Matrices, the key's norm, and where keys are pooled a bias for each place in the pool."""
        return self.matrices + self.norm_params * self.dim + (self.pooled * self.dim if self.pool_rank else 0)

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Queries; key and weights in one. Every tensor rank computes all of it."""
        width = self.dim * (1 + self.pool_rank) + (self.heads if self.weighs_heads else 0)
        return (
            Projection(self.query_rank, self.heads * self.dim, *WHOLE, casts_input=0.0),
            Projection(self.hidden, width, *WHOLE, casts_input=0.0),
        )

    def flops(self, keys: Real) -> Real:
        """FLOPs to score this many keys for one query."""
        return 2.0 * self.heads * self.dim * keys

    @property
    def cached(self) -> Real:
        """Values that a token adds to the indexer's own cache."""
        return self.dim / self.pooled


@dataclass(frozen=True)
class IndexedAttention(Mixer):
    """Attention ``over`` the ``top`` tokens that an indexer picks of all before: latent (DeepSeek-V3.2,
    GLM-5) or grouped (MiniMax-M3)."""

    hidden: int
    over: LatentAttention | GroupedAttention  # as it would read all of them
    top: int
    indexer: Indexer | None = None  # None: the layer reads what an earlier layer's indexer picked

    kernels = starts = 3.0  # scores, the best of them, attention
    reached = (
        1.0  # DeepSeek's sparse kernel reaches the rate of its dense one (FlashMLA, 640 TFLOP/s on H800)
    )
    state_bytes = 0.0

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(top=self.top)

    @property
    def latent(self) -> bool:
        """Whether keys and values are projected up from latents."""
        return self.over.latent

    @property
    def extra_params(self) -> Real:
        """What an entry's note says besides."""
        return self.over.extra_params

    @property
    def heads(self) -> Real:
        """Heads of queries."""
        return self.over.heads

    @property
    def kv_heads(self) -> Real:
        """Heads of keys and values."""
        return self.over.kv_heads

    @property
    def key_heads(self) -> Real:
        """Heads of keys and values as the kernel reads them in training."""
        return self.over.key_heads

    @property
    def head_dim(self) -> Real:
        """Width of a head."""
        return self.over.head_dim

    @property
    def qk_dim(self) -> Real:
        """Width of one head's query, and of its key."""
        return self.over.qk_dim

    @property
    def value_dim(self) -> Real:
        """Width of one head's value."""
        return self.over.value_dim

    @property
    def cached(self) -> Real:
        """Values of a token in the cache of one layer, the indexer's key among them."""
        return self.over.cached + (self.indexer.cached if self.indexer else 0)

    @property
    def matrices(self) -> Real:
        """Weights of the attention, and of its indexer."""
        return self.over.matrices + (self.indexer.matrices if self.indexer else 0)

    @property
    def parameters(self) -> Real:
        """Those of the attention, and of its indexer."""
        return self.over.parameters + (self.indexer.parameters if self.indexer else 0)

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Those of the attention, and of its indexer."""
        return (*self.over.projections, *(self.indexer.projections if self.indexer else ()))

    def decoding(self, context: Real, value_bytes: Real = 2.0) -> Work:
        """One new token: of the picked tokens each head reads the latent (with the up-projections absorbed),
        or its group's key and value; the indexer reads a key for every token."""
        read, over = ops.minimum(context * 1.0, self.top * 1.0), self.over
        keys = context / self.indexer.pooled if self.indexer else 0.0 * context
        scored = self.indexer.flops(keys) if self.indexer else 0.0
        scored_bytes = self.indexer.dim * keys * value_bytes if self.indexer else 0.0
        read_bytes = read * over.cached * value_bytes
        if over.latent:  # every rank reads the latents
            pairs = 2.0 * over.heads * (2 * over.kv_lora + over.rope_dim)
            return Work(pairs * read, 0.0, scored, read_bytes + scored_bytes)
        return Work(4.0 * over.heads * over.head_dim * read, read_bytes, scored, scored_bytes)

    def reading(self, seq: Real, value_bytes: Real = 2.0) -> Work:
        """A whole sequence: each token reads what was picked of those before it, and is scored against all of
        them. Picked latents are read as they are, which costs more for each; so a short sequence reads all
        tokens before it, with keys and values of every head, and masks the rest (DeepSeek-V3.2's report)."""
        over = self.over
        pairs = 2.0 * over.heads * (over.qk_dim + over.value_dim)
        moved = 2.0 * (over.heads + over.key_heads) * (over.qk_dim + over.value_dim)
        scored = self.indexer.flops(seq / 2.0 / self.indexer.pooled) if self.indexer else 0.0
        read = pairs * seen(self.top, seq)
        if over.latent:
            picked = 2.0 * over.heads * (2 * over.kv_lora + over.rope_dim) * seen(self.top, seq)
            read = ops.minimum(picked, pairs * seq / 2.0)
        return Work(seq * read, seq * moved, seq * scored, 0.0)


# -- attention over compressed tokens ------------------------------------------------------------------------
@dataclass(frozen=True)
class CompressedAttention(Mixer):
    """DeepSeek-V4's attention: one head whose key is also the value, over the latest ``window`` tokens and
    over entries that stand for ``ratio`` tokens each, all of them or the ``top`` best that an indexer picks.
    Queries come from a latent; the output is projected in groups of heads, by matrices of low rank."""

    hidden: int
    heads: int
    head_dim: int
    query_rank: int  # the width of the latent that queries come from
    groups: int
    output_rank: int  # of each group
    window: int
    ratio: int = 0  # tokens of an entry; 0: the window alone
    index_heads: int = 0
    index_dim: int = 0
    top: int = 0  # entries that the indexer picks; 0 without one
    extra_params: int = 0

    kernels = starts = 4.0  # entries, scores, the best of them, attention
    reached = 1.0  # assumed

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(
                hidden=self.hidden, heads=self.heads, head_dim=self.head_dim, query_rank=self.query_rank
            )
            check.whole(groups=self.groups, output_rank=self.output_rank, window=self.window)
            check.whole(0, ratio=self.ratio, index_heads=self.index_heads, index_dim=self.index_dim)

    @property
    def kv_heads(self) -> Real:
        """One."""
        return 1

    @property
    def key_heads(self) -> Real:
        """One."""
        return 1

    @property
    def qk_dim(self) -> Real:
        """Width of one head's query, and of the key."""
        return self.head_dim

    @property
    def value_dim(self) -> Real:
        """Width of the value, which is the key."""
        return self.head_dim

    @property
    def overlaps(self) -> int:
        """2 where an entry is made of this stretch of tokens and the one before, as with an indexer, else
        1."""
        return 2 if self.top else 1

    @property
    def cached(self) -> Real:
        """Values that a token of a long context adds to the cache of one layer: its share of an entry."""
        return (self.head_dim + self.index_dim) / self.ratio if self.ratio else 0

    @property
    def state_bytes(self) -> Real:
        """Keys of the window in 16 bits, which a long sequence always keeps."""
        return CONVOLVED_BYTES * self.window * self.head_dim

    @property
    def _compressors(self) -> Real:
        """Widths of what makes entries, and of what makes their index keys, with their gates."""
        return 2 * self.overlaps * (self.head_dim + self.index_dim) if self.ratio else 0

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Latent and key; queries; entries with the indexer's; the output in two steps."""
        found = (
            Projection(self.hidden, self.query_rank + self.head_dim, *WHOLE, casts_input=0.0),
            Projection(self.query_rank, self.heads * self.head_dim, *COLUMN, casts_input=0.0),
            Projection(self.heads * self.head_dim / self.groups, self.groups * self.output_rank, *COLUMN),
            Projection(self.groups * self.output_rank, self.hidden, *ROW),
        )
        if not self.ratio:
            return found
        entries = Projection(self.hidden, self._compressors + self.index_heads, *WHOLE, casts_input=0.0)
        if not self.top:
            return (*found, entries)
        return (*found, entries, Projection(self.query_rank, self.index_heads * self.index_dim, *WHOLE))

    @property
    def parameters(self) -> Real:
        """Matrices, the norms of latent and key, a sink for each head, and for entries their norm and a bias
        for each place."""
        entries = 0
        if self.ratio:
            width = self.head_dim + self.index_dim
            entries = self.ratio * self.overlaps * width + width
        return self.matrices + self.query_rank + self.head_dim + self.heads + entries + self.extra_params

    def _entries(self, context: Real) -> Real:
        return context / self.ratio if self.ratio else 0.0 * context

    def decoding(self, context: Real, value_bytes: Real = 2.0) -> Work:
        """One new token: the window and the entries, all or those picked; the indexer reads a key for
        each."""
        entries = self._entries(context)
        read = ops.minimum(entries, self.top * 1.0) if self.top else entries
        tokens = ops.minimum(context * 1.0, self.window * 1.0) + read
        return Work(
            4.0 * self.heads * self.head_dim * tokens,
            0.0,
            2.0 * self.index_heads * self.index_dim * entries,
            (self.head_dim * tokens + self.index_dim * entries) * value_bytes,
        )

    def reading(self, seq: Real, value_bytes: Real = 2.0) -> Work:
        """A whole sequence: each token sees half of the entries on average, or the best of them."""
        entries = self._entries(seq)
        read = seen(self.top, entries) if self.top else entries / 2.0
        pairs = 4.0 * self.heads * self.head_dim * (seen(self.window, seq) + read)
        scored = 2.0 * self.index_heads * self.index_dim * entries / 2.0
        return Work(seq * pairs, seq * 4.0 * self.heads * self.head_dim, seq * scored, 0.0)


@dataclass(frozen=True)
class NoAttention(Mixer):
    """A layer that is a feed-forward block alone (Nemotron 3)."""

    hidden: int

    kernels = 0.0
    heads = 1
    kv_heads = 1
    head_dim = 0
    key_heads = 0
    qk_dim = 0
    value_dim = 0
    state_bytes = 0.0
    parameters = 0
    extra_params = 0

    def decoding(self, context: Real, value_bytes: Real = 2.0) -> Work:
        """Nothing."""
        return Work(0.0 * context, 0.0)

    def reading(self, seq: Real, value_bytes: Real = 2.0) -> Work:
        """Nothing."""
        return Work(0.0 * seq, 0.0)
