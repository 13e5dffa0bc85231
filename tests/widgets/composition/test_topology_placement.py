"""topology_placement by hand: who is in a group, what fills each wire, and the mistake in words and red."""

import numpy as np
import pytest

from tests import states
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.composition.topology_placement import WALL, TopologyPlacement

HIDDEN_BYTES = 8192 * 8192 * 2  # one micro-batch of Llama 3 70B between two layers


READER = Reader(TopologyPlacement)
shown, part, met = READER.shown, READER.part, READER.met


def group(**texts):
    """GPUs drawn as one group, by number."""
    return np.flatnonzero(part("ranks", **texts)["member"][:64]).tolist()


def share(tubes, begin, end):
    """How much of its tubes is filled between two columns; all in sight are filled alike."""
    seen = tubes["left"] >= 0
    filled = (tubes[end] - tubes[begin])[seen] / (tubes["end"] - tubes["left"])[seen]
    assert filled == pytest.approx(np.full(seen.sum(), filled[0]), abs=1e-9)
    return filled[0]


# -- groups --------------------------------------------------------------------------------------------------
@in_one_test(
    "texts, members",
    [
        ({}, range(8)),
        ({"innermost": "dp"}, range(0, 32, 4)),  # behind 4 data ranks
        ({"innermost": "pp"}, range(0, 16, 2)),  # behind 2 stages
        ({"tp": "16"}, range(16)),
        ({"follow": "dp"}, range(0, 32, 8)),
        ({"follow": "pp"}, (0, 32)),
        ({"follow": "dp", "innermost": "dp"}, range(4)),
        ({"follow": "ep"}, (0,)),
    ],
)
def test_the_group_shown_has_the_right_gpus(texts, members):
    assert group(**texts) == list(members)


# -- wires ---------------------------------------------------------------------------------------------------
def test_links_fill_with_tensor_traffic_alone_when_it_is_innermost():
    """4 AllReduces in each of 40 layers of a stage for 128 micro-batches, 7/4 of 134 MB each time, over 450
    GB/s."""
    sent_bytes = 4 * 40 * 128 * 2 * 7 / 8 * HIDDEN_BYTES
    parts = shown()["parts"]
    assert parts["wall"]["x"] == WALL
    compute_s = TopologyPlacement().compute_s()
    assert share(parts["links"], "left", "middle") == pytest.approx(sent_bytes / 450e9 / compute_s, rel=2e-3)
    assert share(parts["links"], "middle", "right") == pytest.approx(0, abs=1e-9)
    assert (
        share(parts["wires"], "left", "middle") == 0 and 0 < share(parts["wires"], "middle", "right") < 0.01
    )
    assert parts["wires"]["first"].max() == 0 and parts["wires"]["second"].min() == 1
    assert "4.81 TB over NVLink" in parts["bars"]["wires"][0] and sent_bytes == pytest.approx(
        4.81e12, rel=1e-3
    )


def test_half_of_the_ring_leaves_the_node_with_two_ranks_in_each():
    parts = shown(innermost="dp")["parts"]
    assert not lacks(parts["bars"]["wires"][0], "2.41 TB over NVLink", "2.41 TB through NICs")
    links, nics = (share(parts[name], "left", "middle") for name in ("links", "wires"))
    assert nics == pytest.approx(9 * links, rel=1e-6), "the same bytes, a ninth of the rate"


def test_fewer_nics_fill_up_and_a_full_tube_takes_no_more():
    eight, four = (share(part("wires", nics=nics), "left", "right") for nics in ("8", "4"))
    assert four == pytest.approx(2 * eight)
    assert share(part("wires", innermost="dp", nics="2"), "left", "right") == pytest.approx(1)


def test_a_phone_sees_the_same_shares():
    parts = shown(innermost="dp")["parts"]
    for all_of_them, one in (("links", "node_links"), ("wires", "node_wires")):
        assert share(parts[one], "left", "middle") == pytest.approx(
            share(parts[all_of_them], "left", "middle")
        )


def test_oversubscription_narrows_the_uplinks_and_fills_them():
    one, four = part("uplinks"), part("uplinks", oversubscription=4)
    widths = [(tubes["end"] - tubes["left"]).max() for tubes in (one, four)]
    assert widths[0] == pytest.approx(4 * widths[1])
    assert share(four, "left", "right") == pytest.approx(4 * share(one, "left", "right"))


