"""Traffic by axis and wire, held against groups enumerated GPU by GPU and collectives executed on them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.catalog import models
from engine.executed import ranks_operations as operations
from engine.mechanism import interconnect, placement
from engine.mechanism import mesh as device_mesh
from engine.step import layout
from tests.cases import in_one_test
from tests.said import refused

GPU = catalog.gpu("h100-sxm")
MIXTRAL, LLAMA = catalog.model("mixtral-8x7b"), catalog.model("llama3-70b")
FABRIC = placement.LeafNetwork(nodes=8.0, nodes_per_leaf=2.0)
WORK = placement.PlacedStep(MIXTRAL, global_batch=512.0, seq=4096.0)
powers = st.sampled_from([1.0, 2.0, 4.0])
KEYS = [axis.key for axis in placement.AXES]


def order_of(innermost):
    """The levels of the mesh, innermost first, after an axis was moved to the inside. Data ranks are split
    into expert ranks and, further out, the copies of each expert."""
    usual = ["tp", "ep", "copies", "pp"]
    moved = {"dp": ["ep", "copies"]}.get(KEYS[innermost], [KEYS[innermost]])
    return moved + [key for key in usual if key not in moved]


def mesh(axis_sizes, innermost):
    """The coordinate of every GPU along each level, found by counting through the mesh, and its data rank."""
    order, size = order_of(innermost), placement.levels(axis_sizes)._asdict()
    shape = [int(size[key]) for key in reversed(order)]
    grid = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    found = dict(zip(reversed(order), grid))
    return found | {"dp": found["ep"] + int(axis_sizes.ep) * found["copies"]}


def groups(axis_sizes, innermost, *axes):
    """The groups of GPUs that differ only along these axes."""
    found = mesh(axis_sizes, innermost)
    within = {"dp": {"ep", "copies"}}
    varied = set().union(*(within.get(axis, {axis}) for axis in axes))
    rest = list(zip(*(found[key] for key in placement.Levels._fields if key not in varied)))
    return [[gpu for gpu, other in enumerate(rest) if other == one] for one in dict.fromkeys(rest)]


def by_wire(run, group, fabric):
    """Bytes of an executed collective that stay in the node, leave it, and leave the leaf."""
    gpu = np.array(group)
    node, leaf = gpu // int(fabric.gpus_per_node), gpu // int(fabric.gpus_per_leaf)
    crosses, climbs = node[:, None] != node, leaf[:, None] != leaf
    return np.array([(run.link_bytes * mask).sum() for mask in (~crosses, crosses, climbs)])


meshes = st.builds(
    lambda tp, ep, pp, copies: placement.sizes(tp * ep * pp * copies, tp, ep, pp), *[powers] * 4
)


def gpus_of(axis_sizes):
    return float(np.prod(placement.levels(axis_sizes)))


@given(axis_sizes=meshes)
def test_expert_ranks_are_data_ranks_and_take_no_gpus_of_their_own(axis_sizes):
    tp, ep, dp, pp = axis_sizes
    assert tp * dp * pp == gpus_of(axis_sizes), "the experts multiply nothing"
    assert placement.levels(axis_sizes).copies == dp / ep >= 1
    without = placement.sizes(gpus_of(axis_sizes), tp, 1.0, pp)
    assert without.dp == dp, "spreading experts leaves the data ranks as they are"
    assert (
        placement.messages(WORK, axis_sizes).micro_batches == placement.messages(WORK, without).micro_batches
    )


def test_experts_get_no_more_ranks_than_there_are_data_ranks():
    assert placement.sizes(64.0, 8.0, 8.0, 1.0) == (8, 8, 8, 1)
    with pytest.raises(ValueError, match="ep must be at most data_ranks"):
        placement.sizes(64.0, 8.0, 16.0, 1.0)


def test_the_mesh_has_the_same_groups_as_that_of_rank_mesh():
    """Tensor, data and pipeline in Megatron's order, experts among the data ranks, by both modules."""
    gpus, ours = np.arange(128.0), placement.sizes(128.0, 2.0, 8.0, 4.0)
    theirs = device_mesh.sizes(128.0, 2.0, 4.0, ep=8.0)
    assert ours == (theirs.tp, theirs.ep, theirs.dp, theirs.pp)
    at, others = placement.coordinates(gpus, ours, 0), device_mesh.coordinates(gpus, theirs)
    for key in KEYS:
        np.testing.assert_array_equal(getattr(at, key), getattr(others, key))


