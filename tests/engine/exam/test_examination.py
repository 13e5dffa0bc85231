"""The examination: specs that could be real, the planner's answer to them, and points by hand."""

import os
import random
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from engine import catalog
from engine.base import check
from engine.base.units import DAY
from engine.calibration import bands
from engine.catalog import models
from engine.exam import examination
from engine.exam.examination import ChosenLayout, Paper
from engine.frameworks.registry import abilities
from engine.mechanism.memory import RECOMPUTE
from engine.step import cases, planner, search
from engine.step.constraints import Constraints
from engine.step.layout import Job, Layout, estimate, require_legal
from tests.cases import in_one_test

SEEDS = [*range(1, 500, 1), 2026, 1917]
SEARCHED = [
    1,
    8,
    99,
    *range(100, 1300, 12),
]  # enough for every bottleneck; a search takes about a twentieth of a second


def power_of_two(value) -> bool:
    return value == 2 ** round(np.log2(value))


def in_whole_numbers(seed):
    """A spec's model and job as arguments of the single estimate."""
    job = examination.spec(seed)
    return job.model, Job(int(job.batch), int(job.seq), job.recipe), int(job.gpus)


# -- what is drawn -------------------------------------------------------------------------------------------
def test_the_generator_is_the_standard_one():
    """C++ [rand.predef]: the 10000th number of a default-constructed minstd_rand, which starts from 1, is
    399268537."""
    dice = [1]
    for _ in range(10_000):
        examination.roll(dice, 6)
    assert dice == [399268537]


@pytest.mark.parametrize("sides", [1, 2, 6])
def test_a_roll_has_each_side_about_as_often(sides):
    dice = [20261121]
    found = Counter(examination.roll(dice, sides) for _ in range(6000))
    assert sorted(found) == list(range(sides))
    assert all(
        abs(count - 6000 / sides) < 5 * (6000 / sides) ** 0.5 for count in found.values()
    )  # five standard deviations


def test_a_spec_is_a_model_that_could_be_and_a_cluster_that_is_sold():
    """``spec`` outside of ``check.trusted`` has the engine's own checks of a model: whole numbers, KV heads
    that divide heads."""
    for seed in SEEDS:
        job = examination.spec(seed)
        model, small = job.model, seed < examination.WARM_UPS
        assert model.hidden == model.heads * examination.HEAD_DIM
        assert 0 < model.top_k <= model.experts / 4 if model.experts else model.top_k == 0
        assert (model.ffn > 0) != (model.experts > 0) and (model.ffn + model.expert_ffn) % 64 == 0
        assert 0.9e9 < job.active_params <= job.params < (13e9 if small else 1e12)
        assert not (small and model.experts)
        assert (
            power_of_two(job.gpus) and 8 <= job.gpus <= 16384 and power_of_two(job.batch) and job.batch >= 4
        )
        assert 2**19 <= job.step_tokens <= 2**26 and job.at.gpu.key in examination.GPUS
        assert 16 * job.params < job.gpus * job.hbm_bytes, "the state alone is more than all of the memory"


def test_specs_differ_and_a_class_gets_the_same_one_next_year():
    assert (
        len({(*examination.spec(seed)[3:], examination.spec(seed).params) for seed in range(100, 400)}) > 290
    )
    job = examination.spec(2026)
    assert (
        job.model.depth,
        job.model.hidden,
        job.model.heads,
        job.model.kv_heads,
        job.model.ffn,
        job.model.vocab,
    ) == (80, 8192, 64, 64, 22528, 202048)
    assert (job.at.gpu.key, job.gpus, job.batch, job.seq, job.tokens) == ("a100-40", 2048, 1024, 8192, 1e12)
    job = examination.spec(1917)
    assert (job.model.experts, job.model.top_k, job.model.expert_ffn, job.at.gpu.key, job.gpus) == (
        8,
        2,
        17920,
        "h100-sxm",
        1024,
    )


