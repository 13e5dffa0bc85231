"""tp_scaling by hand: arithmetic over t, four AllReduces, the node's edge, whole heads, and the rule."""

import numpy as np
import pytest

from engine import catalog
from engine.executed import tensor
from engine.mechanism import interconnect
from tests.widgets.reading import Reader
from widgets.training.tp_scaling import RANKS, TpScaling

H100 = catalog.gpu("h100-sxm")


READER = Reader(TpScaling)
shown, met = READER.shown, READER.met


def test_arithmetic_by_hand():
    """h = 8,192, F = 28,672, three matrices: 6·8,192·(2.25h² + 3hF) + 6·8,192²·h FLOPs, at 0.6·989 TFLOP/s,
    over t."""
    flops = 6 * 8192 * (2.25 * 8192**2 + 3 * 8192 * 28672) + 6 * 8192**3
    assert flops / (0.6 * 989e12) == pytest.approx(76.4e-3, rel=1e-3)
    assert shown()["parts"]["times"]["compute_s"] == pytest.approx(flops / (0.6 * 989e12) / RANKS)


def test_four_all_reduces_of_an_activation():
    """134 MB by the fastest of the engine's algorithms; in the node that is the switch, at 0.6 of 450
    GB/s."""
    times, net = shown()["parts"]["times"], interconnect.wires(H100)
    sent_s = [4 * interconnect.all_reduce_s(8192 * 8192 * 2, t, min(t, 8.0), net) for t in RANKS]
    assert times["all_reduces_s"] == pytest.approx(sent_s)
    assert times["all_reduces_s"][3] == pytest.approx(
        4 * 134.2e6 / (0.6 * 450e9), rel=0.35
    )  # and hops and starts
    assert times["layer_s"] == pytest.approx(times["compute_s"] + times["all_reduces_s"])


def test_one_rank_pays_no_traffic_and_efficiency_falls_with_each_more():
    efficiency = shown()["parts"]["times"]["efficiency"]
    assert efficiency[0] == 1 and (np.diff(efficiency) < 0).all()


def test_the_edge_is_a_step_with_a_card_for_each_gpu_and_a_wall_with_one_a_node():
    """Two nodes' eight cards carry 8·50 GB/s, about a link's rate, and between two nodes half of what a ring
    sends is enough; with one card a node everything passes 50 GB/s."""

    def step(**texts):
        sent_s = shown(**texts)["parts"]["times"]["all_reduces_s"]
        return sent_s[4] / sent_s[3]

    assert step() == pytest.approx(1.06, abs=0.02)
    assert step(nic_bytes_per_s=6.25e9) > 5
    assert step(gpu="gb200", per_node=72) == pytest.approx(1.0, abs=0.06), "sixteen share a node there"


def test_wires_change_their_colour_and_mark_at_the_edge():
    assert shown()["parts"]["sent"]["wire"] == ["link"] * 3 + ["network"] * 3
    assert shown(per_node=1)["parts"]["sent"]["wire"] == ["network"] * 6
    assert shown()["parts"]["edge"]["ranks"] == pytest.approx(8 * 1.41)


@pytest.mark.parametrize(
    ("texts", "useful"), [({}, 16), ({"nic_bytes_per_s": 6.25e9}, 8), ({"gpu": "h100-pcie"}, 2)]
)
def test_worth_it_up_to_the_last_efficiency_of_a_half_over_the_wires_really_met(texts, useful):
    """With one card a node the figure shows a quarter at 16 ranks, so no more than a node's eight are worth
    it."""
    parts = shown(**texts)["parts"]
    assert parts["rule"]["useful_ranks"] == useful == RANKS[parts["times"]["efficiency"] >= 0.5][-1]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({}, set()),
        ({"ranks": 16}, {"beyond_the_node"}),
        ({"ranks": 32}, {"beyond_the_node", "mostly_traffic"}),
        ({"ranks": 8, "hidden": 1024}, {"mostly_traffic"}),
        ({"ranks": 16, "hidden": 1024, "per_node": 72}, {"mostly_traffic", "cut_heads"}),
        ({"ranks": 16, "gpu": "gb200", "per_node": 72}, {"mostly_traffic"}),
        ({"ranks": 8, "gpu": "h100-pcie"}, {"mostly_traffic"}),
        ({"ranks": 1, "hidden": 1024}, set()),
        ({"ranks": 8, "nic_bytes_per_s": 6.25e9}, set()),
        ({"ranks": 16, "nic_bytes_per_s": 6.25e9}, {"beyond_the_node", "slower"}),
        ({"ranks": 16, "hidden": 1024}, {"beyond_the_node", "mostly_traffic", "cut_heads"}),
        ({"ranks": 64, "hidden": 1024}, {"beyond_the_node", "slower", "cut_heads"}),
    ],
)
def test_regimes(texts, found):
    assert met(**texts) == found


def test_more_tokens_help_only_against_start_up():
    """Arithmetic and bytes both grow with the tokens: with short sequences side by side hardly anything
    changes."""
    few, many = (shown(seq=2048, batch=n)["parts"]["times"]["efficiency"][3] for n in (4, 64))
    assert many == pytest.approx(few, abs=0.03) and many > few


def test_the_readouts_alarm_where_traffic_wins():
    readouts = shown(ranks=64)["readouts"]
    assert readouts["sending"]["alarm"] and readouts["efficient"]["alarm"]
    assert not shown()["readouts"]["efficient"]["alarm"]


def test_the_layer_is_the_engines():
    at = tensor.layer(8192, 3.5, 1, 8192)
    whole_s = tensor.layer_s(*at[:4], 8, 0.6 * 989e12, interconnect.wires(H100), 3, 1 / 8)
    assert shown()["parts"]["chosen"]["layer_s"] == pytest.approx(float(whole_s))
