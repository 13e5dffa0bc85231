"""eager_overhead: figures worked by hand, and where its regimes begin."""

import numpy as np
import pytest

from tests.widgets.reading import Reader
from widgets.gpu.eager_overhead import SHOWN, EagerOverhead

READER = Reader(EagerOverhead)
shown, met = READER.shown, READER.met


def test_the_default_by_hand():
    """2 · 2048³ / (0.8 · 989 TFLOP/s) is 21.7 µs; a thousand of them and one issue."""
    page = shown()
    assert page["readouts"]["kernel"]["text"] == "21.7 µs" and page["readouts"]["step"]["text"] == "21.7 ms"
    assert page["readouts"]["twice"]["text"] == "1.81×" and not met()  # 21.7 over 12


@pytest.mark.parametrize("state", [{"side": "512"}, {"gpu": "b200"}, {"issue_s": "3e-5"}])
def test_three_ways_to_make_a_faster_gpu_worthless(state):
    assert met(**state) == {"issue_bound"}


def test_the_other_regimes():
    assert met(sync="1") == {"synchronized"} and met(side="8192", ops="2000") == {"queue_full"}
    assert "queue_full" not in met(side="8192", ops="1000")


def test_when_each_result_is_read_the_two_add_up():
    """2,048² on an H100: 12 + 21.7 µs, and the curve is drawn there."""
    page = shown(sync="1")
    assert page["readouts"]["step"]["text"] == "33.7 ms" and page["parts"]["here"]["y"] == pytest.approx(
        33.7e-6, rel=2e-3
    )
    assert page["parts"]["curves"]["pace_s"] == pytest.approx(page["parts"]["curves"]["kernel_s"] + 12e-6)
    assert "add up" in page["summary"] and "add up" in page["parts"]["names"]["title"]


def test_the_lanes_are_the_runs():
    """Every kernel starts when its launch is there and the one before has ended; the GPU's waits fill what is
    between."""
    parts = shown(side="512")["parts"]
    kernels, issued, idle = parts["kernels"], parts["issued"], parts["idle"]
    assert kernels["start_s"] == pytest.approx(issued["end_s"])  # small kernels: none is ever queued
    assert len(kernels["left"]) == SHOWN and np.all(np.diff(kernels["left"]) > 0)
    assert idle["right"][:SHOWN] == pytest.approx(kernels["left"])


def test_others_points_are_drawn_for_products_alone():
    assert np.all(shown()["parts"]["timed"]["seen"] == 1) and not np.any(
        shown(kind="add")["parts"]["timed"]["seen"]
    )
