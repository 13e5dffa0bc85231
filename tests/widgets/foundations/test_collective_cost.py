"""AllReduce over size: times by hand, where lines cross, the measured points, and the two ends of the
scale."""

import numpy as np
import pytest

from engine import catalog
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.collective_cost import SIZES, CollectiveCost
from widgets.kit.text import show

shown = Reader(CollectiveCost).shown


def readouts(found):
    return {key: readout["text"] for key, readout in found["readouts"].items()}


def test_the_default_by_hand():
    """1 MB on 64 ranks, each alone in its node: 126 start-ups in a ring, 12 in a tree; 50 GB/s a NIC."""
    network = 2.7e-6
    ring = 126 * network + 126 / 64 * 1e6 / 50e9
    tree = 12 * network + 2e6 / 50e9
    doubling = 12 * network + 126 / 64 * 1e6 / 50e9
    found = shown()
    assert np.allclose(found["parts"]["marks"]["time_s"], [ring, tree, doubling, ring], rtol=1e-12)
    said = readouts(found)
    times = [said[key] for key in ("ring", "tree", "halving_doubling", "two_levels")]
    assert times == ["380 µs", "72.4 µs", "71.8 µs", "380 µs"]
    assert said["algorithm_bandwidth"] == "13.9 GB/s" and said["bus_bandwidth"] == "27.4 GB/s"  # times 126/64
    assert said["starting"] == "45.1 %"
    assert found["parts"]["marks"]["dot"].tolist() == [7, 14, 14, 7]
    assert str(CollectiveCost().leader()) == "tree or halving-doubling"


def test_in_nodes_of_eight_all_go_through_the_same_wires():
    """16 GB on 1,024 ranks: rings on all rails beat two levels, one after the other, as lesson 03 says."""
    network, link = 2.7e-6, 0.7567e-6
    found = shown(size=16e9, ranks=1024, per_node=8)["parts"]
    ring = 2046 / 1024 * 16e9 / 400e9 + 2 * 896 * link + 2 * 127 * network
    tree = 2 * 16e9 / 400e9 + 6 * link + 14 * network
    bytes_s = 14 / 8 * 16e9 / 450e9 + 254 / 128 * 2e9 / 50e9
    doubling, levels = bytes_s + 6 * link + 14 * network, bytes_s + 14 * link + 254 * network
    assert found["marks"]["time_s"] == pytest.approx([ring, tree, doubling, levels], rel=1e-4)
    assert show(ring, "seconds") == "82 ms" and show(levels, "seconds") == "142 ms"
    assert found["wire"]["text"] == "" and shown(per_node=8, view="bandwidth")["parts"]["wire"]["text"] == (
        "8 NICs: 400 GB/s"
    )
    wide = shown(per_node=16, view="bandwidth")["parts"]["wire"]["text"]
    assert wide == "link: 450 GB/s", "16 NICs carry more than the link to them"


def test_the_fastest_is_named_with_those_that_tie():
    def leader(**texts):
        widget = CollectiveCost()
        widget.set_state(texts)
        return str(widget.leader())

    assert (
        leader(size=1e8) == "tree or halving-doubling"
        and leader(size=16e9) == "ring or tree or halving-doubling"
    )
    nodes = {"size": 1e9, "per_node": 8}
    assert leader(**nodes) == "ring or tree" and leader(**nodes, ranks=8) == "ring or halving-doubling"
    assert leader(size=64e3, ranks=1024) == "tree or halving-doubling"
    assert not lacks(
        shown(size=64e3, ranks=1024)["regimes"]["latency"]["text"], "tree or halving-doubling", "start-ups"
    )


def test_away_from_powers_of_two_halving_doubling_pays_for_the_fold():
    """96 ranks: 2 · 63/64 buffers among 64 of them, and two whole ones; 14 start-ups, as a tree."""
    found = shown(size=16e9, ranks=96)["parts"]
    assert found["marks"]["time_s"][2] == pytest.approx(14 * 2.7e-6 + (2 + 126 / 64) * 16e9 / 50e9)
    assert list(map(str, found["names"]["text"])) == [
        "ring, two levels",
        "tree, halving-doubling",
        "halving-doubling",
        "",
    ]
    assert str(shown()["parts"]["names"]["text"][2]) == ""
    assert list(map(str, shown(per_node=8)["parts"]["names"]["text"]))[2:] == [
        "halving-doubling",
        "two levels",
    ]


def test_the_curves_go_through_the_marks():
    found = shown(size=SIZES[40])
    curves, marks = found["parts"]["curves"], found["parts"]["marks"]
    assert np.allclose(
        [curves[name][40] for name in ("ring", "tree", "doubling", "levels")], marks["y"], rtol=1e-9
    )


def test_as_bus_bandwidth_they_stay_below_the_wire():
    found = shown(view="bandwidth")
    curves = found["parts"]["curves"]
    for name in ("ring", "tree", "doubling"):
        assert (curves[name] < 50e9).all() and curves[name][-1] > 45e9, name
    assert (
        found["parts"]["wire"]["bytes_per_s"] == 50e9 and found["parts"]["wire"]["text"] == "one NIC: 50 GB/s"
    )
    assert shown(view="bandwidth", ranks=8, per_node=8)["parts"]["wire"]["text"] == "link: 450 GB/s"


def test_ring_and_tree_cross_where_it_is_said():
    """64 ranks: 64 · 50 GB/s · 2.7 µs · (63 − 6) = 492 MB."""
    crossing = shown()["parts"]["crossing"]
    assert crossing["size"] == pytest.approx(492.48e6) and crossing["text"] == "ring = tree at 492 MB"
    at = shown(size=float(crossing["size"]))["parts"]["marks"]["time_s"]
    assert at[0] == pytest.approx(at[1]) == pytest.approx(crossing["y"])


