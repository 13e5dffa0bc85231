"""Optimizers that treat a weight matrix as a whole: what they keep of it, what an update costs, and how a
matrix reaches the GPU that updates it.

Adam, Lion and SGD update each number by itself, so ZeRO may cut a matrix anywhere. Muon makes the momentum of
a matrix orthogonal, Shampoo and SOAP multiply the gradient by a matrix on either side: for these somebody has
to hold the whole one. They manage the two-dimensional weights between the embedding and the output layer.
Embedding, output layer, norms, biases and convolutions stay with AdamW, as in Megatron-Core's
``is_managed_by_layer_wise_optimizer`` (megatron/core/optimizer/layer_wise_optimizer.py at d98e8a64) and in
torchtitan's Kimi recipes (torchtitan/models/kimi_k2_7/config_registry.py at b5bcd76c); read on 2026-11-28.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration.products import gemm_s
from engine.catalog import models
from engine.catalog.layers import GroupedAttention, LatentAttention
from engine.mechanism import sharding
from engine.mechanism.interconnect import all_gather_s, all_reduce_s, all_to_all_s, ranks_per_node

if TYPE_CHECKING:
    from engine.calibration.products import Gemm
    from engine.catalog.recipes import Recipe
    from engine.mechanism.interconnect import Wires
    from engine.mechanism.matmul import Chip
    from engine.mechanism.shape import Shape

STEPS = 5  # Newton-Schulz iterations of an update, where nobody says otherwise (Megatron-Core, torchtitan)
# Bytes of a value of the momentum as it crosses between GPUs: ``newton_schulz`` of Emerging-Optimizers takes
# fp32 alone, and torchtitan's DistMuon moves it in the format of the weights, which FSDP keeps in fp32.
MOMENTUM_BYTES = 4.0
GRAM_BYTES = 2.0  # … of the small products that "distributed" sums: iterations run in bf16 by default


# -- the arithmetic of Muon ----------------------------------------------------------------------------------
def newton_schulz_flops(rows: Real, columns: Real, steps: Real = STEPS) -> Real:
    """FLOPs to make one matrix orthogonal: s·(4·m²·n + 2·m³), where m is its shorter side.

    Each iteration multiplies X·Xᵀ (2·m²·n), squares the result (2·m³) and multiplies X by it (2·m²·n).
    Leaves out the norm and the sums, and kernels that compute only half of the symmetric products
    (Megatron's ``--muon-use-syrk``). Keller Jordan, "Muon", https://kellerjordan.github.io/posts/muon/.
    """
    if not check.is_trusted():
        check.positive(rows=rows, columns=columns, steps=steps)
    m, n = ops.minimum(rows * 1.0, columns * 1.0), ops.maximum(rows * 1.0, columns * 1.0)
    return steps * (4.0 * m * m * n + 2.0 * m * m * m)


def newton_schulz_share(
    rows: Real, columns: Real, tokens: Real, steps: Real = STEPS, met_share: Real = 1.0
) -> Real:
    """FLOPs of one matrix's Newton-Schulz over those of its training in a step: s·(4·m²·n + 2·m³) /
    (6·m·n·B), at most s·m/B, which a square matrix reaches.

    ``tokens`` is B, those of a step. ``met_share`` is the part of them that meets the matrix: k/E for an
    expert, which makes its share E/k times as large. Leaves out that Newton-Schulz is computed once in a
    replica, or once in all, but in bf16 where training may be in 8 bits.
    """
    if not check.is_trusted():
        check.positive(tokens=tokens, met_share=met_share)
    trained = 6.0 * rows * columns * tokens * met_share
    return newton_schulz_flops(rows, columns, steps) / trained


def newton_schulz_s(rows: Real, columns: Real, rates: Gemm, steps: Real = STEPS) -> Real:
    """Seconds to make one matrix orthogonal on one GPU: the three products of each iteration at the rates of
    products of their size. Leaves out the kernels between them, and kernels for symmetric results."""
    if not check.is_trusted():
        check.positive(rows=rows, columns=columns, steps=steps)
    m, n = ops.minimum(rows * 1.0, columns * 1.0), ops.maximum(rows * 1.0, columns * 1.0)
    return _iterations_s(m, n, rates, steps)


def _iterations_s(kept: Real, cut: Real, rates: Gemm, steps: Real) -> Real:
    """Iterations over ``kept`` × ``cut`` values whose small products have ``kept``² values."""
    gram_s, square_s = gemm_s(kept, kept, cut, rates), gemm_s(kept, kept, kept, rates)
    return steps * (gram_s + square_s + gemm_s(kept, cut, kept, rates))


# -- Shampoo and SOAP ----------------------------------------------------------------------------------------
def two_sided_bytes(rows: Real, columns: Real, value_bytes: Real, side_bytes: Real) -> Real:
    """Bytes that an optimizer with a square matrix on either side of a weight matrix keeps for it:
    ``value_bytes``·m·n + ``side_bytes``·(m² + n²).

    SOAP in fp32 keeps both of Adam's moments (8 a value) and on each side the running mean of the gradient's
    products and its eigenvectors (8): 8·m·n + 8·m² + 8·n², in a square matrix three times Adam's (Emerging-
    Optimizers, legacy_soap/soap.py at fd772926; arXiv:2409.11321). Shampoo with one moment keeps 4·m·n and
    on each side the mean and its root (arXiv:1802.09568). Leaves out the eigenvalues, m + n, and
    implementations that leave a side alone beyond some length or cut it into blocks.
    """
    if not check.is_trusted():
        check.positive(rows=rows, columns=columns)
        check.non_negative(value_bytes=value_bytes, side_bytes=side_bytes)
    return value_bytes * rows * columns + side_bytes * (rows * rows + columns * columns)


# -- which matrices a model has ------------------------------------------------------------------------------
class WeightMatrix(NamedTuple):
    """A two-dimensional weight: its sides, how many such there are in a mean layer, and which side tensor
    parallelism cuts (1.0) or leaves whole (0.0)."""

    inputs: Real
    outputs: Real
    count: Real
    cuts_inputs: float
    cuts_outputs: float
    routed: bool  # of a routed expert

    @property
    def params(self) -> Real:
        """Its values."""
        return self.inputs * self.outputs


class Matrices(NamedTuple):
    """What an optimizer of whole matrices manages in a mean layer."""

    all: tuple[WeightMatrix, ...]
    dense_params: Real  # outside of routed experts …
    routed_params: Real  # … and of all routed experts of the layer
    largest: Real  # parameters of the largest one outside of routed experts …
    largest_routed: Real
    sides: Real  # the sum of m² + n² of all of them


@lru_cache(64)
def matrices(model: Shape | models.Model, joined: bool = False) -> Matrices:
    """The matrices of a model's mean layer that Muon, Shampoo or SOAP manages.

    Queries, keys, values, gate, up and down are a matrix each, as in checkpoints; ``joined`` takes gate and
    up as one, as Megatron-Core stores them. (It takes queries, keys and values apart: ``muon_split_qkv``.)
    Every expert has its own. Leaves out parts outside the decoder and the matrices of multi-token prediction.
    """
    found: list[WeightMatrix] = []
    for count, (attention, mlp, _) in models.blocks(model):
        share = count / model.depth
        found += _of_attention(attention, share)
        if not models.is_routed(mlp):
            found += _of_mlp(mlp.hidden, mlp.width, mlp.gated, joined, share, False)
            continue
        found.append(WeightMatrix(mlp.hidden, mlp.experts + mlp.idle_experts, share, 0.0, 0.0, False))
        found += [_projected(one, share) for one in mlp.projections]
        width = mlp.shared_experts * mlp.shared_width
        found += _of_mlp(mlp.hidden, width, mlp.gated, joined, share, False)
        found += _of_mlp(mlp.inside, mlp.width, mlp.gated, joined, share * mlp.experts, True)
    found = [one for one in found if one.inputs and one.outputs and one.count]
    dense = [one for one in found if not one.routed]
    routed = [one for one in found if one.routed]
    return Matrices(
        tuple(found),
        sum((one.count * one.params for one in dense), 0.0),
        sum((one.count * one.params for one in routed), 0.0),
        max((one.params for one in dense), default=0.0),
        max((one.params for one in routed), default=0.0),
        sum((one.count * (one.inputs**2 + one.outputs**2) for one in found), 0.0),
    )


def _projected(one: Any, share: Real) -> WeightMatrix:
    return WeightMatrix(one.k, one.n, share * one.there, one.splits_k, one.splits_n, False)


def _of_attention(attention: Any, share: Real) -> list[WeightMatrix]:
    h, gate = attention.hidden, getattr(attention, "gate_width", 0)
    if isinstance(attention, GroupedAttention):
        q, kv = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
        return [
            WeightMatrix(h, q, share, 0.0, 1.0, False),
            WeightMatrix(h, kv, share * attention.tensors, 0.0, 1.0, False),
            WeightMatrix(h, gate, share, 0.0, 1.0, False),
            WeightMatrix(q, h, share, 1.0, 0.0, False),
        ]
    found = [_projected(one, share) for one in attention.projections]
    if isinstance(attention, LatentAttention):
        found.append(WeightMatrix(h, gate, share, 0.0, 1.0, False))
    return found


def _of_mlp(
    hidden: Real, width: Real, gated: Real, joined: bool, share: Real, routed: bool
) -> list[WeightMatrix]:
    down = WeightMatrix(width, hidden, share, 1.0, 0.0, routed)
    if joined:
        return [WeightMatrix(hidden, (1 + gated) * width, share, 0.0, 1.0, routed), down]
    return [WeightMatrix(hidden, width, (1 + gated) * share, 0.0, 1.0, routed), down]


def managed_params(model: Shape | models.Model) -> Real:
    """Parameters in all matrices of a model that Muon, Shampoo or SOAP manages; AdamW has the rest.

    Of a model with untied embeddings nearly 1 − 2·V·h/P of all.
    """
    found = matrices(model)
    return model.depth * (found.dense_params + found.routed_params)


def state_slabs(model: models.Model, recipe: Recipe) -> tuple[Real, Real, Real, Real, Real]:
    """Bytes of weights, gradients, master copy, momentum and variance of a whole model under a recipe with
    an optimizer of whole matrices; the square matrices of Shampoo and SOAP count with the variance.

    Every parameter has the recipe's weight, gradient and master copy. A matrix has the moments that
    ``recipe.matrices`` says, every other parameter the recipe's own.
    """
    own = recipe.matrices
    if own is None:
        raise ValueError(f"recipe must have an optimizer of whole matrices, got {recipe.key!r}")
    found, total, managed = matrices(model), models.parameters(model), managed_params(model)
    rest = total - managed
    sides = model.depth * found.sides
    return (
        total * recipe.weight_bytes,
        total * recipe.gradient_bytes,
        total * recipe.master_bytes,
        rest * recipe.momentum_bytes + managed * own.momentum_bytes,
        rest * recipe.variance_bytes + managed * own.variance_bytes + sides * own.side_bytes,
    )


# -- over GPUs -----------------------------------------------------------------------------------------------
def owned(total: Real, ranks: Real, largest: Real) -> Real:
    """The most that one of ``ranks`` GPUs gets if whole matrices are dealt out: total / ranks, but at least
    the ``largest`` one.

    Megatron-Core deals them out by their Newton-Schulz FLOPs, largest first, to whoever has least, within a
    cap on their bytes. Leaves out what does not divide, at most one more matrix a GPU, and padding.
    """
    if not check.is_trusted():
        check.non_negative(total=total, largest=largest)
        check.positive(ranks=ranks)
    return ops.maximum(total / ranks, largest * 1.0)


def layer_wise_bytes(params: Real, recipe: Recipe, gathers_momentum: Real = 0.0) -> Real:
    """Bytes on each wire in a step of data parallelism whose ranks update whole matrices: P·(gradient +
    weight), as in ZeRO 1.

    Megatron-Core lays the buffers out so that no matrix crosses from one rank's part to another's; then the
    gradients' ReduceScatter and the weights' AllGather are those of Adam. Where the parts cut matrices, as in
    Moonlight's ZeRO 1, the momentum is gathered as well, in 2 bytes (``gathers_momentum`` = 1): with 4 bytes
    of gradient and 4 of weight 1.25 times as much (arXiv:2502.16982 section 2.3 says 1 to 1.25; from memory).
    """
    if not check.is_trusted():
        check.positive(params=params)
        check.between(0, 1, gathers_momentum=gathers_momentum)
    return params * (recipe.gradient_bytes + recipe.weight_bytes + 2.0 * gathers_momentum)


class Cut(NamedTuple):
    """How a layout cuts and shares what a stage holds: the layers of the stage, the tensor ranks of dense
    matrices and of an expert, the groups of experts, and the GPUs that share the state of each."""

    layers: Real
    tp: Real
    expert_tp: Real
    ep: Real
    shard: Real
    expert_shard: Real


def held_bytes(
    model: Shape, recipe: Recipe, whole: Real, cut: Cut, joined: bool, by_parts: bool
) -> tuple[Real, Real]:
    """Bytes of master copy and moments on a GPU that has ``whole`` parameters without ZeRO: where every data
    rank keeps all of them, and where the ranks share them.

    Everything but the matrices is shared in equal parts, and so are the matrices if they stay cut between
    updates (``by_parts``); else they are ``owned``. For optimizers that keep nothing of a matrix's sides.
    Leaves out what an update takes and gives back.
    """
    own = recipe.matrices
    if own is None:
        raise ValueError(f"recipe must have an optimizer of whole matrices, got {recipe.key!r}")
    value_bytes = recipe.master_bytes + own.momentum_bytes + own.variance_bytes
    found = matrices(model, joined)
    dense, routed = _held(found, cut)
    rest = (whole - dense - routed) * recipe.optimizer_bytes
    shared = _most(found, cut, dense, routed, by_parts)
    return value_bytes * (dense + routed) + rest, value_bytes * shared + rest / cut.shard


def _held(found: Matrices, cut: Cut) -> tuple[Real, Real]:
    """Parameters in the matrices of a stage on one GPU: dense ones and those of experts."""
    dense = cut.layers * found.dense_params / cut.tp
    return dense, cut.layers * found.routed_params / (cut.ep * cut.expert_tp)


def _most(found: Matrices, cut: Cut, dense: Real, routed: Real, by_parts: bool) -> Real:
    """The most of them that one GPU updates or keeps."""
    if by_parts:
        return dense / cut.shard + routed / cut.expert_shard
    return owned(dense, cut.shard, ops.minimum(found.largest / cut.tp, dense)) + owned(
        routed, cut.expert_shard, ops.minimum(found.largest_routed / cut.expert_tp, routed)
    )


def spilled_bytes(wanted_bytes: Real, capacity_bytes: Real) -> Real:
    """Bytes of a paged optimizer's state that lie in the host's memory: what a GPU's peak wants beyond its
    capacity.

    bitsandbytes allocates paged state in CUDA's unified memory, and the driver moves pages out only when
    others need the room, so it costs nothing while all fits (arXiv:2305.14314 section 3).
    """
    if not check.is_trusted():
        check.non_negative(wanted_bytes=wanted_bytes, capacity_bytes=capacity_bytes)
    return ops.maximum(0.0, wanted_bytes - capacity_bytes)


def paged_s(spilled_bytes: Real, link_bytes_per_s: Real) -> Real:
    """Seconds that an update waits for pages in the host's memory: each comes to the GPU and goes back,
    2·bytes / the link's rate one way. Leaves out what page faults add, and copies that run both ways at
    once."""
    if not check.is_trusted():
        check.non_negative(spilled_bytes=spilled_bytes)
        check.positive(link_bytes_per_s=link_bytes_per_s)
    return 2.0 * spilled_bytes / link_bytes_per_s


# -- the time of an update -----------------------------------------------------------------------------------
MODES = ("duplicated", "blockwise", "distributed")  # of tensor parallelism in Megatron's Muon
UPDATE_BYTES = 8.0  # moved for each value of a matrix: the orthogonal update is written in fp32 and read


def orthogonal_s(one: WeightMatrix, tensor: Real, mode: str, steps: Real, rates: Gemm, net: Wires) -> Real:
    """Seconds of Newton-Schulz for one matrix whose ``tensor`` ranks each hold a part, by one of MODES.

    "duplicated" gathers the momentum in fp32, and every rank computes everything. "blockwise" makes each part
    orthogonal by itself, which is another update, and sends nothing. "distributed" leaves the matrix cut:
    in each iteration a rank multiplies its own part, the square products are summed over the ranks, and each
    squares the sum; a matrix cut along its shorter side then iterates over the longer one. Matrices that
    tensor parallelism leaves whole are computed by every rank.

    Megatron-Core, megatron/core/optimizer/emerging_optimizers.py at d98e8a64, and ``newton_schulz_tp`` of
    Emerging-Optimizers, orthogonalized_optimizers/muon_utils.py at fd772926; read on 2026-11-28.
    """
    if not check.is_trusted():
        check.whole(tensor=tensor)
        check.one_of(MODES, mode=mode)
        check.positive(steps=steps)
    inputs, outputs = one.inputs * 1.0, one.outputs * 1.0
    is_cut = one.cuts_inputs + one.cuts_outputs > 0.0
    if not is_cut:
        return newton_schulz_s(inputs, outputs, rates, steps)
    part = (inputs if one.cuts_inputs else outputs) / tensor
    kept = outputs if one.cuts_inputs else inputs
    if mode == "blockwise":
        return newton_schulz_s(part, kept, rates, steps)
    per_node = ranks_per_node(tensor, 1.0, net.gpus_per_node)
    if mode == "duplicated":
        gathered_s = all_gather_s(inputs * outputs * MOMENTUM_BYTES, tensor, per_node, net)
        return gathered_s + newton_schulz_s(inputs, outputs, rates, steps)
    summed_s = steps * all_reduce_s(kept * kept * GRAM_BYTES, tensor, per_node, net)
    apart_s = summed_s + _iterations_s(kept, part, rates, steps)
    return ops.where(tensor > 1.0, apart_s, newton_schulz_s(inputs, outputs, rates, steps))


def tensor_bytes(one: WeightMatrix, tensor: Real, mode: str, steps: Real = STEPS) -> Real:
    """Bytes that a collective of one matrix's update goes over, by one of MODES: m·n·4 gathered, nothing, or
    s·k²·2 summed, where k is the side that is not cut; nothing where the matrix is whole."""
    if not check.is_trusted():
        check.whole(tensor=tensor)
        check.one_of(MODES, mode=mode)
        check.positive(steps=steps)
    if mode == "blockwise" or one.cuts_inputs + one.cuts_outputs == 0.0:
        return 0.0 * tensor
    kept = one.outputs if one.cuts_inputs else one.inputs
    sent = one.params * MOMENTUM_BYTES if mode == "duplicated" else steps * kept * kept * GRAM_BYTES
    return ops.where(tensor > 1, sent * 1.0, 0.0)


class Update(NamedTuple):
    """How a program updates whole matrices: gate and up as one or apart, how tensor ranks work together, and
    whether FSDP keeps matrices cut between updates."""

    joined: bool
    mode: str
    by_parts: bool


_orthogonal_s = ops.remembered(orthogonal_s)


def update_s(
    model: Shape,
    recipe: Recipe,
    by: Update,
    at: Chip,
    net: Wires,
    whole: Real,
    cut: Cut,
    zero: Real,
    fused: bool = True,
) -> Real:
    """Seconds of the optimizer on the GPU with most to do, in a stage of which it has ``whole`` parameters
    without ZeRO.

    AdamW passes over its parameters (``sharding.optimizer_s``). Of its matrices a GPU reads and writes state
    and update, and makes each orthogonal by the products of Newton-Schulz, in 16 bits. Without ZeRO every
    data rank does it for all matrices; with it each for those that it owns. Where FSDP keeps matrices cut
    (torchtitan's DistMuon), each travels to one rank as a momentum and back as an update, in two AllToAlls
    of this GPU's part, hidden behind the products of other layers.
    """
    own, found = recipe.matrices, matrices(model, by.joined)
    if own is None:
        raise ValueError(f"recipe must have an optimizer of whole matrices, got {recipe.key!r}")
    dense, routed = _held(found, cut)
    each = {True: [0.0, 0.0], False: [0.0, 0.0]}  # of a mean layer, and the longest; routed or not
    for one in found.all:
        tensor = cut.expert_tp if one.routed else cut.tp
        one_s = _orthogonal_s(one, tensor, by.mode, own.steps, at.wide, net)
        sums = each[one.routed]
        sums[0] = sums[0] + one.count * one_s
        sums[1] = ops.maximum(sums[1], one_s)
    dense_s, routed_s = cut.layers * each[False][0], cut.layers * each[True][0] / cut.ep
    shared_s = owned(dense_s, cut.shard, ops.minimum(each[False][1], dense_s)) + owned(
        routed_s, cut.expert_shard, ops.minimum(each[True][1], routed_s)
    )
    if by.by_parts:
        sent = MOMENTUM_BYTES * (dense / cut.shard + routed / cut.expert_shard)
        per_node = ranks_per_node(cut.shard, cut.tp, net.gpus_per_node)
        moved_s = 2.0 * all_to_all_s(sent, cut.shard, per_node, net)
        shared_s = shared_s + sharding.hidden_behind(moved_s, shared_s, cut.layers, True)
    value_bytes = 3.0 * recipe.gradient_bytes + recipe.weight_bytes + UPDATE_BYTES
    value_bytes = value_bytes + 2.0 * (recipe.master_bytes + own.momentum_bytes + own.variance_bytes)
    shares = zero >= 1.0
    passed = ops.where(shares, _most(found, cut, dense, routed, by.by_parts), dense + routed)
    rest = ops.where(shares, 1.0 / cut.shard, 1.0) * (whole - dense - routed)
    return (
        sharding.optimizer_s(rest, recipe, at.memory_bytes_per_s, fused)
        + passed * value_bytes / at.memory_bytes_per_s
        + ops.where(shares, shared_s, dense_s + routed_s)
    )
