"""Serving: floors, limits and what makes decoding slow."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.catalog.hardware import PRECISIONS
from engine.catalog.models import resized
from engine.mechanism import matmul
from engine.mechanism.interconnect import all_reduce_s
from engine.mechanism.memory import BYTES_PER_VALUE
from engine.mechanism.shape import shape
from engine.serving import inference
from engine.serving.inference import (
    ALGORITHMS,
    Serving,
    decode_step,
    experts_touched,
    infer,
    largest_batch,
    prefill,
    reduce_s,
    weight_bytes_per_gpu,
)
from engine.step import layout
from engine.step.layout import machine
from tests.cases import in_one_test
from tests.said import refused

SLOW = [HealthCheck.too_slow]  # a busy machine is no failure
H100, A100 = machine(catalog.gpu("h100-sxm")), machine(catalog.gpu("a100-80"))
LLAMA8, LLAMA70 = catalog.model("llama3-8b"), catalog.model("llama3-70b")
DSV3, MIXTRAL = catalog.model("deepseek-v3"), catalog.model("mixtral-8x7b")


@st.composite
def servings(draw):
    model = draw(st.sampled_from(list(catalog.all_models().values())))
    gpu = draw(st.sampled_from(list(catalog.all_gpus().values())))
    precision = draw(st.sampled_from([p for p in PRECISIONS if getattr(gpu, f"{p}_flops_per_s")]))
    at = machine(gpu, precision)
    alone = model.kv_heads == 1 and at.wires.torus.axes > 0  # refused on several TPUs
    tp = draw(st.sampled_from([1] if alone else [t for t in range(1, 65) if model.heads % t == 0]))
    serving = Serving(
        tp,
        draw(st.integers(1, 10_000)),
        draw(st.integers(1, 200_000)),
        draw(st.integers(1, 10_000)),
        draw(st.sampled_from(list(BYTES_PER_VALUE))),
        draw(st.sampled_from(ALGORITHMS)),
        draw(st.sampled_from([None, *BYTES_PER_VALUE])),
    )
    return model, at, serving


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(servings())
def test_any_serving_is_finite_and_adds_up(case):
    result = infer(*case).as_dict()
    json.dumps(result, allow_nan=False)
    for parts, total in (("prefill_time_s", "ttft_s"), ("decode_time_s", "time_per_output_token_s")):
        assert all(math.isfinite(v) and v >= 0 for v in result[parts].values())
        assert sum(result[parts].values()) == pytest.approx(result[total])
    assert result["ttft_one_request_s"] <= result["ttft_s"] * (1 + 1e-9)
    assert result["largest_batch"] >= 0 and result["fits"] == (case[2].batch <= result["largest_batch"])


def test_a_decode_step_is_never_faster_than_reading_the_weights():
    for tp in (1, 2, 4, 8):
        floor = (
            (LLAMA70.published_params - LLAMA70.vocab * LLAMA70.hidden) * 2 / tp / H100.gpu.hbm_bytes_per_s
        )
        assert decode_step(LLAMA70, H100, tp, 1, 1000).total_s > floor


def test_the_batch_rides_along_until_arithmetic_binds():
    alone, many, full = (decode_step(LLAMA70, H100, 8, batch, 1).weights_s for batch in (1, 64, 2048))
    assert many < 1.1 * alone and full > 3 * alone


def test_caches_by_hand():
    many, few = (decode_step(LLAMA8, A100, 1, 16, context).attention_s for context in (100_000, 50_000))
    each_s = (many - few) / 50_000  # of one more token in each of 16 caches
    assert each_s == pytest.approx(16 * 131072 / A100.chip.decode.memory_bytes_per_s, rel=0.02)
    assert decode_step(LLAMA8, A100, 1, 16, 0).attention_s > 32 * A100.chip.decode.launch_s
    assert infer(LLAMA70, H100, Serving(8)).kv_bytes_per_token == 327680
    assert infer(DSV3, H100, Serving(8)).kv_bytes_per_token == 70272
    assert infer(LLAMA70, H100, Serving(8, kv_precision="fp8")).kv_bytes_per_token == 163840


def test_tensor_ranks_beyond_the_kv_heads_hold_copies():
    eight, sixteen = (decode_step(LLAMA70, H100, tp, 64, 8192).attention_s for tp in (8, 16))
    assert sixteen == pytest.approx(eight, rel=0.01)  # the same cache; half the query heads' arithmetic
    one, two = (decode_step(DSV3, H100, tp, 64, 8192).attention_s for tp in (2, 4))
    assert one == pytest.approx(two, rel=0.002)  # a latent cache is never divided; 64 heads fill one tile
    assert decode_step(DSV3, H100, 1, 64, 8192).attention_s > 1.2 * one


def test_a_cache_that_each_query_head_reads_for_itself_is_read_as_often():
    """Eight query heads for each of Llama's keys: as if each had its own, eight times as large."""
    alone = Serving(8, 64, 2048, 256, shares_reads=False)
    apart = inference.infer(LLAMA70, H100, alone).decode
    of_own = inference.infer(resized(LLAMA70, kv_heads=64), H100, replace(alone, shares_reads=True)).decode
    together = inference.infer(LLAMA70, H100, replace(alone, shares_reads=True)).decode
    assert apart.attention_s == of_own.attention_s > 4 * together.attention_s
    assert apart.weights_s == together.weights_s


