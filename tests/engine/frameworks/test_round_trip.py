"""An exported layout, read back, is the same layout with the same estimate; where a program cannot hold
something, its export says so, and only that is lost."""

import json
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.catalog import models
from engine.catalog.models import Model
from engine.frameworks import deepspeed, hugging_face
from engine.frameworks.described import Launch
from engine.launch import planned, reading
from engine.step import layout
from engine.step.layout import Job, Layout
from tests.cases import in_one_test

AT = layout.machine(catalog.gpu("h100-sxm"))
MODELS = (
    "llama3.1-8b",
    "llama3.1-70b",
    "llama2-7b",
    "qwen2.5-7b",
    "gpt3-6.7b",
    "mixtral-8x7b",
    "deepseek-v3",
    "qwen3-30b-a3b",
)
NOT_SHAPE = {"max_context", "year"}
SILENT = Launch("megatron", catalog.model("llama2-7b"), 1, "bf16")


def divisor(draw, number: int, most: int = 64) -> int:
    return draw(st.sampled_from([d for d in range(1, min(number, most) + 1) if number % d == 0]))


@st.composite
def launches(draw, framework: str, keys=MODELS):
    """A legal layout of a model, with a job that has the framework's defaults."""
    m = catalog.model(draw(st.sampled_from(keys)))
    cut = framework != "hugging_face"
    tp = divisor(draw, m.heads, 8) if cut else 1
    pp = draw(st.sampled_from([p for p in (1, 2, 3, 4, 6, 8) if p <= m.depth])) if cut else 1
    cp = draw(st.sampled_from([1, 1, 2, 4])) if cut else 1
    dp = draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    micro = draw(st.sampled_from([1, 2, 4]))
    gpus = tp * pp * cp * dp
    zero = draw(st.integers(0, 3)) if dp * cp > 1 else 0
    schedule, chunks = "1f1b", 1
    if pp > 1:
        schedule = draw(st.sampled_from(["1f1b", "1f1b", "interleaved", "gpipe", "zb-h1", "zb-h2"]))
        chunks = draw(st.sampled_from([2, 3, 4])) if schedule == "interleaved" else 1
    recompute = (
        draw(st.sampled_from(["none", "full", "none", "selective", "core_attn", "layernorm"]))
        if cut
        else draw(st.sampled_from(["none", "full"]))
    )
    fewer = recompute == "full" and cut and chunks < m.depth // pp  # than all, which are 0
    some = draw(st.sampled_from([0, 0, chunks])) if fewer else 0
    expert_tp = tp if m.experts else 1
    ep = divisor(draw, m.experts, 8) if m.experts and cut else 1
    a = Layout(gpus, tp, pp, cp, ep, zero, micro, recompute, schedule, chunks, expert_tp, 0, some)
    batch = micro * dp * pp * draw(st.sampled_from([2, 4]))
    seq = draw(st.sampled_from([1024, 2048]))
    narrow = draw(st.booleans()) or not cut
    if framework == "torchtitan":
        narrow = pp == 1 or zero != 1
    switches = {"loss": draw(st.sampled_from(["plain", "fused"])) if cut else "plain"}
    if cp > 1:
        switches["context"] = draw(st.sampled_from(["ring", "gather"]))
    switches["overlaps"] = "" if framework == "hugging_face" and zero == 0 else "data"
    recipe = catalog.recipe("bf16-adam" if narrow else "bf16-adam-fp32-grads")
    job = Job(batch, seq, recipe, catalog.training_software(PROGRAMS[framework], **switches))
    compiled = framework == "torchtitan" and draw(st.booleans())
    kernels = "compiled" if compiled else whose_kernels(framework, job.software.loss)
    job = replace(job, software=replace(job.software, kernels=kernels, fsdp=whose_fsdp(framework)))
    try:
        layout.require_legal(m, job, a)
    except ValueError:
        assume(False)
    return replace(SILENT, framework=framework, model=m, gpus=gpus, job=job, layout=a)


def shape(model: Model) -> dict:
    """The numbers of a model that matter; the widths of latent attention are left out if it has none."""
    sizes = models.sizes_of(model)
    nothing = NOT_SHAPE if sizes["kv_lora"] else NOT_SHAPE | {"q_lora", "rope_dim", "nope_dim", "v_dim"}
    own = {name: getattr(model, name) for name in models.KINDS if name not in sizes}
    return {name: number for name, number in (own | sizes).items() if name not in nothing}


# the program of the catalogue that each framework's reader starts from
PROGRAMS = {
    "megatron": "megatron-core",
    "bridge": "megatron-core",
    "torchtitan": "torchtitan",
    "hugging_face": "trainer",
}


