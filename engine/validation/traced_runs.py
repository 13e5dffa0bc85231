"""A server's requests one by one, as somebody logged them, beside the simulator's: a part of the judge in
``runs``.

Reads serving_requests.csv: when each request arrived, its prompt and answer, its first and last token. The
simulator of ``events`` serves the very same requests, under the limits that the run's line in
serving_runs.csv names. Each quantity becomes its measured and its simulated percentiles. No request is kept.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine import catalog
from engine.serving import equilibrium, events, modes, step_costs
from engine.step import layout
from engine.validation import served_runs

TABLE = "serving_requests.csv"
LIMITS = re.compile(r"at most (\d+) sequences and (\d+) tokens a step; KV room (\d+) tokens")
SHARES = (50, 90, 99)


class Requests(NamedTuple):
    """A run's requests in the order of arrival: times since the first arrival, lengths in tokens."""

    came_s: np.ndarray
    prompts: np.ndarray
    outputs: np.ndarray
    first_s: np.ndarray
    last_s: np.ndarray


def read(folder: Path) -> dict[str, dict]:
    """The summary of each run that the simulator can serve again."""
    lines = _rows(folder / served_runs.TABLE)
    runs = {row["id"]: row for row in lines if LIMITS.search(row["note"])}
    logged: dict[str, list[dict[str, str]]] = {}
    for row in _rows(folder / TABLE):
        logged.setdefault(row["run"], []).append(row)
    return {
        f"{runs[run]['family']}, {runs[run]['gpu']}": judged(runs[run], requests(rows))
        for run, rows in logged.items()
        if run in runs and runs[run]["gpu"] in catalog.all_gpus()
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def requests(rows: Iterable[dict[str, str]]) -> Requests:
    """The columns of a run, sorted by arrival."""
    columns = ("queued_s", "prompt_tokens", "output_tokens", "first_token_s", "last_token_s")
    found = np.array([[float(row[name]) for name in columns] for row in rows])
    return Requests(*found[np.argsort(found[:, 0], kind="stable")].T)


def judged(run: dict[str, str], of: Requests) -> dict:
    """Measured and simulated percentiles of each request's times, the correlation of the two over the
    requests, and the duration of the whole run."""
    ours = simulated(run, of)
    said: dict = {"requests": len(of.came_s)}
    for name, measured, said_s in (
        ("ttft", of.first_s - of.came_s, ours.first_s - of.came_s),
        ("tpot", _tpot_s(of), _tpot_s(ours)),
        ("latency", of.last_s - of.came_s, ours.last_s - of.came_s),
    ):
        said[f"{name}_measured_s"] = [_rounded(each) for each in np.percentile(measured, SHARES)]
        said[f"{name}_ours_s"] = [_rounded(each) for each in np.percentile(said_s, SHARES)]
        said[f"{name}_alike"] = _rounded(np.corrcoef(measured, said_s)[0, 1])
    return said | {"whole_measured_s": _rounded(of.last_s.max()), "whole_ours_s": _rounded(ours.last_s.max())}


def _tpot_s(of: Requests) -> np.ndarray:
    return (of.last_s - of.first_s) / (of.outputs - 1.0)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def simulated(run: dict[str, str], of: Requests) -> Requests:
    """The same requests, served by the simulator within the run's limits: prompts in chunks, as vLLM does."""
    found = LIMITS.search(run["note"])
    if not found:
        raise ValueError(
            f"note must name the limits of a step and the room of the cache, got {run['note']!r}"
        )
    seats, budget, room = (float(each) for each in found.groups())
    prompt, output = float(np.mean(of.prompts)), float(np.mean(of.outputs))
    at = layout.machine(catalog.gpu(run["gpu"]), run["precision"])
    costs = step_costs.costs(
        catalog.model(run["model"]),
        at,
        int(run["accelerators"]),
        prompt,
        context=equilibrium.context_tokens(prompt, 0.0, output, 0.0),
    )
    outputs, count = [int(each) for each in of.outputs], len(of.came_s)
    rows, rows_s = [[float(each) for each in column] for column in (costs.rows, costs.rows_s)]
    pair_s = float(costs.pair_s)
    served = events.serve(
        {
            "came_s": list(of.came_s),
            "prompts": [int(each) for each in of.prompts],
            "outputs": outputs,
            "hits": [0.0] * count,
            "aged": [0.0] * count,
            "rounds": events.rounds(outputs),
            "counted": count,
        },
        {
            "mode": modes.CHUNKED,
            "instances": 1,
            "prefill_instances": 0,
            "shared": 0,
            "budget": budget,
            "most_running": seats,
            "capacity": room,
            "front_capacity": room,
            "transfer_s": 0.0,
            "swap_s": modes.RECOMPUTE,
            "rows": rows,
            "rows_s": rows_s,
            "pair_s": pair_s,
            "cached_s": float(costs.cached_s),
            "front_rows_s": rows_s,
            "front_pair_s": pair_s,
            "width": 1,
            "draft_s": 0.0,
        },
    )
    return of._replace(first_s=np.array(served["first"]), last_s=np.array(served["last"]))