# -- the planner's answer ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def answers() -> dict[int, Paper]:
    """The planner's answers to some specs."""
    return {seed: examination.by_hand(seed) for seed in SEARCHED}


def test_every_spec_has_an_answer_that_fits(answers):
    for seed, found in answers.items():
        assert (
            np.isfinite(found.step_s).all()
            and np.isfinite(found.parts_bytes).all()
            and np.isfinite(found.losses).all()
        ), seed
        assert np.sum(found.parts_bytes[1]) <= examination.spec(seed).hbm_bytes, seed
        assert np.min(found.losses) >= 0 and np.sum(found.losses) < 1 and 1 < found.days < 1000


def test_the_answers_need_every_axis_and_every_resource_binds_some(answers):
    best = {
        seed: {name: column[1] for name, column in found.layouts._asdict().items()}
        for seed, found in answers.items()
        if seed >= examination.WARM_UPS
    }
    for axis in ("tp", "pp", "cp", "ep"):
        assert 0.1 < np.mean([a[axis] > 1 for a in best.values()]) < 0.9, axis
    assert {a["zero"] for a in best.values()} >= {1, 2, 3} and {a["recompute"] for a in best.values()} == {
        0,
        2,
    }
    trivial = np.mean([a["tp"] == a["pp"] == a["cp"] == a["ep"] == 1 for a in best.values()])
    assert trivial < 0.25, "data ranks alone are the answer too often"
    bound = Counter(examination.RESOURCES[int(answers[seed].binding)] for seed in best)
    assert set(bound) == set(examination.RESOURCES) and max(bound.values()) < 0.6 * len(best), bound


def within(seed):
    """The constraints of a spec's software."""
    return Constraints((list(abilities().values())[int(examination.spec(seed).software) - 1],))


def best_of(seed):
    """The single estimate of the best layout that the search finds for a spec."""
    model, work, gpus = in_whole_numbers(seed)
    at = examination.spec(seed).at
    return search.plan(model, at, work, gpus, top=1, within=within(seed)).best


@pytest.mark.parametrize("seed", [8, 1917, 2026, 2030])
def test_it_is_the_planner_s_own_and_handed_in_has_all_points_for_the_layout(seed):
    job, found, best = examination.spec(seed), examination.by_hand(seed), best_of(seed)
    assert found.step_s[1] == pytest.approx(best.step_s, rel=1e-12)
    assert np.sum(found.parts_bytes[1]) == pytest.approx(best.terms.total_bytes, rel=1e-12)
    assert found.mfu[1] == pytest.approx(best.mfu(), rel=1e-12)
    slowed = max(1.0, best.mfu() / job.most_mfu)  # where no published run is as fast
    assert found.days == pytest.approx(job.tokens / best.tokens_per_s / 86400 * slowed, rel=1e-12)
    a = best.layout
    mine = examination.by_hand(seed, a.tp, a.pp, a.cp, a.ep, a.zero, a.micro_batch, RECOMPUTE[a.recompute])
    assert mine.ratio == pytest.approx(1.0 / slowed, rel=1e-12)
    marks = examination.points(mine, examination.used_bytes(mine), mine.binding, mine.days * DAY)
    assert marks.tolist() == list(examination.MOST) and sum(marks) == examination.FULL_MARKS == 30


@pytest.mark.parametrize(
    ("seed", "axes", "zero"),
    [(1917, (4, 2, 1, 8), 1), (1917, (2, 2, 1, 8), 1), (2026, (8, 4, 1, 1), 1), (1, (1, 1, 1, 1), 3)],
)
def test_a_reader_s_layout_gets_the_fastest_schedule_that_fits(seed, axes, zero):
    """Every schedule, with experts whole and cut, by the estimate of a single layout."""
    tp, pp, cp, ep = axes
    job, mine = examination.spec(seed), examination.by_hand(seed, *axes, zero)
    (model, work, gpus), tried = in_whole_numbers(seed), []
    for (key, chunks), expert_tp in product(
        zip(cases.SCHEDULE_KEYS, cases.CHUNKS), {1, tp if job.model.experts else 1}
    ):
        layout = Layout(gpus, tp, pp, cp, ep, zero, 1, "none", key, chunks, expert_tp)
        try:
            require_legal(model, work, layout)
        except ValueError:
            continue
        if not within(seed).allows(model, layout):
            continue
        tried.append(estimate(model, job.at, work, layout))
    assert mine.fits and mine.step_s[0] == pytest.approx(
        min(one.step_s for one in tried if one.fits), rel=1e-12
    )