def whose_kernels(framework: str, loss: str = "plain") -> str:
    """Whose kernels a framework runs: torchtitan PyTorch's own, compiled if the loss is; the trainer its
    operators; the others are assumed to use a library's."""
    if framework == "hugging_face":
        return "eager"
    if framework != "torchtitan":
        return "library"
    return "eager" if loss == "plain" else "compiled"


def whose_fsdp(framework: str) -> str:
    """Which FSDP a framework uses: torchtitan uses FSDP2, which copies each parameter in and out."""
    return "each" if framework == "torchtitan" else ""


def same(before: Launch, after: Launch) -> None:
    """Checks that job, layout, model and estimate are the same before and after."""
    assert after.layout == before.layout
    assert replace(after.job, recipe=None) == replace(before.job, recipe=None)
    assert after.job.recipe.bytes_per_param == before.job.recipe.bytes_per_param
    assert shape(after.model) == shape(before.model)
    first = layout.estimate(before.model, AT, before.job, before.layout)
    second = layout.estimate(after.model, AT, after.job, after.layout)
    assert second.step_s == first.step_s and second.memory_bytes == first.memory_bytes


def read(text, gpus: int) -> Launch:
    found = reading.read(text, gpus)
    assert found.launch is not None, [str(fault) for fault in found.faults]
    assert not found.faults, [str(fault) for fault in found.faults]
    return found.launch


QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@QUICK
@given(launches("megatron"))
def test_megatron_s_arguments(one):
    text = planned.written(one, one.layout)
    after = read(text, one.gpus)
    losses = [line for line in text.splitlines() if line.strip().startswith("#")]
    if not losses and one.layout.zero < 2:
        same(one, after)
        return
    kept = {"tp", "pp", "cp", "ep", "expert_tp", "micro_batch", "zero", "recompute"}
    assert {name: getattr(after.layout, name) for name in kept} == {
        name: getattr(one.layout, name) for name in kept
    }
    if losses:
        told = " ".join(losses)
        assert ("no schedule" in told) == (one.layout.schedule not in ("1f1b", "interleaved"))


@QUICK
@given(launches("bridge"))
def test_megatron_bridge_s_overrides(one):
    """The recipe brings the model, so nothing of it is lost."""
    text = planned.written(one, one.layout)
    after = read(text, one.gpus)
    losses = [line for line in text.splitlines() if line.startswith("#")]
    if not losses:
        same(one, after)
        return
    assert shape(after.model) == shape(one.model) and after.job.seq == one.job.seq
    kept = ("tp", "pp", "cp", "ep", "expert_tp", "micro_batch", "zero", "recompute")
    assert [getattr(after.layout, n) for n in kept] == [getattr(one.layout, n) for n in kept]
    told = " ".join(losses)
    assert ("no schedule" in told) == (one.layout.schedule not in ("1f1b", "interleaved"))


@QUICK
@given(launches("torchtitan", ("llama3.1-8b", "llama3.1-70b", "deepseek-v3", "qwen3-30b-a3b")))
def test_torchtitan_s_file(one):
    text = planned.written(one, one.layout)
    after = read(text, one.gpus)
    if text.count("#") == 1 and "is yours" in text:  # the export reports no loss
        same(one, after)
        return
    kept = ("tp", "pp", "cp", "ep", "expert_tp", "micro_batch")
    if "refuses" not in text:
        assert [getattr(after.layout, n) for n in kept] == [getattr(one.layout, n) for n in kept]
    if one.layout.zero == 1 and one.layout.pp == 1:
        assert "ZeRO-1" in text and after.layout.zero in (0, 1, 2)


def config(kind: str, *values: float) -> str:
    """A config.json with the keys that shape a model."""
    names = (
        "num_hidden_layers hidden_size num_attention_heads num_key_value_heads intermediate_size vocab_size "
        "rope_theta rms_norm_eps"
    )
    return json.dumps({"model_type": kind, **dict(zip(names.split(), values, strict=True))})


CONFIGS = {
    "llama2-7b": config("llama", 32, 4096, 32, 32, 11008, 32000, 10000.0, 1e-5),
    "llama3.1-70b": config("llama", 80, 8192, 64, 8, 28672, 128256, 500000.0, 1e-5),
    "qwen2.5-7b": config("qwen2", 28, 3584, 28, 4, 18944, 152064, 1000000.0, 1e-6),
}


