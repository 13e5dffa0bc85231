"""An event simulator: tasks on named streams, each stream in order, each task after its dependencies.

It follows the rules of CUDA streams. A stream runs its tasks one at a time, in the order in which they were
issued; a task starts once the one before it on its stream and everything that it depends on have ended.
Nothing is random.

``schedule`` applies these rules to plain lists, so that an ``engine.base.program``, and hence a page, can
call it. ``simulate`` is the same with names, for tests and tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from engine.base import check
from engine.base.program import full


# -- the rule, for programs ----------------------------------------------------------------------------------
def schedule(
    streams: int, stream: list[int], duration_s: list[float], lag_s: list[float], after: list[list[int]]
) -> tuple[list[float], list[float], list[int]]:
    """(start_s, end_s, waits_for) of tasks listed in the order of issue; each is a list with one entry per
    task.

    ``stream[i]`` is a number below ``streams``, ``after[i]`` a list of the tasks that i needs, issued before
    or later. A task's result is available at once on its own stream, and ``lag_s`` after its end on another.
    ``waits_for`` is the task whose end let this one start, −1 where it started at once. Tasks that wait in a
    circle keep NaN.
    """
    count = len(stream)
    head, tail, following = full(streams, -1), full(streams, -1), full(count, -1)
    for i in range(count):
        s = stream[i]
        if head[s] < 0:
            head[s] = i
        else:
            following[tail[s]] = i
        tail[s] = i
    start_s, end_s, waits_for = full(count, math.nan), full(count, math.nan), full(count, -1)
    before = full(streams, -1)
    moving = True
    while moving:
        moving = False
        for s in range(streams):
            while head[s] >= 0 and all_ended(after[head[s]], end_s):
                i = head[s]
                ready_s = 0.0
                if before[s] >= 0 and end_s[before[s]] > 0:
                    ready_s, waits_for[i] = end_s[before[s]], before[s]
                for j in after[i]:
                    # on a tie the stream itself is named, because it would have been busy anyway
                    there_s = end_s[j] if stream[j] == s else end_s[j] + lag_s[j]
                    if there_s > ready_s:
                        ready_s, waits_for[i] = there_s, j
                start_s[i], end_s[i] = ready_s, ready_s + duration_s[i]
                before[s], head[s] = i, following[i]
                moving = True
    return start_s, end_s, waits_for


def all_ended(tasks: list[int], end_s: list[float]) -> bool:
    """Whether all of these tasks have run."""
    for task in tasks:  # noqa: SIM110  a program knows no `all`
        if math.isnan(end_s[task]):
            return False
    return True


def uncovered(
    stream: Sequence[Any], start_s: Sequence[float], end_s: Sequence[float], one: Any, behind: Any
) -> tuple[list[float], list[float], list[int]]:
    """(from_s, to_s, task) of the stretches in which one stream works while the stream that should hide it
    does not."""
    from_s, to_s, whose = [], [], []
    covers = []
    for i in range(len(stream)):
        if stream[i] == behind and end_s[i] > start_s[i]:
            covers.append(i)
    first = 0
    for i in range(len(stream)):
        if stream[i] == one and end_s[i] > start_s[i]:
            while first < len(covers) and end_s[covers[first]] <= start_s[i]:
                first += 1
            free_s, k = start_s[i], first
            while k < len(covers) and start_s[covers[k]] < end_s[i]:
                if start_s[covers[k]] > free_s:
                    from_s.append(free_s)
                    to_s.append(start_s[covers[k]])
                    whose.append(i)
                free_s = end_s[covers[k]]
                k += 1
            if free_s < end_s[i]:
                from_s.append(free_s)
                to_s.append(end_s[i])
                whose.append(i)
    return from_s, to_s, whose


# -- with names ----------------------------------------------------------------------------------------------
class Task(NamedTuple):
    """A task that keeps a stream busy; ``after`` names the tasks that must end before it starts."""

    name: str
    stream: str
    duration_s: float
    after: tuple[str, ...] = ()
    label: str = ""
    lag_s: float = 0.0  # until its result is available on another stream


class Gap(NamedTuple):
    """A stretch of time; if idle, with the task that ended it and the task which that one was waiting for."""

    start_s: float
    end_s: float
    before: str = ""
    waits_for: str = ""


@dataclass(frozen=True)
class Timeline:
    """When each task ran: one entry per task, in the order of issue."""

    tasks: tuple[Task, ...]
    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    waits_for: tuple[str, ...]  # the task whose end let this one start; "" where it started at once

    @cached_property
    def place(self) -> dict[str, int]:
        """The index of each task in the columns."""
        return {task.name: number for number, task in enumerate(self.tasks)}

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams' names, in order of first appearance."""
        return tuple(dict.fromkeys(task.stream for task in self.tasks))

    @property
    def total_s(self) -> float:
        """When the last task ends."""
        return max(self.end_s, default=0.0)

    def starts(self, name: str) -> float:
        """When a task starts."""
        return self.start_s[self.place[name]]

    def ends(self, name: str) -> float:
        """When a task ends."""
        return self.end_s[self.place[name]]

    def spans(self, stream: str) -> list[Gap]:
        """The busy stretches of one stream, one per task, in order; tasks without duration are left out."""
        return [
            Gap(start, end, task.name, waited)
            for task, start, end, waited in zip(self.tasks, self.start_s, self.end_s, self.waits_for)
            if task.stream == stream and end > start
        ]

    def busy_s(self, stream: str) -> float:
        """The total time that a stream works."""
        return sum(span.end_s - span.start_s for span in self.spans(stream))

    def idle(self, stream: str) -> list[Gap]:
        """The stretches in which a stream is idle before its next task, with what it is waiting for."""
        found, free_s = [], 0.0
        for span in self.spans(stream):
            if span.start_s > free_s:
                found.append(Gap(free_s, span.start_s, span.before, span.waits_for))
            free_s = span.end_s
        return found

    def exposed(self, stream: str, behind: str) -> list[Gap]:
        """The stretches in which a stream works while the stream that should hide it does not."""
        found = uncovered([task.stream for task in self.tasks], self.start_s, self.end_s, stream, behind)
        return [Gap(start, end, self.tasks[i].name) for start, end, i in zip(*found)]

    def exposed_s(self, stream: str, behind: str) -> float:
        """How much of a stream's work is not hidden behind another stream."""
        return sum(gap.end_s - gap.start_s for gap in self.exposed(stream, behind))

    def columns(self) -> dict[str, list]:
        """The same as lists of equal length, for a picture or a table."""
        return dict(
            name=[t.name for t in self.tasks],
            stream=[t.stream for t in self.tasks],
            label=[t.label or t.name for t in self.tasks],
            start_s=list(self.start_s),
            end_s=list(self.end_s),
            duration_s=[t.duration_s for t in self.tasks],
            waits_for=list(self.waits_for),
        )


