"""Tiles on a multiprocessor and on the chip: budgets by hand, what Triton compiled, published products, and
limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.calibration import known, products
from engine.one_gpu import recordings, tiling
from engine.one_gpu.tiling import Tile
from tests.cases import in_one_test

H100, A100 = tiling.chip("h100-sxm"), tiling.chip("a100-80")
BIG = Tile(128.0, 256.0, 64.0, 3.0, 8.0)
SQUARE = Tile(128.0, 128.0, 64.0, 3.0, 8.0)
sizes = st.integers(1, 64).map(lambda i: 128.0 * i)
tiles = st.sampled_from([tiling.tile_at(i) for i in range(0, 384, 7)])

COMPILED = [
    (tiling.chip(gpu), Tile(*(float(row[name]) for name in Tile._fields)), row)
    for gpu, rows in recordings.load("triton_tiles")["tiles"].items()
    for row in rows
]


# -- one multiprocessor --------------------------------------------------------------------------------------
def test_a_budget_worked_by_hand():
    """3 · 64 · (128 + 256) · 2 bytes; 128·256 sums over 256 threads; 228 KiB hold one such program."""
    assert tiling.smem_bytes(BIG, H100) == 147456 and tiling.smem_bytes(BIG, A100) == 98304
    assert tiling.sums(BIG) == 128
    assert tiling.by_smem(BIG, H100) == 1 and tiling.by_smem(SQUARE, H100) == 2
    assert tiling.registers(BIG, H100) == 208 and tiling.by_registers(BIG, H100) == 1
    assert tiling.resident(BIG, H100) == 1 and tiling.occupancy(BIG, H100) == 8 / 64
    assert tiling.intensity(BIG) == pytest.approx(256 / 3) and tiling.intensity(SQUARE) == 64


@in_one_test("at, tile, row", COMPILED)
def test_shared_memory_is_what_triton_compiled(at, tile, row):
    assert tiling.smem_bytes(tile, at) == row["smem_bytes"]


@pytest.mark.parametrize(("at", "tile", "row"), COMPILED)
def test_registers_are_near_what_was_compiled(at, tile, row):
    """20 %: a compiler's own choices, such as how far it unrolls, move them that much. One tile of the 22
    took 170 registers with Triton 3.7, and takes 188 with 3.9: as many programs fit with either."""
    grown = at.key == "a100-80" and tile == SQUARE
    near = pytest.approx(row["registers"], rel=0.28 if grown else 0.20)
    assert min(tiling.registers_needed(tile, at), 255) == near
    assert (row["spilled_bytes"] > 100) == bool(tiling.spilled(tile, at))


@in_one_test("at, tile, row", COMPILED)
def test_as_many_programs_fit_as_of_the_compiled_kernel(at, tile, row):
    """A thread's registers come in eights: 62 of a tile of 64 × 64 on Hopper are 64, and 65,536/(64 · 128) =
    8 fit."""
    compiled = 65536 // (-(-row["registers"] // 8) * 8 * 32 * row["warps"])
    assert tiling.by_registers(tile, at) == compiled


def test_a_small_tile_fits_eight_times():
    """64 registers: 8 programs. Three stages of 8 KiB and the one kept back: 228/25, nine; with four, 228/33,
    six."""
    three, four = (Tile(64.0, 64.0, 32.0, stages, 4.0) for stages in (3.0, 4.0))
    assert tiling.registers(three, H100) == 64
    assert [(tiling.by_smem(tile, H100), tiling.resident(tile, H100)) for tile in (three, four)] == [
        (9, 8),
        (6, 6),
    ]


def test_shares_of_a_budget():
    smem, registers, warps = tiling.budget_shares(BIG, H100)
    assert (smem, registers, warps) == (148480 / 233472, 208 * 256 / 65536, 8 / 64)


# -- the grid and its tail -----------------------------------------------------------------------------------
def test_what_does_not_fit_into_registers_goes_out_and_back_in_each_step():
    """A register has 4 bytes in each of a warp's 32 lanes; L1 takes 128 bytes a clock, there and back."""
    tile, chip = Tile(256.0, 256.0, 64.0, 3.0, 8.0), H100
    more = tiling.spilled(tile, chip)
    assert more > 0
    alone_s = 2 * 256 * 256 * 64 * chip.multiprocessors / chip.flops_per_s
    extra_s = tiling.step_s(tile, chip) - alone_s
    assert extra_s * chip.clock_hz == pytest.approx(2 * more * 4 * 32 * 8 / 128)