def test_nccl_is_what_nccl_itself_would_choose():
    wires = H100.wires
    for size in (1e4, 1e6, 1e8):
        assert reduce_s(size, 8.0, "nccl", wires) == all_reduce_s(size, 8.0, 8.0, wires)
        assert reduce_s(size, 8.0, "auto", wires) <= reduce_s(size, 8.0, "nccl", wires)


def test_a_server_multiplies_at_its_own_clocks_in_each_of_its_products():
    at, rows = H100.chip, 65536.0
    faster = at.served.product.flops_per_s / at.product.flops_per_s
    as_training = replace(
        at, served=matmul.ServingKernels(at.product, at.wide, at.experts, at.served.attention)
    )
    for model in (LLAMA70, MIXTRAL):
        size = shape(model)
        slow, fast = (inference.products_s(size, rows, 8.0, 2.0, chip) for chip in (as_training, at))
        assert 1.05 < slow / fast < 1.02 * faster
    assert inference.head_s(size, rows, 8.0, at) < inference.head_s(size, rows, 8.0, as_training)


def test_ring_latency_makes_eight_slower_than_four():
    """Small model, one sequence, a fast chip: what eight GPUs save in weights they lose in messages; not in
    one hop."""
    small = catalog.model("llama3.2-1b")
    four, eight = (decode_step(small, H100, tp, 1, 100, all_reduce="ring").total_s for tp in (4, 8))
    assert eight > four
    four, eight = (decode_step(LLAMA70, H100, tp, 1, 100, all_reduce="one_shot").total_s for tp in (4, 8))
    assert eight < four


def test_weights_alone_can_be_too_much():
    assert largest_batch(LLAMA70, H100, Serving(1)) == 0
    assert largest_batch(LLAMA70, H100, Serving(1, weight_precision="int4")) > 0
    assert weight_bytes_per_gpu(LLAMA70, H100, 1, "int4") < 0.3 * weight_bytes_per_gpu(LLAMA70, H100, 1)


def test_narrower_weights_are_read_faster():
    wide, narrow = (
        decode_step(LLAMA70, H100, 4, 1, 100, weight_precision=p).weights_s for p in (None, "int4")
    )
    assert narrow < 0.35 * wide


def test_what_norms_and_activations_move_by_hand():
    """DeepSeek-V3, each further token: 16h, 4 bytes of 128 queries and 128 keys of 192, and 6 of the MLP's
    width: 18,432 in 3 of 61 layers, a shared expert of 2,048 in 58. The last two are cut over 8 ranks. Routed
    experts come with what is around them."""
    size, chip = shape(DSV3), H100.chip
    width = (3 * 18432 + 58 * 2048) / 61
    moved = 16 * 7168 + (4 * 256 * 192 + 6 * width) / 8
    further_s = inference.other_s(size, 2e6, 8.0, chip) - inference.other_s(size, 1e6, 8.0, chip)
    assert further_s == pytest.approx(61 * 1e6 * moved / chip.memory_bytes_per_s)


