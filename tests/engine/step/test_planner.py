"""The planner: its two searches agree to the last digit, and what it says of a layout is what the estimate
says."""

import numpy as np
import pytest

from engine import catalog
from engine.base import check
from engine.frameworks.registry import ANY, abilities, able
from engine.mechanism import memory
from engine.mechanism.memory import RECOMPUTE
from engine.mechanism.scaled_chip import scaled_chip
from engine.mechanism.wires import scaled
from engine.step import cases, own, page_search, planner, search
from engine.step.constraints import AxisLimits
from engine.step.layout import Job, Layout, estimate, machine

H100 = machine(catalog.gpu("h100-sxm"))
JOBS = {  # model, GPUs, sequences of a step, tokens of each
    "dense": ("llama3-70b", 512, 1024, 8192),
    "one GPU": ("gpt2", 1, 32, 1024),
    "nothing fits": ("llama3.1-405b", 8, 8, 8192),
    "experts": ("mixtral-8x7b", 64, 256, 4096),
    "latent attention": ("deepseek-v2-lite", 32, 96, 4096),
    "long context": ("llama3.1-8b", 64, 64, 131072),
    "windows, odd counts": ("gemma3-12b", 96, 768, 8192),
    "a pipeline of seven": ("llama3-8b", 7, 5, 1024),
    "no legal layout": ("gpt2", 31, 32, 1024),
}


def case(name) -> cases.Case:
    key, gpus, batch, seq = JOBS[name]
    return cases.Case(
        catalog.model(key),
        H100.chip,
        H100.wires,
        memory.capacity_bytes(H100.gpu),
        catalog.recipe("bf16-adam"),
        gpus,
        batch,
        seq,
    )


def test_a_step_waits_when_it_does_not_compute_nor_update():
    """As the estimate of the winner has it, in which nothing else is neither; where nothing is legal nothing
    waits."""
    found, nothing = (planner.outcome(case(name), 989e12) for name in ("dense", "no legal layout"))
    columns = dict(zip(cases.TERMS, found.times_s[0], strict=True))
    busy_s = columns["compute_s"] + columns["optimizer_s"]
    assert columns["optimizer_s"] > 0 and planner.waiting_share(nothing) == 0
    assert planner.waiting_share(found) == pytest.approx(1 - busy_s / sum(columns.values()))


@pytest.mark.parametrize("name", JOBS)
def test_the_page_s_search_finds_what_the_plan_finds(name):
    """Programs and a sweep instead of one broadcast: the same layouts, counts and times, ties included."""
    with check.trusted():
        (here, seen), (page, on_page) = planner.found_in_cloud(case(name)), planner._found_on_page(case(name))
    for column, ours, theirs in zip(cases.Layouts._fields, page.layouts, here.layouts, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=column)
    assert (page.legal, page.fitting) == (here.legal, here.fitting)
    np.testing.assert_array_equal(page.free_s, here.free_s)
    for column, ours, theirs in zip(seen.places._fields, on_page.places, seen.places, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=f"cloud: {column}")


LIMITS = {
    **{key: AxisLimits(float(place)) for place, key in enumerate((*abilities(), ANY), 1)},
    "axes": AxisLimits(tp_from=2.0, tp_to=2.0, pp_from=2.0, pp_to=2.0),
    "ranges": AxisLimits(tp_from=2.0, pp_to=4.0, ep_to=2.0),
    "a stage of ZeRO": AxisLimits(framework=5.0, zero=2.0),
    "chunks and recomputation": AxisLimits(most_chunks=2.0, recompute=2.0),
    "context": AxisLimits(framework=1.0, cp_from=2.0, cp_to=2.0, recompute=1.0),
    "no such layout": AxisLimits(tp_from=3.0, tp_to=3.0),
    "no range": AxisLimits(pp_from=4.0, pp_to=2.0),
    "free": AxisLimits(),
}
LIMITS = {name: limits._replace(able=able(ANY)) for name, limits in LIMITS.items()}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", ["dense", "experts"])
def test_the_page_s_search_within_limits_is_the_plan_within_constraints(name, limits):
    one = case(name)._replace(within=LIMITS[limits])
    with check.trusted():
        (here, seen), (page, on_page) = planner.found_in_cloud(one), planner._found_on_page(one)
    for ours, theirs in ((page.layouts, here.layouts), (page.unlimited, here.unlimited)):
        for column, mine, other in zip(cases.Layouts._fields, ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=column)
    assert (page.legal, page.fitting) == (here.legal, here.fitting)
    np.testing.assert_array_equal(on_page.places.count, seen.places.count)
    free, runnable = planner.found(case(name)), planner.found(case(name)._replace(within=LIMITS["any"]))
    assert here.unlimited.tp[0] == runnable.layouts.tp[0] and here.legal <= free.legal
    assert (here.legal == free.legal) == (limits == "free")


