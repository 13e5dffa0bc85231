"""One set of rules decides whether a layout can be built: all parts of the engine give the same answer."""

import random
import re
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine import catalog
from engine.base import check
from engine.exam import examination, missions
from engine.mechanism.pipeline import SCHEDULES
from engine.rules import advice
from engine.step import cases, legality, page_search, search
from engine.step.cases import Layouts
from engine.step.layout import Job, Layout, axes, machine, require_legal

MODELS = ("llama3-8b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3", "gpt2")
H100 = machine(catalog.gpu("h100-sxm"))
DEGREES = (1, 1, 1, 2, 2, 3, 4, 6, 8, 16)


def a_job(chance: random.Random):
    """(model, GPUs, job) of some run."""
    model = catalog.model(chance.choice(MODELS))
    gpus = chance.choice((1, 2, 6, 8, 16, 24, 64, 96, 128, 512))
    return model, gpus, Job(chance.choice((1, 8, 48, 64, 96, 512, 1024)), chance.choice((1024, 4096, 6144)))


def a_layout(chance: random.Random, model, gpus: int) -> Layout:
    """A random layout of the job; about one in four can be built."""
    tp, interleave = chance.choice(DEGREES), chance.choice((1, 1, 1, 2, 4))
    others = [key for key, plan in SCHEDULES.items() if not (plan.interleaved or plan.folded)]
    in_chunks = ["interleaved", *(key for key, plan in SCHEDULES.items() if plan.folded and interleave == 2)]
    return Layout(
        gpus,
        tp,
        chance.choice(DEGREES),
        chance.choice((1, 1, 1, 2, 3, 4)),
        chance.choice((1, 1, 2, 3, 4, 8)) if model.experts else chance.choice((1, 1, 1, 1, 2)),
        chance.randrange(4),
        chance.choice((1, 1, 1, 2, 4)),
        chance.choice(("none", "full")),
        chance.choice(in_chunks if interleave > 1 else others),
        interleave,
        chance.choice((1, 1, 1, tp, 2)) if model.experts else chance.choice((1, 1, 1, 1, tp)),
    )


def is_legal(model, job: Job, layout: Layout) -> bool:
    try:
        require_legal(model, job, layout)
    except ValueError:
        return False
    return True


def columns(layouts: list[Layout]) -> Layouts:
    """Several layouts in the planner's form, as columns."""
    schedules = list(zip(cases.SCHEDULE_KEYS, cases.CHUNKS))
    rows = [
        (
            a.tp,
            a.pp,
            a.cp,
            a.ep,
            a.expert_tp,
            a.dp,
            a.zero,
            a.micro_batch,
            float(a.recompute == "full"),
            schedules.index((a.schedule, a.interleave)),
            a.interleave,
        )
        for a in layouts
    ]
    return Layouts(*np.array(rows, dtype=float).reshape(-1, len(Layouts._fields)).T)


def mission_of(model, gpus: int, job: Job):
    """A mission with this job, as far as its faults go."""
    return SimpleNamespace(
        model=model,
        at=H100,
        hbm_bytes=80e9,
        recipe=catalog.recipe("bf16-adam"),
        gpus=gpus,
        batch=job.global_batch,
        seq=job.seq,
    )


def is_searched(model, job: Job, a: Layout) -> bool:
    """Whether the search lists the layout's split and calls the rest of it legal."""
    split = search.Degrees(a.tp, a.pp, a.cp, a.ep, a.expert_tp, a.dp)
    if split not in search.splits(model, job, a.gpus):
        return False
    one = axes(job, a)
    in_arrays = replace(
        one, **{each.name: np.array([getattr(one, each.name)]) for each in fields(one) if each.name != "plan"}
    )
    return all(map(np.all, search.legal(in_arrays, model.depth, float(a.schedule == "1f1b"))))


def is_left_to_others(model, job: Job, a: Layout) -> bool:
    """What can be built and the search leaves out: short pieces of a sequence, experts cut by a part of the
    tensor ranks, and other names of the same layout."""
    short = a.cp > 1 and job.seq // a.cp < search.LEAST_TOKENS
    unnamed = (a.pp == 1 and a.schedule != "1f1b") or (a.zero and a.dp * a.cp == 1)
    return short or a.expert_tp not in (1, a.tp) or bool(unnamed)


def test_all_who_ask_are_told_the_same():
    """20,000 layouts: the estimate, the missions and the search, and none of them by one fault alone."""
    chance, seen, legal_count = random.Random(20), 0, 0
    broken_by = np.zeros(len(legality.RULES), dtype=int)
    for _ in range(400):
        model, gpus, job = a_job(chance)
        layouts = [a_layout(chance, model, gpus) for _ in range(50)]
        with check.trusted(), np.errstate(all="ignore"):
            whole = [a for a in layouts if a.dp]  # of no data rank the missions know a fraction
            faults = missions.faults(mission_of(model, gpus, job), columns(whole))
        broken_by += faults.sum(axis=1)
        for a, by_mission in zip(whole, ~faults.any(axis=0)):
            legal = is_legal(model, job, a)
            assert legal == by_mission, a
            if not is_left_to_others(model, job, a):
                assert legal == is_searched(model, job, a), a
            legal_count += legal
        seen += len(layouts)
        assert not any(is_legal(model, job, a) for a in layouts if not a.dp)
    assert seen == 20_000 and legal_count > 1_000 and (broken_by > 100).all(), broken_by


def test_the_page_lists_the_splits_that_the_search_lists():
    chance, compared = random.Random(7), 0
    for _ in range(60):
        model, gpus, job = a_job(chance)
        here = search.splits(model, job, gpus)
        rows = page_search.legal_splits(
            gpus, job.global_batch, job.seq, model.heads, model.depth, model.experts
        )
        there = zip(*(column[~np.isnan(column)] for column in rows.values()))
        assert sorted(search.Degrees(*map(int, row)) for row in there) == sorted(here)
        compared += len(here)
    assert compared > 500


def test_the_rules_of_thumb_list_nothing_that_cannot_be_built():
    chance, compared = random.Random(3), 0
    for _ in range(60):
        model, gpus, job = a_job(chance)
        enough = Job(gpus, job.seq)  # a sequence for every data rank there could be
        for split in advice.splits(model, H100, enough, gpus, advice.TOOLS["context"]):
            alone = Layout(gpus, split.tp, split.pp, split.cp)
            assert is_legal(model, enough, alone), alone
            compared += 1
    assert compared > 300


def test_the_examination_asks_by_the_same_list():
    with check.trusted():
        spec = examination.spec(8.0)
        choice = examination.ChosenLayout(
            tp=64.0, pp=1.0, cp=1.0, ep=1.0, zero=1.0, micro_batch=1.0, recompute=0.0
        )
        assert len(examination.faults(spec, choice)) == len(legality.RULES) == len(missions.FAULTS)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(8, tp=2, expert_tp=2), "ep and expert_tp must be 1 for a model without experts, got 1 and 2"),
        (Layout(8, ep=2), "ep and expert_tp must be 1 for a model without experts, got 2 and 1"),
    ],
)
def test_a_dense_model_has_no_expert_to_cut(layout, words):
    model, job = catalog.model("llama3-8b"), Job(64, 4096)
    with pytest.raises(ValueError, match=re.escape(words)):
        require_legal(model, job, layout)
    with check.trusted():
        assert missions.faults(mission_of(model, 8, job), columns([layout])).any()
