"""Missions: each is won by the planner's own layout and lost by a plain one; faults are those of the
engine."""

import random

import pytest

from engine import catalog
from engine.base import check
from engine.catalog import models
from engine.exam import missions
from engine.frameworks import run_by_some
from engine.mechanism import memory
from engine.mechanism.memory import RECOMPUTE
from engine.step import cases, search
from engine.step.layout import Job, Layout, estimate, require_legal
from tests.cases import in_one_test

ALL = missions.missions()
OF_RECOMPUTE = {value: key for key, value in RECOMPUTE.items()}


def test_there_are_twelve_and_more_each_with_a_ladder():
    assert len(ALL) >= 12
    assert all(len(mission.hints) == 3 and mission.brief.endswith(".") for mission in ALL.values())


def test_no_mission_trains_on_more_tokens_than_its_model_reads():
    assert [m.name for m in ALL.values() if m.seq > m.model.max_context] == []


@pytest.mark.parametrize("key", ALL)
def test_the_planner_s_own_layout_wins_and_its_figures_are_the_estimate_s(key):
    mission, a = ALL[key], missions.answer(ALL[key])
    verdict = missions.by_hand(
        key,
        a.tp,
        a.pp,
        a.cp,
        a.ep,
        a.expert_tp,
        a.zero,
        a.micro_batch,
        a.recompute,
        cases.SCHEDULE_NAMES[int(a.schedule)],
    )
    best = search.plan(
        mission.model,
        mission.at,
        Job(mission.batch, mission.seq, mission.recipe),
        mission.gpus,
        top=1,
        within=run_by_some(),
    ).best
    assert verdict.won and verdict.fits and verdict.fault < 0
    assert verdict.step_s == best.step_s and verdict.total_bytes == pytest.approx(
        best.terms.total_bytes, rel=1e-12
    )
    assert verdict.mfu == pytest.approx(best.mfu(), rel=1e-12)
    assert verdict.days == pytest.approx(mission.tokens / best.tokens_per_s / 86400, rel=1e-12)
    assert verdict.dollars == pytest.approx(verdict.days * 24 * mission.gpus * mission.price, rel=1e-12)


@in_one_test("key", ALL)
def test_a_first_try_loses(key):
    """What a reader starts from can be built and does not win: each mission asks for a choice. Ones alone do
    not either."""
    with check.trusted():
        start = missions.judge(ALL[key], missions.first_try(ALL[key]))
    assert start.fault < 0 and not start.won and not missions.by_hand(key).won


@pytest.mark.parametrize("key", ["fit-7b", "gpt3", "mixtral", "deepseek-v3"])
def test_faults_are_those_that_the_engine_refuses(key):
    mission, chance = ALL[key], random.Random(key)
    job, broken = Job(mission.batch, mission.seq, mission.recipe), 0
    for _ in range(400):
        tp, cp = chance.choice([1, 2, 4, 8, 64]), chance.choice([1, 2, 8, 64])
        ep, split = chance.choice([1, 2, 3, 8, 256]), chance.random() < 0.3
        pp, micro_batch = chance.choice([1, 2, 3, 4, 7, 16, 61, 128]), chance.choice([1, 2, 16])
        schedule = chance.choice(cases.SCHEDULE_NAMES)
        index = cases.SCHEDULE_NAMES.index(schedule)
        verdict = missions.by_hand(key, tp, pp, cp, ep, tp if split else 1, 1, micro_batch, 0, schedule)
        layout = Layout(
            mission.gpus,
            tp,
            pp,
            cp,
            ep,
            1,
            micro_batch,
            "none",
            cases.SCHEDULE_KEYS[index],
            cases.CHUNKS[index],
            tp if split else 1,
        )
        try:
            require_legal(mission.model, job, layout)
            refused = None
        except ValueError as fault:
            refused = fault
            broken += 1
        assert (verdict.fault < 0) == (refused is None), f"{layout}: {refused}"
        if refused is None:
            assert verdict.step_s == estimate(mission.model, mission.at, job, layout).step_s
    assert 50 < broken < 400


def test_what_the_list_tells():
    assert missions.by_hand("fit-7b").total_bytes / 1e9 == pytest.approx(57.6, abs=0.1)  # 40 GB on the chip
    assert missions.by_hand("fit-7b", zero=3).won
    textbook = missions.by_hand("classic-70b", tp=8, pp=4)
    assert textbook.fits and not textbook.won  # the textbook's layout is good, and not the best
    assert missions.FAULTS[int(missions.by_hand("fit-7b", tp=64).fault)].startswith("tensor")


