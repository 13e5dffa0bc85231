"""Schedules placed by hand: sums that were worked out with a pencil, each rule, and the engine's own
schedules placed one pass after the other. A forward takes 20 ms, a backward 40, each of its halves 20, a
gather 10."""

import itertools
import random

import numpy as np
import pytest

from engine.executed import placed_by_hand as by_hand
from engine.executed.pipeline_schedules import by_key
from engine.executed.placed_by_hand import (
    LEVELS,
    MAY,
    MOST_CODE,
    MOST_SLOTS,
    NO_BACKWARD,
    NO_FORWARD,
    NO_GATHERS,
    NO_INPUT_GRADIENT,
    NO_OWN_FORWARD,
    NO_ROOM,
    NO_WEIGHTS,
    NONE_LEFT,
    ROOM,
    by_level,
    codes_of,
    placed_by_hand,
    published_orders,
)
from tests.said import refused

F, B, NOTHING = "0", "1", ["", "", "", ""]
KEYS = [each.key for each in LEVELS]


def rows(found, *names):
    count = int(np.isfinite(found[names[0]]).sum())
    return list(zip(*(found[name][:count] for name in names)))


def why(found, stage, slot):
    return int(found["hand_why"][stage * MOST_SLOTS + slot])


def missing(found, stage, slot):
    """(stage, slot) of what a refused pass lacks."""
    return divmod(int(found["hand_missing"][stage * MOST_SLOTS + slot]), MOST_SLOTS)


# -- by hand -------------------------------------------------------------------------------------------------
def test_two_micro_batches_go_down_the_line():
    """F1 on stages 1 to 4 at 0, 20, 40, 60 ms; stage 1's F2 at 20; then B1 on stage 4 from 80 to 120 ms."""
    found = by_level("1f1b", [F + F, F, F, F + B])
    assert rows(found, "stage", "kind", "start_s", "end_s") == [
        (0, 0, 0.0, 0.02),
        (0, 0, 0.02, 0.04),
        (1, 0, 0.02, 0.04),
        (2, 0, 0.04, 0.06),
        (3, 0, 0.06, 0.08),
        (3, 1, 0.08, pytest.approx(0.12)),
    ]
    assert found["total_s"] == pytest.approx(0.12) and found["placed"] == 6 and found["passes"] == 64
    # 6 forwards' time of 24 (four stages for 120 ms, or six forwards each) are worked: 5 forwards and 2 more
    assert found["idle"] == pytest.approx(1 - 7 / 24)


def test_the_critical_path_leads_from_the_last_end_to_the_start():
    """B1 on stage 4 waited for F1 there, that for stage 3, and so on up to stage 1; F2 is on no such path."""
    found = by_level("1f1b", [F + F, F, F, F + B])
    assert [row[1:] for row in rows(found, "critical", "stage", "batch") if row[0]] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 0),
        (3, 0),
    ]


def test_what_stage_1_holds_over_time():
    """F1 and F2 from 0 and 20 ms on; B1 reaches stage 1 at 200 ms and frees one at 240."""
    found = by_level("1f1b", [F + F + B, F + B, F + B, F + B])
    held = [
        row[1:]
        for row in rows(found, "held_stage", "held_from_s", "held_to_s", "held_batches")
        if row[0] == 0
    ]
    assert held == [(0.0, 0.02, 1.0), (0.02, pytest.approx(0.24), 2.0)]
    assert found["held"].tolist() == [2, 1, 1, 1]


def test_an_order_is_its_slots_behind_a_one():
    assert codes_of("1f1b", ["", "0", "011", "1"]) == [1.0, 2.0, 11.0, 3.0]
    assert codes_of("zb-h1", ["012"]) == [27 + 5.0]
    found = by_level("1f1b", [F + F, F, "", ""])
    assert found["code"].tolist() == [4, 2, 1, 1]
    assert found["hand_code"][:2].tolist() == [8, 9] and found["before"][:3].tolist() == [1, 2, 1]


