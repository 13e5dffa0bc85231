"""Executed collectives: every rank has the right numbers, and every wire carries the bytes of the
formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.executed import ranks as engine_ranks
from engine.executed import ranks_operations as operations
from engine.executed import ranks_schedules as schedules
from engine.executed.ranks import ADD, PUT, Move, MoveStep, execute, full_memory
from engine.mechanism import collectives, interconnect
from tests.cases import in_one_test
from tests.said import refused

FLAT = [name for name in operations.ALGORITHMS if name != "two_level"]
counts, lengths = st.integers(1, 17), st.integers(1, 40)
slow = settings(max_examples=60, deadline=None)


def buffers_of(ranks, cells, seed=0):
    """Integers, so that sums in any order are equal to the last bit."""
    return np.random.default_rng(seed).integers(-99, 99, (ranks, cells))


# -- results -------------------------------------------------------------------------------------------------
@slow
@given(ranks=counts, cells=lengths, algorithm=st.sampled_from(FLAT), chunks=st.none() | st.integers(1, 40))
def test_all_reduce_gives_every_rank_the_sum(ranks, cells, algorithm, chunks):
    buffers = buffers_of(ranks, cells)
    run = operations.all_reduce(buffers, algorithm, chunks)
    for result in run.results:
        assert (result == buffers.sum(axis=0)).all()
    assert run.holds[-1].all(), "every cell must hold every rank's contribution"


@slow
@given(nodes=st.integers(1, 5), gpus=st.integers(1, 5), cells=lengths)
def test_two_levels_give_every_rank_the_sum(nodes, gpus, cells):
    buffers = buffers_of(nodes * gpus, cells)
    run = operations.all_reduce(buffers, "two_level", gpus_per_node=gpus)
    assert all((result == buffers.sum(axis=0)).all() for result in run.results)


@slow
@given(ranks=counts, cells=lengths, data=st.data(), chunks=st.none() | st.integers(1, 40))
def test_rooted_primitives(ranks, cells, data, chunks):
    root = data.draw(st.integers(0, ranks - 1))
    buffers = buffers_of(ranks, cells)
    assert all(
        (result == buffers[root]).all() for result in operations.broadcast(buffers, root, chunks).results
    )
    reduced = operations.reduce(buffers, root, chunks).results
    assert (reduced[root] == buffers.sum(axis=0)).all()
    assert all(result is None for rank, result in enumerate(reduced) if rank != root)
    sent = operations.send_recv(buffers, root).results
    assert (sent[(root + 1) % ranks] == buffers[root]).all()


@slow
@given(ranks=counts, block=st.integers(1, 5))
def test_all_to_all_transposes_the_blocks(ranks, block):
    buffers = buffers_of(ranks, ranks * block)
    expected = buffers.reshape(ranks, ranks, block).swapaxes(0, 1).reshape(ranks, -1)
    assert (np.array(operations.all_to_all(buffers).results) == expected).all()


@slow
@given(ranks=counts, cells=lengths)
def test_ring_all_reduce_is_reduce_scatter_then_all_gather(ranks, cells):
    buffers = buffers_of(ranks, cells)
    whole, first = operations.all_reduce(buffers), operations.reduce_scatter(buffers)
    second = operations.all_gather(first.results)
    assert all((one == other).all() for one, other in zip(whole.results, second.results, strict=True))
    assert whole.log[: len(first.log)] == first.log
    assert [move._replace(step=move.step + len(first.steps)) for move in second.log] == list(
        whole.log[len(first.log) :]
    )


def test_all_gather_starts_with_one_piece_a_rank_and_ends_with_all():
    run = operations.all_gather([[1, 2], [3], [4, 5, 6]])
    assert run.contributions[0].tolist() == [[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert all(result.tolist() == [1, 2, 3, 4, 5, 6] for result in run.results)


def test_real_numbers_sum_as_near_as_their_order_allows():
    buffers = np.random.default_rng(1).normal(size=(8, 64))
    for algorithm in FLAT:
        for result in operations.all_reduce(buffers, algorithm).results:
            np.testing.assert_allclose(result, buffers.sum(axis=0), rtol=1e-12, atol=1e-12)


# -- bytes on the wires --------------------------------------------------------------------------------------
@in_one_test("ranks", [2, 3, 4, 7, 8, 16])
def test_ring_carries_the_textbook_bytes_on_each_link(ranks):
    cells = 12 * ranks
    run = operations.all_reduce(buffers_of(ranks, cells))
    around = np.roll(np.eye(ranks), 1, axis=1)
    expected = collectives.wire_share("all_reduce", ranks) * cells * run.cell_bytes
    np.testing.assert_array_equal(run.link_bytes, around * expected)
    assert run.busy_steps == 2 * (ranks - 1)
    assert run.phases == ("reduce-scatter",) * (ranks - 1) + ("all-gather",) * (ranks - 1)


@in_one_test("operation", collectives.OPERATIONS)
@in_one_test("ranks", [2, 3, 4, 8])
def test_wire_share_is_what_the_busiest_rank_sends(operation, ranks):
    cells = 6 * ranks
    if operation == "all_gather":
        run = operations.all_gather(buffers_of(ranks, 6))
    else:
        run = operations.PRIMITIVES[operation](buffers_of(ranks, cells))
    expected = collectives.wire_share(operation, ranks) * cells * run.cell_bytes
    assert run.sent_bytes.max() == pytest.approx(expected, rel=1e-12)
    assert run.received_bytes.max() == run.sent_bytes.max()


@in_one_test("algorithm", FLAT)
@in_one_test("ranks", [2, 3, 6, 8, 13])
def test_every_algorithm_moves_the_same_bytes_in_all(algorithm, ranks):
    """2(n−1)·S over all ranks (nccl-tests, PERFORMANCE.md): n−1 additions and n−1 copies of every element.
    They differ in how evenly the ranks share them, and in how many steps it takes."""
    cells = 24 * ranks
    run = operations.all_reduce(buffers_of(ranks, cells), algorithm)
    assert run.link_bytes.sum() == pytest.approx(2 * (ranks - 1) * cells * run.cell_bytes, rel=1e-12)


@in_one_test("ranks", [2, 4, 8, 12, 16, 30])
def test_double_tree_shares_the_work(ranks):
    """At most 2·S a rank, where one binomial tree's root receives ⌈log2 n⌉·S and sends as much."""
    cells = 4 * ranks
    double = operations.all_reduce(buffers_of(ranks, cells), "double_tree")
    single = operations.all_reduce(buffers_of(ranks, cells), "tree")
    assert double.sent_bytes.max() <= 2 * cells * double.cell_bytes
    assert single.sent_bytes[0] == np.ceil(np.log2(ranks)) * cells * single.cell_bytes


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 8), (2, 4), (4, 8), (3, 2), (8, 1)])
def test_two_levels_by_wire(nodes, gpus):
    cells = 2 * nodes * gpus
    run = operations.all_reduce(buffers_of(nodes * gpus, cells), "two_level", gpus_per_node=gpus)
    inside, through_nic = engine_ranks.bytes_by_wire(run, gpus)
    whole = cells * run.cell_bytes
    np.testing.assert_allclose(inside, 2 * (gpus - 1) / gpus * whole, rtol=1e-12)
    np.testing.assert_allclose(through_nic, 2 * (nodes - 1) / nodes * whole / gpus, rtol=1e-12)
    assert run.busy_steps == 2 * (gpus - 1) + 2 * (nodes - 1)


