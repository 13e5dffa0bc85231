"""Ranks in any order on eight nodes, and two of them swapped: groups counted by hand, times held against
those of groups that lie alike."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalog import gpu, model
from engine.mechanism import interconnect, numbering, placement
from engine.mechanism.numbering import ORDERS, Swap

H100, LLAMA, MIXTRAL = gpu("h100-sxm"), model("llama3-70b"), model("mixtral-8x22b")
FABRIC = placement.LeafNetwork(8.0, 8.0, 8.0, 50e9, 1.0, 8.0)
GPUS = np.arange(64.0)
orders = st.sampled_from(ORDERS)
powers = st.sampled_from([1.0, 2.0, 4.0, 8.0])


def seated(sizes, order=numbering.USUAL, swap=Swap()):
    """The rank on every GPU, and everybody's groups."""
    ranks = numbering.rank_on(GPUS, placement.levels(sizes), order, swap)
    return ranks, numbering.groups(ranks, placement.levels(sizes), 8.0)


def opening_case(order="tensor-expert-data", swap=Swap()):
    """The times of lesson 03's opening case: 70B on 64 H100s, tensor groups of eight."""
    [chosen] = [each for each in ORDERS if each.key == order]
    sizes, work = placement.sizes(64.0, 8.0), placement.PlacedStep(LLAMA, 64.0, 8192.0)
    _, at = seated(sizes, chosen, swap)
    return numbering.step_times_s(work, sizes, at, H100, FABRIC), numbering.wire_bytes(work, sizes, at)


def test_in_the_usual_order_a_rank_has_the_number_of_its_gpu():
    assert (seated(placement.sizes(64.0, 4.0, 8.0))[0] == GPUS).all()


def test_data_first_numbers_the_ranks_across_the_nodes():
    ranks, at = seated(placement.sizes(64.0, 8.0), ORDERS[4])
    assert ORDERS[4].key == "data-tensor-expert" and ranks[:9].tolist() == [0, 8, 16, 24, 32, 40, 48, 56, 1]
    assert set(at.tensor.spread.nodes) == {8} and set(at.data.spread.nodes) == {1}


@given(powers, powers, orders, st.integers(0, 63), st.integers(0, 63))
@settings(max_examples=60, deadline=None)
def test_groups_are_those_of_the_job_wherever_their_ranks_run(tp, ep, order, one, other):
    """Each group counted member by member, on a mesh that is written out."""
    sizes = placement.sizes(64.0, tp, min(ep, 64 / tp))
    ranks, at = seated(sizes, order, Swap(float(one), float(other)))
    assert sorted(ranks) == GPUS.tolist()
    shape = [int(n) for n in (64 / tp / sizes.ep, sizes.ep, tp)]
    copy, expert, tensor = np.unravel_index(ranks.astype(int), shape)
    same = {"tensor": (copy, expert), "expert": (copy, tensor), "data": (tensor,), "copies": (expert, tensor)}
    node = GPUS // 8
    for name, kept in same.items():
        found = getattr(at, name)
        for me in range(64):
            mates = np.all([place == place[me] for place in kept], axis=0)
            _, sizes_of_nodes = np.unique(node[mates], return_counts=True)
            spread = [column[me] for column in found.spread]
            assert spread == [mates.sum(), len(sizes_of_nodes), sizes_of_nodes.min(), sizes_of_nodes.max()]
            assert found.near[me] == (node[mates] == node[me]).sum()


@given(powers, powers, st.sampled_from([0, 1, 2]))
@settings(max_examples=30, deadline=None)
def test_where_all_groups_lie_alike_the_times_are_those_of_the_placement(tp, ep, innermost):
    """``placement`` moves one axis inwards: three of the orders, with the copies beside their experts."""
    sizes = placement.sizes(64.0, tp, min(ep, 64 / tp))
    levels = [("tp", "ep", "copies"), ("ep", "tp", "copies"), ("ep", "copies", "tp")][innermost]
    [order] = [
        each for each in ORDERS if sorted(levels, key=lambda level: getattr(each, level)) == list(levels)
    ]
    work = placement.PlacedStep(MIXTRAL, 512.0, 4096.0)
    _, at = seated(sizes, order)
    ours = numbering.step_times_s(work, sizes, at, H100, FABRIC)
    theirs = placement.axis_times_s(work, sizes, float(innermost), H100, FABRIC)
    assert (ours.tensor, ours.expert, ours.data) == pytest.approx((theirs.tp, theirs.ep, theirs.dp))


def test_the_opening_case_by_hand():
    """2,560 AllReduces of 134 MB: 7/4 of each over NVLink, or through the card of every GPU."""
    buffer, net = 8192 * 8192 * 2, interconnect.wires(H100)
    for order, per_node, wire in (("tensor-expert-data", 8.0, "link"), ("data-tensor-expert", 1.0, "nic")):
        times, sent = opening_case(order)
        assert times.tensor == pytest.approx(2560 * interconnect.all_reduce_s(buffer, 8.0, per_node, net))
        assert np.unique(getattr(sent.tp, wire)) == pytest.approx(2560 * 7 / 4 * buffer)
    assert times.step == pytest.approx(times.compute + times.tensor + times.data)


def test_one_swap_makes_the_whole_step_wait_for_two_cards():
    """Of two groups one rank is alone on a node, and the sum of the other seven passes its card, both
    ways."""
    (whole, _), (torn, sent) = opening_case(), opening_case(swap=Swap(7.0, 8.0))
    buffer = 8192 * 8192 * 2
    alone = [7, 8]
    assert sent.tp.nic[alone] == pytest.approx(2560 * buffer) and sent.tp.link[alone] == pytest.approx(0)
    assert sent.tp.nic[:7] == pytest.approx(2560 * buffer / 7) and not sent.tp.nic[16:].any()
    assert 2560 * buffer / 50e9 < torn.tensor < 1.2 * 2560 * buffer / 50e9
    assert torn.tensor > 5 * whole.tensor and torn.data == pytest.approx(whole.data, rel=0.1)


def test_a_swap_inside_a_node_changes_nothing_and_back_again_neither():
    usual, _ = opening_case()
    for swap in (Swap(0.0, 5.0), Swap(9.0, 9.0)):
        assert opening_case(swap=swap)[0] == pytest.approx(usual)


@given(powers, powers, orders, st.integers(0, 63), st.integers(0, 63))
@settings(max_examples=60, deadline=None)
def test_no_axis_is_faster_than_its_busiest_wire(tp, ep, order, one, other):
    """A switch that sums needs as little as half of a ring's bytes over NVLink."""
    sizes, work = placement.sizes(64.0, tp, min(ep, 64 / tp)), placement.PlacedStep(MIXTRAL, 64.0, 8192.0)
    _, at = seated(sizes, order, Swap(float(one), float(other)))
    times = numbering.step_times_s(work, sizes, at, H100, FABRIC)
    sent = numbering.wire_bytes(work, sizes, at)
    for spent, wires in zip((times.tensor, times.expert, times.data), sent):
        busy = placement.busy_s(wires, H100, FABRIC)
        assert np.max([busy.link / 2, busy.nic]) <= spent * (1 + 1e-9)


def test_an_order_is_named_from_the_inside():
    every = itertools.permutations(("tensor", "expert", "data"))
    assert [each.key for each in ORDERS] == ["-".join(axes) for axes in every]
