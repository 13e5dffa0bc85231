"""AllReduce over size: times by hand, where lines cross, the measured points, and the two ends of the scale."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine import catalog
from tests.widgets.reading import Reader
from widgets.collective_cost import NAMES, SIZES, CollectiveCost

PUBLISHED = Path(__file__).parents[1] / "published" / "collectives.json"


shown = Reader(CollectiveCost).shown


def readouts(found):
    return {key: readout["text"] for key, readout in found["readouts"].items()}


def test_the_default_by_hand():
    """1 MB on 64 ranks in nodes of 8: 126, 12, 12 and 14 + 14 start-ups; 50 GB/s a NIC, 450 GB/s a link, one way."""
    network, link = 9.6e-6, 3.4e-6
    ring = 126 * network + 126 / 64 * 1e6 / 50e9
    tree = 12 * network + 2e6 / 50e9
    doubling = 12 * network + 126 / 64 * 1e6 / 50e9
    levels = 14 * link + 14 / 8 * 1e6 / 450e9 + 14 * network + 14 / 8 * 1e6 / 8 / 50e9
    found = shown()
    assert np.allclose(found["parts"]["marks"]["time_s"], [ring, tree, doubling, levels], rtol=1e-12)
    said = readouts(found)
    times = [said[key] for key in ("ring", "tree", "halving_doubling", "two_levels")]
    assert times == ["1.25 ms", "155 µs", "155 µs", "190 µs"]
    assert said["algorithm_bandwidth"] == "6.47 GB/s" and said["bus_bandwidth"] == "12.7 GB/s"    # times 126/64
    assert said["starting"] == "74.5 %"
    assert found["parts"]["marks"]["dot"].tolist() == [7, 14, 14, 7]      # nobody can tell 155.2 µs from 154.6
    widget = CollectiveCost()
    assert str(widget.leader()) == "tree or halving-doubling"


def test_the_fastest_is_named_with_those_that_tie():
    def leader(**texts):
        widget = CollectiveCost()
        widget.set_state(texts)
        return str(widget.leader())

    assert leader(size=1e9) == "two levels" and leader(size=1e9, ranks=8) == "ring or halving-doubling or two levels"
    assert leader(size=64e3, ranks=1024) == "tree or halving-doubling"
    assert "by tree or halving-doubling are start-ups" in shown(size=64e3, ranks=1024)["regimes"]["latency"]["text"]


def test_away_from_powers_of_two_halving_doubling_pays_for_the_fold():
    """96 ranks: 2 · 63/64 buffers among 64 of them, and two whole ones; 14 start-ups, as a tree."""
    found = shown(size=16e9, ranks=96)["parts"]
    assert found["marks"]["time_s"][2] == pytest.approx(14 * 9.6e-6 + (2 + 126 / 64) * 16e9 / 50e9)
    assert list(map(str, found["names"]["text"])) == ["ring", "tree, halving-doubling", "halving-doubling", "two levels"]
    assert str(shown()["parts"]["names"]["text"][2]) == ""


def test_dots_are_explained_where_they_are_drawn():
    assert "dots" not in shown()["summary"]
    said = shown(measured="allreduce-8xh100")["summary"]
    assert "the dots, 8 H100: " in said and "not a tree" in said


def test_the_curves_go_through_the_marks():
    found = shown(size=SIZES[40])
    curves, marks = found["parts"]["curves"], found["parts"]["marks"]
    assert np.allclose([curves[name][40] for name in ("ring", "tree", "doubling", "levels")], marks["y"], rtol=1e-9)


def test_as_bus_bandwidth_they_stay_below_the_wire():
    found = shown(view="bandwidth")
    curves = found["parts"]["curves"]
    for name in ("ring", "tree", "doubling"):
        assert (curves[name] < 50e9).all() and curves[name][-1] > 45e9, name
    assert found["parts"]["wire"]["bytes_per_s"] == 50e9 and found["parts"]["wire"]["text"] == "one NIC: 50 GB/s"
    assert shown(view="bandwidth", ranks=8)["parts"]["wire"]["text"] == "link: 450 GB/s"


def test_ring_and_tree_cross_where_it_is_said():
    """64 ranks: 64 · 50 GB/s · 9.6 µs · (63 − 6) = 1.75 GB."""
    crossing = shown()["parts"]["crossing"]
    assert crossing["size"] == pytest.approx(1.75104e9) and crossing["text"] == "ring = tree at 1.75 GB"
    at = shown(size=float(crossing["size"]))["parts"]["marks"]["time_s"]
    assert at[0] == pytest.approx(at[1]) == pytest.approx(crossing["y"])


@pytest.mark.parametrize("count", [2, 3, 1024])
def test_a_crossing_beyond_the_picture_is_not_drawn(count):
    crossing = shown(ranks=count)["parts"]["crossing"]
    assert crossing["seen"] == 0 and crossing["text"] == ""


def test_up_to_the_end_of_the_zone_start_ups_are_the_larger_half():
    """6 · 50 GB/s · 9.6 µs · 64/63 = 2.93 MB, by halving and doubling."""
    assert shown()["parts"]["zone"]["end"] == pytest.approx(6 * 480e3 * 64 / 63)
    for size in (64e3, 1e6, 64e6):
        found = shown(size=size)
        assert (size < found["parts"]["zone"]["end"]) == (float(readouts(found)["starting"].split()[0]) > 50)


def test_inside_a_node_two_levels_are_the_ring_and_the_marks_have_the_links_hue():
    marks = shown(ranks=8)["parts"]["marks"]
    assert marks["time_s"][0] == pytest.approx(marks["time_s"][3]) and set(map(str, marks["wire"])) == {"link"}
    assert set(map(str, shown(ranks=10)["parts"]["marks"]["wire"])) == {"network"}


def test_64_kb_on_1024_ranks_is_latency():
    found = shown(size=64e3, ranks=1024)
    assert found["regimes"]["latency"]["met"] and not found["regimes"]["bandwidth"]["met"]
    assert readouts(found)["ring"] == "19.6 ms"                     # 2046 start-ups of 9.6 µs, and 2.6 µs of bytes
    assert readouts(found)["halving_doubling"] == "195 µs"
    assert readouts(found)["starting"] == "98.7 %"


def test_large_buffers_are_bandwidth_whatever_the_ranks():
    """The bandwidth term hardly depends on the ranks; the latency term does."""
    few, many = (shown(size=16e9, ranks=count)["parts"]["marks"]["time_s"] for count in (64, 512))
    assert few[2] == pytest.approx(many[2], rel=0.02)
    assert shown(size=16e9)["regimes"]["bandwidth"]["met"] and not shown()["regimes"]["bandwidth"]["met"]
    small, large = (shown(size=1e3, ranks=count)["parts"]["marks"]["time_s"] for count in (64, 512))
    assert large[0] == pytest.approx(small[0] * 1022 / 126, rel=1e-3)


def test_the_measured_points_are_the_published_ones():
    cases = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    known = {(case["gpu"], case["ranks"], case["bytes"], round(case["measured"]["time_s"], 9))
             for case in cases if case["op"] == "all_reduce" and "time_s" in case["measured"]}
    for sweep in catalog.sweeps().values():
        assert len(sweep.sizes_bytes) == len(sweep.times_s) >= 20 and sweep.source and sweep.checked
        assert all((sweep.gpu, sweep.ranks, size, round(time_s, 9)) in known
                   for size, time_s in zip(sweep.sizes_bytes, sweep.times_s))


def test_measured_bus_bandwidth_is_that_of_nccl_tests():
    """8 H100: 17.2 GB in 62.648 ms, printed as 479.9 GB/s, more than the link's 450: the switch adds up."""
    points = shown(measured="allreduce-8xh100", view="bandwidth")["parts"]["points"]
    assert points["y"][-1] == pytest.approx(479.9e9, rel=1e-4)
    assert len(shown()["parts"]["points"]["size"]) == 0


def test_the_ring_of_eight_a100_is_near_its_measurement_at_both_ends():
    """Alpha-beta holds for small and for large buffers; in between protocols change, and it does not."""
    found = shown(**CollectiveCost.presets["8 A100, measured"])["parts"]
    ring = np.interp(np.log(found["points"]["size"]), np.log(found["curves"]["size"]), found["curves"]["ring"])
    ratio = found["points"]["y"] / ring
    assert 0.75 < ratio[0] < 1.25 and 0.75 < ratio[-1] < 1 and ratio.min() < 0.6


def test_presets_are_what_they_say():
    for name, state in CollectiveCost.presets.items():
        widget = CollectiveCost()
        widget.set_state(state)
        if name.endswith("measured"):
            assert name.split(",")[0] == widget.measured.name and widget.ranks == widget.measured.ranks == 8
            assert widget.link_bytes_per_s == catalog.gpu(widget.measured.gpu).link_bytes_per_s
        else:
            size, count = name.split(" on ")
            assert widget.shown()["summary"].startswith(f"An AllReduce of {size} over {count}")