@pytest.mark.parametrize("key", [key for key, mission in ALL.items() if mission.gpu.key.startswith("a100")])
def test_no_more_is_asked_of_an_a100_than_papers_report(key):
    """41.5 to 56.3 % MFU (arXiv:2205.05198 Table 5)."""
    assert ALL[key].least_mfu <= 0.563


@in_one_test(
    "key, layout",
    [
        ("gpt3", {"tp": 8, "pp": 8, "schedule": "interleaved × 6"}),
        ("gpt3", {"tp": 4, "pp": 8, "schedule": "interleaved × 6"}),
        ("dense-33b", {"tp": 4, "pp": 4}),
        ("fit-13b", {"zero": 3, "cp": 4}),
        ("fit-13b", {"zero": 3, "tp": 4}),
        ("llama3-405b", {"tp": 4, "pp": 16, "cp": 4, "schedule": "interleaved × 4"}),
        ("mixtral", {"ep": 8}),
        ("mixtral", {"pp": 2, "ep": 8, "zero": 2, "schedule": "dualpipe"}),
        ("trillion", {"pp": 8, "ep": 16, "cp": 2, "schedule": "interleaved × 4"}),
        ("deepseek-v3", {"tp": 2, "pp": 8, "ep": 32}),
        ("deepseek-v3", {"pp": 16, "ep": 8, "recompute": 2, "schedule": "dualpipe"}),
        ("deepseek-v3", {"pp": 8, "ep": 16, "recompute": 2, "schedule": "dualpipe"}),
        ("deepseek-v3", {"pp": 16, "ep": 16, "recompute": 2, "schedule": "dualpipe"}),
    ],
)
def test_layouts_that_the_hints_lead_to_win(key, layout):
    assert missions.by_hand(key, **layout).won


@in_one_test(
    "key, layout",
    [
        ("gpt3", {"tp": 8, "pp": 8, "recompute": 2}),
        ("gpt3", {"tp": 8, "pp": 8}),
        ("dense-33b", {"zero": 3, "recompute": 2}),
        ("dense-33b", {"tp": 8}),
        ("fit-13b", {"zero": 3, "recompute": 2}),
        ("fit-13b", {"tp": 8}),
        ("llama3-405b", {"tp": 8, "pp": 16, "schedule": "interleaved × 4"}),
        ("llama3-405b", {"tp": 4, "pp": 8, "cp": 4, "zero": 2, "schedule": "interleaved × 8"}),
    ],
)
def test_layouts_that_fit_and_lose(key, layout):
    verdict = missions.by_hand(key, **layout)
    assert verdict.fits and not verdict.won


def test_deepseeks_own_layout_by_hand():
    """Pipeline 16 under DualPipe, expert 64, ZeRO 1 (arXiv:2412.19437 section 3.1). The engine keeps in bf16
    what a token leaves in a layer; DeepSeek recompute norms, MLA up-projections and SwiGLU, and keep most of
    the rest in fp8 (3.2.3, 3.3.3). A stage in the middle is the fullest: 17 micro-batches of four layers,
    where the ends have three and two."""
    here, model = missions.deepseek_as_trained(), catalog.model("deepseek-v3")
    assert here.total_bytes / 1e9 == pytest.approx(172.6, abs=0.1) and not here.fits
    with check.trusted():
        kept = memory.kept_per_token(model, 4096, 1, 1, 0, 1, 1)
    assert kept == 8 * 7168 + 2 * 128 * (192 + 128) * 2 + 9 * 6 * 2048 + 8 * 4 * 7168 == 561152
    theirs = (
        2 * 2 * 7168  # inputs of both blocks, bf16
        + 2 * (1536 + 512 + 64)  # latent queries, keys and values, bf16
        + 1.5 * 128 * 128
        + 4 * 128  # what attention puts out, in 12 bits, and the softmax's statistics
        + (8 + 1) * 7168  # tokens as they reach experts and the shared one, fp8
        + (8 + 1) * 2 * 2048
    )  # gate and up, fp8
    assert theirs == pytest.approx(159e3, rel=0.01)
    framework, weights, gradients, optimizer, activations = here.parts_bytes / 1e9
    fp32_gradients, bf16_moments = 2 * gradients, (4 + 2 + 2) / 12 * optimizer
    assert framework + weights + fp32_gradients + bf16_moments + theirs / kept * activations == pytest.approx(
        68, abs=1
    )
    assert pytest.approx(54.2, abs=0.05) == 2.664e6 / 2048 / 24 and models.parameters(model) == pytest.approx(
        671e9, rel=0.01
    )
