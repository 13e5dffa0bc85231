"""How results are shown to people: as short tables that fit a terminal, as tables in a notebook, and as rows.

A result is shown in parts: a sentence (a text), figures under their names (a dict, in which a dict is a group
of its own), or a ``Table`` of rows. ``text`` and ``html`` show the same parts, with units that are derived
from the end of each key. ``Printed`` gives all of this to a record.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from functools import singledispatch
from html import escape
from itertools import zip_longest
from typing import Any, NamedTuple

from engine.base import units

WIDTH = 80  # columns of the narrowest terminal that is meant
APART = 2  # spaces between two columns
LEAST_TEXT = 20  # letters of a text in a table that are not broken over lines
MOST_PLAIN = 6  # figures of a result on one line
WHOLE = 6  # spaces before a line that is somebody's own text, such as an edited command: it is not broken

# end of a key -> how its value is shown
FAMILIES = (
    ("_flops_per_s", "flops_per_s"),
    ("_flops_per_gpu_per_s", "flops_per_s"),
    ("tokens_per_s", "count"),
    ("tokens_per_s_per_gpu", "count"),
    ("layouts_per_s", "count"),
    ("_bytes_per_s", "bytes_per_s"),
    ("bandwidth", "bytes_per_s"),
    ("_bytes", "bytes"),
    ("bytes_per_token", "bytes"),
    ("bytes_per_gpu", "bytes"),
    ("_s", "seconds"),
    ("parameters", "params"),
    ("mfu", "percent"),
    ("mfu_non_causal", "percent"),
    ("hfu", "percent"),
    ("share", "percent"),
    ("goodput", "percent"),
    ("slower_by", "percent"),
    ("dollars", "dollars"),
    ("error", "percent"),
)


class Table(NamedTuple):
    """Rows under the names of their columns. A column in which every row has the usual value is left out."""

    rows: Sequence[dict]
    columns: Sequence[str]
    usual: dict[str, Any] = {}

    def kept(self) -> list[str]:
        """The columns that say something."""
        return [
            name
            for name in self.columns
            if name not in self.usual or any(row.get(name, "") != self.usual[name] for row in self.rows)
        ]


Part = str | dict | Table


class Printed:
    """What a record gains that is a result: it prints as a short table, shows as one in a notebook, and gives
    rows for a data frame. Nothing is computed before it is asked for."""

    __slots__ = ()  # an estimate has slots, and stays as small

    def __init_subclass__(cls) -> None:
        cls.__repr__ = Printed.__repr__  # in the class itself, where a dataclass does not write its own

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        raise NotImplementedError

    def rows(self) -> list[dict]:
        """Plain rows, for ``pandas.DataFrame``, ``polars`` or ``csv``: numbers in SI units, and no dict or
        list in them."""
        return [flat(self.as_dict())]

    def __str__(self) -> str:
        return text(parts(self))

    def __repr__(self) -> str:
        """The first figures, on one line: all fields of a plan would be 40,000 letters."""
        plain = [
            f"{key}={value!r}" for key, value in self.as_dict().items() if not isinstance(value, dict | list)
        ]
        return f"{type(self).__name__}({', '.join(plain[:MOST_PLAIN])}, …)"

    def _repr_html_(self) -> str:
        return html(parts(self))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """What IPython shows where it has no HTML."""
        printer.text(str(self))


@singledispatch
def parts(result: Any) -> list[Part]:
    """What a result shows: all that it has, unless its kind has registered something shorter."""
    return [result.as_dict()]


def beyond(figures: dict, usual: dict) -> dict:
    """The figures without those that are as usual."""
    return {key: value for key, value in figures.items() if key not in usual or value != usual[key]}


# -- values --------------------------------------------------------------------------------------------------
def shown(key: str, value: Any) -> str:
    """A value as text: formatted by its key's family, other numbers with three digits."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if _is_band(key, value):
        return " to ".join(shown(key, end) for end in value)
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(key, item) for item in value) or "nothing"
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    for ending, family in FAMILIES:
        if key.endswith(ending):
            return units.human(value, family)
    return f"{int(value)}" if value == int(value) and abs(value) < 1e6 else units.number(value)


def _is_band(key: str, value: Any) -> bool:
    return "band" in key and isinstance(value, (list, tuple)) and len(value) == 2


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (list, tuple, dict)) and not value)


