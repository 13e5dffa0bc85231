"""The engine against published measurements: every case of engine/validation/published, worst first.

A case states what was run and what was measured; this module computes the same quantity with the engine. Rows
that a constant of ``calibration`` was fitted to are marked in the data and reported separately.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine import catalog
from engine.base import check, printing
from engine.base.units import DAY
from engine.calibration import DEFAULT
from engine.calibration.attention import fused_s
from engine.catalog import models
from engine.catalog.models import Model, described
from engine.mechanism import compute, experts, flops, interconnect, matmul, memory, mixing, reliability
from engine.one_gpu import capture
from engine.serving import inference, server_software, wide
from engine.step import layout

if TYPE_CHECKING:
    from engine.calibration.constants import Calibration
    from engine.catalog.hardware import Gpu
    from engine.step.layout import Estimate

CASES = Path(__file__).parent / "published"
# A benchmark that waits for the GPU before every call also times how long PyTorch takes to issue the call.
# Fitted on: the smallest messages of torch's sweeps on 8 H200 and 8 B200, against nccl-tests on 8 H100.
TORCH_CALL_S = 22e-6
SATURATED_BATCH = 2048  # the most sequences that a serving engine runs at once

# what published cases of serving measure
SERVED = ("latency_s", "ttft_s", "time_per_output_token_s", "tokens_per_s", "tokens_per_s_per_gpu")

# (group, quantity) -> (allowed mean error, allowed largest error or None)
TARGETS = {
    ("parameter counts", "parameters"): (0.005, 0.005),
    ("ZeRO tables", "bytes"): (0.01, None),
    ("KV cache per token", "bytes"): (0.01, 0.01),
    ("activation memory", "bytes"): (0.03, None),
    ("Megatron-LM, 2022", "step_s"): (0.04, 0.09),
    ("Megatron-LM, 2021", "step_s"): (0.08, None),
    ("Llama 3 paper, table 4", "model_flops_per_gpu_per_s"): (0.08, None),
    ("NVIDIA on H100, dense bf16", "step_s"): (0.10, None),
    ("NVIDIA on H100, dense fp8", "step_s"): (0.20, None),
    ("NVIDIA on H100, experts", "step_s"): (0.20, None),
    ("BLOOM, layouts compared", "total_bytes"): (0.10, None),
    ("BLOOM, layouts compared", "step_s"): (0.12, None),
    ("BLOOM, layouts compared", "fits"): (0.0, 0.0),
    ("AllReduce from 64 MB on", "time_s"): (0.10, None),
    ("AllReduce below 64 MB", "time_s"): (0.30, None),
    ("latency of decode and prefill", "all"): (0.25, None),
}


@dataclass(frozen=True)
class Row:
    """One published number and the engine's number."""

    case: str
    group: str
    quantity: str
    measured: float
    predicted: float
    fitted: bool
    note: str = ""
    kind: str = ""
    source: str = ""

    @property
    def error(self) -> float:
        """The relative error; for yes or no, 0 if right and 1 if wrong."""
        if isinstance(self.measured, bool):
            return float(bool(self.predicted) != self.measured)
        return self.predicted / self.measured - 1.0


@lru_cache(1024)
def _model(fields: str) -> Model:
    return described(key="published", name="published", **json.loads(fields))


def model_of(case: dict) -> Model:
    """The case's model: the catalogue's, or described in the case itself."""
    if "catalog_model" in case:
        return catalog.model(case["catalog_model"])
    return _model(json.dumps(case["model"]))


# -- the engine's predictions, by kind of case ---------------------------------------------------------------
def gpu_of(case: dict) -> Gpu:
    """The catalogue's GPU, with what the source says was different about its own."""
    return replace(catalog.gpu(case["gpu"]), **case.get("chip", {}))


def estimate_of(case: dict, calibration: Calibration = DEFAULT) -> Estimate:
    """The estimate of a case that timed a training step."""
    at = layout.machine(
        gpu_of(case), case.get("precision", "bf16"), calibration=calibration, **case.get("machine", {})
    )
    return layout.estimate(model_of(case), at, job_of(case), layout.Layout(**case["layout"]))


def job_of(case: dict, **differs: object) -> layout.Job:
    """The job of a case: the sizes that it says, and the software that it names with what the run changed in
    it, which ``differs`` changes again."""
    said = dict(case["job"])
    by = catalog.training_software(said.pop("software"), **(said.pop("with", {}) | differs))
    return layout.Job(recipe=catalog.recipe(case.get("recipe", "bf16-adam")), software=by, **said)


