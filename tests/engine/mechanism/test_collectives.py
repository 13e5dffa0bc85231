"""Closed forms of collectives that are drawn in lesson 02, by hand and against executed runs."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.executed import ranks, ranks_operations
from engine.mechanism import collectives, start_ups
from tests.cases import in_one_test

GB, US = 1e9, 1e-6


@settings(max_examples=40, deadline=None)
@given(members=st.integers(2, 12), chunks=st.integers(1, 24))
def test_the_ring_in_chunks_is_the_executed_one(members, chunks):
    run = ranks_operations.all_reduce(ranks.example(members, chunks), "ring", chunks, cell_bytes=1e6)
    assert len(run.steps) == collectives.ring_steps(members, chunks)
    assert ranks.time_s(run, 3 * US, 50 * GB) == pytest.approx(
        collectives.chunked_ring_all_reduce_s(chunks * 1e6, members, chunks, 50 * GB, 3 * US), rel=1e-12
    )


def test_with_as_many_chunks_as_ranks_it_is_the_textbook_ring():
    assert collectives.chunked_ring_all_reduce_s(GB, 8, 8, 450 * GB, 3.4 * US) == pytest.approx(
        collectives.ring_all_reduce_s(GB, 8, 450 * GB, 3.4 * US), rel=1e-12
    )


def test_a_ring_by_hand():
    assert collectives.ring_link_bytes(GB, 4) == 1.5 * GB  # 2 · 3/4 of a gigabyte
    assert collectives.ring_step_s(GB, 4, 50 * GB, 10 * US) == pytest.approx(5e-3 + 10 * US)
    assert collectives.chunked_ring_all_reduce_s(GB, 4, 1, 50 * GB, 0) == pytest.approx(6 * 0.02)
    assert [collectives.ring_chunks(5, share) for share in (1.0, 0.5, 0.0)] == [5, 2, 1]


@settings(max_examples=60, deadline=None)
@given(operation=st.sampled_from(sorted(ranks_operations.PRIMITIVES)), members=st.integers(1, 9))
def test_the_least_bytes_in_all_are_what_the_executed_primitives_send(operation, members):
    buffers = ranks.example(members, members)
    given = [row[i : i + 1] for i, row in enumerate(buffers)] if operation == "all_gather" else buffers
    run = ranks_operations.PRIMITIVES[operation](given, cell_bytes=1.0)
    assert run.link_bytes.sum() == collectives.least_total_bytes(operation, members, float(members))


def test_the_flat_wire_is_the_link_until_the_node_is_full():
    wires = (450 * GB, 3.4 * US, 50 * GB, 9.6 * US)
    assert collectives.flat_wire(8, 8, *wires) == (450 * GB, 3.4 * US)
    assert collectives.flat_wire(9, 8, *wires) == (50 * GB, 9.6 * US)


WIRES = (450 * GB, 3.4 * US, 50 * GB, 9.6 * US)


def test_all_forms_go_through_the_same_nodes():
    """64 ranks in nodes of 8: 400 GB/s leave a node and 450 a GPU; a ring has 56 hops over the link and 7
    over NICs, each twice, a tree 3 and 3."""
    size = np.geomspace(1e3, 1e10, 7)
    ring, tree, doubling, levels = collectives.textbook_all_reduce_s(size, 64, 8, *WIRES)
    assert np.allclose(ring, 126 / 64 * size / (400 * GB) + 112 * 3.4 * US + 14 * 9.6 * US)
    hops_s = 6 * 3.4 * US + 6 * 9.6 * US
    assert np.allclose(tree, 2 * size / (400 * GB) + hops_s)
    bytes_s = 14 / 8 * size / (450 * GB) + 14 / 8 * size / 8 / (50 * GB)
    assert np.allclose(doubling, bytes_s + hops_s)
    assert np.allclose(levels, bytes_s + 14 * 3.4 * US + 14 * 9.6 * US)


def test_with_a_rank_in_each_node_all_forms_are_those_of_one_wire():
    size = np.geomspace(1e3, 1e10, 7)
    ring, tree, doubling, levels = collectives.textbook_all_reduce_s(size, 96, 1, *WIRES)
    card = 96, 50 * GB, 9.6 * US
    assert np.allclose(ring, collectives.ring_all_reduce_s(size, *card), rtol=1e-14)
    assert np.allclose(levels, ring, rtol=1e-14)
    assert np.allclose(tree, collectives.tree_all_reduce_s(size, *card), rtol=1e-14)
    assert np.allclose(doubling, collectives.halving_doubling_all_reduce_s(size, *card), rtol=1e-14)


def test_a_ring_through_nodes_of_dgx_is_lesson_03s():
    """16 GB over 1,024 H100s: 80 ms of bytes and 2 ms of hops."""
    dgx = catalog.node("dgx-h100")
    wires = dgx.link.bytes_per_s, start_ups.hop_s(dgx.link), dgx.nic.bytes_per_s, start_ups.hop_s(dgx.nic)
    ring, _, _, levels = collectives.textbook_all_reduce_s(16 * GB, 1024, 8, *wires)
    assert (
        ring == pytest.approx(start_ups.ring_through_s(16 * GB, 1024, dgx)) == pytest.approx(82e-3, rel=0.01)
    )
    assert levels > 1.5 * ring


def test_where_a_ring_overtakes_a_tree_that_goes_through_the_same_nodes():
    starts = list(collectives.textbook_all_reduce_s(0.0, 64, 8, *WIRES))
    at = collectives.crossover_bytes(64, 400 * GB, starts[0] - starts[1])
    ring, tree, *_ = collectives.textbook_all_reduce_s(at, 64, 8, *WIRES)
    assert ring == pytest.approx(tree)
    assert collectives.crossover_bytes(64, 400 * GB, 0.0) == 0


def test_inside_a_node_two_levels_are_the_ring():
    ring, *_, levels = collectives.textbook_all_reduce_s(GB, 6, 8, 450 * GB, 3.4 * US, 50 * GB, 9.6 * US)
    assert levels == pytest.approx(ring, rel=1e-14)


def test_a_started_node_counts_as_full():
    nine, sixteen = (
        collectives.textbook_all_reduce_s(GB, n, 8, 450 * GB, 3.4 * US, 50 * GB, 9.6 * US)[3] for n in (9, 16)
    )
    assert nine == sixteen


@pytest.mark.parametrize("which", range(4))
def test_at_the_half_latency_size_start_ups_are_half(which):
    def time_s(size):
        return collectives.textbook_all_reduce_s(size, 64, 8, 450 * GB, 3.4 * US, 50 * GB, 9.6 * US)[which]

    half = collectives.half_latency_bytes(1e6, time_s(0.0) / time_s(1e6))
    assert time_s(0.0) / time_s(half) == pytest.approx(0.5)


def test_idle_links():
    assert [collectives.idle_links(8, chunks) for chunks in (1, 4, 8, 12)] == [7, 4, 0, 0]


@in_one_test("members", range(1, 21))
def test_halving_doubling_is_the_executed_one_at_any_count(members):
    """With the fold and unfold of what exceeds a power of two, at both ends of the scale and in the bytes."""
    power = 2 ** (members.bit_length() - 1)
    run = ranks_operations.all_reduce(ranks.example(members, power), "halving_doubling", cell_bytes=1e6)
    for alpha_s, bytes_per_s in ((3 * US, 50 * GB), (1.0, 1e30), (0.0, GB)):
        assert ranks.time_s(run, alpha_s, bytes_per_s) == pytest.approx(
            collectives.halving_doubling_all_reduce_s(power * 1e6, members, bytes_per_s, alpha_s), rel=1e-12
        )
    assert run.sent_bytes.max() == pytest.approx(
        collectives.halving_doubling_buffers(members)[1] * power * 1e6
    )


def test_halving_doubling_on_six_ranks_by_hand():
    """Four ranks exchange 3/4 twice: 1.5 buffers. The two in excess hand theirs over first and get the sum at
    last."""
    assert collectives.halving_doubling_buffers(6) == (3.5, 2.5)
    assert collectives.halving_doubling_buffers(8) == (1.75, 1.75)
    assert collectives.halving_doubling_buffers(np.array([1, 2, 3, 64]))[0].tolist() == [0, 1, 3, 2 * 63 / 64]


def test_as_fast():
    assert collectives.as_fast(np.array([1.0, 1.019, 1.03]), 1.0).tolist() == [True, True, False]


def test_a_chain_by_hand():
    run = ranks_operations.broadcast(ranks.example(8, 8))
    assert len(run.steps) == 7 + 7, "seven links, and seven pieces behind the first"


# -- bad input -----------------------------------------------------------------------------------------------
GOOD = dict(
    operation="all_reduce",
    ranks=8,
    ranks_per_node=4,
    chunks=16,
    chunks_per_rank=2,
    time_s=1.0,
    alpha_s_only=0.5,
    times_s=np.ones(3),
    best_s=1.0,
    start_share=0.5,
)
UNCHECKED = {
    "pipelined_s",
    "as_fast",
}  # asked for every hop and every mark of a picture, with times that others made
ARGUMENTS = [
    (f, name)
    for f in vars(collectives).values()
    if inspect.isfunction(f)
    and f.__module__ == "engine.mechanism.collectives"
    and not f.__name__.startswith("_")
    and f.__name__ not in UNCHECKED
    for name in inspect.signature(f).parameters
]


@in_one_test("function, name", ARGUMENTS, ids=lambda v: v if isinstance(v, str) else v.__name__)
@in_one_test("bad", [-1, float("nan"), "seven"], ids=str)
def test_bad_input_is_refused_by_name(function, name, bad):
    good = {name: GOOD.get(name, 1e6) for name in inspect.signature(function).parameters}
    function(**good)
    with pytest.raises(ValueError, match=name.removeprefix("link_").removeprefix("nic_")):
        function(**good | {name: bad})


def test_each_of_two_levels_by_hand():
    """A buffer of 8 GB on two nodes of four: each rank sends 2·3/4·8 = 12 GB inside, then all-reduces its
    quarter, 2 GB, with the other node: 2·1/2·2 = 2 GB. At 100 GB/s and 20 GB/s that is 120 ms and 100 ms."""
    inside, between = collectives.two_levels_bytes(8e9, 4, 2)
    assert inside == pytest.approx(12e9) and between == pytest.approx(2e9)
    inside_s, between_s = collectives.two_levels_s(8e9, 4, 2, 100e9, 1e-6, 20e9, 1e-5)
    assert inside_s == pytest.approx(0.120 + 6e-6) and between_s == pytest.approx(0.100 + 2e-5)
    whole_s = collectives.two_level_all_reduce_s(8e9, 8, 4, 100e9, 1e-6, 20e9, 1e-5)
    assert whole_s == pytest.approx(inside_s + between_s)
