"""Writes the tables of operations.py into GRAMMAR.md, with python -m widgets.kit.compiler.grammar.

A test compares the document with these tables, so they are always those of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from widgets.kit.compiler.modules.bundle import RUNTIME, offered
from widgets.kit.compiler.modules.names import BUILTINS
from widgets.kit.compiler.modules.translate import REFUSED
from widgets.kit.compiler.operations import (
    CALLS,
    ELEMENTWISE,
    EXTREMES,
    METHODS,
    OTHER_FUNCTIONS,
    REDUCTIONS,
    STRUCTURAL,
    name_of,
)

DOCUMENT = Path(__file__).with_name("GRAMMAR.md")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    """A text as code in a cell of a Markdown table."""
    return f"`{text.replace('|', chr(92) + '|')}`"


def tables() -> dict[str, str]:
    """Each table of the document, by name."""
    return {
        "elementwise": table(
            ("numpy", "arguments", "in JavaScript", "precision", "of truths"),
            (
                (code(o.name), str(o.arity), code(o.written), o.precision, o.truths)
                for o in ELEMENTWISE.values()
            ),
        ),
        "reductions": table(
            ("numpy", "by place or name", "precision", "of truths"),
            ((code(o.name), "axis, keepdims (by name)", o.precision, o.truths) for o in REDUCTIONS.values()),
        ),
        "structural": table(
            ("numpy", "after the array, by place or name"),
            ((code(name_of(f)), ", ".join(names) or "nothing") for f, names in STRUCTURAL.items()),
        ),
        "others": table(
            ("numpy", "after the array, by place", "by name"),
            (
                (code(name_of(f)), ", ".join(places) or "nothing", ", ".join(names) or "nothing")
                for f, (places, names) in OTHER_FUNCTIONS.items()
            ),
        ),
        "calls": table(
            ("function", "takes", "in JavaScript", "gives", "precision"),
            (
                *(
                    (code(c.name), ", ".join(c.takes), code(c.written), c.gives, c.precision)
                    for c in CALLS.values()
                ),
                *(
                    (code(f.__name__), "numbers, or one list", code(f"{two}({{}},{{}})"), "same", "exact")
                    for f, (two, _) in EXTREMES.items()
                ),
            ),
        ),
        "methods": table(
            ("method of a list", "arguments", "in JavaScript", "where", "raises"),
            (
                (
                    code(m.name),
                    str(m.arguments),
                    code(m.written),
                    "on a line of its own" if m.statement else "anywhere",
                    m.exception or "never",
                )
                for m in METHODS.values()
            ),
        ),
        "builtins": table(
            ("Python's own functions and errors",), [(", ".join(map(code, sorted(BUILTINS, key=str.lower))),)]
        ),
        "library": table(
            ("module", "what there is of it"),
            (
                (code(name), ", ".join(map(code, sorted(names))))
                for name, names in sorted(offered(*RUNTIME.values()).items())
            ),
        ),
        "refused": table(("not this", "but this"), REFUSED.items()),
    }


def written(document: str) -> str:
    """The document with its tables updated."""
    for name, text in tables().items():
        begin, end = f"<!-- table {name} -->\n", f"<!-- end {name} -->"
        before, rest = document.split(begin)
        document = before + begin + text + "\n" + end + rest.split(end)[1]
    return document


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
