"""States of a widget to try: every stop of each control around the default, the presets, and seeded random
ones."""

from __future__ import annotations

import json
import os
import zlib
from functools import cache, lru_cache
from itertools import chain

import numpy as np

from engine.base import check


def values_of(control) -> list[float]:
    """All values that a reader can set a control to, in the form that the page stores."""
    if control.kind == "choice":
        return list(range(len(control.options)))
    return [0, 1] if control.kind == "switch" else control.grid.tolist()


def default(cls) -> dict:
    return cls().raw_state()


def presets(cls) -> list[dict]:
    """The state behind each preset's button."""
    found = []
    for texts in cls.presets.values():
        widget = cls()
        widget.set_state(texts)
        found.append(widget.raw_state())
    return found


def around(cls, most: int = 10**9) -> list[dict]:
    """The default state with one control moved to each of its stops, or to at most ``most`` of them, with the
    ends."""
    home = default(cls)
    return [
        home | {name: value}
        for name, control in cls.controls().items()
        for value in some(values_of(control), most)
    ]


def ends_of_the_main_slider(cls) -> list[dict]:
    """The default with its first slider at either end."""
    name, control = next(
        (name, each) for name, each in cls.controls().items() if each.kind == "number" and not each.more
    )
    return [default(cls) | {name: end} for end in (values_of(control)[0], values_of(control)[-1])]


# With EVERY=1, tests that otherwise use a few representative figures and states use all of them.
ALL_OF_THEM = bool(os.environ.get("EVERY"))

# The controls that the search below moves in figures that simulate or search in each state: it would take
# up to seconds in each process that asks (tests/test_states.py).
FOUND = {
    "prefill_decode": {"mode": 2, "wire": 940e6},
    "layout_planner": {"gpus": 1.0},
    "deployment_planner": {"tpot": 0.005},
    "schedule_by_hand": dict.fromkeys((f"stage_{s}" for s in (1, 2, 3, 4)), float(0b1_0000_1111_0000_1111)),
    "launch_timeline": {"model": 2, "batch": 1024.0, "tp": 3},
}


# Figures whose target takes more than two moves of a hand
FAR = {"incident_room", "schedule_by_hand"}


@cache
def at_the_target(cls, searched: bool = False) -> dict:
    """A state that meets the target of *break it*, as near as possible to what a reader sees first: the
    default or a preset, either of them with one control moved as little as possible, or the default with two
    controls moved."""
    target = next(name for name, method in cls.methods("regime_target").items() if method.regime_target)
    home, widget = default(cls), cls()

    def met(state: dict) -> bool:
        widget.set_raw(state)
        with check.trusted():
            return bool(getattr(widget, target)()[0])

    def moved(state: dict, most: int = 5) -> list[dict]:
        moves = [
            (abs(place - values.index(min(values, key=lambda value: abs(value - state[name])))), name, value)
            for name, control in cls.controls().items()
            if control.kind != "player"
            for values in [some(values_of(control), most)]
            for place, value in enumerate(values)
        ]
        return [state | {name: value} for _, name, value in sorted(moves, key=lambda move: move[0])]

    found = home | FOUND.get(cls.slug(), {})
    if found != home and not searched and met(found):
        return found
    starts = [home, *presets(cls)]
    near = (state for start in starts for state in moved(start))
    far = (state for start in moved(home) for state in moved(start))
    return next(state for state in chain(starts, near, moved(home, 10**9), far) if met(state))


def some(values: list, most: int) -> list:
    """At most ``most`` of the values, evenly spaced, with the first and the last."""
    if len(values) <= most:
        return values
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def typed(control, random) -> float:
    """A value between the stops, as a reader may type it."""
    low, high = control.bounds
    value = (
        np.exp(random.uniform(np.log(low), np.log(high)))
        if control.log and low > 0
        else random.uniform(low, high)
    )
    return float(np.clip(round(value) if control.whole else value, low, high))


def scattered(cls, count: int, between_stops: bool = True) -> list[dict]:
    """Random states, the same in each run; half of their numbers lie between the stops.

    Values tabulated for the page exist only at the stops of their controls, so those controls stay on stops.
    """
    random = np.random.default_rng(zlib.crc32(cls.slug().encode()))
    on_stops = {name for method in cls.methods("table_of").values() for name in method.table_of}
    found = []
    for _ in range(count):
        state = {}
        for name, control in cls.controls().items():
            off_grid = (
                between_stops
                and name not in on_stops
                and not getattr(control, "only", "")
                and control.kind in ("number", "player")
                and random.random() < 0.5
            )
            values = values_of(control)
            state[name] = typed(control, random) if off_grid else values[random.integers(len(values))]
        found.append(state)
    return found


def telling_value(cls, name: str, home: dict, ends_alone: bool = False):
    """A value of one control with which the widget shows something else than in the state ``home``; None if
    there is none."""
    before = shown(cls, **home)
    others = [value for value in values_of(cls.controls()[name]) if value != home[name]]
    tried = (others[-1], others[0], *([] if ends_alone else (others[len(others) // 2], *others[::7])))
    return next((value for value in tried if shown(cls, **home | {name: value}) != before), None)


@lru_cache(maxsize=100)  # the state ``home`` is needed for each control
def shown(cls, **state) -> str:
    """Everything shown in a state, for comparison; the words of a regime that is not met are not shown."""
    widget = cls()
    widget.set_raw(state)
    found = widget.shown()
    found["regimes"] = {name: regime for name, regime in found["regimes"].items() if regime["met"]}
    return json.dumps(rounded(found), default=in_seven_digits)


def rounded(found):
    """A result with each single number rounded as by ``in_seven_digits``."""
    if isinstance(found, dict):
        return {name: rounded(each) for name, each in found.items()}
    return float(np.float32(found)) if isinstance(found, float) else found


def in_seven_digits(column) -> list | str:
    """A column rounded to seven digits for comparison, because the last digits may differ by rounding."""
    column = np.asarray(column)
    return column.astype(np.float32).tobytes().hex() if column.dtype.kind == "f" else column.tolist()


def daily(found: list, step: int = 2) -> list:
    """One in ``step`` of many states; all of them with EVERY=1, as in the weekly run."""
    return found if ALL_OF_THEM else found[::step]


def sample(cls, count: int = 60) -> list[dict]:
    """The states in which page and Python are compared: with more controls, fewer stops of each."""
    stops = min(9, max(3, 150 // len(cls.controls())))
    return [default(cls), *presets(cls), *around(cls, stops), *scattered(cls, count)]
