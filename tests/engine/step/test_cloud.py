"""The cloud of all layouts: each legal one is counted once where it is, and the front is that of the plan."""

import math

import numpy as np
import pytest

from engine.base import check
from engine.step import cases, cloud, page_search, planner, search
from engine.step.layout import Job
from tests.engine.step.test_planner import H100, JOBS, case


def every_layout(name):
    """(seconds, bytes) of each legal layout of a job."""
    _, gpus, batch, seq = JOBS[name]
    found = []

    def seen(block, seconds, total_bytes, legal):
        found.extend(zip(np.broadcast_to(seconds, legal.shape)[legal], total_bytes[legal]))

    plan = search.plan(case(name).model, H100, Job(batch, seq), gpus, seen=seen)
    return plan, np.array(found).T


def test_places_lie_beside_each_other_without_a_gap():
    column, row = np.arange(5.0), np.arange(5.0)
    here, right, up = cloud.sides(column, row), cloud.sides(column + 1, row), cloud.sides(column, row + 1)
    assert here.right == pytest.approx(right.left) and here.top == pytest.approx(up.bottom)
    assert np.all(here.right > here.left) and np.all(here.top > here.bottom)


@pytest.mark.parametrize("name", ["one GPU", "dense", "experts", "nothing fits"])
def test_every_layout_is_counted_where_it_is(name):
    with check.trusted():
        _, seen = planner.found_in_cloud(case(name))
        plan, (seconds, total_bytes) = every_layout(name)
    assert np.sum(seen.places.count) == plan.layouts == len(seconds)
    place = cloud.place(total_bytes, case(name).hbm_bytes, seconds, seen.ideal_s)
    for at in np.unique(place)[::7].astype(int):
        here = place == at
        sides = cloud.sides(at // cloud.ROWS, at % cloud.ROWS)
        assert seen.places.count[at] == np.count_nonzero(here)
        assert seen.places.cost[at] == seconds[here].min()
        share, multiple = total_bytes[here] / case(name).hbm_bytes, seconds[here] / seen.ideal_s
        assert np.all((sides.left <= share * (1 + 1e-12)) & (share <= sides.right * (1 + 1e-12)))
        assert np.all((sides.bottom <= multiple * (1 + 1e-12)) & (multiple <= sides.top * (1 + 1e-12)))


@pytest.mark.parametrize("name", ["dense", "experts", "nothing fits"])
def test_the_fastest_at_a_place_takes_the_time_that_is_said(name):
    with check.trusted():
        _, seen = planner.found_in_cloud(case(name))
        places = np.flatnonzero(seen.places.count)[::11]
        costs = cases.costs(case(name), page_search.layouts_at(seen, places))
    np.testing.assert_allclose(costs.step_s, seen.places.cost[places], rtol=1e-12)
    np.testing.assert_array_equal(
        cloud.place(costs.total_bytes, case(name).hbm_bytes, costs.step_s, seen.ideal_s), places
    )


@pytest.mark.parametrize("name", ["dense", "experts", "nothing fits", "no legal layout"])
def test_arrays_and_loops_find_the_same(name):
    with check.trusted():
        places = planner.found_in_cloud(case(name))[1].places
    for program, column in ((cloud.shown, places.count), (cloud.front, places.cost)):
        here, looped = program(column), program.algorithm(column.tolist())
        for output, value in looped.items():
            np.testing.assert_array_equal(
                here[output][: np.size(value)] if np.ndim(value) else here[output], value
            )
            assert np.ndim(value) == 0 or np.isnan(here[output][len(value) :]).all()


def test_a_front_s_layouts_are_each_worth_their_memory():
    with check.trusted():
        _, seen = planner.found_in_cloud(case("dense"))
        places = cloud.front(seen.places.cost)["place"]
    places = places[~np.isnan(places)].astype(int)
    cost, column = seen.places.cost[places], places // cloud.ROWS
    assert len(places) > 5 and np.all(np.diff(column) > 0)
    assert np.all(cost[:-1] > cloud.WORTH * cost[1:])
    for at, fastest in zip(column, cost):  # nothing leaner is faster, nor anything with as much memory
        assert fastest == np.nanmin(seen.places.cost[: (at + 1) * cloud.ROWS])


def test_what_lies_above_the_picture_is_counted():
    with check.trusted():
        places = planner.found_in_cloud(case("dense"))[1].places
    shown = cloud.shown(places.count)
    assert np.nansum(shown["count"]) + shown["above"] == np.sum(places.count) and shown["above"] > 0
    assert np.nanmax(shown["row"]) < shown["low"] + cloud.HEIGHT * cloud.UP
    assert math.isnan(shown["row"][-1])


def test_what_lies_outside_is_counted_at_the_border():
    hbm, ideal = 80e9, 1.0
    assert cloud.place(1.0, hbm, 1e-9, ideal) == 0
    assert cloud.place(1e20, hbm, 1e9, ideal) == cloud.PLACES - 1
    exactly = cloud.place(hbm, hbm, ideal, ideal)
    assert exactly == -cloud.LEAST_DOUBLINGS * cloud.ACROSS * cloud.ROWS
