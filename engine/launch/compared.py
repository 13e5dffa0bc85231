"""A run that was measured beside the engine's estimate of it: how far apart they are, and what could be the
reason. See ``engine.calibrate``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.base import printing
from engine.base.edition import version
from engine.base.units import human
from engine.calibration import bands, own_runs
from engine.catalog.software import CHOICES, TRUE_OR_FALSE, changed
from engine.launch.cluster_profile import OwnRun, key_of
from engine.launch.logs import FromLog
from engine.launch.shown import headline
from engine.launch.verdict import Report
from engine.serving import inference, server_software
from engine.serving.inference import Served
from engine.step import layout as layouts
from engine.step.layout import Estimate

NEAR = 0.03  # closer than this nothing asks for a reason
BETTER = 0.5  # a switch is named if it takes away so much of the gap, in logarithms
MOST = 5  # reasons that are named
AXES = ("data", "tensor", "experts")  # of traffic that a program may hide


class Term(NamedTuple):
    """A term of the estimate, and by how much it alone would have to be longer or shorter."""

    name: str
    seconds: float
    times: float


class Switch(NamedTuple):
    """Something that the program may do otherwise than assumed, and what the step would take then."""

    change: str  # as ``--with`` takes it
    step_s: float


@dataclass(frozen=True)
class Compared:
    """One quantity, measured and estimated, and the estimate's 80 % band."""

    what: str  # step, memory or token
    measured: float
    estimated: float
    band: tuple[float, float]

    @property
    def ratio(self) -> float:
        """FromLog over estimated."""
        return self.measured / self.estimated

    @property
    def inside(self) -> bool:
        """Whether what was measured lies in the band."""
        return self.band[0] <= self.measured <= self.band[1]

    def as_dict(self) -> dict:
        """The figures, and whether the one lies in the other's band."""
        return {
            "measured": self.measured,
            "estimated": self.estimated,
            "band": list(self.band),
            "ratio": self.ratio,
            "inside": self.inside,
        }


@dataclass(frozen=True)
class Comparison(printing.Printed):
    """A launch's measured run beside its estimate."""

    report: Report
    measured: FromLog
    found: tuple[Compared, ...]
    terms: tuple[Term, ...] = ()
    switches: tuple[Switch, ...] = ()
    remarks: tuple[str, ...] = ()

    def of(self, what: str) -> Compared | None:
        """What was compared of this name."""
        return next((one for one in self.found if one.what == what), None)

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "program": self.measured.program,
            "lines": self.measured.lines,
            **{one.what: one.as_dict() for one in self.found},
            "terms": [{"term": t.name, "time_s": t.seconds, "alone_times": t.times} for t in self.terms],
            "switches": [{"with": s.change, "step_s": s.step_s} for s in self.switches],
            "remarks": list(self.remarks),
        }

    def entry(self) -> OwnRun | None:
        """What a profile keeps of it; None where nothing carries over to other runs."""
        step, at = self.of("step"), self.report.estimate
        if step is None or at is None or not own_runs.carries_from(step.what):
            return None
        return {
            **key_of(at),
            "model": at.model.key,
            "gpus": at.layout.gpus,
            "layout": layouts.written(at.layout),
            "measured_s": step.measured,
            "estimated_s": step.estimated,
            "engine": version(),
        }


def compared(report: Report, measured: FromLog) -> Comparison:
    """The launch that was checked beside what was measured of it; ValueError where they have nothing in
    common."""
    found: list[Compared] = []
    remarks: list[str] = []
    terms: tuple[Term, ...] = ()
    switches: tuple[Switch, ...] = ()
    if at := report.estimate:
        terms, switches = _training(report, at, measured, found, remarks)
    elif report.served:
        _serving(report.served, measured, found, remarks)
    if not found:
        if report.estimate or report.served:
            raise ValueError("log must say how long a step or a token takes, or the memory; it says neither")
        raise ValueError(f"files must be a launch that can be estimated. {headline(report)}")
    return Comparison(report, measured, tuple(found), terms, switches, tuple(remarks))