def test_link_bytes_count_up_to_their_total():
    run = operations.all_reduce(buffers_of(5, 15))
    assert not run.link_bytes_so_far[0].any()
    assert (np.diff(run.link_bytes_so_far, axis=0) >= 0).all()
    np.testing.assert_array_equal(run.link_bytes_so_far[-1], run.link_bytes)
    assert sum(transfer.bytes for transfer in run.log) == run.link_bytes.sum()


def test_the_message_of_the_last_reduce_scatter_step_completes_the_sum():
    buffers = buffers_of(4, 4)
    run = operations.all_reduce(buffers)
    for transfer in (line for line in run.log if line.step == 2):
        assert (
            run.carried(transfer) + buffers[transfer.destination, transfer.start]
            == buffers[:, transfer.start].sum()
        )


# -- steps and time ------------------------------------------------------------------------------------------
@in_one_test("ranks, steps", [(1, 0), (2, 2), (3, 4), (4, 4), (5, 6), (8, 6), (9, 8), (16, 8), (17, 10)])
@in_one_test("algorithm", ["tree", "double_tree"])
def test_trees_take_two_log_n_steps(algorithm, ranks, steps):
    assert operations.all_reduce(buffers_of(ranks, 8), algorithm).busy_steps == steps


@in_one_test("ranks, steps", [(1, 0), (2, 2), (4, 4), (8, 6), (16, 8), (3, 4), (7, 6), (12, 8)])
def test_halving_doubling_steps(ranks, steps):
    """2·log2 n, and two more for counts that are no power of two: to fold the excess in, and to hand it the
    sum."""
    assert operations.all_reduce(buffers_of(ranks, 32), "halving_doubling").busy_steps == steps