# -- as text -------------------------------------------------------------------------------------------------
def text(shown_parts: Iterable[Part], width: float = WIDTH) -> str:
    """The parts as lines of at most this width: a sentence directly above what it heads."""
    out: list[str] = []
    before: Part = ""
    for part in shown_parts:
        if isinstance(part, str):
            found = wrapped(part, width)
        elif isinstance(part, Table):
            found = table(part.rows, part.kept(), width)
        else:
            found = lines(part, width)
        if out and not isinstance(before, str) and found != [""]:
            out.append("")
        out += found
        before = part
    return "\n".join(out)


def lines(figures: dict, width: float = math.inf) -> list[str]:
    """Nested figures, one value per line; the key of a group determines the family of its members (time_s,
    memory_bytes). What is empty is left out."""
    found = [*_pairs(figures)]
    groups: dict[int, int] = {}  # the group's number -> the width of its keys
    for group, key, _ in found:
        groups[group] = max(groups.get(group, 0), len(key))
    out = []
    for group, key, value in found:
        indent = "  " * (group > 0)
        if value is None:
            out.append(indent[2:] + key)
            continue
        start = f"{indent}{key:<{groups[group]}}  "
        first, *rest = _folded(value, width - len(start))
        out += [(start + first).rstrip(), *(" " * len(start) + line for line in rest)]
    return out


def _pairs(figures: dict) -> Iterable[tuple[int, str, str | None]]:
    """The group's number (0 for none), the key and the text of each figure; a group's head has no text."""
    groups = 0
    for key, value in figures.items():
        if _is_empty(value):
            continue
        if isinstance(value, dict):
            groups += 1
            yield 0, key, None
            for name, each in value.items():
                yield groups, name, shown(name if isinstance(each, str) else key, each)
        else:
            yield 0, key, shown(key, value)


def table(rows: Sequence[dict], columns: Sequence[str], width: float = math.inf) -> list[str]:
    """Rows under their column names, each column as wide as its widest value.

    Where that is wider than ``width``, names and then long texts are broken over several lines; columns for
    which there is still no room follow in a second table, and the rows of both are numbered.
    """
    values = [[row.get(column, "") for row in rows] for column in columns]
    cells = [[shown(column, value) for value in found] for column, found in zip(columns, values)]
    heads = [max(map(len, name.split("_")), default=0) for name in columns]
    whole = [max(map(len, found), default=0) for found in cells]
    least = [
        min(LEAST_TEXT, most) if all(isinstance(value, str) for value in found) else most
        for most, found in zip(whole, values)
    ]
    widths = [max(len(name), most) for name, most in zip(columns, whole)]
    _narrow(widths, [max(pair) for pair in zip(heads, whole)], width)
    _narrow(widths, [max(pair) for pair in zip(heads, least)], width)
    out: list[str] = []
    bands = _bands(widths, width, len(f"{len(rows)}") + APART)
    for band in bands:
        titles = [_folded(columns[i].replace("_", " "), widths[i]) for i in band]
        whole_names = [
            [columns[i]] if len(columns[i]) <= widths[i] else title for i, title in zip(band, titles)
        ]
        folded = [whole_names, *([_folded(cells[i][j], widths[i]) for i in band] for j in range(len(rows)))]
        for number, line in enumerate(folded):
            first = [[""] if number == 0 else [f"{number}"]] if len(bands) > 1 else []
            across = [len(f"{len(rows)}")] * len(first) + [widths[i] for i in band]
            for row in zip_longest(*first, *line, fillvalue=""):
                out.append((" " * APART).join(text.ljust(most) for text, most in zip(row, across)).rstrip())
        out.append("")
    return out[:-1]


def _narrow(widths: list[int], least: list[int], width: float) -> None:
    """Make the widest columns narrower, one by one, until all fit or none may be narrower still."""
    while _across(widths) > width:
        wide = [i for i, most in enumerate(widths) if most > least[i]]
        if not wide:
            return
        widths[max(wide, key=lambda i: widths[i])] -= 1


def _across(widths: list[int]) -> int:
    return sum(widths) + APART * (len(widths) - 1)


