"""schedule_by_hand: what a press leads to, what a refused one is told, and when par is reached."""

import random

import numpy as np
import pytest

from engine.executed.placed_by_hand import LEVELS, MAY, MOST_SLOTS, by_level, codes_of, published_orders
from engine.mechanism.pipeline_orders import FORWARD, GATHER, INPUT, WEIGHT
from engine.puzzles import puzzle
from tests.said import lacks
from widgets.training.schedule_by_hand import STAGES, ScheduleByHand

KEYS = [task.key for task in LEVELS]


def at(key="1f1b", orders=("", "", "", ""), **state):
    """The widget in a position that is written as slots."""
    widget = ScheduleByHand()
    codes = zip(STAGES, codes_of(key, list(orders)), strict=True)
    widget.set_state({"level": key} | {name: f"{code:.0f}" for name, code in codes} | state)
    return widget


def pressed(widget, part, row):
    """The same widget after a press on a mark, as the page sets it."""
    columns = widget.shown()["parts"][part]
    sets = {
        name.removeprefix("sets_"): column for name, column in columns.items() if name.startswith("sets_")
    }
    widget.set_raw({name: float(column[row]) for name, column in sets.items()})
    return widget


def button(stage, slot):
    return (stage - 1) * MOST_SLOTS + slot


def met(widget):
    return {name: each["text"] for name, each in widget.shown()["regimes"].items() if each["met"]}


@pytest.mark.parametrize("key", KEYS)
def test_the_published_schedule_can_be_placed_button_by_button_up_to_par(key):
    """Whichever button the mark is on is pressed, on the first stage that has one, until none has."""
    widget, presses = at(key, coach="on"), 0
    while len(marked := np.flatnonzero(widget.shown()["parts"]["hand"]["coached"])):
        pressed(widget, "hand", marked[0])
        presses += 1
    assert presses == sum(map(len, published_orders(key)))
    assert set(met(widget)) == {"reached"}
    assert not lacks(met(widget)["reached"], f"As short as {widget.level.name}")
    assert not lacks(widget.summary(), f"no longer than {widget.level.name}")


def test_what_a_refused_press_is_told():
    widget = pressed(at(), "hand", button(2, 0))
    assert widget.tried == button(2, 0) + 1 and [getattr(widget, name) for name in STAGES] == [1] * 4
    assert set(met(widget)) == {"refused"} and not lacks(
        met(widget)["refused"], "F1 on stage 2", "F1 of stage 1"
    )
    assert not lacks(widget.summary(), "F1 on stage 2", "0 of 64 passes")
    hand = widget.shown()["parts"]["hand"]
    assert np.flatnonzero(hand["lit"]).tolist() == [button(1, 0)]
    assert np.flatnonzero(hand["asked"]).tolist() == [button(2, 0)]
    assert set(met(pressed(widget, "hand", button(1, 0)))) == {"going"}


RULES = [  # the position, the button in vain, what is said, the button that lights up
    ("1f1b", ["", "", "", ""], (3, 0), "F1 on stage 3 needs F1 of stage 2 first", (2, 0)),
    ("1f1b", ["0", "0", "0", "0"], (2, 1), "B1 on stage 2 needs B1 of stage 3 first", (3, 1)),
    ("1f1b", ["0", "0", "0", ""], (4, 1), "B1 on stage 4 needs F1 of stage 4 first", (4, 0)),
    ("1f1b", ["0000", "", "", ""], (1, 0), "F5 finds no room on stage 1", (1, 1)),
    ("zb-h1", ["0", "0", "0", "0"], (4, 2), "W1 on stage 4 needs I1 of stage 4 first", (4, 1)),
    ("zb-h1", ["00001", "0001", "001", "01"], (1, 0), "F5 finds no room on stage 1", (1, 2)),
    ("fsdp", ["", "", "", ""], (1, 0), "F1 needs weights that stage 1 does not have", (1, 2)),
    ("fsdp", ["20000", "2", "", ""], (1, 0), "F1′ needs weights that stage 1 does not have", (1, 2)),
    ("interleaved", ["0000", "0000", "0000", ""], (1, 1), "F1′ on stage 1 needs F1 of stage 4 first", (4, 0)),
    ("interleaved", ["0", "0", "0", "0"], (4, 2), "B1 on stage 4 needs B1′ of stage 1 first", (1, 3)),
]


@pytest.mark.parametrize(("key", "orders", "vain", "said", "lit"), RULES)
def test_each_rule_names_what_is_missing_and_lights_it(key, orders, vain, said, lit):
    widget = pressed(at(key, orders), "hand", button(*vain))
    assert not lacks(met(widget)["refused"], said)
    assert np.flatnonzero(widget.shown()["parts"]["hand"]["lit"]).tolist() == [button(*lit)]
    assert widget.hints()["hand"][button(*vain)] in met(widget)["refused"]


def test_a_ghost_is_where_the_pass_is_then_drawn():
    widget = at(orders=["00", "0", "0", ""])
    parts = widget.shown()["parts"]
    seen = np.flatnonzero(parts["ghosts"]["left"] >= 0).tolist()
    assert seen == [button(1, 0), button(2, 0), button(4, 0)]
    ghost = {side: parts["ghosts"][side][button(4, 0)] for side in ("left", "right")}
    after = pressed(widget, "ghosts", button(4, 0)).shown()["parts"]["blocks"]
    assert (ghost["left"], ghost["right"]) == (after["left"][-1], after["right"][-1])
    assert not np.any(at(ghosts_on="off").shown()["parts"]["ghosts"]["left"] >= 0)


