"""Runs that others measured, compared with the engine's predictions; the source of its accuracy figures.

``python -m engine.validation.runs FOLDER`` (part of ``make calibrate``) reads training_runs.csv and
collectives.csv, computes the engine's prediction for each row whose settings are known, adds the published
cases of this repository, and writes ``calibration/bands.toml``: the bands, the errors by axis, and the ranges
covered. No row is kept.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine import catalog, validation
from engine.calibration import bands, known, own_runs
from engine.calibration.fit import judge, tables
from engine.calibration.fit.kinds import KINDS
from engine.calibration.fit.report import HEAD, toml
from engine.calibration.fit.solver import rounded
from engine.catalog.models import Model, described
from engine.catalog.recipes import Recipe
from engine.catalog.software import TrainingSoftware, overlaps, unsaid
from engine.frameworks.megatron import reader
from engine.mechanism import interconnect, memory
from engine.serving import inference
from engine.step import layout
from engine.step.layout import Estimate, Job, Layout
from engine.validation import served_runs, served_steps, traced_runs
from engine.validation.served_runs import ServedRun

TABLE = "training_runs.csv"
FEWEST = 12  # minimum number of runs for a separate band
TAIL = 0.1  # the share of the runs that an 80 % band leaves out on either side
HOLDS = 0.8  # … and what it must hold for on families that it was not made from
WIDER = tuple(1.0 + part / 20.0 for part in range(61))  # factors to try, up to 4
COMMON = 3.0  # the weight of the common band in the band of a class, in families
# The table's name for a number format, and the format of the matrix products in the engine
PRECISIONS = {"bf16": "bf16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
BLOCKS = ("mxfp8", "nvfp4")  # one scale for each few values of a row
ROWWISE = "fp8-rowwise"  # one scale for each row: separate kernels compute it
# Runs of the table that are also published cases of this repository, with a board described there
PUBLISHED = ("torchtitan async TP",)
# The one run of the table that fitted a constant, launch_costs.EXPERT_KERNELS: model, GPU, release
FITTED = (("qwen3-30b-a3b", "h100-sxm", "26.06"),)
BRIDGE = "megatron-bridge"
# The table's sources, and the program of the catalogue that ran what each published
PROGRAMS = {
    "AI-Hypercomputer/maxtext": "maxtext",
    "AI-Hypercomputer/tpu-recipes": "maxtext",
    "AMD-AGI/Primus": "primus",
    "NVIDIA-NeMo/Megatron-Bridge": BRIDGE,
    "mlcommons/training_results_v5.0": "mlperf-5.0",
    "pytorch/torchtitan": "torchtitan-2025-06",
}
COLLECTIVE = next(kind for kind in KINDS if kind.name == "collective")
WORST = 10  # runs that are named
OWN_RUNS = (1, 2, 3, 5)  # of a cluster that are known
SETS = 1000  # of them: all that there are, or as many drawn where there are more
LESS = 0.9  # of the error: what known runs must leave of it if they are to correct an estimate
AXES = ("precision", "tp", "pp", "cp", "ep", "zero", "micro_batch", "gpus")
UNAXED = ("size",)  # of which every run has its own


class NotModelled(ValueError):
    """A run uses something that the engine does not model, or its source leaves something open."""


BARE = bands.BARE


@dataclass(frozen=True)
class JudgedRun:
    """One row: what was run, and the ratio of measured to predicted."""

    what: str  # step, memory, latency, throughput, collective, or BARE
    kind: str  # the class whose band it belongs to
    family: str
    axes: dict[str, str]
    ratio: float  # measured over predicted
    fitted: bool = False
    mfu: float = 0.0  # of a step, as measured
    said: Estimate | None = None  # of a step
    release: str = ""  # of the software, where the table has it
    told: bool = (
        True  # whether its source says what it recomputed, without which its memory is anybody's guess
    )
    case: str = ""  # the name of a published case

    @property
    def stranger(self) -> tuple[str, str]:
        """The source and the model of a run: what is left out together when a band is checked, since the runs
        of one source on one model are wrong in the same way."""
        return self.family, self.said.model.key if self.said else ""


@dataclass
class JudgedRuns:
    """All runs that the engine has a prediction for, and the reasons why it has none for the others."""

    runs: list[JudgedRun] = field(default_factory=list)
    served: list[ServedRun] = field(default_factory=list)
    traced: dict[str, dict] = field(default_factory=dict)
    refused: Counter = field(default_factory=Counter)
    times: dict[str, float] = field(default_factory=dict)  # of a server's program, fitted on all its rows


# -- reading -------------------------------------------------------------------------------------------------
def read(folder: Path) -> list[dict[str, str]]:
    """The table's rows; a ValueError with file, line and fault if the file is not such a table."""
    path = Path(folder) / TABLE
    if not path.is_file():
        raise ValueError(f"{path}: the folder of measurements must hold {TABLE}")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    asked = {"model", "gpu", "tp", "pp", "vp", "cp", "ep", "zero", "global_batch", "seq_tokens", "step_s"}
    asked |= {"recompute", "dispatcher", "tp_overlap", "a2a_overlap", "fused", "cuda_graph"}
    asked |= {"attention_precision"}
    asked |= {"mtp_layers", "pipeline_layout", "offload", "release", "source", "optimizer"}
    missing = sorted(asked - set(rows[0] if rows else ()))
    if missing:
        raise ValueError(f"{path}:1: the header must name {', '.join(missing)}")
    for line, row in enumerate(rows, start=2):
        for name in ("step_s", "gpus", "global_batch", "seq_tokens"):
            if row[name] and not _is_positive(row[name]):
                raise ValueError(
                    f"{path}:{line}: {name} must be a number above 0 or empty; got {row[name]!r}"
                )
    return rows