def test_one_tile_too_many():
    assert tiling.busy_share(132.0, 132.0) == 1 and tiling.busy_share(133.0, 132.0) == pytest.approx(
        133 / 264
    )
    assert tiling.programs(896.0, 2432.0, SQUARE) == 133
    assert tiling.last_wave_tiles(133.0, 132.0) == 1 and tiling.last_wave_tiles(132.0, 132.0) == 132
    assert tiling.busiest(133.0, 132.0) == 2


def test_nvidias_wave_of_108():
    """One program of 256 × 128 on each of an A100's 108 multiprocessors (Matrix Multiplication Background
    User's Guide, section 3.2). 1792² makes 98 tiles, one more row and column 120, and so a second wave."""
    tile = Tile(256.0, 128.0, 32.0, 3.0, 8.0)
    assert tiling.resident(tile, A100) * A100.multiprocessors == 108
    assert tiling.programs(1792.0, 1792.0, tile) == 98 and tiling.programs(1793.0, 1793.0, tile) == 120
    assert [tiling.busiest(count, 108.0) for count in (98.0, 120.0)] == [1, 2]


@pytest.mark.parametrize(
    ("m", "n", "block", "share"),
    [
        (1000.0, 1000.0, 128.0, 1 - 1e6 / 1024**2),
        (128.0, 256.0, 128.0, 0.0),
        (129.0, 128.0, 128.0, 1 - 129 / 256),
    ],
)
def test_masked_lanes(m, n, block, share):
    assert tiling.masked_share(m, n, block, block) == pytest.approx(share)


# -- the estimate --------------------------------------------------------------------------------------------
def test_a_product_worked_by_hand():
    """2048 × 4096 × 4096 on H100 in 128 × 256: 256 tiles, two for the busiest, 64 steps each; arithmetic
    binds."""
    rate, l2 = H100.flops_per_s / 132, H100.l2_bytes_per_s / 132
    step_s = 2 * 128 * 256 * 64 / rate
    ends_s = 655 / 1.83e9 + 128 * 256 * 2 / l2
    found = tiling.times(2048.0, 4096.0, 4096.0, BIG, H100)
    assert found.total_s == found.arithmetic_s == pytest.approx(2 * (64 * step_s + ends_s))
    assert tiling.bound(found) == 0


def test_a_measured_product():
    """4224 × 2048 × 8192 in bf16 on an H100: 780 TFLOP/s (H. He, gist 2ec89696db8b7ed1c24461159e325405; the
    shape makes two full waves of 128 × 256). Our rate is another sweep's best product, 794 TFLOP/s."""
    assert tiling.flops_per_s(4224.0, 2048.0, 8192.0, BIG, H100) == pytest.approx(780e12, rel=0.03)


def test_tritons_tutorial_on_a100():
    """245 TFLOP/s in grouped order (tutorial 03; it names no size, so that of its plots' end, 4096, is
    taken)."""
    best = tiling.best(4096.0, 4096.0, 4096.0, A100)
    assert tiling.flops_per_s(4096.0, 4096.0, 4096.0, best, A100) == pytest.approx(245e12, rel=0.1)


def test_it_agrees_with_the_engines_other_estimate_of_products():
    """The other one is fitted on measured products, whatever tiles a library chose for them."""
    rates = known.gemm("a100-80").rates
    for m in (1152.0, 2048.0, 4096.0):
        ours = tiling.times(m, 4096.0, 8192.0, SQUARE, A100).total_s
        assert ours == pytest.approx(products.gemm_s(m, 4096.0, 8192.0, rates), rel=0.12)