def test_nothing_is_searched_before_it_is_asked_for(monkeypatch):
    def refuse(model, at, job, gpus, top, *rest):
        assert not gpus, "searched"
        raise ValueError("no GPUs")

    monkeypatch.setattr(search, "plan", refuse)
    with check.trusted():
        plain = examination.best(examination.spec(4711), False)
    assert (plain.tp, plain.pp, plain.cp, plain.ep) == (1, 1, 1, 1) and plain.dp == examination.spec(
        4711
    ).gpus


def test_a_layout_that_cannot_be_built_is_said_so():
    found = examination.by_hand(1917, 16, 2, 1, 8)  # 40 heads
    assert not found.legal and not found.fits and found.fault == 0
    unrun = examination.by_hand(1917, 2, 2, 1, 8, zero=3)  # Megatron Core
    assert not unrun.legal and examination.FAULTS[int(unrun.fault)] == "the software must be able to run it"
    assert examination.points(found, 1e9, found.binding, found.days * DAY).tolist() == [0, 0, 0, 0, 5, 5]
    assert not examination.by_hand(8, ep=8).legal  # a dense model has no experts to share out


@in_one_test(
    "tp, pp, cp, ep, zero, reason",
    [
        (1, 1, 1, 1, 1, 0),  # it shards gradients, too: no ZeRO 1
        (16, 1, 1, 1, 2, 1),  # 8 heads of keys and values for 16 ranks
        (2, 7, 1, 2, 3, 2),  # 60 layers, embedding and output on seven stages
        (1, 1, 4, 2, 2, 3),  # two ranks for the experts, borrowed from groups of four for the context
    ],
)
def test_why_torchtitan_cannot_run_a_choice(tp, pp, cp, ep, zero, reason):
    job = examination.spec(1917)._replace(software=1.0 + list(abilities()).index("torchtitan"))
    choice = ChosenLayout(*map(float, (tp, pp, cp, ep, zero, 1, 0)))
    assert examination.refused(job, choice) == reason


# -- what the software can run, and what was published -----------------------------------------------------
MANY = range(1, 1001) if os.environ.get("EVERY") else range(1, 1001, 9)


@pytest.fixture(scope="module")
def papers() -> dict[int, Paper]:
    """For each of many specs a layout that a reader might hand in, with the planner's answer."""
    return {seed: examination.by_hand(seed, **handed_in(seed)) for seed in MANY}


def handed_in(seed) -> dict[str, int]:
    chance, experts = random.Random(seed), int(examination.spec(seed).model.experts)
    stages = within(seed).only.stages
    return {
        "tp": chance.choice((1, 2, 4, 8)),
        "pp": chance.choice((1, 2, 4, 8)),
        "cp": chance.choice((1, 1, 2)),
        "ep": min(8, experts) if experts else 1,
        "zero": chance.choice(stages),
        "micro_batch": 1,
        "recompute": chance.choice((0, 0, 2)),
    }


def test_every_answer_can_be_run_by_the_software_that_the_spec_names(papers):
    for seed, found in papers.items():
        a = {name: column[1] for name, column in found.layouts._asdict().items()}
        model, work, gpus = in_whole_numbers(seed)
        axes = [int(a[name]) for name in ("tp", "pp", "cp", "ep", "zero", "micro_batch")]
        layout = Layout(
            gpus,
            *axes,
            "full" if a["recompute"] else "none",
            cases.SCHEDULE_KEYS[int(a["schedule"])],
            int(a["chunks"]),
            int(a["expert_tp"]),
        )
        require_legal(model, work, layout)
        assert within(seed).allows(model, layout), seed
        assert np.sum(found.parts_bytes[1]) <= examination.spec(seed).hbm_bytes, seed