# -- the rules -----------------------------------------------------------------------------------------------
def test_a_forward_needs_the_forward_of_the_stage_before():
    found = by_level("1f1b", NOTHING)
    assert why(found, 0, 0) == MAY and [why(found, s, 0) for s in (1, 2, 3)] == [NO_FORWARD] * 3
    assert missing(found, 2, 0) == (1, 0)
    assert why(by_level("1f1b", [F, "", "", ""]), 1, 0) == MAY


def test_a_backward_needs_the_backward_of_the_stage_behind():
    found = by_level("1f1b", [F, F, F, F])
    assert [why(found, s, 1) for s in range(4)] == [NO_BACKWARD, NO_BACKWARD, NO_BACKWARD, MAY]
    assert missing(found, 1, 1) == (2, 1)


def test_the_last_stage_needs_its_own_forward():
    found = by_level("1f1b", [F, F, F, ""])
    assert why(found, 3, 1) == NO_OWN_FORWARD and missing(found, 3, 1) == (3, 0)


def test_a_stage_has_room_for_as_much_as_1f1bs_first():
    found = by_level("1f1b", [F * 4, "", "", ""])
    assert why(found, 0, 0) == NO_ROOM and missing(found, 0, 0) == (0, 1)
    assert why(by_level("1f1b", [F * 4 + B, F + B, F + B, F + B]), 0, 0) == MAY


def test_a_weight_gradient_needs_its_input_gradient():
    found = by_level("zb-h1", ["0", "0", "0", "0"])
    assert why(found, 3, 2) == NO_INPUT_GRADIENT and missing(found, 3, 2) == (3, 1)
    assert why(by_level("zb-h1", ["0", "0", "0", "01"]), 3, 2) == MAY


def test_a_weight_gradient_that_waits_takes_room():
    """With F2 to F4 in flight and W1 put off stage 1 holds 3 + 32/34: too much for one more. With W1 made it
    has room."""
    before = ["0001", "0001", "0001"]
    off, made = (by_level("zb-h1", [stage_1, *before]) for stage_1 in ("00001", "000012"))
    assert why(off, 0, 0) == NO_ROOM and missing(off, 0, 0) == (0, 2)
    assert why(made, 0, 0) == MAY


def test_weights_have_to_be_gathered():
    found = by_level("fsdp", NOTHING)
    assert why(found, 0, 0) == NO_WEIGHTS and missing(found, 0, 0) == (0, 2)
    assert why(found, 0, 2) == MAY
    one = by_level("fsdp", ["2", "", "", ""])
    assert why(one, 0, 0) == MAY and one["hand_start_s"][0] == 0.01  # behind the gather
    all_four = by_level("fsdp", ["20000", "", "", ""])
    assert why(all_four, 0, 0) == NO_WEIGHTS and all_four["hand_chunk"][0] == 1


def test_a_gather_hides_where_a_stage_waits_anyway():
    """Stage 2 gathers from 0 to 10 ms; its F1 starts when stage 1's ends, gather 10 + half a forward 10."""
    found = by_level("fsdp", ["20", "20", "", ""])
    assert rows(found, "start_s", "end_s")[2:] == [(0.0, 0.01), (0.02, 0.03)]


def test_a_stage_gathers_eight_times_at_most_and_keeps_what_it_still_needs():
    """With the first chunk's weights it needs two more gathers, with the second's three: after five gathers a
    sixth would leave two of eight. With all forwards through the first chunk placed it needs fewer."""
    found = by_level("fsdp", ["2" * 20, "", "", ""])
    assert why(found, 0, 2) == NO_GATHERS and found["placed"] == 0
    assert found["code"][0] == codes_of("fsdp", ["2" * 5])[0]
    assert why(by_level("fsdp", ["2" * 5 + F * 4, "", "", ""]), 0, 2) == MAY