def test_a_pass_is_taken_back_with_what_needs_it():
    """Without F2 on stage 2 neither stage 3's nor stage 4's F2 has an input; the F1 stay."""
    widget = at(orders=["00", "00", "00", "00"])
    assert widget.placed() == "8 of 64 passes"
    assert pressed(widget, "blocks", 3).placed() == "5 of 64 passes"


def test_legal_moves_alone_may_end_behind_par():
    widget = at(orders=["0000111100001111"] * 4)
    assert set(met(widget)) == {"behind"}
    assert not lacks(met(widget)["behind"], "840 ms", "660 ms")
    assert widget.shown()["readouts"]["at_best"] == {"text": "840 ms", "alarm": True}


def test_a_pass_that_puts_par_out_of_reach_is_told_at_once():
    """A second forward on stage 4 holds up its first backward, and all that is left there, by 20 ms."""
    first = ["0000", "000", "00", "0"]
    assert set(met(at(orders=first))) == {"going"}
    widget = pressed(pressed(at(orders=first), "hand", button(3, 0)), "hand", button(4, 0))
    assert set(met(widget)) == {"lost"}
    assert not lacks(met(widget)["lost"], "out of reach", "680 ms", "Backspace")
    assert widget.shown()["readouts"]["at_best"]["alarm"]
    assert not lacks(widget.shown()["parts"]["step_so_far"]["par_text"], "out of reach")


def test_too_little_room_is_told_before_the_first_pass():
    assert not lacks(met(at(room="2"))["lost"], "needs room for more")


def test_each_button_names_a_key_of_its_own():
    hand = at("interleaved").shown()["parts"]["hand"]
    keys = [key for key in hand["key"] if key]
    assert len(set(keys)) == len(keys) == 16
    assert hand["key"][button(2, 0)] == "2" and hand["key"][button(2, 1)] == "w"


def under_way(order):
    return order.count("0") - order.count("1")


def first_to_take(key, stage, kind, order):
    """Where passes start together, the figure's words for each task: less is sooner; None: not now."""
    if key == "1f1b":
        return kind == FORWARD
    if key == "interleaved":
        return kind != FORWARD
    if key == "zb-h1":
        return {FORWARD: 0 if under_way(order) < 4 - stage else 3, INPUT: 1, WEIGHT: 2}[kind]
    gathered, forwards, backwards = (order.count(slot) for slot in "201")
    if kind == GATHER and gathered and (forwards, backwards) != {1: (4, 0), 2: (8, 4)}.get(gathered):
        return None
    return 0


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("seed", range(3))
def test_whoever_does_what_the_figure_says_reaches_par(key, seed):
    """What its words leave open is drawn by lot."""
    draw, orders = random.Random(seed), [""] * 4
    while True:
        found, moves = by_level(key, orders), []
        for row in np.flatnonzero(found["hand_why"] == MAY):
            stage, slot = divmod(int(row), MOST_SLOTS)
            rank = first_to_take(key, stage, int(found["hand_kind"][row]), orders[stage])
            if rank is not None:
                moves.append((round(found["hand_start_s"][row], 6), rank, draw.random(), stage, slot))
        if key == "1f1b" and len(orders[0]) < 4:  # "Fill the pipe first"
            moves = [each for each in moves if each[3:] == (0, 0)]
        if not moves:
            break
        *_, stage, slot = min(moves)
        orders[stage] += str(slot)
    assert set(met(at(key, orders))) == {"reached"}


def test_where_no_stage_can_go_on_the_figure_says_so():
    """With room for two, four forwards through the first chunk leave none for the second."""
    widget = at("interleaved", ["0000"] * 4, room="2")
    assert set(met(widget)) == {"stuck"} and not lacks(widget.summary(), "no stage can go on")


def test_less_room_refuses_what_fitted():
    widget = at(orders=["0000", "", "", ""], room="2")
    assert widget.placed() == "2 of 64 passes"


@pytest.mark.parametrize("key", ["1f1b", "zb-h1"])
def test_what_was_placed_is_code_for_the_puzzle(key):
    """The entries of the whole schedule, put into the puzzle's text, give a function that the puzzle runs:
    ZB-H1 with its bubble, and 1F1B as the puzzle begins, where the stage above need not wait for a W."""
    columns = at(key, published_orders(key)).shown()["parts"]["blocks"]
    lists = [
        "[" + ", ".join(entry for entry, s in zip(columns["entry"], columns["stage"]) if s == stage) + "],"
        for stage in (1, 2, 3, 4)
    ]
    own, names = puzzle("beat_1f1b"), {}
    exec(own.PLACED.replace("ORDERS", "\n".join(lists)), names)
    words, _ = own.run(names[own.FUNCTION])
    assert not lacks(words, {"1f1b": "bubble 20.0 %", "zb-h1": "bubble 11.1 %"}[key])


@pytest.mark.parametrize("key", ["interleaved", "fsdp"])
def test_chunks_are_no_code_for_that_puzzle(key):
    assert not any(at(key, published_orders(key)).shown()["parts"]["blocks"]["entry"])
