"""Adapters: two thin matrices trained beside each frozen one (LoRA, DoRA), over a base that may lie in 4 bits
(QLoRA).

A matrix W of k×n becomes W + A·B, with A of k×r and B of r×n. Only A and B have gradients and optimizer
state. W stays as it is, so the backward pass skips the product for its gradient, a third of the arithmetic,
and its bytes are those of the format in which it is stored.

LoRA, arXiv:2106.09685; QLoRA, arXiv:2305.14314; DoRA, arXiv:2402.09353. Leaves out biases that are trained,
an adapted embedding or output layer, routers, and kernels that fuse an adapter's products with the base's.
Layers of ``catalog.mixers`` (linear attention, state spaces) are refused: their matrices have no names that
programs agree on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration.products import trained_product_s
from engine.catalog import models, stored
from engine.catalog.layers import COLUMN, ROW, WHOLE
from engine.mechanism.matmul import Chip, stream_s

if TYPE_CHECKING:
    from engine.mechanism.memory import Kept
    from engine.mechanism.shape import Shape

BASE_BYTES = {base: stored.BYTES[base] for base in ("bf16", "fp8", "nf4", "nf4-double")}  # of a frozen weight
REST_BYTES = {"bf16": 2.0, "fp32": 4.0}
KINDS = ("lora", "dora")
ALL_LINEAR = "all-linear"
# the matrices of a layer by the names that transformers gives them; the third line are those of latent
# attention
NAMES = (
    *("q_proj", "k_proj", "v_proj", "o_proj"),
    *("gate_proj", "up_proj", "down_proj"),
    *("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "g_proj"),
)
# several of them as one matrix with one adapter, as in Phi-3 (Megatron's linear_qkv and linear_fc1)
JOINED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
# the matrices that read the output of a norm, in front of attention and of a feed-forward block
FIRST = ("q_proj", "k_proj", "v_proj", "q_a_proj", "kv_a_proj_with_mqa", "g_proj", "qkv_proj")
RISING = ("gate_proj", "up_proj", "gate_up_proj")
WIDE_BYTES = 2.0  # of a value that is multiplied in 16 bits
DROPPED_BYTES = 3.0  # of an input after dropout: its value and its mask
SUM_BYTES = 8.0  # a weight gradient is added to an fp32 sum, which is read and written
# Bytes for each value of an adapted product that operators of their own move. Forward, A·B's result is scaled
# (4) and added (6); backward, its gradient is scaled (4), and the gradient of the input added (6, of k
# values). DoRA scales both results (8) and adds them (6); backward it scales both gradients (8) and sums both
# products for the gradient of the magnitudes (8).
ADDED_BYTES, SCALED_BYTES, JOINED_BYTES = 10.0, 4.0, 6.0
DORA_BYTES = (14.0, 16.0)
# … and for each weight, once in a forward pass, to find the length of W + A·B's columns: A·B is written (2),
# scaled (4) and added to W (6), and the sum is read (2)
NORM_BYTES = 14.0
KERNELS, DORA_KERNELS = 4.0, 10.0  # of an adapted product's forward pass: A, B, scaled, added; …


@dataclass(frozen=True)
class Adapter:
    """An adapter and the frozen model under it.

    ``rank`` is r, the width of its thin matrices. ``targets`` are the matrices that get one, by the names of
    transformers (q_proj … down_proj; qkv_proj and gate_up_proj where they are one), or "all-linear": all of
    a layer. ``kind`` is "lora", or "dora", which
    also trains the length of each column. ``base`` is the format of the frozen matrices: "bf16", "fp8",
    "nf4", or "nf4-double" with quantised scales. ``rest`` is that of norms, embedding and output layer:
    "bf16", or "fp32", to which PEFT's ``prepare_model_for_kbit_training`` casts them. ``dropout`` is the
    share of A's inputs that is dropped in training, for which each matrix keeps inputs of its own. Alpha,
    which scales A·B, changes neither bytes nor time.

    >>> adapter = engine.Adapter(rank=16, base="nf4-double")
    >>> job = engine.Job(8, 2048, adapter=adapter)
    >>> layout = engine.Layout(gpus=1, zero=0, recompute="full")
    >>> tuned = engine.estimate("llama3-70b", "h100-sxm", job, layout)
    >>> tuned.fits, tuned.trained_params
    """

    rank: int = 16
    targets: tuple[str, ...] | str = (ALL_LINEAR,)
    kind: str = "lora"
    base: str = "bf16"
    rest: str = "bf16"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.targets, str):
            object.__setattr__(self, "targets", (self.targets,))
        check.whole(rank=self.rank)
        check.between(0, 1, dropout=self.dropout)
        check.one_of(KINDS, kind=self.kind)
        check.one_of(tuple(BASE_BYTES), base=self.base)
        check.one_of(tuple(REST_BYTES), rest=self.rest)
        if not self.targets:
            raise ValueError(f"targets must be {ALL_LINEAR}, or some of {', '.join(NAMES)}; got none")
        for name in self.targets:
            check.one_of((ALL_LINEAR, *NAMES, *JOINED), targets=name)

    @property
    def base_bytes(self) -> float:
        """Bytes of a weight in a frozen matrix, with its share of the scales."""
        return BASE_BYTES[self.base]

    @property
    def rest_bytes(self) -> float:
        """Bytes of a frozen parameter outside the layers' matrices."""
        return REST_BYTES[self.rest]

    def has(self, name: str) -> bool:
        """Whether a matrix of this name gets an adapter."""
        return ALL_LINEAR in self.targets or name in self.targets

    @property
    def gathered_blocks(self) -> float:
        """How many of a layer's two blocks have an adapter on what they start with."""
        found = [any(self.has(name) for name in names) for names in (FIRST, RISING)]
        return 1.0 * sum(found)

    def size(self, k: Real, n: Real) -> Real:
        """Parameters that are trained for one k×n: r·(k + n), and with DoRA the length of n columns."""
        return self.rank * (k + n) + (n if self.kind == "dora" else 0)

    def kept(self, found: Kept, attention: Any, mlp: Any, hidden: Real, weighs_early: bool) -> Kept:
        """What a token leaves behind in a layer whose weights are frozen, of what it does where they are
        trained (``memory.layer_values``).

        A frozen product needs only its weights to pass a gradient on. Its input is kept for the gradient of
        A, and not at all where it has no adapter. What nonlinear operations need stays: a norm and an
        activation function read their inputs again, attention its queries, keys, values and output. Added are
        x·A of each adapter, r values, and with DoRA the results of W and of A·B, n values each, which the
        gradient of the magnitudes reads. All in 16 bits, in which adapters are multiplied. With dropout no
        adapter shares its input with another: each keeps its own, and a mask of a byte for each value.
        """
        own = self.dropout > 0
        reads = any(self.has(name) for name in FIRST) and not own
        rises, falls = any(self.has(name) for name in RISING) and not own, self.has("down_proj") and not own
        inner = WIDE_BYTES * (1 + mlp.gated + falls)  # gate, up, and the input of down
        routed = models.is_routed(mlp)
        enters = rises if not routed else rises & (mlp.shared_experts > 0)
        inside, activated, shared = inner * _width(mlp), 0, 0
        if routed:
            wide = mlp.top_k * mlp.width
            copies = WIDE_BYTES * rises + (0 if weighs_early else WIDE_BYTES)
            inside = WIDE_BYTES * (1 + mlp.gated) * wide + mlp.top_k * copies * hidden
            activated = WIDE_BYTES * falls * wide
            shared = mlp.shared_experts * inner * mlp.shared_width
        whole, split = 0, 0
        for each in matrices(attention, mlp, self):
            if self.has(each.name):
                times = mlp.top_k if each.routed else 1
                whole = whole + WIDE_BYTES * times * self.rank
                if own:
                    inputs = DROPPED_BYTES * times * each.k
                    whole, split = whole + inputs * (1 - each.splits_k), split + inputs * each.splits_k
                if self.kind == "dora":
                    results = 2 * WIDE_BYTES * times * each.n
                    whole, split = whole + results * (1 - each.splits_n), split + results * each.splits_n
        return found._replace(
            inputs=found.inputs + whole,
            norms=WIDE_BYTES * hidden * (1 * reads + 1 * enters),
            projected=found.projected + split,
            attended=WIDE_BYTES * attention.heads * attention.value_dim,
            mlp=inside,
            activated=activated,
            shared=shared,
        )


