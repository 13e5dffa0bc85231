"""Lesson 03 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the
engine."""

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.executed import ranks, ranks_operations
from engine.mechanism import collectives, hierarchy, interconnect, matmul, placement, start_ups
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("03-interconnect.md")
H100 = catalog.gpu("h100-sxm")
CHIP = hierarchy.hierarchies()["h100-sxm"]
NVLINK, CARD = catalog.link("nvlink4"), catalog.link("ib-ndr")

# worked by hand from 450, 50 and 400 GB/s: a part of the expression -> what the reader must see
BY_HAND = {
    "hierarchy.link_over_network(pyramid)": "9×",  # 450 / 50
    "hierarchy.as_advertised(pyramid)": "18×",  # 900 / 50
    "nvlink.bytes_per_s / dgx_wire": "1.13",
    "h100.hbm_bytes_per_s / nvlink.bytes_per_s | times": "7.4×",
    "4 * nvlink.bytes_per_s": "1.8 TB/s",
    "512 * card.bytes_per_s": "25.6 TB/s",
    "ring_s(gradient, ranks=8, bytes_per_s=nvlink": "544 ms",  # 7/4 · 140 / 450
    "ring_s(buffer=gradient / 8, ranks=8": "613 ms",  # 7/4 · 17.5 / 50
    "two_levels_s(gradient)": "1.16 s",
    "nodes_ring_s(gradient, ranks=64)": "0.689 s",  # 63/32 · 140 / 400
    "480 / 370": "1.3×",
    "8192 * 8192 * 2": "134 MB",
    "2560 * 7 / 4 * buffer": "601 GB",  # 2,560 · 134 MB · 7/4
    "start_ups.mean_hop_s(dgx) | µs": "1 µs",  # (7 · 0.757 + 2.7) / 8
    "nodes_ring_s(buffer=0, ranks=64)": "123 µs",  # 2 · (56 · 0.757 + 7 · 2.7)
    "two_levels_s(buffer=0)": "48.4 µs",  # 14 · (0.757 + 2.7)
    "backward_s | ms": "409 ms",  # 4 · 8.03e9 · 8,192 / 643.9e12
    "nodes_ring_s(gradient, ranks=1024)": "0.701 s",  # 1023/512 · 140 / 400 + 2 ms
    "all_to_all_s(nodes=128, nodes_per_leaf=32) | ms": "19.8 ms",  # 127/128 · 20
    "all_to_all_s(nodes=128, nodes_per_leaf=32, oversubscription=4)": "60 ms",  # 4 · 3/4 · 20
    "nodes_ring_s(buffer=4, ranks=1024) | ms": "2.04 ms",
    "all_to_all_s() | ms": "17.5 ms",  # 7/8 · 20 ms
    "all_to_all_s(oversubscription=4) | ms": "40 ms",  # 4 · 1/2 · 20 ms
    "nvlink5.bytes_per_s / card.bytes_per_s": "18×",
    "7 / 8 * 1e9": "1.94 ms",
    "56 / 64 * 1e9": "17.5 ms",
    "120 / 128 * 1e9": "18.8 ms",  # 937.5 MB / 50 GB/s
    "96 / 128 * 1e9": "60 ms",  # 750 MB / 12.5 GB/s
    "(96 / 128 * 4) / (120 / 128)": "3.2×",
    "a_slice | GB": "13.1 GB",  # 12 · 70 / 64
    "saved_bytes / card": "16.8 s",  # 840 / 50
    "saved_bytes / 2e12": "0.42 s",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


# -- what the words claim ------------------------------------------------------------------------------------


def test_the_opening_case_is_nine_times_as_slow_for_the_same_bytes_and_rings_are_less():
    wires = interconnect.wires(H100)
    inside, across = (
        2560 * interconnect.all_reduce_s(8192**2 * 2, 8, per_node, wires) for per_node in (8, 1)
    )
    assert LESSON.shows("fastest_s(per_node=8) | s") == f"{inside:.3g} s"
    assert LESSON.shows("fastest_s(per_node=1) | s") == f"{across:.3g} s"
    rings = [2560 * interconnect.ring_s(8192**2 * 2, 8, per_node, wires) for per_node in (8, 1)]
    assert rings[1] / rings[0] < 9 < across / inside


def test_the_rule_for_the_bisection_gives_the_exercises_times():
    assert placement.all_to_all_floor_s(1e9, placement.LeafNetwork(16, oversubscription=4)) == pytest.approx(
        60e-3
    )
    assert placement.all_to_all_floor_s(1e9, placement.LeafNetwork(8)) == pytest.approx(17.5e-3)


def test_what_it_takes_to_be_fast_lies_between_a_tenth_of_a_megabyte_and_one_and_a_half():
    half = hierarchy.half_rate_bytes(CHIP)
    assert ((half > 0.1e6) & (half < 1.5e6)).all()


def test_the_chip_falls_by_three_to_twelve():
    rates = hierarchy.bytes_per_s(CHIP)[:4]
    steps = rates[:-1] / rates[1:]
    assert steps.min() == pytest.approx(3, abs=0.2) and steps.max() == pytest.approx(12, abs=0.2)


def test_an_all_to_all_fills_the_bisection_and_a_ring_does_not():
    def across(run):
        return run.link_bytes[:32, 32:].sum() / 256

    assert across(ranks_operations.all_to_all(ranks.example(64, 64))) == 64 / 4  # N/2 ranks, S/2 each
    assert across(ranks_operations.all_reduce(ranks.example(64, 64))) < 2


def test_two_levels_equal_the_two_rings_of_the_text():
    inside = collectives.ring_all_reduce_s(140e9, 8, 450e9, 0)
    across = collectives.ring_all_reduce_s(140e9 / 8, 8, 50e9, 0)
    assert collectives.two_level_all_reduce_s(140e9, 64, 8, 450e9, 0, 50e9, 0) == pytest.approx(
        inside + across
    )
    assert max(inside, across) / (inside + across) == pytest.approx(0.5, abs=0.05)  # overlapped: about half


def test_the_rule_for_a_ring_through_nodes_is_its_hops_and_bytes():
    """64 GPUs: 56 hops inside and 7 between, in each half; the border's 400 GB/s are the slower wire."""
    starts_s = 2 * (56 * start_ups.hop_s(NVLINK) + 7 * start_ups.hop_s(CARD))
    dgx, one_node_s = catalog.node("dgx-h100"), 14 / 8 * 1e9 / 450e9 + 14 * start_ups.hop_s(NVLINK)
    assert start_ups.ring_through_s(1e9, 64.0, dgx) == pytest.approx(126 / 64 * 1e9 / 400e9 + starts_s)
    assert start_ups.ring_through_s(1e9, 8.0, dgx) == pytest.approx(one_node_s)


def test_one_card_does_not_hide_the_gradient_and_two_do():
    backward_s = 4 * 8.03e9 * 8192 / (0.65 * 989e12)
    one, two = (collectives.ring_all_reduce_s(16.06e9, 4, cards * 50e9, 0) for cards in (1, 2))
    assert one > backward_s > 1.5 * two


def test_a_ring_along_the_rails_crosses_the_spine_four_times_in_128():
    hops = [(i // 32, (i + 1) % 128 // 32) for i in range(128)]
    assert np.mean([one != other for one, other in hops]) == 1 / 32 < 1 / 4


def test_two_levels_take_28_steps_where_a_flat_ring_takes_126():
    buffers = ranks.example(64, 64)
    two = ranks_operations.all_reduce(buffers, "two_level", gpus_per_node=8)
    assert two.busy_steps == 28 and ranks_operations.all_reduce(buffers).busy_steps == 126
    leaves = [(move.source // 8 != move.destination // 8) for step in two.steps for move in step.moves[:1]]
    assert sum(leaves) == 14


def test_a_ring_in_order_of_the_leaves_sends_a_quarter_of_its_hops_up():
    hops = [(i // 4, (i + 1) % 16 // 4) for i in range(16)]
    assert np.mean([one != other for one, other in hops]) == 1 / 4


def test_the_figure_s_step_is_the_opening_case_s_and_two_swapped_ranks_nearly_double_it():
    step_s, tensor_s = LESSON.value("step_s()"), LESSON.value("fastest_s(per_node=8)")
    compute_s = 6 * models.parameters(catalog.model("llama3-70b")) * 8192 / matmul.product_flops_per_s(H100)
    assert compute_s + tensor_s < step_s < compute_s + tensor_s + 1  # and the gradients' sum
    assert 1.7 < LESSON.truth("rank_wires") / step_s < 1.95


def test_a_prediction_is_right_where_the_engine_says_so():
    assert LESSON.right("bandwidth_pyramid") == 1