def test_one_more_row_of_tiles_costs_half_a_kernel():
    before, after = (tiling.times(m, 4096.0, 4096.0, BIG, H100).total_s for m in (2048.0, 2049.0))
    assert after / before == pytest.approx(1.5)


def test_too_few_stages_lay_latency_bare():
    """128 rows make one small tile a multiprocessor: with a single stage each step waits for a load."""
    one, five = (
        tiling.times(128.0, 4096.0, 4096.0, Tile(64.0, 64.0, 32.0, stages, 4.0), H100)
        for stages in (1.0, 5.0)
    )
    assert tiling.bound(one) == 2 and one.total_s > 128 * H100.load_s > five.total_s / 2


@pytest.mark.parametrize(
    ("stages", "step_ns"), [(1.0, 655 / 1.83 + 21.79), (2.0, 655 / 1.83), (3.0, 655 / 1.83 / 2)]
)
def test_what_is_asked_for_now_is_used_stages_less_one_steps_later(stages, step_ns):
    """64 × 32 × 32 on one multiprocessor of H100: 655 clocks of 1.83 GHz to HBM, 2·64·32·32 FLOPs at
    794.5e12/132 in 21.8 ns. A single stage waits and computes in turn. 5e-4: the figures above are
    rounded."""
    tile = Tile(64.0, 32.0, 32.0, stages, 4.0)
    few, many = (tiling.times(64.0, 32.0, k, tile, H100).latency_s for k in (3200.0, 6400.0))
    assert (many - few) / 100 == pytest.approx(step_ns * 1e-9, rel=5e-4)


def test_what_an_estimate_is_made_of():
    """The opening case: twice 64 steps of 0.698 µs, 0.36 µs until the first load, 0.88 µs to write the tile:
    91.8 µs."""
    step_s, ends_s = tiling.step_s(BIG, H100), tiling.ends_s(BIG, H100, 1.0)
    assert step_s == pytest.approx(0.697e-6, rel=2e-3) and ends_s == pytest.approx(
        0.358e-6 + 0.881e-6, rel=2e-3
    )
    assert tiling.times(2048.0, 4096.0, 4096.0, BIG, H100).total_s == pytest.approx(
        2 * (64 * step_s + ends_s)
    )


def test_order_is_worth_traffic_and_time_where_l2_is_small():
    """8192³ in bf16 is 268 MB, five times an H100's L2."""
    rows, grouped = (tiling.hbm_bytes(8192.0, 8192.0, 8192.0, SQUARE, H100, g) for g in (1.0, 16.0))
    assert rows > 1.5 * grouped


@given(sizes, sizes, sizes, tiles)
def test_never_faster_than_the_chip(m, n, k, tile):
    found = tiling.times(m, n, k, tile, H100)
    assert found.total_s >= 2 * m * n * k / H100.flops_per_s
    assert found.total_s >= 2 * (m * k + k * n + m * n) / H100.hbm_bytes_per_s * (1 - 1e-12)
    assert np.isfinite(found.total_s)


@given(sizes, sizes, sizes)
def test_the_best_tile_is_the_best(m, n, k):
    best = tiling.best(m, n, k, H100)
    assert tiling.resident(best, H100) >= 1
    assert tiling.flops_per_s(m, n, k, best, H100) == pytest.approx(
        max(tiling.flops_per_s(m, n, k, tiling.tile_at(i), H100) for i in range(384))
    )


def test_the_space_is_walked_in_one_order():
    space = tiling.space()
    for index in (0, 5, 100, 383):
        assert tiling.tile_at(index) == Tile(*(axis[index] for axis in space))


def test_a_tile_that_does_not_fit_computes_nothing():
    assert tiling.flops_per_s(4096.0, 4096.0, 4096.0, Tile(256.0, 256.0, 128.0, 3.0, 8.0), H100) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: tiling.chip("tpu"),
        lambda: tiling.blocks(0, 128),
        lambda: tiling.busy_share(-1, 132),
        lambda: tiling.times(-1, 1, 1, BIG, H100),
    ],
)
def test_bad_input_is_named(call):
    with pytest.raises(ValueError, match="must be"):
        call()