def _width(mlp):
    """Of a dense MLP; a layer of experts has another."""
    return 0 if models.is_routed(mlp) else mlp.width


# -- matrices ------------------------------------------------------------------------------------------------
class Matrix(NamedTuple):
    """A matrix k×n of a layer by its name in transformers, and which of its sides tensor parallelism splits
    (1.0); ``copies`` of it, where each routed expert has one."""

    name: str
    k: Real
    n: Real
    splits_k: float
    splits_n: float
    copies: Real = 1
    routed: bool = False


def attention_matrices(kind: Any) -> list[Matrix]:
    """The matrices of an attention, which ``projections`` has joined. A gate of grouped attention is part of
    q_proj, as in Qwen3-Next. ValueError for a kind of ``catalog.mixers``."""
    if models.is_mixer(kind):
        raise ValueError("adapter must be None for a model with linear attention or state spaces")
    h, values = kind.hidden, kind.heads * kind.value_dim
    if kind.latent:
        query = kind.heads * kind.qk_dim
        found = [
            Matrix("q_a_proj", h, kind.q_lora, *WHOLE),
            Matrix("q_b_proj", kind.q_lora, query, *COLUMN),
            Matrix("kv_a_proj_with_mqa", h, kind.kv_lora + kind.rope_dim, *WHOLE),
            Matrix("kv_b_proj", kind.kv_lora, kind.heads * (kind.nope_dim + kind.v_dim), *COLUMN),
        ]
        if not kind.q_lora:
            found = [Matrix("q_proj", h, query, *COLUMN), *found[2:]]
        if kind.gate_width:
            found = [*found, Matrix("g_proj", h, kind.gate_width, *COLUMN)]
    else:
        kv = kind.kv_heads * kind.head_dim
        found = [Matrix("q_proj", h, kind.heads * kind.head_dim + kind.gate_width, *COLUMN)]
        if kind.tensors > 0:
            found = [*found, Matrix("k_proj", h, kv, *COLUMN)]
        if kind.tensors > 1:
            found = [*found, Matrix("v_proj", h, kv, *COLUMN)]
    return [*found, Matrix("o_proj", values, h, *ROW)]