@pytest.mark.parametrize("name", [name for name in JOBS if name != "no legal layout"])
def test_what_a_layout_costs_is_what_the_estimate_says(name):
    key, gpus, batch, seq = JOBS[name]
    job, plan = Job(batch, seq), search.plan(catalog.model(key), H100, Job(batch, seq), gpus)
    with check.trusted(), np.errstate(invalid="ignore"):
        layouts = planner.found(case(name)).layouts
        terms, parts = cases.terms(case(name), layouts), cases.memory_bytes(case(name), layouts)
    for i, theirs in enumerate((plan.best, *plan.runners_up)):
        assert {f: np.broadcast_to(v, 5)[i] for f, v in terms._asdict().items()} == theirs.terms._asdict()
        memory = theirs.memory_bytes
        assert [part[i] for part in parts] == [memory[name] for name in parts._fields]
        assert cases.framework_bytes() == memory["overhead"]
        again = Layout(
            gpus,
            *(int(layouts._asdict()[n][i]) for n in ("tp", "pp", "cp", "ep", "zero", "micro_batch")),
            {v: k for k, v in RECOMPUTE.items()}[int(layouts.recompute[i])],
            cases.SCHEDULE_KEYS[int(layouts.schedule[i])],
            int(layouts.chunks[i]),
            int(layouts.expert_tp[i]),
        )
        assert estimate(catalog.model(key), H100, job, again).step_s == theirs.step_s


def test_splits_are_those_of_the_search():
    for name, (key, gpus, batch, seq) in JOBS.items():
        model = catalog.model(key)
        rows = page_search.legal_splits(gpus, batch, seq, model.heads, model.depth, model.experts)
        rows = np.stack([rows[column] for column in search.Degrees._fields], axis=1)
        assert [search.Degrees(*map(int, row)) for row in rows[~np.isnan(rows[:, 0])]] == sorted(
            search.splits(model, Job(batch, seq), gpus)
        ), name


@pytest.mark.parametrize("name", ["dense", "experts", "long context"])
def test_what_the_others_lost_by_is_what_the_search_says(name):
    key, gpus, batch, seq = JOBS[name]
    plan = search.plan(catalog.model(key), H100, Job(batch, seq), gpus)
    with check.trusted():
        found = planner.outcome(case(name), H100.peak_flops_per_s)
    for row, theirs in enumerate((plan.best, *plan.runners_up)):
        assert found.mfu[row] == pytest.approx(theirs.mfu(), rel=1e-12)
        assert found.hfu[row] == pytest.approx(theirs.hfu(), rel=1e-12)
        assert found.tokens_per_s[row] == pytest.approx(theirs.tokens_per_s, rel=1e-12)
    for i, other in enumerate(plan.runners_up, 1):
        why = search.lost_by(plan.best, other)
        assert found.slower_by[i] == pytest.approx(why["slower_by"], abs=1e-12)
        if why["slower_by"] >= planner.A_TIE:
            assert cases.TERMS[int(found.lost_by[i])] == why["lost_by"] + "_s"
        else:
            assert found.lost_by[i] == planner.MEMORY + 1


def test_a_tenth_faster_is_a_tenth_faster():
    """The factor makes the winner's layout that much faster, a smaller one does not, and NEVER is never."""
    with check.trusted():
        here, found = case("dense"), planner.outcome(case("dense"), H100.peak_flops_per_s)
        winner = cases.Layouts(*(column[0] for column in found.found.layouts))
        before_s = cases.terms(here, winner).step_s

        def step_s(resource, factor):
            faster, wider, link, nic = (factor if resource == i else 1.0 for i in range(4))
            better = here._replace(
                chip=scaled_chip(here.chip, faster, wider), wires=scaled(here.wires, link, nic)
            )
            return cases.terms(better, winner).step_s

        assert len(found.needed) == len(planner.RESOURCES)
        for resource, factor in enumerate(found.needed):
            if factor == planner.NEVER:
                assert step_s(resource, planner.FACTORS[-1]) * planner.FASTER > before_s
            else:
                place = list(planner.FACTORS).index(factor)
                assert step_s(resource, factor) * planner.FASTER <= before_s
                assert place == 0 or step_s(resource, planner.FACTORS[place - 1]) * planner.FASTER > before_s
        # 98 % arithmetic, behind which most of ZeRO-3's traffic hides: weights and gradients come out from
        # behind a faster chip, so that 1.14 times its speed gives 9.5 %, and from there on next to nothing. A
        # tenth takes some 1.4 times; a faster wire uncovers nothing.
        assert before_s / step_s(0, 1.14) == pytest.approx(1.095, abs=0.002)
        assert step_s(0, 1.14) / step_s(0, 1.3) < 1.005
        assert 1.2 < found.needed[0] < 1.6 and set(found.needed[1:]) == {planner.NEVER}


