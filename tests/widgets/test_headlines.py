"""What a figure says in its first line, and how many numbers stand beside it.

The summary is drawn as the figure's headline: one sentence that says what its present state proves. Nobody
reads a list of numbers in bold, so its length is held, in the states that a reader is led to and at the ends
of every control. Beside it three readouts are in view; what is further stands under *more numbers*.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from engine.base import check
from tests import states
from widgets.kit.widget import all_widgets

LED_TO, ANYWHERE, IN_VIEW = 110, 140, 3
MISFIT = re.compile(
    r"\bnan\b|(?<![\d.,])1 (?!takes)(?:[a-z-]{3,}s|GPUs)\b"
)  # "1 ranks", and what is no number
LESSONS = Path(__file__).resolve().parents[2] / "lessons"
WIDGETS = sorted(all_widgets().items())
over_widgets = pytest.mark.parametrize(("slug", "cls"), WIDGETS, ids=[slug for slug, _ in WIDGETS])


def headline(cls, state: dict) -> str:
    widget = cls()
    widget.set_raw(state)
    with check.trusted():
        return str(widget.summary())


def ends(cls) -> list[dict]:
    """The default with each control at its ends."""
    return [
        states.default(cls) | {name: end}
        for name, control in cls.controls().items()
        for end in (states.values_of(control)[0], states.values_of(control)[-1])
    ]


@over_widgets
def test_the_headline_is_short_where_a_reader_is_led(slug, cls):
    for state in [states.default(cls), *states.presets(cls)]:
        assert len(headline(cls, state)) <= LED_TO, headline(cls, state)


@over_widgets
def test_the_headline_fits_at_the_ends_of_every_control(slug, cls):
    for state in ends(cls):
        said = headline(cls, state)
        assert len(said) <= ANYWHERE, said
        assert not MISFIT.search(said), f"a word that does not fit: {said}"


@over_widgets
def test_the_headline_leaves_the_measured_points_to_their_switch(slug, cls):
    assert not re.search(r"measured points?\b", headline(cls, states.default(cls)))


# -- readouts ------------------------------------------------------------------------------------------------
def in_view(cls) -> list[str]:
    readouts = cls.methods("readout_label")
    return [name for name, said in readouts.items() if not (said.readout_given or said.readout_rest)]


@over_widgets
def test_at_most_three_readouts_are_in_view(slug, cls):
    assert 1 <= len(in_view(cls)) <= IN_VIEW, in_view(cls)


@cache
def asked_about() -> list[tuple[str, str, str]]:
    """(lesson, widget, readout) of every prediction that a readout answers."""
    found = []
    for lesson in sorted(LESSONS.glob("[!R]*.md")):
        for fence in re.findall(
            r"^``` widget\n(.*?)^```", lesson.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            slug = re.search(r"^name: (\w+)", fence, re.MULTILINE)
            for key in re.findall(r'^(?:asks|seen):.*?readout\("(\w+)"', fence, re.MULTILINE):
                found.append((lesson.name, slug[1] if slug else "", key))
    return found


def test_a_prediction_asks_about_what_is_in_view():
    assert len(asked_about()) >= 15
    folded = [each for each in asked_about() if each[2] not in in_view(all_widgets()[each[1]])]
    assert not folded, folded
