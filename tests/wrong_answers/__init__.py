"""Answers that people give to the puzzles and that are wrong: a module for each puzzle, named as it is."""

import importlib


def of(name: str) -> dict[str, tuple[str, str]]:
    """What is wrong with an answer -> its code, and some of the words that it gets."""
    return importlib.import_module(f"{__name__}.{name}").WRONG
