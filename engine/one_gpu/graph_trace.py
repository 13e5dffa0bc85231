"""The recording of Dynamo as numbers for a figure: what happened to each line of a function in one call.

Each text is represented by its index in TEXTS, so that a page can look all texts up in one table. NaN means
that there is no text.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from engine.base import check
from engine.one_gpu import recordings

RECORDING = recordings.load("graph_breaks")
EXAMPLES = RECORDING["examples"]
NAMES = [each["name"] for each in EXAMPLES]
MODES = ("automatic", "off", "on")  # numbered as in engine.one_gpu.compilation
VERSIONS = ("written", "mended")
CALLS = len(EXAMPLES[0]["written"]["runs"]["automatic"]["calls"])
ROWS = max(len(each[version]["source"]) for each in EXAMPLES for version in VERSIONS if version in each)
GUARDS, NOTES = 5, 2  # the most that are shown
EAGER, PYTHON = -1.0, 0.0  # a line's state; 1, 2, … is the number of its graph in the call
REUSES, COMPILES, WITHOUT = 0.0, 1.0, 2.0  # what a call does


def _texts() -> list[str]:
    """Every text that a recording shows, once."""
    found = {""}
    for each in EXAMPLES:
        for version in VERSIONS:
            for run in each.get(version, {}).get("runs", {}).values():
                found |= set(each[version]["source"])
                for call in run["calls"]:
                    found |= set(_notes(run, call))
                for graph in run["graphs"]:
                    found |= set(graph["guards"]) | set(graph["ops"].values())
    return sorted(found)


def _broken(run: dict, call: dict) -> list[dict]:
    """The graph breaks in a call. There are none if the call runs eagerly only because the limit was
    reached."""
    return run["breaks"] if call["ran"] or not run["graphs"] else []


def _notes(run: dict, call: dict) -> list[str]:
    """The notes on a call: why its graphs end; and which guard caused a recompilation, or that the limit
    prevented one."""
    over = bool(run["graphs"]) and not call["ran"]
    return (
        [f"✗ {broken['why']}" for broken in _broken(run, call)]
        + [f"guard failed: {call['why']}"] * bool(call["why"])
        + [f"the guards of all {len(run['graphs'])} graphs failed, and no more may be compiled"] * over
    )


TEXTS = _texts()
_NUMBER = {text: float(number) for number, text in enumerate(TEXTS)}


def narrow(text: str) -> str:
    """A line of code with half its indentation, for a phone."""
    bare = text.lstrip(" ")
    return " " * ((len(text) - len(bare)) // 2) + bare


def short(text: str, most: int = 44) -> str:
    """The beginning of a long text, cut between words."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def _column(values, length: int) -> np.ndarray:
    """The values, padded with NaN."""
    column = np.full(length, np.nan)
    column[: min(len(values), length)] = list(values)[:length]
    return column


def _version(example: dict, version: str, mode: str, call: int) -> dict:
    """One version of a function at one call."""
    if version not in example:
        lengths = dict(
            line=ROWS, state=ROWS, ops=ROWS, notes=NOTES, break_row=NOTES, guards=GUARDS, strip=CALLS
        )
        nothing = dict.fromkeys(("length", "ran", "compiled", "anew", "in_graphs", "ops_all", "checks"), 0.0)
        return {name: np.full(length, np.nan) for name, length in lengths.items()} | nothing
    source, runs = example[version]["source"], example[version]["runs"]
    run = runs.get(mode, runs["automatic"])
    now = run["calls"][call - 1]
    graphs = [run["graphs"][number] for number in now["ran"]]
    states = [
        EAGER if letter == "e" else PYTHON if letter == "." else float(letter) for letter in now["rows"]
    ]
    ops = [
        _NUMBER[next((g["ops"][str(row)] for g in graphs if str(row) in g["ops"]), "")]
        for row in range(len(source))
    ]
    guards = dict.fromkeys(text for graph in graphs for text in graph["guards"])
    return {
        "line": _column([_NUMBER[text] for text in source], ROWS),
        "state": _column(states, ROWS),
        "ops": _column(ops, ROWS),
        "length": float(len(source)),
        "notes": _column([_NUMBER[text] for text in _notes(run, now)], NOTES),
        "break_row": _column([float(broken["row"]) for broken in _broken(run, now)], NOTES),
        "guards": _column([_NUMBER[text] for text in guards], GUARDS),
        "strip": _column([_does(each) for each in run["calls"]], CALLS),
        "ran": float(len(now["ran"])),
        "in_graphs": float(now["in_graphs"]),
        "ops_all": float(now["ops"]),
        "compiled": float(sum(len(each["compiled"]) for each in run["calls"][:call])),
        "anew": float(bool(now["why"])),
        "checks": float(sum(graph["checks"] for graph in graphs)),
    }


def _does(call: dict) -> float:
    return COMPILES if call["compiled"] else REUSES if call["ran"] else WITHOUT


@cache
def view(example: int, dynamic: int, call: int) -> dict:
    """One call of one function, as columns: written_line, mended_line, written_state and so on; NaN where
    there is no mended version."""
    check.between(0, len(EXAMPLES) - 1, example=example)
    check.between(1, CALLS, call=call)
    found = {}
    for version in VERSIONS:
        for name, value in _version(EXAMPLES[int(example)], version, MODES[int(dynamic)], int(call)).items():
            found[f"{version}_{name}"] = np.atleast_1d(value)
    return found