def test_an_own_cluster_of_the_catalogue_s_figures_is_the_catalogue_s():
    option = next(one for one in own.gpu_options() if one.own)
    mine = own.cluster(option, own.Precision("bf16", 0.0), 80e9, 989e12, 3.35e12, 450e9, 50e9, 8.0)
    assert (
        mine.chip == H100.chip and mine.wires == H100.wires and mine.peak_flops_per_s == H100.peak_flops_per_s
    )
    twice = own.cluster(option, own.Precision("bf16", 0.0), 160e9, 2 * 989e12, 3.35e12, 450e9, 100e9, 8.0)
    assert twice.chip.matmul_flops_per_s == 2 * mine.chip.matmul_flops_per_s and twice.hbm_bytes == 160e9
    assert twice.wires.nic_bytes_per_s == 2 * mine.wires.nic_bytes_per_s
    wider = own.cluster(option, own.Precision("bf16", 0.0), 80e9, 989e12, 2 * 3.35e12, 450e9, 50e9, 8.0)
    assert wider.chip.memory_bytes_per_s == 2 * mine.chip.memory_bytes_per_s
    assert wider.chip.matmul_flops_per_s == mine.chip.matmul_flops_per_s
    known = next(
        one for one in own.gpu_options() if one.key == "a100-80"
    )  # whose figures are not to be moved
    assert (
        own.cluster(known, own.Precision("bf16", 0.0), 1e9, 1e12, 1e12, 1e9, 1e9, 2.0).chip
        == machine(catalog.gpu("a100-80")).chip
    )


def test_whether_something_comes_before():
    needs = np.array([planner.NEVER, 1.5, planner.NEVER])
    assert [bool(planner.any_before(needs, place)) for place in range(4)] == [False, False, True, True]


def test_what_faster_arithmetic_uncovers():
    """The term that grows most when the arithmetic alone is as many times faster as a tenth takes; nothing by
    a factor of one."""
    with check.trusted():
        here, found = case("dense"), planner.outcome(case("dense"), H100.peak_flops_per_s)
        layouts = found.layouts
        winner = cases.Layouts(*(column[0] for column in layouts))
        most = min(float(found.needed[0]), float(planner.FACTORS[-1]))
        faster = here._replace(chip=scaled_chip(here.chip, most, 1.0))
        more_s = cases.terms(faster, winner).data_exposed_s - cases.terms(here, winner).data_exposed_s
        assert (
            cases.TERMS[int(found.uncovered)] == "data_exposed_s"
            and found.uncovered_s == pytest.approx(more_s)
            and more_s > 0.3
        )
        tried, rows = planner.with_faster(here, layouts)
        every_times_s = cases.columns(cases.terms(tried, rows), rows)
        assert planner.uncovered(every_times_s, found.needed[0])[1] == pytest.approx(found.uncovered_s)
        assert planner.uncovered(every_times_s, planner.NEVER)[1] > found.uncovered_s
        least = planner.uncovered(every_times_s, planner.FACTORS[0])[1]
        assert 0 <= least < found.uncovered_s


def test_whether_groups_of_ranks_send_across_nodes():
    """Eight GPUs a node: eight tensor ranks fill it, so the data ranks and stages behind them are in
    others."""

    def sends(**degrees):
        given = {name: np.ones(1) for name in cases.Layouts._fields} | {
            name: np.full(1, float(n)) for name, n in degrees.items()
        }
        return [
            float(kind) for kind in cases.crosses(case("dense"), cases.Layouts(**given))
        ]  # pp, dp, cp, tp

    assert sends(tp=8, dp=4, pp=2) == [1, 1, 2, 0] and sends(tp=2, cp=2, dp=2) == [2, 0, 0, 0]
    assert (
        sends(tp=16) == [2, 2, 2, 1] and sends(tp=2, dp=2, pp=4) == [1, 0, 2, 0] and sends() == [2, 2, 2, 2]
    )
