"""The incident room: each case can be solved from its evidence alone, and what a verdict costs, by hand."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from engine.exam import incident_cases as cases
from engine.executed import incident
from tests import states
from tests.cases import in_one_test

SEEDS = [*range(1, 301), *states.some(range(301, cases.MOST_INCIDENTS + 1), 60)]


@cache
def solved(seed: int) -> tuple:
    """(the fault, what was seen, what follows from it)."""
    seen = cases.evidence(seed)
    return cases.case_of(seed), seen, cases.deduced(seen)


def test_the_evidence_alone_names_rank_and_cause():
    """For hundreds of incidents; ``follows`` is given what can be looked at, and not the fault."""
    wrong = [
        seed
        for seed in SEEDS
        if (solved(seed)[0].rank, solved(seed)[0].kind) != (solved(seed)[2]["rank"], solved(seed)[2]["cause"])
    ]
    assert wrong == []


def test_all_causes_are_drawn_about_as_often():
    counts = Counter(solved(seed)[0].kind for seed in range(1, 301))
    assert set(counts) == set(range(cases.CAUSES)) and min(counts.values()) > 15


def test_the_rank_that_complains_first_is_rarely_the_one():
    """Of sixteen that wait, any may have called first."""
    hung = [solved(seed) for seed in range(1, 301) if solved(seed)[1]["hangs"]]
    blamed = [
        np.argmin(np.where(seen["spoke_s"] < 0, np.inf, seen["spoke_s"])) == fault.rank
        for fault, seen, _ in hung
    ]
    assert len(hung) > 100 and 0 < np.mean(blamed) < 0.2


def test_only_what_the_look_before_asks_for_is_looked_at():
    looks = {
        int(fault.kind): [cases.MINUTES[i] for i in range(7) if found["looks"][i]]
        for fault, _, found in (solved(seed) for seed in range(1, 301))
        if fault.kind != incident.PORT
    }
    assert looks == {
        incident.THROTTLED: [3, 3],
        incident.LOADER: [3],
        incident.WRITER: [3],
        incident.SKIPPED: [4],
        incident.SWAPPED: [4],
        incident.SIZES: [4],
        incident.CROSSED: [4],
        incident.KILLED: [4, 3],
        incident.CORRUPT: [15],
    }
    ports = {
        (int(fault.size), found["minutes"])
        for fault, _, found in map(solved, range(1, 301))
        if fault.kind == incident.PORT
    }
    assert ports == {
        (0, 7),
        (1, 6),
        (2, 6),
    }  # dumps and ports of a dead one; own times and ports of a slow one


def test_a_group_is_what_its_ranks_say():
    for kind, groups in ((incident.WORLD, 1), (incident.FSDP, 4), (incident.TENSOR, 4)):
        found = {incident.group_of(r, kind) for r in range(16)}
        assert len(found) == groups
        for group in found:
            assert all(incident.group_of(r, kind) == group for r in incident.members(group))
            assert len(incident.members(group)) == 16 / groups


@in_one_test(
    "share, looked, right, by_evidence, minutes, points",
    [
        (1.0, 4.0, True, 4.0, 14.0, 10.0),  # 4 of looking and 10 to come back
        (1.0, 33.0, True, 4.0, 43.0, 3.0),  # everything, while all stands still: 14/43
        (0.25, 33.0, True, 3.0, 18.25, 5.0),  # the same at three quarters of the pace: 10.75/18.25
        (1.0, 0.0, True, 4.0, 10.0, 10.0),  # a lucky guess, and no more than all points
        (1.0, 4.0, False, 4.0, 38.0, 0.0),  # 14, then 10 until it hangs again, 4 of looking, 10 to come back
        (0.25, 8.0, False, 4.0, 25.5, 0.0),  # 2 + 10, then a quarter of 14, and 10
    ],
)
def test_goodput_by_hand(share, looked, right, by_evidence, minutes, points):
    assert cases.lost_min(share, looked, right, by_evidence) == minutes
    assert cases.points(share, looked, right, by_evidence) == points


def test_looks_add_up():
    assert cases.looked_min([1.0] * 7) == 33 and cases.looked_min([0, 1, 0, 0, 1, 0, 0]) == 7


def test_what_a_fault_takes_of_the_pace():
    """A loader that is 0.25 s late in each step of about 0.45 s, a checkpoint of 0.4 s every fourth."""
    slow = incident.ranks(incident.LOADER, 3, 4, 0.25, 5)
    healthy = incident.ranks(incident.HEALTHY, 3, 4, 0.0, 5)
    before = 4 * healthy["step_s"][0] + healthy["save_s"][2]
    assert cases.lost_share(slow) == pytest.approx(1 - before / (before + 1.0), abs=0.02)
    assert cases.lost_share(healthy) == pytest.approx(0, abs=0.02)
    for kind, size in ((incident.SKIPPED, 0.0), (incident.CORRUPT, 7.0)):
        assert cases.lost_share(incident.ranks(kind, 3, 4, size, 5)) == 1
