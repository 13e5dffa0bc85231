"""A graph replays addresses: what that gives, cell by cell, by hand."""

import numpy as np

from engine.one_gpu import replay
from engine.one_gpu.replay import ADDED, ARRIVED, CAPTURED, INPUT, NEW, OUTPUT, SCRATCH


def run(stage=ADDED, rows=4, captured=4, copied=1, pooled=1):
    return replay.replay(stage, rows, captured, copied, pooled)


def cells(found, start, count):
    return found["memory"][start : start + count].tolist()


def test_capture_leaves_the_first_batch_s_answers():
    assert cells(run(CAPTURED), OUTPUT, 4) == [3, 5, 7, 9]


def test_copied_in_place_the_new_batch_gets_its_answers():
    found = run()
    assert (
        cells(found, OUTPUT, 4) == [21, 31, 41, 51]
        and found["wrong"] == found["spoilt"] == found["refused"] == 0
    )


def test_a_new_tensor_is_not_read():
    """The answers of the old batch come out again, and nothing says so."""
    found = run(copied=0)
    assert cells(found, NEW, 4) == [10, 15, 20, 25] and cells(found, OUTPUT, 4) == [3, 5, 7, 9]
    assert found["wrong"] == 4 and found["refused"] == 0


def test_a_longer_batch_gets_no_answer_past_the_captured_rows():
    found = run(rows=6, copied=0)
    assert found["wrong"] == 6 and np.isnan(cells(found, OUTPUT + 4, 2)).all()
    assert run(rows=6)["refused"] == 1


def test_a_shorter_batch_is_right_and_the_rest_is_the_old_one():
    found = run(rows=3)
    assert cells(found, OUTPUT, 4) == [21, 31, 41, 9] and found["wrong"] == 0


def test_without_its_own_pool_the_replay_overwrites_someone_else():
    before, after = run(ARRIVED, pooled=0), run(pooled=0)
    assert cells(before, SCRATCH, 4) == [7, 7, 7, 7] and before["spoilt"] == 0
    assert cells(after, SCRATCH, 4) == [20, 30, 40, 50] and after["spoilt"] == 4 and after["wrong"] == 0
    assert after["spoilt_at"][:4].tolist() == [SCRATCH, SCRATCH + 1, SCRATCH + 2, SCRATCH + 3]


def test_an_address_is_a_cell_of_a_stretch():
    stretch, column = replay.place(np.array([INPUT, OUTPUT + 3, NEW]))
    assert stretch.tolist() == [0, 2, 3] and column.tolist() == [0, 3, 0]
