"""program_blocks by hand: Triton's example, edges, and what a wave leaves in L2."""

import numpy as np
import pytest

from engine.tile_order import FOUND, READ
from widgets.program_blocks import ProgramBlocks


def widget(**texts):
    found = ProgramBlocks()
    found.set_state(texts)
    return found


def shown(**texts):
    return widget(**texts).shown()


def met(**texts):
    return {name for name, regime in shown(**texts)["regimes"].items() if regime["met"]}


@pytest.mark.parametrize("group, words", [(3, "54 of 162 blocks"), (1, "90 of 162 blocks")])
def test_tritons_example(group, words):
    assert shown(group=group)["readouts"]["wave"]["text"] == words


def test_blocks_are_marked_by_where_they_came_from():
    parts = shown()["parts"]
    a, b = parts["of_a"]["state"].reshape(9, 9), parts["of_b"]["state"].reshape(9, 9)
    assert (a[:3] == READ).all() and (a[3:] == 0).all() and (b[:, :3] == READ).all()
    after = shown(play=18)["parts"]["of_a"]["state"].reshape(9, 9)
    assert (after[:3] == FOUND).all(), "the second wave has the same rows"


def test_the_current_programs_tile_and_strips():
    current, tiles = shown(play=9)["parts"]["current"], shown(play=9)["parts"]["of_c"]
    assert current["left"][0] <= tiles["x"][8] <= current["right"][0]
    assert current["bottom"][1] <= tiles["y"][8] <= current["top"][1]
    assert (tiles["fill"][:9] > 0.5).all() and (tiles["fill"][9:] == 0).all()


def test_a_ragged_edge_is_counted_and_drawn():
    """520 = 4 · 128 + 8: five tiles cover 640, and 1 − (520/640)² of the lanes are off."""
    case = {"side": 512 + 16, "inner": 512}
    assert shown(**case)["readouts"]["off"]["text"] == "31.9 %"                    # 1 − (528/640)²
    padding = shown(**case)["parts"]["padding"]
    assert padding["left"][2] == pytest.approx(1.1 + 528 / 640) and padding["right"][0] == padding["left"][0]
    assert "ragged" in met(**case) and "ragged" not in met(side=512)


def test_the_target_is_a_matter_of_order():
    assert met() == set() and "wasteful" in met(group=1) and "wasteful" in met(group=9)
    assert all("wasteful" not in met(**preset) for preset in ProgramBlocks.presets.values())


def test_a_mark_says_what_it_is():
    hints = widget().hints()
    assert hints["of_c"][8] == "program 8: rows 256 to 383, columns 256 to 383"
    assert hints["of_a"][0] == "block 0, 0 of A was read from HBM"
    assert hints["of_b"][8] == "block 0, 8 of B is not in L2"


def test_as_many_marks_as_blocks():
    parts = shown(side=300, inner=200)["parts"]
    assert len(parts["of_c"]["x"]) == 9 and len(parts["of_a"]["left"]) == 6 and np.isfinite(parts["of_b"]["left"]).all()
