"""Which layouts can be built: each rule once, for floats, arrays or symbols.

Each small function says what one rule forbids. The search and the advice list only splits that break none of
them. The planner's page does the same, in a program that is translated to JavaScript. ``RULES`` lists the
rules in the order in which a layout is checked, with words for a reader and, for single numbers, an error
message that names the nearest legal values. ``require_legal``, the missions and the examination use that
list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from engine.base import check, ops
from engine.catalog import models
from engine.catalog.models import divisors
from engine.mechanism import memory
from engine.mechanism.pipeline import StageLayers, least_micro_batches

# A float, an array, or a symbol of the widgets' compiler; a rule's result is a bool, or one of these.
Number = Any
Truth = Any


ALONE = 2  # chunks without a layer: one for the embedding and one for the loss


# -- what each rule forbids ----------------------------------------------------------------------------------
def cuts_a_head(heads: Number, tp: Number) -> Truth:
    """Tensor ranks must get whole attention heads."""
    return heads % tp != 0


def leaves_a_chunk_empty(layers: Number, pp: Number, chunks: Number) -> Truth:
    """Every chunk of every stage must have a layer; the search requires this."""
    return pp * chunks > layers


def leaves_a_chunk_idle(layers: Number, pp: Number, chunks: Number) -> Truth:
    """Every chunk must have a layer, except that with several chunks the first and the last may hold only the
    embedding and the loss (Llama 3 405B: 126 layers in 16 × 8 slots)."""
    return pp * chunks > layers + ops.where(chunks > 1, ALONE, 0)


def equal_chunks(layers: Number, stages: Number, chunks: Number) -> Truth:
    """Whether all chunks have the same number of layers."""
    return layers % (stages * chunks) == 0


def ends_take_slots(layers: Number, stages: Number, chunks: Number) -> Truth:
    """Whether chunks are equal if embedding and loss count as one layer each."""
    slots = (layers + 2) % (stages * chunks) == 0
    return (chunks > 1) & (stages > 1) & ~equal_chunks(layers, stages, chunks) & slots


def middle_is_even(layers: Number, stages: Number, cut: StageLayers) -> Truth:
    """Whether the stages between the first and the last can have equal layers."""
    return (stages < 3) | ((layers - cut.first - cut.last) % ops.maximum(1.0, stages - 2.0) == 0)


def ends_of_chunks(chunks: Number, cut: StageLayers) -> tuple[Number, Number, Number]:
    """Layers of a full chunk, of the very first one and of the very last."""
    full = cut.full / chunks
    return full, full - (cut.full - cut.first), full - (cut.full - cut.last)


def ends_share_the_rest(layers: Number, stages: Number, chunks: Number, cut: StageLayers) -> Truth:
    """Whether all chunks are full but the first and the last."""
    full, first, last = ends_of_chunks(chunks, cut)
    return (first >= 0) & (last >= 0) & (first + full * (stages * chunks - 2) + last == layers)


def fills_every_stage(layers: Number, stages: Number) -> Truth:
    """Whether each stage gets a layer if all but the last get the same number."""
    return ops.ceil(layers / ops.ceil(layers / stages)) == stages


def leaves_gpus_over(gpus: Number, ranks: Number) -> Truth:
    """Every GPU must belong to a replica, or to a group of ranks."""
    return gpus % ranks != 0


def leaves_sequences_over(global_batch: Number, dp: Number) -> Truth:
    """Data ranks must get the same number of sequences."""
    return global_batch % dp != 0


def cuts_a_micro_batch(sequences: Number, micro_batch: Number) -> Truth:
    """A data rank's sequences must form whole micro-batches."""
    return sequences % micro_batch != 0


def cuts_copies_of_experts(gpus: Number, one_set: Number) -> Truth:
    """The GPUs that share one copy of the state must hold all experts equally often."""
    return gpus % one_set != 0


def cuts_tokens_unevenly(seq: Number, cp: Number) -> Truth:
    """With several context ranks, each takes two pieces, one from either end, all of the same length."""
    return seq % (2 * cp) != 0


def cuts_experts_unevenly(experts: Number, ep: Number) -> Truth:
    """Expert ranks must hold the same number of experts; a dense model counts as having one."""
    return ops.maximum(1.0, experts * 1.0) % ep != 0