def test_nothing_is_graded_at_more_than_was_published_for_such_a_chip(papers):
    """The most of bands' own runs, for the chip's generation; as many as one in four would be above it."""
    above = 0
    for seed, found in papers.items():
        job = examination.spec(seed)
        seen = bands.seen(job.at.gpu.key, job.model.experts > 0) or bands.seen(job.at.gpu.key, False)
        assert job.most_mfu == seen["most_mfu"]["bf16"], seed
        assert found.mfu[2] <= job.most_mfu * (1 + 1e-9) and found.asked_s >= found.step_s[1], seed
        above += found.mfu[1] > job.most_mfu
    assert 0 < above < len(papers) / 4


def test_what_the_feedback_blames_closes_the_gap_and_nothing_else_closes_more(papers):
    """Change what is blamed to what the planner has, and the step takes as long as the feedback says; no
    other single change makes it shorter. Two choices are blamed together where they gain twice as much. Where
    nothing is blamed, none helps."""
    slower = {
        seed: found
        for seed, found in papers.items()
        if found.fits and found.step_s[0] > found.step_s[1] * (1 + planner.A_TIE)
    }
    blamed = Counter()
    for seed, found in slower.items():
        theirs = {name: int(getattr(found.layouts, name)[1]) for name in ChosenLayout._fields}
        with_it = {}
        for some in examination.CHANGES:
            changed = examination.by_hand(seed, **handed_in(seed) | {name: theirs[name] for name in some})
            with_it[some] = float(changed.step_s[0]) if changed.fits else np.inf
        alone = min(seconds for some, seconds in with_it.items() if len(some) == 1)
        place, limit = int(found.blamed), found.step_s[0] * (1 - planner.A_TIE)
        if place == len(examination.CHANGES):
            assert min(with_it.values()) >= limit, seed
            blamed["none"] += 1
            continue
        some = examination.CHANGES[place]
        assert with_it[some] == pytest.approx(float(found.instead_s), rel=1e-9), seed
        assert with_it[some] < limit, seed
        gained = found.step_s[0] - min(with_it[pair] for pair in examination.PAIRS)
        alone_gains = found.step_s[0] - alone
        is_alone = alone < limit and alone_gains > examination.MOST_OF_IT * gained
        assert is_alone == (len(some) == 1) and (not is_alone or with_it[some] == alone), seed
        assert len(some) > 1 or found.instead == theirs[some[0]] != handed_in(seed)[some[0]], seed
        blamed[some[0] if len(some) == 1 else "both"] += 1
    assert len(slower) > len(papers) / 8 and {"tp", "pp", "recompute"} <= set(blamed)
    assert blamed["none"] < len(slower) / 10, blamed


# -- memory, days and what binds, by hand --------------------------------------------------------------------
def test_the_memory_of_a_warm_up():
    """9.5B on 8 H200 with ZeRO 3: two bytes of weights, two of gradients and twelve of optimizer state a
    parameter, an eighth each."""
    found, params = examination.by_hand(8, zero=3), models.parameters(examination.spec(8).model)
    framework, weights, gradients, optimizer, _ = found.parts_bytes[0]
    assert [weights, gradients, optimizer] == pytest.approx(
        [2 * params / 8, 2 * params / 8, 12 * params / 8], rel=1e-12
    )
    assert framework == 2e9


def test_the_days_of_a_mixture():
    """60 layers of width 5,120 with a vocabulary of 65,536 and sequences of 4,096, over 1,024 peaks of 989
    TFLOP/s. Norms, which multiply no matrix, are among the active parameters: less than a thousandth."""
    job = examination.spec(1917)
    by_hand = 6 * (job.active_params - 65536 * 5120 + 60 * 5120 * 4096) * 12e12 / (1024 * 989.4e12) / 86400
    assert examination.estimate_days(job, 1.0) == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.parametrize("seed", [5, 8, 333, 400, 777, 1234, 1917, 2030, 4711])
