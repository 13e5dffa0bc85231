"""The colours are legible: text 4.5:1 and marks 3:1, on the page and on a widget's card, in both themes."""

import itertools
import os
import re

import pytest

from course import build
from widgets.kit.drawing import tokens

THEMES = ("light", "dark")
TEXT = ("ink", "ink-soft", "ink-faint", "accent")
MARKS = ("compute", "compute-deep", "hbm", "link", "network", "over", "idle", "axis")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_measured_as_wcag_measures_it():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    ("theme", "ground", "name"), list(itertools.product(THEMES, ("paper", "panel"), TEXT + MARKS))
)
def test_every_colour_stands_out_from_its_ground(theme, ground, name):
    colours = tokens.palette(theme)
    needed = 4.5 if name in TEXT else 3.0
    assert contrast(colours[name], colours[ground]) >= needed


@pytest.mark.parametrize("theme", THEMES)
def test_text_on_an_accent_fill_is_legible(theme):
    colours = tokens.palette(theme)
    assert contrast(colours["accent-ink"], colours["accent"]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("text", "mark"), [("on-work", "compute"), ("on-deep", "compute-deep")])
def test_numbers_on_passes_are_legible_and_passes_differ_in_tone(theme, text, mark):
    colours = tokens.palette(theme)
    assert contrast(colours[text], colours[mark]) >= 4.5
    assert contrast(colours["compute"], colours["compute-deep"]) >= 1.8


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_names_share_a_colour(theme):
    """A figure changes theme by mapping each light colour to its dark one, so the mapping must be one to
    one."""
    colours = [colour.lower() for colour in tokens.palette(theme).values()]
    assert len(set(colours)) == len(colours)


def test_the_stylesheet_holds_every_colour_of_both_themes():
    css = tokens.css()
    for theme in THEMES:
        for name, colour in tokens.palette(theme).items():
            assert re.search(rf"--c-{name}:\s*{colour};", css)
    assert css.index('"default"') < css.index('"slate"')


def test_a_sheet_that_would_not_change_keeps_its_date():
    """Else each build that is tried in a test makes the finished one look out of date."""
    build.write_sheets()
    sheet = build.THEME / "assets" / "css" / "tokens.css"
    os.utime(sheet, (1e9, 1e9))
    build.write_sheets()
    assert sheet.stat().st_mtime == 1e9 and sheet.read_text(encoding="utf-8") == tokens.css()