@pytest.mark.parametrize(
    ("nearest_first", "node_buffers", "middle_buffers"), [(True, 1.75, 1.0), (False, 14, 32)]
)
def test_halving_doubling_by_its_order(nearest_first, node_buffers, middle_buffers):
    """64 ranks, 8 in a node: what leaves each node and what crosses the middle, in buffers, by hand.

    Near first, the steps beyond a node carry 1/16, 1/32 and 1/64 of 8 ranks' buffers; far first 1/2, 1/4 and
    1/8.
    """
    run = operations.all_reduce(
        buffers_of(64, 64), "halving_doubling", cell_bytes=1 / 64, nearest_first=nearest_first
    )
    _, leaving = engine_ranks.bytes_by_wire(run, 8)
    _, crossing = engine_ranks.bytes_by_wire(run, 32)
    assert np.allclose(leaving.reshape(8, 8).sum(axis=1), node_buffers)
    assert crossing[:32].sum() == pytest.approx(middle_buffers)
    assert np.allclose(run.sent_bytes, 2 * 63 / 64), "the bytes of a rank do not depend on the order"
    first = run.steps[0].moves[0]
    assert abs(first.source - first.destination) == (1 if nearest_first else 32)


@in_one_test("nearest_first", [True, False])
@in_one_test("ranks", range(1, 21))
def test_halving_doubling_sums_in_either_order(ranks, nearest_first):
    buffers = buffers_of(ranks, 23)
    run = operations.all_reduce(buffers, "halving_doubling", nearest_first=nearest_first)
    assert all((result == np.sum(buffers, axis=0)).all() for result in run.results)


@in_one_test("size_bytes, alpha_s, bytes_per_s", [(1e9, 5e-6, 50e9), (64.0, 5e-6, 50e9), (1e6, 0.0, 1e9)])
@in_one_test("ranks", [1, 2, 4, 8, 16])
def test_executed_time_is_the_closed_form(ranks, size_bytes, alpha_s, bytes_per_s):
    cells = 32 * ranks
    for algorithm, closed in (
        ("ring", collectives.ring_all_reduce_s),
        ("halving_doubling", collectives.halving_doubling_all_reduce_s),
    ):
        run = operations.all_reduce(buffers_of(ranks, cells), algorithm, cell_bytes=size_bytes / cells)
        assert engine_ranks.time_s(run, alpha_s, bytes_per_s) == pytest.approx(
            closed(size_bytes, ranks, bytes_per_s, alpha_s), rel=1e-12
        )


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 12])
def test_the_ring_does_not_need_a_power_of_two(ranks):
    run = operations.all_reduce(buffers_of(ranks, 4 * ranks), cell_bytes=1e6)
    assert engine_ranks.time_s(run, 3e-6, 50e9) == pytest.approx(
        collectives.ring_all_reduce_s(4e6 * ranks, ranks, 50e9, 3e-6), rel=1e-12
    )


@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_tree_form_holds_at_both_ends(ranks):
    """2·S/B + 2·⌈log2 n⌉·alpha promises the short tree's latency and the long pipeline's bandwidth: each is
    met by a run, with one chunk and with many, and no run beats it."""

    def executed(chunks, alpha_s, bytes_per_s):
        run = operations.all_reduce(buffers_of(ranks, 400), "double_tree", chunks)
        return engine_ranks.time_s(run, alpha_s, bytes_per_s)

    def closed(alpha_s, bytes_per_s):
        return collectives.tree_all_reduce_s(400 * 4.0, ranks, bytes_per_s, alpha_s)

    assert executed(1, 1e-6, 1e30) == pytest.approx(closed(1e-6, 1e30))
    assert executed(200, 0.0, 1e9) == pytest.approx(closed(0.0, 1e9), rel=0.05)
    for chunks in (1, 3, 20, 200):
        assert executed(chunks, 1e-6, 1e9) >= closed(1e-6, 1e9)


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_two_level_time_equals_the_flat_ring_in_one_node(ranks):
    flat = operations.all_reduce(buffers_of(ranks, 2 * ranks))
    node = operations.all_reduce(buffers_of(ranks, 2 * ranks), "two_level", gpus_per_node=ranks)
    assert engine_ranks.two_level_time_s(node, ranks, 1e-6, 450e9, 5e-6, 50e9) == pytest.approx(
        engine_ranks.time_s(flat, 1e-6, 450e9), rel=1e-12
    )