def test_the_page_s_recipe_with_the_best_mfu_has_its_days(seed):
    """6·D·(P_active − V·h + L·h·s), from what the spec's table says; without attention 1234 would be 46 days
    of 173."""
    job, found = examination.spec(seed), examination.by_hand(seed)
    m = job.model
    run_flops = 6 * job.tokens * (job.active_params - m.vocab * m.hidden + m.depth * m.hidden * job.seq)
    by_hand = run_flops / (job.gpus * job.at.peak_flops_per_s * found.mfu[2]) / 86400
    assert examination.estimate_days(job, found.mfu[2]) == pytest.approx(found.days, rel=1e-9)
    assert by_hand == pytest.approx(found.days, rel=1e-3)  # but for the norms
    assert examination.estimate_points(by_hand, found.days) == 5


def test_what_the_page_advises_of_experts_and_of_the_micro_batch(answers):
    """A node of expert ranks, or all experts, in three mixtures of ten, two or four times that in four; none
    on small clusters alone. One sequence with stages, more in some jobs without."""
    jobs = {seed: examination.spec(seed) for seed in answers}
    mixtures = {seed: answers[seed].layouts.ep[1] for seed, job in jobs.items() if job.model.experts}
    advised = {seed: min(jobs[seed].model.experts, jobs[seed].at.gpu.gpus_per_node) for seed in mixtures}
    times = np.array([mixtures[seed] / advised[seed] for seed in mixtures])
    assert 0.25 < np.mean(times == 1) < 0.35 and 0.35 < np.mean((times == 2) | (times == 4)) < 0.45
    alone = [jobs[seed].gpus for seed, ep in mixtures.items() if ep == 1]
    assert alone and max(alone) <= 256
    sizes = {
        staged: [a.layouts.micro_batch[1] for a in answers.values() if (a.layouts.pp[1] > 1) == staged]
        for staged in (True, False)
    }
    assert np.mean(np.array(sizes[True]) == 1) > 0.9 and 0.1 < np.mean(np.array(sizes[False]) > 1) < 0.3


def test_traffic_is_the_network_s_where_its_group_leaves_the_node():
    """1917's best: tensor 2, expert 8 and data 256 × 2 of nodes of eight, two stages of 512; an AllToAll of
    eight stays in the node."""
    found = examination.by_hand(1917)
    share = dict(zip(cases.TERMS, found.times_s[1] / found.step_s[1]))
    hbm, link, network, bubble = found.losses
    assert link == pytest.approx(share["tensor_s"] + share["expert_s"], rel=1e-12) and found.binding == 2
    assert network == pytest.approx(share["data_exposed_s"] + share["other_s"], rel=1e-12)
    assert (hbm, bubble) == pytest.approx((share["optimizer_s"], share["pipeline_bubble_s"]), rel=1e-12)


def test_the_network_s_share_is_of_the_step_that_recomputes():
    """376's best recomputes every layer, and more of its traffic hides behind that: in a step that did not,
    the same GPUs would wait longer for the network."""
    found = examination.by_hand(376)
    share, without = (dict(zip(cases.TERMS, found.times_s[i] / found.step_s[1])) for i in (1, 2))
    assert found.losses[2] == pytest.approx(share["data_exposed_s"] + share["other_s"], rel=1e-12)
    assert found.layouts.recompute[1] == 2 and without["data_exposed_s"] > 1.5 * share["data_exposed_s"]


