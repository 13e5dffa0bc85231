"""The planner and the checker agree: a layout that is planned for a framework, written in its words and read
back as a stranger's launch has the same bytes in every part, the same step and the same verdict, and no
framework refuses what is planned for it."""

import dataclasses

import pytest

import engine
from engine import catalog
from engine.catalog import models
from engine.frameworks import bridge_recipes, deepspeed, hugging_face
from engine.frameworks.described import Launch
from engine.frameworks.registry import frameworks
from engine.launch import planned, reading, verdict
from engine.launch.own_job import own_job
from engine.step.layout import Job, Layout
from tests.cases import in_one_test

# framework, model, GPU, how many, sequences of a step, tokens of each
CLUSTERS = (("h100-sxm", 64, 320, 4096), ("b200", 128, 384, 8192), ("h800", 256, 768, 2048))
DENSE = ("llama3.1-8b", "llama3.1-70b", "qwen3-32b", "mistral-small-3.2", "devstral-2-123b")
# its norms of queries and keys are as wide as all heads, for which Megatron-LM has no argument
NOT_SAID = "olmo3-32b"
EXPERTS = ("mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "glm-4.5-air")
OF_2026 = ("glm-4.7-flash", "mistral-small-4", "solar-open-100b", "k-exaone-236b", "kimi-k2.5")
BY_NAME = (
    "llama3.1-8b",
    "llama3.1-70b",
    "llama3.1-405b",
    "qwen3-8b",
    "qwen3-32b",
    "qwen3-30b-a3b",
    "deepseek-v3",
)
WITH_CONFIG = {
    "llama2-7b": ("llama", 32, 4096, 32, 32, 11008, 32000, 10000.0, 1e-5),
    "llama3.1-8b": ("llama", 32, 4096, 32, 8, 14336, 128256, 500000.0, 1e-5),
    "qwen2.5-7b": ("qwen2", 28, 3584, 28, 4, 18944, 152064, 1000000.0, 1e-6),
}
MATRIX = [
    (framework, model, *CLUSTERS[at % len(CLUSTERS)])
    for framework, keys in {
        "megatron": (*DENSE, "qwen3-8b", *EXPERTS, *OF_2026),
        "bridge": (*DENSE, NOT_SAID, *EXPERTS, *OF_2026),
        "torchtitan": BY_NAME,
        "fsdp2": BY_NAME,
        "deepspeed": tuple(WITH_CONFIG),
    }.items()
    for step, model in enumerate(keys)
    for at in ((step, step + 1) if framework in ("megatron", "torchtitan", "deepspeed") else (step,))
]


def config(model: str) -> str:
    """A config.json with what shapes the model."""
    names = ["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"]
    names += ["intermediate_size", "vocab_size", "rope_theta", "rms_norm_eps"]
    kind, *sizes = WITH_CONFIG[model]
    pairs = ", ".join(f'"{name}": {size}' for name, size in zip(names, sizes, strict=True))
    return f'{{"model_type": "{kind}", {pairs}}}'


def texts(framework: str, one: Launch) -> dict[str, str]:
    """What a user saves of a plan."""
    assert one.layout is not None
    if framework == "deepspeed":
        run = planned.run_of(one, one.layout)
        arguments = hugging_face.training_arguments(run)
        return {
            "ds.json": deepspeed.written(run),
            "args.yaml": arguments,
            "config.json": config(one.model.key),
        }
    name = "train.toml" if framework in ("torchtitan", "fsdp2") else "train.sh"
    return {name: planned.written(one, one.layout)}


def test_the_matrix_is_large_and_has_models_of_this_year():
    assert len(MATRIX) >= 60
    assert sum(catalog.model(model).year == 2026 for _, model, *_ in MATRIX) >= 10


@pytest.mark.parametrize("framework", sorted({row[0] for row in MATRIX}))
def test_what_is_planned_is_what_the_checker_reads(framework):
    rows, refused, apart = [row for row in MATRIX if row[0] == framework], [], []
    for _, model, gpu, gpus, batch, seq in rows:
        found = engine.plan(model, gpu, Job(batch, seq), gpus, top=1, framework=able_of(framework))
        best = found.best
        job = best.job if framework != "bridge" else own_job("bridge", Job(batch, seq), "bf16")
        one = Launch(framework, best.model, gpus, "bf16", job=job, layout=best.layout)
        after = reading.read(texts(framework, one), gpus)
        assert after.launch is not None and not after.faults, [str(fault) for fault in after.faults]
        report = verdict.judged(after.launch, gpu)
        refused += [(model, gpu, one.error) for one in report.refused if best.fits]
        assert report.parts is not None and report.estimate is not None
        ours = {part: size for part, size in best.memory_bytes.items() if part not in ("total", "capacity")}
        if (
            dict(report.parts) != pytest.approx(ours, rel=1e-12)
            or report.fits != best.fits
            or report.estimate.step_s != pytest.approx(best.step_s, rel=1e-12)
        ):
            apart.append(
                (model, gpu, best.layout, report.estimate.layout, ours, report.parts, report.verdict)
            )
    assert not refused and not apart


def test_a_plan_whose_model_the_arguments_cannot_say_says_so():
    found = engine.plan(NOT_SAID, "h800", Job(768, 2048), 256, top=1, framework=able_of("megatron"))
    one = Launch("megatron", found.best.model, 256, "bf16", job=found.best.job, layout=found.best.layout)
    assert "further norms" in texts("megatron", one)["train.sh"].split("--num-layers")[0]


SEVERAL_KINDS = ("qwen3.5-27b", "deepseek-v4-flash", "kimi-linear-48b", "gemma4-31b", "nemotron-3-nano")


@pytest.mark.parametrize("model", SEVERAL_KINDS)
def test_no_framework_is_offered_a_model_whose_layers_its_settings_cannot_say(model):
    """Megatron-LM's arguments and torchtitan's flavors say one kind of layer. Megatron-Bridge has some of the
    others by name, and a recipe of that name is what is written."""
    job, shape = Job(256, 4096), catalog.model(model)
    for framework in ("megatron", *(("torchtitan",) if models.has_mixers(shape) else ())):
        with pytest.raises(ValueError, match=r"layers that (Megatron|torchtitan)"):
            engine.plan(model, "h100-sxm", job, 64, top=1, framework=framework)
        assert not engine.Constraints(able=(frameworks()[framework].can,)).allows(shape, Layout(64, 2), job)
    if model in bridge_recipes.OF_THE_LIBRARY:
        found = engine.plan(model, "h100-sxm", job, 256, top=1, framework="bridge").best
        one = Launch("bridge", found.model, 256, "bf16", job=found.job, layout=found.layout)
        report = verdict.judged(reading.read(texts("bridge", one), 256).launch, "h100-sxm")
        ours = {part: found.memory_bytes[part] for part in dict(report.parts)}
        assert dict(report.parts) == pytest.approx(ours, rel=1e-12)
    else:
        with pytest.raises(ValueError, match="layers that Megatron-Bridge"):
            engine.plan(model, "h100-sxm", job, 64, top=1, framework="bridge")


def test_a_recipe_says_every_switch_that_the_library_s_own_would_set_otherwise():
    """Those of the library recompute, fuse losses and share the optimizer's state unless told not to, and
    take the model's length from that of the data."""
    job = own_job("bridge", Job(64, 4096), "bf16")
    one = Launch("bridge", catalog.model("qwen3-32b"), 64, "bf16", job=job, layout=Layout(64, 4, 2))
    text = texts("bridge", one)["train.sh"]
    said = dict(word.split("=") for word in text.split() if "=" in word)
    assert "\npython run_recipe.py --recipe qwen3_32b_pretrain_16gpu_h100_bf16_config " in text
    assert said["model.recompute_granularity"] == said["model.virtual_pipeline_model_parallel_size"] == "null"
    assert said["model.cross_entropy_loss_fusion"] == "false"
    assert said["ddp.use_distributed_optimizer"] == said["optimizer.use_distributed_optimizer"] == "true"
    assert said["dataset.seq_length"] == "4096" and said["model.sequence_parallel"] == "true"
    alone = texts("bridge", dataclasses.replace(one, layout=Layout(64, zero=0)))["train.sh"]
    assert "model.sequence_parallel=false" in alone and "optimizer.use_distributed_optimizer=false" in alone
    strange = dataclasses.replace(one, model=catalog.model("devstral-2-123b"))
    assert "# the library has no recipe" in texts("bridge", strange)["train.sh"]


def able_of(framework: str) -> str:
    """The key of what a framework can run."""
    can = frameworks()[framework].can
    assert can is not None
    return can.key


def test_a_framework_s_own_state_is_counted_and_said():
    job = Job(512, 8192)
    for framework, words in (
        ("megatron", "fp32 gradients (18 bytes a parameter), Megatron-Core"),
        ("torchtitan", "bf16 mixed Adam (16 bytes a parameter), torchtitan"),
        ("any", "bf16 mixed Adam (16 bytes a parameter), today's training software"),
        ("", "bf16 mixed Adam (16 bytes a parameter), today's training software"),
    ):
        found = engine.plan("llama3.1-8b", "h100-sxm", job, 64, top=1, framework=framework)
        assert words in found.counted and found.as_dict()["counted"] == found.counted


def test_what_a_job_names_itself_stays():
    recipe, by = catalog.recipe("bf16-adam"), catalog.training_software("nemo-24.07")
    named = own_job("megatron", Job(8, 1024, recipe, by), "bf16")
    assert named.recipe == recipe and named.software == by
    changed = own_job("megatron", Job(8, 1024, None, catalog.modern(loss="fused")), "bf16")
    assert (changed.software.key, changed.software.loss) == ("megatron-core", "fused")
    assert own_job("megatron", Job(8, 1024), "fp8").software.saves_fp8
    assert own_job("megatron", Job(8, 1024), "fp32").recipe is None


@in_one_test(
    "framework, layout, batch, seq, starts",
    [
        ("megatron", Layout(64, 2, 4, schedule="interleaved", interleave=5), 8 * 4, 4096, True),
        ("megatron", Layout(64, 2, 4, schedule="interleaved", interleave=5), 8 * 6, 4096, False),
        ("megatron", Layout(64, 2, 4, schedule="interleaved", interleave=5), 8 * 2, 4096, False),
        ("megatron", Layout(64, 2, 4), 8 * 6, 4096, True),  # without chunks there are no groups
        ("torchtitan", Layout(64, 2, 4, zero=3, schedule="interleaved", interleave=3), 8 * 6, 4096, True),
        ("torchtitan", Layout(64, 2, 4, zero=3, schedule="interleaved", interleave=3), 8 * 9, 4096, False),
        ("torchtitan", Layout(64, 4, zero=3), 64, 4096, True),
        ("torchtitan", Layout(64, 4, zero=3), 64, 4100, False),
        ("megatron", Layout(64, 4), 64, 4100, True),
        ("megatron", Layout(64, 4), 64, 4098, False),
    ],
)
def test_batches_and_sequences_that_a_framework_refuses(framework, layout, batch, seq, starts):
    """What the search may offer and what the reader lets pass is the same."""
    model = catalog.model("llama3.1-70b")
    job = own_job(framework, Job(batch, seq), "bf16")
    can = engine.Constraints(able=(frameworks()[framework].can,))
    assert can.allows(model, layout, job) == starts
    one = Launch(framework, model, layout.gpus, "bf16", job=job, layout=layout)
    report = verdict.judged(reading.read(texts(framework, one), layout.gpus).launch, "h100-sxm")
    assert (report.verdict != "will not start") == starts, report.refused


def test_ranks_cut_no_column_of_an_mlp():
    model = dataclasses.replace(catalog.model("llama3.1-8b"))
    narrow = models.resized(model, ffn=14338)
    can = engine.Constraints(able=(frameworks()["megatron"].can,))
    job = Job(64, 4096)
    assert can.allows(model, Layout(64, 4), job) and not can.allows(narrow, Layout(64, 4), job)
    assert can.allows(narrow, Layout(64, 2), job)