@QUICK
@given(launches("hugging_face", tuple(CONFIGS)))
def test_deepspeed_s_json_with_the_trainer_s_arguments(one):
    """Liger chooses the chunks of a loss itself, by what a micro-batch holds, and brings kernels of its own
    for norms and activation functions."""
    if one.job.software.loss == "chunked":
        tokens = one.layout.micro_batch * one.job.seq // one.layout.cp
        chunks = hugging_face.liger_chunks(one.model, tokens)
        by = replace(one.job.software, loss_chunks=chunks, kernels="compiled", written_out=False)
        one = replace(one, job=replace(one.job, software=by))
    run = planned.run_of(one, one.layout)
    texts = {
        "ds.json": deepspeed.written(run),
        "args.yaml": hugging_face.training_arguments(run),
        "config.json": CONFIGS[one.model.key],
    }
    same(one, read(texts, one.gpus))


@in_one_test("key", list(catalog.all_models()))
def test_megatron_s_arguments_hold_the_model_or_say_what_they_leave_out(key):
    m = catalog.model(key)
    one = replace(SILENT, model=m, gpus=8, job=Job(8, 1024), layout=Layout(8))
    text = planned.written(one, one.layout)
    if not models.in_short_keys(m):
        assert "what they start is another model" in text
        return
    beside = ("counted_params", "mtp_modules")  # no part of the shape
    found = {name: value for name, value in shape(read(text, 8).model).items() if name not in beside}
    lost = {name: value for name, value in found.items() if value != shape(m)[name]}
    if lost:
        assert set(lost) <= LOST.get(m.family, set()) | LOST["any"], lost
        small = {"extra_params_per_layer", "extra_params", "router_bias", "chunked"}
        assert "#" in text or set(lost) <= small, lost


# properties without an argument in Megatron-LM, by family; the export mentions each in a comment unless it is
# less than a thousandth
LOST = {
    "any": {
        "extra_params",
        "extra_params_per_layer",
        "window",
        "windowed_layers",
        "chunked",
        "norms_per_layer",
        "rotary_base",  # where no source has it; the export then says that it is yours
    },
    "PaLM": {"parallel_block", "max_positions"},
    "BLOOM": {"embedding_norm"},
    "Command": {"parallel_block"},
}


@in_one_test(
    "framework, key, a",
    [
        ("megatron", "llama3.1-70b", Layout(512, 8, 4, micro_batch=2)),
        (
            "megatron",
            "llama3.1-70b",
            Layout(128, 4, 4, 2, recompute="full", schedule="interleaved", interleave=5),
        ),
        ("megatron", "llama3.1-405b", Layout(2048, 8, 16, schedule="interleaved", interleave=8)),
        ("megatron", "deepseek-v3", Layout(2048, 1, 16, ep=64, recompute="layernorm+mla_up_proj")),
        ("megatron", "llama3.1-70b", Layout(64, 4, 8, first_layers=7, last_layers=7, recompute="layernorm")),
        ("megatron", "llama3.1-70b", Layout(512, 8, 4, micro_batch=2, shard=4)),
        ("megatron", "llama3.1-8b", Layout(64, zero=3, shard=8)),
        ("bridge", "llama3.1-70b", Layout(512, 8, 4, micro_batch=2, shard=4)),
        ("bridge", "llama3.1-70b", Layout(512, 8, 4, zero=1, micro_batch=2)),
        ("bridge", "llama3.1-405b", Layout(2048, 8, 16, schedule="interleaved", interleave=8)),
        ("bridge", "deepseek-v3", Layout(2048, 1, 16, ep=64, recompute="layernorm+mla_up_proj")),
        ("bridge", "llama3.1-70b", Layout(64, 4, 8, first_layers=7, last_layers=7, recompute="layernorm")),
        ("bridge", "llama3.1-8b", Layout(64, zero=3, micro_batch=2)),
        ("torchtitan", "llama3.1-8b", Layout(64, zero=3, micro_batch=2)),
        ("torchtitan", "llama3.1-8b", Layout(64, zero=3, shard=8)),
        ("torchtitan", "llama3.1-405b", Layout(512, 8, 8, zero=3, recompute="full")),
        ("hugging_face", "qwen2.5-7b", Layout(16, zero=3, recompute="full")),
        ("hugging_face", "llama2-7b", Layout(8, zero=2, micro_batch=4)),
    ],
)
def test_what_people_run_comes_back_whole(framework, key, a):
    """Layouts in which no program loses anything, so that the properties above are not about losses alone."""
    m = catalog.model(key)
    by = catalog.training_software(
        PROGRAMS[framework], overlaps="data", kernels=whose_kernels(framework), fsdp=whose_fsdp(framework)
    )
    job = Job(1024, 4096, catalog.recipe("bf16-adam"), by)
    one = replace(SILENT, framework=framework, model=m, gpus=a.gpus, job=job, layout=a)
    run = planned.run_of(one, a)
    texts = planned.written(one, a)
    if framework == "hugging_face":
        texts = {
            "ds": deepspeed.written(run),
            "args": hugging_face.training_arguments(run),
            "config": CONFIGS[key],
        }
    same(one, read(texts, a.gpus))
