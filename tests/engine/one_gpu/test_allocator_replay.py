"""The recorded step replayed: books that balance, and what lengths and expandable segments do to it."""

import numpy as np
import pytest

from engine.one_gpu import allocator, allocator_replay, recordings
from engine.one_gpu.allocator_replay import CACHED, OPTIMIZER, ROWS, WEIGHTS, of_steps
from tests import machine

# 6 layers of 12·4096² weights and two norms, one more norm, 50257·4096 for the embedding and for the head
WEIGHTS_COUNT = 6 * (12 * 4096**2 + 4 * 4096) + 2 * 4096 + 2 * 50257 * 4096


def known(column):
    return column[~np.isnan(column)]


def bytes_of(kind, length=0):
    trace = allocator_replay.trace()
    sizes = trace["fixed_bytes"] + trace["bytes_per_length"] * length
    return sizes[trace["kinds"] == kind].sum()


def test_the_weights_and_adams_state_are_those_of_the_model():
    """bf16 weights; two bf16 moments, and for each of the 39 tensors a step counter of four bytes (fp32)."""
    assert bytes_of(WEIGHTS) == 2 * WEIGHTS_COUNT
    tensors = len(allocator_replay.trace()["setup"])
    assert bytes_of(OPTIMIZER) == pytest.approx(4 * WEIGHTS_COUNT, abs=8 * tensors)


def test_a_step_gives_back_all_that_it_takes():
    steady = allocator_replay.trace()["steady"]
    assert sorted(steady[steady > 0]) == sorted(-steady[steady < 0])


def test_the_logits_are_the_largest_tensor_of_a_step_and_grow_with_the_length():
    """4 sequences, 50,257 scores of two bytes for each token."""
    trace = allocator_replay.trace()
    assert trace["bytes_per_length"].max() == 4 * 50257 * 2
    assert np.all(trace["fixed_bytes"] >= 0)


@pytest.mark.parametrize("expandable", [0, 1])
@pytest.mark.parametrize("moment", [0, 3.2, 12])
def test_the_picture_holds_what_is_reserved(expandable, moment):
    run = of_steps(12, 8192, 0.1, 2, 80e9, expandable, moment)
    widths = known(run["right"]) - known(run["left"])
    of_row = allocator_replay.row_bytes(80e9)
    assert widths.sum() * of_row == pytest.approx(run["reserved_bytes"], rel=1e-12)
    cached = known(run["held"]) == CACHED
    # short blocks are drawn together with their like alone, so that the sum of each kind is exact
    assert (widths[~cached].sum() * of_row) == pytest.approx(run["allocated_bytes"], rel=1e-12)
    assert known(run["row"]).max() < ROWS


def test_a_thin_block_is_drawn_with_its_like_and_a_thick_one_alone():
    whole, thick, thin = 1.0, 2 * allocator_replay.THIN, allocator_replay.THIN / 2
    sizes = [thick, thin, thick, thick, thin, thin]
    kinds = [WEIGHTS, WEIGHTS, WEIGHTS, OPTIMIZER, OPTIMIZER, WEIGHTS]
    memory, before = allocator.unused(0, 0), allocator.NONE
    for size, kind in zip(sizes, kinds):
        start = sum(block.size for block in memory.blocks)
        before = allocator.add_block(memory, size, start, 0, before, allocator.NONE, allocator.USED)
        memory.blocks[before].kind = kind
    memory.segments.append(allocator.Segment(1, 0, 1))
    pieces, frames = (allocator_replay.Pieces([], [], [], [], [], []) for _ in range(2))
    allocator_replay.draw(memory, whole, pieces, frames)
    assert pieces.blocks == [2, 1, 2, 1]
    assert pieces.held == [WEIGHTS, WEIGHTS, OPTIMIZER, WEIGHTS]
    assert pieces.size == pytest.approx([thick + thin, thick, thick + thin, thin])
    assert frames.right == pytest.approx([sum(sizes)])


def test_a_memory_that_holds_the_sum_to_the_byte_is_not_too_small():
    run = {"failed": 1, "needed_bytes": 48e9, "last_allocated_bytes": 47e9, "wanted_bytes": 2e9}
    assert allocator_replay.fits_in_sum(run, 48e9) and not allocator_replay.too_much(run, 48e9)
    assert allocator_replay.too_much(run, 48e9 - 1) and not allocator_replay.fits_in_sum(run, 48e9 - 1)


def test_at_step_zero_there_are_the_weights_alone():
    run = of_steps(12, 8192, 0.1, 2, 80e9, 0, 0)
    assert run["now"] == 0 and set(known(run["held"])) <= {WEIGHTS, CACHED}
    assert run["allocated_bytes"] == pytest.approx(bytes_of(WEIGHTS), rel=1e-4)  # 512 for each small tensor


