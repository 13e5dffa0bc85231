"""The home page's example is the estimate's step, and the case of the figure of strategies is the one with
which that figure opens."""

import numpy as np
import pytest

import engine
from engine import catalog
from engine.base import units
from engine.executed import fully_sharded
from engine.mechanism import memory
from engine.step import home, layout, strategy
from tests.cases import in_one_test
from widgets.composition.strategy_triangle import StrategyTriangle

STOPS = [2**power for power in range(15)]
JOB = engine.Job(home.SEQUENCES, home.SEQ)
LAYERS = catalog.model(home.MODEL).depth


@in_one_test("gpus", STOPS)
def test_its_times_and_bytes_are_the_estimates(gpus):
    found = home.on(gpus)
    expected = engine.estimate(home.MODEL, home.GPU, JOB, home.split(gpus))
    assert found.step_s == pytest.approx(expected.step_s, rel=1e-12)
    assert found.compute_s == expected.time_s["compute"]
    assert found.optimizer_s == expected.time_s["optimizer"]
    assert found.total_bytes == expected.terms.total_bytes
    assert found.turns == home.SEQUENCES / expected.layout.dp and found.sharers == expected.layout.cp
    assert expected.layout.dp * expected.layout.cp == gpus


@in_one_test("gpus", STOPS)
def test_the_executed_lanes_are_within_4_percent_of_the_step_and_hold_its_bytes(gpus):
    """As the caption says; and so is what it calls at most 1.5 %."""
    found = home.on(gpus)
    run = fully_sharded.run(found.layer, LAYERS, 1)
    assert found.turns * run["total_s"] + found.optimizer_s == pytest.approx(found.step_s, rel=0.04)
    assert found.turns * run["network_s"] == pytest.approx(found.wire_s)
    held = found.base_bytes + max(run["activations_bytes"]) + found.logits_bytes
    assert held == pytest.approx(found.total_bytes, rel=1e-9) and found.base_bytes > 0
    context_s = engine.estimate(home.MODEL, home.GPU, JOB, home.split(gpus)).time_s["context"]
    assert context_s <= 0.015 * found.step_s


def test_all_stops_at_once_are_those_one_by_one():
    at = layout.machine(catalog.gpu(home.GPU))
    together = home.shared(np.array(STOPS, dtype=float), at.chip, at.wires)
    for index, gpus in enumerate(STOPS):
        assert together.step_s[index] == pytest.approx(home.on(gpus).step_s, rel=1e-12)


def test_the_three_resources_bind_one_after_the_other():
    """What the page tells: it does not fit; then each doubling halves the step, down to one sequence for each
    GPU; then the wires are busier than compute, and more GPUs save little."""
    steps, capacity = {gpus: home.on(gpus) for gpus in STOPS}, memory.capacity_bytes(catalog.gpu(home.GPU))
    assert [gpus for gpus in STOPS if steps[gpus].total_bytes > capacity] == [1, 2]
    assert [gpus for gpus in STOPS if steps[gpus].wire_s > steps[gpus].compute_s] == [4096, 8192, 16384]
    for gpus in STOPS[2:11]:
        assert 1.98 < steps[gpus].step_s / steps[2 * gpus].step_s <= 2.01
    assert 0.8 < steps[16384].step_s / steps[2048].step_s < 0.9
    planned = home.planned(16384)
    assert planned.fits and planned.layout.gpus == 16384 and planned.tokens == home.SEQUENCES * home.SEQ
    assert 3.9 < steps[16384].step_s / planned.step_s < 4.1


def test_it_fits_from_the_fewest_on():
    """155 GB on one GPU and 90.6 on two are more than the 84.8 that an H100 has; the page said one alone."""
    assert home.fewest() == 4
    held, has = (
        [home.on(gpus).total_bytes for gpus in (1, 2, 4)],
        memory.capacity_bytes(catalog.gpu(home.GPU)),
    )
    assert held[0] > held[1] > has > held[2]


def test_tokens_a_second():
    assert units.human(home.tokens_per_s(home.on(8)), "tokens") == "90.8k tokens"
    assert home.tokens_per_s(home.on(64)) == pytest.approx(
        engine.estimate(home.MODEL, home.GPU, JOB, home.split(64)).tokens_per_s
    )


@pytest.mark.parametrize("gpus", [0, 2.5, -8])
def test_no_such_number_of_gpus(gpus):
    with pytest.raises(ValueError, match="gpus must be"):
        home.on(gpus)


@pytest.mark.parametrize("key", ["tp", "fsdp"])
def test_its_loads_are_those_of_the_figure_at_first(key):
    drawn = StrategyTriangle().loads()[strategy.KEYS.index(key)]
    assert home.loads(key) == pytest.approx(tuple(drawn))