@pytest.mark.parametrize("seed", range(3))
def test_whoever_gathers_at_will_can_finish_all_the_same(seed):
    """Moves drawn at random, until none is left."""
    draw, orders = random.Random(seed), [""] * 4
    while True:
        found = by_level("fsdp", orders)
        may = [divmod(row, MOST_SLOTS) for row in range(16) if found["hand_why"][row] == MAY]
        if not may:
            break
        stage, slot = draw.choice(may)
        orders[stage] += str(slot)
    assert found["placed"] == found["passes"]


def test_what_cannot_be_placed_is_left_out_with_what_follows():
    """Stage 2's second forward has no input, so its backward is not there either."""
    found = by_level("1f1b", [F, F + F + B, "", ""])
    assert found["placed"] == 2 and found["code"].tolist() == [2, 2, 1, 1]


def test_nothing_is_left_when_all_is_placed():
    found = by_level("1f1b", published_orders("1f1b"))
    assert all(why(found, s, slot) == NONE_LEFT for s in range(4) for slot in range(2))
    assert found["placed"] == found["passes"] == 64


# -- par -----------------------------------------------------------------------------------------------------
PAR = {  # by hand, in forwards of 20 ms: 1F1B (8 + 3)·3; interleaved (2·4 + 3)/2·3; ZB-H1 8·3 + 3·(1 + 2 − 2)
    "1f1b": 0.66,
    "interleaved": 0.33,
    "zb-h1": 0.54,
}


@pytest.mark.parametrize("key", KEYS)
def test_the_published_orders_reach_par(key):
    found = by_level(key, published_orders(key))
    assert found["placed"] == found["passes"] and found["total_s"] == pytest.approx(found["par_s"])
    assert found["total_s"] == pytest.approx(PAR.get(key, found["par_s"]))
    assert found["idle"] == pytest.approx(found["par_idle"])
    assert max(found["held"]) == ROOM


@pytest.mark.parametrize("key", ["1f1b", "interleaved", "zb-h1"])
def test_the_timetable_is_that_of_the_executed_schedule(key):
    task = by_hand.level(key)
    ours = by_level(key, published_orders(key))
    theirs = by_key(key, int(task.stages), int(task.micro_batches), int(task.chunks), 0.02, 0.02, 0.02)
    for column in ("stage", "start_s", "end_s"):
        np.testing.assert_allclose(rows(ours, column), rows(theirs, column), atol=1e-12)
    assert ours["held"] == pytest.approx(theirs["held"][:4])


def test_par_of_the_level_with_gathers():
    """Follow stage 4: its first input comes at 10 + 3·10 = 40 ms, four forwards end at 80, the second chunk's
    first input comes at 90. Four forwards of 10 and backwards of 20 in turn end at 210; a gather, four
    backwards: 300. The last of them still goes up three stages: 360 ms."""
    found = by_level("fsdp", published_orders("fsdp"))
    assert [order.count("2") for order in published_orders("fsdp")] == [3, 3, 3, 3]
    assert found["par_s"] == pytest.approx(0.36)


def test_gpipes_haste_is_not_par():
    """Four forwards on every stage before the first backward: legal, in the same memory, and longer."""
    orders = [(F * 4 + B * 4) * 2] * 4
    found = by_level("1f1b", orders)
    assert found["placed"] == 64 and found["total_s"] > found["par_s"]


# -- whatever a reader does ----------------------------------------------------------------------------------
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("seed", range(3))
def test_any_legal_moves_lead_on(key, seed):
    """Random legal moves end with everything placed (or, with sharded weights, out of gathers): no position
    is a dead end, and what a move says of its pass is what is then drawn."""
    choice, task = random.Random(seed), by_hand.level(key)
    fields = task.schedule, task.mode, task.stages, task.micro_batches, task.chunks, ROOM
    codes = [1.0] * 4
    for _ in itertools.count():
        found = placed_by_hand(*fields, codes)
        assert found["code"].tolist() == codes and max(codes) <= MOST_CODE
        may = [row for row in range(16) if found["hand_there"][row] and found["hand_why"][row] == MAY]
        if not may:
            break
        row = choice.choice(may)
        codes[int(found["hand_stage"][row])] = float(found["hand_code"][row])
        then = placed_by_hand(*fields, codes)
        stage, kind, batch, start_s, end_s = (
            found[f"hand_{name}"][row] for name in ("stage", "kind", "batch", "start_s", "end_s")
        )
        assert (stage, kind, batch, start_s, end_s) in rows(
            then, "stage", "kind", "batch", "start_s", "end_s"
        )
    assert np.all(found["held"] <= ROOM + 1e-9)
    if key != "fsdp":
        assert found["placed"] == found["passes"] and found["total_s"] >= found["par_s"] - 1e-9


