"""Frames of an executed collective: what they show at a moment is what the run has in that state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.executed import ranks_frames as film
from engine.executed import ranks_operations as operations
from engine.executed.ranks import bytes_by_wire, example

SIZE, STEPS = 16, 30


def ring(ranks, chunks):
    return operations.all_reduce(example(ranks, chunks), "ring", chunks)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), ranks=st.integers(2, SIZE))
def test_each_state_is_the_runs_own(data, ranks):
    run = ring(ranks, data.draw(st.integers(1, ranks)))
    frames, cells = film.frames(run, SIZE, STEPS), run.values.shape[2]
    for state in range(len(run.states)):
        shown = film.cells_at(frames, SIZE, state)
        grid = shown.values.reshape(SIZE, SIZE)
        assert (grid[:ranks, :cells] == run.values[state]).all()
        assert not grid[ranks:].any() and not grid[:, cells:].any()
        assert np.allclose(shown.shares.reshape(SIZE, SIZE)[:ranks, :cells] * ranks, run.contributions[state])
        arrived = {(m.destination, m.start) for m in run.log if m.step == state - 1}
        assert {tuple(place) for place in np.argwhere(shown.fresh.reshape(SIZE, SIZE)).tolist()} == arrived
        assert not film.messages_at(frames, SIZE, state).travels.any(), "between two steps nothing travels"


@settings(max_examples=40, deadline=None)
@given(data=st.data(), ranks=st.integers(2, SIZE))
def test_what_travels_is_what_the_log_says(data, ranks):
    run = ring(ranks, data.draw(st.integers(1, ranks)))
    frames = film.frames(run, SIZE, STEPS)
    for step in range(len(run.steps)):
        found = film.messages_at(frames, SIZE, step + 0.5)
        moves = {m.destination: m for m in run.log if m.step == step}
        assert set(np.flatnonzero(found.travels).tolist()) == set(moves)
        for rank, move in moves.items():
            assert found.chunks[rank] == move.start
            assert found.values[rank] == run.values[step, move.source, move.start]
            assert found.adds[rank] == (move.how == "add")


@settings(max_examples=40, deadline=None)
@given(data=st.data(), ranks=st.integers(2, SIZE))
def test_bytes_add_up_to_the_log_in_each_state_and_to_the_formula_at_the_end(data, ranks):
    chunks = data.draw(st.integers(1, ranks))
    run = ring(ranks, chunks)
    frames = film.frames(run, SIZE, STEPS)
    for state in range(len(run.states)):
        carried = film.carried_bytes(frames, SIZE, state, chunks, 1e9)
        into = run.link_bytes_so_far[state].sum(axis=0) / run.cell_bytes
        assert np.allclose(carried[:ranks], into * 1e9 / chunks) and not carried[ranks:].any()
    if chunks == ranks:
        assert np.allclose(carried[:ranks], 2 * (ranks - 1) / ranks * 1e9)


def test_halfway_through_a_step_half_of_its_message_is_over():
    frames = film.frames(ring(4, 4), SIZE, STEPS)
    assert np.allclose(film.carried_bytes(frames, SIZE, 1.5, 4, 1e9)[:4], 1.5 * 250e6)


@pytest.mark.parametrize(
    ("ranks", "chunks", "size", "steps"), [(5, 4, 4, 30), (4, 5, 4, 30), (16, 16, 16, 29)]
)
def test_a_run_that_does_not_fit_is_refused(ranks, chunks, size, steps):
    with pytest.raises(ValueError, match="run must fit"):
        film.frames(ring(ranks, chunks), size, steps)


def test_chunks_of_several_cells_are_refused():
    with pytest.raises(ValueError, match="one-cell chunks"):
        film.frames(operations.all_reduce(example(4, 8), "ring", 4), SIZE, STEPS)


def test_cells_that_change_too_often_are_refused():
    with pytest.raises(ValueError, match="change a cell at most 1 times"):
        film.frames(ring(4, 4), SIZE, STEPS, changes=1)


def test_an_exchange_has_buffers_and_results_in_their_places():
    found = film.exchange(operations.all_to_all(example(3, 3)), 4, 3)
    before, after = (np.reshape(values, (4, 4)) for values in (found.before, found.after))
    assert (before[:3, :3] == example(3, 3)).all() and (after[:3, :3] == example(3, 3).T).all()
    assert not before[3].any() and not after[:, 3].any()
    assert np.allclose(found.sent, [2 / 3, 2 / 3, 2 / 3, 0]) and found.steps == [2]


def test_an_exchange_leaves_out_what_is_no_result():
    found = film.exchange(operations.reduce(example(3, 3)), 4, 3)
    assert (np.reshape(found.after, (4, 4))[0, :3] == example(3, 3).sum(axis=0)).all()
    assert (
        not np.reshape(found.after, (4, 4))[1:].any()
        and not np.reshape(found.holds_after, (4, 4, 4))[1:].any()
    )


def test_an_exchange_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="run must fit"):
        film.exchange(operations.all_to_all(example(5, 5)), 4, 5)


def test_the_messages_of_a_step_are_its_moves():
    run = operations.all_reduce(example(4, 4))
    found = film.frames(run, 4, 6)
    assert not film.messages_of(found, 4, 0).travels.any()
    for move in run.log:
        messages = film.messages_of(found, 4, move.step + 1)
        assert messages.travels.all() and messages.chunks[move.destination] == move.start
        assert messages.values[move.destination] == run.carried(move)[0]


@pytest.mark.parametrize(("nodes", "gpus"), [(2, 4), (4, 2), (2, 8), (4, 4)])
def test_ways_lead_from_the_senders_of_the_log_over_the_wires_of_the_run(nodes, gpus):
    count = nodes * gpus
    run = operations.all_reduce(example(count, count), "two_level", gpus_per_node=gpus)
    ways = film.ways(run, gpus, SIZE, STEPS)
    for step in range(len(run.steps)):
        found = film.way_at(ways, SIZE, step + 0.5)
        for move in (move for move in run.log if move.step == step):
            to = move.destination
            assert (found.sources[to], found.cells[to]) == (move.source, move.stop - move.start)
            assert found.leaves[to] == (move.source // gpus != to // gpus)
    for sent, come in zip(bytes_by_wire(run, gpus), film.arrived_bytes(ways, SIZE, STEPS, count, 1.0)):
        assert come[:count].sum() == pytest.approx(sent.sum() / (count * run.cell_bytes))
    half = film.arrived_bytes(ways, SIZE, 0.5, count, 1.0)
    assert half[0][:count] == pytest.approx(1 / gpus / 2) and not half[1].any()


def test_ways_refuse_a_run_that_is_too_long():
    with pytest.raises(ValueError, match="must fit 16 ranks and 3 steps"):
        film.ways(ring(4, 4), 2, SIZE, 3)
