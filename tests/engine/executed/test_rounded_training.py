"""Weights, sums and scales by hand, then by the runs."""

import math
import random

import numpy as np
import pytest

from engine.executed import rounded_training as run
from engine.mechanism.precision import BF16, E4M3, E5M2, FORMATS, FP16, FP32, nearest
from tests import machine
from tests.cases import in_one_test


def final(number_format, rate, steps, seed=1):
    found = run.trained(number_format.exponent_bits, number_format.mantissa_bits, rate, steps, seed)
    return {name: value if name == "landed" else value[-1] for name, value in found.items()}


# -- a weight ------------------------------------------------------------------------------------------------
def test_an_update_of_1e_4_never_arrives_in_bf16_at_1():
    found = final(BF16, 1e-4, 4000)
    assert found["plain"] == 1.0 and found["landed"] == 0
    assert found["exact"] == pytest.approx(2 - (1 - 1e-4) ** 4000)


def test_a_weight_stalls_where_its_update_is_half_a_gap():
    """rate · (2 - w) = 2^-8: w = 2 - 0.390625 at a rate of 0.01; it stops at the first number at or past
    that, less a gap."""
    found = final(BF16, 0.01, 4000)
    assert run.stall_level(2.0**-8, 0.01) == 2 - 0.390625 and run.stall_level(2.0**-8, 1e-4) == 1
    assert run.stall_distance(2.0**-7, 0.01) == 0.390625
    assert abs(found["plain"] - (2 - 0.390625)) <= 2.0**-7


def test_rivals_arrive():
    found = final(BF16, 0.01, 4000)
    assert found["master"] == 2.0
    assert found["compensated"] == pytest.approx(2, abs=2 * 2.0**-7)
    assert found["stochastic"] == pytest.approx(2, abs=6 * 2.0**-7), "it walks about its target"


@pytest.mark.parametrize(
    ("rate", "bits", "m"), [(1e-5, 8, 7), (3e-4, 8, 7), (0.03, 8, 7), (0.3, 5, 10), (0.01, 4, 3)]
)
def test_what_stands_still_stays_where_every_step_would_leave_it(rate, bits, m):
    """The rounded weights, step by step to the last, without a thought of whether they still move."""
    lowest, steps = 2 - 2.0 ** (bits - 1), 700
    plain, compensated, kept, master, landed = 1.0, 1.0, 0.0, 1.0, 0

    def rounded(x):
        return nearest(x, m, lowest)

    for _ in range(steps):
        plain, before = rounded(plain + rounded(rate * (2.0 - plain))), plain
        landed += plain != before
        update = rounded(rounded(rate * (2.0 - compensated)) - kept)
        compensated, before = rounded(compensated + update), compensated
        kept = rounded(rounded(compensated - before) - update)
        master = nearest(master - rate * (rounded(master) - 2.0), 23, -126)
    found = run.trained(bits, m, rate, steps, 1)
    ends = [found[name][-1] for name in ("plain", "compensated", "master")]
    assert [*ends, found["landed"]] == [plain, compensated, rounded(master), landed]


def test_a_quiet_rate_leaves_most_weights_where_they_are():
    """8e-5 lies in [2^-14, 2^-13): half gaps of bf16 are wider from 2^-5 on, 1.5625 deviations of 0.02. 8e-7:
    from 2^-12."""
    assert run.share_lost(8e-5, 0.02, BF16) == pytest.approx(0.1182, abs=5e-4)
    assert run.share_lost(8e-7, 0.02, BF16) == pytest.approx(0.9903, abs=5e-4)
    draws = np.abs(np.random.default_rng(1).normal(0, 0.02, 4000))
    lost = [BF16.round(BF16.round(w) + 8e-5) == BF16.round(w) for w in draws]
    assert np.mean(lost) == pytest.approx(run.share_lost(8e-5, 0.02, BF16), abs=0.02)


def test_fp32_is_close_to_exact():
    found = final(FP32, 0.01, 1000)
    assert found["plain"] == pytest.approx(found["exact"], abs=1e-4), "it stalls too, at 2^-24 / 0.01 = 6e-6"


def test_the_stochastic_mean_is_right_where_nearest_never_moves():
    ends = [final(BF16, 1e-4, 1000, seed)["stochastic"] for seed in range(1, 31)]
    assert np.mean(ends) == pytest.approx(2 - (1 - 1e-4) ** 1000, abs=0.012), (
        "30 walks of about 12 steps of 2^-7 each"
    )


def test_stochastic_rounding_by_hand():
    assert run.either_side(1 + 0.25 * 2.0**-7, 7, -126, 0.74) == 1.0
    assert run.either_side(1 + 0.25 * 2.0**-7, 7, -126, 0.75) == 1 + 2.0**-7


# -- a sum ---------------------------------------------------------------------------------------------------
def test_a_sum_in_bf16_stops_growing():
    """Products average a quarter, and reach 1: where the gap is 2, at 256, none of them can move the sum."""
    found = run.gathered(4096, 7, 7, 4096, 1)
    assert found["exact"] == pytest.approx(1024, rel=0.05) and found["total"] <= 256
    assert run.gathered(4096, 7, 23, 4096, 1)["total"] == pytest.approx(found["exact"], rel=1e-5)