def training_step(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Time and memory of one training step."""
    outcome = estimate_of(case, calibration)
    return {
        "step_s": outcome.step_s,
        "total_bytes": outcome.terms.total_bytes,
        "fits": outcome.fits,
        "model_flops_per_gpu_per_s": outcome.model_flops_per_gpu_per_s(),
    }


def collective(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Time and bandwidth of one collective."""
    net = interconnect.wires(catalog.gpu(case["gpu"]), calibration=calibration)
    ranks, per_node = float(case["ranks"]), float(case["per_node"])
    named = {"ring": interconnect.ring_s, "nvls": interconnect.nvls_s}.get(case.get("algorithm", ""))
    time_s = (
        named(case["bytes"], ranks, per_node, net)
        if named
        else interconnect.collective_s(case["op"], case["bytes"], ranks, per_node, net)
    )
    return {"time_s": time_s + (TORCH_CALL_S if case["harness"] == "torch" else 0.0)}


def serving(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Latency and throughput of a served model."""
    at = layout.machine(catalog.gpu(case["gpu"]), case["precision"], calibration=calibration)
    asked = dict(case["serving"])
    if not asked["batch"]:  # saturated: as many as fit the cache
        room = inference.largest_batch(model_of(case), at, inference.Serving(**{**asked, "batch": 1}))
        asked["batch"] = min(SATURATED_BATCH, room)
    said = inference.infer(model_of(case), at, inference.Serving(**asked))
    said = server_software.run_by(case["software"], said) if case.get("software") else said
    return {name: getattr(said, name) for name in SERVED}


def spread(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Tokens per second and GPU of a server whose experts are spread over many GPUs; ``tokens`` is their
    number in one GPU's step, and ``length`` the length of their prompts or caches."""
    at = layout.machine(catalog.gpu(case["gpu"]), case["precision"], calibration=calibration)
    asked = case["wide"]
    step_s = (wide.prefill_s if asked["prompts"] else wide.decode_s)(
        model_of(case),
        at,
        1,
        asked["gpus"],
        asked["tokens"],
        asked["length"],
        imbalance=asked.get("imbalance", experts.IMBALANCE),
    )
    return {"tokens_per_s_per_gpu": asked["tokens"] / float(step_s)}


def attention(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """The rate of one fused attention kernel."""
    kernel = matmul.burst_attention(catalog.gpu(case["gpu"]), "fp16")
    seq, dim = float(case["seq"]), float(case["head_dim"])
    batch, causal = case["tokens"] / seq, float(case["causal"])
    pairs = case["tokens"] * seq * case["heads"] * (1.0 - 0.5 * causal)
    counted = 4.0 * dim * pairs * (3.5 if case["backward"] else 1.0)
    forward_s = fused_s(batch, seq, case["heads"], case["heads"], dim, kernel, causal=causal)
    return {"flops_per_s": counted / forward_s / (1.0 + compute.BACKWARD_OF_FLASH * case["backward"])}


def mixer(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """The forward time of linear attention, or of a state space, over whole sequences."""
    at = layout.machine(catalog.gpu(case["gpu"]), "bf16", calibration=calibration).chip
    group = {"count": 1, "attention": case["attention"], "mlp": {"kind": "dense", "width": 1}}
    kind = models.group_from(1, group).attention
    asked = float(case["sequences"]), float(case["seq"]), 1.0
    return {"time_s": mixing.sequence_s(kind, *asked, at.attention, at)}


def token(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """A pass of a model on one GPU whose kernels are issued one by one, or replayed from a graph."""
    of, on = catalog.model(case["catalog_model"]), catalog.gpu(case["gpu"])
    asked = {name: case[name] for name in ("batch", "context", "captured")}
    return {"latency_s": capture.token_s(case["way"], of, on, **asked)}


def stream(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Time to read this many bytes from HBM."""
    return {
        "time_s": matmul.stream_s(case["bytes"], matmul.chip(catalog.gpu(case["gpu"]), "bf16", calibration))
    }


def zero(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Training state of one rank under a ZeRO stage."""
    recipe = catalog.recipe("bf16-adam")
    return {"bytes": float(memory.sharded_state_bytes(case["params"], recipe, case["ranks"], case["stage"]))}


def kv(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """KV cache per token."""
    return {"bytes": float(memory.kv_bytes_per_token(model_of(case), case["bytes_per_value"]))}


def activation(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Activations of one GPU."""
    kept = memory.activation_bytes(
        model_of(case),
        case["seq"],
        case["micro_batch"],
        case["tp"],
        1,
        case["sequence_parallel"],
        memory.RECOMPUTE[case["recompute"]],
        flash=False,
    )
    flight = memory.in_flight_micro_batches(case["pp"], 1000 * case["pp"], 0, case["interleave"])
    return {"bytes": float(kept / case["pp"] * flight)}


def parameters(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Parameters, all and active."""
    model = model_of(case)
    return {
        "parameters": float(models.parameters(model)),
        "active_parameters": float(models.active_parameters(model)),
    }


def token_flops(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """FLOPs of one token."""
    return {"flops": float(flops.training_flops_per_token(model_of(case), case["seq"], case["causal"]))}


def run_flops(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """FLOPs of a whole run."""
    return {"flops": flops.training_flops(case["params"], case["tokens"])}


def run_days(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """The duration of a run with full recomputation, which repeats the forward pass: 8·P·D FLOPs in all."""
    work = case["params"], case["tokens"]
    hardware_flops = flops.training_flops(*work) + flops.forward_flops(*work)
    return {"days": flops.run_time_s(hardware_flops, case["gpus"], case["hardware_flops_per_s"], 1.0) / DAY}


def goodput(case: dict, calibration: Calibration = DEFAULT) -> dict:
    """Checkpoint interval and the share of time lost."""
    interval_s = reliability.young_interval_s(case["checkpoint_s"], case["mtbf_s"])
    return {
        "interval_s": interval_s,
        "wasted": reliability.wasted_share(
            interval_s, case["checkpoint_s"], case["mtbf_s"], case["restart_s"]
        ),
    }


KINDS = {
    "step": training_step,
    "collective": collective,
    "serving": serving,
    "wide": spread,
    "attention": attention,
    "mixer": mixer,
    "stream": stream,
    "token": token,
    "zero": zero,
    "kv": kv,
    "activation": activation,
    "parameters": parameters,
    "goodput": goodput,
    "token_flops": token_flops,
    "run_flops": run_flops,
    "run_days": run_days,
}


# -- reading and reporting -----------------------------------------------------------------------------------
def load(directory: Path | str | None = None) -> list[dict]:
    """All published cases, from every file that holds a list of them (the other files hold other data)."""
    directory = CASES if directory is None else Path(directory)
    files = sorted(directory.glob("*.json"))
    if not files:
        raise ValueError(
            f"cases must be a directory with published cases (*.json), got {str(directory)!r}; "
            "they are in engine/validation/published of the repository"
        )
    cases = []
    for file in files:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"cases must be valid JSON, got {file}: {error}") from None
        cases += content if isinstance(content, list) else []
    return cases


def rows_of(case: dict, calibration: Calibration = DEFAULT) -> list[Row]:
    """One row for every quantity that the case measured."""
    predicted = KINDS[case["kind"]](case, calibration)
    fitted = case["fitted"]  # yes, no, or the quantities that were fitted
    return [
        Row(
            case["id"],
            case["group"],
            quantity,
            value,
            predicted[quantity],
            quantity in fitted if isinstance(fitted, list) else fitted,
            case.get("note", ""),
            case["kind"],
            case["source"],
        )
        for quantity, value in case["measured"].items()
    ]


@lru_cache(None)
def row(case_id: str) -> Row:
    """The first published number of one case, with the engine's."""
    found = {case["id"]: case for case in load()}
    check.one_of(found, case_id=case_id)
    return rows_of(found[case_id])[0]


@lru_cache(None)
def measured_mfu(case_id: str) -> float:
    """The model FLOPs utilisation of a published training step: the published FLOP/s over the dense peak or,
    if only a time was published, the FLOPs that the engine counts over that time."""
    found = {case["id"]: case for case in load() if case["kind"] == "step"}
    check.one_of(found, case_id=case_id)
    measured, estimate = found[case_id]["measured"], estimate_of(found[case_id])
    if (rate := measured.get("model_flops_per_gpu_per_s")) is not None:
        return rate / estimate.at.peak_flops_per_s
    return estimate.mfu() * estimate.step_s / measured["step_s"]


@lru_cache(None)
def mean_error(group: str) -> float:
    """The engine's mean absolute error in a group of cases."""
    found = [row for case in load() if case["group"] == group for row in rows_of(case)]
    check.positive(rows=len(found))
    return _mean(found)


@dataclass(frozen=True)
class Summary:
    """The errors of one group's quantity, for fitted and other rows separately."""

    group: str
    quantity: str
    fitted: int
    unfitted: int
    fitted_mean: float | None
    unfitted_mean: float | None
    mean: float
    bias: float
    largest: float
    target: float | None
    met: bool | None

    def as_dict(self) -> dict:
        """The summary for --json."""
        return {
            "group": self.group,
            "quantity": self.quantity,
            "fitted": self.fitted,
            "unfitted": self.unfitted,
            "fitted_mean_error": self.fitted_mean,
            "unfitted_mean_error": self.unfitted_mean,
            "mean_error": self.mean,
            "bias_error": self.bias,
            "largest_error": self.largest,
            "target_error": self.target,
            "met": self.met,
        }


def _mean(rows: list[Row]) -> float:
    return sum(abs(row.error) for row in rows) / len(rows)


def summarise(group: str, quantity: str, rows: list[Row]) -> Summary:
    """The errors of one group's quantity, compared with its target."""
    fitted = [row for row in rows if row.fitted]
    unfitted = [row for row in rows if not row.fitted]
    mean, largest = _mean(rows), max((row.error for row in rows), key=abs)
    target, most = TARGETS.get((group, quantity), TARGETS.get((group, "all"), (None, None)))
    met = None if target is None else mean <= target and (most is None or abs(largest) <= most)
    return Summary(
        group,
        quantity,
        len(fitted),
        len(unfitted),
        _mean(fitted) if fitted else None,
        _mean(unfitted) if unfitted else None,
        mean,
        sum(row.error for row in rows) / len(rows),
        largest,
        target,
        met,
    )


SUMMARY = [
    "group",
    "quantity",
    "unfitted",
    "unfitted_mean_error",
    "fitted",
    "fitted_mean_error",
    "bias_error",
    "largest_error",
    "target_error",
    "met",
]


@dataclass(frozen=True)
class Validation(printing.Printed):
    """All published numbers beside ours, and their summaries, worst first."""

    compared: tuple[Row, ...]
    summaries: tuple[Summary, ...]

    def as_dict(self) -> dict:
        """Groups and rows for --json."""
        return {"groups": [summary.as_dict() for summary in self.summaries], "rows": self.rows()}

    def rows(self) -> list[dict]:
        """A row for each published number."""
        return [
            {
                "case": row.case,
                "group": row.group,
                "quantity": row.quantity,
                "measured": row.measured,
                "predicted": row.predicted,
                "error": row.error,
                "fitted": row.fitted,
                "note": row.note,
            }
            for row in self.compared
        ]

    def groups(self, columns: Sequence[str] = SUMMARY) -> printing.Table:
        """The errors of each group, in these columns of its summary."""
        usual = {"fitted": 0, "fitted_mean_error": None, "target_error": None, "met": None}
        return printing.Table([summary.as_dict() for summary in self.summaries], columns, usual)

    def worst(self, most: int | None = 2) -> printing.Table:
        """The worst numbers of each group, or all of them."""
        shown, seen = [], {}
        for row in self.rows():
            place = (row["group"], row["quantity"])
            seen[place] = seen.get(place, 0) + 1
            if most is None or seen[place] <= most:
                shown.append({**row, **{name: f"{row[name]:.4g}" for name in ("measured", "predicted")}})
        columns = ["case", "group", "quantity", "measured", "predicted", "error", "fitted"]
        return printing.Table(shown, columns, {"fitted": False})


@printing.parts.register
def _parts(found: Validation) -> list[printing.Part]:
    """How many numbers there are, and the errors of each group, the worst first."""
    fitted = sum(row.fitted for row in found.compared)
    return [
        f"{len(found.compared)} published numbers, {fitted} of which a constant was fitted to:",
        found.groups(["group", "quantity", "unfitted", "unfitted_mean_error", "largest_error", "met"]),
    ]


@lru_cache(8)  # each page that counts its rows asks for all of them
def validate(directory: str | Path | None = None, calibration: Calibration = DEFAULT) -> Validation:
    """Every published case, worst first."""
    rows = [row for case in load(directory) for row in rows_of(case, calibration)]
    rows.sort(key=lambda row: -abs(row.error))
    return Validation(tuple(rows), summaries(rows))


def summaries(rows: list[Row]) -> tuple[Summary, ...]:
    """The errors of each group and quantity among these rows, worst first."""
    places: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        quantity = "all" if (row.group, "all") in TARGETS else row.quantity
        places.setdefault((row.group, quantity), []).append(row)
    found = [summarise(group, quantity, members) for (group, quantity), members in places.items()]
    return tuple(sorted(found, key=lambda summary: -summary.mean))
