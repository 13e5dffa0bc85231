"""bandwidth_pyramid by hand: eight times and the product they are held against, and where start-up wins."""

import numpy as np
import pytest

from tests import states
from tests.widgets.reading import Reader
from widgets.foundations.bandwidth_pyramid import FIRST, LAST, ROWS, BandwidthPyramid

PEAK = 989e12


READER = Reader(BandwidthPyramid)
shown, readouts, met = READER.shown, READER.readouts, READER.met


def times(**texts):
    return dict(zip(ROWS, shown(**texts)["parts"]["levels"]["took"]))


def test_a_gigabyte_on_an_h100_by_hand():
    """n = √(1e9 / 6) = 12,910, so 2n³ = 4.3e12 FLOPs; each level α + S/B."""
    took = times()
    assert shown()["parts"]["matmul"]["took"] == pytest.approx(2 * (1e9 / 6) ** 1.5 / PEAK)
    assert took["Registers"] == pytest.approx(4 / 1.83e9 + 1e9 / (132 * 1.83e9 * 1536))
    assert took["SMEM and L1"] == pytest.approx(34 / 1.83e9 + 1e9 / (132 * 1.83e9 * 128))
    assert took["L2"] == pytest.approx(1e9 / 9.8e12, rel=2e-3)
    assert took["HBM"] == pytest.approx(1e9 / 3.35e12, rel=2e-3)
    assert took["NVLink"] == pytest.approx(0.7567e-6 + 1e9 / 450e9)
    assert took["PCIe"] == pytest.approx(2.5e-6 + 1e9 / 63e9)
    assert took["Network"] == pytest.approx(2.7e-6 + 1e9 / 50e9)
    assert took["Storage"] == pytest.approx(80e-6 + 1e9 / 6.9e9)


def test_what_the_default_says():
    found = readouts()
    assert (
        found["product"] == "4.35 ms" and found["over_link"] == "2.22 ms" and found["over_network"] == "20 ms"
    )
    assert (
        found["like_for_like"] == "9×" and found["advertised"] == "18×" and found["hides_from"] == "21.1 GB"
    )
    assert met() == {"network_waits"} and "4.6×" in shown()["regimes"]["network_waits"]["text"]
    assert "NVLink hides" in shown()["regimes"]["network_waits"]["text"]


def test_levels_past_the_product_are_marked_and_no_others():
    levels = shown()["parts"]["levels"]
    assert levels["past"].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert levels["past_from"][5:] == pytest.approx(np.full(3, 4.35e-3), rel=1e-3)
    assert levels["past_from"][:5] == pytest.approx(levels["took"][:5])


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (1e5, {"start_up", "memory_waits"}),
        (1e6, {"memory_waits"}),
        (1e7, {"network_waits"}),
        (1e9, {"network_waits"}),
        (3e10, set()),
    ],
)
def test_each_regime_has_its_payloads(payload, expected):
    assert met(payload=payload) == expected


def test_start_up_wins_below_135_kb():
    """2.7 µs at 50 GB/s."""
    won = [
        payload
        for payload in BandwidthPyramid.controls()["payload"].grid
        if "start_up" in met(payload=payload)
    ]
    assert won == [p for p in BandwidthPyramid.controls()["payload"].grid if p < 135e3] and len(won) > 5
    text = shown(payload=1e5)["regimes"]["start_up"]["text"]
    assert "2.7 µs" in text and "21.3 GB/s of 50 GB/s" in text and "135 kB" in text


def test_at_134_mb_nvlink_does_not_hide_either():
    assert "NVLink does not hide" in shown(payload=134217728)["regimes"]["network_waits"]["text"]
    assert (
        readouts(chip="a100-80")["like_for_like"] == "12×" and readouts(chip="b200")["like_for_like"] == "18×"
    )


def test_presets_say_what_they_are():
    by_name = dict(zip(BandwidthPyramid.presets, states.presets(BandwidthPyramid)))
    assert by_name["1 GB on an H100"] == states.default(BandwidthPyramid)
    assert by_name["64 tokens of a 70B: 1 MB"]["payload"] == 64 * 8192 * 2
    assert by_name["8,192 tokens: 134 MB"]["payload"] == 8192 * 8192 * 2
    assert not met(**BandwidthPyramid.presets["30 GB, hidden even behind the network"])
    assert "B200" in shown(**BandwidthPyramid.presets["1 GB on a B200"])["summary"]


def test_every_bar_stays_on_the_axis():
    for state in [*states.around(BandwidthPyramid), *states.scattered(BandwidthPyramid, 100)]:
        widget = BandwidthPyramid()
        widget.set_raw(state)
        parts = widget.shown()["parts"]
        assert parts["levels"]["alpha"].min() > FIRST and parts["levels"]["took"].max() < LAST
        assert FIRST < parts["matmul"]["took"] < LAST


def test_no_product_is_shorter_than_a_clock_and_no_preset_is_the_target():
    smallest = BandwidthPyramid.controls()["payload"].grid[0]
    assert shown(payload=smallest)["parts"]["matmul"]["took"] > 1 / 1.83e9
    assert not any("start_up" in met(**state) for state in BandwidthPyramid.presets.values())