def test_blocks_of_128_save_a_sum():
    whole, blocks = (run.gathered(4096, 3, 13, block, 1) for block in (4096, 128))
    errors = [abs(found["total"] / found["exact"] - 1) for found in (whole, blocks)]
    assert errors[1] < errors[0] / 3


def test_the_generator_is_parks_and_millers():
    assert run.next_state(1) == 48271


# -- a scale -------------------------------------------------------------------------------------------------
MULTIBOX = (
    run.MULTIBOX_MEDIAN,
    run.MULTIBOX_SPREAD,
)  # fitted to NVIDIA's figures of a Multibox SSD: 31 and 5.3 per cent; all but 0.1 at 32,768


def shares(scale, number_format=FP16, median=MULTIBOX[0], spread=MULTIBOX[1], seed=1):
    return run.scaled(
        median,
        spread,
        scale,
        number_format.exponent_bits,
        number_format.mantissa_bits,
        number_format.largest,
        seed,
    )


def test_what_is_lost_is_the_published_share():
    assert pytest.approx(31 / 36.3) == run.MULTIBOX_LOST
    assert shares(1)["shares"][run.LOST] == pytest.approx(31 / 36.3, abs=0.02), (
        "2,048 draws: a standard error of 0.008"
    )
    assert shares(2.0**15)["shares"][run.LOST] < 0.005


def test_shares_add_up_and_stand_in_the_histogram():
    found = shares(1024)
    assert sum(found["shares"]) == pytest.approx(1)
    for i, name in enumerate(("lost", "small", "whole", "over")):
        assert np.sum(found[name]) == pytest.approx(found["shares"][i])


@in_one_test("of", FORMATS, ids=[f.key for f in FORMATS])
def test_a_fate_is_what_rounding_makes_of_a_size(of):
    """At each border, on either side of it, and at random sizes over the whole range."""
    m, lowest = of.mantissa_bits, of.lowest_exponent
    beyond = of.largest + of.gap(of.largest) / 2
    borders = [
        of.smallest / 2,
        of.smallest,
        of.smallest_normal - of.smallest / 2,
        of.smallest_normal,
        of.largest,
        beyond,
    ]
    sizes = [near for size in borders for near in (np.nextafter(size, 0), size, np.nextafter(size, np.inf))]
    sizes += (2.0 ** np.random.default_rng(1).uniform(lowest - m - 4, of.largest_octave + 2, 2000)).tolist()
    met = dict.fromkeys(range(4), 0)
    for size in sizes:
        near = nearest(size, m, lowest)
        by_rounding = (
            run.LOST
            if near == 0
            else run.OVER
            if near > of.largest
            else run.SMALL
            if near < of.smallest_normal
            else run.WHOLE
        )
        assert run.fate(size, of.smallest / 2, m, lowest, of.largest) == by_rounding, size
        met[by_rounding] += 1
    assert min(met.values()) > 5


def test_the_best_scale_holds_the_largest_gradient():
    found = shares(1)
    assert found["top"] == pytest.approx(-28.8 + 3.6 * 5.612, abs=0.01)  # 1e-8 of a normal lies above 5.612
    assert found["best"] == math.floor(math.log2(65504) + 28.8 - 3.6 * 5.612)
    assert found["lost_at_best"] < 0.01 < shares(1, spread=6.0)["lost_at_best"]


def test_a_scale_is_a_number_of_fp32():
    """bf16 would hold the largest gradient, 2^-8.6, times 2^136; fp32 has no power of two past 2^127."""
    assert shares(1, BF16)["best"] == 127 and shares(1, BF16)["best_scale"] <= FP32.largest
    path = run.dynamic_scale(*MULTIBOX, BF16.largest, run.FIRST_SCALE, 50, 1)
    assert np.nanmax(path["octave"]) == 127 and path["skipped"] == 0, (
        "399 doublings from 2^16 are due, 111 have room"
    )


def test_bf16_needs_no_scale():
    assert shares(1, BF16)["shares"][run.LOST] == 0


def test_quantiles_are_those_of_the_tables():
    assert run.upper_quantile(0.025) == pytest.approx(1.95996, abs=4.5e-4)
    assert run.upper_quantile(1e-8) == pytest.approx(5.61200, abs=4.5e-4)


def test_a_scaler_backs_off_and_grows_as_torchs_does():
    """Nearly no spread, the largest gradient at 2^0: the first scale of 2^20 is halved until 2^15 fits, and
    then for ever doubled after 2,000 steps and halved in the next."""
    found = run.dynamic_scale(0.0, 1e-6, 65504.0, 2.0**20, 2000, 1)
    assert found["octave"][:11].tolist() == [20, 20, 19, 19, 18, 18, 17, 17, 16, 16, 15]
    assert found["skipped"] == 5 + (20_000 - 5) // 2001


