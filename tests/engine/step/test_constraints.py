"""Constraints of a search: held against a list of all layouts, filtered one by one, and against what the
frameworks' own files say of the winners."""

import itertools
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

import engine
from engine import catalog
from engine.catalog.models import divisors
from engine.frameworks import torchtitan
from engine.frameworks.registry import ANY, abilities, able, trainers
from engine.launch import planned
from engine.step import search
from engine.step.cases import SCHEDULE_KEYS
from engine.step.constraints import FREE, AxisLimits, Constraints, is_run, is_within, may_run
from engine.step.layout import Job, Layout, estimate, machine
from engine.step.legality import leaves_a_chunk_empty

H100 = machine(catalog.gpu("h100-sxm"))
MODEL, JOB, GPUS = catalog.model("llama3.2-1b"), Job(16, 8192), 8


def every_layout():
    """All layouts of the small job that can be built, one by one."""
    found = []
    for tp in divisors(GPUS):
        for pp in divisors(GPUS // tp):
            for cp in divisors(GPUS // (tp * pp)):
                for zero in (0, 1, 2, 3):
                    for micro_batch in search.MICRO_BATCHES:
                        for recompute in ("none", "full"):
                            for schedule, chunks in search.EVERY_SCHEDULE:
                                layout = Layout(
                                    GPUS, tp, pp, cp, 1, zero, micro_batch, recompute, schedule, chunks
                                )
                                if leaves_a_chunk_empty(MODEL.depth, pp, chunks) or (
                                    zero and tp * pp == GPUS
                                ):
                                    continue  # left out by the search, or the same under another name
                                try:
                                    one = estimate(MODEL, H100, JOB, layout)
                                except ValueError:
                                    continue
                                if (pp > 1 or schedule == "1f1b") and JOB.seq // cp >= search.LEAST_TOKENS:
                                    found.append(one)
    return found


@pytest.fixture(scope="module")
def every():
    return every_layout()


def by_hand(e, c: Constraints) -> bool:
    """The constraints' meaning in plain words, without the search's arrays."""
    if len(c.able) > 1:
        return any(by_hand(e, replace(c, able=(one,))) for one in c.able)
    framework = c.able[0].key if c.able else ""
    a = e.layout
    ranged = all(
        limits is None or limits[0] <= getattr(a, name) <= limits[1] for name, limits in c.ranges.items()
    )
    alone = a.dp * a.cp == 1
    kept = ranged and (c.zero is None or alone or a.zero in c.zero)
    kept = kept and (c.schedules is None or a.schedule in c.schedules)
    kept = kept and (not c.most_chunks or a.interleave <= c.most_chunks)
    kept = kept and (not c.recompute or a.recompute == c.recompute)
    if framework in ("megatron", "bridge"):
        layers, slots = e.model.depth, a.pp * a.interleave
        equal = layers % slots == 0 or (layers + 2) % slots == 0
        left = layers - math.ceil(layers / slots) * (slots - 2)  # for the first chunk and the last
        return (
            kept
            and (alone or a.zero < 2)
            and a.schedule in ("1f1b", "interleaved")
            and (equal or left >= 0)
            and not (e.model.kv_heads % a.tp)
        )
    if framework == "torchtitan":
        parts, stages = e.model.depth + 2, a.pp * a.interleave
        return (
            kept
            and (a.pp == 1 or math.ceil(parts / math.ceil(parts / stages)) == stages)
            and a.schedule in ("gpipe", "1f1b", "interleaved")
            and (alone or a.zero == 3 or (a.zero == 2 and a.pp == 1))
            and not (e.model.kv_heads % a.tp)
        )
    if framework:
        stages = (2, 3) if framework == "fsdp2" else (0, 1, 2, 3)
        return kept and a.tp * a.pp * a.cp == 1 and a.schedule == "1f1b" and a.zero in stages
    return kept


CASES = [
    FREE,
    *(Constraints(able(key)) for key in abilities()),
    Constraints(able("any")),
    Constraints(able("any"), pp=(2, 4), zero=(1, 2)),
    Constraints(tp=(2, 2)),
    Constraints(tp=(2, 4), pp=(2, 8), zero=(0, 1)),
    Constraints(pp=(4, 4), most_chunks=2, recompute="none"),
    Constraints(pp=(2, 2), schedules=("zb-h1", "zb-h2"), micro_batch=(1, 2)),
    Constraints(able("megatron"), cp=(2, 2), micro_batch=(2, 2), recompute="full"),
    Constraints(able("torchtitan"), pp=(2, 2)),
]


@pytest.mark.parametrize("within", CASES, ids=str)
def test_the_search_is_the_list_of_all_layouts_filtered_one_by_one(every, within):
    left = [e for e in every if by_hand(e, within)]
    plan = search.plan(MODEL, H100, JOB, GPUS, within=within)
    assert plan.layouts == len(left)
    assert plan.fitting == sum(e.fits for e in left)
    assert plan.best.step_s == min(e.step_s for e in left if e.fits)
    assert all(by_hand(e, within) for e in (plan.best, *plan.runners_up, plan.simplest))
    assert [within.allows(MODEL, e.layout) for e in every] == [by_hand(e, within) for e in every]


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipe-v"])
def test_what_torchtitan_cannot_compile_costs_more_than_it_saves(schedule):
    """Why the planner does not offer a split backward for torchtitan: with eager kernels it is slower than
    the best layout with compiled ones."""
    model, gpu = catalog.model("llama3-70b"), machine(catalog.gpu("h100-sxm"))
    job = Job(1024, 8192)
    best = search.plan(model, gpu, job, 512, 1, within=Constraints(able("torchtitan"))).best.layout
    split = replace(best, schedule=schedule, interleave=2)

    def step_s(layout, kernels):
        return estimate(
            model, gpu, replace(job, software=replace(job.software, kernels=kernels)), layout
        ).step_s

    assert best.pp > 1 and best.schedule == "interleaved"
    assert step_s(split, "eager") > 1.05 * step_s(best, "compiled")
    assert not Constraints(able("torchtitan")).allows(model, split)


NODES_OF_TWO = machine(catalog.gpu("h100-sxm"), gpus_per_node=2)
COPIES = {
    "": (1, 2, 3),
    "megatron": (1,),
    "bridge": (1,),
    "torchtitan": (2, 3),
    "deepspeed": (),
    "fsdp2": (2, 3),
}


@pytest.mark.parametrize("framework", COPIES)
def test_copies_of_the_state_are_tried_where_the_framework_keeps_them(every, framework):
    """Nodes of two GPUs: a copy on one node, or on two. torchtitan replicates over data-parallel ranks alone,
    so that its copies hold whole contexts."""
    within = Constraints(able(framework))
    left = []
    for e in every:
        a = e.layout
        ranks, near = a.dp * a.cp, 2 // a.tp or 1
        for shard in (0, near, 2 * near, 4 * near):
            hybrid = 1 < shard < ranks and ranks % shard == 0 and a.zero in COPIES[framework]
            whole = framework != "torchtitan" or shard % a.cp == 0
            if by_hand(e, within) and (shard == 0 or (hybrid and whole)):
                left.append(estimate(MODEL, NODES_OF_TWO, JOB, replace(a, shard=shard)))
    plan = search.plan(MODEL, NODES_OF_TWO, JOB, GPUS, within=within, hsdp=True)
    assert plan.layouts == len(left) and plan.fitting == sum(e.fits for e in left)
    assert plan.best.step_s == min(e.step_s for e in left if e.fits)
    assert all(within.allows(MODEL, e.layout) for e in left)
    assert (plan.layouts > search.plan(MODEL, NODES_OF_TWO, JOB, GPUS, within=within).layouts) == bool(
        COPIES[framework]
    )


@pytest.mark.parametrize("within", CASES[:6], ids=str)
def test_a_search_that_is_told_of_every_layout_has_the_same_winner(within):
    told = []
    plan = search.plan(MODEL, H100, JOB, GPUS, within=within)
    seen = search.plan(
        MODEL, H100, JOB, GPUS, within=within, seen=lambda block, s, b, legal: told.append(int(legal.sum()))
    )
    assert (seen.best, seen.layouts, seen.fitting) == (plan.best, plan.layouts, plan.fitting)


PRESETS = {
    "llama3.1-8b": (8, Job(128, 8192)),
    "llama3.1-70b": (512, Job(1024, 8192)),
    "llama3.1-405b": (16384, Job(2048, 8192)),
}


@pytest.mark.parametrize("hsdp", [False, True], ids=["one copy", "copies"])
@pytest.mark.parametrize("framework", [key for key in abilities() if key in ("megatron", "torchtitan")])
@pytest.mark.parametrize("key", PRESETS)
def test_a_frameworks_winner_can_be_started_there(framework, key, hsdp):
    """Its own file says of nothing that it cannot be done, and pasted back it is the same layout."""
    gpus, job = PRESETS[key]
    best = engine.plan(key, "h100-sxm", job, gpus, within=Constraints(able(framework)), hsdp=hsdp).best
    assert best.fits
    text = written(framework, best)
    head = torchtitan.HEAD.splitlines()  # for which release it is
    warned = [line for line in text.splitlines() if line not in head and re.search(r"# (?!\[model\])", line)]
    assert not warned, warned
    report = engine.check_launch(text, gpu="h100-sxm", gpus=gpus)
    assert not report.launch.refused
    read = report.estimate.layout
    for name in ("tp", "pp", "cp", "ep", "micro_batch", "interleave", "recompute"):
        assert getattr(read, name) == getattr(best.layout, name), name
    assert read.shard == best.layout.shard
    assert read.zero == best.layout.zero or best.layout.dp * best.layout.cp == 1
    # the file says nothing of torch.compile, so the norms of a pasted torchtitan run may be PyTorch's own
    same = estimate(best.model, best.at, report.launch.job, best.layout)
    assert math.isclose(report.estimate.step_s, same.step_s, rel_tol=0.01)


def written(framework: str, best) -> str:
    from engine.frameworks.described import Launch

    launch = Launch(
        framework=framework, model=best.model, gpus=best.layout.gpus, precision="bf16", job=best.job
    )
    return planned.written(launch, best.layout)


def test_a_framework_that_shares_state_alone_needs_a_model_that_fits_so():
    job = Job(1024, 8192)
    alone = engine.plan("llama3-70b", "h100-sxm", job, 512, within=Constraints(able("fsdp2"))).best
    free = engine.plan("llama3-70b", "h100-sxm", job, 512).best
    assert alone.layout.tp * alone.layout.pp * alone.layout.cp == 1 and alone.layout.zero in (2, 3)
    assert alone.step_s >= free.step_s


def test_the_causes_of_a_difference_add_up_to_it():
    job = Job(1024, 8192)
    free = engine.plan("llama3-70b", "h100-sxm", job, 512)
    for other in free.runners_up:
        causes = search.by_cause(free.best, other)
        assert math.isclose(sum(causes.values()), other.step_s - free.best.step_s, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Constraints(able("pytorch")), "framework must be one of megatron, bridge, torchtitan"),
        (lambda: Constraints(tp=(8, 4)), "tp must be a range"),
        (lambda: Constraints(micro_batch=(0, 4)), "micro_batch must be a range"),
        (lambda: Constraints(zero=(4,)), "zero must be one of 0, 1, 2, 3"),
        (lambda: Constraints(schedules=("2f2b",)), "schedules must be one of"),
        (lambda: Constraints(recompute="some"), "recompute must be one of none, full"),
        (lambda: Constraints(most_chunks=-1), "most_chunks must be a whole number"),
        (
            lambda: search.plan(MODEL, H100, JOB, GPUS, within=Constraints(tp=(3, 3))),
            "constraints must leave a layout of llama3.2-1b on 8 GPUs, got tp 3",
        ),
        (
            lambda: search.plan(MODEL, H100, JOB, GPUS, within=Constraints(able("fsdp2"), pp=(2, 2))),
            "constraints must leave a layout",
        ),
        (
            lambda: search.plan(MODEL, H100, JOB, GPUS, within=Constraints(schedules=("zb-h2",), pp=(1, 1))),
            "within pp 1, zb-h2",
        ),
        (lambda: engine.plan("llama3-8b", "h100-sxm", JOB, 8, within="megatron"), "within must be"),
    ],
)
def test_nonsense_is_refused(wrong, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        wrong()


def test_every_framework_says_where_its_abilities_are_written():
    for each in abilities().values():
        assert (each.source and any(mark.isdigit() for mark in each.name)) or each.key == "fsdp2"
        assert set(each.schedules) <= {key for key, _ in search.EVERY_SCHEDULE}
    assert all(each.can in abilities().values() for each in trainers().values() if each.can is not None)


@pytest.mark.parametrize(("most", "kept"), [(0, 3), (1, 1), (2, 2), (4, 3)])
def test_at_most_so_many_chunks_of_layers_on_a_stage(most, kept):
    """Of one, two and four; 0 stands for any number."""
    axes = dict(tp=1.0, cp=1.0, ep=1.0, expert_tp=1.0, dp=4.0, zero=1.0, shard=0.0, recompute=0.0)
    cut = [SimpleNamespace(pp=4.0, chunks=chunks, **axes) for chunks in (1.0, 2.0, 4.0)]
    limits = AxisLimits(most_chunks=float(most))
    assert sum(bool(is_within(limits, MODEL, a, [])) for a in cut) == kept


def test_a_search_asks_first_what_never_keeps_a_layout_out():
    """``may_run`` is asked before a layout's cost is known; it may let pass what ``is_run`` refuses, never
    the other way round."""
    model = catalog.model("llama3-70b")
    every = able(ANY)
    for framework in range(len(every) + 2):
        for schedule in SCHEDULE_KEYS:
            has = [float(schedule in able.schedules) for able in abilities().values()]
            for tp, pp, chunks, zero in itertools.product(
                (1.0, 4.0), (1.0, 8.0), (1.0, 2.0, 5.0), (0.0, 1.0, 2.0, 3.0)
            ):
                a = SimpleNamespace(
                    tp=tp,
                    pp=pp,
                    cp=1.0,
                    ep=1.0,
                    expert_tp=1.0,
                    dp=4.0,
                    zero=zero,
                    chunks=chunks,
                    shard=0.0,
                    recompute=0.0,
                    micro_batch=1.0,
                    global_batch=128.0,
                    seq=4096.0,
                )
                runs = bool(is_run(AxisLimits(float(framework), able=every), model, a, has))
                assert may_run(float(framework), has) or not runs or not framework
    assert not may_run(1.0, [0.0] * 4) and may_run(0.0, [0.0] * 4) and may_run(5.0, [0.0, 0.0, 1.0, 0.0])
