"""Published measurements that a figure draws over its model: dots, each with the engine's prediction for
exactly what was measured.

They are read from ``published/figures/*.toml``, one file per figure. A point either names a case of
``validation`` (``case``), or describes a case of its own in the same terms (``kind`` with that kind's fields,
and ``measured``). Either way the engine's number is computed here, by the function that ``validation`` would
use; no prediction is written down. A point also says which state of the figure it was measured in (``at``),
so that it is shown only there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from engine import catalog, validation
from engine.base import check, units
from engine.calibration.products import gemm_s
from engine.catalog import files, hardware
from engine.catalog.models import Model
from engine.executed import tensor
from engine.mechanism import experts, interconnect, matmul
from engine.serving import decoding, wide
from engine.serving.deployment import choice
from engine.step import layout

SPLITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # GPUs per replica, for each way to split a fleet
FIGURES = validation.CASES / "figures"
SLOWER = ("fast", "slow")  # the words for a model whose time is too short, or too long
LOWER = ("low", "high")  # the words for a model whose rate is too low, or too high


@dataclass(frozen=True)
class PointSource:
    """Who published it: a name short enough for a hint, a title, an address, and the version that was
    read."""

    key: str
    name: str
    title: str
    address: str
    version: str


@dataclass(frozen=True)
class Point:
    """One published number, what it was measured on, and the engine's prediction."""

    id: str
    what: str  # what was measured, in words
    case: dict
    quantity: str
    measured: float
    at: dict[str, Any]  # the figure's state
    source: PointSource
    where: str  # place in the source
    differs: str = ""  # how it differs from what the figure draws, whatever its state

    @cached_property
    def ours(self) -> float:
        """The engine's number under the point's own conditions."""
        if self.quantity == "token_s":
            return _token_s(self.case, float(_predict(self.case)["tokens_per_s_per_gpu"]))
        return float(_predict(self.case)[self.quantity])

    @cached_property
    def total_bytes(self) -> float:
        """The engine's memory of the fullest GPU, for a training step."""
        return float(_predict(self.case)["total_bytes"])

    @property
    def error(self) -> float:
        """The relative error, with sign: below 0 where the engine's number is too small."""
        return self.ours / self.measured - 1.0

    def said(self, value: float) -> str:
        """A value of this point's quantity with its unit."""
        if self.quantity.endswith("tokens_per_s_per_gpu"):
            return f"{units.human(value, 'count')} tokens/s"
        if family := {"flops_per_s": "flops_per_s", "share": "percent"}.get(self.quantity):
            return units.human(value, family)
        return units.in_unit(value, "s") if value >= 1 else units.human(value, "seconds")

    @property
    def off(self) -> str:
        """The error in words: "8 % fast"."""
        share = units.human(abs(self.error), "percent", 2)
        low, high = SLOWER if self.quantity.endswith("_s") and not self.quantity.endswith("per_s") else LOWER
        return "exact" if abs(self.error) < 5e-4 else f"{share} {low if self.error < 0 else high}"

    @property
    def cited(self) -> str:
        """Who published it, and where."""
        return f"{self.source.name}, {self.where}"

    @property
    def told(self) -> str:
        """What was measured, what the engine says, and how far apart they are."""
        said = f"{self.what}: measured {self.said(self.measured)}, we say {self.said(self.ours)}: {self.off}."
        return f"{said} {self.differs}" if self.differs else said


# -- quantities used only for these points -------------------------------------------------------------------
def product(case: dict) -> dict:
    """One matrix product, C[m, n] = A[m, k] B[k, n]."""
    chip = matmul.chip(catalog.gpu(case["gpu"]), case["precision"])
    size = float(case["m"]), float(case["n"]), float(case["k"])
    time_s = gemm_s(*size, chip.product)
    return {"flops_per_s": 2.0 * math.prod(size) / time_s}


