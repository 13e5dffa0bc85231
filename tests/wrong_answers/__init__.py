"""Typical wrong answers to the puzzles: a module for each puzzle, with the puzzle's name."""

import importlib


def of(name: str) -> dict[str, tuple[str, str]]:
    """The wrong answers to a puzzle: what is wrong -> the code, and some of the words that the judge says."""
    return importlib.import_module(f"{__name__}.{name}").WRONG
