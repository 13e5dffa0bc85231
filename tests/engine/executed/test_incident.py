"""Sixteen ranks with a fault: what they leave behind, by hand."""

import numpy as np
import pytest

from engine.executed import incident
from engine.executed.incident import (
    ACTIVATION,
    ACTIVATIONS,
    COMPLETED,
    CORRUPT,
    CROSSED,
    FSDP,
    GATHER,
    HEALTHY,
    KILLED,
    KINDS,
    LOADER,
    NORM,
    PORT,
    SCATTER,
    SCHEDULED,
    SIZES,
    SKIPPED,
    STARTED,
    SWAPPED,
    TENSOR,
    THROTTLED,
    WINDOW,
    WORLD,
    WRITER,
)
from tests.cases import in_one_test

HANGS = {PORT: 0.0, SKIPPED: 0.0, SWAPPED: 0.0, SIZES: 0.5, CROSSED: 0.0, KILLED: 45e9}


def ranks(kind=HEALTHY, rank=6, step=4, size=0.0, seed=7):
    return incident.ranks(kind, rank, step, size, seed)


def dump(found: dict, rank: int) -> list[tuple]:
    """(kind of group, number, operation, state) of a rank's last calls."""
    rows = range(rank * WINDOW, (rank + 1) * WINDOW)
    return [tuple(int(found[name][row]) for name in ("kind", "seq", "op", "state")) for row in rows]


def far(found: dict, rank: int, kind: int) -> tuple[float, float]:
    """(enqueued, completed) of a rank in a kind of group."""
    place = rank * KINDS + kind
    return found["enqueued"][place], found["completed"][place]


def test_ranks_in_health_come_to_the_end():
    """A step has two gathers forward, two backward and two scatters; an AllReduce of activations in each of
    four passes; one norm. Two of eight steps end with a checkpoint and its barrier."""
    found = ranks()
    assert (found["done"], found["hangs"]) == (8, 0)
    for r in range(16):
        assert far(found, r, FSDP) == (48, 48) and far(found, r, TENSOR) == (32, 32)
        assert far(found, r, WORLD) == (10, 10)
    assert set(found["state"]) == {COMPLETED} and set(found["spoke_s"]) == {-1}
    assert np.flatnonzero(found["save_s"] > 0).tolist() == [2, 6]


def test_a_step_takes_what_its_parts_take():
    """30 ms of data, 2 × 60 and 2 × 120 ms of arithmetic, six times 3/4 of 2 bytes × 268 million at 50 GB/s,
    four times 2 × 3/4 of 2 bytes × 33.6 million at 450 GB/s; whoever is latest decides, so up to a quarter
    more for the data and 1 % for arithmetic."""
    least = 0.03 * 0.75 + 0.36 * 0.99 + 6 * 0.75 * 2 * 268435456 / 50e9 + 4 * 1.5 * 2 * 33554432 / 450e9
    most = least + 0.03 * 0.5 + 0.36 * 0.02 + 11 * 20e-6
    assert ((least < ranks()["step_s"]) & (ranks()["step_s"] < most)).all()


def test_own_times_and_waiting_make_a_step():
    found = ranks()
    whole = found["data_s"] + found["compute_s"] + found["inside_s"]
    assert whole == pytest.approx(np.full(16, found["step_s"][-1]), abs=1e-9)


def test_a_hot_gpu_lowers_its_clock():
    """At 0.2 degrees a watt 87 degrees are 63 above the inlet: 315 W of 650, and the clock follows with the
    third root."""
    found = ranks(THROTTLED, size=0.2)
    assert found["watt"][6] == 315 and found["celsius"][6] == 87
    assert found["mhz"][6] == pytest.approx(1980 * (315 / 650) ** (1 / 3))
    assert found["compute_s"][6] / np.median(found["compute_s"]) == pytest.approx(
        (650 / 315) ** (1 / 3), rel=0.02
    )
    assert np.argmin(found["inside_s"]) == 6  # who is late waits the least
    others = np.delete(found["mhz"], 6)
    assert (others == 1980).all() and np.max(np.delete(found["celsius"], 6)) > 80  # warm, and nobody's fault


def test_a_slow_loader_delays_everybody_by_its_seconds():
    late, healthy = ranks(LOADER, size=0.3), ranks()
    assert late["data_s"][6] > 0.3 and np.delete(late["data_s"], 6).max() < 0.04
    assert late["step_s"][4:] - healthy["step_s"][4:] == pytest.approx(np.full(4, 0.3), abs=0.02)
    assert late["step_s"][:4].tolist() == healthy["step_s"][:4].tolist()


def test_a_slow_writer_delays_the_checkpoint_alone():
    late, healthy = ranks(WRITER, size=4.0), ranks()
    assert late["step_s"] == pytest.approx(healthy["step_s"], rel=0.01)
    assert late["save_s"][2] == healthy["save_s"][2] and late["save_s"][6] == pytest.approx(4.4, abs=0.03)
    assert np.argmax(late["write_s"]) == 6


def test_one_lane_of_four_slows_the_groups_of_that_port():
    """Its FSDP collectives take four times as long once all have come, whoever waits for whom; the other
    groups' do not."""
    found = ranks(PORT, size=1.0)
    took = {}
    for rank, what, start, end in zip(
        found["piece_rank"], found["piece_what"], found["piece_start_s"], found["piece_end_s"]
    ):
        if what == SCATTER and start > found["from_s"]:
            took.setdefault(int(rank) % 4, []).append(end - start)
    slow, rest = min(took.pop(2)), max(max(each) for each in took.values())
    bytes_ = 0.75 * 2 * 268435456
    assert slow == pytest.approx(20e-6 + bytes_ / 12.5e9) and rest == pytest.approx(20e-6 + bytes_ / 50e9)
    assert found["downed"][6] > 0 and not np.delete(found["downed"], 6).any()