def mlp_matrices(mlp: Any) -> list[Matrix]:
    """The matrices of a feed-forward block: of a dense one, or of each routed expert and of the shared ones,
    which are one MLP. Leaves out the router, and matrices into a latent and back."""
    if not models.is_routed(mlp):
        return _dense(mlp, 1, False)
    return [*_dense(mlp.expert, mlp.experts, True), *_dense(mlp.shared, 1, False)]


def _dense(mlp, copies, routed) -> list[Matrix]:
    if ops.is_zero(ops.as_float(mlp.width)):
        return []
    h, wide = mlp.hidden, mlp.width
    gate = [Matrix("gate_proj", h, wide, *COLUMN, copies, routed)] if mlp.gated else []
    up = Matrix("up_proj", h, wide, *COLUMN, copies, routed)
    return [*gate, up, Matrix("down_proj", wide, h, *ROW, copies, routed)]


def matrices(kind: Any, mlp: Any, adapter: Adapter) -> list[Matrix]:
    """All matrices of a layer, those joined to one whose adapter is one."""
    found = [*attention_matrices(kind), *mlp_matrices(mlp)]
    for name, parts in JOINED.items():
        if name in adapter.targets:
            found = _joined(found, name, parts)
    return found


def _joined(found: list[Matrix], name: str, parts: tuple[str, ...]) -> list[Matrix]:
    """The matrices with these parts, which read the same input, as one; routed ones apart from others."""
    joined = []
    for each in found:
        last = joined[-1] if joined else None
        if each.name not in parts:
            joined.append(each)
        elif last is not None and last.name == name and last.routed == each.routed:
            joined[-1] = last._replace(n=last.n + each.n)
        else:
            joined.append(each._replace(name=name))
    return joined


def require(model: Any, adapter: Adapter) -> None:
    """ValueError for an adapter that this model cannot have."""
    for _, (kind, mlp, _) in models.blocks(model):
        for each in matrices(kind, mlp, adapter):
            if adapter.has(each.name):
                return
    raise ValueError(f"targets must name matrices of {model.name}, got {', '.join(adapter.targets)}")