def _is_positive(text: str) -> bool:
    try:
        return float(text) > 0.0
    except ValueError:
        return False


def model_of(text: str) -> Model:
    """A model of the catalogue, or ``name (layers=32;hidden=4096;…)``."""
    name, _, shape = text.partition(" (")
    if shape:
        fields = dict(pair.split("=") for pair in shape.rstrip(")").split(";"))
        numbers: dict[str, Any] = {key: int(value) for key, value in fields.items()}
        return described(key=name, name=name, gated=True, tied=False, **numbers)
    if name not in catalog.all_models():
        raise NotModelled(f"model {name}")
    return catalog.model(name)


def estimate_of(row: dict[str, str]) -> Estimate:
    """The engine's prediction for a run; NotModelled with the reason where there is none."""
    if row["task"] != "pretrain":
        raise NotModelled(f"task {row['task']}")
    if not (row["global_batch"] and row["seq_tokens"] and row["step_s"] and row["micro_batch"]):
        raise NotModelled("batch, sequence or step not stated")
    if row["precision"] == ROWWISE:
        raise NotModelled("fp8 with a scale for each row")
    if row["gpu"] not in catalog.all_gpus():
        raise NotModelled(f"gpu {row['gpu']}")
    if row["precision"] not in PRECISIONS:
        raise NotModelled("precision not stated")
    if "host" in row["offload"]:
        raise NotModelled("offload of activations to the host")
    stages, chunks = int(row["pp"]), int(row["vp"] or 1)
    at = layout.machine(catalog.gpu(row["gpu"]), PRECISIONS[row["precision"]], int(row["nvlink_domain"]))
    job = Job(
        global_batch=int(row["global_batch"]),
        seq=int(row["seq_tokens"]),
        recipe=narrow_moments() if "moments bfloat16" in row["optimizer"] else None,
        software=software_of(row),
        imbalance=1.0 if "balanced" in row["note"] else Job.imbalance,
        mtp=int(row["mtp_layers"] or unsaid_of(row).get("mtp", 0)),
    )
    interleaved = stages > 1 and chunks > 1
    model = model_of(row["model"])
    first, last = ends(row["pipeline_layout"], model.depth, stages)
    split = Layout(
        gpus=int(row["gpus"]),
        tp=int(row["tp"]),
        pp=stages,
        cp=int(row["cp"]),
        ep=int(row["ep"]),
        zero=int(row["zero"] or 1),
        micro_batch=int(row["micro_batch"]),
        recompute=recomputed(row["recompute"]),
        schedule="interleaved" if interleaved else "1f1b",
        interleave=chunks if interleaved else 1,
        expert_tp=int(row["etp"] or 1),
        first_layers=first,
        last_layers=last,
    )
    try:
        return layout.estimate(model, at, job, split)
    except ValueError as error:
        raise NotModelled(f"layout: {error}") from None


def software_of(row: dict[str, str]) -> TrainingSoftware:
    """The program of a run, with what its row says that the run chose."""
    by = catalog.training_software(PROGRAMS[row["source"]])
    chosen: dict[str, object] = dict(
        overlaps=overlaps(
            data=row["grad_overlap"] != "0",
            tensor=row["tp_overlap"] == "1",
            experts=row["a2a_overlap"] == "1",
        ),
        dispatch="node" if sends_once(row) else "choice",
        launches="graphed" if row["cuda_graph"] == "whole step" else "python",
        loss="fused" if "cross-entropy" in row["fused"] else "plain",
        attention="fused-8bit" if row["attention_precision"] == "fp8" else "fused",
        scales="blocks" if row["precision"] in BLOCKS else "tensor",
    )
    if by.key == BRIDGE:
        chosen["saves_fp8"] = PRECISIONS[row["precision"]] == "fp8"
        chosen["experts"] = "fused" if "grouped-MLP" in row["fused"] else "operators"
    return replace(by, **chosen)


