"""The device mesh by hand and against numpy's own row-major numbering, which is that of PyTorch's
init_device_mesh."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.mechanism import mesh
from engine.mechanism.mesh import ORDERS, USUAL
from tests.said import refused

CLASSIC = mesh.sizes(512.0, tp=8.0, pp=4.0)
RANKS = np.arange(512.0)
powers = st.sampled_from([1.0, 2.0, 4.0, 8.0])


def members(rank, size=CLASSIC, order=USUAL):
    """The peers of a rank on each axis, by number."""
    found = mesh.peers(RANKS, rank, size, order)._asdict()
    return {axis: np.flatnonzero(same).tolist() for axis, same in found.items()}


def test_the_classic_by_hand():
    """TP 8 × DP 16 × PP 4: tensor peers side by side, data peers every eighth GPU, stages 128 apart."""
    assert CLASSIC == (8, 1, 1, 16, 4)
    found = members(0)
    assert (
        found["tp"] == list(range(8))
        and found["dp"] == list(range(0, 128, 8))
        and found["pp"] == [0, 128, 256, 384]
    )
    assert mesh.coordinates(300.0, CLASSIC) == (4, 0, 0, 5, 2)  # 300 = 2 · 128 + 5 · 8 + 4
    assert mesh.nodes(CLASSIC, USUAL, 8.0) == (1, 1, 1, 16, 4)


def test_data_innermost_spreads_every_tensor_group_over_the_most_nodes():
    order = next(order for order in ORDERS if order.key.startswith("dp"))
    assert members(0, order=order)["tp"] == list(range(0, 128, 16))
    assert mesh.nodes(CLASSIC, order, 8.0).tp == 8


def test_sixteen_tensor_ranks_need_two_nodes_of_eight_and_one_of_sixteen():
    wide = mesh.sizes(512.0, tp=16.0, pp=4.0)
    assert mesh.nodes(wide, USUAL, 8.0).tp == 2 and mesh.nodes(wide, USUAL, 16.0).tp == 1


def test_expert_ranks_are_neighbours_among_the_data_ranks():
    size = mesh.sizes(512.0, tp=2.0, pp=4.0, ep=8.0)
    found = members(0, size)
    assert (
        found["ep"] == list(range(0, 16, 2))
        and set(found["ep"]) < set(found["dp"])
        and len(found["dp"]) == 64
    )


def folded_groups(size, order):
    """The expert groups by hand: each stage's ranks in their order, cut into stretches."""
    stage = mesh.coordinates(RANKS, size, order).pp
    for each in np.unique(stage):
        ranks = RANKS[stage == each]
        yield from ranks.reshape(-1, int(size.ep))


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.key)
@pytest.mark.parametrize(
    ("tp", "pp", "ep"), [(8.0, 4.0, 8.0), (8.0, 2.0, 64.0), (2.0, 8.0, 4.0), (1.0, 1.0, 16.0)]
)
def test_folded_experts_are_neighbours_among_all_ranks_of_a_stage(order, tp, pp, ep):
    size = mesh.sizes(512.0, tp=tp, pp=pp, ep=ep, folded=True)
    assert size.ep == ep
    for group in folded_groups(size, order):
        at = mesh.peers(RANKS, group[0], size, order, folded=True)
        assert RANKS[at.ep].tolist() == group.tolist()
        assert mesh.coordinates(group, size, order, folded=True).ep.tolist() == list(range(int(ep)))
        nodes = len(np.unique(mesh.node(group, 8.0)))
        assert nodes == mesh.nodes(size, order, 8.0, folded=True).ep


def test_folding_brings_experts_back_into_the_node_of_the_tensor_ranks():
    """EP 8 beside TP 8: every eighth GPU on eight nodes, or the eight of one."""
    size = mesh.sizes(512.0, tp=8.0, pp=4.0, ep=8.0)
    assert mesh.nodes(size, USUAL, 8.0).ep == 8 and mesh.nodes(size, USUAL, 8.0, folded=True).ep == 1
    assert (
        mesh.sizes(64.0, tp=8.0, ep=32.0).ep == 8 and mesh.sizes(64.0, tp=8.0, ep=32.0, folded=True).ep == 32
    )
    related = mesh.relation(RANKS, 0.0, size, USUAL, folded=True)
    assert related[1:8].tolist() == [4.0] * 7 and related[8] == 5


@given(powers, powers, powers, st.sampled_from(ORDERS), st.integers(0, 511))
def test_coordinates_are_those_of_a_row_major_array(tp, pp, cp, order, rank):
    """init_device_mesh numbers ranks as arange(n).reshape(sizes), the last dimension innermost."""
    size = mesh.sizes(512.0, tp=tp, pp=pp, cp=cp)
    outermost_first = sorted(("tp", "cp", "dp", "pp"), key=lambda axis: -getattr(order, axis))
    shape = [int(getattr(size, axis)) for axis in outermost_first]
    found = mesh.coordinates(float(rank), size, order)
    assert [getattr(found, axis) for axis in outermost_first] == list(np.unravel_index(rank, shape))


@given(powers, powers, powers, powers, st.sampled_from(ORDERS), st.integers(0, 511))
def test_groups_have_their_axis_size_and_meet_in_the_rank_alone(tp, pp, cp, ep, order, rank):
    size = mesh.sizes(512.0, tp=tp, pp=pp, cp=cp, ep=ep)
    found = members(float(rank), size, order)
    assert {axis: len(group) for axis, group in found.items()} == size._asdict()
    for axis in ("tp", "cp", "pp"):
        for other in ("dp", "pp", "cp"):
            if axis != other:
                assert set(found[axis]) & set(found[other]) == {rank}
    relations = mesh.relation(RANKS, float(rank), size, order)
    assert (relations == 1).sum() == 1 and (relations > 0).sum() == tp + cp + pp + size.dp - 3


@given(powers, st.sampled_from(ORDERS), st.sampled_from([4.0, 8.0, 16.0]), st.integers(0, 511))
def test_the_nodes_of_a_group_are_those_that_its_members_are_on(tp, order, gpus_per_node, rank):
    size = mesh.sizes(512.0, tp=tp, pp=4.0)
    counted = mesh.nodes(size, order, gpus_per_node)
    for axis, group in members(float(rank), size, order).items():
        assert len({mesh.node(member, gpus_per_node) for member in group}) == getattr(counted, axis)


def test_wishes_that_do_not_fit_are_cut_in_turn():
    assert mesh.sizes(16.0, tp=32.0, pp=4.0, cp=2.0, ep=8.0) == (16, 1, 1, 1, 1)
    assert mesh.sizes(64.0, tp=8.0, pp=4.0, cp=4.0, ep=8.0) == (8, 2, 1, 1, 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mesh.sizes(0), ("gpus", "1", "0")),
        (lambda: mesh.sizes(8, tp=1.5), ("tp",)),
        (lambda: mesh.coordinates(-1, CLASSIC), ("rank", "0")),
        (lambda: mesh.node(3, 0), ("gpus_per_node",)),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()
