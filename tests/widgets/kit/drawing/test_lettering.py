"""The room that words take is known before they are drawn, and keys are packed by it."""

import numpy as np
import pytest
from bokeh.models import ColumnDataSource, Text

from course import fonts
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lettering


def test_every_letter_of_the_font_has_its_width():
    assert lettering.width("".join(map(chr, sorted(fonts.SANS)))) > 0
    assert {ord(letter) for letter in lettering._widths("regular")} == fonts.SANS
    assert {ord(letter) for letter in lettering._widths("bold")} == fonts.SANS
    assert lettering.width("wide", bold=True) > lettering.width("wide")
    assert lettering.width("ii") < lettering.width("mm") and lettering.width("") == 0
    assert lettering.width("10") == pytest.approx(2 * lettering.width("7"))  # figures stand under each other


def test_things_are_laid_behind_one_another_until_a_row_is_full():
    assert lettering.in_rows([40, 40, 40], 100, 10) == [(0, 0), (50, 0), (0, 1)]
    assert lettering.in_rows([40, 50], 100, 10) == [(0, 0), (50, 0)]
    assert lettering.in_rows([400, 40], 100, 10) == [(0, 0), (0, 1)]  # too long for any row, but there


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_no_swatch_of_a_key_stands_on_a_name(width):
    p = fig.plot((0, 1), (0, 1))
    names = ["weights", "keys and values", "arithmetic", "launches", "AllReduce, node", "AllReduce, network"]
    fig.key(p, dict.fromkeys(names, "hbm"), wide=0.9, narrow=0.9)
    texts = [
        (each.glyph.text.value, each.glyph)
        for each in p.renderers
        if isinstance(each.glyph, Text) and {"only": width} in each.tags
    ]
    places = {name: (glyph.x_offset, glyph.y_offset) for name, glyph in texts if name.strip()}
    assert list(places) == names
    swatches = [(glyph.x_offset, glyph.y_offset) for name, glyph in texts if not name.strip()]
    for name, (x, y) in places.items():
        end = x + lettering.width(name)
        assert end <= fig.LEAST_PX[width], f"{name} ends at {end:.0f} px"
        beside = [left for left, down in swatches if down == y and left > x]
        assert all(left - 5.5 > end for left in beside), f"a swatch stands on {name}"


def test_an_entry_of_a_key_without_marks_is_out_of_sight():
    at = [fig.in_key(seen) for seen in (np.array(True), np.array(False))]
    assert at == [0.0, fig.FAR_LEFT]
    p, source = fig.plot((0, 1), (0, 1)), ColumnDataSource({"there": [float(at[1])]})
    fig.key(p, {"a": "hbm", "b": "link"}, wide=0.9, narrow=0.9, places={"b": (source, "there")})
    drawn = [each for each in p.renderers if isinstance(each.glyph, Text) and each.data_source is source]
    assert {each.glyph.text.value.strip() for each in drawn} == {"", "b"}
    assert {each.glyph.x for each in drawn} == {"there"}
