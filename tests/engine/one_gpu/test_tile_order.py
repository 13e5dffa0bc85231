"""The order of tiles and the blocks in L2: Triton's own example, cases counted by hand, and the formula of
tiling."""

import numpy as np
import pytest

from engine.one_gpu import tile_order, tiling
from engine.one_gpu.tile_order import AWAY, FOUND, PUT_OUT, READ, RESTING, run, tile_column, tile_row
from tests.cases import in_one_test

PLENTY = 1000.0


def tiles(tiles_m, tiles_n, group):
    numbers = np.arange(tiles_m * tiles_n, dtype=float)
    return list(
        zip(tile_row(numbers, tiles_m, tiles_n, group), tile_column(numbers, tiles_m, tiles_n, group))
    )


def test_a_group_of_one_is_row_major():
    assert tiles(2.0, 3.0, 1.0) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_groups_go_down_first_and_the_last_may_be_lower():
    assert tiles(3.0, 2.0, 2.0) == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]


@in_one_test("group", [1.0, 2.0, 3.0, 4.0, 7.0, 20.0])
def test_each_tile_is_computed_once(group):
    assert len(set(tiles(7.0, 5.0, group))) == 35


@pytest.mark.parametrize(("group", "blocks"), [(1, 90), (3, 54)])
def test_the_first_nine_programs_of_tritons_example(group, blocks):
    """9 × 9 tiles, 9 blocks along k: 90 blocks for the first nine results in row-major order, 54 in groups of
    three (Triton's tutorial 03, "L2 Cache Optimizations")."""
    found = run(9, 9, 9, group, 9, PLENTY, 9)
    assert found["read"] == blocks and found["asked"] == 9 * 9 * 2


def test_with_room_for_all_each_block_is_read_once():
    assert tile_order.from_hbm(4.0, 5.0, 3.0, 2.0, 4.0, PLENTY) == (4 + 5) * 3


def test_a_stack_of_two_by_hand():
    """Two tiles in a row, one after the other, k of one block: A0 B0, then A0 again and B1."""
    found = run(1, 2, 1, 1, 1, 2, 2)
    assert (found["asked"], found["read"], found["wave_asked"], found["wave_read"]) == (4, 3, 2, 1)
    assert found["a_state"][0] == FOUND and found["b_state"][:2].tolist() == [AWAY, READ]
    roomy = run(1, 2, 1, 1, 1, 3, 2)
    assert roomy["b_state"][:2].tolist() == [RESTING, READ]


def test_before_the_first_wave_all_is_away():
    found = run(2, 2, 1, 1, 1, 3, 0)
    assert (found["asked"], found["read"]) == (0, 0)
    assert {*found["a_state"][:2], *found["b_state"][:2]} == {AWAY}


def test_the_oldest_makes_room_not_the_first():
    """A0 B0 | A0 B1 | A1 B0 with room for three: when A1 comes, B0 is the oldest, so that B0 is read
    again."""
    assert run(2, 2, 1, 1, 1, 3, 3)["read"] == 5


def test_a_block_that_its_own_wave_puts_out_is_told_from_one_that_it_never_used():
    """A row of three tiles at once, k of one block, room for two: A0 B0 A0 B1 A0 B2. B1 makes room by B0, B2
    by B1; a wave later, and with two more tiles, all that was put out before is merely away."""
    found = run(1, 3, 1, 1, 3, 2, 3)
    assert found["wave_read"] == 4 and found["a_state"][0] == READ
    assert found["b_state"][:3].tolist() == [PUT_OUT, PUT_OUT, READ]
    later = run(1, 4, 1, 1, 3, 2, 4)
    assert later["b_state"][:4].tolist() == [AWAY, AWAY, AWAY, READ] and later["a_state"][0] == FOUND


def test_what_a_wave_reads_is_read_or_put_out_again():
    """Triton's example in row-major order, L2 of 60 blocks: all 90 that the wave reads are to be seen, 30 of
    them put out again (each is read once, and 60 fit)."""
    found = run(9, 9, 9, 1, 9, 60, 9)
    states = np.concatenate([found["a_state"][:81], found["b_state"][:81]])
    assert found["wave_read"] == 90 and (states == READ).sum() == 60 and (states == PUT_OUT).sum() == 30


@pytest.mark.parametrize(("position", "programs"), [(0.0, 1), (1.9, 1), (11.1, 11), (81.0, 81), (300.0, 81)])
def test_only_whole_programs_start(position, programs):
    assert tile_order.started(position, 81.0) == programs


@pytest.mark.parametrize("group", [1.0, 3.0, 9.0])
def test_where_nothing_survives_a_wave_the_count_is_tilings_formula(group):
    """Waves of nine, L2 with room for one step of a wave: (g·bm + W/g·bn)·k a wave."""
    counted = tile_order.from_hbm(9.0, 9.0, 9.0, group, 9.0, 20.0)
    tile = tiling.Tile(128.0, 128.0, 128.0, 3.0, 8.0)
    small = tiling.KernelGpu("", "", 9.0, 1e12, 1e12, 1.0, 1e12, 233472.0, 1e9, 1e-7, 1.0)
    assert tiling.resident(tile, small) == 1
    formula = tiling.hbm_bytes(1152.0, 1152.0, 1152.0, tile, small, group) - 1152**2 * 2
    assert counted * 128 * 128 * 2 == formula


def test_lanes_at_the_edge():
    """100 rows in blocks of 64: the second block has 36."""
    assert tile_order.last_element(1.0, 64.0, 100.0) == 99


def test_no_more_than_there_is_room_for_lies_in_l2():
    found = run(6, 6, 6, 2, 4, 17, 20)
    assert sum((found[name] > PUT_OUT).sum() for name in ("a_state", "b_state")) == 17