def _bands(widths: list[int], width: float, number: int) -> list[list[int]]:
    """The columns that stand beside each other, table by table; ``number`` is what a row's own takes where
    there are several."""
    if _across(widths) <= width:
        return [[*range(len(widths))]]
    found: list[list[int]] = [[]]
    for i in range(len(widths)):
        if found[-1] and number + _across([widths[j] for j in (*found[-1], i)]) > width:
            found.append([])
        found[-1].append(i)
        widths[i] = min(widths[i], max(1, int(width) - number))
    return found


def _pieces(word: str) -> list[str]:
    """A text taken apart where it may be broken: behind a space, and within a name behind a low line."""
    return re.findall(r"[^\s_]*_+|[^\s_]+\s*|\s+", word)


def _folded(line: str, width: float) -> list[str]:
    """A text over as many lines of this width as it takes; a longer word is cut."""
    if len(line) <= width:
        return [line]
    room, out, now = max(1, int(width)), [], ""
    for whole in _pieces(line):
        piece = whole
        if now and len((now + piece).rstrip()) > room:
            out.append(now.rstrip())
            now = ""
            piece = piece.lstrip()
        while len(piece.rstrip()) > room:
            out.append(piece[:room])
            piece = piece[room:]
        now += piece
    return [*out, now.rstrip()] if now.strip() else out


def wrapped(line: str, width: float) -> list[str]:
    """A sentence over several lines, which begin two columns further in than the first."""
    indent = len(line) - len(line.lstrip())
    if len(line) <= width or indent >= WHOLE:
        return [line]
    first, *_ = _folded(line.strip(), width - indent)
    rest = line.strip()[len(first) :].strip()
    further = indent + 2 if indent else 0
    return [
        " " * indent + first,
        *(" " * further + each for each in (_folded(rest, width - further) if rest else [])),
    ]


# -- as HTML -------------------------------------------------------------------------------------------------
LEFT = ' style="text-align: left; vertical-align: top"'


def html(shown_parts: Iterable[Part]) -> str:
    """The same parts as plain tables and paragraphs, for a notebook: no script, and every text escaped."""
    out: list[str] = []
    said: list[str] = []

    def end_of_text() -> None:
        while said and not said[0]:
            said.pop(0)
        if any(line.startswith(" ") for line in said):
            out.append(f'<pre style="white-space: pre-wrap">{escape(chr(10).join(said))}</pre>')
        else:
            out.extend(f"<p>{escape(line)}</p>" for line in said if line)
        said.clear()

    for part in shown_parts:
        if isinstance(part, str):
            said.append(part)
            continue
        end_of_text()
        out.append(_html_table(part) if isinstance(part, Table) else _html_pairs(part))
    end_of_text()
    return "\n".join(out)


def _html_table(part: Table) -> str:
    columns = part.kept()
    head = "".join(f"<th{LEFT}>{escape(name)}</th>" for name in columns)
    lines_of = ([escape(shown(name, row.get(name, ""))) for name in columns] for row in part.rows)
    body = "".join(f"<tr>{''.join(f'<td{LEFT}>{cell}</td>' for cell in line)}</tr>" for line in lines_of)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_pairs(figures: dict) -> str:
    body = "".join(
        f'<tr><th colspan="2"{LEFT}>{escape(key)}</th></tr>'
        if value is None
        else f"<tr><th{LEFT}>{'&emsp;' * (group > 0)}{escape(key)}</th><td{LEFT}>{escape(value)}</td></tr>"
        for group, key, value in _pairs(figures)
    )
    return f"<table><tbody>{body}</tbody></table>"


# -- as rows -------------------------------------------------------------------------------------------------
def as_csv(rows: Sequence[dict]) -> str:
    """Rows under the names of all their columns; what is nested gets a name with a dot, such as
    memory_bytes.weights."""
    plain = [flat(row) for row in rows]
    out = io.StringIO()
    columns = list(dict.fromkeys(name for row in plain for name in row))
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: str(value).lower() if isinstance(value, bool) else value for key, value in row.items()}
        for row in plain
    )
    return out.getvalue().removesuffix("\n")


def flat(row: dict, before: str = "") -> dict[str, Any]:
    """A row without dicts and lists: memory_bytes.weights, and band_s.low and band_s.high."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        elif _is_band(key, value):
            found |= {f"{before}{key}.low": value[0], f"{before}{key}.high": value[1]}
        elif isinstance(value, (list, tuple)):
            found[before + key] = ", ".join(map(str, value))
        else:
            found[before + key] = value
    return found