@in_one_test("nodes, gpus", [(2, 4), (4, 8), (3, 2), (8, 1)])
@in_one_test("size_bytes", [64e3, 1e9])
def test_two_level_time_is_the_closed_form(nodes, gpus, size_bytes):
    cells = 2 * nodes * gpus
    run = operations.all_reduce(
        buffers_of(nodes * gpus, cells), "two_level", None, gpus, cell_bytes=size_bytes / cells
    )
    rates = (450e9, 1e-6, 50e9, 5e-6)
    executed = engine_ranks.two_level_time_s(run, gpus, rates[1], rates[0], rates[3], rates[2])
    closed = collectives.two_level_all_reduce_s(size_bytes, nodes * gpus, gpus, *rates)
    assert executed == pytest.approx(closed, rel=1e-12)


def test_ring_with_too_few_or_too_many_chunks_is_slower():
    """Fewer chunks than ranks leave links idle; more turn the ring again, and pay its latency again."""

    def seconds(chunks):
        return engine_ranks.time_s(operations.all_reduce(buffers_of(8, 240), "ring", chunks), 1e-6, 1e9)

    assert seconds(8) < min(seconds(4), seconds(16))
    few = operations.all_reduce(buffers_of(8, 240), "ring", 2)
    assert max(len(step.moves) for step in few.steps) == 2


def test_ring_and_tree_cross_where_the_formula_says():
    at = collectives.ring_tree_crossover_bytes(64, 50e9, 5e-6)
    ring, tree = (
        f(at, 64, 50e9, 5e-6) for f in (collectives.ring_all_reduce_s, collectives.tree_all_reduce_s)
    )
    assert ring == pytest.approx(tree, rel=1e-12)
    assert collectives.ring_tree_crossover_bytes(np.array([1, 2]), 50e9, 5e-6).tolist() == [0, 0]
    assert collectives.ring_all_reduce_s(at / 2, 64, 50e9, 5e-6) > collectives.tree_all_reduce_s(
        at / 2, 64, 50e9, 5e-6
    )


@in_one_test("operation", ["all_reduce", "reduce_scatter", "all_to_all"])
@in_one_test("ranks", [2, 6, 8])
def test_bus_bandwidth_is_the_links_rate_when_messages_are_large(operation, ranks):
    """nccl-tests' convention makes busbw comparable with the wire: without latency the ring reaches it
    exactly."""
    cells = 4 * ranks
    run = operations.PRIMITIVES[operation](buffers_of(ranks, cells))
    time_s = engine_ranks.time_s(run, 0.0, 50e9)
    assert collectives.bus_bandwidth(operation, ranks, cells * run.cell_bytes, time_s) == pytest.approx(
        50e9, rel=1e-12
    )


def test_chain_broadcast_reaches_the_links_rate_with_many_chunks():
    runs = [operations.broadcast(buffers_of(8, 600), chunks=chunks) for chunks in (1, 10, 600)]
    seconds = [engine_ranks.time_s(run, 0.0, 1e9) for run in runs]
    assert seconds == pytest.approx([7 * 2.4e-6, 1.6 * 2.4e-6, 606 / 600 * 2.4e-6], rel=1e-12)


def test_cost_models_ring_is_the_executed_one():
    """interconnect.ring_s on plain wires: the executed time."""
    net = interconnect.plain(8.0, 400e9, 50e9, 1e-6, 4e-6)
    run = operations.all_reduce(buffers_of(8, 64), cell_bytes=1e9 / 64)
    executed = engine_ranks.time_s(run, 1e-6, net.link_bytes_per_s)
    assert interconnect.ring_s(1e9, 8.0, 8.0, net) == pytest.approx(executed, rel=1e-9)


# -- trees as NCCL builds them -------------------------------------------------------------------------------
def test_nccl_trees_of_its_own_illustrations():
    """graph/trees.cc draws both trees of 12 and of 13 ranks."""
    first, second = schedules.double_tree_parents(12)
    assert first == [None, 2, 4, 2, 8, 6, 4, 6, 0, 10, 8, 10]
    assert second == [1, 3, 1, 11, 5, 7, 5, 3, 9, 7, 9, None]
    shifted = schedules.double_tree_parents(13)[1]
    assert shifted[1] is None and shifted[9] == 1 and shifted[5] == 9 and shifted[0] == 9 and shifted[11] == 0