def test_what_is_computed_again_is_the_hbm_s():
    """2030 recomputes every layer: its arithmetic less that of the same layout without, by the estimate of
    single layouts."""
    found, job = examination.by_hand(2030), examination.spec(2030)
    (model, work, _), best = in_whole_numbers(2030), best_of(2030)
    once = estimate(model, job.at, work, replace(best.layout, recompute="none"))
    assert best.layout.recompute == "full" and not once.fits and found.binding == 1
    again_s = best.time_s["compute"] - once.time_s["compute"]
    assert again_s == pytest.approx(
        best.time_s["compute"] / 4, rel=0.1
    )  # a forward pass is a quarter of the four passes
    assert found.losses[0] == pytest.approx((again_s + best.time_s["optimizer"]) / best.step_s, rel=1e-9)


# -- points --------------------------------------------------------------------------------------------------
@in_one_test(
    "ratio, points",
    [
        (1.0, 10),
        (1.069, 10),
        (1.07, 9),
        (1.144, 9),
        (1.145, 8),
        (1.18, 8),
        (1.5, 5),
        (1.83, 2),
        (2.0, 0),
        (9.0, 0),
    ],
)
def test_pace(ratio, points):
    """1.07² = 1.1449, so 1.18 has lost two; 1.07⁵ = 1.403 and 1.07⁶ = 1.501, so 1.5 has lost five; 1.07¹⁰ =
    1.967."""
    assert examination.pace_points(ratio) == points


@in_one_test(
    "said, true, points",
    [
        (50, 50, 5),
        (54, 50, 5),
        (50, 54, 5),
        (55, 50, 4),
        (50, 55, 4),
        (61, 50, 3),
        (70, 50, 1),
        (76, 50, 0),
        (500, 50, 0),
        (5, 50, 0),
    ],
)
def test_estimates(said, true, points):
    assert examination.estimate_points(float(said), float(true)) == points


@in_one_test(
    "losses, points",
    [
        (
            (0.01, 0.06, 0.03, 0.00),
            (3, 0, 5, 3, 0),
        ),  # the link binds; the network costs half of it, arithmetic counts as 0.05
        ((0.01, 0.06, 0.02, 0.00), (3, 0, 5, 0, 0)),
        ((0.20, 0.00, 0.00, 0.15), (0, 5, 0, 0, 3)),
        ((0.00, 0.11, 0.00, 0.00), (0, 0, 5, 0, 0)),  # more than twice a twentieth: no longer near
        (
            (0.01, 0.048, 0.02, 0.00),
            (5, 0, 3, 0, 0),
        ),  # nothing costs a twentieth: arithmetic, and the link is near
        ((0.01, 0.02, 0.01, 0.00), (5, 0, 0, 0, 0)),
    ],
)
def test_what_binds(losses, points):
    losses = np.array(losses)
    binding = 0.0 if losses.max() < 0.05 else 1.0 + losses.argmax()
    found = Paper(*[None] * len(Paper._fields))._replace(losses=losses, binding=binding)
    assert [float(examination.binding_points(found, float(said))) for said in range(5)] == list(points)
    assert examination.binding_points(found, -1.0) == 0  # nothing chosen


def test_a_layout_that_does_not_fit_keeps_its_other_points():
    """Two to be built and what was estimated well; no pace."""
    found = examination.by_hand(1917, 1, 2, 1, 8)
    assert found.legal and not found.fits
    marks = examination.points(found, examination.used_bytes(found), found.binding, found.days * DAY)
    assert marks.tolist() == [2, 0, 0, 5, 5, 5]


def test_a_choice_has_a_place_for_each_answer():
    assert ChosenLayout._fields == ("tp", "pp", "cp", "ep", "zero", "micro_batch", "recompute")
    assert len(examination.PARTS) == len(examination.MOST) and len(examination.GPUS) == len(
        {catalog.gpu(key).name for key in examination.GPUS}
    )


def test_the_shares_are_of_the_reader_s_step():
    found = examination.by_hand(1917, tp=4, pp=2, ep=8)
    assert examination.shares(found) * found.step_s[0] == pytest.approx(found.times_s[0])


def test_an_estimate_counts_products_and_attention():
    job = examination.spec(1917)
    both = examination.multiplied_params(job) + examination.attention_params(job)
    assert examination.counted_params(job) == both > examination.multiplied_params(job)
