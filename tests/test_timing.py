"""``too_slow`` reports what is over its budget, and nothing else."""

from itertools import count

import pytest

from tests import timing


@pytest.fixture(autouse=True)
def quiet_hour(monkeypatch):
    monkeypatch.setattr(timing.processor, "slowness", lambda: 1.0)


def test_what_is_quick_is_measured_once():
    rounds = count()
    assert timing.too_slow(lambda: {"part": next(rounds) + 9.0}, {"part": 5.0}) == {}
    assert next(rounds) == 1


def test_the_quickest_of_three_counts_and_each_for_itself():
    rounds = iter([{"a": 30.0, "b": 9.0}, {"a": 8.0, "b": 30.0}])
    assert timing.too_slow(lambda: next(rounds), {"a": 5.0, "b": 5.0}) == {}


def test_what_is_slow_each_time_is_named_with_how_slow():
    assert timing.too_slow(lambda: {"a": 30.0, "b": 9.0}, {"a": 5.0, "b": 5.0}) == {"a": 6.0}


def test_a_slow_hour_is_no_slow_program(monkeypatch):
    monkeypatch.setattr(timing.processor, "slowness", lambda: 3.0)
    assert timing.too_slow(lambda: {"a": 29.0}, {"a": 5.0}) == {}
