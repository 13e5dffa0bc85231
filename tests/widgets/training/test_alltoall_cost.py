"""alltoall_cost by hand: the cliff behind the node, what hides behind the experts, and what fits."""

import numpy as np
import pytest

from engine.executed import spare_experts
from engine.mechanism import experts
from tests import states
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.training.alltoall_cost import RANKS, AlltoallCost

READER = Reader(AlltoallCost)
shown, part, met, text = READER.shown, READER.part, READER.met, READER.text


def test_bars_are_the_layer_at_each_number_of_ranks():
    bars, widget = part("bars"), AlltoallCost()
    for i, ranks in enumerate(RANKS):
        found = experts.layer(widget.model, 4096, ranks, widget.machine, 256, False, False)
        assert bars["work"][i] == pytest.approx(found.experts_s)
        assert bars["top"][i] == pytest.approx(experts.wires_s(found))
        assert bars["dispatch"][i] == pytest.approx(found.dispatch_s)
    assert bars["wire"] == ["link"] * 4 + ["network"] * 5
    assert bars["over"].tolist() == [0] * 4 + [1] * 5


def test_pairs_of_bars_do_not_overlap():
    bars = part("bars")
    assert (bars["work_right"] < bars["left"]).all() and (bars["right"][:-1] < bars["work_left"][1:]).all()


def test_the_chosen_slot_holds_its_bars_and_the_edge_lies_behind_the_node():
    chosen, bars, edge = part("chosen", ep="16"), part("bars"), part("edge")
    assert chosen["left"] < bars["work_left"][4] < chosen["x"] < bars["right"][4] < chosen["right"]
    assert bars["right"][3] < edge["x"] < bars["work_left"][4]
    rack = part("edge", machine="gb200-nvl72")
    assert bars["right"][6] < rack["x"] < bars["work_left"][7], "64 of the rack's 72 share it"


def test_the_target_is_a_layer_of_wires_off_the_node():
    """On H100s a layer is mostly wires from 256 ranks on; on B200s, which compute twice as fast, from 64."""
    every = ("1", "8", "16", "64", "256")
    assert [n for n in every if "mostly_wires" in met(ep=n)] == ["256"]
    assert next(n for n in every if "mostly_wires" in met(ep=n, machine="dgx-b200")) == "64"
    assert "off_node" not in met(ep="64", machine="dgx-b200"), "one of the two speaks"


def test_wires_take_longer_from_the_first_step_off_the_node():
    assert [n for n in ("1", "2", "4", "8", "16", "32", "64") if "off_node" in met(ep=n)] == [
        "16",
        "32",
        "64",
    ]
    assert not {"off_node", "mostly_wires"} & met(ep="64", machine="gb200-nvl72")
    assert {"off_node", "mostly_wires"} & met(ep="128", machine="gb200-nvl72")


def test_what_fits_does_not_hide_and_what_hides_does_not_fit():
    assert met() == {"too_large"} and met(ep="64") == {"off_node"}


def test_once_to_each_of_four_nodes_halves_the_wires_and_wide_experts_hide_them():
    each, four = (part("bars", way=way)["top"][6] for way in ("each", "four"))
    assert each / four == pytest.approx(2, rel=0.02)  # 7 copies, 3.5; the starts are alike
    mixtral = part("bars", model="mixtral-8x22b")
    assert mixtral["over"].sum() == 0 and (mixtral["top"][4:] == 0).all(), "8 experts: no more than 8 ranks"


def test_more_ranks_than_experts_are_taken_as_so_many():
    assert not lacks(shown(model="mixtral-8x22b", ep="64")["summary"], "8 expert ranks")


def test_few_tokens_starve_the_experts_and_many_ranks_feed_them():
    assert "starved" in met(tokens=64) and "starved" not in met(tokens=8192)


def test_the_fullest_gpu_is_waited_for():
    """Four of 256 experts on each of 64 ranks: the one with the favourite has over six times the mean. Copies
    in a place of each make all alike, and each GPU has five experts' weights."""
    even = part("bars")
    uneven = part("bars", liked="unlike")
    spared = part("bars", liked="unlike", spare="1")
    rows = spare_experts.liked(256, 0.8)
    fullest = max(sum(rows[4 * gpu : 4 * gpu + 4]) for gpu in range(64)) / 4
    assert 6 < fullest < 7
    assert uneven["top"][6] / even["top"][6] == pytest.approx(fullest, rel=0.02)
    assert uneven["work"][6] > 0.8 * fullest * even["work"][6]
    assert spared["top"][6] == pytest.approx(even["top"][6], rel=0.01)
    assert "waits_for_the_fullest" in met(ep="64", liked="unlike")
    assert "waits_for_the_fullest" not in met(ep="64", liked="unlike", spare="1")
    assert text("holds", ep="64", spare="1") == "25.5 GB"


def test_a_model_of_eight_experts_has_its_own_favourites():
    rows = spare_experts.liked(8, 0.8)
    assert float(text("uneven", model="mixtral-8x22b", ep="64", liked="unlike").rstrip("×")) == pytest.approx(
        max(rows), rel=0.01
    )


def test_the_weights_below_say_from_how_many_ranks_they_fit():
    """1.31 TB over 8 ranks are 163 GB; 16 leave 81.7 of an H100's 80, 32 fit."""
    weights = part("weights")
    assert weights["text"][3] == "163 GB" and weights["text"][4] == "81.7 GB"
    assert not lacks(weights["title"][0], "from 32 ranks", "H100 SXM", "80 GB")
    few = part("weights", model="mixtral-8x22b")
    assert few["text"][4:] == [""] * 5 and "from 4 ranks" in few["title"][0]


def test_what_is_held():
    assert text("holds") == "163 GB" and text("holds", ep="64") == "20.4 GB"


def test_a_mark_says_what_it_is():
    said = AlltoallCost().hints()["bars"][3]
    assert not lacks(said, "8 ranks", "dispatch 1.38 ms", "combine 1.38 ms", "experts 7.02 ms")


def test_a_click_chooses_a_bar():
    assert part("places")["x"] == pytest.approx((np.arange(9) + 0.5) / 9)
    assert (part("places", model="mixtral-8x22b")["x"][4:] < 0).all()


def test_presets_say_what_they_are():
    found = dict(zip(AlltoallCost.presets, states.presets(AlltoallCost)))
    assert found["Experts in one node"] == states.default(AlltoallCost)
    trained = shown(**AlltoallCost.presets["DeepSeek-V3 as trained"])
    assert not lacks(trained["summary"], "64 expert ranks", "DeepSeek-V3")