# -- what is trained and what is frozen ----------------------------------------------------------------------
def trained_parameters(model: Any, adapter: Adapter) -> Real:
    """Parameters that an adapter adds to a model, all of which are trained: r·(k + n) for each target, in
    every layer and every expert."""
    found = 0
    for count, (kind, mlp, _) in models.blocks(model):
        for each in matrices(kind, mlp, adapter):
            if adapter.has(each.name):
                found = found + count * each.copies * adapter.size(each.k, each.n)
    return found


def frozen_bytes(params: Real, model: Any, adapter: Adapter) -> Real:
    """Bytes of a model of so many parameters, all of them frozen: its layers' matrices in the base's format,
    everything else in that of the rest."""
    check.positive(params=params)
    matrices = models.routed_parameters(model)
    for count, (kind, mlp, _) in models.blocks(model):
        beside = mlp.shared if models.is_routed(mlp) else mlp
        matrices = matrices + count * (kind.matrices + beside.matrices)
    return matrices * adapter.base_bytes + (params - matrices) * adapter.rest_bytes


def layer_parameters(
    shape: Shape, adapter: Adapter, tp: Real, ep: Real, expert_tp: Real
) -> tuple[Real, Real]:
    """Trained parameters of an average layer on one GPU: outside the routed experts, and in them.

    The side of A or B that the base's matrix splits is split as well, the side of r values is not: of a
    column-parallel k×n each rank has all of A and 1/tp of B.
    """
    dense, routed = 0.0, 0.0
    for share, (_, (kind, mlp, _)) in zip(shape.block_shares, models.blocks(shape)):
        for each in matrices(kind, mlp, adapter):
            if not adapter.has(each.name):
                continue
            size = adapter.size(*split(each, expert_tp if each.routed else tp))
            if each.routed:
                routed = routed + share * each.copies / ep * size
            else:
                dense = dense + share * size
    return dense, routed


def split(each: Matrix, ranks: Real) -> tuple[Real, Real]:
    """A matrix's k and n on one tensor rank."""
    others = ranks - 1.0
    return each.k / (1.0 + others * each.splits_k), each.n / (1.0 + others * each.splits_n)


def frozen_layer_bytes(shape: Shape, adapter: Adapter) -> tuple[Real, Real]:
    """Bytes of an average layer's frozen parameters over all ranks: outside the routed experts, and in them.
    Matrices are in the base's format, norms, biases and routers in the one of the rest; biases of routed
    experts count as their matrices."""
    weights = 0.0
    for share, (_, (kind, mlp, _)) in zip(shape.block_shares, models.blocks(shape)):
        beside = mlp.shared if models.is_routed(mlp) else mlp
        weights = weights + share * (kind.matrices + beside.matrices)
    rest = shape.dense_params_per_layer - weights
    dense = weights * adapter.base_bytes + rest * adapter.rest_bytes
    return dense, shape.routed_params_per_layer * adapter.base_bytes


def unpacked_bytes(shape: Shape, adapter: Adapter, tp: Real, at_16_bits: bool = True) -> Real:
    """Bytes of the largest matrix in 16 bits: a product unpacks its weights for itself and drops the copy
    (bitsandbytes' ``MatMul4Bit``, torchao's ``LinearNF4``). Nothing for a base in 16 bits."""
    if adapter.base_bytes >= WIDE_BYTES or not at_16_bits:
        return 0.0
    most = 0.0
    for _, (kind, mlp, _) in models.blocks(shape):
        for each in matrices(kind, mlp, adapter):
            k, n = split(each, 1.0 if each.routed else tp)
            most = ops.maximum(most, WIDE_BYTES * k * n)
    return most


# -- arithmetic ----------------------------------------------------------------------------------------------
def active_parameters(model: Any, adapter: Adapter) -> Real:
    """Trained parameters that one token meets: of the routed experts only those that it is sent to."""
    found = 0
    for count, (kind, mlp, _) in models.blocks(model):
        for each in matrices(kind, mlp, adapter):
            if adapter.has(each.name):
                times = mlp.used if each.routed else 1
                found = found + count * times * adapter.size(each.k, each.n)
    return found


def saved_flops_per_token(model: Any, adapter: Adapter, matmul_params: Real) -> Real:
    """FLOPs that a token needs less than in training all weights: 2 for each frozen weight, which has no
    gradient (4·N remain of 6·N), less 6 for each of the adapter's. Attention over the sequence needs the same
    as ever."""
    return 2.0 * matmul_params - 6.0 * active_parameters(model, adapter)


