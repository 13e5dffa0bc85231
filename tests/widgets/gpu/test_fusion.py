"""The picture of a chain apart and fused: places by hand, and each regime where it belongs."""

import pytest

from tests.cases import in_one_test
from tests.widgets.reading import Reader
from widgets.gpu.fusion import ACROSS, FRAME, Fusion

shown = Reader(Fusion).shown
REACHED = 0.74 * 3.35e12  # of an H100's bandwidth


def test_the_default_by_hand():
    """117 M elements of 2 bytes, both ways: 470 MB a kernel, 189 µs at 2.48 TB/s; eight of them 1.52 ms."""
    found = shown()
    texts = {key: each["text"] for key, each in found["readouts"].items()}
    assert texts == {
        "takes_apart": "1.52 ms",
        "takes_fused": "189 µs",
        "faster": "8× as fast",
        "saved": "87.5 % fewer",
        "bound": "bytes",
        "registers": "47",
    }
    assert not any(regime["met"] for regime in found["regimes"].values())


def test_what_is_slower_fused_is_not_said_to_be_faster_by_a_few_per_cent():
    """It read 'faster by 5.84 %' and 'bytes saved −16.1×' where spilled registers made it 17 times slower."""
    texts = {key: each["text"] for key, each in shown(kept=96)["readouts"].items()}
    assert texts["faster"] == "17.1× slower" and texts["saved"] == "17.1× as many"


def test_eight_kernels_fill_the_width_and_the_fused_one_an_eighth():
    found = shown()
    kernels, fused, width = found["parts"]["kernels"], found["parts"]["fused"], ACROSS[1] - ACROSS[0]
    assert kernels["seen"].sum() == 8 and kernels["left"][0] == ACROSS[0]
    assert kernels["right"][7] == pytest.approx(ACROSS[1]) and kernels["right"][16] == kernels["left"][16]
    assert fused["right"] - fused["left"] == pytest.approx(width / 8)
    assert fused["work"] - fused["left"] == pytest.approx(
        width / 8 * 32 / (80 / 0.74)
    )  # 8 · 4 of the ridge's 108 FLOPs


def test_a_fused_kernel_that_spills_fills_the_width_itself():
    """96 values: 799 registers, 68 values of 8 bytes spill. 548 bytes an element against 8 · 4: 17.1 times as
    long."""
    found = shown(kept=96)
    kernels, fused, width = found["parts"]["kernels"], found["parts"]["fused"], ACROSS[1] - ACROSS[0]
    assert fused["right"] == fused["memory"] == pytest.approx(ACROSS[1])
    assert kernels["right"][7] - ACROSS[0] == pytest.approx(width * 32 / 548)
    assert fused["work"] - ACROSS[0] == pytest.approx(
        width * 32 / (548 * 20 / 0.74)
    )  # 32 FLOPs, at 27 for each byte
    assert [name for name, regime in found["regimes"].items() if regime["met"]] == ["spilled"]


@in_one_test(
    "state",
    [
        {},
        {"kept": 96},
        {"flops": 1, "operations": 1, "kept": 96},
        {"flops": 2000, "operations": 16},
        {"elements": 1e3, "flops": 1, "launch": 20e-6},
        {"elements": 14336},
    ],
)
def test_every_point_is_inside_the_chart_and_not_above_the_roof(state):
    points = shown(**state)["parts"]["points"]
    assert (FRAME.x[0] < points["intensity"]).all() and (points["intensity"] < FRAME.x[1]).all()
    assert (FRAME.y[0] < points["rate"]).all() and (
        points["rate"] <= 1.0001 * REACHED * points["intensity"]
    ).all()


def test_points_stand_on_the_roof():
    """4 FLOPs for 4 bytes, and 8 times that: both on the slope of HBM."""
    points = shown()["parts"]["points"]
    assert points["intensity"] == pytest.approx([1, 8])
    assert points["rate"] == pytest.approx([REACHED, 8 * REACHED])
    assert points["x"][0] == pytest.approx(FRAME.right(1.0)) and points["y"][1] == pytest.approx(
        FRAME.height(8 * REACHED)
    )


@pytest.mark.parametrize(
    ("state", "met"),
    [
        ({"flops": 100}, "no_gain"),
        ({"inner": 16384, "operations": 2}, "no_gain"),
        ({"kept": 40}, "spilled"),
        ({"elements": 1e4}, "launch_bound"),
    ],
)
def test_each_regime_where_it_belongs(state, met):
    assert shown(**state)["regimes"][met]["met"]


def test_one_operation_breaks_nothing():
    assert not shown(operations=1)["regimes"]["no_gain"]["met"]


def test_a_product_in_front_is_drawn_before_its_chain():
    found = shown(elements=2048 * 49152, operations=2, inner=12288, flops=10)["parts"]["kernels"]
    assert found["left"][16] == ACROSS[0] and found["left"][0] == pytest.approx(found["right"][16])
    assert found["right"][1] == pytest.approx(ACROSS[1])
