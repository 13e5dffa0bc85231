"""One machine: sums by hand, and every order of a few jobs tried."""

import itertools
import random

import pytest

from engine.executed.one_machine import least_end_s


def in_order(jobs):
    now, end = 0.0, 0.0
    for ready, lasts, after in jobs:
        now = max(now, ready) + lasts
        end = max(end, now + after)
    return end


def test_a_job_that_comes_later_interrupts():
    """Job 1 runs from 0 to 1 and from 3 to 5; job 2 from 1 to 3, with 4 after it."""
    assert least_end_s([0.0, 1.0], [3.0, 2.0], [0.0, 4.0]) == 7.0


def test_waits_count():
    assert least_end_s([2.0], [1.0], [5.0]) == 8.0 and least_end_s([], [], []) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_whole_jobs_ends_earlier(seed):
    choice = random.Random(seed)
    jobs = [tuple(float(choice.randint(low, 6)) for low in (0, 1, 0)) for _ in range(6)]
    least = min(in_order(order) for order in itertools.permutations(jobs))
    bound = least_end_s(*(list(column) for column in zip(*jobs, strict=True)))
    assert max(sum(job) for job in jobs) <= bound <= least