def _training(
    report: Report, at: Estimate, measured: FromLog, found: list[Compared], remarks: list[str]
) -> tuple[tuple[Term, ...], tuple[Switch, ...]]:
    batch = at.job.global_batch
    if measured.global_batch and measured.global_batch != batch:
        remarks.append(
            f"the log states a global batch of {measured.global_batch:,}, the launch {batch:,}: "
            "another run than this one, or a batch that ramps up"
        )
    if measured.memory_bytes:
        outside = float(at.memory_bytes["overhead"])
        low, high = bands.band("memory")
        held = report.total_bytes - outside
        found.append(Compared("memory", measured.memory_bytes, held, (low * held, high * held)))
        remarks.append(
            f"PyTorch counts its own tensors; {human(outside, 'bytes')} of the estimate lie outside of it "
            "(contexts, NCCL) and are left out of both"
        )
    took = measured.step_of(at.tokens, at.layout.gpus)
    if not took:
        return (), ()
    found.append(Compared("step", took, at.step_s, at.band_s))
    gap = took - at.step_s
    if abs(math.log(took / at.step_s)) < NEAR:
        return (), ()
    terms = [
        Term(name, seconds, (seconds + gap) / seconds) for name, seconds in at.time_s.items() if seconds > 0
    ]
    possible = [term for term in terms if term.times > 0]
    possible.sort(key=lambda term: abs(math.log(term.times)))
    return tuple(possible[:MOST]), _switched(at, took)


def _switched(at: Estimate, took: float) -> tuple[Switch, ...]:
    """What the program may do otherwise so that most of the gap is gone, nearest first."""
    by, gap = at.job.software, abs(math.log(took / at.step_s))
    options = [(name, value) for name, values in CHOICES.items() for value in values]
    options += [(name, not getattr(by, name)) for name in TRUE_OR_FALSE]
    tried: list[Switch] = []
    for name, value in options:
        if getattr(by, name) == value:
            continue
        try:
            other = layouts.estimate(
                at.model, at.at, replace(at.job, software=changed(by, **{name: value})), at.layout
            )
        except ValueError:  # this layout cannot be run so
            continue
        if abs(math.log(took / other.step_s)) <= (1.0 - BETTER) * gap:
            word = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value or '""'
            tried.append(Switch(f"{name}={word}", other.step_s))
    tried.sort(key=lambda one: abs(math.log(took / one.step_s)))
    return tuple(tried[:MOST])


def _serving(served: Served, measured: FromLog, found: list[Compared], remarks: list[str]) -> None:
    if not measured.token_s:
        return
    serving = served.serving
    batch = max(1, round(measured.requests)) if measured.requests else int(serving.batch)
    prompt = max(1, round(measured.held)) if measured.held else int(serving.prompt)
    said = f"{batch} requests at once" + ("" if measured.requests else ", as assumed")
    said += f", {prompt:,} tokens of each in the cache" + ("" if measured.held else ", as assumed")
    remarks.append(said)
    at = replace(serving, batch=batch, prompt=prompt, output=1)
    answer = inference.infer(served.model, served.at, at)
    if served.software:
        answer = server_software.run_by(served.software, answer)
    band = answer.band_s["time_per_output_token_s"]
    found.append(Compared("token", measured.token_s, answer.time_per_output_token_s, band))


# -- in words ------------------------------------------------------------------------------------------------
NAMES = {
    "step": ("a step", "seconds"),
    "memory": ("memory of the fullest GPU", "bytes"),
    "token": ("a token", "seconds"),
}


@printing.parts.register
def _parts(found: Comparison) -> list[printing.Part]:
    """FromLog beside estimated, then what could be the reason."""
    rows = [
        {
            "of": NAMES[one.what][0],
            "measured": human(one.measured, NAMES[one.what][1]),
            "estimated": human(one.estimated, NAMES[one.what][1]),
            "80 % band": " to ".join(human(end, NAMES[one.what][1]) for end in one.band),
            "measured is": f"{one.ratio:.2f} ×, {'inside' if one.inside else 'outside'} the band",
        }
        for one in found.found
    ]
    said: list[printing.Part] = [printing.Table(rows, list(rows[0]))]
    if found.measured.lines:
        said.insert(0, f"{found.measured.lines:,} lines of {found.measured.program}, their steady part.")
    if found.terms:
        said.append("One term alone would explain the step if it took")
        said.append(
            printing.Table(
                [
                    {"term": t.name, "estimated_s": t.seconds, "times": f"{t.times:.2f} ×"}
                    for t in found.terms
                ],
                ["term", "estimated_s", "times"],
            )
        )
    if found.switches:
        said.append(
            "Most of the gap is gone if the program does one thing otherwise than assumed (try --with):"
        )
        said.append(printing.Table([s._asdict() for s in found.switches], ["change", "step_s"]))
    elif found.terms:
        said.append("No single switch of the program takes away half of the gap.")
    return [*said, *(f"Note: {one}." for one in found.remarks)]