def test_a_latent_cache_is_whole_on_each_rank_and_heads_are_shared_out():
    assert [inference.kv_shards(shape(DSV3), tp) for tp in (1.0, 2.0, 8.0)] == [1, 1, 1]
    assert [inference.kv_shards(shape(LLAMA70), tp) for tp in (1.0, 2.0, 8.0, 16.0)] == [1, 2, 8, 8]


def test_how_many_experts_a_batch_touches():
    assert experts_touched(8.0, 2.0, 1.0) == pytest.approx(2)
    assert experts_touched(256.0, 8.0, 1e6) == pytest.approx(256)
    few, many = (decode_step(MIXTRAL, H100, 1, batch, 1).weights_s for batch in (1, 64))
    assert many > 2.5 * few  # 2 of 8 experts read, then all


def test_prefill_is_bound_by_arithmetic():
    time = prefill(LLAMA70, H100, 8, 1, 8192)
    flops = 2 * 69.5e9 * 8192 / 8
    assert flops / H100.gpu.bf16_flops_per_s < time.weights_s < 2 * flops / H100.gpu.bf16_flops_per_s


@in_one_test(
    "call, words",
    [
        (lambda: infer(LLAMA70, H100, Serving(tp=7)), ("tp", "64 attention heads", "7", "4", "8")),
        (lambda: Serving(batch=0), ("batch", "1", "0")),
        (lambda: Serving(prompt=-5), ("prompt",)),
        (lambda: Serving(kv_precision="fp3"), ("kv_precision", "fp32")),
        (lambda: Serving(weight_precision="int3"), ("weight_precision", "one of")),
        (lambda: Serving(all_reduce="gossip"), ("all_reduce", "auto, ring, tree, nvls, one_shot")),
        (lambda: decode_step(LLAMA8, H100, 1, 1, -1), ("context", "0")),
        (lambda: prefill(LLAMA8, H100, 0, 1, 1), ("tp",)),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()


# -- whole experts on tensor ranks ---------------------------------------------------------------------------
def test_the_busiest_rank_is_as_busy_as_when_tokens_are_dealt_out():
    """128 experts of which each of 8 to 256 tokens takes 8, dealt to 8 ranks: the mean of the fullest."""
    lot = np.random.default_rng(1)
    for tokens in (8, 16, 64, 256):
        fullest = []
        for _ in range(200):
            chosen = {int(one) for _ in range(tokens) for one in lot.choice(128, 8, replace=False)}
            fullest.append(max(sum(one // 16 == rank for one in chosen) for rank in range(8)))
        said = inference.busiest_touched(128.0, 8.0, float(tokens), 8.0)
        assert said == pytest.approx(np.mean(fullest), rel=0.06), tokens


def test_all_experts_are_in_use_on_every_rank_where_there_are_many_tokens():
    assert inference.busiest_touched(128.0, 8.0, 4096.0, 8.0) == pytest.approx(16.0)


def test_whole_experts_wait_for_the_busiest_rank():
    """With few tokens one rank has more than its part; cut over all ranks, each reads the same."""
    model, at = catalog.model("qwen3-235b-a22b"), machine(catalog.gpu("h100-sxm"))
    few_whole, few_cut = (inference.decode_step(model, at, 8, 8, 500, ep=ep).total_s for ep in (8, 1))
    assert few_whole > 1.1 * few_cut
    with pytest.raises(ValueError, match="ep must be 1 or the 8 tensor ranks, got 4"):
        inference.Serving(tp=8, ep=4)


def test_a_multi_query_model_on_several_tpus_is_refused_in_words():
    """Pope et al. split its cache over the batch and gathered weights for prompts; cut in one dimension, with
    the key head on each chip, PaLM 62B would take 1.4 to 2.2 times as long as they measured."""
    palm, llama = catalog.model("palm-62b"), catalog.model("llama3-70b")
    v4, h100 = (layout.machine(catalog.gpu(key)) for key in ("tpu-v4", "h100-sxm"))
    with pytest.raises(ValueError, match=r"tp must be 1 for PaLM 62B on TPU v4, got 16: .* not modelled"):
        inference.infer(palm, v4, Serving(tp=16, batch=32, prompt=2048, output=64))
    for model, at in ((palm, h100), (llama, v4)):
        assert inference.infer(model, at, Serving(tp=8, batch=32)).decode.total_s > 0
    assert inference.infer(palm, v4, Serving(tp=16, batch=1)).prefill.total_s > 0
