"""captured_addresses: cells, wrong answers and damage are those of the run; the damage takes a switch to
find."""

import numpy as np

from engine.one_gpu import replay
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.gpu import captured_addresses
from widgets.gpu.captured_addresses import AT_Y, HEX, INPUT, NEW, OTHER, SCRATCH, CapturedAddresses

READER = Reader(CapturedAddresses)
widget, met, part = READER.widget, READER.met, READER.part


def pointed_to(name, **state):
    """The line of memory beside which a name stands; None where it is not bound."""
    names = part("names", **state)
    row = list(names["name"]).index(name)
    return list(AT_Y).index(names["y"][row]) if names["x"][row] > -9 else None


def kinds(**state):
    cells = part("cells", **state)
    return dict(zip((int(address) for address in cells["address"]), cells["kind"]))


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


def test_a_cell_stands_in_its_stretch():
    cells = widget(rows=8, captured=8).shown()["parts"]["cells"]  # all forty are in use
    assert cells["y"][0] > cells["y"][replay.SCRATCH] > cells["y"][replay.OUTPUT] > cells["y"][replay.NEW]
    assert np.allclose(np.diff(cells["x"][:4]), 1)


def test_a_name_moves_to_the_new_tensor_and_the_kernels_stay():
    assert pointed_to("x", stage="0") == INPUT and pointed_to("x") == NEW
    assert pointed_to("x", way="copied") == INPUT and pointed_to("batch", way="copied") == NEW
    assert pointed_to("batch") is None  # the new tensor is x itself
    on_its_way = part("names", stage="0.5")["y"][0]
    assert AT_Y[INPUT] > on_its_way > AT_Y[NEW]
    calls = {
        tuple(part("kernels", way=way, stage=str(stage))["call"])
        for way in ("handed", "copied")
        for stage in range(5)
    }
    assert calls == {("0x00 → 0x20, 4 rows", "0x20 → 0x40, 4 rows")}


def test_arrows_lead_to_the_lines_of_the_captured_addresses():
    ends = [(arrow[1] if arrow[0] == 8 else arrow[3]) for arrow in captured_addresses.ARROWS]
    nearest = [int(np.argmin(abs(AT_Y - end))) for end in ends]
    assert nearest == [replay.INPUT // 8, replay.SCRATCH // 8, replay.SCRATCH // 8, replay.OUTPUT // 8]
    assert [HEX[start] for start in (replay.INPUT, replay.SCRATCH, replay.OUTPUT)] == ["0x00", "0x20", "0x40"]


def test_scratch_that_is_given_away_has_a_name_beside_it_and_is_spoilt_in_red():
    state = {"way": "copied", "shared": "on"}
    assert pointed_to("other") == OTHER and pointed_to("other", **state) == SCRATCH
    assert [kinds(**state)[replay.SCRATCH + row] for row in range(4)] == ["spoilt"] * 4
    assert (
        "spoilt" not in kinds(way="copied").values()
        and "given to another" in part("titles", **state)["text"][1]
    )


def test_what_the_replay_reads_is_filled_and_what_is_wrong_is_not():
    reading = kinds(stage="3")
    assert reading[replay.INPUT] == reading[replay.SCRATCH] == "lit" and reading[replay.NEW] == "plain"
    assert kinds()[replay.OUTPUT] == "wrong" and kinds(way="copied")[replay.OUTPUT] == "lit"
    assert part("titles")["text"][2].endswith("of the old batch")


def test_cells_travel_in_the_copy_alone():
    moving = part("copies", way="copied", stage="1.5")
    assert [x > 0 for x in moving["x"]] == [True] * 4 + [False] * 4
    assert moving["text"][:4] == ["10", "15", "20", "25"]
    still = [
        part("copies", stage="1.5"),
        part("copies", way="copied"),
        part("copies", way="copied", rows="6", stage="1.5"),
    ]
    assert all((columns["x"] < 0).all() for columns in still)


def test_what_is_found_is_said_in_a_sentence():
    said = {name: widget(**state).shown()["summary"] for name, state in CapturedAddresses.presets.items()}
    assert not lacks(said["A new tensor"], "All 4 answers are wrong", "no error")
    assert not lacks(said["Copied in place"], "All 4 answers are right")
    assert not lacks(said["A longer one, copied"], "No answer is there", "24 B", "16 B")
