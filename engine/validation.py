"""The engine against published measurements: every case of tests/published, worst first.

A case names what was run and what came out; this module asks the engine for the same quantity. Rows that fitted a
constant of ``calibration`` are marked in the data and reported apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine import catalog, check, flops, inference, interconnect, layout, matmul, memory, models, reliability, report
from engine.calibration import DEFAULT
from engine.models import Model
from engine.units import DAY

CASES = Path(__file__).resolve().parents[1] / "tests" / "published"
# A benchmark that waits for the GPU before every call also times the call's way from PyTorch to the GPU.
# Fitted on: the smallest messages of torch's sweeps on 8 H200 and 8 B200, against nccl-tests on 8 H100.
TORCH_CALL_S = 22e-6
SATURATED_BATCH = 2048      # sequences at once that a serving engine schedules at most

# (group, quantity) -> (allowed mean error, allowed largest error or None)
TARGETS = {
    ("parameter counts", "parameters"): (0.005, 0.005),
    ("ZeRO tables", "bytes"): (0.01, None),
    ("KV cache per token", "bytes"): (0.01, 0.01),
    ("activation memory", "bytes"): (0.03, None),
    ("Korthikanti Table 5", "step_s"): (0.04, 0.09),
    ("Megatron SC21 tables", "step_s"): (0.08, None),
    ("Llama 3 Table 4", "model_flops_per_gpu_per_s"): (0.08, None),
    ("H100 recipes, dense bf16", "step_s"): (0.10, None),
    ("H100 recipes, dense fp8", "step_s"): (0.20, None),
    ("H100 recipes, MoE", "step_s"): (0.20, None),
    ("BLOOM sweep", "total_bytes"): (0.10, None),
    ("BLOOM sweep", "step_s"): (0.12, None),
    ("BLOOM sweep", "fits"): (0.0, 0.0),
    ("allreduce from 64 MB", "time_s"): (0.10, None),
    ("allreduce below 64 MB", "time_s"): (0.30, None),
    ("latency of decode and prefill", "all"): (0.25, None),
}


@dataclass(frozen=True)
class Row:
    """One published number and the engine's."""

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
        """Relative; for yes or no, 0 where right and 1 where wrong."""
        if isinstance(self.measured, bool):
            return float(bool(self.predicted) != self.measured)
        return self.predicted / self.measured - 1.0


@lru_cache(1024)
def _model(fields: str) -> Model:
    return Model(key="published", name="published", **json.loads(fields))


def model_of(case: dict) -> Model:
    """The case's model, described in the case itself."""
    return _model(json.dumps(case["model"]))


# -- what the engine says, by kind of case ---------------------------------------------------------------------------
def training_step(case: dict, calibration=DEFAULT) -> dict:
    """Time and memory of one training step."""
    at = layout.machine(catalog.gpu(case["gpu"]), case.get("precision", "bf16"), calibration=calibration,
                        **case.get("machine", {}))
    job = layout.Job(recipe=catalog.recipe(case.get("recipe", "bf16-adam")), **case["job"])
    outcome = layout.estimate(model_of(case), at, job, layout.Layout(**case["layout"]))
    return {"step_s": outcome.step_s, "total_bytes": outcome.terms.total_bytes, "fits": outcome.fits,
            "model_flops_per_gpu_per_s": outcome.model_flops_per_gpu_per_s()}


def collective(case: dict, calibration=DEFAULT) -> dict:
    """Time and bandwidth of one collective."""
    net = interconnect.wires(catalog.gpu(case["gpu"]), calibration=calibration)
    ranks, per_node = float(case["ranks"]), float(case["per_node"])
    named = {"ring": interconnect.ring_s, "nvls": interconnect.nvls_s}.get(case.get("algorithm"))
    time_s = (named(case["bytes"], ranks, per_node, net) if named else
              interconnect.collective_s(case["op"], case["bytes"], ranks, per_node, net))
    return {"time_s": time_s + (TORCH_CALL_S if case["harness"] == "torch" else 0.0)}


def serving(case: dict, calibration=DEFAULT) -> dict:
    """Latency and throughput of a served model."""
    at = layout.machine(catalog.gpu(case["gpu"]), case["precision"], calibration=calibration)
    asked = dict(case["serving"])
    if not asked["batch"]:      # saturated: as many as the cache holds
        room = inference.largest_batch(model_of(case), at, inference.Serving(**{**asked, "batch": 1}))
        asked["batch"] = min(SATURATED_BATCH, room)
    return inference.infer(model_of(case), at, inference.Serving(**asked))


