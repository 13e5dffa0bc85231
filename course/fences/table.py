"""The Markdown fence for a table of computed values: one thing of the engine per row (or column), one
quantity per cell.

    ``` table
    rows: catalog.all_gpus().values()               an expression that gives the things …
    columns:                                    … and what to show of each; `it` is the thing
      Accelerator: it.name
      HBM: it.hbm_bytes | GB
    ```

With the two swapped, the things are columns: `columns` is then the expression, and `rows` holds the
quantities. The first quantity names the thing. Expressions and units are those of numbers in prose
(course/numbers.py); a unit that is given by name moves into the heading, and a heading shows how its numbers
were computed. Zero is shown as a dash, because the catalogue writes 0 where a thing lacks something. A field
that the catalogue calls inferred has a mark before it.
"""

from __future__ import annotations

import html
import re
from numbers import Number
from typing import TYPE_CHECKING

from course import numbers
from course.fences import base
from engine.base import units

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu

FIELDS = ("rows", "columns")
NOTHING = "–"
INFERRED = '<span class="inferred" role="img" aria-label="inferred" title="inferred">≈</span>'


class Quantity:
    """One line of the mapping: a label, an expression over `it`, and the unit its values are shown in."""

    def __init__(self, label: str, source: str) -> None:
        form = numbers.form(source)
        self.label, self.expression, self.unit = label, form["expression"], form["unit"]
        self.digits = int(form["digits"] or 3)
        self.code, self.names = compile(self.expression, label, "eval"), numbers.names(self.expression)
        self.suffix = units.UNITS[self.unit][1] if self.unit in units.UNITS else ""

    def heading(self) -> str:
        """The label and its unit; it carries the expression, unless that is only a field of the catalogue."""
        label = html.escape(self.label)
        if self.unit or "(" in self.expression:
            expression = html.escape(self.expression)
            label = f'<span class="n" tabindex="0" role="note" data-expr="{expression}">{label}</span>'
        return f"{label} <small>{html.escape(self.suffix.strip())}</small>" if self.suffix else label

    def cell(self, thing: Gpu) -> tuple[str, bool]:
        """The text for one thing, and whether it is a number."""
        value = eval(self.code, self.names | {numbers.ROW: thing})  # a lesson is this repository's own code
        if isinstance(value, str):
            return html.escape(value), False
        if value is None or value == 0:
            return NOTHING, True
        shown = numbers.show(value, self.unit, self.digits)
        text = html.escape(shown.removesuffix(self.suffix)).replace(" ", "&nbsp;")
        return f"{INFERRED if self._is_inferred(thing) else ''}{text}", isinstance(value, Number)

    def _is_inferred(self, thing: Gpu) -> bool:
        field = re.fullmatch(rf"{numbers.ROW}\.(\w+)", self.expression)
        return field is not None and field[1] in getattr(thing, "inferred", ())


def _read(source: str) -> tuple[list, list[Quantity], bool]:
    """(things, quantities, whether the quantities stand in columns)."""
    options = base.options(source, FIELDS)
    if set(options) != set(FIELDS):
        raise base.Refused("a table's fence needs 'rows' and 'columns', and nothing else")
    across = isinstance(options["columns"], dict)
    quantities, things = (
        (options["columns"], options["rows"]) if across else (options["rows"], options["columns"])
    )
    if not isinstance(quantities, dict) or not isinstance(things, str):
        raise base.Refused(
            "of 'rows' and 'columns' one must be an expression and the other a mapping of expressions"
        )
    things = list(eval(things, numbers.names(things)))  # a lesson is this repository's own code
    return things, [Quantity(label, source) for label, source in quantities.items()], across


def _cell(tag: str, text: str, numeric: bool = False) -> str:
    """A cell: a number is aligned right, as in Markdown's own tables; a word or a date never wraps."""
    style = (
        "text-align: right;" if numeric else "white-space: nowrap;" if len(text) <= len("2026-11-21") else ""
    )
    return f'<{tag} style="{style}">{text}</{tag}>' if style else f"<{tag}>{text}</{tag}>"


def _table(corner: str, head: list[tuple[str, bool]], rows: list[tuple[str, list[tuple[str, bool]]]]) -> str:
    """The HTML from the headings of columns and rows and the cells; each text comes with whether it is a
    number.

    A space before each cell separates the words for the search, which ignores cells.
    """
    top = " ".join([_cell("th", corner), *(_cell("th", *title) for title in head)])
    body = " ".join(
        f'<tr><th scope="row">{title}</th> {" ".join(_cell("td", *cell) for cell in cells)}</tr>'
        for title, cells in rows
    )
    return f"<table><thead><tr>{top}</tr></thead> <tbody>{body}</tbody></table>"


def render(source: str) -> str:
    """The HTML of one fence."""
    things, (names, *others), across = _read(source)
    titles = [names.cell(thing)[0] for thing in things]
    lines = [(quantity.heading(), [quantity.cell(thing) for thing in things]) for quantity in others]
    if across:
        head = [(title, any(numeric for _, numeric in cells)) for title, cells in lines]
        return _table(
            html.escape(names.label),
            head,
            [(title, list(cells)) for title, cells in zip(titles, zip(*(cells for _, cells in lines)))],
        )
    return _table(html.escape(names.label), [(title, True) for title in titles], lines)


format = base.formatter(lambda source: numbers.kept("table", source, render, (__name__,)))