# -- all of them, for one layout -----------------------------------------------------------------------------
@dataclass(frozen=TYPE_CHECKING, slots=True)  # as ``step.Axes``
class Facts:
    """The facts about a model, a job and a layout that the rules need."""

    heads: Number
    layers: Number
    experts: Number
    global_batch: Number
    seq: Number
    gpus: Number
    tp: Number
    pp: Number
    cp: Number
    dp: Number
    ep: Number
    expert_tp: Number
    micro_batch: Number
    chunks: Number
    plan: Any  # a Schedule, or coefficients of several


class Pipelined(Protocol):
    """What the rule for schedules needs: one layout's facts, or the axes of many."""

    @property
    def global_batch(self) -> Number:
        """Sequences of a step."""

    @property
    def pp(self) -> Number:
        """Pipeline stages."""

    @property
    def dp(self) -> Number:
        """Data-parallel ranks."""

    @property
    def micro_batch(self) -> Number:
        """Sequences of a micro-batch."""

    @property
    def plan(self) -> Any:
        """The schedule, or the coefficients of several."""


def idle_stages(f: Pipelined) -> Truth:
    """What a schedule requires of stages and micro-batches: an even number of stages for DualPipe, and enough
    micro-batches."""
    odd = (f.plan.weight_copies > 1.0) & (f.pp % 2 != 0)
    return odd | (f.global_batch / f.dp / f.micro_batch < least_micro_batches(f.pp * 1.0, f.plan))


@dataclass(frozen=True)
class LayoutRule:
    """A requirement for layouts: its words, whether the facts violate it, and for single numbers the reason,
    with the nearest legal values."""

    words: str
    broken: Callable[[Facts], Truth]
    refusal: Callable[[Facts], str]