def exchange(case: dict) -> dict:
    """Dispatch and combine of a layer of experts, one after the other."""
    found = experts.layer(
        catalog.model(case["catalog_model"]),
        float(case["tokens"]),
        float(case["ranks"]),
        experts.ExpertNode.of(catalog.node(case["node"])),
        float(case["nodes_at_most"]),
        case["once"],
        case["fp8"],
    )
    return {"time_s": experts.wires_s(found)}


def _served(case: dict) -> layout.Machine:
    """The GPU of a case, with products in the format that its weights have in the figures."""
    stored = {one.bytes: one for one in choice.FORMATS}
    return choice.served_on(catalog.gpu(case["gpu"]), stored.get(case["weight_bytes"], choice.FORMATS[0]))


def decode(case: dict) -> dict:
    """One decode step."""
    found = decoding.split(
        catalog.model(case["catalog_model"]),
        _served(case),
        float(case["tp"]),
        float(case["batch"]),
        float(case["context"]),
        case["kv_bytes"],
        case["weight_bytes"],
    )
    return {"time_s": found.total_s}


def layer(case: dict) -> dict:
    """A layer on tensor-parallel ranks, forward and backward."""
    at = tensor.layer(
        float(case["hidden"]), float(case["ffn_ratio"]), float(case["batch"]), float(case["seq"])
    )
    gpu = catalog.gpu(case["gpu"])
    rates = hardware.achieved_flops_per_s(gpu, case["share"]), interconnect.wires(gpu)
    shape = float(case["matrices"]), float(case["kv_share"])
    return {
        "time_s": tensor.layer_s(at.tokens, at.hidden, at.ffn, at.seq, float(case["ranks"]), *rates, *shape)
    }


def frontier(case: dict) -> dict:
    """The highest throughput per GPU of any split of a fleet, at a given time per token."""
    degrees = np.array([degree for degree in SPLITS if degree <= case["fleet"]])
    found = decoding.steady(
        catalog.model(case["catalog_model"]),
        _served(case),
        degrees[:, None],
        decoding.USERS[None, :],
        float(case["prompt"]),
        float(case["output"]),
        case["kv_bytes"],
        case["weight_bytes"],
    )
    users = np.where(found.tokens_per_s_per_gpu > 0, found.batch, 0.0)
    brings = decoding.best_within(np.array([case["token_s"]]), found.token_s, users, degrees)
    return {"tokens_per_s_per_gpu": brings[0]}


def closed_loop(case: dict) -> dict:
    """A replica with a fixed number of clients, each of which asks again as soon as it has its answer."""
    found = decoding.steady(
        catalog.model(case["catalog_model"]),
        _served(case),
        float(case["tp"]),
        float(case["batch"]),
        float(case["prompt"]),
        float(case["output"]),
        case["kv_bytes"],
        case["weight_bytes"],
    )
    return {"tokens_per_s_per_gpu": float(found.tokens_per_s_per_gpu), "token_s": float(found.token_s)}


def scaling(case: dict) -> dict:
    """The share of its speed that a GPU keeps when a step runs on more of them."""
    few, many = (_predict(_cases()[case[key]])["step_s"] for key in ("base_of", "case_of"))
    return {"share": few / many}


def pooled(case: dict) -> dict:
    """Tokens written per second and GPU by a pool that reads prompts and a pool that writes answers, both
    with spread experts. Each works as fast as it can and has the GPUs that its share of a day's tokens
    needs."""
    each = [
        validation.spread({**case, "wide": case[pool]})["tokens_per_s_per_gpu"]
        for pool in ("reads", "writes")
    ]
    gpus_s = case["fresh_tokens"] / each[0] + case["written_tokens"] / each[1]
    return {"tokens_per_s_per_gpu": case["written_tokens"] / gpus_s}


KINDS = {
    "product": product,
    "exchange": exchange,
    "decode": decode,
    "layer": layer,
    "frontier": frontier,
    "closed_loop": closed_loop,
    "scaling": scaling,
    "pooled": pooled,
}


def _predict(case: dict) -> dict:
    return (KINDS | validation.KINDS)[case["kind"]](case)