def attention(case: dict, calibration=DEFAULT) -> dict:
    """The rate of one fused attention."""
    chip = matmul.chip(catalog.gpu(case["gpu"]), "fp16", calibration)
    seq, dim = float(case["seq"]), float(case["head_dim"])
    pairs = case["tokens"] * seq * case["heads"] * (0.5 if case["causal"] else 1.0)
    counted = 4.0 * dim * pairs * (3.5 if case["backward"] else 1.0)
    forward_s = matmul.fused_attention_s(pairs, seq, dim, dim, float(case["causal"]), chip)
    return {"flops_per_s": counted / forward_s / (3.5 if case["backward"] else 1.0)}


def stream(case: dict, calibration=DEFAULT) -> dict:
    """Time to read so many bytes from HBM."""
    return {"time_s": matmul.stream_s(case["bytes"], matmul.chip(catalog.gpu(case["gpu"]), "bf16", calibration))}


def zero(case: dict, calibration=DEFAULT) -> dict:
    """State of one rank under a ZeRO stage."""
    recipe = catalog.recipe("bf16-adam")
    return {"bytes": float(memory.sharded_state_bytes(case["params"], recipe, case["ranks"], case["stage"]))}


def kv(case: dict, calibration=DEFAULT) -> dict:
    """KV cache of one token."""
    return {"bytes": float(memory.kv_bytes_per_token(model_of(case), case["bytes_per_value"]))}


def activation(case: dict, calibration=DEFAULT) -> dict:
    """Activations of one GPU."""
    kept = memory.activation_bytes(model_of(case), case["seq"], case["micro_batch"], case["tp"], 1,
                                   case["sequence_parallel"], memory.RECOMPUTE[case["recompute"]], flash=False)
    flight = memory.in_flight_micro_batches(case["pp"], 10**6, 0, case["interleave"])
    return {"bytes": float(kept / case["pp"] * flight)}


def parameters(case: dict, calibration=DEFAULT) -> dict:
    """Parameters, all and active."""
    model = model_of(case)
    return {"parameters": float(models.parameters(model)), "active_parameters": float(models.active_parameters(model))}


def token_flops(case: dict, calibration=DEFAULT) -> dict:
    """FLOPs of one token."""
    model = catalog.model(case["catalog_model"]) if "catalog_model" in case else model_of(case)
    return {"flops": float(flops.training_flops_per_token(model, case["seq"], case["causal"]))}


def run_flops(case: dict, calibration=DEFAULT) -> dict:
    """FLOPs of a whole run."""
    return {"flops": flops.training_flops(case["params"], case["tokens"])}


def run_days(case: dict, calibration=DEFAULT) -> dict:
    """With full recomputation: a forward pass again, 8·P·D in all."""
    work = case["params"], case["tokens"]
    hardware_flops = flops.training_flops(*work) + flops.forward_flops(*work)
    return {"days": flops.run_time_s(hardware_flops, case["gpus"], case["hardware_flops_per_s"], 1.0) / DAY}


def goodput(case: dict, calibration=DEFAULT) -> dict:
    """Checkpoint interval and the share of time that is lost."""
    interval_s = reliability.young_interval_s(case["checkpoint_s"], case["mtbf_s"])
    return {"interval_s": interval_s,
            "wasted": reliability.wasted_share(interval_s, case["checkpoint_s"], case["mtbf_s"], case["restart_s"])}


KINDS = {"step": training_step, "collective": collective, "serving": serving, "attention": attention, "stream": stream,
         "zero": zero, "kv": kv, "activation": activation, "parameters": parameters, "goodput": goodput,
         "token_flops": token_flops, "run_flops": run_flops, "run_days": run_days}


# -- reading and reporting -------------------------------------------------------------------------------------------
def load(directory=None) -> list[dict]:
    """All published cases: every list of them (other files there hold data of another kind)."""
    directory = CASES if directory is None else Path(directory)
    files = sorted(directory.glob("*.json"))
    if not files:
        raise ValueError(f"cases must be a directory with published cases (*.json), got {str(directory)!r}; "
                         "they are in tests/published of the repository")
    cases = []
    for file in files:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"cases must be valid JSON, got {file}: {error}") from None
        cases += content if isinstance(content, list) else []
    return cases