class AdapterTime(NamedTuple):
    """Seconds that adapters and a packed base add to an average layer for one micro-batch."""

    forward_s: Real
    backward_s: Real  # all of it
    weight_gradient_s: Real  # the part of backward_s that nothing waits for


def layer_s(
    shape: Shape,
    adapter: Adapter,
    tokens: Real,
    tp: Real,
    ep: Real,
    expert_tp: Real,
    imbalance: Real,
    at: Chip,
) -> AdapterTime:
    """The products with A and B, each in 16 bits and with its three forms, what their operators move (see
    ADDED_BYTES), DoRA's lengths of columns, and unpacking the base, forward and backward.

    These products are so thin that their time is that of reading the input and writing the result. A base of
    8 bits is unpacked only where products take 16.
    """
    forward, backward, weights, moved_f, moved_b, read = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    dora = adapter.kind == "dora"
    packed = adapter.base_bytes < at.operand_bytes
    for share, (_, (kind, mlp, _)) in zip(shape.block_shares, models.blocks(shape)):
        for each in matrices(kind, mlp, adapter):
            rows, times, ranks = tokens, share, tp
            if each.routed:
                held = ops.maximum(1.0, each.copies / ep)
                rows = imbalance * tokens * expert_tp / tp * mlp.used / held
                times, ranks = share * held, expert_tp
            k, n = split(each, ranks)
            if packed:
                read = read + times * k * n * (adapter.base_bytes + WIDE_BYTES)
            if not adapter.has(each.name):
                continue
            down = trained_product_s(rows, k, 1.0 * adapter.rank, SUM_BYTES, at.wide)
            up = trained_product_s(rows, 1.0 * adapter.rank, n, SUM_BYTES, at.wide)
            forward = forward + times * (down[0] + up[0])
            backward = backward + times * (down[1] + up[1] + down[2] + up[2])
            weights = weights + times * (down[2] + up[2])
            added_f, added_b = DORA_BYTES if dora else (ADDED_BYTES, SCALED_BYTES)
            moved_f = moved_f + times * rows * added_f * n
            moved_b = moved_b + times * rows * (added_b * n + JOINED_BYTES * k)
            if dora:
                moved_f = moved_f + times * NORM_BYTES * k * n
    return AdapterTime(
        forward + stream_s(moved_f + read, at), backward + stream_s(moved_b + read, at), weights
    )


def kernels(shape: Shape, adapter: Adapter) -> Real:
    """Kernels that adapters and a packed base add to an average layer's forward pass, outside the routed
    experts."""
    each_one = DORA_KERNELS if adapter.kind == "dora" else KERNELS
    unpacks = 1.0 if adapter.base_bytes < WIDE_BYTES else 0.0
    found = 0.0
    for share, (_, (kind, mlp, _)) in zip(shape.block_shares, models.blocks(shape)):
        for each in matrices(kind, mlp, adapter):
            if not each.routed:
                found = found + share * (unpacks + (each_one if adapter.has(each.name) else 0.0))
    return found


# -- in a server ---------------------------------------------------------------------------------------------
def server_bytes(model: Any, adapters: Real, rank: Real, tp: Real = 1, bytes_per_value: Real = 2.0) -> Real:
    """Bytes on each GPU of a server that keeps ``adapters`` beside its base, unmerged: slots of the greatest
    rank for every matrix of every layer, whatever an adapter's own targets and rank are.

    adapters · bytes · Σ r·(k + n), with the base's split of one side (vLLM's ``--max-loras`` and
    ``--max-lora-rank``: ``create_lora_weights`` in vllm/lora/layers; A of a column-parallel matrix and B of a
    row-parallel one are whole on each rank). An adapter that is merged into the base, W + A·B, takes nothing
    and no time, but then there is only that one. Leaves out adapters of embedding and output layer, and those
    that wait in the host's memory (``--max-cpu-loras``).
    """
    check.whole(0, adapters=adapters)
    check.whole(rank=rank, tp=tp)
    check.positive(bytes_per_value=bytes_per_value)
    found = 0
    for count, (kind, mlp, _) in models.blocks(model):
        for each in (*attention_matrices(kind), *mlp_matrices(mlp)):
            k, n = split(each, tp)
            found = found + count * each.copies * rank * (k + n)
    return adapters * bytes_per_value * found
