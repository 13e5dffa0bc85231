"""An event simulator: tasks on named streams, each stream in order, each task after those that it depends on.

It knows what CUDA streams know. A stream runs its tasks one at a time, in the order in which they were issued; a task
starts once the one before it on its stream and all that it depends on have ended. Nothing is drawn at random.

``schedule`` is that rule on plain lists; an ``engine.program`` may call it, and so may a page. ``simulate`` is the same
with names, for tests and tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from engine import check
from engine.program import full


# -- the rule, for programs ------------------------------------------------------------------------------------------
def schedule(streams, stream, duration_s, lag_s, after):
    """(start_s, end_s, waits_for) of tasks that stand in the order of their issue; a list each, one entry for a task.

    ``stream[i]`` is a number below ``streams``, ``after[i]`` a list of the tasks that i needs, issued before or later.
    What a task gives is there at once on its own stream, and ``lag_s`` after its end on another. ``waits_for`` is the
    task whose end let this one start, −1 where it started at once. Tasks that wait in a circle keep NaN.
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
                    # on a tie the stream itself is named: it would have been busy anyway
                    there_s = end_s[j] if stream[j] == s else end_s[j] + lag_s[j]
                    if there_s > ready_s:
                        ready_s, waits_for[i] = there_s, j
                start_s[i], end_s[i] = ready_s, ready_s + duration_s[i]
                before[s], head[s] = i, following[i]
                moving = True
    return start_s, end_s, waits_for


def all_ended(tasks, end_s):
    """Whether all of these tasks have run."""
    for task in tasks:
        if math.isnan(end_s[task]):
            return False
    return True


def uncovered(stream, start_s, end_s, one, behind):
    """(from_s, to_s, task) of the stretches in which one stream works while the one it should hide behind does not."""
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


# -- with names ------------------------------------------------------------------------------------------------------
class Task(NamedTuple):
    """Something that keeps a stream busy; ``after`` names the tasks that must have ended before it starts."""

    name: str
    stream: str
    duration_s: float
    after: tuple[str, ...] = ()
    label: str = ""
    lag_s: float = 0.0              # until what it gives is there on another stream


class Gap(NamedTuple):
    """A stretch of time; as an idle one, with the task that ended it and what that task was waiting for."""

    start_s: float
    end_s: float
    before: str = ""
    waits_for: str = ""


@dataclass(frozen=True)
class Timeline:
    """What ran when: one entry for each task, in the order in which they were issued."""

    tasks: tuple[Task, ...]
    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    waits_for: tuple[str, ...]      # the task whose end let this one start; "" where it started at once

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each task stands in the columns."""
        return {task.name: number for number, task in enumerate(self.tasks)}

    @property
    def streams(self) -> tuple[str, ...]:
        """Their names, in the order in which they first appear."""
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
        """The busy stretches of one stream, a task each, in order; tasks without duration are left out."""
        return [Gap(start, end, task.name, waited) for task, start, end, waited
                in zip(self.tasks, self.start_s, self.end_s, self.waits_for) if task.stream == stream and end > start]

    def busy_s(self, stream: str) -> float:
        """How long a stream works."""
        return sum(span.end_s - span.start_s for span in self.spans(stream))

    def idle(self, stream: str) -> list[Gap]:
        """The stretches in which a stream stands still before its next task, and what it waits for then."""
        found, free_s = [], 0.0
        for span in self.spans(stream):
            if span.start_s > free_s:
                found.append(Gap(free_s, span.start_s, span.before, span.waits_for))
            free_s = span.end_s
        return found

    def exposed(self, stream: str, behind: str) -> list[Gap]:
        """The stretches in which a stream works while the one it should hide behind does not."""
        found = uncovered([task.stream for task in self.tasks], self.start_s, self.end_s, stream, behind)
        return [Gap(start, end, self.tasks[i].name) for start, end, i in zip(*found)]

    def exposed_s(self, stream: str, behind: str) -> float:
        """What of a stream's work does not hide behind another stream."""
        return sum(gap.end_s - gap.start_s for gap in self.exposed(stream, behind))

    def columns(self) -> dict[str, list]:
        """The same as lists of one length, for a picture or a table."""
        return dict(name=[t.name for t in self.tasks], stream=[t.stream for t in self.tasks],
                    label=[t.label or t.name for t in self.tasks], start_s=list(self.start_s), end_s=list(self.end_s),
                    duration_s=[t.duration_s for t in self.tasks], waits_for=list(self.waits_for))


def simulate(tasks) -> Timeline:
    """Run the tasks. ValueError for a name used twice, an unknown one, or tasks that wait in a circle."""
    tasks = tuple(tasks)
    _require_known_names(tasks)
    place = {task.name: number for number, task in enumerate(tasks)}
    streams = {name: number for number, name in enumerate(dict.fromkeys(task.stream for task in tasks))}
    start_s, end_s, waits_for = schedule(
        len(streams), [streams[task.stream] for task in tasks], [task.duration_s for task in tasks],
        [task.lag_s for task in tasks], [[place[name] for name in task.after] for task in tasks])
    stuck = [task.name for task, end in zip(tasks, end_s) if math.isnan(end)]
    if stuck:
        raise ValueError(f"tasks must not wait for each other in a circle, got {', '.join(stuck[:8])}")
    return Timeline(tasks, tuple(start_s), tuple(end_s), tuple(tasks[i].name if i >= 0 else "" for i in waits_for))


def levels(changes) -> tuple[np.ndarray, np.ndarray]:
    """(times, level from each time on) of something that changes by so much at each (time, amount); the times ascend.

    Changes at one time count as one: what is freed at an instant makes room for what is taken then.
    """
    changes = np.array(sorted(changes), dtype=float).reshape(-1, 2)
    times, places = np.unique(changes[:, 0], return_inverse=True)
    sums = np.zeros(len(times))
    np.add.at(sums, places.ravel(), changes[:, 1])
    return times, np.cumsum(sums)


def _require_known_names(tasks) -> None:
    if not check.is_trusted():
        names = {task.name for task in tasks}
        if len(names) < len(tasks):
            raise ValueError(f"tasks must have names of their own, got {len(tasks)} tasks and {len(names)} names")
        check.non_negative(duration_s=[task.duration_s for task in tasks], lag_s=[task.lag_s for task in tasks])
        for task in tasks:
            for name in task.after:
                if name not in names:
                    raise ValueError(f"after must name a task, got {name!r} in {task.name!r}")