@settings(max_examples=50, deadline=None)
@given(axis_sizes=meshes, innermost=st.integers(0, 3))
def test_coordinates_and_groups_are_those_of_the_mesh(axis_sizes, innermost):
    counted = mesh(axis_sizes, innermost)
    gpus = np.arange(gpus_of(axis_sizes))
    at = placement.coordinates(gpus, axis_sizes, innermost)
    firsts = placement.groups(gpus, axis_sizes, innermost)
    for key, place, first in zip(KEYS, at, firsts):
        np.testing.assert_array_equal(place, counted[key])
        for members in groups(axis_sizes, innermost, key):
            assert set(first[members]) == {members[0]}


@settings(max_examples=40, deadline=None)
@given(axis_sizes=meshes, innermost=st.integers(0, 3), per_node=powers, per_leaf=powers, data=st.data())
def test_wire_bytes_are_those_of_executed_collectives(axis_sizes, innermost, per_node, per_leaf, data):
    """A ring over every group of one level, or of all data ranks, and an AllToAll: averages over the GPUs."""
    gpus = gpus_of(axis_sizes)
    fabric = placement.LeafNetwork(max(1.0, gpus / per_node), per_node, nodes_per_leaf=per_leaf)
    axis = data.draw(st.sampled_from(["tp", "ep", "copies", "pp", "dp"]))
    at = placement.reaches(axis_sizes, innermost, fabric)
    reach = placement.replicas(at) if axis == "dp" else getattr(at, axis)
    n, whole = int(reach.ranks), reach.ranks * 4.0
    ring, scattered = np.zeros(3), np.zeros(3)
    for members in groups(axis_sizes, innermost, axis):
        assert len(members) == n
        ring += by_wire(operations.all_reduce(np.ones((n, n))), members, fabric)
        scattered += by_wire(operations.all_to_all(np.ones((n, n))), members, fabric)
    sent = 2 * (n - 1) / n * whole
    np.testing.assert_allclose(placement.ring_wires(sent, reach), ring / gpus, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        placement.all_to_all_wires(whole, reach), scattered / gpus, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("innermost", range(4))
def test_chain_counts_the_boundaries_that_leave_the_node(innermost):
    axis_sizes = placement.sizes(64.0, 4.0, 2.0, 4.0)
    reach = placement.reaches(axis_sizes, innermost, FABRIC).pp
    counted = np.zeros(3)
    for members in groups(axis_sizes, innermost, "pp"):
        for one, other in itertools.pairwise(members):
            leaves, climbs = one // 8 != other // 8, one // 16 != other // 16
            counted += 10.0 * np.array([not leaves, leaves, climbs])
    np.testing.assert_allclose(placement.chain_wires(10.0, reach), counted / 64, rtol=1e-12)


# -- what a step sends ---------------------------------------------------------------------------------------
def test_messages_of_a_step_of_mixtral():
    """By hand: 16 data ranks, which are two copies of 8 expert ranks, so 32 micro-batches each of one
    sequence; 16 layers a stage."""
    m = placement.messages(WORK, placement.OfAxes(tp=2.0, ep=8.0, dp=16.0, pp=2.0))
    hidden_bytes = 4096 * 4096 * 2
    assert m.micro_batches == 32
    assert (
        m.tensor_bytes == hidden_bytes and m.tensor_calls == 2 * 16 * 32
    )  # attention alone: all layers have experts
    assert m.tensor_expert_bytes == 2 * hidden_bytes and m.tensor_expert_calls == 2 * 16 * 32
    assert m.expert_bytes == 2 * hidden_bytes / 2 and m.expert_calls == 4 * 16 * 32
    routed = 32 * 8 * 3 * 4096 * 14336
    assert m.expert_gradient_bytes == pytest.approx(2 * routed / 32)
    assert m.dense_gradient_bytes == pytest.approx(2 * (models.parameters(MIXTRAL) - routed) / 4)
    assert m.stage_bytes == hidden_bytes / 2


def test_a_dense_model_has_four_all_reduces_a_layer_and_no_expert_traffic():
    work, axis_sizes = placement.PlacedStep(LLAMA, 64.0, 8192.0), placement.OfAxes(8.0, 1.0, 8.0, 1.0)
    m = placement.messages(work, axis_sizes)
    assert m.tensor_calls == 4 * 80 * 8 and m.tensor_expert_calls == 0
    sent = placement.wire_bytes(work, axis_sizes, 0, FABRIC)
    assert sent.tp.link == pytest.approx(4 * 80 * 8 * 2 * 7 / 8 * 8192 * 8192 * 2)
    assert sent.tp.nic == 0 and sent.ep == (0, 0, 0) and sent.pp == (0, 0, 0)
    assert sent.dp.nic == pytest.approx(2 * 7 / 8 * 2 * models.parameters(LLAMA) / 8) and sent.dp.link == 0


def test_pipeline_sends_each_micro_batch_both_ways_over_three_boundaries():
    """By hand: 4 stages of 16 GPUs, 32 micro-batches; each GPU sends an eighth of 8192 × 8192 bf16 values."""
    work, axis_sizes = placement.PlacedStep(LLAMA, 64.0, 8192.0), placement.OfAxes(8.0, 1.0, 2.0, 4.0)
    fabric = replace(FABRIC, nodes_per_leaf=8.0)
    message_bytes = 8192 * 8192 * 2 / 8
    sent = placement.wire_bytes(work, axis_sizes, 0, fabric).pp
    assert sent.nic == pytest.approx(2 * 32 * message_bytes * 3 / 4) and sent.link == sent.spine == 0
    hop_s = interconnect.send_s(message_bytes, True, interconnect.wires(GPU, 8, 50e9))
    assert placement.axis_times_s(work, axis_sizes, 0, GPU, fabric).pp == pytest.approx(2 * (32 + 3) * hop_s)


def test_tensor_time_of_one_node_is_the_planners():
    """Same collective, same wires as ``layout.estimate`` without sequence parallelism."""
    work, axis_sizes = placement.PlacedStep(LLAMA, 64.0, 8192.0), placement.OfAxes(8.0, 1.0, 8.0, 1.0)
    mine = placement.axis_times_s(work, axis_sizes, 0, GPU, FABRIC)
    job = layout.Job(global_batch=64, seq=8192, software=catalog.modern(sequence_parallel=False))
    planned = layout.estimate(LLAMA, layout.machine(GPU), job, layout.Layout(gpus=64, tp=8, zero=0))
    assert mine.tp == pytest.approx(planned.time_s["tensor"], rel=1e-9)


# -- placement matters ---------------------------------------------------------------------------------------
def test_tensor_parallelism_across_nodes_looks_like_the_mistake_it_is():
    axis_sizes = placement.sizes(64.0, 8.0, 1.0, 1.0)
    inside, outside = (
        placement.axis_times_s(placement.PlacedStep(LLAMA, 64.0, 8192.0), axis_sizes, axis, GPU, FABRIC)
        for axis in (0, 2)
    )
    assert outside.tp > 5 * inside.tp and outside.dp < inside.dp
    traffic = placement.wire_bytes(placement.PlacedStep(LLAMA, 64.0, 8192.0), axis_sizes, 2, FABRIC)
    assert traffic.tp.link == 0 and traffic.tp.nic > 15 * traffic.dp.link


@settings(max_examples=40, deadline=None)
@given(
    tp=powers,
    ep=powers,
    pp=powers,
    innermost=st.integers(0, 3),
    oversubscription=st.sampled_from([1.0, 2.0, 4.0]),
)
def test_wires_share_what_is_sent(tp, ep, pp, innermost, oversubscription):
    """Whatever the order, the bytes are the same in all; the spine sees no more than the NICs; a slower one
    costs."""
    axis_sizes = placement.sizes(64.0, tp, ep, pp)
    fabric = replace(FABRIC, oversubscription=oversubscription)
    total = placement.total_bytes(placement.wire_bytes(WORK, axis_sizes, innermost, fabric))
    usual = placement.total_bytes(placement.wire_bytes(WORK, axis_sizes, 0, fabric))
    assert total.link + total.nic == pytest.approx(usual.link + usual.nic, rel=1e-9)
    assert 0 <= total.spine <= total.nic + 1e-6
    times = placement.axis_times_s(WORK, axis_sizes, innermost, GPU, fabric)
    free = placement.axis_times_s(WORK, axis_sizes, innermost, GPU, replace(fabric, oversubscription=1.0))
    for slow, fast in zip(times, free):
        assert np.isfinite(slow) and slow >= fast >= 0
    assert (times.tp > 0) == (tp > 1) and (times.ep > 0) == (ep > 1) and (times.pp > 0) == (pp > 1)


def test_one_leaf_needs_no_spine_and_feels_no_oversubscription():
    one_leaf = replace(FABRIC, nodes_per_leaf=8.0, oversubscription=4.0)
    axis_sizes = placement.sizes(64.0, 8.0, 2.0, 2.0)
    assert placement.total_bytes(placement.wire_bytes(WORK, axis_sizes, 0, one_leaf)).spine == 0
    assert placement.axis_times_s(WORK, axis_sizes, 0, GPU, one_leaf) == placement.axis_times_s(
        WORK, axis_sizes, 0, GPU, replace(one_leaf, oversubscription=1.0)
    )


def test_group_wires_are_the_interconnects_own():
    """With a spine in the way, what ``interconnect.wires`` says of the same machine; without, the NICs' full
    rate."""
    far, near = placement.Reach(64.0, 8.0, 16.0), placement.Reach(16.0, 8.0, 16.0)
    fabric = replace(FABRIC, oversubscription=2.0)
    assert placement.group_wires(GPU, fabric, far) == interconnect.wires(GPU, 8, 50e9, 2.0)
    assert placement.group_wires(GPU, fabric, near) == interconnect.wires(GPU, 8, 50e9, 1.0)


def test_half_the_nics_take_twice_as_long():
    full, half = FABRIC, replace(FABRIC, nics_per_node=4.0)
    sent = placement.ByWire(1e9, 1e9, 1e9)
    assert placement.busy_s(sent, GPU, half).nic == 2 * placement.busy_s(sent, GPU, full).nic == 0.04
    assert placement.busy_s(sent, GPU, replace(full, oversubscription=4.0)).spine == 0.08
    assert placement.busy_s(sent, GPU, full).link == pytest.approx(1 / 450)


def test_arrays_broadcast():
    """A sweep over nodes is one call, and gives what each call alone gives."""
    nodes = np.array([1.0, 2.0, 4.0, 8.0])
    swept = placement.axis_times_s(
        WORK, placement.sizes(nodes * 8, 4.0, 2.0, 1.0), 0, GPU, placement.LeafNetwork(nodes)
    )
    for i, count in enumerate(nodes):
        alone = placement.axis_times_s(
            WORK, placement.sizes(count * 8, 4.0, 2.0, 1.0), 0, GPU, placement.LeafNetwork(count)
        )
        for many, one in zip(swept, alone):
            assert np.broadcast_to(many, 4)[i] == pytest.approx(float(one), rel=1e-12)


@in_one_test(
    "call, words",
    [
        (lambda: placement.LeafNetwork(nodes=3.0), ("nodes", "a power of two")),
        (lambda: placement.LeafNetwork(nodes=2.0, gpus_per_node=6.0), ("gpus_per_node", "a power of two")),
        (lambda: placement.LeafNetwork(nodes=2.0, oversubscription=0.5), ("oversubscription", "1")),
        (lambda: placement.LeafNetwork(nodes=2.0, nics_per_node=0), ("nics_per_node",)),
        (lambda: placement.sizes(8.0, 16.0), ("tp_times_pp", "gpus")),
        (lambda: placement.sizes(24.0, 2.0), ("gpus", "a power of two")),
        (lambda: placement.strides(placement.sizes(8.0), 4), ("innermost", "0", "3")),
        (
            lambda: placement.messages(replace(WORK, global_batch=3.0), placement.sizes(8.0)),
            ("micro_batches",),
        ),
        (
            lambda: placement.axis_times_s(
                WORK, placement.sizes(64.0), 0, replace(GPU, link_bytes_per_s=0.0), FABRIC
            ),
            ("link_bytes_per_s", "0"),
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, words):
    with refused(*words):
        call()


def test_wishes_are_cut_to_what_there_is():
    assert placement.fitted_sizes(64.0, 8.0, 8.0, 4.0, experts=8.0) == (8, 2, 2, 4)
    assert placement.fitted_sizes(16.0, 32.0, 1.0, 4.0) == (16, 1, 1, 1)
    assert placement.fitted_sizes(64.0, 1.0, 16.0, 1.0, experts=9.0) == (1, 8, 64, 1)
    assert placement.fitted_sizes(64.0, 1.0, 16.0, 1.0) == (1, 1, 64, 1), "a dense model has no expert ranks"


@settings(max_examples=50, deadline=None)
@given(axis_sizes=meshes, innermost=st.integers(0, 3))
def test_an_axis_that_needs_a_wire_has_bytes_on_it(axis_sizes, innermost):
    gpus = gpus_of(axis_sizes)
    fabric = placement.LeafNetwork(max(1.0, gpus / 8.0), nodes_per_leaf=2.0)
    sent = placement.wire_bytes(WORK, axis_sizes, innermost, fabric)
    for way, wires in zip(placement.ways(axis_sizes, innermost, fabric), sent):
        assert (wires.nic > 0) == (way >= 2) and (wires.spine > 0) == (way >= 3)
        assert (sum(wires) > 0) == (way >= 1)


def test_busy_shares_by_hand():
    wires = placement.ByWire(link=450e9, nic=100e9, spine=50e9)
    shares = placement.busy_share(wires, GPU, replace(FABRIC, oversubscription=4.0), compute_s=2.0)
    assert shares == (0.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("nodes", "oversubscription", "seconds"),
    [
        (8, 1, 7 / 8 * 1e9 / 50e9),  # the NICs: 7 of 8 nodes are elsewhere
        (
            16,
            4,
            4 * 3 / 4 * 1e9 / 50e9,
        ),  # the uplinks: 3 of 4 leaves are, through a quarter of the NICs' rate
        (4, 8, 3 / 4 * 1e9 / 50e9),  # one leaf: its uplinks are not asked
    ],
)
def test_an_all_to_all_takes_as_long_as_its_narrowest_wire_is_busy(nodes, oversubscription, seconds):
    fabric = placement.LeafNetwork(nodes, oversubscription=oversubscription)
    assert placement.all_to_all_floor_s(1e9, fabric) == pytest.approx(seconds)
    reach = placement.Reach(fabric.gpus, fabric.gpus_per_node, min(fabric.gpus, fabric.gpus_per_leaf))
    busy = placement.busy_s(placement.all_to_all_wires(1e9, reach), catalog.gpu("h100-sxm"), fabric)
    assert placement.all_to_all_floor_s(1e9, fabric) == pytest.approx(max(busy.nic, busy.spine))


def test_experts_are_shared_by_expert_ranks_and_the_rest_stands_on_each_of_them():
    """Mixtral 8x22B, 8 expert ranks and 4 stages: 135.3B/32 + 5.3B/4 parameters, 16 bytes each."""
    mixtral, cut = catalog.model("mixtral-8x22b"), placement.sizes(128, ep=8, pp=4)
    held = placement.held_parameters(mixtral, cut)
    assert (held.dense, held.experts) == pytest.approx((5.34e9 / 4, 135.29e9 / 32), rel=1e-3)
    assert placement.state_bytes(mixtral, cut) == pytest.approx(89.0e9, rel=1e-3)
    assert placement.state_bytes(mixtral, cut, stage=1) == pytest.approx(
        4 * 5.5625e9 + 12 * (1.3347e9 / 32 + 4.2279e9 / 4), rel=1e-3
    )
    dense = placement.held_parameters(LLAMA, placement.sizes(64, tp=8))
    assert dense.experts == 0 and dense.dense == pytest.approx(models.parameters(LLAMA) / 8)


def test_the_reference_design_has_32_leaves_and_16_spines():
    """NVIDIA's SuperPOD of 1,024 H100s, on switches of 64 ports; and by hand with o = 3 and 7."""
    assert placement.switches(1024.0) == (32.0, 32.0, 1024.0, 16.0)
    assert placement.switches(1024.0, 3.0) == (48.0, 22.0, 22 * 16.0, 6.0)
    assert placement.switches(1024.0, 7.0) == (56.0, 19.0, 19 * 8.0, 3.0)


@given(st.integers(1, 10**5), st.sampled_from([1.0, 2.0, 3.0, 4.0, 7.0]))
def test_every_card_has_a_port_and_the_spine_has_one_for_every_cable(cards, oversubscription):
    down, leaves, cables, spines = placement.switches(float(cards), oversubscription)
    assert leaves * down >= cards > (leaves - 1) * down
    assert spines * 64 >= cables == leaves * (64 - down)
