"""What Python takes for each part of each widget, and how much of it goes over the wire to run in the page instead."""

from __future__ import annotations

import gzip
import statistics
import time

from bench.tally import against, table
from engine import check
from tests import states
from widgets.kit import export
from widgets.kit.widget import all_widgets

PART_MS, MODULE_KB = 5.0, 400.0
SEARCH_MS = 100.0               # what a search over all layouts may take, here as in bench/cost_model.py
SEARCHES = {("layout_planner", "stages"), ("layout_exam", "memories")}      # the first part that asks runs the whole search


def allowed_ms(slug: str, part: str) -> float:
    """The budget of a part."""
    return SEARCH_MS if (slug, part) in SEARCHES else PART_MS


def parts_ms(cls, rounds: int = 9) -> dict[str, float]:
    """Milliseconds of the processor for each part, the median of some states. Each state is a new one, so that nothing
    is remembered from the one before; which is what a drag costs a server."""
    found: dict[str, list[float]] = {}
    for state in states.scattered(cls, rounds):
        widget = cls()
        widget.set_raw(state)
        with check.trusted():
            for name in cls.methods("part_of"):
                began = time.thread_time()
                getattr(widget, name)()
                found.setdefault(name, []).append(1e3 * (time.thread_time() - began))
    return {name: statistics.median(took) for name, took in found.items()}


def report() -> None:
    rows = []
    for slug, cls in all_widgets().items():
        found = parts_ms(cls)
        for name, took in found.items():
            against(f"{slug}, part {name}, computed in Python", took, allowed_ms(slug, name), "ms")
        slowest = max(found, key=found.get)
        files = {"module": export.module(cls).encode(), "table": export.table(cls)}
        rows.append([slug, f"{slowest} {found[slowest]:.2f}", f"{sum(found.values()):.1f}",
                     *(against(f"{slug}, {kind}", len(gzip.compress(data, 6)) / 1e3, MODULE_KB, "kB")
                       for kind, data in files.items())])
    table("Widgets: Python in a new state, and what the page loads (gzip)",
          ["widget", "slowest part, ms", "all parts, ms", "module, kB", "table, kB"], rows)
