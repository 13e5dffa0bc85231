"""FLOPs, time and utilisation: papers' own counts, hand-worked numbers, and what must always hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.base import units
from engine.catalog import models
from engine.mechanism import flops
from engine.mechanism.memory import FULL, SELECTIVE
from tests.cases import in_one_test
from tests.said import refused

H100 = 989e12
sizes = st.floats(1e6, 1e13)
tokens = st.floats(1, 1e14)
any_model = st.sampled_from(list(catalog.all_models().values()))
seqs = st.integers(1, 10**6)


def dense_gpt(layers, hidden, heads, vocab=51200):
    return models.described(
        key="gpt",
        name="gpt",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=4 * hidden,
        vocab=vocab,
        gated=False,
    )


# -- 6·P·D ---------------------------------------------------------------------------------------------------
def test_two_forward_four_backward():
    assert flops.forward_flops(7e9, 1000) == 14e12
    assert flops.backward_flops(7e9, 1000) == 28e12
    assert flops.training_flops(7e9, 1000) == 42e12


def test_70b_on_15_trillion_tokens():
    total = flops.training_flops(70e9, 15e12)
    assert total == pytest.approx(6.3e24)
    assert flops.run_time_s(total, 1, H100, 0.4) / units.YEAR == pytest.approx(500, rel=0.02)
    assert flops.run_time_s(total, 1024, H100, 0.4) / units.YEAR == pytest.approx(0.5, rel=0.02)


def test_7b_on_2_trillion_tokens_takes_one_h100_1970_days():
    assert flops.run_time_s(flops.training_flops(7e9, 2e12), 1, H100, 0.5) / units.DAY == pytest.approx(
        1970, rel=0.003
    )


def test_llama3_405b_run():
    """3.8e25 FLOPs for 15.6T tokens (arXiv:2407.21783 section 3.2)."""
    params = models.parameters(catalog.model("llama3.1-405b"))
    assert flops.training_flops(params, 15.6e12) == pytest.approx(3.8e25, rel=0.01)


# -- a model's own count -------------------------------------------------------------------------------------
def test_attention_counted_by_hand():
    """One layer, 2 heads of 4, 10 tokens: 4·s·heads·d = 320 FLOPs a token each way, half of it causal."""
    model = models.described(
        key="x", name="x", layers=1, hidden=8, heads=2, kv_heads=2, head_dim=4, ffn=8, vocab=10
    )
    assert flops.attention_flops_per_token(model, 10, causal=0) == 320
    assert flops.attention_flops_per_token(model, 10, causal=1) == 160


def test_a_next_tokens_attention_counted_by_hand():
    """Llama 3 8B, 32 layers of 32 heads of 128: 4·32·128 FLOPs for each layer and token before. DeepSeek-V3
    with its up-projections absorbed: 61 layers of 128 heads that read 512 + 64 values and add 512."""
    llama, deepseek = catalog.model("llama3-8b"), catalog.model("deepseek-v3")
    assert flops.next_token_attention_flops(llama, 8192.0) == 32 * 4 * 32 * 128 * 8192
    assert flops.next_token_attention_flops(deepseek, 8192.0) == 61 * 2 * 128 * (576 + 512) * 8192
    gemma = catalog.model("gemma3-27b")  # 52 of 62 layers see 1,024 tokens
    seen = 10 * 8192 + 52 * 1024
    assert flops.next_token_attention_flops(gemma, 8192.0) == 4 * 32 * 128 * seen


def test_deepseek_v4_needs_27_percent_of_the_flops_of_v32_at_a_million_tokens():
    """DeepSeek-V4's report, section 1: a token of V4-Pro after 2^20 others takes 27 % of V3.2's FLOPs."""
    token = {}
    for key in ("deepseek-v4-pro", "deepseek-v3.2"):
        model = catalog.model(key)
        token[key] = 2 * model.active_params + flops.next_token_attention_flops(model, 2.0**20)
    assert token["deepseek-v4-pro"] / token["deepseek-v3.2"] == pytest.approx(0.27, abs=0.01)


def test_window_counted_by_hand():
    """Window 4 of 10 tokens: on average 4 − 16/20 = 3.2 tokens are seen (1, 2, 3, 4, 4, … less half a token
    each)."""
    model = models.described(
        key="x",
        name="x",
        layers=1,
        hidden=8,
        heads=1,
        kv_heads=1,
        head_dim=1,
        ffn=8,
        vocab=10,
        window=4,
        windowed_layers=1,
    )
    assert flops.attention_flops_per_token(model, 10, causal=1) == pytest.approx(4 * 3.2)
    assert flops.attention_flops_per_token(model, 10, causal=0) == 16
    assert flops.attention_flops_per_token(model, 3, causal=0) == 12
    chunked = models.resized(
        model, chunked=True
    )  # chunks of 4: a token sees two on average, as it would alone in a chunk
    assert flops.attention_flops_per_token(chunked, 40, causal=1) == 4 * 2
    assert flops.attention_flops_per_token(chunked, 4, 1) == flops.attention_flops_per_token(model, 4, 1)


@pytest.mark.parametrize("key", ["llama3-70b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3", "qwen2.5-72b"])
def test_matmul_parameters_are_the_active_ones_without_lookups_and_vectors(key):
    model = catalog.model(key)
    without_lookup = models.active_parameters(model) - models.embedding_parameters(model)
    matrices = without_lookup + model.tied * model.vocab * model.hidden
    assert flops.matmul_parameters(model) == pytest.approx(matrices, rel=3e-4)


# -- as the papers print it ----------------------------------------------------------------------------------
def palm_flops_per_token(params, layers, heads, head_dim, seq):
    """6·N + 12·L·H·Q·T, attention not causal: the convention of PaLM (arXiv:2204.02311 appendix B) and
    llm-foundry."""
    return 6 * params + 12 * layers * heads * head_dim * seq


def megatron_model_flops(batch, seq, layers, hidden, vocab):
    """72·B·s·L·h²·(1 + s/6h + V/12Lh), a step's model FLOPs (arXiv:2205.05198 appendix A), attention not
    causal."""
    return 72 * batch * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (12 * layers * hidden))


def megatron_full_recompute_flops(batch, seq, layers, hidden, vocab):
    """96·B·s·L·h²·(1 + s/6h + V/16Lh), a step with full recompute: the TFLOP/s of arXiv:2104.04473 count
    this."""
    return 96 * batch * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))


def megatron_selective_flops(batch, seq, layers, hidden, vocab):
    """72·B·s·L·h²·(1 + s/3h + V/12Lh), a step with selective recompute as arXiv:2205.05198 appendix A prints
    it.

    It adds the attention's 12·B·s²·h·L a second time; one forward pass of it is a third of that, which is
    what ``hardware_flops_per_token`` adds. The paper's HFU counts it so.
    """
    return 72 * batch * seq * layers * hidden**2 * (1 + seq / (3 * hidden) + vocab / (12 * layers * hidden))


@given(st.integers(1, 130), st.integers(1, 100), st.integers(1, 4096))
def test_our_count_is_megatrons_formula(layers, heads, seq):
    """arXiv:2104.04473 section 5.1 and arXiv:2205.05198 appendix A, attention not causal."""
    h, v = 128 * heads, 51200
    model = dense_gpt(layers, h, heads)
    per_token = dict(batch=1, seq=seq, layers=layers, hidden=h, vocab=v)
    ours = seq * flops.training_flops_per_token(model, seq, causal=0)
    ours_with_recompute = seq * flops.hardware_flops_per_token(model, seq, causal=0, recompute=FULL)
    assert ours == pytest.approx(megatron_model_flops(**per_token))
    assert ours_with_recompute == pytest.approx(megatron_full_recompute_flops(**per_token))


# arXiv:2205.05198 Table 5: batch, layers, width, model and hardware FLOPs of a step, seconds, GPUs, MFU and
# HFU in %
KORTHIKANTI_TABLE_5 = [
    (4, 48, 6144, 1.1436e15, 1.2029e15, 1.10, 8, 41.5, 43.7),
    (64, 96, 12288, 1.4109e17, 1.4489e17, 13.75, 64, 51.4, 52.8),
    (280, 105, 20480, 1.8522e18, 1.8825e18, 37.83, 280, 56.0, 57.0),
]


@pytest.mark.parametrize(
    ("batch", "layers", "hidden", "model_flops", "hardware_flops", "step_s", "gpus", "mfu", "hfu"),
    KORTHIKANTI_TABLE_5,
)
def test_korthikanti_table_5(batch, layers, hidden, model_flops, hardware_flops, step_s, gpus, mfu, hfu):
    shape = dict(batch=batch, seq=2048, layers=layers, hidden=hidden, vocab=51200)
    assert megatron_model_flops(**shape) == pytest.approx(model_flops, rel=2e-3)
    assert megatron_selective_flops(**shape) == pytest.approx(hardware_flops, rel=2e-3)
    assert 100 * flops.mfu(megatron_model_flops(**shape), step_s, gpus, 312e12) == pytest.approx(mfu, abs=0.4)
    assert 100 * flops.hfu(megatron_selective_flops(**shape), step_s, gpus, 312e12) == pytest.approx(
        hfu, abs=0.4
    )


def test_selective_recompute_adds_one_forward_pass_of_attention():
    model = dense_gpt(96, 12288, 96)
    extra = flops.hardware_flops_per_token(model, 2048, 0, SELECTIVE) - flops.training_flops_per_token(
        model, 2048, 0
    )
    assert extra == pytest.approx(4 * 2048 * 12288 * 96)


def test_palm_convention_is_ours_without_causality_up_to_embeddings():
    model = catalog.model("llama3.1-405b")
    palm = palm_flops_per_token(models.parameters(model), 126, 128, 128, 8192)
    assert flops.training_flops_per_token(model, 8192, causal=0) == pytest.approx(palm, rel=0.01)


def test_deepseek_v3_gpu_hours_a_trillion_tokens():
    """180,000 H800 hours (arXiv:2412.19437 section 1): at 4k context an MFU of a third to two fifths of bf16
    peak."""
    per_token = flops.training_flops_per_token(catalog.model("deepseek-v3"), 4096)
    at_full = flops.gpu_hours(1e12 * per_token, H100, 1)
    assert 0.3 < at_full / 180e3 < 0.45


@given(any_model, seqs, st.integers(0, 2), st.integers(0, 1))
def test_counts_are_finite_and_ordered(model, seq, recompute, causal):
    forward = flops.forward_flops_per_token(model, seq, causal)
    training = flops.training_flops_per_token(model, seq, causal)
    hardware = flops.hardware_flops_per_token(model, seq, causal, recompute)
    assert 0 < forward < training <= hardware <= training + forward
    assert np.isfinite(hardware)
    assert flops.attention_flops_per_token(model, seq, 1) <= flops.attention_flops_per_token(model, seq, 0)
    longer = flops.attention_flops_per_token(model, seq + 1, causal)
    assert longer >= flops.attention_flops_per_token(model, seq, causal)


# -- time and utilisation ------------------------------------------------------------------------------------
@given(sizes, tokens, st.integers(1, 10**6), st.floats(0.01, 1))
def test_time_and_mfu_undo_each_other(params, count, gpus, mfu):
    total = flops.training_flops(params, count)
    assert flops.mfu(total, flops.run_time_s(total, gpus, H100, mfu), gpus, H100) == pytest.approx(mfu)
    assert flops.run_time_s(total, gpus, H100, mfu) * gpus / 3600 == pytest.approx(
        flops.gpu_hours(total, H100, mfu)
    )


@given(st.floats(1, 1e9), st.integers(1, 10**6), st.floats(0.01, 1))
def test_flops_in_a_time_take_that_time(time_s, gpus, mfu):
    assert flops.run_time_s(flops.flops_in_time(time_s, gpus, H100, mfu), gpus, H100, mfu) == pytest.approx(
        time_s
    )


@given(st.floats(1e15, 1e27), st.floats(1, 1000))
def test_a_compute_optimal_model_spends_the_whole_budget(budget, ratio):
    params = flops.compute_optimal_params(budget, ratio)
    assert flops.training_flops(params, ratio * params) == pytest.approx(budget)


def test_chinchilla_is_compute_optimal():
    """70B on 1.4T tokens, 5.76e23 FLOPs (arXiv:2203.15556 section 4 and Table A9)."""
    assert flops.compute_optimal_params(5.76e23) == pytest.approx(70e9, rel=0.02)


def test_arrays_give_what_single_numbers_give():
    sweep = np.array([1e9, 7e9, 70e9])[:, None], np.array([1, 8, 64])
    whole = flops.run_time_s(flops.training_flops(sweep[0], 1e12), sweep[1], H100, 0.4)
    assert whole.shape == (3, 3)
    assert whole[1, 2] == flops.run_time_s(flops.training_flops(7e9, 1e12), 64, H100, 0.4)


@in_one_test(
    "call, complaint",
    [
        (lambda: flops.training_flops(-1, 10), ("params", "0", "-1")),
        (lambda: flops.training_flops(1, float("inf")), ("tokens", "finite", "inf")),
        (lambda: flops.run_time_s(1e15, 0, H100), ("gpus", "0", "0")),
        (lambda: flops.run_time_s(1e15, 1, H100, 40), ("mfu", "0", "1", "40")),
        (lambda: flops.mfu(1e15, 0, 1, H100), ("time_s", "0")),
        (lambda: flops.hfu(0, 1, 1, H100), ("hardware_flops", "0")),
        (lambda: flops.attention_flops_per_token(catalog.model("gpt2"), 1.5), ("seq",)),
    ],
)
def test_bad_input_is_named(call, complaint):
    with refused(*complaint):
        call()
