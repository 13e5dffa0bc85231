"""Missions: each is won by the planner's own layout and lost by a plain one; faults are those of the engine."""

import random

import pytest

from engine import missions, planner, search
from engine.layout import Job, Layout, estimate, require_legal
from engine.memory import RECOMPUTE

ALL = missions.missions()
OF_RECOMPUTE = {value: key for key, value in RECOMPUTE.items()}


def test_there_are_twelve_and_more_each_with_a_ladder():
    assert len(ALL) >= 12
    assert all(len(mission.hints) == 3 and mission.brief.endswith(".") for mission in ALL.values())


@pytest.mark.parametrize("key", ALL)
def test_the_planner_s_own_layout_wins_and_its_figures_are_the_estimate_s(key):
    mission, a = ALL[key], missions.answer(ALL[key])
    verdict = missions.by_hand(key, a.tp, a.pp, a.cp, a.ep, a.expert_tp, a.zero, a.micro_batch, a.recompute,
                               planner.SCHEDULE_NAMES[int(a.schedule)])
    best = search.plan(mission.model, mission.at, Job(mission.batch, mission.seq, mission.recipe), mission.gpus, top=1).best
    assert verdict.won and verdict.fits and verdict.fault < 0
    assert verdict.step_s == best.step_s and verdict.total_bytes == pytest.approx(best.terms.total_bytes, rel=1e-12)
    assert verdict.mfu == pytest.approx(best.mfu(), rel=1e-12)
    assert verdict.days == pytest.approx(mission.tokens / best.tokens_per_s / 86400, rel=1e-12)
    assert verdict.dollars == pytest.approx(verdict.days * 24 * mission.gpus * mission.price, rel=1e-12)


@pytest.mark.parametrize("key", ALL)
def test_a_first_try_loses(key):
    """One of everything: each mission asks for a choice."""
    assert not missions.by_hand(key).won


@pytest.mark.parametrize("key", ["fit-7b", "gpt3", "mixtral", "deepseek-v3"])
def test_faults_are_those_that_the_engine_refuses(key):
    mission, chance = ALL[key], random.Random(key)
    job, broken = Job(mission.batch, mission.seq, mission.recipe), 0
    for _ in range(400):
        tp, cp = chance.choice([1, 2, 4, 8, 64]), chance.choice([1, 2, 8, 64])
        ep, split = chance.choice([1, 2, 3, 8, 256]), chance.random() < 0.3
        pp, micro_batch = chance.choice([1, 2, 3, 4, 7, 16, 61, 128]), chance.choice([1, 2, 16])
        schedule = chance.choice(planner.SCHEDULE_NAMES)
        index = planner.SCHEDULE_NAMES.index(schedule)
        verdict = missions.by_hand(key, tp, pp, cp, ep, tp if split else 1, 1, micro_batch, 0, schedule)
        layout = Layout(mission.gpus, tp, pp, cp, ep, 1, micro_batch, "none", planner.SCHEDULE_KEYS[index],
                        planner.CHUNKS[index], tp if split else 1)
        try:
            require_legal(mission.model, job, layout)
            assert verdict.fault < 0, layout
            assert verdict.step_s == estimate(mission.model, mission.at, job, layout).step_s
        except ValueError as refused:
            dense_split = split and tp > 1 and not mission.model.experts
            assert verdict.fault >= 0 or dense_split, f"{layout}: {refused}"
            broken += 1
    assert 50 < broken < 400


def test_what_the_list_tells():
    assert missions.by_hand("fit-7b").total_bytes / 1e9 == pytest.approx(57.6, abs=0.1)     # 40 GB on the chip
    assert missions.by_hand("fit-7b", zero=3).won
    textbook = missions.by_hand("classic-70b", tp=8, pp=4)
    assert textbook.fits and not textbook.won       # the textbook's layout is good, and not the best
    assert missions.FAULTS[int(missions.by_hand("fit-7b", tp=64).fault)].startswith("tensor")
