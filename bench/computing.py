"""Python's time for each part of each widget, and how much data is sent to run them in the page instead."""

from __future__ import annotations

import gc
import gzip
import math
import statistics
import time
from contextlib import contextmanager

from bench.tally import against, table
from engine.base import check
from tests import states
from widgets.kit.page import module
from widgets.kit.widget import all_widgets

PART_MS, MODULE_KB = 5.0, 400.0
STATES = 40  # states tried for each widget
SEARCH_MS = 100.0  # allowed time of a search over all layouts, as in bench/cost_model.py
SEARCHES = {
    ("layout_planner", "cloud"),
    ("layout_exam", "memories"),
}  # the first part that needs it runs the whole search


def allowed_ms(cls, part: str) -> float:
    """The time allowed for a part in Python. There is no limit for a part that the page itself computes: only
    a component waits for Python then, and the limit is on its whole update (bench/components.py)."""
    if (cls.slug(), part) in SEARCHES:
        return SEARCH_MS
    return math.inf if cls.in_page else PART_MS


@contextmanager
def no_garbage():
    """Switches garbage collection off inside this block, as timeit does, because it would slow down parts at
    random."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def parts_ms(cls, rounds: int = 9) -> dict[str, list[float]]:
    """Processor milliseconds of each part in some states. Each state is a new one, so that nothing is
    remembered from the one before, as in a drag on a server. What is read or built only once was done
    before."""
    found: dict[str, list[float]] = {name: [] for name in cls.methods("part_of")}
    for state in [states.default(cls), *states.scattered(cls, rounds)]:
        widget = cls()
        widget.set_raw(state)
        with check.trusted(), no_garbage():
            for name, took_ms in found.items():
                began = time.thread_time()
                getattr(widget, name)()
                took_ms.append(1e3 * (time.thread_time() - began))
    return {name: took[1:] for name, took in found.items()}


def slower(found: dict[str, float], what: str, cls) -> str:
    """The slowest part; each one over its budget is listed."""
    slowest = max(found, key=found.get)
    texts = {
        name: against(f"{cls.slug()}, part {name}, {what}", took, allowed_ms(cls, name), "ms")
        for name, took in found.items()
    }
    return f"{slowest} {texts[slowest]}" + " (in page)" * cls.in_page


def report() -> None:
    """Print how long each widget's parts take, and how large its module and table are."""
    rows = []
    for slug, cls in all_widgets().items():
        found = parts_ms(cls, STATES)
        median = {name: statistics.median(took) for name, took in found.items()}
        files = {"module": module.module(cls).encode(), "table": module.table(cls)}
        rows.append(
            [
                slug,
                slower(median, "computed in Python", cls),
                f"{sum(median.values()):.1f}",
                slower(
                    {name: max(took) for name, took in found.items()}, f"the slowest of {STATES} states", cls
                ),
                *(
                    against(f"{slug}, {kind}", len(gzip.compress(data, 6)) / 1e3, MODULE_KB, "kB")
                    for kind, data in files.items()
                ),
            ]
        )
    table(
        "Widgets: Python in a new state, and what the page loads (gzip)",
        ["widget", "slowest part, ms", "all parts, ms", "slowest state, ms", "module, kB", "table, kB"],
        rows,
    )
