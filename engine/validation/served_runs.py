"""Servers that others measured under load, compared with what the engine says: a part of the judge in
``runs``.

Reads serving_runs.csv: MLPerf's servers, whose layout is not stated, so that the best tensor degree counts,
at the median time of a token that was measured (offline: at any), and closed loops of a mixture of experts.
Each row becomes the ratio of measured to predicted output. No row is kept.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine import catalog
from engine.calibration import DEFAULT
from engine.calibration.constants import Calibration
from engine.catalog.models import described
from engine.serving import decoding, equilibrium, step_costs, under_traffic
from engine.step import layout

TABLE = "serving_runs.csv"
OPEN_ORCA = 294.0  # tokens of MLPerf's prompts for Llama 2 70B, which its logs leave out (OpenOrca's mean)
WEIGHTS = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625}  # bytes of a weight, scales included
ANY_S = 1e9  # offline there is no limit on the time of a token
CLOSED = "closed loop"
MINIMAX = described(  # MiniMaxAI/MiniMax-M2.5, config.json
    key="minimax-m2.5",
    name="MiniMax-M2.5",
    layers=62,
    hidden=3072,
    heads=48,
    kv_heads=8,
    head_dim=128,
    ffn=1536,
    vocab=200064,
    gated=True,
    tied=False,
    experts=256,
    top_k=8,
    expert_ffn=1536,
)


@dataclass(frozen=True)
class ServedRun:
    """One row: the system, and measured over predicted output."""

    family: str
    gpu: str
    scenario: str
    precision: str
    ratio: float
    rested: float  # the ratio if products were as fast as the best of a sweep, which no power limit slows

    @property
    def name(self) -> str:
        """The kind of server: rows with the same name are summarised together."""
        return f"{self.family}, {self.gpu}, {self.scenario}"


RESTED = replace(DEFAULT, matmul_sustained=1.0, matmul_power=0.0)


def read(folder: Path) -> tuple[list[ServedRun], Counter]:
    """The table's rows for which the engine has a prediction, and the reasons why it has none for the
    others."""
    path, found, refused = Path(folder) / TABLE, [], Counter()
    if not path.is_file():
        raise ValueError(f"{path}: the folder of measurements must hold {TABLE}")
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            try:
                said = predicted(row), predicted(row, RESTED)
            except ValueError as error:
                refused[str(error)] += 1
                continue
            names = (row["family"], row["gpu"], row["scenario"], row["precision"])
            found.append(ServedRun(*names, *(float(row["tokens_per_s"]) / each for each in said)))
    return found, refused


def summaries(found: list[ServedRun], summary: Callable[[list[float]], dict]) -> dict[str, dict]:
    """Each kind of server: the summary of its ratios, and the mean error if no power limit slowed a
    product."""
    names = sorted({each.name for each in found})
    members = {name: [each for each in found if each.name == name] for name in names}
    return {
        name: summary([each.ratio for each in of])
        | {"rested_signed": summary([each.rested for each in of])["mean_signed"]}
        for name, of in members.items()
    }


def predicted(row: dict[str, str], calibration: Calibration = DEFAULT) -> float:
    """Output tokens a second of the whole system; ValueError with the reason where there is none."""
    if row["gpu"] not in catalog.all_gpus():
        raise ValueError(f"gpu {row['gpu']}")
    if not row["tokens_per_s"] or row["precision"] not in WEIGHTS:
        raise ValueError("output or precision not stated")
    if row["scenario"] == CLOSED:
        return _of_a_loop(row, calibration)
    if row["model"] != "llama2-70b":
        raise ValueError(f"model {row['model']}: the lengths of its prompts are not stated")
    return _of_a_fleet(row, calibration)


def _of_a_fleet(row: dict[str, str], calibration: Calibration) -> float:
    """The highest throughput of replicas, over all tensor degrees, whose time per token is at most the one
    measured."""
    gpus, output = int(row["accelerators"]), float(row["output_tokens_mean"])
    at = layout.machine(catalog.gpu(row["gpu"]), row["precision"], calibration=calibration)
    degrees = np.array([degree for degree in (1.0, 2.0, 4.0, 8.0) if gpus % degree == 0])
    found = decoding.steady(
        catalog.model("llama2-70b"),
        at,
        degrees[:, None],
        decoding.USERS[None, :],
        OPEN_ORCA,
        output,
        1.0,
        WEIGHTS[row["precision"]],
    )
    within = found.token_s <= float(row["tpot_p50_s"] or ANY_S)
    return gpus * float(np.max(np.where(within, found.tokens_per_s_per_gpu, 0.0)))


def _of_a_loop(row: dict[str, str], calibration: Calibration) -> float:
    """The throughput for clients that ask again as soon as they have their answer. One replica uses all GPUs:
    attention is divided by heads or, if the row's note says so, by requests, and the experts are spread."""
    gpus, clients = int(row["accelerators"]), float(row["concurrency"])
    prompt, output = float(row["prompt_tokens_mean"]), float(row["output_tokens_mean"])
    at = layout.machine(catalog.gpu(row["gpu"]), row["precision"], calibration=calibration)
    context = equilibrium.context_tokens(prompt, 0.0, output, 0.0)
    if "attention data parallel" in row["note"]:
        costs = step_costs.spread_costs(MINIMAX, at, 1, gpus, False, prompt, context=context)
        each = max(1.0, clients / gpus)  # fewer clients than GPUs leave some without any
    else:
        costs = step_costs.costs(MINIMAX, at, gpus, prompt, context=context)
        each = clients
    groups = clients / each
    per_s = equilibrium.decoding_per_s(
        each,
        prompt,
        prompt * prompt / 2 * float(costs.pair_s),
        output - 1.0,
        context,
        [float(value) for value in costs.rows],
        [float(value) for value in costs.rows_s],
        float(costs.cached_s),
        under_traffic.MODES["chunked"],
        decoding.TOGETHER,
    )
    return groups * per_s * output
