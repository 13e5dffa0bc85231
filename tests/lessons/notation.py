"""The letters of formulas: which a lesson uses, and what the glossary says that they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.conftest import ROOT

GREEK = re.findall(
    r"\w+",
    "alpha beta gamma delta varepsilon epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi "
    "psi omega ell Gamma Delta Theta Lambda Sigma Phi Psi Omega",
)
CODE = re.compile(r"^[ \t]*(`{3,})[^\n]*\n.*?^[ \t]*\1[ \t]*$|`[^`]+`", re.MULTILINE | re.DOTALL)
MATH = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$", re.DOTALL)
WORDS = re.compile(r"\\(?:text|textbf|mathrm|operatorname|mathsf)\s*\{([^{}]*)\}")
LETTER = r"\\(?:" + "|".join(GREEK) + r")(?![A-Za-z])|[A-Za-z]"
SYMBOL = re.compile(rf"(?P<base>{LETTER})(?:\s*_\s*(?:\{{(?P<long>[^{{}}]*)\}}|(?P<short>{LETTER}|[0-9])))?")
ENVIRONMENT = re.compile(r"\\(?:begin|end)\{\w+\}")
OTHER = re.compile(r"\\(?!(?:" + "|".join(GREEK) + r")(?![A-Za-z]))(?:[A-Za-z]+|.)")


class Row(NamedTuple):
    """A line of a table of notation."""

    symbols: tuple[str, ...]
    meaning: str
    lessons: tuple[str, ...]  # none: all


def symbols(formula: str) -> list[str]:
    """The letters of a formula, each with its subscript: 'W', 'C_k', 'B_crit'."""
    words: list[str] = []

    def put_away(found: re.Match[str]) -> str:
        words.append("-".join(found[1].split()))
        return f"{{{len(words) - 1}#}}"

    formula = ENVIRONMENT.sub(" ", formula)
    formula = re.sub(r"\}\s*_\s*\{\d+#\}", "}", WORDS.sub(put_away, formula))  # words under a brace
    formula = OTHER.sub(" ", formula.replace("{{", "{").replace("}}", "}"))
    formula = re.sub(r"(?<![_\s])\s*\{\d+#\}", " ", formula)  # words that are no subscript
    found = []
    for each in SYMBOL.finditer(formula):
        sub = (each["long"] or each["short"] or "").strip("\\ ")
        sub = words[int(sub[:-1])] if sub.endswith("#") else sub
        found.append(each["base"].lstrip("\\") + (f"_{sub}" if sub else ""))
    return found


def formulas(text: str) -> Iterator[tuple[int, bool, str]]:
    """(place, whether it is displayed, TeX) of each formula of a text, code left out."""
    body = CODE.sub(lambda found: " " * len(found[0]), text)
    for found in MATH.finditer(body):
        yield found.start(), found[1] is not None, found[1] or found[2]


def tables() -> list[Row]:
    """The rows of the glossary's two tables."""
    section = (ROOT / "lessons" / "glossary.md").read_text(encoding="utf-8").split("## Symbols")[1]
    general, special = section.split("| Symbol | Meaning |")[1:]
    return [*rows(general, everywhere=True), *rows(special, everywhere=False)]


def rows(table: str, everywhere: bool) -> Iterator[Row]:
    """The rows of a Markdown table whose first cell begins with a formula."""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| $"):
            named = tuple(name for _, _, tex in formulas(cells[0]) for name in symbols(tex))
            where = () if everywhere else tuple(re.findall(r"\d\d[a-z]?", cells[-1].strip("| ")))
            assert everywhere or where, f"the row names no lesson: {line}"
            yield Row(named, cells[1].strip("| "), where)


def meanings(symbol: str, lesson: str, table: list[Row]) -> list[Row]:
    """The rows that say what this symbol means in this lesson; a subscript that has no row of its own says
    which one of its letter is meant."""

    def named(name: str) -> list[Row]:
        return [row for row in table if name in row.symbols and (not row.lessons or lesson in row.lessons)]

    return named(symbol) or named(symbol.partition("_")[0])
