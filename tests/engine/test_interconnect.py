"""Collectives on real wires: which wires a group crosses, the algorithms' limits, and what they are made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog, collectives, interconnect
from engine.calibration import DEFAULT
from engine.interconnect import (all_gather_s, all_reduce_s, all_to_all_s, collective_s, nvls_s, one_shot_s,
                                 ranks_per_node, ring_s, send_s, tree_s, two_level_s, wires)

H100, A100, L4 = (catalog.gpu(key) for key in ("h100-sxm", "a100-80", "l4"))
sizes = st.floats(1, 1e12)
nodes = st.integers(1, 512).map(float)
in_node = st.sampled_from([1.0, 2.0, 4.0, 8.0])
ALL = (ring_s, tree_s, two_level_s, nvls_s, one_shot_s, all_reduce_s, all_gather_s, all_to_all_s)


def test_textbook_ring_is_reduce_scatter_and_all_gather():
    size, ranks, rate, alpha = 1e9, 8, 450e9, 1e-6
    half = (ranks - 1) / ranks * size / rate + (ranks - 1) * alpha
    assert collectives.ring_all_reduce_s(size, ranks, rate, alpha) == pytest.approx(2 * half)
    assert collectives.ring_all_reduce_s(size, 1, rate, alpha) == 0
    assert collectives.halving_doubling_all_reduce_s(size, 8, rate, alpha) == pytest.approx(
        2 * 7 / 8 * size / rate + 6 * alpha)
    assert collectives.tree_all_reduce_s(size, 9, rate, alpha) == pytest.approx(2 * size / rate + 8 * alpha)


def test_bandwidth_as_nccl_tests_states_it():
    assert collectives.bus_bandwidth("all_reduce", 8, 1e9, 0.01) == pytest.approx(1.75e11)
    assert collectives.bus_bandwidth("all_gather", 8, 1e9, 0.01) == pytest.approx(0.875e11)
    assert collectives.bus_bandwidth("broadcast", 8, 1e9, 0.01) == pytest.approx(1e11)
    assert [collectives.wire_share(op, 1) for op in collectives.OPERATIONS] == [0] * len(collectives.OPERATIONS)


def test_chunks_of_the_best_size():
    """(√a + √b)² is the least of (a + n·…): no number of chunks does better than the formula, and the best comes
    close."""
    alpha, hops, transfer = 1e-6, 14, 300e-6
    chunked = [(hops + n) * alpha + transfer * (1 + hops / n) for n in range(1, 400)]
    formula = collectives.pipelined_s(hops * alpha, transfer)
    assert min(chunked) == pytest.approx(formula, rel=0.07) and min(chunked) >= formula


@pytest.mark.parametrize("ranks, stride, per_node", [(8, 1, 8), (16, 1, 8), (64, 8, 1), (4, 2, 4), (32, 4, 2),
                                                     (2, 16, 1), (1, 1, 1)])
def test_which_wires_an_axis_crosses(ranks, stride, per_node):
    assert ranks_per_node(float(ranks), float(stride), 8.0) == per_node


@given(sizes, nodes, in_node)
def test_every_algorithm_is_finite_positive_and_free_alone(size, nodes, per_node):
    for gpu in (H100, A100, L4):
        net = wires(gpu)
        for algorithm in ALL:
            time = algorithm(size, nodes * per_node, per_node, net)
            assert np.isfinite(time) and time >= 0
            assert (time == 0) == (nodes * per_node == 1)
            assert algorithm(2 * size, nodes * per_node, per_node, net) >= time


@given(sizes, nodes, in_node)
def test_arrays_give_what_floats_give(size, nodes, per_node):
    net, ranks = wires(H100), nodes * per_node
    for algorithm in ALL:
        assert algorithm(np.array([size]), np.array([ranks]), per_node, net)[0] == algorithm(size, ranks, per_node, net)


@given(sizes, nodes, in_node)
def test_the_best_is_the_least(size, nodes, per_node):
    net, ranks = wires(H100), nodes * per_node
    times = {name: getattr(interconnect, f"{name}_s")(size, ranks, per_node, net) for name in interconnect.ALGORITHMS}
    assert all_reduce_s(size, ranks, per_node, net) == min(times.values())
    assert times[interconnect.algorithm("all_reduce", size, ranks, per_node, net)] == min(times.values())


def test_the_switch_sums_within_a_node_alone():
    size = 2.0**30
    h100, a100 = wires(H100), wires(A100)
    assert nvls_s(size, 8.0, 8.0, h100) < ring_s(size, 8.0, 8.0, h100)
    assert nvls_s(size, 16.0, 8.0, h100) == ring_s(size, 16.0, 8.0, h100)
    assert nvls_s(size, 8.0, 8.0, a100) == ring_s(size, 8.0, 8.0, a100)


def test_latency_rules_small_messages_and_trees_win_them():
    net = wires(H100)
    assert tree_s(65536.0, 1024.0, 8.0, net) < ring_s(65536.0, 1024.0, 8.0, net) / 3
    assert one_shot_s(65536.0, 8.0, 8.0, net) < ring_s(65536.0, 8.0, 8.0, net)


def test_ring_across_nodes_uses_their_nics_together():
    """8 ranks a node share 8 NICs: a ring of all of them is as fast as all NICs; one rank a node has its own NIC
    alone."""
    net, size = wires(H100), 2.0**36
    together, alone = ring_s(size, 64.0, 8.0, net), ring_s(size, 8.0, 1.0, net)
    assert together == pytest.approx(2 * 63 / 64 * size / min(8 * net.nic_bytes_per_s, net.link_bytes_per_s), rel=0.05)
    assert alone == pytest.approx(2 * 7 / 8 * size / net.nic_bytes_per_s, rel=0.02)


def test_two_levels_send_each_piece_across_once_there_and_once_back():
    """A terabyte over 2 nodes of 8: 7/8 of it over a GPU's links twice, half of an eighth over its NIC twice. The hops, and what
    the cutting into chunks costs, are lost in it."""
    net, size = wires(H100), 2.0**40
    by_hand_s = 2 * size * (7 / 8) / net.link_bytes_per_s + 2 * (size / 8) * (1 / 2) / net.nic_bytes_per_s
    assert interconnect.two_level_s(size, 16.0, 8.0, net) == pytest.approx(by_hand_s, rel=0.01)


def test_oversubscription_slows_what_leaves_the_node_alone():
    net, thin = wires(H100), wires(H100, oversubscription=4.0)
    assert send_s(1e9, True, thin) > 3.5 * send_s(1e9, True, net)
    assert send_s(1e9, False, thin) == send_s(1e9, False, net)
    assert all_to_all_s(1e9, 8.0, 8.0, thin) == all_to_all_s(1e9, 8.0, 8.0, net)


def test_constants_are_the_ones_in_use():
    net = wires(H100)
    assert net.link_bytes_per_s == H100.link_bytes_per_s * DEFAULT.link_share
    assert net.nic_bytes_per_s == H100.nic_bytes_per_s * DEFAULT.network_share


@pytest.mark.parametrize("call, words", [
    (lambda: ring_s(-1.0, 8.0, 8.0, wires(H100)), "bytes must be at least 0, got -1"),
    (lambda: ring_s(1.0, 0.0, 8.0, wires(H100)), "ranks must be a whole number of at least 1"),
    (lambda: ring_s(1.0, 4.0, 8.0, wires(H100)), "ranks_elsewhere must be at least 0"),
    (lambda: tree_s(float("nan"), 8.0, 8.0, wires(H100)), "bytes must be finite"),
    (lambda: collective_s("all_gossip", 1.0, 8, 8, wires(H100)), "operation must be one of all_reduce"),
    (lambda: wires(H100, oversubscription=0.5), "oversubscription must be at least 1, got 0.5"),
    (lambda: wires(H100, nic_bytes_per_s=0), "nic_bytes_per_s must be greater than 0, got 0"),
    (lambda: wires(H100, gpus_per_node=2.5), "gpus_per_node must be a whole number"),
    (lambda: ranks_per_node(8, 0, 8), "stride must be a whole number of at least 1, got 0"),
    (lambda: send_s("much", True, wires(H100)), "message_bytes must be a number, got 'much'"),
])
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