def test_a_dead_port_leaves_a_group_that_agrees_and_does_not_end():
    found = ranks(PORT, size=0.0)
    assert found["done"] == 4
    heads = {dump(found, r)[1] for r in (2, 6, 10, 14)}
    assert heads == {(FSDP, 25, GATHER, STARTED)}  # the first gather of the fifth step, on all four


def test_a_rank_that_skips_a_collective_has_called_one_less():
    """Five of the fifth step's six in place of six; it waits in the norm with those that are through, its
    group in the scatter."""
    found = ranks(SKIPPED)
    assert far(found, 6, FSDP) == (29, 29) and far(found, 2, FSDP) == (30, 29)
    assert dump(found, 6)[1] == (WORLD, 6, NORM, STARTED)
    assert dump(found, 2)[1:3] == [(FSDP, 30, SCATTER, STARTED), (WORLD, 6, NORM, SCHEDULED)]
    assert dump(found, 0)[1] == (WORLD, 6, NORM, STARTED)


def test_a_rank_that_swaps_two_calls_of_one_group_meets_another_operation():
    """After 24 calls in four steps: two gathers forward and one backward, so the scatter is the 28th."""
    found = ranks(SWAPPED)
    assert [dump(found, r)[1][1:3] for r in (2, 6, 10, 14)] == [
        (28, SCATTER),
        (28, GATHER),
        (28, SCATTER),
        (28, SCATTER),
    ]


def test_a_rank_with_a_shorter_batch_brings_another_size():
    found = ranks(SIZES, size=0.5)
    sizes = [found["numel"][r * WINDOW + 1] for r in (4, 5, 6, 7)]
    assert sizes == [ACTIVATION, ACTIVATION, ACTIVATION / 2, ACTIVATION]
    assert {dump(found, r)[1] for r in (4, 5, 6, 7)} == {(TENSOR, 17, ACTIVATIONS, STARTED)}


def test_two_groups_in_the_wrong_order_wait_in_a_ring():
    """Rank 6 waits for all before it scatters; its group waits in the scatter for rank 6. It has called as
    much as they have."""
    found = ranks(CROSSED)
    assert far(found, 6, FSDP) == (30, 29) == far(found, 2, FSDP)
    assert dump(found, 6)[1:3] == [(WORLD, 6, NORM, STARTED), (FSDP, 30, SCATTER, SCHEDULED)]
    assert dump(found, 2)[1:3] == [(FSDP, 30, SCATTER, STARTED), (WORLD, 6, NORM, SCHEDULED)]


def test_a_process_that_grows_past_its_limit_is_gone():
    """From 60 GB, give or take a tenth, 50 GB more in each step: past 240 GB with the fourth batch, before it
    is loaded."""
    found = ranks(KILLED, size=50e9)
    assert found["done"] == 3 and found["killed"].tolist() == [float(r == 6) for r in range(16)]
    assert {row[-1] for row in dump(found, 6)} == {-1} and found["spoke_s"][6] == -1
    assert (np.delete(found["spoke_s"], 6) > 600).all()
    assert found["watt"][6] < min(np.delete(found["watt"], 6))


@in_one_test("kind, size", list(HANGS.items()))
def test_watchdogs_speak_in_the_order_in_which_ranks_called(kind, size):
    """Ten minutes after its call, give or take a look every tenth of a second: who called first and waits
    speaks first."""
    found = ranks(kind, size=size)
    speaks = found["spoke_s"] > 0
    assert ((found["ran_ms"][speaks] >= 600000) & (found["ran_ms"][speaks] <= 600100)).all()
    rows = found["of"][speaks].astype(int)
    assert set(found["state"][rows]) == {STARTED}
    assert found["hangs"] and not any(row[-1] == SCHEDULED for r in range(16) for row in dump(found, r)[:1])


def test_wrong_bits_are_seen_in_the_norm_and_on_a_second_try_alone():
    wrong, healthy = ranks(CORRUPT, size=6.0), ranks()
    assert wrong["step_s"].tolist() == healthy["step_s"].tolist()
    assert (
        wrong["norm"][:4].tolist() == healthy["norm"][:4].tolist()
        and wrong["norm"][4] > 3 * healthy["norm"][4]
    )
    pieces = wrong["bits"].reshape(4, 4)  # by replica and tensor rank
    assert [len(set(pieces[:, i])) for i in range(4)] == [1, 1, 2, 1] and healthy["bits"][6] != wrong["bits"][
        6
    ]


def test_gradient_descent_is_what_numpy_does_without_noise(monkeypatch):
    """With weights all alike and batches that agree, a step is w − rate · w/|w| once the norm is above 1."""
    monkeypatch.setattr(incident, "roll", lambda dice: 0.5)
    loss, norm = [], []
    incident.train(incident.RankFault(HEALTHY, 0, 0, 0.0), 2, [1.0], loss, norm)
    w = np.full(12, 0.4)
    assert norm[0] == pytest.approx(np.linalg.norm(w)) and loss[0] == pytest.approx(1.9 + (w @ w) / 2)
    w = w - incident.RATE * w / np.linalg.norm(w)
    assert norm[1] == pytest.approx(np.linalg.norm(w))
