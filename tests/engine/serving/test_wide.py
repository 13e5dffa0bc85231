"""Experts over many GPUs: by hand, against DeepEP's kernels and against what was served."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.calibration import exchange, known
from engine.mechanism import experts
from engine.mechanism.shape import shape
from engine.serving import inference, replica, wide
from engine.step import layout
from engine.step.step import COPYING_SLOWS
from tests.said import refused

V3 = catalog.model("deepseek-v3")
SIZE = shape(V3)
H100, H800 = (layout.machine(catalog.gpu(key), "fp8") for key in ("h100-sxm", "h800"))


# -- by hand -------------------------------------------------------------------------------------------------
def test_a_gpu_of_32_holds_eight_experts_and_all_the_rest():
    """58 layers · 8 experts · 3 · 7,168 · 2,048 bytes; 17.1 G of other weights, 1.85 of them in 16 bits."""
    experts_bytes = 58 * 8 * 3 * 7168 * 2048
    embeddings = 2 * 129280 * 7168
    others = V3_PARAMETERS - 58 * 256 * 3 * 7168 * 2048 - embeddings
    found = wide.weight_bytes_per_gpu(V3, H100, 1, 32)
    assert found == pytest.approx(experts_bytes + others + 2 * embeddings, rel=1e-6)
    assert found == pytest.approx(39.3e9, rel=0.01)


V3_PARAMETERS = float(SIZE.total_params)


@pytest.mark.parametrize(("gpus", "held"), [(32, 8), (72, 4), (144, 2), (96, 3), (256, 1)])
def test_where_experts_do_not_divide_there_is_room_for_copies(gpus, held):
    """DeepSeek decodes on 144 GPUs with 288 places for 256 experts, two a GPU."""
    assert wide.held_experts(SIZE.routed[0], gpus) == held


def test_halves_hide_the_wires_of_one_behind_the_work_of_the_other():
    batch = wide.Batch(SIZE, 16384.0, 0.1, 1.0, 32.0, True, 1.0, H100.chip, H100.wires)
    half = wide.step(batch._replace(rows=8192.0, attention_s=0.05))
    hidden_s = min(half.work_s, half.wires_s) * (1 - COPYING_SLOWS)
    assert wide.chosen(batch).total_s == pytest.approx(2 * (half.work_s + half.wires_s - hidden_s))
    assert wide.chosen(batch).total_s < wide.step(batch).total_s


def test_a_small_batch_is_not_halved():
    """SGLang's blog: at 32 tokens a GPU, halves are slower by 27 %."""
    batch = wide.Batch(SIZE, 32.0, 1e-3, 1.0, 72.0, False, 1.0, H100.chip, H100.wires)
    assert wide.chosen(batch).total_s == wide.step(batch).total_s


@given(st.sampled_from([8, 16, 32, 64]), st.integers(1, 512), st.integers(128, 32768))
def test_more_takes_longer(dp, batch, context):
    found = wide.decode_s(V3, H100, 1, dp, batch, context)
    assert wide.decode_s(V3, H100, 1, dp, batch + 16, context) > found
    assert wide.decode_s(V3, H100, 1, dp, batch, context + 1024) > found


def test_as_many_gpus_as_experts_have_one_each_and_more_have_none():
    """Nodes of eight: Mixtral's eight experts are on one node, and DeepSeek-V3's 256 on up to 16 nodes."""
    spread = {key: replica.spread(catalog.model(key), H100) for key in ("mixtral-8x7b", "deepseek-v3")}
    assert [one.dp for one in spread["mixtral-8x7b"]] == [8]
    assert [one.dp for one in spread["deepseek-v3"]] == [8, 16, 32, 64, 128]
    assert replica.spread(catalog.model("llama3-8b"), H100) == []


def test_a_dense_model_has_nothing_to_spread():
    with refused("model", "experts", "llama3-70b"):
        wide.decode_s(catalog.model("llama3-70b"), H100, 1, 8, 16, 1024)


# -- the price of tokens between expert ranks ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("gpus", "there_s", "back_s"),
    [
        (8, 77e-6, 114e-6),
        (16, 118e-6, 195e-6),
        (32, 155e-6, 273e-6),
        (64, 173e-6, 314e-6),
        (128, 192e-6, 369e-6),
        (256, 194e-6, 360e-6),
    ],
)
def test_deepep_s_kernels_of_low_latency(gpus, there_s, back_s):
    """DeepEP's README (deepseek-ai/DeepEP, February 2025): H800 with a card of 400 Gb/s each, 128 tokens of
    7,168, 8 experts of 256, 8 bits there and 16 back. Nothing of ours was fitted to it."""
    found_s = wide.exchange_s(SIZE, SIZE.routed[0], 128.0, float(gpus), False, 1.0, H800.wires)
    assert found_s == pytest.approx(there_s + back_s, rel=0.14)