@in_one_test("ranks", range(2, 33, 2))
def test_no_rank_is_an_inner_one_in_both_trees(ranks):
    first, second = schedules.double_tree_parents(ranks)
    assert not (set(first) - {None}) & (set(second) - {None})


@in_one_test("ranks", range(2, 40))
def test_tree_depth_and_fan_out(ranks):
    for parents in schedules.double_tree_parents(ranks):
        assert max(schedules.depths(parents)) == int(np.ceil(np.log2(ranks)))
        assert max(parents.count(parent) for parent in parents if parent is not None) <= 2


# -- the machine refuses what is wrong -----------------------------------------------------------------------
def played(*moves):
    memory = full_memory([[1, 2], [3, 4], [5, 6]])
    return execute("test", memory, [MoveStep("test", (move,)) for move in moves], [(0, 2)], [(0, 2)] * 3)


def test_a_contribution_counts_once():
    with refused("rank 1", "twice"):
        played(Move(0, 1, 0, 2, 0, ADD), Move(0, 1, 0, 2, 0, ADD))


def test_empty_cells_cannot_be_sent():
    memory = engine_ranks.emptied(full_memory([[1], [2]]), np.array([[True], [False]]))
    with pytest.raises(ValueError, match="rank 1 must hold what it sends"):
        execute("test", memory, [MoveStep("test", (Move(1, 0, 0, 1, 0, PUT),))], [(0, 1)], [(0, 1)] * 2)


def test_all_messages_of_a_step_are_read_before_any_is_written():
    swap = MoveStep("swap", (Move(0, 1, 0, 1, 0, PUT), Move(1, 0, 0, 1, 0, PUT)))
    run = execute("swap", full_memory([[1], [2]]), [swap], [(0, 1)], [(0, 1)] * 2)
    assert [result.tolist() for result in run.results] == [[2], [1]]


def test_a_run_leaves_its_input_alone_and_keeps_every_state():
    buffers = buffers_of(4, 4)
    run = operations.all_reduce(buffers)
    np.testing.assert_array_equal(run.values[0], buffers)
    assert run.values.shape == (len(run.steps) + 1, 4, 4)
    for state, values in zip(run.holds, run.values):  # a cell is always the sum of those it says it holds
        np.testing.assert_array_equal(np.einsum("rck,kc->rc", state, buffers), values)


@in_one_test(
    "call, words",
    [
        (lambda: operations.all_reduce([[1, 2], [3]]), "buffers must have one length"),
        (lambda: operations.all_reduce([]), "buffers must be"),
        (lambda: operations.all_reduce([["a"]]), "buffers must be finite numbers"),
        (lambda: operations.all_reduce([[float("nan")]]), "buffers must be finite numbers"),
        (lambda: operations.all_reduce([[1]], "magic"), "algorithm must be one of"),
        (lambda: operations.all_reduce([[1]], chunks=0), "chunks must be"),
        (
            lambda: operations.all_reduce([[1]] * 3, "two_level", gpus_per_node=2),
            "gpus_per_node must divide the 3 ranks",
        ),
        (lambda: operations.all_reduce([[1]] * 3, "two_level"), "gpus_per_node must be given"),
        (lambda: operations.all_to_all([[1, 2, 3]] * 2), "a multiple of 2 cells"),
        (lambda: operations.broadcast([[1]], root=1), "root must be one of 0"),
        (lambda: operations.send_recv([[1]], destination=4), "destination must be one of 0"),
        (lambda: operations.all_reduce([[1]], cell_bytes=0), "cell_bytes must be greater than 0"),
        (lambda: engine_ranks.time_s(operations.all_reduce([[1]]), -1, 1), "alpha_s must be at least 0"),
        (lambda: engine_ranks.same_node(0, 8), "ranks must be a whole number"),
        (lambda: engine_ranks.same_node(8, 0.5), "gpus_per_node must be a whole number"),
    ],
)
def test_bad_input_is_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_example_is_made_of_digits_that_differ():
    digits = engine_ranks.example(16, 16)
    assert digits.min() == 1 and digits.max() == 9
    assert len({tuple(row) for row in digits}) == 16 and max(len(set(row)) for row in digits) >= 7
    np.testing.assert_array_equal(engine_ranks.example(4, 3), digits[:4, :3])
    assert digits.sum(axis=0).max() < 1000
