"""Methods that execute an algorithm cannot be traced; they are run at every stop of their own controls and kept as a table.

``@part("ranks", "step", tabulated=True)`` or ``@executed("ranks")`` marks one. On the page a control's value picks the nearest stop's row. Columns of
different lengths are padded with NaN, which Bokeh leaves out; texts become indices into a list of all texts that occur.
"""

from __future__ import annotations

import itertools

import numpy as np

from widgets.kit.symbolic import Graph, Symbol


def stops(control) -> list:
    """The values of a control that a table has rows for."""
    if control.kind == "choice":
        return control.options
    return [False, True] if control.kind == "switch" else [control.read(v) for v in control.grid]


def rows(cls, name: str) -> list[dict]:
    """What the method gives at each combination of its controls' stops, the last control running fastest."""
    controls = getattr(cls, name).table_of
    grids = [stops(cls.controls()[c]) for c in controls]
    widget, found = cls(), []
    for values in itertools.product(*grids):
        widget.param.update(**dict(zip(controls, values)))
        found.append({column: np.atleast_1d(np.asarray(v)) for column, v in getattr(widget, name)().items()})
    return found


def symbols(cls, name: str, graph: Graph, used: set) -> dict:
    """The method's columns as symbols that look into its table; the table itself is laid down in the graph."""
    controls = getattr(cls, name).table_of
    used.update(controls)
    row = 0.0
    for control_name in controls:
        control = cls.controls()[control_name]
        index = graph.control(control_name)
        if control.kind not in ("choice", "switch"):
            index = graph.symbol("stop", [index.id], np.asarray(control.grid))
        row = row * len(stops(control)) + index
    table = rows(cls, name)
    return {column: _column(graph, row, [r[column] for r in table]) for column in table[0]}


def _column(graph: Graph, row: Symbol, values: list[np.ndarray]):
    """One column of the table: a symbol of numbers, or a list of texts."""
    length = max(len(v) for v in values)
    if values[0].dtype.kind in "US":
        texts = sorted({str(t) for v in values for t in v} | {""})
        known = {text: i for i, text in enumerate(texts)}
        indices = np.full((len(values), length), known[""], dtype=float)
        for i, v in enumerate(values):
            indices[i, :len(v)] = [known[str(t)] for t in v]
        found = graph.table(row, indices)
        return [graph.picked(found[i], texts) for i in range(length)]
    padded = np.full((len(values), length), np.nan)
    for i, v in enumerate(values):
        padded[i, :len(v)] = v
    return graph.table(row, padded)