@pytest.mark.parametrize(
    ("tokens", "allowed"), [(16, 0.2), (32, 0.2), (64, 0.15), (128, 0.2), (256, 0.25), (512, 0.25)]
)
def test_inside_a_node_it_is_what_was_fitted_to_measured_kernels(tokens, allowed):
    """``calibration.exchange.rows_s`` is the fit to some thousand measurements inside one box, and has no
    network; serving asks ``experts.exchange_s`` everywhere, so the two must agree where both speak."""
    sent = experts.copies(8.0, 256.0, 8.0, 8.0, 1.0, False)
    fitted_s = sum(
        exchange.rows_s(tokens * sent.link, 7168.0, known.known(kind, key, "h100-sxm").rates)
        for kind, key in (("dispatch", "low_latency"), ("combine", "low_latency.combine"))
    )
    found_s = wide.exchange_s(SIZE, SIZE.routed[0], float(tokens), 8.0, False, 1.0, H100.wires)
    assert found_s == pytest.approx(fitted_s, rel=allowed)


# -- served --------------------------------------------------------------------------------------------------
# SGLang on 96 H100s ("Deploying DeepSeek with PD disaggregation and large-scale expert parallelism", LMSYS,
# May 2025): tokens a second and node. Its balancer leaves some imbalance.
@pytest.mark.parametrize(("prompt", "per_node"), [(1024, 57_674), (2048, 54_543), (4096, 50_302)])
def test_sglang_s_prefill_on_32_h100(prompt, per_node):
    found = 8 * 16384 / wide.prefill_s(V3, H100, 1, 32, 16384, prompt)
    assert found == pytest.approx(per_node, rel=0.09)  # too fast by most where most time is multiplied


def test_sglang_s_prefill_without_overlap():
    """Halves bring 27 to 35 % at 8,192 tokens."""
    attention_s = inference.prompt_attention_s(SIZE, 2.0, 4096.0, 1.0, H100.chip)
    batch = wide.Batch(SIZE, 8192.0, attention_s, 1.0, 32.0, True, 1.0, H100.chip, H100.wires)
    assert 1.25 < wide.step(batch).total_s / wide.chosen(batch).total_s < 1.37


def test_sglang_s_decode_on_72_h100():
    """256 sequences a GPU that have 2,000 tokens: 22,282 a second and node; 25.5 % less without overlap."""
    found_s = wide.decode_s(V3, H100, 1, 72, 256, 2000)
    assert 8 * 256 / found_s == pytest.approx(22_282, rel=0.05)
    attention_s = inference.attention_s(SIZE, 256.0, 2000.0, 1.0, 2.0, H100.chip)
    plain = wide.step(wide.Batch(SIZE, 256.0, attention_s, 1.0, 72.0, False, 1.0, H100.chip, H100.wires))
    assert 8 * 256 / plain.total_s == pytest.approx(22_310 / 1.255, rel=0.1)


def test_deepseek_s_own_profile_and_a_day_of_its_service():
    """Balanced by construction, 62,713 tokens a second and node (deepseek-ai/profile-data: 16k tokens a GPU,
    prompts of 4k; the rate is that of SGLang's blog). A day's mean of decoding on 18 nodes, with 4,989 tokens
    in the caches and, as the blog has it, 128 answers a GPU: 14.8k (inference system overview)."""
    balanced_s = wide.prefill_s(V3, H800, 1, 32, 16384, 4096, imbalance=1.0)
    assert 8 * 16384 / balanced_s == pytest.approx(62_713, rel=0.15)
    assert 8 * 128 / wide.decode_s(V3, H800, 1, 144, 128, 4989) == pytest.approx(14_800, rel=0.05)


def test_8_bits_on_the_wire_are_those_of_the_products():
    wider = replace(H100, chip=layout.machine(catalog.gpu("h100-sxm"), "bf16").chip)
    assert wide.decode_s(V3, wider, 1, 72, 256, 2000) > 1.2 * wide.decode_s(V3, H100, 1, 72, 256, 2000)
