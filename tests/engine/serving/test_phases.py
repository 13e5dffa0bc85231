"""What a figure draws of a run: each request's times in their order, and a lane for each."""

import numpy as np

from engine.serving import phases


def test_the_times_of_requests_by_hand():
    """One that is read, sent and written; one on a shared server, whose cache is not sent; one refused, for
    which nothing takes any time."""
    columns = {
        "came_s": np.array([1.0, 2.0, 3.0]),
        "started_s": np.array([1.5, 2.0, -1.0]),
        "first_s": np.array([2.0, 4.0, -1.0]),
        "moved_s": np.array([2.5, -1.0, -1.0]),
        "last_s": np.array([9.0, 6.0, -1.0]),
        "pause_end_s": np.array([5.0, 5.0, -1.0]),
        "pause_s": np.array([2.0, 3.0, -1.0]),
    }
    at = phases.phases(columns)
    assert at.came_s.tolist() == [1.0, 2.0, 3.0]
    assert at.started_s.tolist() == [1.5, 2.0, 3.0]
    assert at.first_s.tolist() == [2.0, 4.0, 3.0]
    assert at.moved_s.tolist() == [2.5, 4.0, 3.0]
    assert at.last_s.tolist() == [9.0, 6.0, 3.0]
    assert at.paused_s.tolist() == [3.0, 4.0, 3.0]  # not before the first token
    assert at.resumed_s.tolist() == [5.0, 5.0, 3.0]
    assert phases.moving_s(columns).tolist() == [0.5, -1.0, -1.0]


def test_the_requests_of_a_replica_lie_together_in_the_order_in_which_they_came():
    """Of replica 1 the first, the third and the fourth, behind both of replica 0."""
    assert phases.lanes(np.array([1.0, 0.0, 1.0, 1.0, 0.0])).tolist() == [2, 0, 3, 4, 1]


def test_a_part_of_the_requests_keeps_the_columns_of_requests():
    columns = {"came_s": np.arange(5.0), "busy_s": np.arange(2.0), "prefilling_s": np.arange(2.0)}
    found = phases.since(columns, 1, 3)
    assert list(found) == ["came_s"] and found["came_s"].tolist() == [1.0, 2.0]
