"""What real recipes use beyond the plain layout: each knob with a figure worked by hand."""

from dataclasses import replace

import pytest

from engine import catalog, validation
from engine.mechanism import flops, memory
from engine.mechanism.pipeline import stage_layers
from engine.step import search
from engine.step.layout import Job, Layout, Machine, estimate, machine
from tests.said import refused

H100 = machine(catalog.gpu("h100-sxm"))
LLAMA8 = catalog.model("llama3.1-8b")


# -- the loss ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("plain", 336.2e9),  # 10 · 262,144 · 128,256: 313 GiB
        ("chunked", 336.2e9 / 8 + 2.15e9),  # and the input's gradient, 2 · 262,144 · 4,096
        ("fused", 67.2e9),  # 2 · 262,144 · 128,256
    ],
)
def test_what_the_logits_of_a_long_sequence_take(loss, expected):
    assert memory.loss_bytes(LLAMA8, 262144, 1, loss=loss) == pytest.approx(expected, rel=1e-3)
    here, plain = (
        estimate(
            LLAMA8, H100, Job(8, 262144, software=catalog.modern(loss=kind)), Layout(8, recompute="full")
        ).terms.total_bytes
        for kind in (loss, "plain")
    )
    assert plain - here == pytest.approx(336.2e9 - expected, abs=0.2e9)


def test_a_fused_loss_saves_time_and_a_chunked_one_costs_a_little():
    """Fourteen bytes a logit less at 3.35 TB/s · 0.75 or so: 8,192 · 128,256 · 14 are 14.7 GB, about 6 ms of
    a step of one micro-batch. Seven more passes over 8 · 4,096 · 128,256 bytes are 29 GB, twice that."""
    plain, fused, chunked = (
        estimate(LLAMA8, H100, Job(1, 8192, software=catalog.modern(loss=loss)), Layout(1)).step_s
        for loss in ("plain", "fused", "chunked")
    )
    assert plain - fused == pytest.approx(14.7e9 / H100.chip.memory_bytes_per_s, rel=0.01)
    assert chunked - plain == pytest.approx(29.4e9 / H100.chip.memory_bytes_per_s, rel=0.01)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"loss": "liger"}, ("loss", "plain, chunked, fused")), ({"loss_chunks": 0}, ("loss_chunks",))],
)
def test_another_loss_is_refused(wrong, words):
    with refused(*words):
        Job(8, 8192, software=catalog.modern(**wrong))


# -- recomputation by module, and of some layers -------------------------------------------------------------
DEEPSEEK, MIXTRAL = catalog.model("deepseek-v3"), catalog.model("mixtral-8x7b")
H800 = machine(catalog.gpu("h800"))


@pytest.mark.parametrize(
    ("modules", "dropped"),
    [
        ("layernorm", 4 * 7168),
        ("moe_act", 2 * 8 * 2048),
        ("mla_up_proj", 2 * 128 * (192 + 192 + 128) - 2 * (1536 + 512 + 64)),
        ("shared_experts", 6 * 2048),
        ("moe", 8 * (6 * 2048 + 4 * 7168) + 6 * 2048),
        ("moe+moe_act+shared_experts", 8 * (6 * 2048 + 4 * 7168) + 6 * 2048),
        ("core_attn", 0),  # fused attention keeps no scores
        ("layernorm+moe_act+mla_up_proj", 28672 + 32768 + 131072 - 4224),
    ],
)
def test_what_a_layer_of_deepseek_v3_need_not_keep(modules, dropped):
    """Of 561,152 bytes a token and layer (tests/engine/exam/test_missions.py)."""
    _, names = memory.recompute_of(modules)
    assert memory.dropped_per_token(DEEPSEEK, 4096, 1, 1, 1, 1, names) == dropped
    none, some = (
        estimate(
            DEEPSEEK,
            H800,
            Job(16, 4096),
            Layout(16, pp=4, ep=4, recompute=recompute, schedule="interleaved", interleave=4),
        )
        for recompute in ("none", modules)
    )
    # the second stage has 16 of 61 layers, 58 of which have experts, and holds four micro-batches; one layer
    # of one micro-batch stands rebuilt. The dense three have norms and latents too.
    dense = memory.dropped_per_token(DEEPSEEK, 4096, 1, 1, 1, 0, names)
    mean = (58 * dropped + 3 * dense) / 61
    saved = none.terms.total_bytes - some.terms.total_bytes
    assert saved == pytest.approx(4096 * mean * (16 * 4 - 1), rel=1e-9, abs=1.0)
    assert some.step_s >= none.step_s


