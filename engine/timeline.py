"""An event simulator: tasks on named streams, each stream in order, each task after those that it depends on.

It knows what CUDA streams know. A stream runs its tasks one at a time, in the order in which they were issued; a task
starts once the one before it on its stream and all that it depends on have ended. Nothing is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from engine import check


class Task(NamedTuple):
    """Something that keeps a stream busy; ``after`` names the tasks that must have ended before it starts."""

    name: str
    stream: str
    duration_s: float
    after: tuple[str, ...] = ()
    label: str = ""


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
        cover, found = self.spans(behind), []
        for span in self.spans(stream):
            free_s = span.start_s
            for busy in cover:
                if busy.end_s > free_s and busy.start_s < span.end_s:
                    if busy.start_s > free_s:
                        found.append(Gap(free_s, busy.start_s, span.before))
                    free_s = busy.end_s
            if free_s < span.end_s:
                found.append(Gap(free_s, span.end_s, span.before))
        return found

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
    queues: dict[str, list[int]] = {}
    for number, task in enumerate(tasks):
        queues.setdefault(task.stream, []).append(number)
    ended: dict[str, float] = {}
    start_s, end_s, waits_for = [0.0] * len(tasks), [0.0] * len(tasks), [""] * len(tasks)
    heads = dict.fromkeys(queues, 0)
    moving = True
    while moving:
        moving = False
        for stream, queue in queues.items():
            while heads[stream] < len(queue) and all(name in ended for name in tasks[queue[heads[stream]]].after):
                number = queue[heads[stream]]
                before = (tasks[queue[heads[stream] - 1]].name,) if heads[stream] else ()
                # on a tie the stream itself is named: it would have been busy anyway
                for name in (*before, *tasks[number].after):
                    if ended[name] > start_s[number]:
                        start_s[number], waits_for[number] = ended[name], name
                end_s[number] = ended[tasks[number].name] = start_s[number] + tasks[number].duration_s
                heads[stream] += 1
                moving = True
    stuck = [task.name for task in tasks if task.name not in ended]
    if stuck:
        raise ValueError(f"tasks must not wait for each other in a circle, got {', '.join(stuck[:8])}")
    return Timeline(tasks, tuple(start_s), tuple(end_s), tuple(waits_for))


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
        check.non_negative(duration_s=[task.duration_s for task in tasks])
        for task in tasks:
            for name in task.after:
                if name not in names:
                    raise ValueError(f"after must name a task, got {name!r} in {task.name!r}")
