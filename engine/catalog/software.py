"""What software does beside the model: one entry of software.toml for each program and version.

A model's arithmetic, its bytes and its messages follow from the model and the layout. How a program computes
them does not: which traffic it hides behind arithmetic, how it sums gradients, how it computes the loss, what
Python adds to each step. ``engine.software("megatron-core-0.8")`` is such a program, and
``engine.software("modern", loss="chunked")`` one that differs in what you say.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar

from engine.base import check
from engine.catalog import files

DEFAULT = "modern"

# The values that the texts of an entry may have.
CHOICES = {
    "attention": ("fused", "fused-8bit", "scores"),
    "scales": ("tensor", "blocks"),
    "overlaps": (  # of data, tensor, experts, joined in this order
        "",
        "data",
        "tensor",
        "data+tensor",
        "experts",
        "data+experts",
        "tensor+experts",
        "data+tensor+experts",
    ),
    "gradients": ("fused", "separate"),
    "context": ("ring", "gather"),
    "dispatch": ("node", "choice"),
    "experts": ("grouped", "fused", "operators", "one-by-one"),
    "launches": ("graphed", "python", "blocking"),
    "fsdp": ("", "flat", "each"),
    "reshards": ("always", "alone"),
    "zero_sums": ("shards", "whole"),
    "loss": ("plain", "chunked", "fused", "widened", "chosen", "returned"),
    "kernels": ("library", "compiled", "eager"),
    "matrices": ("", "ranks", "parts"),
    "orthogonal": ("duplicated", "blockwise", "distributed"),
}
TRUE_OR_FALSE = (
    *("sequence_parallel", "gathers_again", "saves_fp8", "weighs_early", "joins_gate"),
    *("gathers_ends", "reduces_wide", "frees_gradients", "written_out", "flat_buffers"),
)
OF_MATRICES = ("matrices", "orthogonal", "joins_gate")  # what only an optimizer of whole matrices asks
TRUTHS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


@dataclass(frozen=True)
class Software:
    """A program: what it is called, what it runs, and where that is known from."""

    key: str
    name: str
    runs: str  # "training" or "serving"
    source: str = ""
    checked: str = ""
    note: str = ""


@dataclass(frozen=True)
class TrainingSoftware(Software):
    """What a training program does beside the model. What an entry leaves out is what most programs of today
    do.

    - ``sequence_parallel``: with tensor parallelism, norms and dropout are sharded too.
    - ``attention``: "fused"; "fused-8bit", the same in 8 bits; "scores", which keeps all attention scores.
    - ``scales``: operands are cast to 8 bits with one scale a "tensor", whose largest value a pass of its own
      looks for, or with one for each of its "blocks" (MXFP8), found while casting.
    - ``overlaps``: the traffic that is hidden behind arithmetic, joined by +. "data": gradients and gathered
      weights, and with interleaving the messages between stages. "tensor": the collectives of tensor
      parallelism, piece by piece behind their products. "experts": AllToAlls, behind another micro-batch.
    - ``gradients``: "fused" sums weight gradients inside their product, and frees a stage's output once it is
      sent; "separate" does neither.
    - ``context``: context parallelism passes keys and values around a "ring", or each rank has to "gather"
      them all.
    - ``dispatch``: a token crosses to other nodes once for each "node" that holds one of its experts, or once
      for each "choice" of an expert.
    - ``experts``: by "grouped" kernels; by "fused" ones, whose products activate and cast what lies inside
      an expert (cuDNN's, in 8 bits); grouped, with biases and clamps by PyTorch's "operators"
      (Megatron-Core); or "one-by-one", as dense layers (its SequentialMLP).
    - ``launches``: kernels come out of a CUDA graph ("graphed"), or "python" launches each and the experts'
      only once it knows how many rows each gets, or each launch waits for the kernel before ("blocking",
      CUDA_LAUNCH_BLOCKING=1).
    - ``fsdp``: what ZeRO 3 copies beside its traffic: PyTorch's FSDP with "flat" units, or "each" weight by
      itself; "" for nothing.
    - ``gathers_ends``: under FSDP the embedding and the output layer are gathered together, by the module
      around the layers, from the first use until the backward pass ends (Accelerate's wrapping).
    - ``reduces_wide``: FSDP sums gradients in fp32, for which it copies a layer's.
    - ``frees_gradients``: gradients come into being in the backward pass and are freed after the step, as
      PyTorch does it unless a program keeps buffers for them. Then the moments of a step are told apart.
    - ``written_out``: norms and activation functions are several of PyTorch's operators, as transformers and
      torchtune write them, each of which keeps what its backward pass needs.
    - ``reshards``: whether FSDP drops gathered weights after each forward pass "always", or only where the
      model is "alone", without a pipeline.
    - ``zero_sums``: ZeRO 1 sums of each gradient the "shards" that a rank keeps, or "whole" gradients on
      every rank (DeepSpeed's bf16 optimizer).
    - ``gathers_again``: ZeRO 3 gathers weights once more to recompute (DeepSpeed, large layers).
    - ``zero_nics``: of a node's network cards, the share that ZeRO's scatters and gathers use.
    - ``loss``: the cross entropy of all logits at once ("plain", which briefly keeps 10 bytes for each), of
      one in ``loss_chunks`` of them at a time ("chunked"), in place in 16 bits ("fused", 2 bytes), or of all
      logits in 16 bits, one in ``loss_chunks`` of which is widened at a time ("widened"); log-probabilities
      of given tokens ("chosen"); in place, with a copy in fp32 that is returned ("returned").
    - ``loss_share``: of a sequence's tokens, those whose logits are made: all, or in reinforcement learning
      those of its answer.
    - ``saves_fp8``: products keep their inputs in 8 bits for the backward pass (Transformer Engine in fp8).
    - ``weighs_early``: an expert's output is weighted before its last product, and so not kept
      (Megatron-Core).
    - ``kernels``: what runs beside the products: the vendor's "library", what PyTorch's compiler makes
      ("compiled"), or PyTorch's operators one by one ("eager").
    - ``matrices``: an optimizer that needs whole matrices (Muon) finds them on data-parallel "ranks" that
      each own some (ZeRO 0 or 1), or gathers the "parts" that FSDP leaves everywhere when it updates; "" for
      none that is known.
    - ``orthogonal``: with tensor parallelism Muon's iterations are "duplicated" on every rank, "blockwise" on
      each rank's part alone, or "distributed".
    - ``joins_gate``: the matrices of an MLP's gate and of its way up are one.
    - ``flat_buffers``: with ZeRO it keeps buckets to send, with their fp32 copies (the DeepSpeed of 2022).
    """

    sequence_parallel: bool = True
    attention: str = "fused"
    scales: str = "tensor"
    overlaps: str = "data"
    gradients: str = "fused"
    context: str = "ring"
    dispatch: str = "node"
    experts: str = "grouped"
    launches: str = "graphed"
    fsdp: str = ""
    gathers_ends: bool = False
    reduces_wide: bool = False
    frees_gradients: bool = False
    written_out: bool = False
    reshards: str = "always"
    zero_sums: str = "shards"
    gathers_again: bool = False
    zero_nics: float = 1.0
    loss: str = "plain"
    loss_chunks: int = 8
    loss_share: float = 1.0  # of a sequence's tokens whose logits are made: of answers alone it is less
    saves_fp8: bool = False
    weighs_early: bool = False
    kernels: str = "library"
    matrices: str = ""
    orthogonal: str = "duplicated"
    joins_gate: bool = False
    flat_buffers: bool = False

    def __post_init__(self) -> None:
        for field, allowed in CHOICES.items():
            check.one_of(allowed, **{field: getattr(self, field)})
        for field in TRUE_OR_FALSE:
            if not isinstance(getattr(self, field), bool):
                raise ValueError(f"{field} must be true or false, got {getattr(self, field)!r}")
        check.between(0.01, 1.0, zero_nics=self.zero_nics)
        check.between(0.001, 1.0, loss_share=self.loss_share)
        check.whole(loss_chunks=self.loss_chunks)

    @property
    def flash(self) -> bool:
        """Whether attention is fused, so that its scores are never written."""
        return self.attention != "scores"


@dataclass(frozen=True)
class ServingSoftware(Software):
    """What a serving program does in addition to the model's arithmetic."""

    casts: bool = False  # computes the scales of 8-bit activations at run time, in separate kernels
    last_alone: bool = False  # a prompt's last token takes a decode step of its own
    one_launcher: bool = False  # one thread launches a collective on all GPUs
    captured_tokens: float = float("inf")  # beyond this length Python launches each kernel
    between_s: float = 0.0  # from a step's logits to the next step: sampling, copies to the host, scheduling
    token_s: float = 0.0  # for each token that a step writes: its request is scheduled
    logit_s: float = 0.0  # for each logit of such a token, all of which top-p sampling sorts
    request_s: float = 0.0  # for each request, in addition to its steps
    expert_layer_s: float = 0.0  # for each layer of experts: more and smaller kernels around their products
    coarse_experts: float = 1.0  # how many times longer 16-bit experts take where tiles of 64 rows pad them


class Unsaid(TypedDict):
    """What a program's recipes did in runs whose source leaves it open: an entry of unsaid.toml."""

    models: list[str]
    releases: NotRequired[list[str]]  # all, if it names none
    gpus: NotRequired[list[str]]
    dispatch: NotRequired[str]
    mtp: NotRequired[int]
    source: str
    checked: str
    note: NotRequired[str]


@lru_cache(None)
def all_unsaid() -> dict[str, list[Unsaid]]:
    """What programs' recipes did where runs leave it open, by program."""
    return files.table("unsaid.toml", list[Unsaid])


def unsaid(program: str, release: str, model: str, gpu: str) -> Unsaid | None:
    """What the recipes of this program, release, model and GPU did where the source of a run leaves it
    open."""
    asked = {"models": model, "releases": release, "gpus": gpu}
    for entry in all_unsaid().get(program, []):
        if all(value in entry.get(name, [value]) for name, value in asked.items()):
            return entry
    return None


if TYPE_CHECKING:
    Program = TypeVar("Program", bound=Software)


def overlaps(data: object = False, tensor: object = False, experts: object = False) -> str:
    """The traffic that is hidden, as an entry names it."""
    hidden = {"data": data, "tensor": tensor, "experts": experts}
    return "+".join(name for name, hides in hidden.items() if hides)


def changed(by: Program, /, **changes: Any) -> Program:
    """The program with other values for the fields that are named; ValueError for a field that it lacks."""
    known = [field.name for field in fields(by) if field.name not in ("key", "runs")]
    for name in changes:
        if name not in known:
            raise ValueError(f"software has no field {name!r}; it may have {', '.join(known)}")
    return replace(by, **changes)


def without_matrices(by: TrainingSoftware) -> TrainingSoftware:
    """What the program does under an optimizer that needs no whole matrices, with the name of the usual one:
    two that are equal then cost the same."""
    said = {field.name: field.default for field in fields(TrainingSoftware) if field.name in OF_MATRICES}
    return replace(by, key=DEFAULT, name="", source="", checked="", note="", **said)


def switches() -> dict[str, type]:
    """The fields of a training program that say what it does, and the type of each."""
    told = [field.name for field in fields(Software)]
    return {field.name: type(field.default) for field in fields(TrainingSoftware) if field.name not in told}


def change(text: str) -> tuple[str, object]:
    """The field and the value of a text such as ``loss=fused`` or ``sequence_parallel=off``."""
    name, given, value = text.partition("=")
    if name not in switches() or not given:
        raise ValueError(f"with must be FIELD=VALUE, one of {', '.join(switches())}; got {text!r}")
    kind = switches()[name]
    if kind is bool:
        if value not in TRUTHS:
            raise ValueError(f"{name} must be on or off, got {value!r}")
        return name, TRUTHS[value]
    try:
        return name, kind(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {value!r}") from None
