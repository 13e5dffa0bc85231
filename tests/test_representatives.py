"""The representative figures together have every trait by which the kit distinguishes figures."""

import os
import subprocess
import sys

from tests import representatives
from tests.browser.hands import lessons
from tests.conftest import ROOT
from widgets.kit.widget import all_widgets

KINDS = {"number", "player", "choice", "switch", "bits"}


def test_they_have_every_trait_of_every_figure():
    chosen = set().union(*(representatives.traits(all_widgets()[slug]) for slug in representatives.figures()))
    assert chosen == set().union(*(representatives.traits(cls) for cls in all_widgets().values()))
    assert {kind for kind, *_ in chosen} >= KINDS


def test_they_are_few_and_each_is_on_a_chosen_lesson():
    shown = {slug for address in representatives.addresses() for slug in lessons()[address]}
    assert len(representatives.figures()) <= len(all_widgets()) / 3 and shown >= set(
        representatives.figures()
    )
    assert len(representatives.addresses()) <= len(lessons()) / 2


def collected(every: str) -> int:
    """The number of preset tests in test_hands.py that pytest would run, with EVERY set to ``every``."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/browser/test_hands.py",
        "--collect-only",
        "-k",
        "preset",
    ]
    said = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"EVERY": every}
    ).stdout
    return sum("test_each_preset" in line for line in said.splitlines())


def test_every_figure_is_asked_where_that_is_wished():
    assert collected("") == len(representatives.figures())
    assert collected("1") == len(all_widgets())