def test_the_dense_mlp_of_llama_by_hand():
    """6 · 14,336 bytes a token and layer; three matrices' forward products, 6 · 4,096 · 14,336 FLOPs."""
    none, mlp = (
        estimate(LLAMA8, H100, Job(64, 8192), Layout(8, recompute=recompute, zero=3))
        for recompute in ("none", "mlp")
    )
    assert none.terms.total_bytes - mlp.terms.total_bytes == pytest.approx(31 * 8192 * 6 * 14336)
    extra = 32 * 6 * 4096 * 14336
    per_flops = mlp.layout.gpus * mlp.at.peak_flops_per_s / mlp.tokens_per_s
    assert mlp.hfu() * per_flops - mlp.mfu() * per_flops == pytest.approx(extra)
    assert mlp.step_s - none.step_s == pytest.approx(
        extra * 8 * 8192 / H100.chip.matmul_flops_per_s, rel=0.15
    )


def test_every_other_product_of_llama_by_hand():
    """Kept are the layer's input, queries, values, the attention's output, the gate's product and the MLP's
    result; repeated are keys and the attention's output, (h + kv)·h, and one of three MLP matrices."""
    none, some = (
        estimate(LLAMA8, H100, Job(64, 8192), Layout(8, recompute=recompute, zero=3))
        for recompute in ("none", "every_other")
    )
    stays = 2 * (2 * 4096 + 4096 + 1024 + 4096 + 14336)
    everything = 8 * 4096 + 2 * (4096 + 2 * 1024) + 2 * 4096 + 6 * 14336
    saved = none.terms.total_bytes - some.terms.total_bytes
    assert saved == pytest.approx(31 * 8192 * (everything - stays), rel=1e-6)
    extra = 32 * 2 * 4096 * (4096 + 1024 + 14336)
    per_flops = some.layout.gpus * some.at.peak_flops_per_s / some.tokens_per_s
    assert some.hfu() * per_flops - some.mfu() * per_flops == pytest.approx(extra)


def test_a_model_without_a_gate_has_no_every_other_product():
    with pytest.raises(ValueError, match="every_other"):
        estimate(catalog.model("gpt2"), H100, Job(64, 1024), Layout(8, recompute="every_other"))


def test_what_a_compiler_gains_is_what_torchtitan_measured():
    """5,762 and 6,667 tokens/s a GPU: 2.844 and 2.457 s for 16,384 tokens (December 2024)."""
    eager, compiled = (validation.row(f"torchtitan_8b_8_bf16{name}") for name in ("", "_compile"))
    assert eager.predicted - compiled.predicted == pytest.approx(eager.measured - compiled.measured, rel=0.35)


def test_kernels_are_ordered_and_known():
    job, split = Job(16, 8192), Layout(8, zero=3, micro_batch=2)
    times = [
        estimate(LLAMA8, H100, replace(job, software=replace(job.software, kernels=kernels)), split).step_s
        for kernels in ("library", "compiled", "eager")
    ]
    assert times == sorted(times) and times[0] < times[2]
    with refused("kernels", "library, compiled, eager"):
        Job(16, 8192, software=catalog.modern(kernels="triton"))


def test_all_modules_cost_less_than_the_whole_layer_and_keep_more():
    """Full recomputation repeats the attention's projections too, and keeps the layer's input alone."""
    job, layout = Job(64, 8192), Layout(8, zero=3)
    none, modules, full = (
        estimate(LLAMA8, H100, job, Layout(8, zero=3, recompute=recompute))
        for recompute in ("none", "layernorm+mlp", "full")
    )
    assert none.step_s < modules.step_s < full.step_s and layout.recompute == "none"
    assert none.terms.total_bytes > modules.terms.total_bytes > full.terms.total_bytes


