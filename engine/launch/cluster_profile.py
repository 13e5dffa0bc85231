"""Measured runs of one's own cluster, kept in a TOML file, and what they make of the next estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from engine.base import printing
from engine.base.edition import version
from engine.base.units import human
from engine.calibration import own_runs
from engine.catalog import files
from engine.step.layout import Estimate

HEAD = (
    "# Measured runs of one cluster, written by `system-ml calibrate`. `--profile` takes them into account:\n"
    "# delete those that no longer hold."
)


class OwnKey(TypedDict):
    """What two runs must have in common so that the one says something of the other."""

    gpu: str
    software: str
    experts: bool
    precision: str


class OwnRun(OwnKey):
    """A run that was measured."""

    model: str
    gpus: int
    layout: str
    measured_s: float
    estimated_s: float
    engine: str  # the edition that estimated it


def key_of(at: Estimate) -> OwnKey:
    """The key of the runs that say something of this estimate."""
    return {
        "gpu": at.at.gpu.key,
        "software": at.job.software.key,
        "experts": bool(at.model.experts > 0),
        "precision": at.at.precision,
    }


@dataclass(frozen=True)
class Corrected(printing.Printed):
    """An estimate after runs of one's own: the step with its band, and both as they were without them."""

    step_s: float
    band_s: tuple[float, float]
    raw_step_s: float
    raw_band_s: tuple[float, float]
    runs: int  # that count
    others: int  # of the profile, that do not
    why: str  # they do not
    needed: int  # runs before an estimate is corrected

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "step_s": self.step_s,
            "band_s": list(self.band_s),
            "raw_step_s": self.raw_step_s,
            "raw_band_s": list(self.raw_band_s),
            "runs": self.runs,
            "other_runs": self.others,
            "why_others": self.why,
            "runs_needed": self.needed,
        }


@dataclass(frozen=True)
class OwnRuns:
    """Measured runs of one's own; see ``engine.profile``."""

    runs: tuple[OwnRun, ...]

    def of(self, at: Estimate) -> Corrected:
        """The estimate, corrected by those runs that have its GPU, its program, its format and its kind of
        model, and were estimated by this edition of the engine."""
        key = key_of(at)
        same = [run for run in self.runs if {name: run.get(name) for name in key} == key]
        good = [run for run in same if run["engine"] == version()]
        why = []
        if len(same) < len(self.runs):
            why.append("another GPU, program, format or kind of model")
        if len(good) < len(same):
            why.append("estimated by another edition of the engine")
        raw, (low, high) = at.step_s, at.band_s
        ratios = [run["measured_s"] / run["estimated_s"] for run in good]
        found = own_runs.carried("step", (low / raw, high / raw), ratios)
        ends = (raw * found.low, raw * found.high)
        others = len(self.runs) - len(good)
        return Corrected(
            step_s=raw * found.times,
            band_s=ends,
            raw_step_s=raw,
            raw_band_s=(low, high),
            runs=len(good),
            others=others,
            why="; ".join(why),
            needed=own_runs.carries_from("step"),
        )


def read(path: str | Path) -> OwnRuns:
    """The profile in a file; ValueError with file and line for anything wrong in it."""
    file = Path(path).absolute()
    try:
        given = files.read(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"profile must be a readable TOML file, got {str(path)!r}: {error}") from None
    if others := set(given) - {"run"}:
        raise ValueError(f"{file}:1: a profile has tables [[run]] and nothing else, got {min(others)!r}")
    runs = files.checked(file, "run", given.get("run", []), list[OwnRun])
    try:
        return checked(runs)
    except ValueError as error:
        raise ValueError(f"{files.where(file, 'run', 'measured_s')}: {error}") from None


def checked(runs: Sequence[Any]) -> OwnRuns:
    """The profile of these runs; ValueError for one that is none."""
    if not isinstance(runs, (list, tuple)):
        raise ValueError(f"runs must be the path of a file or a list of runs, got {runs!r}")
    for run in runs:
        if not isinstance(run, dict) or set(run) != set(OwnRun.__annotations__):
            raise ValueError(f"runs must have {', '.join(OwnRun.__annotations__)} each, got {run!r}")
        numbers = [run["measured_s"], run["estimated_s"]]
        fine = all(isinstance(one, (int, float)) and 0.0 < one < math.inf for one in numbers)
        if not fine or not 0.01 <= numbers[0] / numbers[1] <= 100.0:
            raise ValueError(
                "measured_s must be between a hundredth and a hundred times estimated_s, "
                f"got {numbers[0]!r} and {numbers[1]!r}"
            )
    return OwnRuns(tuple(runs))


def added(path: str | Path, run: OwnRun) -> int:
    """Add a run to the profile in a file, which is made if it is not there; how many runs it has then."""
    file = Path(path)
    runs = [*(read(file).runs if file.exists() else ()), run]
    file.write_text(written(runs), encoding="utf-8")
    return len(runs)


def written(runs: Sequence[OwnRun]) -> str:
    """A profile as the text of its file."""
    tables = ("\n".join(["[[run]]", *(f"{key} = {_value(run[key])}" for key in run)]) for run in runs)
    return "\n\n".join([HEAD, *tables]) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "0.0"
    return str(value) if isinstance(value, int) else '"' + str(value).replace("\\", "").replace('"', "") + '"'


@printing.parts.register
def _parts(found: Corrected) -> list[printing.Part]:
    return [in_words(found)]


def in_words(found: Corrected) -> str:
    """The correction in a sentence or two."""
    left = f" {found.others} of the profile's runs do not count: {found.why}." if found.others else ""
    if not found.runs:
        return f"No run of the profile counts here, so the estimate stays as it is.{left}"
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    if found.runs < found.needed:
        return (
            f"{runs} of your own so far. The estimate stays as it is until there are {found.needed}: of "
            f"published runs fewer told too little of the next.{left}"
        )
    low, high = (human(end, "seconds") for end in found.band_s)
    raw = " to ".join(human(end, "seconds") for end in found.raw_band_s)
    return (
        f"Calibrated by {runs} of your own: {human(found.step_s, 'seconds')} a step, in 80 % of cases "
        f"{low} to {high}. Without them: {human(found.raw_step_s, 'seconds')}, {raw}.{left}"
    )
