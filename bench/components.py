"""Python's time for one change of a widget as a Panel component: the new state, its words and marks, and the
message to the browser."""

from __future__ import annotations

import statistics
import time

from bokeh.document import Document
from bokeh.protocol import Protocol

from bench.computing import no_garbage
from bench.tally import against, table
from tests import states
from widgets.kit.widget import all_widgets

UPDATE_MS = 20.0
STOPS = 5  # stops tried of each control
SEARCHES_MS = (
    40.0  # where a move of the control searches all layouts or deployments anew, as in bench/computing.py
)
SEARCHES = ("layout_planner", "layout_exam", "deployment_planner")


def allowed_ms(slug: str) -> float:
    """The budget of an update."""
    return SEARCHES_MS if slug in SEARCHES else UPDATE_MS


class Session:
    """A component as in an app; its messages to the browser are made but sent to nobody."""

    def __init__(self, cls) -> None:
        self.widget, self.changes = cls(), []
        self.view, self.document = self.widget.__panel__(), Document()
        self.document.add_root(self.view.get_root())
        self.document.on_change(self.changes.append)

    def moved(self, state: dict) -> str:
        """The message that a change of state causes."""
        self.widget.set_raw(state)
        patch: list = [event for event in self.changes if hasattr(event, "to_serializable")]
        self.changes.clear()
        return Protocol().create("PATCH-DOC", patch).content_json if patch else ""


def updates_ms(cls, stops: int = STOPS) -> list[float]:
    """Processor milliseconds of each of these changes, as in a drag: one control moves, the others stay."""
    session, took = Session(cls), []
    for state in states.around(cls, stops):
        with no_garbage():
            began = time.thread_time()
            session.moved(state)
            took.append(1e3 * (time.thread_time() - began))
    return took[1:]


def report() -> None:
    """Print how long each widget takes to follow a change as a Panel component."""
    rows = []
    for slug, cls in all_widgets().items():
        took = updates_ms(cls)
        rows.append(
            [
                slug,
                against(f"{slug} as a component, an update", statistics.median(took), allowed_ms(slug), "ms"),
                f"{statistics.quantiles(took, n=10)[-1]:.1f}",
                f"{max(took):.1f}",
            ]
        )
    table(
        "Components: Python for one change of a control, ms",
        ["widget", "median", "nine in ten under", "slowest"],
        rows,
    )