def test_some_layers_lie_between_none_and_all():
    """32 layers on four stages: two of eight are a quarter of what all save, and of the time."""
    none, some, full = (
        estimate(
            LLAMA8,
            H100,
            Job(64, 8192, software=catalog.modern(loss="chunked", loss_chunks=64)),
            Layout(8, pp=4, recompute=recompute, recompute_layers=layers),
        )
        for recompute, layers in (("none", 0), ("full", 2), ("full", 0))
    )
    kept = [e.memory_bytes["activations"] for e in (none, some, full)]
    rebuilt = memory.layer_activation_bytes(LLAMA8, 8192, 1)
    assert kept[0] - (kept[1] - rebuilt) == pytest.approx((kept[0] - (kept[2] - rebuilt)) / 4)
    assert some.time_s["compute"] - none.time_s["compute"] == pytest.approx(
        (full.time_s["compute"] - none.time_s["compute"]) / 4
    )
    assert some.hfu() < full.hfu()
    per_flops = 8 * H100.peak_flops_per_s
    again = [(e.hfu() - e.mfu()) * per_flops / e.tokens_per_s for e in (some, full)]
    assert again[0] == pytest.approx(again[1] / 4)


def test_experts_computed_again_send_their_tokens_again():
    none, act, moe = (
        estimate(MIXTRAL, H100, Job(64, 4096), Layout(16, ep=8, recompute=recompute))
        for recompute in ("none", "moe_act", "moe")
    )
    assert act.time_s["expert"] == none.time_s["expert"]
    assert moe.time_s["expert"] == pytest.approx(1.5 * none.time_s["expert"])  # forward, backward, again
    assert moe.time_s["compute"] > act.time_s["compute"] > none.time_s["compute"]


@pytest.mark.parametrize(
    ("model", "layout", "words"),
    [
        (LLAMA8, {"recompute": "moe_act"}, ("recompute", "llama3.1-8b", "core_attn", "moe_act")),
        (MIXTRAL, {"recompute": "mlp"}, ("recompute", "mixtral-8x7b")),
        (LLAMA8, {"recompute": "mlp+mlp"}, ("each once and joined by",)),
        (LLAMA8, {"recompute_layers": 4}, ("recompute_layers", "0", "full", "4")),
        (LLAMA8, {"recompute": "full", "recompute_layers": 40}, ("32", "40")),
    ],
)
def test_what_a_layer_does_not_have_is_refused(model, layout, words):
    with refused(*words):
        estimate(model, H100, Job(64, 4096), Layout(8, **layout))


# -- stages that are not alike -------------------------------------------------------------------------------
LLAMA405 = catalog.model("llama3.1-405b")
GB200 = machine(catalog.gpu("gb200"))


def test_llama_405b_in_128_slots_of_which_embedding_and_loss_take_one_each():
    """TP 4, PP 16 and 8 chunks on 256 GB200 (Megatron-Bridge's recipe): 126 layers and two, one a chunk; the
    ends hold seven layers and the others eight."""
    a = Layout(256, tp=4, pp=16, schedule="interleaved", interleave=8)
    found = estimate(LLAMA405, GB200, Job(1536, 8192), a)
    assert stage_layers(126.0, 16.0, 8.0) == (8, 7, 7)
    assert found.time_s["pipeline_bubble"] / found.time_s["compute"] < 15 / (8 * 384) * 1.2
    with refused("pp", "9 chunks", "16", "14"):
        estimate(LLAMA405, GB200, Job(1536, 8192), Layout(256, 4, 16, schedule="interleaved", interleave=9))
    with pytest.raises(ValueError, match="each of its 1 chunks"):  # without chunks each stage has a layer
        estimate(LLAMA405, GB200, Job(512, 8192), Layout(128, pp=128))


def test_uneven_ends_are_what_is_asked_for():
    """DeepSeek-V3's 61 layers as 16 + 16 + 16 + 13 (4/4/…/4/1 in sixteen chunks)."""
    layout = Layout(16, pp=4, ep=4, schedule="interleaved", interleave=4, last_layers=13)
    asked = estimate(DEEPSEEK, H800, Job(64, 4096), layout)
    assert stage_layers(61.0, 4.0, 4.0, 0.0, 13.0) == (16, 16, 13)
    assert stage_layers(61.0, 4.0, 4.0) == (16, 15, 14)
    even = estimate(DEEPSEEK, H800, Job(64, 4096), replace(layout, last_layers=0))
    assert asked.time_s["compute"] == pytest.approx(even.time_s["compute"])  # sixteen layers set the pace
    assert asked.memory_bytes["activations"] > even.memory_bytes["activations"]  # and now the first has them


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"pp": 4, "last_layers": 4}, "must leave 3 equal stages of the 32 layers, got 0 and 4"),
        ({"pp": 2, "first_layers": 10, "last_layers": 10}, "must leave 0 equal stages"),
        ({"first_layers": 3}, "must be 0 without a pipeline"),
    ],
)
def test_ends_that_leave_no_equal_stages_are_refused(layout, words):
    with pytest.raises(ValueError, match=words):
        estimate(LLAMA8, H100, Job(64, 4096), Layout(8, **layout))