@pytest.mark.parametrize(("nodes", "gpus", "nics"), [("2", "4", "1"), ("8", "8", "8"), ("16", "16", "4")])
def test_as_many_boxes_as_there_are_things(nodes, gpus, nics):
    parts = shown(nodes=nodes, gpus_per_node=gpus, nics=nics)["parts"]
    count = {
        name: int((np.asarray(parts[name]["left"]) >= 0).sum())
        for name in ("boxes", "ranks", "cards", "leaves")
    }
    assert count == {
        "boxes": int(nodes),
        "ranks": int(nodes) * int(gpus),
        "cards": int(nodes) * int(nics),
        "leaves": max(1, int(nodes) // 4),
    }
    for name in ("ranks", "cards", "boxes"):
        left, right = (
            np.sort(parts[name][side][np.asarray(parts[name]["left"]) >= 0]) for side in ("left", "right")
        )
        assert (right[:-1] <= left[1:]).all() and left[0] >= 0 and right[-1] <= 1, "they overlap"


# -- the mistake ---------------------------------------------------------------------------------------------
def test_the_default_keeps_tensor_parallelism_in_the_node():
    assert met() == set() and part("bars")["label"][0] == "11.9 s"
    assert not lacks(part("wall")["label"], "arithmetic", "70.1 s", "12.3 s")
    assert part("bars")["red"].tolist() == [0, 0, 0, 0] and part("bars")["kind"][0] == "link"


def test_another_axis_innermost_makes_it_a_mistake():
    bars = part("bars", innermost="dp")
    assert bars["red"].tolist() == [1, 0, 0, 0] and bars["within"][0] == 0 and 0 < bars["end"][0] < WALL
    assert met(innermost="dp") == {"tensor_across"}
    assert not lacks(shown(innermost="dp")["regimes"]["tensor_across"]["text"], "54.4 s", "70.1 s")


def test_the_edge_is_crossed_by_ranks_too():
    crossed = [n for n in ("1", "2", "4", "8", "16", "32") if "tensor_across" in met(tp=n)]
    assert crossed == ["16", "32"]
    assert [n for n in ("4", "8", "16") if "tensor_across" in met(gpus_per_node=n)] == ["4"]


def test_it_outweighs_the_arithmetic_once_it_is_larger_or_the_arithmetic_faster():
    assert met(innermost="dp", tp="32") == {"tensor_across", "all_exposed"}
    assert met(innermost="dp", mfu=0.55) == {"tensor_across", "all_exposed"}
    assert part("bars", innermost="dp", mfu=0.55)["end"][0] > WALL


@in_one_test("state", [states.default(TopologyPlacement), *states.scattered(TopologyPlacement, 40)])
def test_bars_are_linear_and_all_of_each_is_in_view(state):
    """11.9 s of 70.1 s, and an arithmetic outweighed tenfold alike."""
    widget = TopologyPlacement()
    widget.set_raw(state)
    page = widget.shown()
    end = page["parts"]["bars"]["end"]
    assert end == pytest.approx(WALL * widget.times_s() / widget.compute_s())
    assert max(WALL, *end) * 1.15 <= page["ranges"]["x"][1]


def test_what_each_axis_is_said_to_do():
    bars = part("bars")
    assert bars["name"] == ["Tensor 8", "Expert 1", "Data 4", "Pipeline 2"]
    assert bars["place"] == ["in the node", "alone", "across nodes", "across leaves"]
    assert bars["wires"][1] == "alone, sends nothing" and "of it over the spine" in bars["wires"][3]


def test_the_spine_can_be_the_narrow_place():
    texts = {
        "nodes": "16",
        "oversubscription": 4,
        "model": "mixtral-8x22b",
        "ep": "8",
        "tp": "1",
        "innermost": "ep",
    }
    assert "spine_narrow" in met(**texts) and "spine_narrow" not in met(**texts | {"oversubscription": 1})


def test_ranks_that_do_not_fit_are_cut():
    assert part("bars", nodes="2", gpus_per_node="4", tp="32")["name"] == [
        "Tensor 8",
        "Expert 1",
        "Data 1",
        "Pipeline 1",
    ]


def test_presets_say_what_they_are():
    found = dict(zip(TopologyPlacement.presets, states.presets(TopologyPlacement)))
    assert found["Tensor innermost"] == states.default(TopologyPlacement)
    assert all("tensor_across" not in met(**texts) for texts in TopologyPlacement.presets.values())
    assert part("bars", tp="16")["name"][0] == "Tensor 16" and "tensor_across" in met(tp="16")
    mixtral = shown(**TopologyPlacement.presets["Mixtral 8x22B, experts in the node"])["parts"]["bars"]
    assert mixtral["name"][1] == "Expert 8" and mixtral["place"][1] == "in the node"
    one_nic = TopologyPlacement.presets["One NIC in a node"]
    assert (part("cards", **one_nic)["left"] >= 0).sum() == 8
