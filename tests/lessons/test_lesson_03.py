"""Lesson 03 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the engine."""

import numpy as np
import pytest

from engine import catalog, collectives, hierarchy, interconnect, placement, ranks, ranks_operations
from tests.lessons.reading import Lesson
from widgets.kit import prose

LESSON = Lesson("03-interconnect.md")
H100, LLAMA = catalog.gpu("h100-sxm"), catalog.model("llama3-70b")
CHIP = hierarchy.hierarchies()["h100-sxm"]
TP, DP, PP = 0, 2, 3                        # places of the axes in placement.AXES
CASE = "placement.sizes(64, tp=8), "
RUN_405B = 'model("llama3.1-405b"), 2048, 8192), placement.sizes(16384, tp=8, pp=16)'

# worked by hand from 450, 50 and 400 GB/s: a part of the expression -> what the reader must see
BY_HAND = {
    'hierarchy.link_over_network(hierarchy.hierarchies()["h100-sxm"])': "9×",    # 450 / 50
    'hierarchy.as_advertised(hierarchy.hierarchies()["h100-sxm"])': "18×",       # 900 / 50
    'link("nvlink4").bytes_per_s / node("dgx-h100").outgoing_bytes_per_s': "1.13",
    'gpu("h100-sxm").hbm_bytes_per_s / link("nvlink4").bytes_per_s | times': "7.4×",
    '4 * link("nvlink4").bytes_per_s': "1.8 TB/s",
    '512 * link("ib-ndr").bytes_per_s': "25.6 TB/s",
    'ring_all_reduce_s(memory.weight_bytes(70e9), 8, link("nvlink4")': "544 ms",         # 7/4 · 140 / 450
    "ring_all_reduce_s(memory.weight_bytes(70e9) / 8, 8": "613 ms",                      # 7/4 · 17.5 / 50
    "two_level_all_reduce_s(memory.weight_bytes(70e9), 64, 8": "1.16 s",
    'ring_all_reduce_s(memory.weight_bytes(70e9), 64, link("ib-ndr")': "5.51 s",
    'ring_all_reduce_s(memory.weight_bytes(70e9), 64, node("dgx-h100")': "0.69 s",       # 63/32 · 140 / 400
    "480 / 370": "1.3×",
    "8192 * 8192 * 2": "134 MB",
    "sizes(64, tp=8)).tensor_calls": "2,560",                                    # 4 · 80 layers · 8 sequences
    "placement.sizes(64, tp=8), 0, placement.Fabric(8)).tp.link": "601 GB",      # 2,560 · 134 MB · 7/4
    "all_to_all_floor_s(1e9, placement.Fabric(8)) | ms": "17.5 ms",              # 7/8 · 20 ms
    "all_to_all_floor_s(1e9, placement.Fabric(8, oversubscription=4)) | ms": "40 ms",    # 4 · 1/2 · 20 ms
    "sum(placement.held_parameters": "5.56B",                                    # 135.3/32 + 5.3/4
    "ep=8, pp=4)) | GB": "89 GB",                                                # 5.56B · 16
    "pp=4), stage=1) | GB": "35.4 GB",                                           # 4 · 5.56B + 12 · 1.1B
    "8192 * 16384 * 2": "268 MB",
    RUN_405B + ").tensor_calls": "504",                                          # 4 · 126/16 layers · 16 micro-batches
    RUN_405B + ", 0, placement.Fabric(2048)).tp.link": "237 GB",                 # 504 · 268 MB · 7/4
    RUN_405B + ", 0, placement.Fabric(2048)).tp, gpu": "0.526 s",                # 237 / 450
    RUN_405B + ", 2, placement.Fabric(2048)).tp, gpu": "4.74 s",                 # 237 / 50
    RUN_405B + ", 0, placement.Fabric(2048)).dp.nic": "12.6 GB",                 # 127/64 · 405.9e9/128 · 2
    RUN_405B + ").stage_bytes": "33.6 MB",                                       # 268 / 8
    'link("nvlink5").bytes_per_s / link("ib-ndr").bytes_per_s': "18×",
    "7 / 8 * 1e9": "1.94 ms",
    "56 / 64 * 1e9": "17.5 ms",
    "120 / 128 * 1e9": "18.8 ms",                                                # 937.5 MB / 50 GB/s
    "96 / 128 * 1e9": "60 ms",                                                   # 750 MB / 12.5 GB/s
    "(96 / 128 * 4) / (120 / 128)": "3.2×",
    "memory.sharded_state_bytes(70e9, ranks=64, stage=3) | GB": "17.5 GB",
    'memory.state_bytes(70e9) / link("ib-ndr")': "22.4 s",                       # 1,120 / 50
    "memory.state_bytes(70e9) / 2e12": "0.56 s",
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_widgets_stand_in_this_order():
    assert LESSON.widgets() == ["bandwidth_pyramid", "topology_placement"]


# -- what the words claim --------------------------------------------------------------------------------------------
def seconds(tp: int, innermost: int):
    """Tensor-parallel AllReduces of the opening case in one step."""
    sizes, fabric = placement.sizes(64, tp=tp), placement.Fabric(8)
    return placement.axis_times_s(placement.Work(LLAMA, 64, 8192), sizes, innermost, H100, fabric).tp


def test_the_opening_case_moves_the_same_bytes_in_more_than_nine_times_the_time():
    work, sizes, fabric = placement.Work(LLAMA, 64, 8192), placement.sizes(64, tp=8), placement.Fabric(8)
    inside, across = (placement.wire_bytes(work, sizes, innermost, fabric).tp for innermost in (TP, DP))
    assert inside.link == pytest.approx(across.nic) and inside.nic == across.link == 0
    assert 9 < seconds(8, DP) / seconds(8, TP) < 11


def test_the_table_of_the_opening_case_ends_in_its_own_numbers():
    wires = interconnect.wires(H100)
    inside, across = (2560 * interconnect.all_reduce_s(8192**2 * 2, 8, per_node, wires) for per_node in (8, 1))
    assert (inside, across) == pytest.approx((seconds(8, TP), seconds(8, DP)))
    rings = [2560 * interconnect.ring_s(8192**2 * 2, 8, per_node, wires) for per_node in (8, 1)]
    assert rings[1] / rings[0] < 9 < across / inside


def test_the_rule_for_the_bisection_gives_the_exercises_times():
    assert placement.all_to_all_floor_s(1e9, placement.Fabric(16, oversubscription=4)) == pytest.approx(60e-3)
    assert placement.all_to_all_floor_s(1e9, placement.Fabric(8)) == pytest.approx(17.5e-3)


def test_512_gpus_send_for_each_the_tensor_traffic_of_64():
    few = placement.wire_bytes(placement.Work(LLAMA, 64, 8192), placement.sizes(64, tp=8), TP, placement.Fabric(8))
    many = placement.wire_bytes(placement.Work(LLAMA, 512, 8192), placement.sizes(512, tp=8, pp=4), TP,
                                placement.Fabric(64))
    assert few.tp.link == pytest.approx(many.tp.link)


def test_mixtral_does_not_fit_without_zero_and_does_with_its_first_stage():
    mixtral, cut = catalog.model("mixtral-8x22b"), placement.sizes(128, ep=8, pp=4)
    assert placement.state_bytes(mixtral, cut) > H100.hbm_bytes > 2 * placement.state_bytes(mixtral, cut, stage=1)


def test_sixteen_tensor_ranks_on_nodes_of_eight_take_three_times_as_long():
    assert seconds(16, TP) / seconds(8, TP) == pytest.approx(3.2, abs=0.3)


def test_what_it_takes_to_be_fast_lies_near_a_megabyte_at_every_level():
    half = hierarchy.half_rate_bytes(CHIP)
    assert ((half > 0.3e6) & (half < 2e6)).all()


def test_the_chip_falls_by_three_to_twelve():
    rates = hierarchy.bytes_per_s(CHIP)[:4]
    steps = rates[:-1] / rates[1:]
    assert steps.min() == pytest.approx(3, abs=0.2) and steps.max() == pytest.approx(12, abs=0.2)


def test_an_all_to_all_fills_the_bisection_and_a_ring_does_not():
    def across(run):
        return run.link_bytes[:32, 32:].sum() / 256
    assert across(ranks_operations.all_to_all(ranks.example(64, 64))) == 64 / 4           # N/2 ranks, S/2 each
    assert across(ranks_operations.all_reduce(ranks.example(64, 64))) < 2


def test_two_levels_equal_the_two_rings_of_the_text():
    inside = collectives.ring_all_reduce_s(140e9, 8, 450e9, 0)
    across = collectives.ring_all_reduce_s(140e9 / 8, 8, 50e9, 0)
    assert collectives.two_level_all_reduce_s(140e9, 64, 8, 450e9, 0, 50e9, 0) == pytest.approx(inside + across)
    assert max(inside, across) / (inside + across) == pytest.approx(0.5, abs=0.05)        # overlapped: about half


def test_two_levels_take_28_steps_where_a_flat_ring_takes_126():
    buffers = ranks.example(64, 64)
    two = ranks_operations.all_reduce(buffers, "two_level", gpus_per_node=8)
    assert two.busy_steps == 28 and ranks_operations.all_reduce(buffers).busy_steps == 126
    leaves = [(move.source // 8 != move.destination // 8) for step in two.steps for move in step.moves[:1]]
    assert sum(leaves) == 14


def test_a_ring_in_order_of_the_leaves_sends_a_quarter_of_its_hops_up():
    hops = [(i // 4, (i + 1) % 16 // 4) for i in range(16)]
    assert np.mean([one != other for one, other in hops]) == 1 / 4


def test_tensor_parallelism_stays_inside_for_405b_and_the_rest_need_not():
    work = placement.Work(catalog.model("llama3.1-405b"), 2048, 8192)
    sizes, fabric = placement.sizes(16384, tp=8, pp=16), placement.Fabric(2048)
    sent = placement.wire_bytes(work, sizes, TP, fabric)
    assert sent.tp.nic == 0
    assert placement.busy_s(sent.dp, H100, fabric).nic < 0.1 * 6.15
    assert sent.pp.nic < sent.dp.nic < 0.1 * sent.tp.link


def test_the_three_axes_of_the_table_are_sorted_by_what_they_send():
    sent = placement.wire_bytes(placement.Work(LLAMA, 512, 8192), placement.sizes(512, tp=8, pp=4), TP, placement.Fabric(64))
    totals = [sum(sent[axis][:2]) for axis in (TP, DP, PP)]
    assert totals == sorted(totals, reverse=True)


def test_a_prediction_is_right_where_the_engine_says_so():
    assert [eval(right, prose.namespace()) for right in LESSON.right_answers()] == [1, 2]
