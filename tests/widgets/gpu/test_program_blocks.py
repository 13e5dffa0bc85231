"""program_blocks by hand: Triton's example, edges, and what a wave leaves in L2."""

import numpy as np
import pytest

from engine.one_gpu.tile_order import FOUND, PUT_OUT, READ
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.gpu.program_blocks import ProgramBlocks

READER = Reader(ProgramBlocks)
widget, shown, met = READER.widget, READER.shown, READER.met


@pytest.mark.parametrize(("group", "words"), [(3, "54 of 162 blocks"), (1, "90 of 162 blocks")])
def test_tritons_example(group, words):
    assert shown(group=group)["readouts"]["wave"]["text"] == words


def test_blocks_are_marked_by_where_they_came_from():
    parts = shown()["parts"]
    a, b = parts["of_a"]["state"].reshape(9, 9), parts["of_b"]["state"].reshape(9, 9)
    assert (a[:3] == READ).all() and (a[3:] == 0).all() and (b[:, :3] == READ).all()
    after = shown(play=18)["parts"]["of_a"]["state"].reshape(9, 9)
    assert (after[:3] == FOUND).all(), "the second wave has the same rows"


def test_a_wave_in_row_major_order_shows_all_that_it_reads():
    """90 blocks were read; 60 fit. The 30 others are marked in the picture, in words and by a cross of
    their own."""
    found = widget(group=1)
    parts = found.shown()["parts"]
    states = np.concatenate([parts[name]["state"] for name in ("of_a", "of_b")])
    assert [(states == state).sum() for state in (READ, PUT_OUT)] == [60, 30]
    b, hints = parts["of_b"], found.hints()["of_b"]
    marked = b["put_out"] > 0
    assert (marked == (b["state"] == PUT_OUT)).all() and marked.sum() == 27
    assert all(("evicted" in hint) == bool(mark) for hint, mark in zip(hints, marked))


def test_between_two_positions_the_last_program_that_started_is_shown():
    found = widget()
    found.set_raw({"play": 11.1})
    between, there = found.shown(), shown(play=11)
    assert between["parts"]["words"]["text"] == there["parts"]["words"]["text"]
    assert between["parts"]["words"]["text"][:2] == ["outlined: program 10", "computes tile (1, 3) of C"]


def test_numbers_stand_in_their_tiles_where_there_is_room():
    parts = shown()["parts"]
    numbers, tiles = parts["numbers"], parts["of_c"]
    assert numbers["text"][:81] == tiles["text"][:81] and (numbers["x"][81:] < 0).all()
    assert ((tiles["left"] < numbers["x"][:81]) & (numbers["x"][:81] < tiles["right"])).all()
    assert (shown(block="64")["parts"]["numbers"]["x"] < 0).all()


def test_the_current_programs_tile_and_strips():
    current, tiles = shown(play=9)["parts"]["current"], shown(play=9)["parts"]["of_c"]
    assert current["left"][0] <= tiles["left"][8] < tiles["right"][8] <= current["right"][0]
    assert current["bottom"][1] <= tiles["bottom"][8] < tiles["top"][8] <= current["top"][1]
    assert (tiles["fill"][:9] > 0.5).all() and (tiles["fill"][9:] == 0).all()


def test_a_ragged_edge_is_counted_and_drawn():
    """520 = 4 · 128 + 8: five tiles cover 640, and 1 − (520/640)² of the lanes are off."""
    case = {"side": 512 + 16, "inner": 512}
    assert shown(**case)["readouts"]["off"]["text"] == "31.9 %"  # 1 − (528/640)²
    padding = shown(**case)["parts"]["padding"]
    assert padding["left"][2] == pytest.approx(1.1 + 528 / 640) and padding["right"][0] == padding["left"][0]
    assert "ragged" in met(**case) and "ragged" not in met(side=512)


def test_the_target_is_a_matter_of_order():
    assert met() == set() and "wasteful" in met(group=1) and "wasteful" in met(group=9)
    assert all("wasteful" not in met(**preset) for preset in ProgramBlocks.presets.values())


def test_a_mark_says_what_it_is():
    hints = widget().hints()
    assert not lacks(hints["of_c"][8], "program 8", "rows 256 to 383", "columns 256 to 383")
    assert not lacks(hints["of_a"][0], "0, 0 of A", "HBM")
    assert not lacks(hints["of_b"][8], "0, 8 of B", "not in L2")


def test_as_many_marks_as_blocks():
    parts = shown(side=300, inner=200)["parts"]
    assert (
        len(parts["of_c"]["left"]) == 9
        and len(parts["of_a"]["left"]) == 6
        and np.isfinite(parts["of_b"]["left"]).all()
    )
