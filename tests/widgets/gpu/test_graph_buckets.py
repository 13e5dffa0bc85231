"""graph_buckets: the picture is the plan under the run's traffic, and shapes that multiply are found by
dragging."""

import numpy as np
import pytest

from engine.serving import shape_buckets
from tests import states
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.gpu.graph_buckets import GraphBuckets

READER = Reader(GraphBuckets)
widget, met = READER.widget, READER.met


@pytest.mark.parametrize("plan", ["powers", "shipped", "best", "every"])
def test_each_bar_is_as_high_as_the_rows_that_its_steps_compute(plan):
    """Steps times sequences, and on it steps times what the captured size has more: one scale for all."""
    made = widget(plan=plan)
    parts = made.shown()["parts"]
    steps, padding = parts["steps"], parts["padding"]
    assert steps["steps"].sum() == shape_buckets.STEPS
    assert steps["top"] == pytest.approx(steps["steps"] * steps["batch"])
    assert padding["top"] - padding["bottom"] == pytest.approx(
        steps["steps"] * (padding["bucket"] - steps["batch"])
    )
    lost = (padding["top"] - padding["bottom"]).sum()
    assert lost == made.fitted()["padded"] and steps["top"].sum() == made.fitted()["rows"]


@in_one_test("state", [*states.presets(GraphBuckets), *states.ends_of_the_main_slider(GraphBuckets)])
def test_the_axes_follow_the_traffic_and_hold_all_of_it(state):
    made = GraphBuckets()
    made.set_raw(state)
    page = made.shown()
    steps, padding, ranges = page["parts"]["steps"], page["parts"]["padding"], page["ranges"]
    busy = steps["right"][steps["steps"] > 0]
    assert busy.max() <= ranges["x"][1] <= max(10, 2.2 * busy.max())
    assert padding["top"].max() * 1.15 <= ranges["y"][1]


@in_one_test("state", [states.default(GraphBuckets), *states.presets(GraphBuckets)])
def test_sizes_that_are_captured_and_not_drawn_are_counted(state):
    made = GraphBuckets()
    made.set_raw(state)
    page = made.shown()
    sizes, end = page["parts"]["graphs"]["x"], page["ranges"]["x"][1]
    beyond = int((sizes > end).sum())
    said = page["parts"]["title"]["text"]
    count = f"{beyond} of {len(sizes)} captured sizes"
    assert not lacks(said, count) if beyond else "captured" not in said


def test_a_step_runs_as_the_next_captured_size():
    bucket = widget(plan="powers").shown()["parts"]["padding"]["bucket"]
    assert bucket[[1, 3, 5, 33, 128]].tolist() == [1, 4, 8, 64, 128]
    hints = widget(plan="powers").hints()
    assert hints["steps"][33].endswith("run as 64") and hints["padding"][33].startswith(
        "33 sequences, run as 64"
    )


def test_rows_are_wasted_and_time_is_not():
    assert "wasteful" in met(plan="powers") and "wasteful" not in met()
    made = widget(plan="powers")
    assert made.wasted() > 0.25 and made.time_lost() < 0.02
    assert made.time_lost() == pytest.approx(shape_buckets.lost("llama3-8b", "h100-sxm", made.fitted()))


def test_more_of_the_best_graphs_waste_less():
    wasted = [widget(plan="best", kept=kept).wasted() for kept in (1, 2, 4, 8, 16)]
    assert np.all(np.diff(wasted) < 0)


def test_shapes_that_multiply_crowd_out_the_cache():
    assert "too_many" in met(lengths=128) and "too_many" not in met()
    assert all("too_many" not in met(**texts) for texts in GraphBuckets.presets.values())


def test_a_plan_of_every_size_wastes_nothing():
    made = widget(plan="every")
    assert made.wasted() == 0 and made.cost().graphs == 128
