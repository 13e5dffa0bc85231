"""captured_addresses: cells, wrong answers and damage are those of the run; the damage takes a switch to find."""

import numpy as np

from engine import replay
from tests.widgets.reading import Reader
from widgets.captured_addresses import CapturedAddresses


READER = Reader(CapturedAddresses)
widget, met = READER.widget, READER.met


def test_it_starts_with_the_trap():
    shown = widget().shown()
    assert met() == {"stale"} and shown["readouts"]["error"]["text"] == "none"
    cells = shown["parts"]["cells"]
    held = dict(zip(cells["address"], cells["value"]))
    assert [held[replay.OUTPUT + row] for row in range(4)] == [3, 5, 7, 9]
    assert len(shown["parts"]["wrong"]["left"]) == 4


def test_a_copy_in_place_is_right_and_a_longer_one_is_refused():
    assert met(way="copied") == set()
    longer = widget(way="copied", rows=6)
    assert not met(way="copied", rows=6)
    assert longer.shown()["readouts"]["error"]["text"] == "yes, by the copy"


def test_damage_without_a_wrong_answer():
    assert met(way="copied", shared="on") == {"damage"}
    assert met(way="copied", shared="on", stage=2) == set()


def test_no_preset_does_the_damage():
    for texts in CapturedAddresses.presets.values():
        assert "damage" not in met(**texts)


def test_a_cell_stands_in_its_stretch():
    cells = widget(rows=8, captured=8).shown()["parts"]["cells"]        # all forty are in use
    assert cells["y"][0] > cells["y"][replay.SCRATCH] > cells["y"][replay.OUTPUT] > cells["y"][replay.NEW]
    assert np.allclose(np.diff(cells["x"][:4]), 1)