def rows_of(case: dict, calibration=DEFAULT) -> list[Row]:
    """A row for every quantity that the case measured."""
    predicted = KINDS[case["kind"]](case, calibration)
    fitted = case["fitted"]     # yes, no, or the quantities that were
    return [Row(case["id"], case["group"], quantity, value, predicted[quantity],
                quantity in fitted if isinstance(fitted, list) else fitted, case.get("note", ""), case["kind"], case["source"])
            for quantity, value in case["measured"].items()]


@lru_cache(None)
def row(case_id: str) -> Row:
    """The first published number of one case, beside the engine's."""
    found = {case["id"]: case for case in load()}
    check.one_of(found, case_id=case_id)
    return rows_of(found[case_id])[0]


@lru_cache(None)
def mean_error(group: str) -> float:
    """How far off the engine is in a group of cases, without sign."""
    found = [row for case in load() if case["group"] == group for row in rows_of(case)]
    check.positive(rows=len(found))
    return _mean(found)


@dataclass(frozen=True)
class Summary:
    """The errors of one group's quantity, fitted rows and others apart."""

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
        return {"group": self.group, "quantity": self.quantity, "fitted": self.fitted, "unfitted": self.unfitted,
                "fitted_mean_error": self.fitted_mean, "unfitted_mean_error": self.unfitted_mean,
                "mean_error": self.mean, "bias_error": self.bias, "largest_error": self.largest,
                "target_error": self.target, "met": self.met}


def _mean(rows: list[Row]) -> float | None:
    return sum(abs(row.error) for row in rows) / len(rows) if rows else None


def summarise(group: str, quantity: str, rows: list[Row]) -> Summary:
    """The errors of one group's quantity against its target."""
    fitted = [row for row in rows if row.fitted]
    unfitted = [row for row in rows if not row.fitted]
    mean, largest = _mean(rows), max((row.error for row in rows), key=abs)
    target, most = TARGETS.get((group, quantity), TARGETS.get((group, "all"), (None, None)))
    met = None if target is None else mean <= target and (most is None or abs(largest) <= most)
    return Summary(group, quantity, len(fitted), len(unfitted), _mean(fitted), _mean(unfitted), mean,
                   sum(row.error for row in rows) / len(rows), largest, target, met)


@dataclass(frozen=True)
class Outcome:
    """All rows and their summaries, worst first."""

    rows: tuple[Row, ...]
    summaries: tuple[Summary, ...]

    def as_dict(self) -> dict:
        """Groups and rows for --json."""
        return {"groups": [summary.as_dict() for summary in self.summaries],
                "rows": [{"case": row.case, "group": row.group, "quantity": row.quantity, "measured": row.measured,
                          "predicted": row.predicted, "error": row.error, "fitted": row.fitted, "note": row.note}
                         for row in self.rows]}

    def lines(self, everything: bool = False) -> list[str]:
        """The groups, then the rows: the worst of each group, or all."""
        shown, seen = [], {}
        for row in self.rows:
            place = (row.group, row.quantity)
            seen[place] = seen.get(place, 0) + 1
            if everything or seen[place] <= 2:
                shown.append({"case": row.case, "group": row.group, "quantity": row.quantity,
                              "measured": f"{row.measured:.4g}", "predicted": f"{row.predicted:.4g}",
                              "error": row.error, "fitted": row.fitted})
        columns = ["group", "quantity", "unfitted", "unfitted_mean_error", "fitted", "fitted_mean_error", "bias_error",
                   "largest_error", "target_error", "met"]
        return (report.table([summary.as_dict() for summary in self.summaries], columns) + [""]
                + report.table(shown, ["case", "group", "quantity", "measured", "predicted", "error", "fitted"]))


def validate(directory=None, calibration=DEFAULT) -> Outcome:
    """Every published case, worst first."""
    rows = [row for case in load(directory) for row in rows_of(case, calibration)]
    rows.sort(key=lambda row: -abs(row.error))
    return Outcome(tuple(rows), summaries(rows))


def summaries(rows) -> tuple[Summary, ...]:
    """The errors of each group and quantity among these rows, worst first."""
    places: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        quantity = "all" if (row.group, "all") in TARGETS else row.quantity
        places.setdefault((row.group, quantity), []).append(row)
    found = [summarise(group, quantity, members) for (group, quantity), members in places.items()]
    return tuple(sorted(found, key=lambda summary: -summary.mean))
