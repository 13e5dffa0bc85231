"""Methods that execute an algorithm cannot be traced; they are run at every stop of their own controls and
stored as a table.

``@part("ranks", "step", tabulated=True)`` or ``@executed("ranks")`` marks one. On the page a control's value
picks the nearest stop's row. Columns of different lengths are padded with NaN, which Bokeh leaves out; texts
become indices into a list of all texts that occur.
"""

from __future__ import annotations

import itertools
from typing import Any, Protocol

import numpy as np

from engine.base.types import Real
from widgets.kit.compiler import texts
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.symbols import Symbol, step
from widgets.kit.compiler.symbols import control as control_of
from widgets.kit.compiler.symbols import table as table_row
from widgets.kit.compiler.texts import Text, Texts


class Tabulated(Protocol):
    """The part of a widget that this module needs: its controls, whose values select a table's row."""

    param: Any

    @classmethod
    def controls(cls) -> dict[str, Any]:
        """The widget's controls by name."""
        ...


def stops(control: Any) -> list[Any]:
    """The values of a control that a table has rows for."""
    if control.kind == "choice":
        return control.options
    return [False, True] if control.kind == "switch" else [control.read(v) for v in control.grid]


def rows(cls: type[Tabulated], name: str) -> list[dict[str, np.ndarray]]:
    """The method's results at each combination of its controls' stops, the last control running fastest."""
    controls = getattr(cls, name).table_of
    grids = [stops(cls.controls()[c]) for c in controls]
    widget, found = cls(), []
    for values in itertools.product(*grids):
        widget.param.update(**dict(zip(controls, values)))
        found.append({column: np.atleast_1d(np.asarray(v)) for column, v in getattr(widget, name)().items()})
    return found


def symbols(
    cls: type[Tabulated], name: str, graph: Graph, used: set[str]
) -> dict[str, Symbol | list[Text | Texts]]:
    """The method's columns as symbols that look into its table, which is stored in the graph."""
    controls = getattr(cls, name).table_of
    used.update(controls)
    row: Real = 0.0
    for control_name in controls:
        control = cls.controls()[control_name]
        index = control_of(graph, control_name)
        if control.kind not in ("choice", "switch"):
            index = step(graph, "stop", [index.id], np.asarray(control.grid))
        row = row * len(stops(control)) + index
    table = rows(cls, name)
    return {column: _column(row, [r[column] for r in table]) for column in table[0]}


def _column(row: Symbol, values: list[np.ndarray]) -> Symbol | list[Text | Texts]:
    """One column of the table: a symbol of numbers, or a list of texts."""
    length = max(len(v) for v in values)
    if values[0].dtype.kind in "US":
        words = sorted({str(t) for v in values for t in v} | {""})
        known = {text: i for i, text in enumerate(words)}
        indices = np.full((len(values), length), known[""], dtype=float)
        for i, v in enumerate(values):
            indices[i, : len(v)] = [known[str(t)] for t in v]
        found = table_row(row, indices)
        return [texts.picked(found[i], words) for i in range(length)]
    padded = np.full((len(values), length), np.nan)
    for i, v in enumerate(values):
        padded[i, : len(v)] = v
    return table_row(row, padded)
