"""The event-driven server: every request is served once, queues are those of theory, and no step is taken
twice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.serving import events, server
from engine.serving.events import serve
from engine.serving.modes import CHUNKED, DISAGGREGATED, PREFILL_FIRST, RECOMPUTE

MODES = (PREFILL_FIRST, CHUNKED, DISAGGREGATED)
ROWS, ROWS_S = [1, 64, 4096], [0.01, 0.012, 0.4]


def run(
    came_s,
    prompts,
    outputs,
    mode=PREFILL_FIRST,
    instances=1,
    prefill_instances=0,
    budget=2048,
    most_running=256,
    capacity=1e9,
    transfer_s=0.0,
    rows=ROWS,
    rows_s=ROWS_S,
    pair_s=0.0,
    cached_s=0.0,
    shared=0,
    hits=None,
    aged=None,
    counted=None,
    swap_s=RECOMPUTE,
    rounds=None,
    width=1,
    draft_s=0.0,
    front_rows_s=None,
    front_pair_s=None,
    front_capacity=None,
):
    none = [0] * len(prompts)
    found = serve(
        {
            "came_s": list(came_s),
            "prompts": list(prompts),
            "outputs": list(outputs),
            "hits": none if hits is None else hits,
            "aged": none if aged is None else aged,
            "rounds": events.rounds(outputs) if rounds is None else rounds,
            "counted": len(prompts) if counted is None else counted,
        },
        {
            "mode": mode,
            "instances": instances,
            "prefill_instances": prefill_instances,
            "shared": shared,
            "budget": budget,
            "most_running": most_running,
            "capacity": capacity,
            "front_capacity": capacity if front_capacity is None else front_capacity,
            "transfer_s": transfer_s,
            "swap_s": swap_s,
            "rows": rows,
            "rows_s": rows_s,
            "pair_s": pair_s,
            "cached_s": cached_s,
            "front_rows_s": rows_s if front_rows_s is None else front_rows_s,
            "front_pair_s": pair_s if front_pair_s is None else front_pair_s,
            "width": width,
            "draft_s": draft_s,
        },
    )
    return {name: np.array(values) for name, values in found.items()}


def drawn(count=120, rate=8.0, prompt=600, output=80, seed=11):
    return (
        events.arrivals(count, rate, seed),
        events.lengths(count, prompt, 0.6, seed + 1),
        events.lengths(count, output, 0.6, seed + 2),
    )


# -- draws ---------------------------------------------------------------------------------------------------
def test_the_generator_is_park_and_millers():
    """With 48271 the ten-thousandth state after 1 is 399268537 (Park, Miller and Stockmeyer 1993)."""
    state = 1
    for _ in range(10_000):
        state = events.draw(state)
    assert state == 399268537


def test_gaps_and_lengths_have_the_moments_they_should():
    gaps = np.diff([0.0, *events.arrivals(20_000, 5.0, 17)])
    assert gaps.mean() == pytest.approx(0.2, rel=0.03) and gaps.std() == pytest.approx(0.2, rel=0.03)
    logs = np.log(events.lengths(20_000, 1000, 0.5, 23))
    assert logs.mean() == pytest.approx(np.log(1000), abs=0.02) and logs.std() == pytest.approx(0.5, rel=0.03)
    assert set(events.lengths(50, 300, 0.0, 3)) == {300}


# -- small helpers -------------------------------------------------------------------------------------------
@given(st.lists(st.floats(0, 1e6), max_size=60), st.floats(0, 1))
def test_percentiles_are_numpys(values, share):
    expected = np.percentile(values, 100 * share) if values else 0.0
    assert events.percentile(values, share)["value"] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert events.ascending(values) == sorted(values)


@settings(deadline=None)
@given(st.floats(0, 50), st.floats(0.2, 2), st.floats(0, 0.2), st.integers(1, 300))
def test_steps_before_are_those_that_start_in_the_gap(gap, first, more, most):
    starts = [k * first + more * k * (k - 1) / 2 for k in range(most)]
    counted = max(1, sum(start < gap - 1e-6 for start in starts))
    assert (
        counted
        <= server.steps_before(gap, first, more, most)
        <= max(1, sum(start < gap + 1e-6 for start in starts))
    )


# -- one request, by hand ------------------------------------------------------------------------------------
def test_one_request_by_hand():
    """64 tokens of prompt: 12 ms and 64²/2 pairs; then nine steps of one token over 65 … 73 cached ones."""
    found = run([1.0], [64], [10], pair_s=1e-6, cached_s=1e-5)
    prefill = 0.012 + 64 * 64 / 2 * 1e-6
    assert found["started"][0] == 1.0 and found["first"][0] == pytest.approx(1.0 + prefill)
    decode = 9 * 0.01 + sum(range(65, 74)) * 1e-5
    assert found["last"][0] == pytest.approx(1.0 + prefill + decode)
    assert found["pause"][0] == pytest.approx(0.01 + 73e-5) and found["pause_end"][0] == found["last"][0]
    assert found["busy"][0] == pytest.approx(prefill + decode)


def test_a_moved_cache_comes_after_its_wire():
    found = run(
        [0.0, 0.0],
        [100, 100],
        [5, 5],
        DISAGGREGATED,
        2,
        1,
        budget=100,
        transfer_s=1e-3,
        rows=[1, 100],
        rows_s=[0.01, 0.1],
    )
    assert found["first"].tolist() == pytest.approx([0.1, 0.2])
    assert found["moved"].tolist() == pytest.approx([0.1 + 0.101, 0.2 + 0.202 - 0.1])
    assert found["prefilled_at"].tolist() == [0, 0] and found["at"].tolist() == [1, 1]


def test_the_prompt_of_another_makes_a_pause_and_chunks_make_it_shorter():
    came, prompts, outputs = [0.0, 1.0], [64, 4096], [400, 10]
    first = run(came, prompts, outputs)
    chunked = run(came, prompts, outputs, CHUNKED, budget=512)
    apart = run(came, prompts, outputs, DISAGGREGATED, 2, 1)
    assert first["pause"][0] == pytest.approx(0.4 + 0.01, abs=0.011)
    assert first["pause_end"][0] == pytest.approx(1.0 + 0.4, abs=0.03)
    assert apart["pause"][0] < 0.013 < chunked["pause"][0] < 0.08
    assert chunked["first"][1] > first["first"][1]  # what the one gains, the other pays


# -- whatever comes ------------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from(MODES),
    st.integers(1, 4),
    st.integers(1, 500),
    st.floats(0.5, 60),
    st.sampled_from([300, 900, 4000]),
    st.sampled_from([1, 8, 256]),
    st.sampled_from([4000, 12_000, 1e9]),
    st.sampled_from([0, 1]),
    st.sampled_from([RECOMPUTE, 1e-6]),
    st.integers(1, 10**6),
)
def test_every_request_is_served_once_and_in_order(
    mode, size, output, rate, budget, most, capacity, shared, swap_s, seed
):
    came, prompts, outputs = drawn(40, rate, 500, output, seed)
    instances, front = (size + 1, size) if mode == DISAGGREGATED else (size, size)
    found = run(
        came,
        prompts,
        outputs,
        mode,
        instances,
        front,
        budget,
        most,
        capacity,
        1e-6,
        pair_s=1e-8,
        cached_s=1e-7,
        shared=shared,
        swap_s=swap_s,
    )
    served = found["last"] >= 0
    refused = np.array(prompts) + np.array(outputs) > capacity
    assert (served == ~refused).all()
    came, started, first, last = (
        np.array(x)[served] for x in (came, found["started"], found["first"], found["last"])
    )
    assert (came <= started).all() and (started < first).all() and (first <= last).all()
    assert (found["pause"][served] <= last - first + 1e-9).all()
    assert (found["busy"] <= last.max(initial=0) + 1e-9).all()
    assert (found["prefilling"] <= found["busy"]).all()
    if capacity == 1e9:
        assert not found["put_out"].any()


@pytest.mark.parametrize("mode", MODES)
def test_steps_taken_together_are_steps_taken_one_by_one(mode, monkeypatch):
    """Decode steps between two events are added up in one go; the same run with each step an event of its
    own."""
    arguments = dict(
        mode=mode,
        instances=3,
        prefill_instances=1,
        capacity=40_000,
        transfer_s=2e-6,
        cached_s=2e-7,
        pair_s=1e-9,
    )
    together = run(*drawn(), **arguments)
    monkeypatch.setattr(events, "steps_before", lambda gap_s, first_s, more_s, most: 1)
    alone = run(*drawn(), **arguments)
    for name in together:
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-7, atol=1e-7, err_msg=name)


def test_a_full_cache_puts_the_last_one_out_and_it_finishes_all_the_same():
    found = run([0.0, 0.0], [500, 500], [400, 400], capacity=1500)
    assert found["put_out"].tolist() == [0, 1]
    assert found["last"][1] > found["last"][0] and found["pause"][1] > 0.4


# -- pieces --------------------------------------------------------------------------------------------------
def test_swapping_brings_an_answer_back_without_reading_it_again():
    """Two of 500 tokens fill a cache of 1,500: the second leaves after 250 tokens each, and with 750 tokens
    there and back at 0.1 ms each it could return after 150 ms, but has no room until the first is done."""
    dropped, swapped = (
        run([0.0, 0.0], [500, 500], [400, 400], capacity=1500, swap_s=swap_s) for swap_s in (RECOMPUTE, 1e-4)
    )
    assert swapped["put_out"].tolist() == [0, 1] and dropped["first"].tolist() == swapped["first"].tolist()
    again_s = np.interp(751, ROWS, ROWS_S)  # what was read again
    assert dropped["prefilling"].sum() - swapped["prefilling"].sum() == pytest.approx(again_s, rel=0.01)
    assert swapped["last"][1] < dropped["last"][1]


def test_a_prompt_that_is_read_in_part_goes_before_an_answer_that_was_swapped_out():
    """It holds room in the cache: if the answer that comes back waited for that room before it, neither would
    ever go on."""
    for seed in range(1, 40):
        came, prompts, outputs = drawn(25, 40.0, 600, 80, seed)
        found = run(came, prompts, outputs, CHUNKED, budget=256, capacity=1200, swap_s=1e-6)
        refused = np.array(prompts) + np.array(outputs) > 1200
        assert ((found["last"] >= 0) == ~refused).all()


def test_a_cache_keeps_room_for_answers_that_grow():
    """Without it, each newcomer would be let in for a few steps and thrown out: here no more than one in ten
    is, at one and a half times what the cache holds."""
    came, prompts, outputs = drawn(300, 1e3, 500, 200)
    found = run(came, prompts, outputs, capacity=20_000)
    assert (found["last"] > 0).all() and found["put_out"].sum() < 150


def test_what_the_prefix_cache_holds_is_not_read():
    """Of 1,000 tokens 900 are known: the step is one of 100, and each sees all before it."""
    cold = run([0.0], [1000], [2], pair_s=1e-6)
    warm = run([0.0], [1000], [2], pair_s=1e-6, hits=[900])
    assert cold["first"][0] == pytest.approx(np.interp(1000, ROWS, ROWS_S) + 1000 * 500 * 1e-6)
    assert warm["first"][0] == pytest.approx(np.interp(100, ROWS, ROWS_S) + 100 * 950 * 1e-6)


def test_a_run_can_begin_with_answers_under_way():
    """60 of 100 tokens are written: 40 steps are left, and its cache is there."""
    found = run([0.0], [64], [100], aged=[60], cached_s=1e-5)
    assert found["last"][0] == pytest.approx(40 * 0.01 + sum(range(124, 164)) * 1e-5)
    refused = run([0.0, 0.0], [64, 6400], [100, 100], aged=[60, 10], capacity=1000)
    assert refused["last"][0] > 0 > refused["last"][1]  # what no cache could hold was never under way
    came, _, outputs, aged = events.underway(20_000, 500, 0.6, 200, 0.6, 7)
    assert all(1 <= part < whole for part, whole in zip(aged, outputs)) and not any(came)
    assert np.mean(outputs) == pytest.approx(200 * np.exp(1.5 * 0.36), rel=0.03)  # E[o²]/E[o]
    assert np.mean(np.divide(aged, outputs)) == pytest.approx(0.5, abs=0.02)


def test_a_run_ends_with_those_that_are_counted():
    came, prompts, outputs = drawn(100, 2.0)
    whole, part = run(came, prompts, outputs), run(came, prompts, outputs, counted=50)
    assert part["last"][:50].tolist() == whole["last"][:50].tolist() and (part["last"] < 0).any()


def test_drafts_make_steps_fewer_and_wider():
    """Ten tokens after the first in four steps of four places, each with 5 ms of drafting."""
    found = run([0.0], [64], [11], rounds=[4], width=4, draft_s=0.005, cached_s=1e-5)
    step_s = np.interp(4, ROWS, ROWS_S) + 0.005
    cached_s = sum(65 + 2.5 * n for n in range(4)) * 1e-5
    assert found["last"][0] - found["first"][0] == pytest.approx(4 * step_s + cached_s)


def test_a_shared_queue_serves_in_the_order_of_arrival():
    came, prompts, outputs = drawn(200, 20.0, 600, 1)
    found = run(came, prompts, outputs, instances=3, shared=1, budget=1)
    assert (np.diff(found["started"]) >= 0).all() and set(found["at"]) == {0, 1, 2}


def test_a_mixed_step_serves_decodes_first_and_fills_up_with_prompts():
    """As vLLM V1 schedules: 60 answers take 60 of 100 tokens of each step, a prompt of 400 gets the other 40,
    so it takes ten steps, and no answer waits for longer than one of them."""
    found = run([0.0] * 60 + [1.0], [1] * 60 + [400], [600] * 60 + [2], CHUNKED, budget=100)
    step_s = np.interp(100, ROWS, ROWS_S)
    assert found["first"][60] - found["started"][60] == pytest.approx(10 * step_s)
    assert found["pause"][:60].max() == pytest.approx(step_s)


# -- theory --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_prompt_at_a_time_waits_as_m_d_1_says(load):
    """Fixed service S and Poisson arrivals: the mean wait is ρ·S/(2·(1 − ρ)) (Pollaczek and Khinchine).
    200,000 requests bring it within three per cent at ρ = 0.8, where successive waits hang together most."""
    count, service_s = 200_000, 0.05
    came = events.arrivals(count, load / service_s, 5)
    found = run(came, [100] * count, [1] * count, budget=100, rows=[1, 100], rows_s=[0.001, service_s])
    wait_s = (found["started"] - came).mean()
    assert wait_s == pytest.approx(load * service_s / (2 * (1 - load)), rel=0.03)


def test_a_closed_batch_decodes_at_the_speed_of_its_steps():
    """64 requests at once: a prefill of each, then all of them at 12 ms a step."""
    found = run([0.0] * 64, [64] * 64, [101] * 64, budget=4096)
    assert found["last"].max() == pytest.approx(0.4 + 100 * 0.012)


def test_the_page_runs_the_same_server():
    """The program that a page runs gives what ``serve`` gives for the same draws."""
    values = events.served(
        60, 4.0, 500, 0.5, 50, 0.5, 3, ROWS, ROWS_S, 1e-9, 1e-7, DISAGGREGATED, 3, 1, 2048, 64, 1e6, 1e-6, 0
    )
    count = int(np.isfinite(values["came_s"]).sum())
    again = run(
        *events.drawn(count + events.LATER, 4.0, 500, 0.5, 50, 0.5, 3),
        DISAGGREGATED,
        3,
        1,
        most_running=64,
        capacity=1e6,
        transfer_s=1e-6,
        pair_s=1e-9,
        cached_s=1e-7,
        counted=count,
    )
    assert count == 60
    for name, output in (("first", "first_s"), ("last", "last_s"), ("at", "at")):
        np.testing.assert_allclose(values[output][:count], again[name][:count], rtol=1e-12)


@pytest.mark.parametrize(("earlier", "later"), [(1.0, 2.0), (2.0, 4.0), (4.0, 8.0), (8.0, 16.0)])
def test_more_traffic_means_longer_waits(earlier, later):
    def wait(rate):
        came, prompts, outputs = drawn(rate=rate)
        return np.mean(run(came, prompts, outputs)["first"] - came)

    assert wait(earlier) < wait(later)


def test_a_gap_of_whole_steps_holds_so_many():
    """3 · 0.1 is a hair more than 0.3 in floating point, and no fourth step."""
    assert [server.steps_before(k * 0.1, 0.1, 0.0, 100) for k in (1, 3, 6, 7, 12)] == [1, 3, 6, 7, 12]


def test_each_seed_begins_its_streams_at_whole_numbers_of_its_own():
    for seed in (0, 1, 5):
        found = events.served(
            20,
            2.0,
            500.0,
            0.5,
            100.0,
            0.5,
            seed,
            [1.0, 1000.0],
            [0.01, 0.1],
            0.0,
            0.0,
            0,
            1,
            0,
            2048,
            8,
            1e9,
            0.0,
            0,
        )
        assert found["came_s"][:20].tolist() == list(events.arrivals(20, 2.0, 7919 * (seed + 1)))
        assert found["prompt"][:20].tolist() == list(events.lengths(20, 500.0, 0.5, 104729 * (seed + 1)))
        assert found["output"][:20].tolist() == list(events.lengths(20, 100.0, 0.5, 1299709 * (seed + 1)))