def simulate(tasks: Iterable[Task]) -> Timeline:
    """Run the tasks. ValueError for a duplicate name, an unknown one, or tasks that wait in a circle."""
    tasks = tuple(tasks)
    _require_known_names(tasks)
    place = {task.name: number for number, task in enumerate(tasks)}
    streams = {name: number for number, name in enumerate(dict.fromkeys(task.stream for task in tasks))}
    start_s, end_s, waits_for = schedule(
        len(streams),
        [streams[task.stream] for task in tasks],
        [task.duration_s for task in tasks],
        [task.lag_s for task in tasks],
        [[place[name] for name in task.after] for task in tasks],
    )
    stuck = [task.name for task, end in zip(tasks, end_s) if math.isnan(end)]
    if stuck:
        raise ValueError(f"tasks must not wait for each other in a circle, got {', '.join(stuck[:8])}")
    return Timeline(
        tasks, tuple(start_s), tuple(end_s), tuple(tasks[i].name if i >= 0 else "" for i in waits_for)
    )


def levels(changes: Iterable[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """(times, level from each time on) of a quantity that changes by an amount at each (time, amount); the
    times ascend.

    Changes at the same time count as one, so what is freed at an instant makes room for what is allocated
    then.
    """
    ascending = np.array(sorted(changes), dtype=float).reshape(-1, 2)
    times, places = np.unique(ascending[:, 0], return_inverse=True)
    sums = np.zeros(len(times))
    np.add.at(sums, places.ravel(), ascending[:, 1])
    return times, np.cumsum(sums)


def _require_known_names(tasks) -> None:
    if not check.is_trusted():
        names = {task.name for task in tasks}
        if len(names) < len(tasks):
            raise ValueError(
                f"tasks must have names of their own, got {len(tasks)} tasks and {len(names)} names"
            )
        check.non_negative(
            duration_s=[task.duration_s for task in tasks], lag_s=[task.lag_s for task in tasks]
        )
        for task in tasks:
            for name in task.after:
                if name not in names:
                    raise ValueError(f"after must name a task, got {name!r} in {task.name!r}")