@pytest.mark.parametrize("count", [2, 3, 1024])
def test_a_crossing_beyond_the_picture_is_not_drawn(count):
    crossing = shown(ranks=count)["parts"]["crossing"]
    assert crossing["seen"] == 0 and crossing["text"] == ""


def test_up_to_the_end_of_the_zone_start_ups_are_the_larger_half():
    """A tree has 12 · 2.7 µs over 2 / 50 GB/s = 810 kB, halving-doubling, the fastest, 64/63 of that."""
    assert shown()["parts"]["zone"]["end"] == pytest.approx(12 * 2.7e-6 * 50e9 / 2 * 64 / 63)
    for size in (64e3, 1e6, 64e6):
        found = shown(size=size)
        assert (size < found["parts"]["zone"]["end"]) == (float(readouts(found)["starting"].split()[0]) > 50)


def test_inside_a_node_two_levels_are_the_ring_and_the_marks_have_the_links_hue():
    marks = shown(ranks=8, per_node=8)["parts"]["marks"]
    assert marks["time_s"][0] == pytest.approx(marks["time_s"][3]) and set(map(str, marks["wire"])) == {
        "link"
    }
    assert set(map(str, shown(ranks=10, per_node=8)["parts"]["marks"]["wire"])) == {"network"}


def test_64_kb_on_1024_ranks_is_latency():
    found = shown(size=64e3, ranks=1024)
    assert found["regimes"]["latency"]["met"] and not found["regimes"]["bandwidth"]["met"]
    assert readouts(found)["ring"] == "5.53 ms"  # 2046 start-ups of 2.7 µs, and 2.6 µs of bytes
    assert readouts(found)["halving_doubling"] == "56.6 µs"
    assert readouts(found)["starting"] == "95.5 %"


def test_large_buffers_are_bandwidth_whatever_the_ranks():
    """The bandwidth term hardly depends on the ranks; the latency term does."""
    few, many = (shown(size=16e9, ranks=count)["parts"]["marks"]["time_s"] for count in (64, 512))
    assert few[2] == pytest.approx(many[2], rel=0.02)
    assert shown(size=16e9)["regimes"]["bandwidth"]["met"] and not shown()["regimes"]["bandwidth"]["met"]
    small, large = (shown(size=1e3, ranks=count)["parts"]["marks"]["time_s"] for count in (64, 512))
    assert large[0] == pytest.approx(small[0] * 1022 / 126, rel=1e-3)


@pytest.mark.parametrize(("gpu", "smallest"), [("A100", 0.2), ("H100", 0.5)])
def test_the_ring_is_never_slower_than_what_was_measured_and_near_it_for_large_buffers(gpu, smallest):
    """Alpha-beta is what the wires allow: a call's own start and the protocols in between come on top. The
    switch sums a large buffer of eight H100s faster than any ring."""
    found = shown(**CollectiveCost.presets[f"8 {gpu}, measured"])["parts"]
    points = {name: found["points"][name][found["points"]["seen"] == 1] for name in ("x", "y")}
    order = np.argsort(points["x"])
    ring = np.interp(np.log(points["x"]), np.log(found["curves"]["size"]), found["curves"]["ring"])
    ratio = (points["y"] / ring)[order]
    assert smallest < ratio[0] < 1 and 0.75 < ratio[-1] < 1.07 and ratio.min() < 0.6


def test_presets_are_what_they_say():
    for name, state in CollectiveCost.presets.items():
        widget = CollectiveCost()
        widget.set_state(state)
        if name.endswith("measured"):
            gpu = catalog.gpu({"8 A100": "a100-80", "8 H100": "h100-sxm"}[name.split(",")[0]])
            part = widget.shown()["parts"]["points"]
            assert widget.ranks == 8 and widget.link_bytes_per_s == gpu.link_bytes_per_s
            assert {text for text, seen in zip(part["what"], part["seen"]) if seen and gpu.name[:4] in text}
            assert not [
                text for text, seen in zip(part["what"], part["seen"]) if seen and gpu.name[:4] not in text
            ]
        else:
            size, count = name.split(" on ")
            assert widget.shown()["summary"].startswith(f"An AllReduce of {size} over {count} takes")


@pytest.mark.parametrize(
    ("half", "said"), [("reduce_scatter", "A ReduceScatter"), ("all_gather", "An AllGather")]
)
def test_a_half_takes_half_the_time_and_keeps_the_wire_as_busy(half, said):
    """Two halves, one after the other, are the AllReduce: by each form, at every size."""
    for state in ({}, {"ranks": 8, "size": 64e6}, {"ranks": 96, "size": 1e9}):
        whole, part = shown(**state), shown(operation=half, **state)
        assert part["summary"].startswith(f"{said} of ")
        for name in ("ring", "tree", "doubling", "levels"):
            assert np.allclose(2 * part["parts"]["curves"][name], whole["parts"]["curves"][name])
        assert readouts(part)["bus_bandwidth"] == readouts(whole)["bus_bandwidth"]
        busy, same = (
            shown(view="bandwidth", **state | op)["parts"]["curves"] for op in ({}, {"operation": half})
        )
        assert np.allclose(busy["ring"], same["ring"])


def test_a_measured_half_s_bus_bandwidth_is_that_of_nccl_tests():
    """nccl-tests' factor for it is (n-1)/n: 256 MiB in 728.79 µs over 8 H100."""
    part = shown(ranks=8, per_node=8, operation="all_gather", view="bandwidth")["parts"]["points"]
    assert part["y"][np.argmax(part["x"])] == pytest.approx(2**28 / 728.79e-6 * 7 / 8, rel=1e-4)
