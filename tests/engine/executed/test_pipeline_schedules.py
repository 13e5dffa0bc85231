"""The schedules, run: the papers' figures, bubbles and memory; every dependency kept, every pass made
once."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.executed.pipeline_schedules import NOT_OWN, STEP_END, by_key, run
from engine.mechanism import pipeline
from engine.mechanism.pipeline import KEPT_FOR_WEIGHTS
from engine.mechanism.pipeline_orders import (
    BACKWARD,
    DUALPIPE,
    FORWARD,
    INPUT,
    WEIGHT,
    batch_of,
    kind_of,
    order,
    place_of,
)
from tests import machine
from tests.cases import in_one_test
from tests.said import refused

KEYS = list(pipeline.SCHEDULES)

TIMES = [
    (1.0, 1.0, 1.0),
    (1.0, 1.3, 0.7),
    (2.0, 1.5, 1.25),
    (0.3, 0.31, 0.05),
]  # F, B, W; W is never the longest
EXACT = 1e-9  # sums of up to 200 such times, in doubles


def ran(key, p, m, v=1, times=(1.0, 1.0, 1.0), together=1.0, message_s=0.0, first=0.0, last=0.0, in_step=0):
    return by_key(key, p, m, v, *times, together, message_s, first, last, in_step)


def chunks_of(plan, v):
    """The number of chunks per stage under this schedule, if interleaved schedules have v."""
    return v if plan.interleaved else 2 if plan.folded else 1


def rows(found, *names):
    count = int(np.isfinite(found[names[0]]).sum())
    return list(zip(*(found[name][:count] for name in names)))


def letters(key, stage, p, m, v=1):
    """A stage's order in the notation of the papers' figures, with micro-batches counted from 1."""
    work = []
    order(work, KEYS.index(key), stage, p, m, v)
    return " ".join("FBBWF"[kind_of(w)] + str(batch_of(w) + 1) for w in work)


# -- the orders, against the papers' figures -----------------------------------------------------------------
def test_1f1b_as_in_megatrons_figure_4():
    assert letters("1f1b", 0, 4, 8) == "F1 F2 F3 F4 B1 F5 B2 F6 B3 F7 B4 F8 B5 B6 B7 B8"
    assert letters("1f1b", 3, 4, 3) == "F1 B1 F2 B2 F3 B3"
    assert letters("gpipe", 2, 4, 3) == "F1 F2 F3 B1 B2 B3"


def test_interleaved_as_in_megatrons_figure_4():
    """arXiv:2104.04473 figure 4, two chunks: the first device's forwards run 1 2 3 4 1 2 3 4 5 6 7 8 before
    the first backward but one, and the last device turns round after its fifth."""
    assert letters("interleaved", 0, 4, 8, 2).startswith(
        "F1 F2 F3 F4 F1 F2 F3 F4 F5 F6 F7 B1 F8 B2 F5 B3 F6 B4"
    )
    assert letters("interleaved", 3, 4, 8, 2).startswith("F1 F2 F3 F4 F1 B1 F2 B2 F3 B3 F4 B4 F5 B1 F6 B2")


def test_zero_bubble_as_in_figure_3():
    """arXiv:2401.10241 figure 3: devices 1 and 4 of both schedules."""
    assert letters("zb-h1", 0, 4, 8) == (
        "F1 F2 F3 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 F8 B5 W5 B6 W6 B7 W7 B8 W8"
    )
    assert letters("zb-h1", 3, 4, 8) == (
        "F1 B1 F2 B2 F3 B3 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 F8 B8 W5 W6 W7 W8"
    )
    assert letters("zb-h2", 0, 4, 8) == (
        "F1 F2 F3 F4 F5 F6 F7 B1 W1 F8 B2 W2 B3 W3 B4 W4 B5 W5 B6 W6 B7 W7 B8 W8"
    )
    assert letters("zb-h2", 3, 4, 8) == (
        "F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 W1 F8 B8 W2 W3 W4 W5 W6 W7 W8"
    )


def test_dualpipe_as_in_its_published_figure():
    """DualPipe README: 8 ranks, 20 micro-batches, ten from each end. Rank 0 begins with seven of its own and
    meets the first of the other direction; the middle ranks take the directions in turn."""
    assert letters("dualpipe", 0, 8, 20).startswith(
        "F1 F2 F3 F4 F5 F6 F7 F11 B11 W11 F12 B12 W12 F13 B13 W13 F14 F8"
    )
    assert letters("dualpipe", 3, 8, 20).startswith("F1 F11 F2 F12 F3 F13 F4 F14 F5 B11 F15 B1 F6 B12")
    mirrored = [w[0] + str((int(w[1:]) + 9) % 20 + 1) for w in letters("dualpipe", 0, 8, 20).split()]
    assert letters("dualpipe", 7, 8, 20).split() == mirrored  # the other end does the same with the other ten


@pytest.mark.parametrize("together", [1.0, 0.75])
def test_a_forward_of_one_direction_passes_beside_a_backward_of_the_other(together):
    """The two cells with one border in DualPipe's figure: they begin and end together, after a part of both
    times, and the figure draws one above the other."""
    found = ran("dualpipe", 8, 20, times=(1.0, 1.0, 1.0), together=together)
    blocks = rows(found, "stage", "kind", "batch", "beside", "start_s", "end_s")
    assert all(end > start for *_, start, end in blocks)
    pairs = [two for two in itertools.pairwise(blocks) if two[0][3] == 1]
    lower = [block for block in blocks if block[3] == 2]
    assert pairs and [second for _, second in pairs] == lower
    for (stage, kind, batch, _, *span), (stage_2, kind_2, batch_2, _, *span_2) in pairs:
        assert (stage, span) == (stage_2, span_2) and (kind, kind_2) == (FORWARD, BACKWARD)
        assert (batch < 10) != (batch_2 < 10) and span[1] - span[0] == pytest.approx(together * (1 + 2))


# -- V-schedules, against torch.distributed.pipelining -----------------------------------------------------
def torchs_order(name, stage, p, m):
    """The order of one rank, as PyTorch's own class lists it: (letter, place, micro-batch); a pair of passes
    that overlap as both, forward first, with a mark."""
    schedules = machine.torch("torch.distributed.pipelining.schedules")
    made = object.__new__(getattr(schedules, name))
    made.pp_group_size, made.num_stages, made._n_microbatches = p, 2 * p, m
    letter = {"FORWARD": "F", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W", "FULL_BACKWARD": "B"}
    found = []
    for action in made._calculate_single_rank_operations(stage):
        if action is None:
            continue
        parts = action.sub_actions or (action,)
        for number, each in enumerate(parts):
            paired = "&" if len(parts) > 1 and number == 0 else ""
            found.append(
                (letter[each.computation_type.name] + paired, each.stage_index, each.microbatch_index)
            )
    return found


def own_order_of(key, stage, p, m):
    work = []
    order(work, KEYS.index(key), stage, p, m, 2)
    return [(["F", "B", "I", "W", "F&"][kind_of(w)], place_of(w), batch_of(w)) for w in work]


@pytest.mark.parametrize(("p", "m"), [(1, 2), (2, 4), (3, 7), (4, 8), (4, 20), (8, 16), (8, 33), (16, 64)])
@pytest.mark.parametrize(
    ("key", "name"), [("zb-v", "ScheduleZBVZeroBubble"), ("dualpipe-v", "ScheduleDualPipeV")]
)
def test_a_v_is_pytorchs_own_block_by_block(key, name, p, m):
    for stage in range(p):
        assert own_order_of(key, stage, p, m) == torchs_order(name, stage, p, m), stage


@pytest.mark.parametrize(("p", "m"), [(4, 1), (4, 3), (8, 14)])
def test_zb_v_leaves_out_what_a_short_step_does_not_have(p, m):
    for stage in range(p):
        assert own_order_of("zb-v", stage, p, m) == torchs_order("ScheduleZBVZeroBubble", stage, p, m)


def test_dualpipe_v_is_the_half_of_a_dualpipe_of_twice_the_stages():
    """Stage s of the one does what stage s of the other does, with two chunks for two directions."""
    for p, m in ((2, 4), (4, 9), (8, 20)):
        both, one = ran("dualpipe", 2 * p, 2 * m), ran("dualpipe-v", p, m)
        assert one["held"][:p] == pytest.approx(both["held"][:p] / 2)
        assert one["step_s"] == pytest.approx(both["step_s"] / 2)


def test_a_v_turns_round_without_a_message():
    """One micro-batch under ZB-V: 2 (p − 1) messages down and up, and as many back."""
    for p in (2, 4):
        longer_s = ran("zb-v", p, 1, message_s=0.25)["total_s"] - ran("zb-v", p, 1)["total_s"]
        assert longer_s == pytest.approx(0.25 * 4 * (p - 1))


def test_zb_v_has_no_bubble_where_all_passes_take_as_long_and_1f1bs_memory_on_every_stage():
    """arXiv:2401.10241 section 6."""
    for p in (2, 4, 8, 16):
        found = ran("zb-v", p, 2 * p)
        assert found["bubble"] == 0 and list(found["held"][:p]) == [p] * p


def test_both_ends_of_a_v_lie_on_its_first_stage():
    """The embedding and the output layer lengthen the passes of stage 1, and of no other."""
    busy = ran("dualpipe-v", 4, 16, first=0.25, last=0.5)["busy_s"][:4]
    assert busy[0] == pytest.approx(1.75 * busy[1]) and busy[1] == busy[2] == busy[3]


# -- bubbles and memory, against the closed forms ------------------------------------------------------------
def held_in_layers(found, stage, p, layers):
    """The most layers times micro-batches that a stage of an executed schedule holds, by its blocks."""
    now = most = 0
    for at, kind, place in rows(found, "stage", "kind", "place"):
        if at == stage:
            now += layers[int(place) // p] * (1 if kind == FORWARD else -1)
            most = max(most, now)
    return most


@pytest.mark.parametrize(
    ("p", "v", "each"), [(2, 2, 1), (2, 4, 3), (4, 2, 2), (4, 4, 1), (8, 3, 2), (16, 4, 1)]
)
def test_ends_with_a_shorter_chunk_hold_what_the_executed_schedule_holds(p, v, each):
    """The first chunk of all, or the last, has up to all of its layers fewer, for the embedding or the
    loss."""
    plan, full = pipeline.SCHEDULES["interleaved"], float(v * each)
    for m in (p, 2 * p, 3 * p):
        found = by_key("interleaved", p, m, v)
        for stage, chunk in ((0, 0), (p - 1, v - 1)):
            flight = pipeline.in_flight(float(p), float(m), float(v), plan, float(stage))
            for missing in range(-1 if stage else 0, each + 1):  # the last may have a layer more (MTP)
                layers = [each - missing * (at == chunk) for at in range(v)]
                closed = pipeline.held_layers(
                    full - missing, float(missing), flight, float(p), float(m), float(v), plan, float(stage)
                )
                assert held_in_layers(found, stage, p, layers) == pytest.approx(closed), (m, stage, missing)


def test_405b_in_slots_holds_less_on_its_first_stage_and_more_on_its_last():
    """126 layers in 16 × 8 slots (arXiv:2407.21783 section 3.3.2): the first slot holds the embedding alone
    and the last one the loss, so that of 31 · 8 / 8 micro-batches of the first chunk nothing is kept."""
    plan, p, m, v = pipeline.SCHEDULES["interleaved"], 16.0, 32.0, 8.0
    first, last = (
        pipeline.held_layers(7.0, 1.0, pipeline.in_flight(p, m, v, plan, at), p, m, v, plan, at)
        for at in (0.0, 15.0)
    )
    assert first == pytest.approx(143 - 31) and last == pytest.approx(7 * 16 + 1)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("key", [k for k in KEYS if k != "dualpipe"])
def test_the_published_bubble_and_memory(key, times):
    """arXiv:2104.04473 section 2.2, arXiv:2401.10241 Table 2; p to 16, m to 64, from the least for which they
    hold."""
    forward_s, input_s, weight_s = times
    plan = pipeline.SCHEDULES[key]
    if (key == "zb-v" and forward_s > input_s) or (key == "dualpipe-v" and forward_s != input_s):
        pytest.skip("no formula is known")
    for p, v in [(1, 1), (2, 2), (3, 1), (4, 4), (8, 2), (16, 3)]:
        v = chunks_of(plan, v)
        least = int(pipeline.least_micro_batches(p, plan))
        for m in sorted({least, least + 1, 2 * least + 3, 48, 64} & set(range(least, 65))):
            found = ran(key, p, m, v, times)
            idle_s = found["step_s"] - m * sum(times)
            expected_s = pipeline.bubble_s(float(p), float(v), forward_s, input_s + weight_s, weight_s, plan)
            assert idle_s == pytest.approx(expected_s, abs=EXACT * m), (key, p, m, v)
            assert found["bubble"] == pytest.approx(expected_s / found["step_s"], abs=EXACT)
            stages = np.arange(p)
            assert found["held"][:p] == pytest.approx(pipeline.in_flight(p, m, v, plan, stages)), (key, m)


def test_what_each_stage_holds_is_what_the_executed_schedule_holds():
    """Every stage, p to 16, m to 64 whether p divides it or not; for interleaving from m = p on, and for
    DualPipe and ZB-H2 from the least that they take."""
    for key, plan in pipeline.SCHEDULES.items():
        for p in (1, 2, 3, 4, 6, 11, 16):
            if key == "dualpipe" and p % 2:
                continue
            for v in (2, 3, 4) if plan.interleaved else (chunks_of(plan, 1),):
                least = p if plan.interleaved else int(pipeline.least_micro_batches(p, plan))
                for m in sorted({least, least + 1, p + 5, 2 * p + 3, 37, 64}):
                    if m < least or (key == "dualpipe" and m % 2):
                        continue
                    held = by_key(key, p, m, v)["held"][:p]
                    closed = pipeline.in_flight(p, m, v, plan, np.arange(p))
                    assert held == pytest.approx(closed), (key, p, m, v)


@in_one_test(
    "key, p, m, v, second",
    [
        ("interleaved", 16, 16, 4, 16),  # (2·14 + 3·16 + 1)/4 = 19.25, of 16 in the step
        ("interleaved", 16, 32, 4, 19.25),
        ("1f1b", 16, 32, 1, 15),
        ("zb-h1", 8, 32, 1, 7.94),  # 7, and 32/34 of one whose weight gradients are put off
        ("zb-h2", 8, 32, 1, 14.88),  # 13, and 32/34 of two
        ("dualpipe", 8, 20, 1, 9),
        ("gpipe", 8, 16, 1, 16),
        ("zb-v", 8, 32, 2, 8),
        ("dualpipe-v", 8, 32, 2, 8.5),
    ],
)
def test_what_the_second_stage_holds(key, p, m, v, second):
    closed = pipeline.in_flight(p, m, v, pipeline.SCHEDULES[key], 1)
    assert closed == pytest.approx(second, abs=0.005)
    assert by_key(key, p, m, v)["held"][1] == pytest.approx(closed)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (8, 20), (16, 32), (16, 64)])
def test_dualpipe_published_bubble_and_memory(p, m):
    """(p/2 − 1)(F&B + B − 3W) and p + 1 of its README, exact where a forward takes as long as an input
    gradient."""
    plan = pipeline.SCHEDULES["dualpipe"]
    for weight_s in (1.0, 0.8, 0.5):
        found = ran("dualpipe", p, m, 1, (1.0, 1.0, weight_s))
        expected_s = pipeline.bubble_s(float(p), 1.0, 1.0, 1.0 + weight_s, weight_s, plan)
        assert found["step_s"] - m * (2.0 + weight_s) == pytest.approx(expected_s, abs=EXACT)
        assert np.nanmax(found["held"]) == pipeline.in_flight(p, m, 1, plan) == p + 1


def test_dualpipe_off_its_formula_by_little():
    """Where they differ, no formula is published; the run stays near it while F and the input gradient do."""
    for times in [(1.0, 1.2, 1.0), (1.2, 1.0, 1.0), (1.0, 1.3, 0.7)]:
        found = ran("dualpipe", 8, 32, 1, times)
        forward_s, input_s, weight_s = times
        published_s = pipeline.bubble_s(
            8.0, 1.0, forward_s, input_s + weight_s, weight_s, pipeline.SCHEDULES["dualpipe"]
        )
        assert abs(found["step_s"] - 32 * sum(times) - published_s) <= 3 * abs(forward_s - input_s) + EXACT


def test_the_course_s_one_number():
    assert ran("1f1b", 16, 16, times=(1, 1, 1))["bubble"] == pytest.approx(15 / 31)  # 48 %
    assert ran("gpipe", 4, 8)["step_s"] == ran("1f1b", 4, 8)["step_s"]  # the bubble is no smaller
    assert (ran("gpipe", 4, 8)["held"][0], ran("1f1b", 4, 8)["held"][0]) == (8, 4)  # the memory is


def test_memory_of_every_stage():
    """1F1B: p − s. ZB-H1: (p − s) M_B + s M_W, ZB-H2: (2(p − s) − 1) M_B + 2s M_W (arXiv:2401.10241 section
    2.3)."""
    p, kept = 6, KEPT_FOR_WEIGHTS
    assert list(ran("1f1b", p, 20)["held"][:p]) == [6, 5, 4, 3, 2, 1]
    assert np.allclose(ran("zb-h1", p, 20)["held"][:p], [p - s + s * kept for s in range(p)])
    assert np.allclose(ran("zb-h2", p, 20)["held"][:p], [2 * (p - s) - 1 + 2 * s * kept for s in range(p)])


def test_zero_bubble_needs_stages_that_end_their_step_alone():
    """Where all stages wait for a global norm, ZB-H2 has its fill and its drain back: (p − 1) F; 1F1B loses
    nothing."""
    p, m = 8, 32
    alone, together = ran("zb-h2", p, m), ran("zb-h2", p, m, in_step=1)
    assert alone["bubble"] == pytest.approx(0.0, abs=EXACT)
    assert together["step_s"] - alone["step_s"] == pytest.approx(p - 1)
    assert ran("1f1b", p, m)["step_s"] == ran("1f1b", p, m, in_step=1)["step_s"]


# -- by hand -------------------------------------------------------------------------------------------------
def test_two_stages_two_micro_batches_by_hand():
    """F = 1, B = 2. Stage 0: F 0-1, 1-2; stage 1: F 1-2, B 2-4, F 4-5, B 5-7; stage 0: B 4-6, B 7-9."""
    found = ran("1f1b", 2, 2, times=(1.0, 1.0, 1.0))
    assert rows(found, "stage", "kind", "batch", "start_s", "end_s") == [
        (0, 0, 0, 0, 1),
        (0, 0, 1, 1, 2),
        (0, 1, 0, 4, 6),
        (0, 1, 1, 7, 9),
        (1, 0, 0, 1, 2),
        (1, 1, 0, 2, 4),
        (1, 0, 1, 4, 5),
        (1, 1, 1, 5, 7),
    ]
    assert rows(found, "idle_stage", "idle_start_s", "idle_end_s", "idle_kind") == [
        (0, 2, 4, BACKWARD),
        (0, 6, 7, BACKWARD),
        (1, 0, 1, FORWARD),
        (1, 7, 9, STEP_END),
    ]
    np.testing.assert_array_equal(
        rows(found, "idle_stage", "idle_batch", "idle_from"),
        [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, np.nan, np.nan)],
    )
    assert found["total_s"] == 9 and found["bubble"] == pytest.approx(1 - 12 / 18)


def test_microseconds_idle_as_seconds_do():
    """What counts as a gap goes with the length of the step."""
    long, short = ran("1f1b", 4, 8), ran("1f1b", 4, 8, times=(1e-6, 1e-6, 1e-6))
    assert rows(short, "idle_stage", "idle_kind") == rows(long, "idle_stage", "idle_kind")
    assert short["idle_end_s"] == pytest.approx(long["idle_end_s"] * 1e-6, nan_ok=True)


def test_where_stages_end_alone_the_neighbouring_steps_are_seen():
    """ZB-H2 at F = B = W: stage s starts s later, and leaves as much to the step before and to the next
    one."""
    p, m = 4, 8
    found = ran("zb-h2", p, m)
    assert sorted(rows(found, "other_stage", "other_start_s", "other_end_s", "other_next")) == sorted(
        [(s, 0, s, 0) for s in range(1, p)] + [(s, 3 * m + s, 3 * m + p - 1, 1) for s in range(p - 1)]
    )
    assert not rows(found, "idle_stage")


def test_messages_lengthen_fill_drain_and_every_turn():
    """One micro-batch goes down and up once: 2 (p − 1) messages; the wait for one that was sent says so."""
    found = ran("1f1b", 4, 1, message_s=0.25)
    assert found["total_s"] == 4 * 3 + 2 * 3 * 0.25
    ends = found["idle_kind"] == STEP_END
    assert set(found["idle_wire_s"][np.isfinite(found["idle_stage"]) & ~ends]) == {
        0.25
    }  # one message in each wait
    assert np.isnan(found["idle_wire_s"][ends]).all() and np.isnan(ran("1f1b", 4, 8)["idle_wire_s"]).all()


def test_the_slowest_stage_sets_the_pace():
    """A last stage that takes half as long again: every further micro-batch costs 1.5 (F + B)."""
    more = [ran("1f1b", 4, m, last=0.5)["total_s"] for m in (16, 17)]
    assert more[1] - more[0] == pytest.approx(1.5 * 3)
    even = ran("1f1b", 4, 16)
    assert ran("1f1b", 4, 16, last=0.5)["bubble"] > 2 * even["bubble"] - even["bubble"] ** 2


# -- properties ----------------------------------------------------------------------------------------------
@settings(max_examples=150, deadline=None)
@given(
    key=st.sampled_from(KEYS),
    p=st.integers(1, 16),
    m=st.integers(1, 64),
    v=st.integers(1, 4),
    times=st.tuples(*[st.integers(1, 6)] * 3),
    message_s=st.integers(0, 3),
    extras=st.tuples(*[st.integers(0, 2)] * 2),
    together=st.sampled_from([1.0, 0.75]),
)
def test_every_pass_once_and_nothing_before_its_time(key, p, m, v, times, message_s, extras, together):
    found = ran(key, p, m, v, tuple(map(float, times)), together, float(message_s), *map(float, extras))
    p, m, v = int(found["stages"]), int(found["micro_batches"]), chunks_of(pipeline.SCHEDULES[key], v)
    start, end, stage_of, made = {}, {}, {}, {}
    for stage, kind, batch, place, begin, finish in rows(
        found, "stage", "kind", "batch", "place", "start_s", "end_s"
    ):
        kind, batch, place = int(kind), int(batch), int(place)
        made.setdefault((place, batch), []).append(kind)
        kind = BACKWARD if kind == INPUT else kind
        assert (place, batch, kind) not in start, "a pass made twice"
        start[place, batch, kind], end[place, batch, kind], stage_of[place, batch] = begin, finish, stage
    assert len(made) == p * v * m
    assert {tuple(sorted(kinds)) for kinds in made.values()} <= {
        (FORWARD, BACKWARD),
        (FORWARD, INPUT, WEIGHT),
    }
    for (place, batch, kind), begin in start.items():
        before = {
            FORWARD: (place - 1, batch, FORWARD),
            WEIGHT: (place, batch, BACKWARD),
            BACKWARD: (place + 1, batch, BACKWARD) if place < p * v - 1 else (place, batch, FORWARD),
        }[kind]
        if before in end:
            lag = message_s if stage_of[before[:2]] != stage_of[place, batch] else 0
            assert begin >= end[before] + lag - EXACT
        else:
            assert kind == FORWARD and place == 0
    assert_no_stage_does_two_things(found, p)


def assert_no_stage_does_two_things(found, p):
    """Passes (pairs counted once) and idle stretches tile each stage's time from the step before to the next
    one."""
    for stage in range(p):
        spans = {
            (begin, finish) for at, begin, finish in rows(found, "stage", "start_s", "end_s") if at == stage
        }
        spans |= {
            (begin, finish)
            for at, begin, finish in rows(found, "idle_stage", "idle_start_s", "idle_end_s")
            if at == stage
        }
        spans = sorted(spans)
        assert all(first[1] == pytest.approx(second[0]) for first, second in itertools.pairwise(spans))
        works = [
            (begin, finish) for at, begin, finish in rows(found, "stage", "start_s", "end_s") if at == stage
        ]
        first, last = min(works)[0], max(finish for _, finish in works)
        assert spans[0][0] == pytest.approx(max(0.0, last - found["step_s"]))
        assert spans[-1][1] == pytest.approx(min(found["total_s"], first + found["step_s"]))


def test_dualpipe_runs_with_the_next_numbers_that_it_can():
    found = run(DUALPIPE, 7, 9, 1, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0, NOT_OWN)
    assert (found["stages"], found["micro_batches"]) == (8, 16)
    assert {INPUT, BACKWARD} <= set(found["kind"][np.isfinite(found["kind"])])


@in_one_test(
    "given, words",
    [
        ({"key": "pipedream"}, ("key", "gpipe")),
        ({"stages": 17}, ("stages", "1", "16", "17")),
        ({"micro_batches": 0}, ("micro_batches",)),
        ({"chunks": 5}, ("chunks", "1", "4")),
        ({"forward_s": 0.0}, ("forward_s", "0")),
        ({"message_s": -1.0}, ("message_s", "0")),
    ],
)
def test_bad_input_is_named(given, words):
    with refused(*words):
        by_key(**{"key": "1f1b", "stages": 4, "micro_batches": 8} | given)