RULES = (
    LayoutRule(
        "tensor must divide the attention heads",
        lambda f: cuts_a_head(f.heads, f.tp),
        lambda f: must("tp", f.tp, f"divide the {f.heads} attention heads", divisors(f.heads)),
    ),
    LayoutRule(
        "pipeline × chunks must leave each chunk a layer",
        lambda f: leaves_a_chunk_idle(f.layers, f.pp, f.chunks),
        lambda f: must(
            "pp",
            f.pp,
            f"leave each of its {f.chunks} chunks a stage at least one of {f.layers} layers",
            range(1, (f.layers + (ALONE if f.chunks > 1 else 0)) // f.chunks + 1),
        ),
    ),
    LayoutRule(
        "tensor × pipeline × context must divide the GPUs",
        lambda f: leaves_gpus_over(f.gpus, f.tp * f.pp * f.cp),
        lambda f: _gpus(f, f.tp * f.pp * f.cp),
    ),
    LayoutRule(
        "the data ranks that are left must divide the batch",
        lambda f: leaves_sequences_over(f.global_batch, f.dp),
        lambda f: must("global_batch", f.global_batch, f"be a multiple of dp = {f.dp}", _around(f)),
    ),
    LayoutRule(
        "the micro-batch must divide what a data rank gets",
        lambda f: cuts_a_micro_batch(f.global_batch / f.dp, f.micro_batch),
        lambda f: must(
            "micro_batch",
            f.micro_batch,
            f"divide the {f.global_batch // f.dp} sequences of each data-parallel rank",
            divisors(f.global_batch // f.dp),
        ),
    ),
    LayoutRule(
        "context must cut the sequence into 2 × context equal pieces",
        lambda f: (f.cp > 1) & cuts_tokens_unevenly(f.seq, f.cp),
        lambda f: must(
            "cp", f.cp, f"cut the sequence of {f.seq} in 2 × cp equal pieces", divisors(max(1, f.seq // 2))
        ),
    ),
    LayoutRule(
        "interleaving needs a pipeline",
        lambda f: (f.chunks > 1) & (f.pp < 2),
        lambda f: interleaving(f.plan.key, f.pp, f.chunks),
    ),
    LayoutRule(
        "DualPipe needs an even pipeline, it and ZB-H2 about 2 × pipeline micro-batches",
        idle_stages,
        lambda f: _schedule(f),
    ),
    LayoutRule(
        "expert must divide the model's experts",
        lambda f: cuts_experts_unevenly(f.experts, f.ep),
        lambda f: (
            must("ep", f.ep, f"divide the {f.experts} experts", divisors(f.experts))
            if f.experts
            else _dense(f)
        ),
    ),
    LayoutRule(
        "expert × its tensor ranks must divide the GPUs of a stage",
        lambda f: leaves_gpus_over(f.gpus / f.pp, f.ep * f.expert_tp),
        lambda f: must(
            "ep",
            f.ep,
            f"times expert_tp ({f.expert_tp}) divide the {f.gpus // f.pp} GPUs of a stage",
            [d for d in divisors(f.gpus // f.pp) if f.experts % d == 0],
        ),
    ),
    LayoutRule(
        "the ranks that share an expert must divide the tensor ranks, and a dense model has no expert",
        lambda f: leaves_gpus_over(f.tp, f.expert_tp) | ((f.expert_tp > 1) & (f.experts < 1)),
        lambda f: (
            must("expert_tp", f.expert_tp, f"divide tp = {f.tp}", divisors(f.tp)) if f.experts else _dense(f)
        ),
    ),
)


_ASKED = tuple(rule.broken for rule in RULES)  # each estimate checks all rules, in three microseconds


def require(f: Facts) -> None:
    """ValueError for the first rule that is violated."""
    if not check.is_trusted():
        with check.trusted():
            require(f)
        return
    for broken in _ASKED:
        if broken(f):
            raise ValueError(RULES[_ASKED.index(broken)].refusal(f))


TRAINED = ("bf16", "fp16", "fp8", "fp32", "tf32")  # formats of the products in some published training recipe


def require_trainable(precision: str, recipe: Any) -> None:
    """ValueError for a precision in which nobody trains: int8 products are for serving, and fp4 needs a
    recipe that says which parts stay wider."""
    if precision not in TRAINED and recipe.precision != precision:
        raise ValueError(
            f"precision must be one of {', '.join(TRAINED)} to train, or that of the recipe "
            f"({recipe.precision}), got {precision}"
        )


MATRIX_STAGES = (0, 1)  # of ZeRO, under which data ranks can own whole matrices


def cuts_matrices(software: Any, zero: Number, shard: Number, tp: Number) -> Truth:
    """Whether an optimizer of whole matrices finds some cut in a way that the program does not mend: by ZeRO
    2, 3 or HSDP where ranks own whole ones; by tensor parallelism where it gathers FSDP's parts."""
    if software.matrices == "parts":
        return tp > 1
    return (zero > MATRIX_STAGES[-1]) | (shard > 0)


def require_matrices(recipe: Any, software: Any, precision: str, offload: str, adapter: Any = None) -> None:
    """ValueError where the program has no optimizer of whole matrices that is known, or the time of the
    recipe is not modelled."""
    if recipe.untimed:
        raise ValueError(
            f"recipe must be one whose step can be timed, got {recipe.key}: {recipe.untimed} are not "
            "modelled (the bytes of its state are)"
        )
    if recipe.matrices is None:
        return
    if not software.matrices:
        raise ValueError(
            f"software must be a program whose optimizer of whole matrices is modelled, for the recipe "
            f"{recipe.key}; got {software.key}; nearest legal: modern, or matrices=ranks for one of your own"
        )
    if adapter is not None:
        raise ValueError(
            f"adapter must be none with the recipe {recipe.key}, whose work on thin matrices is not modelled"
        )
    if precision == "fp16":
        raise ValueError(
            f"precision must not be fp16 with the recipe {recipe.key}, whose programs refuse it; nearest "
            "legal: bf16"
        )
    if "optimizer" in offload:
        raise ValueError(
            f"offload must leave the optimizer on the GPU with the recipe {recipe.key}, since how a host "
            f"makes matrices orthogonal is not modelled; got {offload}"
        )


def require_whole_matrices(recipe: Any, software: Any, zero: int, shard: int, tp: int) -> None:
    """ValueError for a layout that cuts matrices which the recipe's optimizer needs whole."""
    if recipe.matrices is None or not cuts_matrices(software, zero, shard, tp):
        return
    if software.matrices == "parts":
        raise ValueError(
            f"tp must be 1 with the recipe {recipe.key} under {software.key}, since how it gathers matrices "
            f"that tensor parallelism cuts is not modelled; got {tp}; nearest legal: 1"
        )
    if zero > MATRIX_STAGES[-1]:
        raise ValueError(
            f"zero must be 0 or 1 with the recipe {recipe.key} under {software.key}: ZeRO 2 and 3 (FSDP) cut "
            f"the matrices that its optimizer needs whole; got {zero}; nearest legal: 1"
        )
    raise ValueError(
        f"shard must be 0 with the recipe {recipe.key} under {software.key}: whole matrices are dealt out to "
        f"all data ranks, and no group of them holds a copy by itself; got {shard}; nearest legal: 0"
    )


def require_mixers(model: models.Model, tp: int, cp: int) -> None:
    """ValueError unless tensor ranks divide the heads of every kind of layer, and no state crosses ranks."""
    if not model.mixes:
        return
    if cp > 1:
        raise ValueError(
            f"cp must be 1 for {model.name}, since how ranks hand on a state is not modelled; got {cp}"
        )
    for kind in {group.attention for group in model.layers}:
        if kind.heads % tp and kind.matrices:
            raise ValueError(must("tp", tp, f"divide all {kind.heads} heads", divisors(kind.heads)))


def require_recompute(model: Any, recompute: str, layers: int, pp: int) -> None:
    """ValueError if a layer has no such module, or a stage has fewer layers."""
    code, modules = memory.recompute_of(recompute)
    if modules:
        _require_modules(model, modules)
    if not layers:
        return
    most = math.ceil(model.depth / pp)
    if code != memory.FULL:
        raise ValueError(f"recompute_layers must be 0 unless recompute is full, got {layers}")
    if layers > most:
        raise ValueError(must("recompute_layers", layers, f"be at most the {most} of a stage", [most]))


def modules_of(model: Any) -> list[str]:
    """The parts of a layer that the model has, of memory.MODULES."""
    lacking = {
        "mla_up_proj": not model.attention.latent,
        "mlp": not model.dense.width,
        "every_other": not model.gated or bool(model.experts) or model.attention.latent,
        "moe": not model.experts,
        "moe_act": not model.experts,
        "shared_experts": not model.shared_experts,
    }
    return [known for known in memory.MODULES if not lacking.get(known)]


def _require_modules(model, modules) -> None:
    has = modules_of(model)
    for name in modules:
        if name not in has:
            raise ValueError(
                f"recompute must be of modules that {model.key} has: {', '.join(has)}; got {name}"
            )


def require_ends(layers: int, pp: int, first: int, last: int) -> None:
    """ValueError if the layers given for the first or the last stage leave no layer, or no equal number of
    layers, for each stage between them."""
    if not (first or last):
        return
    between, others = layers - first - last, pp - (first > 0) - (last > 0)
    if pp < 2:
        raise ValueError(f"first_layers and last_layers must be 0 without a pipeline, got {first} and {last}")
    if between < others or (between % others if others else between):
        raise ValueError(
            f"first_layers and last_layers must leave {others} equal stages of the {layers} layers, "
            f"got {first} and {last}; nearest legal: 0 and 0"
        )


# -- error messages ------------------------------------------------------------------------------------------
def must(name: str, value: int, why: str, legal: Iterable[int]) -> str:
    """An error message with the legal values on both sides of the requested one."""
    legal = list(legal)
    below, above = [v for v in legal if v < value], [v for v in legal if v > value]
    nearest = " and ".join(str(v) for v in below[-1:] + above[:1]) or "none"
    return f"{name} must {why}, got {value}; nearest legal: {nearest}"


def interleaving(key: str, pp: int, chunks: int) -> str:
    """The error message for chunks on a single pipeline stage, where there is nothing to interleave."""
    return (
        f"schedule {key} must have pp and interleave of at least 2, got "
        f"pp {pp} and interleave {chunks}; nearest legal: schedule 1f1b"
    )


def _around(f: Facts) -> list[int]:
    """The nearest global batches, below and above, that the data ranks divide."""
    sequences = f.global_batch // f.dp
    return [f.dp * sequences, f.dp * (sequences + 1)][sequences < 1 :]


def _gpus(f: Facts, ranks: int) -> str:
    replicas = f.gpus // ranks
    size = f"tp × pp × cp = {f.tp} × {f.pp} × {f.cp} = {ranks}"
    why = f"be a multiple of {size}" if replicas else f"be at least {size}"
    return must("gpus", f.gpus, why, [ranks * replicas, ranks * (replicas + 1)][replicas < 1 :])


def _schedule(f: Facts) -> str:
    key = f.plan.key
    if f.plan.weight_copies > 1.0 and f.pp % 2:
        return must("pp", f.pp, f"be even under schedule {key}", [f.pp - 1, f.pp + 1][f.pp < 2 :])
    least = int(least_micro_batches(float(f.pp), f.plan))
    return (
        f"schedule {key} must have at least {least} micro-batches a step for {f.pp} stages, got "
        f"{f.global_batch // (f.dp * f.micro_batch)}; nearest legal: global_batch "
        f"{least * f.dp * f.micro_batch}"
    )


def _dense(f: Facts) -> str:
    return (
        f"ep and expert_tp must be 1 for a model without experts, got {f.ep} and {f.expert_tp}; "
        "nearest legal: 1"
    )