# -- measurements published in another form ------------------------------------------------------------------
def _measured(fields: dict, case: dict) -> tuple[str, float]:
    """(quantity, value) in the form that the figure draws."""
    if case.get("kind") == "scaling":
        few, many = (_cases()[case[key]]["measured"]["step_s"] for key in ("base_of", "case_of"))
        return "share", few / many
    if "dispatch_bytes_per_s" in case:
        return "time_s", _exchange_of_bandwidths_s(case)
    quantity, measured = next(iter(case["measured"].items()))
    if fields.get("as_step_s"):  # FLOP/s were published: compute the time with our count of FLOPs
        predicted = _predict(case)
        return "step_s", predicted["step_s"] * predicted[quantity] / measured
    if fields.get("as_token_s"):  # tokens per second of each GPU
        return "token_s", _token_s(case, measured)
    return quantity, measured


def _token_s(case: dict, tokens_per_s_per_gpu: float) -> float:
    return case["serving"]["batch"] / (tokens_per_s_per_gpu * case["serving"]["tp"])


def _exchange_of_bandwidths_s(case: dict) -> float:
    """DeepEP publishes bandwidths. Its tests count a row for each node that a token visits, including its
    own, and for every 128 values of 8 bits a 32-bit scale."""
    model, tokens = catalog.model(case["catalog_model"]), float(case["tokens"])
    per_node = float(catalog.node(case["node"]).gpus)
    limit = float(case["nodes_at_most"])
    values = (
        tokens * model.hidden * experts.visited(model.top_k, model.experts, case["ranks"], per_node, limit)
    )
    return values * ((1 + 4 / 128) / case["dispatch_bytes_per_s"] + 2 / case["combine_bytes_per_s"])


# -- reading -------------------------------------------------------------------------------------------------
class _Measured(TypedDict, total=False):
    time_s: float
    flops_per_s: float
    tokens_per_s_per_gpu: float


class _Conditions(TypedDict, total=False):
    """The figure's state in which a point was measured; for a choice, the keys of the options it applies
    to."""

    gpu: str
    node: str
    model: str | list[str]
    schedule: str
    precision: str
    recipe: str
    operation: str
    way: str
    gpus: float
    fleet: float
    ranks: float
    base: float
    bytes: float
    calls: float
    link_bytes_per_s: float
    tp: float
    batch: float
    context: float
    weights: float
    cache: float
    prompt: float
    output: float
    token_s: float
    tokens: float
    fp8: float
    batch_tokens: float
    seq: float
    narrow: float
    size: float
    step_tokens: float
    m: float
    n: float
    k: float
    hidden: float
    ffn_ratio: float
    matrices: float
    kv_share: float
    stages: float
    micro_batches: float
    chunks: float


class _Pool(TypedDict):
    """GPUs that share experts: each handles ``tokens`` a step, of prompts or with caches of this
    ``length``."""

    gpus: int
    prompts: bool
    tokens: int
    length: int


class _PointEntry(TypedDict):
    """A point as written in a file."""

    what: str
    at: _Conditions
    source: str
    where: str
    differs: NotRequired[str]
    case: NotRequired[str]  # a published case; otherwise the point is a case of its own:
    as_step_s: NotRequired[bool]
    as_token_s: NotRequired[bool]
    kind: NotRequired[str]
    measured: NotRequired[_Measured]
    case_of: NotRequired[str]
    base_of: NotRequired[str]
    op: NotRequired[str]
    harness: NotRequired[str]
    gpu: NotRequired[str]
    node: NotRequired[str]
    catalog_model: NotRequired[str]
    precision: NotRequired[str]
    ranks: NotRequired[int]
    per_node: NotRequired[int]
    bytes: NotRequired[float]
    m: NotRequired[int]
    n: NotRequired[int]
    k: NotRequired[int]
    tp: NotRequired[int]
    fleet: NotRequired[int]
    batch: NotRequired[int]
    context: NotRequired[float]
    prompt: NotRequired[float]
    output: NotRequired[float]
    token_s: NotRequired[float]
    weight_bytes: NotRequired[float]
    kv_bytes: NotRequired[float]
    tokens: NotRequired[float]
    nodes_at_most: NotRequired[float]
    once: NotRequired[bool]
    fp8: NotRequired[bool]
    dispatch_bytes_per_s: NotRequired[float]
    combine_bytes_per_s: NotRequired[float]
    hidden: NotRequired[float]
    ffn_ratio: NotRequired[float]
    seq: NotRequired[float]
    matrices: NotRequired[int]
    kv_share: NotRequired[float]
    share: NotRequired[float]
    reads: NotRequired[_Pool]
    writes: NotRequired[_Pool]
    fresh_tokens: NotRequired[float]
    written_tokens: NotRequired[float]


