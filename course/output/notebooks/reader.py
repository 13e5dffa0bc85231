"""The functions that the cells of a lesson's notebook call: they check exercises and predictions.
``%%puzzle`` judges a cell as the page judges the same lines, so a kernel needs no Triton. ``%%needs`` runs a
cell if everything that it needs is installed, and otherwise says what is missing.

The right answers are in the notebook as well, packed so that nobody reads them by accident.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from IPython.core.getipython import get_ipython

from course.output.notebooks import verdict
from course.output.notebooks.packed import unpack
from course.output.notebooks.verdict import Asked
from engine import puzzles

LETTERS = "abcd"
MISSING = {
    "torch": "PyTorch, which is not installed here (pip install torch)",
    "triton": "Triton, which is not installed here (it comes with PyTorch on Linux)",
    "kernels": "the folder kernels/ of the course's repository, from which this notebook was not started",
    "torchrun": "several processes: save the cell as a file and start that with torchrun",
    "gpu": "an NVIDIA GPU",
}


class Said(str):
    """Words for the reader, as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)

    __repr__ = str.__str__


class Page(NamedTuple):
    """The functions that a notebook's cells call."""

    exercise: Callable[[int, dict[str, str]], Said]
    predict: Callable[[str, str], Said]


def read(packed: str) -> Page:
    """The two functions for a notebook with these packed answers; registers ``%%puzzle`` and ``%%needs``."""
    answers = unpack(packed)
    shell: Any = get_ipython()
    if shell:
        shell.register_magic_function(puzzle, "cell", "puzzle")
        shell.register_magic_function(needs, "cell", "needs")

    def exercise(number: int, given: dict[str, str]) -> Said:
        """The verdict on the answers to an exercise, one line for each."""
        asked = _known(answers["exercises"], str(number), "exercise")
        return Said("\n\n".join(_judged(_known(asked, label, "question"), given[label]) for label in given))

    def predict(figure: str, guess: str) -> Said:
        """The verdict on a prediction, and the explanation of the right answer."""
        return _predicted(_known(answers["predictions"], figure, "prediction"), guess)

    return Page(exercise, predict)


def _known(among: dict, name: str, kind: str) -> dict:
    if name not in among:
        raise ValueError(f"there is no {kind} {name!r} in this notebook; there are {', '.join(among)}")
    return among[name]


def _judged(asked: dict, answer: str) -> str:
    found = verdict.judge(str(answer), Asked(**asked))
    return f"**{asked['label']}:** {found.said}"


def _predicted(about: dict, guess: str) -> Said:
    guess = str(guess).strip()
    if "right" in about:
        choices = LETTERS[: about["choices"]]
        if guess.lower() not in tuple(choices):
            return Said(f"Type one of the letters {', '.join(choices)} first.")
        verb = "Right." if guess.lower() == LETTERS[about["right"]] else "Not quite."
        return Said(f"**{verb}** {about['why']}")
    found = verdict.guessed(guess, **about["number"])
    return Said(f"**{found.said}** {about['why']}" if found.counts else found.said)


def puzzle(line: str, cell: str) -> Said:
    """``%%puzzle ring_step``: the judge's verdict on the cell, below what its code printed."""
    found = puzzles.tried(line.strip(), cell)
    print(*found["printed"], sep="\n", end="\n" if found["printed"] else "")
    if found["right"]:
        return Said(f"**Right.** {found['words']}")
    place = f"Line {found['line'] + 1} of the cell: " if found["line"] else ""  # %%puzzle is its first
    return Said(f"Not yet. {place}{found['words']}")


# -- cells that not every machine can run --------------------------------------------------------------------
def lacking(things: list[str]) -> list[str]:
    """The things among these that are missing, in words."""
    return [
        MISSING.get(thing, f"{thing}, which is not installed here") for thing in things if not _has(thing)
    ]


def _has(thing: str) -> bool:
    if thing == "torchrun":
        return "RANK" in os.environ
    if thing == "gpu":
        return importlib.util.find_spec("torch") is not None and _has_gpu()
    return importlib.util.find_spec(thing) is not None


def _has_gpu() -> bool:
    torch: Any = importlib.import_module("torch")
    return torch.cuda.is_available()


def needs(line: str, cell: str) -> None:
    """``%%needs torch gpu``: run the cell if all of these are available."""
    if missing := lacking(line.split()):
        print(f"Not run. This cell needs {', and '.join(missing)}.")
        return
    shell: Any = get_ipython()
    shell.run_cell(cell).raise_error()
