"""Recorded traces: a step as torch.profiler saw it, as lanes of events (record/_profiler.py writes them).

Leaves out whatever the recorder left out; the nesting depth of an event counts only events that it kept.
"""

from __future__ import annotations

import re
from functools import cache

from engine.base import check
from engine.executed.profile import MICROSECOND, Event, Lane, Profile
from engine.one_gpu import measurements, recordings


def recorded_names() -> list[str]:
    """The recordings that are traces."""
    return [name for name in recordings.names() if "lanes" in recordings.load(name)]


@cache
def recorded(name: str) -> Profile:
    """The trace of a recording, made on a CPU."""
    check.one_of(recorded_names(), recorded=name)
    found = recordings.load(name)
    source = f"recorded with {recordings.made_with(name)} on {found['of']} ({found['made_by']})"
    return Profile(_lanes(found["lanes"]), source)


def measured(subject: str) -> Profile:
    """The trace of a subject of measure/ on the first GPU that has one; ValueError if there is none."""
    found = {device: each for device, each in measurements.of(subject).items() if "lanes" in each}
    if not found:
        raise ValueError(f"no GPU has been measured for {subject!r}: make measure, on a machine that has one")
    device, taken = next(iter(found.items()))
    torch = measurements.devices()[device]["versions"]["torch"].split("+")[0]
    source = f"recorded with PyTorch {torch} on one {device}, {taken['of']} (measure/{subject}.py)"
    lanes = [
        lane | {"events": [[kernel(name), *times] for name, *times in lane["events"]]}
        if lane["lane"].startswith("stream")
        else lane
        for lane in taken["lanes"]
    ]
    return Profile(_lanes(lanes), source)


def kernel(name: str) -> str:
    """The short name of a kernel, from its full C++ name: without the return type, the namespace and the
    template's arguments. All products of CUTLASS are one kernel, so there the template's argument is the
    name."""
    inner = re.fullmatch(r"void cutlass::Kernel2?<(\w+)>.*", name)
    if inner:
        return inner[1]
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", plain)[0].rsplit("::", 1)[-1]


def _lanes(lanes: list[dict]) -> tuple[Lane, ...]:
    return tuple(Lane(lane["lane"], nested(lane["events"])) for lane in lanes)


def nested(rows: list[list]) -> tuple[Event, ...]:
    """The events of a lane, in the order in which they began, with their nesting depth; one that overlaps the
    last without ending in it is placed below it."""
    found, open_until = [], []  # by depth, the end of the event that is still running
    for name, start_us, took_us in rows:
        end_us = start_us + took_us
        depth = next((at for at, until in enumerate(open_until) if until <= start_us), len(open_until))
        open_until[depth:] = [end_us]
        found.append(Event(name, start_us * MICROSECOND, end_us * MICROSECOND, depth))
    return tuple(found)