def recomputed(words: str) -> str:
    """The name in a layout: TPU recipes name what a full recomputation keeps, Megatron's name the modules."""
    if words.startswith("full"):
        return "full"
    unknown = [word for word in words.split("+") if word and word not in ("none", *memory.MODULES)]
    if unknown:
        raise NotModelled(f"recompute {words}")
    return words or "none"


def sends_once(row: dict[str, str]) -> bool:
    """Whether a token crosses once to each node. By default Megatron-Core sends one row for each choice
    by AllToAll. That dispatcher needs the number of rows in Python, so a graph of the whole step contains
    another one, which sends once. What the table has of it was read on a machine without a GPU
    (catalog/unsaid.toml)."""
    if row["dispatcher"] not in ("alltoall", "") or row["cuda_graph"] == "whole step":
        return True
    return unsaid_of(row).get("dispatch") == "node"


def unsaid_of(row: dict[str, str]) -> Mapping[str, Any]:
    """What the recipes of a run's program did where its row leaves it open."""
    return unsaid(PROGRAMS[row["source"]], row["release"], row["model"], row["gpu"]) or {}


def narrow_moments() -> Recipe:
    """Mixed-precision Adam whose two moments take 2 bytes each."""
    wide = catalog.recipe("bf16-adam")
    name = f"{wide.name}, 16-bit moments"
    return replace(wide, key="bf16-adam-narrow", name=name, momentum_bytes=2.0, variance_bytes=2.0)


def ends(words: str, layers: int, stages: int) -> tuple[int, int]:
    """Layers of the first and the last stage, if they differ from the others; zeros for an even split.
    Chunks are dealt out in turn: a stage has every p-th of them. Bars part them in Megatron's own words, in
    which t is a layer."""
    if "take one layer slot each" in words:
        return (layers + 2) // stages - 1, (layers + 2) // stages - 1
    if not words:
        return 0, 0
    cut = [int(part) for part in words.split("/")] if "/" in words else reader.chunk_layers(words)
    return sum(cut[::stages]), sum(cut[stages - 1 :: stages])


# -- the engine's predictions --------------------------------------------------------------------------------
def of_table(rows: list[dict[str, str]], found: JudgedRuns) -> None:
    """Add the training runs of a table, of which one was used for fitting."""
    for row in rows:
        if row["family"] in PUBLISHED and row["precision"] != ROWWISE:
            continue
        try:
            said = estimate_of(row)
        except NotModelled as error:
            found.refused[str(error)] += 1
            continue
        axes = {"precision": row["precision"]} | _axes(said)
        ratio = float(row["step_s"]) / said.step_s
        mfu = said.mfu() / ratio
        told = bool(row["recompute"])
        fitted = (row["model"], row["gpu"], row["release"]) in FITTED
        run = JudgedRun(
            "step", _kind(said), row["family"], axes, ratio, fitted, mfu, said, row["release"], told
        )
        found.runs.append(run)


