"""Memory that stays free, and layers that need not be recomputed."""

from dataclasses import replace

import pytest

import engine
from engine.frameworks.described import Launch
from engine.launch import planned, reading, verdict
from engine.mechanism import memory
from engine.step.layout import Job, estimate

JOB = Job(256, 8192)
CASE = ("llama3-70b", "h100-sxm", JOB, 64)


def test_what_stays_free_is_kept_free():
    tight, roomy = (engine.plan(*CASE, within=engine.Constraints(leave=left)) for left in (0.0, 0.2))
    capacity = tight.best.memory_bytes["capacity"]
    assert tight.best.memory_bytes["total"] > 0.8 * capacity >= roomy.best.memory_bytes["total"]
    assert roomy.fitting < tight.fitting and roomy.layouts == tight.layouts
    assert roomy.best.step_s >= tight.best.step_s
    assert all(e.memory_bytes["total"] <= 0.8 * capacity for e in (*roomy.runners_up, roomy.simplest))
    assert str(engine.Constraints(leave=0.05)) == "5 % of the memory left free"


def test_where_only_the_margin_is_missing_nothing_fits():
    """The leanest layout takes more than half of the memory."""
    found = engine.plan("llama3.1-405b", "h100-sxm", Job(64, 4096), 128, within=engine.Constraints(leave=0.5))
    assert not found.fits and found.tied == 0 and "Nothing fits" in str(found)


def test_no_more_layers_are_recomputed_than_it_takes():
    whole = engine.plan(*CASE, within=engine.Constraints(recompute="full"), top=1)
    part = engine.plan(*CASE, within=engine.Constraints(recompute="full"), top=1, partial=True)
    assert part.best.step_s < whole.best.step_s and part.best.fits
    some = part.best.layout.recompute_layers
    assert 0 < some < 80 / part.best.layout.pp
    fewer = replace(part.best.layout, recompute_layers=some - part.best.layout.interleave)
    if fewer.recompute_layers:
        assert not estimate(part.best.model, part.best.at, part.best.job, fewer).fits
    assert part.best.terms.total_bytes <= memory.capacity_bytes(part.best.at.gpu)


@pytest.mark.parametrize(("framework", "may"), [("megatron", True), ("torchtitan", False)])
def test_some_layers_are_offered_where_a_framework_can_recompute_them(framework, may):
    """And read back from what is exported they are the same bytes."""
    found = engine.plan(
        *CASE,
        framework=framework,
        within=engine.Constraints(recompute="full", schedules=("1f1b",)),  # of one layer a chunk all is some
        top=1,
        partial=True,
    )
    assert bool(found.best.layout.recompute_layers) == may
    best = found.best
    one = Launch(framework, best.model, 64, "bf16", job=best.job, layout=best.layout)
    name = "train.sh" if framework == "megatron" else "train.toml"
    after = reading.read({name: planned.written(one, best.layout)}, 64)
    report = verdict.judged(after.launch, "h100-sxm")
    ours = {part: best.memory_bytes[part] for part in dict(report.parts)}
    assert dict(report.parts) == pytest.approx(ours, rel=1e-12) and not report.refused