def test_the_path_has_room_for_the_shortest_interval():
    found = run.dynamic_scale(-28.8, 9.0, 65504.0, 65536.0, 50, 1)
    assert np.nanmax(found["step"]) == 20_000 and found["skipped"] > 300


@pytest.mark.parametrize(
    ("median", "spread", "of", "interval", "seed"),
    [
        (-28.8, 3.6, FP16, 2000, 1),
        (-28.8, 9.0, FP16, 50, 2),
        (0.0, 9.0, E4M3, 73, 3),
        (-45.0, 1.0, BF16, 50, 4),
    ],
)
def test_a_scaler_that_draws_each_gradient_goes_the_same_way(median, spread, of, interval, seed):
    """Each step's largest gradient is drawn here; the engine draws only those that it does not know the
    outcome of."""
    octave, good, skipped, state, path = 16.0, 0, 0, run.first_state(seed), [16.0]
    for _ in range(run.SCALER_STEPS):
        state = run.next_state(state)
        top = median + spread * run.upper_quantile(-math.log(state / run.MOST) / run.VALUES)
        if top + octave >= math.log2(of.largest):
            octave, good, skipped = octave - 1, 0, skipped + 1
        else:
            good += 1
            if good == interval:
                octave, good = min(octave + 1, 127), 0
        if octave != path[-1]:
            path.append(octave)
    found = run.dynamic_scale(median, spread, of.largest, 65536.0, interval, seed)
    assert found["octave"][0] == 16 and found["skipped"] == skipped
    assert found["octave"][2::2][: len(path) - 1].tolist() == path[1:] and found["last"] == octave


def same(program, *args):
    """Checks that the loops and their vectorised twin give the same results, name by name."""
    loops, twin = program.algorithm(*args), program(*args)
    for name, value in loops.items():
        found = twin[name] if np.ndim(twin[name]) == 0 else twin[name][: np.size(value)]
        np.testing.assert_array_equal(found, value, err_msg=f"{name} {args}")


@pytest.mark.parametrize("of", [FP16, BF16, E5M2, E4M3], ids=lambda of: of.name)
def test_over_arrays_is_what_step_by_step_is(of):
    chance = random.Random(of.name)
    for _ in range(12):
        median, spread, seed = chance.uniform(-45, 0), chance.uniform(1, 9), chance.randrange(1, 41)
        scale, interval = 2.0 ** chance.randrange(41), chance.choice([50, 137, 2000, 4000])
        same(run.scaled, median, spread, scale, of.exponent_bits, of.mantissa_bits, of.largest, seed)
        same(run.dynamic_scale, median, spread, of.largest, run.FIRST_SCALE, interval, seed)


def test_torchs_scaler_does_the_same():
    torch = machine.torch()
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer, scaler = (
        torch.optim.SGD([weight], lr=0.0),
        torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=50),
    )
    path = []
    for _ in range(120):
        optimizer.zero_grad()
        weight.grad = (torch.ones(1) * scaler.scale(torch.ones(1))).to(torch.float16).float()
        scaler.step(optimizer)
        scaler.update()
        path.append(math.log2(scaler.get_scale()))
    ours = run.dynamic_scale(0.0, 1e-6, 65504.0, 2.0**20, 50, 1)
    seen = [ours["octave"][np.flatnonzero(ours["step"] <= i)[-1]] for i in range(1, 121)]
    assert path == seen
    defaults = torch.amp.GradScaler("cpu")
    assert (
        defaults.get_scale(),
        defaults.get_growth_factor(),
        defaults.get_backoff_factor(),
        defaults.get_growth_interval(),
    ) == (65536.0, 2.0, 0.5, 2000)


# -- scales of fp8 -------------------------------------------------------------------------------------------
def test_a_block_is_read_again_as_by_hand():
    read = run.with_scales([448.0, 1.06, 0.0, 2.0**-10 * 0.9, 4480.0, 10.6, 0.0, 0.0], E4M3, 4)
    assert read[:4].tolist() == [448.0, 1.0, 0.0, 0.0] and read[4:].tolist() == [4480.0, 10.0, 0.0, 0.0]
    assert run.with_scales(np.zeros(4), E4M3, 2).tolist() == [0, 0, 0, 0]


def test_powers_of_two_never_overflow():
    values = np.random.default_rng(2).lognormal(0, 3, 4096)
    assert np.isfinite(run.with_scales(values, E4M3, 32, power_of_two=True)).all()
    assert np.isfinite(run.with_scales(values, E5M2, 32)).all()


def test_an_outlier_harms_its_own_block_alone():
    whole, tiles = run.outlier_test(1e5, 4096), run.outlier_test(1e5, 128)
    assert whole[1] == pytest.approx(0.1726, abs=0.015), "|z| < 2^-10 · 1e5 / 448 = 0.218, of 4,095 draws"
    assert tiles[1] < 0.01 and tiles[0] < whole[0] / 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: run.stall_distance(0, 1),
        lambda: run.outlier_test(-1, 4),
        lambda: run.with_scales([1], E4M3, 0),
    ],
)
def test_what_is_refused_is_named(call):
    with pytest.raises(ValueError, match="must be"):
        call()