def test_the_mark_goes_along_the_published_order_and_leaves_with_the_reader():
    first = by_level("1f1b", NOTHING)
    assert [row for row in range(16) if first["hand_published"][row]] == [0]
    assert not by_level("1f1b", [F, F, F + F, ""])["hand_published"][2 * MOST_SLOTS]


def test_an_unknown_level_is_refused():
    with refused("key", "2f2b", "zb-h1"):
        by_level("2f2b", NOTHING)


# -- what can still come of it -------------------------------------------------------------------------------
def test_four_forwards_on_the_last_stage_cost_60_ms():
    """Stage 4 is free at 140 ms and runs B1 to B4 until 300. F5 waits for B1 of stage 1, which ends at 300,
    and arrives at 360 ms. 240 ms of passes are left then, and behind the last of them three backwards."""
    assert by_level("1f1b", [F * 4, F * 4, F * 4, F * 4])["least_s"] == pytest.approx(0.36 + 0.24 + 0.12)
    assert by_level("1f1b", published_orders("1f1b"))["least_s"] == pytest.approx(0.66)


def test_with_room_for_two_par_is_out_of_reach_from_the_start():
    assert by_level("1f1b", NOTHING, room=2.0)["least_s"] > by_level("1f1b", NOTHING)["par_s"] + 1e-9


@pytest.mark.parametrize("key", KEYS)
def test_nothing_published_is_called_out_of_reach(key):
    """Whatever part of the published schedule stands."""
    orders = published_orders(key)
    for placed in range(max(map(len, orders)) + 1):
        found = by_level(key, [order[:placed] for order in orders])
        assert found["least_s"] == pytest.approx(found["par_s"])


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("seed", range(2))
def test_no_order_is_shorter_than_what_was_said_on_the_way(key, seed):
    """Random legal moves: what is said to be the least never falls, and the step ends no earlier."""
    choice, orders, least_s = random.Random(seed), [""] * 4, 0.0
    while True:
        found = by_level(key, orders)
        assert found["least_s"] >= least_s - 1e-9
        least_s = found["least_s"]
        may = [
            divmod(row, MOST_SLOTS)
            for row in np.flatnonzero((found["hand_why"] == MAY) & (found["hand_there"] > 0))
        ]
        if not may:
            break
        stage, slot = choice.choice(may)
        orders[stage] += str(slot)
    if found["placed"] == found["passes"]:
        assert found["total_s"] == pytest.approx(least_s)


@pytest.mark.parametrize("key", ["1f1b", "interleaved", "zb-h1"])
def test_whoever_heeds_the_warning_reaches_par(key):
    """Random moves, each taken back if par is then out of reach."""
    choice, orders = random.Random(3), [""] * 4
    for _ in range(200):
        found = by_level(key, orders)
        may = [
            divmod(row, MOST_SLOTS)
            for row in np.flatnonzero((found["hand_why"] == MAY) & (found["hand_there"] > 0))
        ]
        choice.shuffle(may)
        for stage, slot in may:
            tried = [order + str(slot) if s == stage else order for s, order in enumerate(orders)]
            if by_level(key, tried)["least_s"] < found["par_s"] + 1e-9:
                orders = tried
                break
    assert found["placed"] == found["passes"] and found["total_s"] == pytest.approx(found["par_s"])