# -- nonsense ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("gpu", "precision"), [("a100-80", "int8"), ("h100-sxm", "int8"), ("b200", "fp4")])
def test_nobody_trains_in_int8_or_in_fp4_without_a_recipe(gpu, precision):
    at = machine(catalog.gpu(gpu), precision)
    words = f"precision must be one of bf16, .* to train, or that of the recipe .bf16., got {precision}"
    with pytest.raises(ValueError, match=words):
        estimate(LLAMA8, at, Job(64, 4096), Layout(8))
    with pytest.raises(ValueError, match=words):
        search.plan(LLAMA8, at, Job(64, 4096), 8)


def test_a_recipe_that_says_so_may():
    narrow = replace(catalog.recipe("bf16-adam"), key="own", precision="fp4")
    in_fp4 = machine(catalog.gpu("b200"), "fp4")
    in_bf16 = machine(catalog.gpu("b200"), "bf16")
    step_s = estimate(LLAMA8, in_fp4, Job(64, 4096, recipe=narrow), Layout(8)).step_s
    assert step_s < estimate(LLAMA8, in_bf16, Job(64, 4096), Layout(8)).step_s


def test_a_nic_of_400_bytes_a_second_is_a_slip_of_the_unit():
    with refused("nic_bytes_per_s", "10,000,000", "400"):
        Machine.of("h100-sxm", nic_bytes_per_s=400)
    assert Machine.of("h100-sxm", nic_bytes_per_s=125e6).wires.nic_bytes_per_s > 0  # Gigabit Ethernet


# -- multi-token prediction ----------------------------------------------------------------------------------
def test_one_module_of_deepseek_v3_is_ten_gigaflop_a_token():
    """NVIDIA counts 250 GFLOP a token without the module and 260 with it, causal attention at 4,096 tokens
    (Megatron-Bridge, docs/performance-summary.md)."""
    without = flops.training_flops_per_token(DEEPSEEK, 4096)
    assert without == pytest.approx(250e9, rel=0.02)
    assert without + flops.mtp_flops_per_token(DEEPSEEK, 4096) == pytest.approx(260e9, rel=0.02)


def test_a_module_is_a_layer_a_projection_and_a_loss():
    """Llama 3.1 8B on one stage: a layer's share of 32, the output layer again and 2 · 4,096² weights. State:
    a 218 M layer and 33.6 M of projection at 16 bytes; logits twice."""
    none, one = (estimate(LLAMA8, H100, Job(8, 4096, mtp=mtp), Layout(8, zero=0)) for mtp in (0, 1))
    more = one.terms.total_bytes - none.terms.total_bytes
    kept = memory.layer_activation_bytes(LLAMA8, 4096, 1)
    assert more == pytest.approx(16 * (218.1e6 + 33.6e6) + kept + 10 * 4096 * 128256, rel=1e-3)
    per_token = one.model_flops_per_gpu_per_s() * 8 / one.tokens_per_s
    base = none.model_flops_per_gpu_per_s() * 8 / none.tokens_per_s
    assert per_token - base == pytest.approx(
        3 * 2 * (218.1e6 + 33.6e6 + 4096 * 128256) + 3 * 2 * 32 * 256 * 2048, rel=1e-3
    )
    assert 1 / 32 < one.time_s["compute"] / none.time_s["compute"] - 1 < 4 / 32


def test_the_last_stage_has_the_module():
    none, one = (estimate(DEEPSEEK, H800, Job(64, 4096, mtp=mtp), Layout(16, pp=4, ep=4)) for mtp in (0, 1))
    assert one.step_s > none.step_s and one.terms.total_bytes >= none.terms.total_bytes
