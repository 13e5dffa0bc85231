"""Memory that stays free, and layers that need not be recomputed."""

from dataclasses import replace

import pytest

import engine
from engine import catalog
from engine.frameworks import megatron
from engine.frameworks.described import Launch
from engine.frameworks.registry import able
from engine.launch import planned, reading, verdict
from engine.mechanism import memory
from engine.step import search
from engine.step.layout import Job, Layout, Machine, estimate

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


@pytest.mark.parametrize("framework", ["megatron", "bridge"])
def test_parts_of_a_layer_are_recomputed_where_that_is_faster(framework):
    """Attention's products and its output stay, and the room is enough. Read back it is the same."""
    case = ("deepseek-v3", "h100-sxm", Job(768, 4096), 256)
    whole, part = (engine.plan(*case, framework=framework, top=1, partial=some) for some in (False, True))
    best = part.best
    assert whole.best.layout.recompute == "full" and best.fits and best.step_s < 0.98 * whole.best.step_s
    modules = set(best.layout.recompute.split("+"))
    assert "mla_up_proj" in modules and modules <= set(megatron.CAN.modules)
    one = Launch(framework, best.model, 256, "bf16", job=best.job, layout=best.layout)
    after = reading.read({"train.sh": planned.written(one, best.layout)}, 256)
    report = verdict.judged(after.launch, "h100-sxm")
    ours = {name: best.memory_bytes[name] for name in dict(report.parts)}
    assert after.launch.layout == best.layout and not report.refused
    assert dict(report.parts) == pytest.approx(ours, rel=1e-12)


def test_what_a_framework_or_a_model_lacks_is_not_recomputed():
    """torchtitan recomputes layers; a norm that a kernel does with a product is none of Megatron Core's; its
    delayed scaling takes no part that it would round again."""
    job, layout = Job(768, 4096), Layout(256, 8, 8, ep=8, zero=1, recompute="full")
    for model, framework, precision, offered in (
        ("deepseek-v3", "torchtitan", "bf16", set()),
        ("deepseek-v3", "megatron", "bf16", {"moe_act", "layernorm", "mla_up_proj"}),
        ("deepseek-v3", "megatron", "fp8", {"mla_up_proj"}),
        ("llama3.1-70b", "megatron", "bf16", {"mlp"}),
    ):
        chosen = layout if model == "deepseek-v3" else replace(layout, ep=1)
        at = Machine.of(catalog.gpu("h100-sxm"), precision=precision)
        whole = estimate(catalog.model(model), at, job, chosen)
        found = search.by_module(whole, engine.Constraints(able(framework)))
        named = {name for each in found for name in each.layout.recompute.split("+")}
        assert named >= offered and bool(named) == bool(offered)
        assert ("moe_act" in named, "layernorm" in named) == ("moe_act" in offered, "layernorm" in offered)


def test_delayed_scaling_refuses_what_it_would_round_again():
    """Megatron Core at d98e8a64, transformer/transformer_config.py, line 2002."""
    one = "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --seq-length 4096"
    one += " --num-attention-heads 32 --micro-batch-size 1 --global-batch-size 64 --bf16 --swiglu"
    one += " --recompute-granularity selective --recompute-modules "
    for modules, fp8, refused in (
        ("layernorm", "--fp8-format hybrid", True),
        ("mlp", "--fp8-format hybrid", False),
        ("layernorm", "--fp8-format hybrid --fp8-recipe blockwise", False),
        ("layernorm", "", False),
    ):
        report = engine.check_launch(f"{one}{modules} {fp8}", gpu="h100-sxm")
        assert any("Delayed scaling" in str(each) for each in report.refused) == refused