@lru_cache(1)
def _cases() -> dict[str, dict]:
    return {case["id"]: case for case in validation.load()}


def _case(key: str) -> dict:
    check.one_of(_cases(), case=key)
    return _cases()[key]


@lru_cache(1)
def figures() -> tuple[str, ...]:
    """The names of the files."""
    return tuple(sorted(file.stem for file in FIGURES.glob("*.toml")))


@lru_cache(None)
def points(figure: str) -> tuple[Point, ...]:
    """All points of one file."""
    check.one_of(figures(), figure=figure)
    return read(FIGURES / f"{figure}.toml")


def shares(figure: str, *gpus: str) -> list[float]:
    """Predicted over measured, for the points of a figure on these GPUs (on all, if none is named), lowest
    first."""
    found = [point for point in points(figure) if not gpus or point.at["gpu"] in gpus]
    return sorted(point.ours / point.measured for point in found)


def read(file: Path) -> tuple[Point, ...]:
    """The points of a file; ValueError with the line of anything wrong in it."""
    content = files.read(file)
    sources = {
        key: PointSource(**files.checked(file, f"sources.{key}", fields, PointSource), key=key)
        for key, fields in content.get("sources", {}).items()
    }
    named = {"source": lambda key: _named(sources, key), "case": _case}
    return tuple(
        _point(file, key, files.checked(file, f"points.{key}", fields, _PointEntry, **named))
        for key, fields in content.get("points", {}).items()
    )


def _named(sources: dict[str, PointSource], key: str) -> PointSource:
    check.one_of(sources, source=key)
    return sources[key]


def _point(file: Path, key: str, fields: dict) -> Point:
    case, kinds = fields.get("case", fields), KINDS | validation.KINDS
    if case.get("kind") not in kinds:
        place = files.where(file, f"points.{key}", "kind")
        raise ValueError(f"{place}: {key!r} must name a case, or be of a kind: {', '.join(kinds)}")
    quantity, measured = _measured(fields, case)
    return Point(
        key,
        fields["what"],
        case,
        quantity,
        float(measured),
        fields["at"],
        fields["source"],
        fields["where"],
        fields.get("differs", ""),
    )


# -- DeepSeek's own day of service (open-infra-index, Day 6) -------------------------------------------------
# A node of eight GPUs wrote 14,800 tokens a second when decoding and read 73,700 when prefilling. Of 608
# billion prompt tokens, 342 billion were found in a cache.
def _deepseek() -> tuple[Model, layout.Machine]:
    return catalog.model("deepseek-v3"), layout.machine(catalog.gpu("h800"), "fp8")


def deepseek_writes() -> float:
    """The engine's output rate for 88 users on each of 144 H800s, over that of DeepSeek's decoding nodes."""
    model, at = _deepseek()
    ours = 88 / wide.decode_s(model, at, tp=1, dp=144, batch=88, context=4989)
    return float(ours / (14.8e3 / 8))


def deepseek_reads() -> float:
    """The engine's rate for prompts of 4,096 tokens on each of 32 H800s, over the rate at which DeepSeek's
    prefill nodes read tokens that were not in the cache."""
    model, at = _deepseek()
    ours = 16384 / wide.prefill_s(model, at, tp=1, dp=32, tokens=16384, prompt=4096)
    return float(ours / (73.7e3 / 8 * 266 / 608))
