"""tile_tuner by hand: waves and tails, budgets, and the regimes with their ways out."""

import pytest

from engine.one_gpu import tiling
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.gpu.tile_tuner import ROWS, TileTuner

H100 = tiling.chip("h100-sxm")


READER = Reader(TileTuner)
shown, met, text = READER.shown, READER.met, READER.text


def test_one_tile_too_many_is_the_target():
    """896 × 2432 in tiles of 128 × 128: 7 · 19 = 133."""
    case = {"m": 896, "n": 2432, "block_n": "128"}
    assert met(**case) == {"tail"} and text("tail_share", **case) == "49.6 %"
    assert "133 tiles on 132" in shown(**case)["regimes"]["tail"]["text"]
    assert "tail" not in met(**case | {"block_m": "64"})


def test_the_line_passes_through_the_point():
    parts = shown(m=2176)["parts"]
    at = ROWS.tolist().index(2176)
    assert parts["curve"]["flops_per_s"][at] == pytest.approx(float(parts["here"]["flops_per_s"]))
    assert float(parts["here"]["best"]) >= float(parts["here"]["flops_per_s"])


def test_gauges_by_hand():
    gauges = shown()["parts"]["gauges"]
    assert gauges["one_share"] == pytest.approx([(147456 + 1024) / 233472, 208 * 256 / 65536, 124 / 132])
    assert not lacks(gauges["text"][0], "144 KiB", "228 KiB")
    assert not lacks(gauges["text"][2], "wave 2", "124 of 132")
    two = shown(block_n="128")["parts"]["gauges"]
    assert two["all_share"][0] == pytest.approx(2 * (98304 + 1024) / 233472)


@pytest.mark.parametrize(
    ("case", "regime"),
    [
        ({"m": 128}, "sparse"),
        ({"block_m": "64", "block_n": "64"}, "starved"),
        ({"block_m": "256", "stages": 2}, "spills"),
        ({"block_m": "256", "stages": 4}, "too_large"),
    ],
)
def test_each_regime_can_be_met(case, regime):
    assert regime in met(**case) and regime not in met()


def test_a_tile_that_does_not_fit_says_so():
    case = {"block_m": "256", "block_k": "128", "stages": 4}
    assert text("estimate", **case) == "does not launch" and "do not fit" in shown(**case)["summary"]


def test_a_measured_product_stands_where_it_was_measured():
    assert shown()["parts"]["measured"]["seen"][0] == 0
    there = shown(**TileTuner.presets["Two waves exactly, measured"])["parts"]["measured"]
    assert there["seen"][0] == 1 and there["text"][0].startswith("measured: torch.compile")
    assert there["rows"][0] == 4224


def test_a_chip_that_is_mostly_idle_is_not_bound_by_its_arithmetic():
    assert text("bound_by", m=64) == "too few tiles" and text("bound_by") == "arithmetic"


def test_nvidias_example_is_a_preset():
    assert not lacks(shown(**TileTuner.presets["A100, 1,792²"])["summary"], "as fast as any", "9.26 %")
