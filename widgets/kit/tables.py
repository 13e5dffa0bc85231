"""The Markdown fence for a table of computed values: one thing of the engine a row (or a column), one quantity a cell.

    ``` table
    rows: catalog.gpus().values()               an expression that gives the things …
    columns:                                    … and what to show of each; `it` is the thing
      Accelerator: it.name
      HBM: it.hbm_bytes | GB
    ```

Swap the two and the things stand side by side: `columns` is then the expression, `rows` holds the quantities. The
first quantity names the thing. Expressions and units are those of numbers in prose (widgets/kit/prose.py); a unit that
is asked for by name moves into the heading, and a heading shows how its numbers were computed. Zero is shown as a dash:
the catalogue writes 0 for what a thing does not have.
"""

from __future__ import annotations

import html
from numbers import Number

import yaml

from engine import units
from widgets.kit import prose
from widgets.kit.kept import kept_text
from widgets.kit.locate import fault

NOTHING = "–"


class Quantity:
    """One line of the mapping: a label, an expression over `it`, and the unit its values are shown in."""

    def __init__(self, label: str, source: str):
        form = prose.FORM.match(source)
        self.label, self.expression, self.unit = label, form["expression"], form["unit"]
        self.digits = int(form["digits"] or 3)
        self.code = compile(self.expression, label, "eval")
        self.suffix = units.UNITS[self.unit][1] if self.unit in units.UNITS else ""

    def heading(self) -> str:
        """The label and its unit; it carries the expression, unless that is only a name read off the catalogue."""
        label = html.escape(self.label)
        if self.unit or "(" in self.expression:
            expression = html.escape(self.expression)
            label = f'<span class="n" tabindex="0" role="note" data-expr="{expression}">{label}</span>'
        return f"{label} <small>{html.escape(self.suffix.strip())}</small>" if self.suffix else label

    def cell(self, thing) -> tuple[str, bool]:
        """The text for one thing, and whether it is a number."""
        value = eval(self.code, {**prose.namespace(), "it": thing})  # a lesson is this repository's own code
        if isinstance(value, str):
            return html.escape(value), False
        if value is None or value == 0:
            return NOTHING, True
        shown = prose.show(value, self.unit, self.digits)
        return html.escape(shown.removesuffix(self.suffix)).replace(" ", "&nbsp;"), isinstance(value, Number)


def _read(source: str) -> tuple[list, list[Quantity], bool]:
    """(things, quantities, whether the quantities stand in columns)."""
    options = yaml.load(source, Loader=yaml.BaseLoader)
    if not isinstance(options, dict) or set(options) != {"rows", "columns"}:
        raise ValueError("a table's fence needs 'rows' and 'columns', and nothing else")
    across = isinstance(options["columns"], dict)
    quantities, things = (options["columns"], options["rows"]) if across else (options["rows"], options["columns"])
    if not isinstance(quantities, dict) or not isinstance(things, str):
        raise ValueError("of 'rows' and 'columns' one must be an expression and the other a mapping of expressions")
    things = list(eval(things, prose.namespace()))  # a lesson is this repository's own code
    return things, [Quantity(label, source) for label, source in quantities.items()], across


def _cell(tag: str, text: str, numeric: bool = False) -> str:
    """A cell: a number is set to the right, as Markdown's own tables do it; a word or a date never breaks."""
    style = "text-align: right;" if numeric else "white-space: nowrap;" if len(text) <= len("2026-11-21") else ""
    return f'<{tag} style="{style}">{text}</{tag}>' if style else f"<{tag}>{text}</{tag}>"


def _table(corner: str, head: list[tuple[str, bool]], rows: list[tuple[str, list[tuple[str, bool]]]]) -> str:
    """The HTML, from the headings of columns and rows and the cells; each text comes with whether it is a number.

    A space before each cell keeps its words apart for the search, which sees no cells.
    """
    top = " ".join([_cell("th", corner), *(_cell("th", *title) for title in head)])
    body = " ".join(f'<tr><th scope="row">{title}</th> {" ".join(_cell("td", *cell) for cell in cells)}</tr>' for title, cells in rows)
    return f"<table><thead><tr>{top}</tr></thead> <tbody>{body}</tbody></table>"


def render(source: str) -> str:
    """The HTML of one fence."""
    things, (names, *others), across = _read(source)
    titles = [names.cell(thing)[0] for thing in things]
    lines = [(quantity.heading(), [quantity.cell(thing) for thing in things]) for quantity in others]
    if across:
        head = [(title, any(numeric for _, numeric in cells)) for title, cells in lines]
        return _table(html.escape(names.label), head, list(zip(titles, zip(*(cells for _, cells in lines)))))
    return _table(html.escape(names.label), [(title, True) for title in titles], lines)


def format(source, language, css_class, options, md, **kwargs) -> str:
    """The pymdownx superfences formatter."""
    try:
        return kept_text("table", source, render)
    except Exception as error:
        raise fault(source, f"cannot make this table: {type(error).__name__}: {error}") from error
