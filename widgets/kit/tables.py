"""The Markdown fence for a table of computed values: one thing of the engine a row (or a column), one quantity a cell.

    ``` table
    rows: catalog.gpus().values()               an expression that gives the things …
    columns:                                    … and what to show of each; `it` is the thing
      Accelerator: it.name
      HBM: it.hbm_bytes | GB
    ```

Swap the two and the things stand side by side: `columns` is then the expression, `rows` holds the quantities. The first
quantity names the thing. Expressions and units are those of numbers in prose (widgets/kit/prose.py); a unit that is asked
for by name moves into the heading, and a heading shows how its numbers were computed. Zero is shown as a dash: the
catalogue writes 0 for what a thing does not have.
"""

from __future__ import annotations

import html
from numbers import Number

import yaml

from engine import units
from widgets.kit import prose
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

    def heading(self, tag: str) -> str:
        """The label with its unit, carrying the expression; a name that is read off as it stands needs no explaining."""
        label = html.escape(self.label)
        if self.unit or "(" in self.expression:
            label = f'<span class="n" tabindex="0" role="note" data-expr="{html.escape(self.expression)}">{label}</span>'
        return f'{tag}{label}{f"<small>{html.escape(self.suffix)}</small>" if self.suffix else ""}'

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
    return (list(eval(things, prose.namespace())), [Quantity(label, text) for label, text in quantities.items()], across)


def _row(first: str, cells: list[tuple[str, bool]]) -> str:
    rest = "".join(f'<td{" class=figure" if numeric else ""}>{text}</td>' for text, numeric in cells)
    return f"<tr>{first}{rest}</tr>"


def render(source: str) -> str:
    """The HTML of one fence."""
    things, quantities, across = _read(source)
    names, others = quantities[0], quantities[1:]
    cells = [[quantity.cell(thing) for thing in things] for quantity in others]
    titles = [names.cell(thing)[0] for thing in things]
    if across:
        head = "".join(q.heading("<th class=figure>" if any(number for _, number in column) else "<th>") + "</th>"
                       for q, column in zip(others, cells))
        body = "".join(_row(f'<th scope="row">{title}</th>', list(row)) for title, row in zip(titles, zip(*cells)))
    else:
        head = "".join(f"<th class=figure>{title}</th>" for title in titles)
        body = "".join(_row(q.heading('<th scope="row">') + "</th>", row) for q, row in zip(others, cells))
    corner = f"<th>{html.escape(names.label)}</th>"
    return f"<table><thead><tr>{corner}{head}</tr></thead><tbody>{body}</tbody></table>"


def format(source, language, css_class, options, md, **kwargs) -> str:
    """The pymdownx superfences formatter."""
    try:
        return render(source)
    except Exception as error:
        raise fault(source, f"cannot make this table: {type(error).__name__}: {error}") from error