def of_collectives(folder: Path, found: JudgedRuns) -> None:
    """Add the collectives inside a box that a table marks for use, on GPUs of the catalogue; only sizes that
    were not used for fitting."""
    rows = tables.read(folder, "collectives.csv")
    rows = rows.where(judge.tenths(rows, COLLECTIVE.shape) >= judge.FIT)
    for system, op, ranks, nodes, size, time_s, main in zip(
        *(rows[name] for name in ("system", "op", "ranks", "nodes", "bytes", "time_s", "main"))
    ):
        gpu = known.SYSTEMS[system]["gpu"]
        if main != "1" or nodes > 1 or gpu not in catalog.all_gpus():
            continue  # the network between nodes is not stated, so there is no prediction
        at = layout.machine(catalog.gpu(gpu))
        per_node = int(ranks // nodes)
        said = interconnect.collective(op, gpu, at.wires, int(ranks), float(size), per_node)
        found.runs.append(
            _collective(
                gpu, op, int(ranks), per_node, size, time_s / said.time_s, "sweeps inside a node", False
            )
        )


def of_cases(found: JudgedRuns) -> None:
    """Add the published cases of this repository that timed a step, a collective or a served model, or that
    read a GPU's memory."""
    for case in validation.load():
        for row in (
            validation.rows_of(case) if case["kind"] in ("step", "serving", "wide", "collective") else ()
        ):
            if isinstance(row.measured, bool) or not row.predicted:
                continue
            ratio = row.measured / row.predicted
            if case["kind"] == "collective":
                size, per_node = case["bytes"], int(case["per_node"])
                found.runs.append(
                    _collective(
                        case["gpu"],
                        case["op"],
                        int(case["ranks"]),
                        per_node,
                        size,
                        ratio,
                        row.group,
                        row.fitted,
                    )
                )
            elif case["kind"] == "wide":
                found.runs.append(_spread(case, row.group, ratio, row.fitted))
            elif case["kind"] == "serving":
                what = "throughput" if "tokens_per_s" in row.quantity else "latency"
                kind = bands.FIRST if row.quantity == "ttft_s" else "all"
                axes = {name: str(case["serving"][name]) for name in ("tp", "batch")}
                axes |= {
                    "generation": bands.generation(case["gpu"]),
                    "experts": "yes" if validation.model_of(case).experts else "no",
                }
                found.runs.append(JudgedRun(what, kind, row.group, axes, ratio, row.fitted, case=case["id"]))
                if what == "latency" and not case.get("software"):
                    found.runs.append(JudgedRun(BARE, kind, row.group, axes, ratio, row.fitted))
            elif row.quantity in ("step_s", "total_bytes"):
                said = validation.estimate_of(case)
                axes = {"precision": said.at.precision} | _axes(said)
                what, kind = ("step", _kind(said)) if row.quantity == "step_s" else ("memory", "all")
                mfu = said.mfu() / ratio if what == "step" else 0.0
                timed = said if what == "step" else None
                found.runs.append(
                    JudgedRun(what, kind, row.group, axes, ratio, row.fitted, mfu, timed, case=case["id"])
                )


def of_steps(folder: Path, found: JudgedRuns) -> dict[str, float]:
    """Add the steps of a vLLM server: by its program, fitted without the model in question, and by kernels,
    as an answer without a program is meant. Returns what all rows say of the program."""
    rows = served_steps.read(folder)
    for row, ratio in zip(rows, served_steps.ratios(rows)):
        axes = {"tp": str(row.tp), "batch": str(row.batch), "experts": "yes" if row.experts else "no"}
        axes["generation"] = bands.generation(row.gpu)
        kind = inference.server_kind(served_steps.PROGRAM, row.experts)
        found.runs.append(JudgedRun("latency", kind, row.family, axes, ratio))
        bare = row.measured_s / row.said.decode.total_s
        found.runs.append(JudgedRun(BARE, "all", row.family, axes, bare))
    return served_steps.shipped(rows)


def _spread(case: dict, family: str, ratio: float, fitted: bool) -> JudgedRun:
    """Add the run of a server whose experts are spread over many GPUs, each with its own batch."""
    batch = 0 if case["wide"]["prompts"] else case["wide"]["tokens"]
    axes = {"tp": "1", "batch": str(batch), "experts": "yes"}
    axes["generation"] = bands.generation(case["gpu"])
    return JudgedRun("throughput", "all", family, axes, ratio, fitted)


def _collective(
    gpu: str, op: str, ranks: int, per_node: int, size: float, ratio: float, family: str, fitted: bool
) -> JudgedRun:
    axes = {"gpu": gpu, "op": op, "ranks": str(ranks), "size": f"{size:.0f}"}
    return JudgedRun("collective", bands.collective_kind(ranks > per_node, size), family, axes, ratio, fitted)


def _kind(said: Estimate) -> str:
    return bands.kind(bands.generation(said.at.gpu.key), bool(said.model.experts))


def _axes(said: Estimate) -> dict[str, str]:
    return {name: str(getattr(said.layout, name)) for name in AXES[1:]}


# -- judging -------------------------------------------------------------------------------------------------
def summary(ratios: list[float]) -> dict[str, float]:
    """A summary of measured over predicted: rows, mean error without and with sign, median error, 10th and
    90th percentile."""
    ratio = np.array(ratios)
    error = 1.0 / ratio - 1.0
    low, high = _quantiles(ratio, TAIL)
    return dict(
        runs=len(ratio),
        mean_error=round(float(np.mean(np.abs(error))), 4),
        mean_signed=round(float(np.mean(error)), 4),
        median=round(float(np.median(np.abs(error))), 4),
        p10=low,
        p90=high,
    )


def _quantiles(ratio: np.ndarray, tail: float) -> list[float]:
    """The k-th of n from either end, k = ⌊tail · (n + 1)⌋ and at least 1: wide enough for a new run even if
    there are few."""
    ordered = np.sort(ratio)
    k = max(1, int(tail * (len(ordered) + 1)))
    return [rounded(float(ordered[k - 1])), rounded(float(ordered[-k]))]


def judged(found: JudgedRuns) -> dict:
    """The contents of bands.toml."""
    fair = [run for run in found.runs if not run.fitted]
    steps = [run for run in fair if run.what == "step"]
    kinds = _grouped(steps, lambda run: run.kind)
    return {
        "band": {what: _bands(runs) for what, runs in _grouped(fair, lambda run: run.what).items()},
        "beyond": {what: _beyond(runs) for what, runs in _grouped(fair, lambda run: run.what).items()},
        "goal": _goals(fair),
        "axis": _axes_of_all(fair),
        "apart": {"layouts": _apart(steps)},
        "own": {what: _own(runs) for what, runs in _grouped(fair, lambda run: run.what).items()},
        "worst": _worst(fair),
        "regret": _regret(steps),
        "ran": _ran([run for run in found.runs if run.said and run.told]),
        "family": {
            what: {
                name: _summary(members) for name, members in _grouped(runs, lambda run: run.family).items()
            }
            for what, runs in _grouped(fair, lambda run: run.what).items()
        },
        "seen": {kind: _seen(runs) for kind, runs in kinds.items()}
        | {"serving": _seen_serving([run for run in fair if run.what in ("latency", "throughput")])},
        "served": served_runs.summaries(found.served, summary),
        "traced": found.traced,
        "program": {served_steps.PROGRAM: {name: rounded(value) for name, value in found.times.items()}},
        "refused": {"runs": dict(sorted(found.refused.items()))},
    }


def _summary(runs: list[JudgedRun]) -> dict[str, float]:
    return summary([run.ratio for run in runs])


def _grouped(runs: list[JudgedRun], name: Callable[[JudgedRun], Any]) -> dict:
    groups: dict = {}
    for run in runs:
        groups.setdefault(name(run), []).append(run)
    return dict(sorted(groups.items()))


def _bands(runs: list[JudgedRun]) -> dict[str, dict[str, float]]:
    """A band for each class with enough runs, and one for all.

    Runs of one source on one model, a family, have similar errors, so a family counts once, however many runs
    it has, and a band is checked on families that it was not made from. The ends are the 10th and 90th
    percentile, drawn apart by the least factor with which the bands of the others hold for ``HOLDS`` of the
    family that is left out, in the mean over families (``covers``; ``rows`` is the share of the runs).
    """
    said = {}
    kinds = _grouped(runs, lambda run: run.kind)
    for name, members in (
        {"all": runs} | kinds
    ).items():  # where a class has that name, it is what "all" means
        if len(members) < FEWEST and name != "all":
            continue
        common = members if name == "all" else runs
        wide, held = _widened(members, common)
        covers, rows = _share_of_families(held), _share(held)
        low, high = _band(members, common, wide)
        said[name] = _summary(members) | dict(
            low=rounded(low),
            high=rounded(high),
            families=len(_families(members)),
            wide=wide,
            covers=round(covers, 3),
            rows=round(rows, 3),
        )
    return said


def _beyond(runs: list[JudgedRun]) -> float:
    """How many times wider, in logarithms, a band must be where something lies outside all that it was made
    from: the least factor with which the bands made without a whole class hold for ``HOLDS`` of the class, in
    the mean over classes."""
    kinds = _grouped(runs, lambda run: run.kind)
    if len(kinds) < 2:
        return 1.0
    wide = WIDER[0]
    for wide in WIDER:
        held = [
            np.mean([low <= run.ratio <= high for run in members])
            for kind, members in kinds.items()
            for low, high in (_band([], [run for run in runs if run.kind != kind], wide),)
        ]
        if np.mean(held) >= HOLDS:
            break
    own, _ = _widened(runs, runs)
    return round(max(1.0, wide / own), 2)


def _families(runs: list[JudgedRun]) -> dict[tuple[str, str], list[JudgedRun]]:
    return _grouped(runs, lambda run: run.stranger)


Held = list[tuple[JudgedRun, bool]]  # each run, and whether a band held that its family had no part in


def _widened(members: list[JudgedRun], everybody: list[JudgedRun]) -> tuple[float, Held]:
    """The factor of ``_bands``, and for each run whether the bands then hold for it."""
    families = _families(members)
    others = [
        ([run for run in members if run.stranger != name], [run for run in everybody if run.stranger != name])
        for name in families
    ]
    wide, held = WIDER[0], []
    for wide in WIDER:
        held = []
        for left, (own, common) in zip(families.values(), others):
            low, high = _band(own, common, wide) if common else (0.0, np.inf)
            held += [(run, bool(low <= run.ratio <= high)) for run in left]
        if _share_of_families(held) >= HOLDS:
            break
    return wide, held


def _share(held: Held) -> float:
    """The share of the runs for which the bands hold."""
    return float(np.mean([inside for _, inside in held]))


def _share_of_families(held: Held) -> float:
    """The same share, in the mean over families."""
    families = _grouped_pairs(held, lambda run: run.stranger)
    return float(np.mean([_share(each) for each in families.values()]))


def _grouped_pairs(held: Held, name: Callable[[JudgedRun], Any]) -> dict[Any, Held]:
    groups: dict[Any, Held] = {}
    for run, inside in held:
        groups.setdefault(name(run), []).append((run, inside))
    return groups


def _band(members: list[JudgedRun], everybody: list[JudgedRun], wide: float) -> tuple[float, float]:
    """The ends of a class, in logarithms drawn towards those of all runs of the kind where it has few
    families, and apart by a factor."""
    low, high = _ends(everybody)
    if members:
        count = len(_families(members))
        weight = count / (count + COMMON)
        own = _ends(members)
        low, high = (weight * mine + (1.0 - weight) * every for mine, every in zip(own, (low, high)))
    middle, half = 0.5 * (low + high), 0.5 * (high - low) * wide
    return float(np.exp(middle - half)), float(np.exp(middle + half))


def _ends(runs: list[JudgedRun]) -> tuple[float, float]:
    """The 10th and 90th percentile of the logarithms, in which each family has the same weight."""
    families = _families(runs).values()
    error = np.log([run.ratio for family in families for run in family])
    weight = np.array([1.0 / len(family) for family in families for _ in family])
    order = np.argsort(error)
    place = np.cumsum(weight[order]) - 0.5 * weight[order]
    low, high = np.interp([TAIL, 1.0 - TAIL], place / np.sum(weight), error[order])
    return float(low), float(high)


# what the goals of ``accuracy`` are stated for -> the classes of runs that count
GOALS = {
    "hopper and ampere dense": ("step", ("hopper dense", "ampere dense")),
    "hopper and ampere moe": ("step", ("hopper moe", "ampere moe")),
    "blackwell": ("step", ("blackwell dense", "blackwell moe")),
    "tpu": ("step", ("tpu dense", "tpu moe")),
    "memory": ("memory", ("all",)),
    "collective from 1 MB": ("collective", ("inside a node, from 1 MB", "across nodes, from 1 MB")),
    "collective below 1 MB": ("collective", ("inside a node, below 1 MB", "across nodes, below 1 MB")),
    "latency": ("latency", ("all", bands.FIRST)),
    "first token": ("latency", (bands.FIRST,)),
    "latency, vLLM of 2025, dense": ("latency", (inference.server_kind(served_steps.PROGRAM, False),)),
    "latency, vLLM of 2025, experts": ("latency", (inference.server_kind(served_steps.PROGRAM, True),)),
    "throughput": ("throughput", ("all",)),
}


def _goals(runs: list[JudgedRun]) -> dict:
    asked = {
        name: [run for run in runs if run.what == what and run.kind in kinds]
        for name, (what, kinds) in GOALS.items()
    }
    return {name: _summary(members) for name, members in asked.items() if members}


def _axes_of_all(runs: list[JudgedRun]) -> dict[str, dict]:
    """Kind of run → axis and value → error, and the share of these runs for which the kind's band holds."""
    said = {}
    for what, members in _grouped(runs, lambda run: run.what).items():
        for kind, own in _grouped(members, lambda run: run.kind).items():
            name = kind if what == "step" else f"{what}: {kind}"
            said[name] = _by_axis(_widened(own, own if kind == "all" else members)[1])
    return said


def _by_axis(held: Held) -> dict:
    """Axis and value → error, so that errors that cancel in a mean become visible, and how often the band
    holds there."""
    said = {}
    for axis in held[0][0].axes:
        if axis in UNAXED:
            continue
        groups = _grouped_pairs(held, lambda run, axis=axis: run.axes[axis])
        for value in sorted(groups, key=lambda text: (len(text), text)):
            runs = [run for run, _ in groups[value]]
            said[f"{axis} {value}"] = _summary(runs) | {"covers": round(_share(groups[value]), 3)}
    return said


def _apart(runs: list[JudgedRun]) -> dict:
    """How much the errors of two layouts of one job differ: ratios relative to the median of their family and
    precision, where the layouts differ."""
    ratios = []
    for members in _grouped(runs, lambda run: (run.family, run.axes["precision"])).values():
        if len({tuple(run.axes[name] for name in ("tp", "pp", "cp", "ep", "zero")) for run in members}) > 1:
            middle = float(np.median([run.ratio for run in members]))
            ratios += [run.ratio / middle for run in members]
    return summary(ratios) if ratios else {}


def _worst(runs: list[JudgedRun]) -> dict[str, dict[str, Any]]:
    """The runs that the engine misses most, one of each family, farthest first."""
    far: dict[str, JudgedRun] = {}
    for run in sorted(runs, key=lambda run: -abs(np.log(run.ratio))):
        if run.what != BARE:
            far.setdefault(run.family, run)
    return {
        str(place): {"what": run.what, "family": run.family, "run": _told(run), "ratio": rounded(run.ratio)}
        for place, run in enumerate(list(far.values())[:WORST], 1)
    }


def _told(run: JudgedRun) -> str:
    """A run in words: a published case by its name, any other by model, machine and layout."""
    if run.case:
        return run.case
    if said := run.said:
        words = f"{said.model.name} on {said.layout.gpus} × {said.at.gpu.key}, {said.at.precision}"
        return ", ".join(filter(None, (words, layout.written(said.layout), run.release)))
    axes = {"gpu": run.axes.get("generation", "")} | run.axes
    return ", ".join(
        f"{name} {value}" for name, value in axes.items() if name not in ("experts", "generation")
    )


def _own(runs: list[JudgedRun]) -> dict[str, Any]:
    """How runs of one's own help (``calibration.own_runs``). A cluster is a source and a kind of GPU. The
    spreads are standard deviations of logarithms between clusters and within one. With one, two, … of a
    cluster's runs known, ``error`` is the mean error of its others, ``without`` what it was before, and
    ``covers`` the share that the bands hold; each cluster is judged by the spreads of the other sources.
    ``carries_from`` is the least of these numbers if with each of them the bands hold and the error falls by
    a tenth; 0 if with one they do not, or if there are too few clusters."""
    clusters = {
        name: np.log([run.ratio for run in members])
        for name, members in _grouped(runs, _cluster).items()
        if len(members) > 2
    }
    if len(clusters) < 3:
        return {}
    said: dict[str, Any] = dict(zip(("between", "within"), map(rounded, _spreads([*clusters.values()])[1:])))
    tried = [_with_own(clusters, count) for count in OWN_RUNS]
    bears = len(clusters) >= FEWEST and all(
        0.75 <= one["covers"] <= 0.92 and one["error"] < LESS * one["without"] for one in tried if one
    )
    said["clusters"] = len(clusters)
    said["carries_from"] = OWN_RUNS[0] if bears else 0
    return said | {f"with {count}": one for count, one in zip(OWN_RUNS, tried) if one}


def _cluster(run: JudgedRun) -> tuple[str, str]:
    """Whose machines a run ran on."""
    gpu = run.said.at.gpu.key if run.said else run.axes.get("generation", run.axes.get("gpu", ""))
    return run.family, gpu


def _spreads(clusters: list[np.ndarray]) -> tuple[float, float, float]:
    """The middle of the clusters' means, and the standard deviations between and within clusters, each
    cluster counted once."""
    means = np.array([np.mean(each) for each in clusters])
    within = float(np.mean([np.var(each, ddof=1) for each in clusters]))
    blur = within * float(np.mean([1.0 / len(each) for each in clusters]))
    between = max(float(np.var(means, ddof=1)) - blur, 0.05 * within)
    return float(np.mean(means)), between**0.5, within**0.5


def _with_own(clusters: dict[tuple[str, str], np.ndarray], count: int) -> dict[str, float]:
    """The error and the bands of the other runs of a cluster, of which ``count`` are known, in the mean over
    which those are."""
    found = []
    for name, errors in clusters.items():
        others = [each for other, each in clusters.items() if other[0] != name[0]]
        if len(errors) < count + 2 or len(others) < 2:
            continue
        middle, between, within = _spreads(others)
        off = own_runs.HALF * (between**2 + within**2) ** 0.5
        share = between**2 / (between**2 + within**2)
        held, error, without = [], [], []
        for own, rest in _parted(errors, count):
            at = own_runs.posterior(middle, off, share, own)
            held.append(np.mean(np.abs(rest - at[0]) <= at[1]))
            error.append(np.mean(np.abs(np.exp(at[0] - rest) - 1.0)))
            without.append(np.mean(np.abs(np.exp(-rest) - 1.0)))
        found.append([np.mean(held), np.mean(error), np.mean(without)])
    if not found:
        return {}
    covers, error, without = np.mean(found, axis=0)
    return dict(
        clusters=len(found), covers=round(covers, 3), error=round(error, 4), without=round(without, 4)
    )


def _parted(errors: np.ndarray, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each set of ``count`` errors and the others, or ``SETS`` of them by lot. The lot hangs neither on the
    order of the errors nor on other clusters, because a gain near its limit must not."""
    errors = np.sort(errors)
    everyone = range(len(errors))
    if math.comb(len(errors), count) <= SETS:
        chosen = [list(each) for each in itertools.combinations(everyone, count)]
    else:
        lot = np.random.default_rng(count)
        chosen = [lot.permutation(len(errors))[:count] for _ in range(SETS)]
    for each in chosen:
        yield errors[each], np.delete(errors, each)


class _Choice(NamedTuple):
    """What a choice of one job's layout costs, as a share of its fastest: the engine's, the worst, by lot."""

    regret: float
    spread: float
    chance: float
    tied: bool
    layouts: int


def _regret(runs: list[JudgedRun]) -> dict[str, dict]:
    """Family → what the engine's choice would have cost, over the jobs that were timed in two or more
    layouts: the measured time of the layout predicted fastest over that of the fastest measured, minus one.

    Runs are one job if model, machine, GPUs, work and software, family and release are the same, so that the
    layout alone differs. ``spread`` is the slowest measured over the fastest, minus one: the regret of the
    worst choice. ``chance`` is the mean regret of a layout drawn by lot. ``tied`` counts the jobs whose
    fastest layout the engine calls a tie with its own.
    """
    jobs: dict[tuple, dict[Layout, list[tuple[float, float]]]] = {}
    for run in runs:
        if said := run.said:
            software = (run.family, run.release, run.axes["precision"], said.job)
            job = (*software, said.model, said.at, said.layout.gpus)
            times = jobs.setdefault(job, {}).setdefault(said.layout, [])
            times.append((said.step_s, said.step_s * run.ratio))
    judged: dict[str, list[_Choice]] = {}
    for job, layouts in jobs.items():
        if len(layouts) > 1:
            means = [tuple(np.mean(times, axis=0)) for times in layouts.values()]
            chosen, best = min(means), min(means, key=lambda each: each[1])
            lost = [measured / best[1] - 1.0 for _, measured in means]
            tied = bool(best[0] <= chosen[0] * _tie(runs))
            choice = _Choice(chosen[1] / best[1] - 1.0, max(lost), float(np.mean(lost)), tied, len(means))
            judged.setdefault(job[0], []).append(choice)
    everything = [each for members in judged.values() for each in members]
    groups = {"all": everything} if everything else {}
    return {
        name: dict(
            jobs=len(members),
            layouts=sum(each.layouts for each in members),
            mean=round(float(np.mean([each.regret for each in members])), 4),
            worst=round(float(max(each.regret for each in members)), 4),
            spread=round(float(np.mean([each.spread for each in members])), 4),
            chance=round(float(np.mean([each.chance for each in members])), 4),
            tied=sum(each.tied for each in members),
        )
        for name, members in (groups | dict(sorted(judged.items()))).items()
    }


def _tie(runs: list[JudgedRun]) -> float:
    """``bands.tie``, computed from these runs."""
    apart = _apart(runs)
    return apart["p90"] / apart["p10"]


def _ran(runs: list[JudgedRun]) -> dict[str, dict]:
    """Family → for how many of the runs that did run the engine says that they fit, and the largest ratio of
    predicted memory to the memory that it counts on."""
    full = {
        name: [run.said.memory_bytes for run in members if run.said]
        for name, members in ({"all": runs} | _grouped(runs, lambda run: run.family)).items()
    }
    return {
        name: dict(
            runs=len(members),
            fit=sum(each["total"] <= each["capacity"] for each in members),
            worst=round(max(each["total"] / each["capacity"] for each in members), 3),
        )
        for name, members in full.items()
        if members
    }


def _seen(runs: list[JudgedRun]) -> dict[str, Any]:
    """What the runs of a class cover: the smallest and largest value of each axis, the formats, and the
    highest MFU measured in each."""
    counted = _grouped(runs, lambda run: PRECISIONS.get(run.axes["precision"], run.axes["precision"]))
    spans = {
        name: [min(int(run.axes[name]) for run in runs), max(int(run.axes[name]) for run in runs)]
        for name in AXES[1:]
    }
    most = {name: rounded(max(run.mfu for run in members)) for name, members in counted.items()}
    return {"precision": list(counted), **spans, "most_mfu": most}


def _seen_serving(runs: list[JudgedRun]) -> dict[str, list]:
    """What the served models cover: generations, dense or with experts, tensor-parallel ranks; a batch of 0
    means a full server."""
    if not runs:
        return {}
    said: dict[str, list] = {
        name: sorted({run.axes[name] for run in runs}) for name in ("generation", "experts")
    }
    return said | {
        name: [min(int(run.axes[name]) for run in runs), max(int(run.axes[name]) for run in runs)]
        for name in ("tp", "batch")
    }


def main(arguments: list[str] | None = None) -> int:
    """Read, predict, judge, write; print the classes."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.validation.runs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help=f"with {TABLE} and collectives.csv")
    parser.add_argument("--into", type=Path, default=bands.PLACE, help="the TOML file that is written")
    options = parser.parse_args(arguments)
    found = JudgedRuns()
    try:
        of_table(read(options.folder), found)
        of_collectives(options.folder, found)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if (options.folder / served_runs.TABLE).is_file():
        found.served, refused = served_runs.read(options.folder)
        print(f"{sum(refused.values())} servers have no prediction: {'; '.join(refused)}.")
        if (options.folder / traced_runs.TABLE).is_file():
            found.traced = traced_runs.read(options.folder)
    of_cases(found)
    if (options.folder / served_steps.TABLE).is_file():
        found.times = of_steps(options.folder, found)
    said = judged(found)
    options.into.write_text(toml(said, HEAD), encoding="utf-8")
    print(f"{'':36} {'rows':>6} {'mean error':>11} {'signed':>8} {'band covers':>12}")
    for what, kinds in said["band"].items():
        for name, s in kinds.items():
            errors = f"{s['mean_error']:11.1%} {s['mean_signed']:+8.1%} {s['covers']:12.1%}"
            print(f"{what + ', ' + name:36} {s['runs']:6} {errors}")
    print(f"{sum(found.refused.values())} training runs have something that the engine does not model.")
    for run in found.runs:
        if run.fitted and run.release:
            print(f"The run that fitted EXPERT_KERNELS takes {run.ratio:.3f} of the estimate.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
