"""Steps of a vLLM server that others timed at many batch sizes, compared with the engine: a part of the judge
in ``runs``.

Reads serving_steps.csv. What vLLM adds to a step is linear in the five times of its entry in
``catalog/software.toml``, so each model is judged by times that were fitted without it. No row is kept.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine import catalog
from engine.catalog.software import ServingSoftware
from engine.serving import divided, server_software
from engine.serving.inference import Served, Serving
from engine.step import layout

TABLE = "serving_steps.csv"
PROGRAM = "vllm-0.11"
TIMES = ("between_s", "token_s", "logit_s", "expert_layer_s")  # the fields of the program that are fitted …
TILES = "coarse_experts"  # … and the factor, of which what exceeds one is
FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}
PROMPTS = {
    "lm-arena-chat": 100,
    "gpqa": 250,
}  # mean tokens of the tasks' prompts; inferred, its table lacks them
FULL = 1.6  # a step that lasts so many times the median between tokens: prompts fill the steps
SMALL = 0.05  # errors below this count by their square when the times are fitted, larger ones by their size
ROUNDS = 30


@dataclass(frozen=True)
class Timed:
    """One row: a server with so many requests at once."""

    model: str
    gpu: str
    experts: bool
    tp: int
    batch: int
    measured_s: float  # the median from one token of a request to the next
    said: Served  # by the kernels alone
    base_s: float  # with what the program does whatever its five times are
    adds: tuple[float, ...]  # what a second of each time adds, and what a factor of two adds

    @property
    def family(self) -> str:
        """The runs that are left out together when one of them is judged."""
        return f"ML.ENERGY {self.model}"


def program() -> ServingSoftware:
    """The program that ran them all, as it is shipped."""
    return catalog.serving_software(PROGRAM)


def _bare() -> ServingSoftware:
    return replace(program(), **dict.fromkeys(TIMES, 0.0), **{TILES: 1.0})


def read(folder: Path) -> list[Timed]:
    """The table's rows, without those whose steps are mostly prompts."""
    path = Path(folder) / TABLE
    if not path.is_file():
        raise ValueError(f"{path}: the folder of measurements must hold {TABLE}")
    with path.open(encoding="utf-8", newline="") as file:
        return [_timed(row) for row in csv.DictReader(file) if not _is_full(row)]


def _is_full(row: dict[str, str]) -> bool:
    step_s = float(row["batch"]) / float(row["output_tokens_per_s"])
    return step_s > FULL * float(row["median_itl_s"])


def _timed(row: dict[str, str]) -> Timed:
    spread = int(row["ep"])
    asked = Serving(
        tp=max(int(row["tp"]), spread),
        ep=spread,
        batch=round(float(row["batch"])),
        prompt=PROMPTS[row["task"]],
        output=round(float(row["output"])),
    )
    at = layout.machine(catalog.gpu(row["gpu"]), FORMATS[row["precision"]])
    said = divided.infer(catalog.model(row["model"]), at, asked)
    bare = _bare()
    base_s = server_software.run_by(bare, said).decode.total_s
    changes = [{name: 1.0} for name in TIMES] + [{TILES: 2.0}]
    adds = tuple(
        server_software.run_by(replace(bare, **change), said).decode.total_s - base_s for change in changes
    )
    return Timed(
        row["model"],
        row["gpu"],
        said.model.experts > 0,
        int(asked.tp),
        int(asked.batch),
        float(row["median_itl_s"]),
        said,
        base_s,
        adds,
    )


def fitted(rows: list[Timed]) -> np.ndarray:
    """The five times that suit these rows best, in relative errors: those beyond ``SMALL`` count by size
    and not by their square, since a few rows are off for reasons that no step has."""
    measured = np.array([row.measured_s for row in rows])
    adds = np.array([row.adds for row in rows]) / measured[:, None]
    wanted = (measured - np.array([row.base_s for row in rows])) / measured
    weight, found = np.ones(len(rows)), np.zeros(adds.shape[1])
    for _ in range(ROUNDS):
        found = np.linalg.lstsq(adds * weight[:, None], wanted * weight, rcond=None)[0]
        weight = 1.0 / np.sqrt(np.maximum(np.abs(adds @ found - wanted), SMALL))
    return found


def ratios(rows: list[Timed]) -> list[float]:
    """Measured over predicted, each model by times that were fitted on the others."""
    of = {model: fitted([row for row in rows if row.model != model]) for model in {row.model for row in rows}}
    return [row.measured_s / (row.base_s + float(np.dot(row.adds, of[row.model]))) for row in rows]


def shipped(rows: list[Timed]) -> dict[str, float]:
    """The times fitted on all rows, as the program's fields."""
    found = fitted(rows)
    return dict(zip((*TIMES, TILES), [*map(float, found[:-1]), 1.0 + float(found[-1])]))
