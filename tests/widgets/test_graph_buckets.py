"""graph_buckets: the picture is the plan under the run's traffic, and shapes that multiply are found by dragging."""

import numpy as np
import pytest

from engine import shape_buckets
from tests.widgets.reading import Reader
from widgets.graph_buckets import GraphBuckets


READER = Reader(GraphBuckets)
widget, met = READER.widget, READER.met


def test_each_step_stands_over_its_batch():
    steps = widget().shown()["parts"]["steps"]
    assert steps["steps"].sum() == shape_buckets.STEPS and steps["top"].argmax() == steps["steps"].argmax()


def test_the_stairs_lead_to_the_next_captured_size():
    stairs = widget(plan="powers").shown()["parts"]["stairs"]
    assert stairs["top"][[1, 3, 5, 33, 128]].tolist() == [1, 4, 8, 64, 128]


def test_rows_are_wasted_and_time_is_not():
    assert "wasteful" in met(plan="powers") and "wasteful" not in met()
    made = widget(plan="powers")
    assert made.wasted() > 0.25 and made.time_lost() < 0.01
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