def test_what_is_allocated_does_not_depend_on_how_it_is_cut():
    """Within the large pool's rule that a rest up to 1 MiB stays with its block."""
    off, on = (of_steps(12, 8192, 0.2, 3, 180e9, expandable, 12) for expandable in (0, 1))
    assert off["peak_allocated_bytes"] == pytest.approx(on["peak_allocated_bytes"], rel=0.01)
    assert on["allocated_bytes"] == pytest.approx(bytes_of(WEIGHTS) + bytes_of(OPTIMIZER), rel=1e-3)


def test_one_length_asks_the_driver_for_nothing_after_the_second_step():
    runs = [of_steps(12, 8192, 0, 1, 180e9, 0, moment) for moment in (2, 12)]
    assert runs[0]["mallocs"] == runs[1]["mallocs"]


def test_lengths_that_vary_reserve_far_more_and_expandable_segments_hardly_more():
    one, many, grown = (
        of_steps(12, 8192, spread, 2, 180e9, on, 12) for spread, on in ((0, 0), (0.1, 0), (0.1, 1))
    )
    assert allocator_replay.peak_ratio(one) < 1.1 < 1.4 < allocator_replay.peak_ratio(many)
    assert allocator_replay.peak_ratio(grown) < 1.03


@pytest.mark.parametrize("seed", range(1, 7))
def test_out_of_memory_with_gigabytes_free_is_cured_by_the_switch(seed):
    off, on = (of_steps(12, 6144, 0.35, seed, 48e9, expandable, 12) for expandable in (0, 1))
    assert on["failed"] == 0
    if off["failed"]:
        assert allocator_replay.fits_in_sum(off, 48e9) and not allocator_replay.too_much(off, 48e9)
        assert off["wanted_bytes"] > off["largest_bytes"]


def test_what_is_needed_does_not_depend_on_the_memory_nor_on_the_setting():
    needed = {
        of_steps(12, 8192, 0.1, 2, memory, on, 12)["needed_bytes"]
        for memory in (30e9, 50e9, 180e9)
        for on in (0, 1)
    }
    assert len(needed) == 1
    # a grown segment splits at 512 bytes: only the small pool's and the last page's rounding could differ,
    # and do not
    assert of_steps(12, 8192, 0.1, 2, 180e9, 1, 12)["peak_allocated_bytes"] == pytest.approx(
        needed.pop(), rel=1e-9
    )


@pytest.mark.parametrize(
    ("steps", "length", "spread", "seed"),
    [(12, 8192, 0.1, 2), (12, 600, 0.6, 31), (2, 5000, 0.5, 4), (1, 5000, 0.5, 4)],
)
def test_what_is_needed_is_the_most_alive_at_any_event_of_any_step(steps, length, spread, seed):
    trace, alive, most = allocator_replay.trace(), {}, 0
    for step in range(steps + 1):
        tokens = allocator_replay.length_of_step(step, length, spread, seed)
        for event in trace[("setup", "first", "steady")[min(step, 2)]]:
            tensor = int(abs(event)) - 1
            if event < 0:
                del alive[tensor]
            else:
                alive[tensor] = allocator.rounded_bytes(
                    trace["fixed_bytes"][tensor] + trace["bytes_per_length"][tensor] * tokens
                )
                most = max(most, sum(alive.values()))
    assert of_steps(steps, length, spread, seed, 180e9, 0, 0)["needed_bytes"] == most


def test_the_default_run_keeps_three_scores_for_each_length_that_was_outgrown():
    """4 · 50,257 scores of two bytes a token, three times: themselves, their log-softmax, its gradient.

    7,653, 7,995, 8,752 and 8,808 tokens are each longer than all before: 3.08, 3.21, 3.52 and 3.54 GB. Three
    of the last are in use at once; the other nine, 29.4 GB, are more than the whole excess of 25.6 GB.
    """
    lengths = [allocator_replay.length_of_step(step, 8192, 0.1, 8) for step in range(1, 13)]
    longer = [7653, 7995, 8752, 8808]
    assert [
        length for step, length in enumerate(lengths) if length > max(lengths[:step], default=0)
    ] == longer
    assert allocator_replay.longer_than_before(12, 8192, 0.1, 8) == len(longer)
    run = of_steps(12, 8192, 0.1, 8, 180e9, 0, 12)
    outgrown = 3 * 4 * 50257 * 2 * sum(longer[:-1])
    assert outgrown == pytest.approx(29.4e9, rel=2e-3)
    assert run["peak_reserved_bytes"] - run["peak_allocated_bytes"] == pytest.approx(25.6e9, rel=2e-3)
    # most of what is cached in the end lies in whole segments: the rest is stuck beside Adam's state alone
    cached = run["reserved_bytes"] - run["allocated_bytes"]
    assert run["stuck_bytes"] == pytest.approx(run["last_beside_state_bytes"], rel=0.01)
    assert cached - run["stuck_bytes"] > outgrown and run["stuck_bytes"] < 0.06 * cached


