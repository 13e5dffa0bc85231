"""Measuring the machine: plausible, bounded, and said when it cannot be done."""

import numpy as np
import pytest

from engine.one_gpu import measure


def test_best_is_the_fastest_run_not_the_mean(monkeypatch):
    clock = iter([0, 0, 5, 5, 7, 7, 20])  # runs of 5, 2 and 13 seconds, after the one that is not counted
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    assert measure.best_s(lambda: None, 15) == 2


def test_a_copy_counts_what_is_read_and_what_is_written(monkeypatch):
    copied = []
    monkeypatch.setattr(np, "copyto", lambda target, source: copied.append(target.size))
    monkeypatch.setattr(measure, "best_s", lambda work, seconds: (work(), 0.5)[1])
    assert measure.copy_bytes_per_s(1000, threads=3) == 4000
    assert sum(copied) == 1000


def test_a_product_counts_two_flops_for_each_of_its_cubes(monkeypatch):
    monkeypatch.setattr(measure, "best_s", lambda work, seconds: 0.001)
    assert measure.matmul_flops_per_s(100) == pytest.approx(2e9)


@pytest.mark.parametrize(("cores", "threads"), [(4, 4), (64, 8)])
def test_no_more_than_eight_threads_copy(monkeypatch, cores, threads):
    """A few of them fill the bus, and more get into each other's way."""
    monkeypatch.setattr(measure.os, "sched_getaffinity", lambda _: range(cores), raising=False)
    monkeypatch.setattr(measure, "matmul_flops_per_s", lambda: 1e9)
    monkeypatch.setattr(measure, "copy_bytes_per_s", lambda threads: threads * 1e9)
    assert measure.machine() == measure.MeasuredCpu(1e9, threads * 1e9, cores)


def test_this_machine_has_a_roofline():
    """A computer that runs the tests does at least a GFLOP and moves a GB a second, and nothing does an
    exaflop."""
    found = measure.machine_apart(60.0)
    assert 1e9 < found.flops_per_s < 1e18
    assert 1e9 < found.bytes_per_s < 1e15
    assert found.cores >= 1


def test_a_machine_too_slow_is_said_and_let_go():
    with pytest.raises(RuntimeError, match=r"within 0\.05 s"):
        measure.machine_apart(0.05)


@pytest.mark.parametrize("bad", [0, -1, float("nan")])
def test_bad_limits_are_refused(bad):
    with pytest.raises(ValueError, match="longest_s must be"):
        measure.machine_apart(bad)