def test_the_excess_is_a_share_of_what_was_allocated():
    """30 GB reserved for 20 allocated is half as much again."""
    assert allocator_replay.excess({"peak_reserved_bytes": 30e9, "peak_allocated_bytes": 20e9}) == 0.5


def test_when_a_request_has_failed_all_that_is_still_cached_is_stuck():
    run = of_steps(12, 10240, 0.5, 8, 80e9, 0, 12)
    cached = run["last_reserved_bytes"] - run["last_allocated_bytes"]
    assert run["failed"] and run["last_stuck_bytes"] == cached
    assert run["last_beside_state_bytes"] < 0.2 * cached  # most of it is beside tensors of the step itself


def test_the_excess_goes_with_how_often_a_batch_is_longer_than_all_before_and_not_with_the_seed_alone():
    found = allocator_replay.over_seeds(8192, 0.1, 180e9)
    medians = [np.median(found["ratio"][found["longer"] == times]) for times in range(1, 6)]
    assert medians == sorted(medians) and found["ratio"][found["longer"] == 1].max() < 1.12 < 1.3 < np.median(
        found["ratio"]
    )
    assert len(found["ratio"]) == allocator_replay.SEEDS


def test_the_order_of_lengths_is_the_seeds_whatever_the_spread():
    times = {allocator_replay.longer_than_before(12, 8192, spread, 8) for spread in (0.02, 0.1, 0.5)}
    assert {allocator_replay.longer_than_before(1, 8192, 0.5, seed) for seed in range(1, 20)} == {
        1
    }  # the first one
    assert times == {4} and allocator_replay.longer_than_before(12, 8192, 0, 8) == 1


def test_a_request_may_fail_with_room_in_sum_where_a_later_one_has_none():
    """38.6 GiB allocated and 3.7 asked for are 45.4 of 48 GB; the run's largest step needs 54.1 GB."""
    off, on = (of_steps(12, 8192, 0.3, 8, 48e9, expandable, 12) for expandable in (0, 1))
    assert allocator_replay.had_room(off, 48e9) and allocator_replay.too_much_later(off, 48e9)
    assert not allocator_replay.too_much(off, 48e9) and not allocator_replay.fits_in_sum(off, 48e9)
    assert allocator_replay.too_much(on, 48e9) and not allocator_replay.had_room(on, 48e9)


@pytest.mark.parametrize("memory", [40e9, 46e9, 48e9, 52e9, 60e9])
@pytest.mark.parametrize("spread", [0, 0.1, 0.3])
def test_a_run_that_fails_does_so_for_one_reason(memory, spread):
    for expandable in (0, 1):
        run = of_steps(12, 8192, spread, 8, memory, expandable, 12)
        reasons = [
            of(run, memory)
            for of in (
                allocator_replay.fits_in_sum,
                allocator_replay.too_much_later,
                allocator_replay.too_much,
            )
        ]
        assert sum(map(bool, reasons)) == run["failed"]


def test_a_memory_too_small_for_the_sum_is_said_to_be_full():
    run = of_steps(12, 8192, 0, 1, 40e9, 1, 12)
    assert (
        run["failed"] and allocator_replay.too_much(run, 40e9) and not allocator_replay.fits_in_sum(run, 40e9)
    )


def test_lengths_are_drawn_from_the_range_and_the_same_for_a_seed():
    drawn = [allocator_replay.length_of_step(step, 1000, 0.2, 5) for step in range(1, 400)]
    assert min(drawn) >= 800 and max(drawn) <= 1200
    assert np.mean(drawn) == pytest.approx(1000, abs=3 * 115 / 20)  # three standard errors
    assert drawn == [allocator_replay.length_of_step(step, 1000, 0.2, 5) for step in range(1, 400)]


def test_bytes_are_a_straight_line_in_the_length():
    """Recorded once more at a third length."""
    machine.torch()
    from record import training_steps

    third, _ = training_steps.steps(1536)
    shipped = recordings.load("training_steps")
    line = [a + b * 1536 for a, b in zip(shipped["fixed_bytes"], shipped["bytes_per_length"])]
    assert third.bytes == line


@pytest.mark.parametrize("moment", [3.37, 3.371, 5.013])
def test_a_moment_is_shown_at_its_first_event(moment):
    """Also between two samples of the time line: less than an event later."""
    shown = allocator_replay.of_steps(12, 4096, 0.3, 1, 80e9, 0, moment)
    assert 0 <= shown["now"] - moment < 1 / len(allocator_replay.trace()["steady"])
