"""Memory: ZeRO's Table 1, Korthikanti's formulas and figure, hand-worked sizes, and what must always hold."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine import catalog
from engine.catalog import models
from engine.mechanism import memory
from tests.cases import in_one_test
from tests.conftest import ROOT
from tests.said import refused

GB, GIB = 1e9, 2.0**30
GPT3 = catalog.model("gpt3-175b")
H100 = catalog.gpu("h100-sxm")
GPTS = {"22B": "megatron-22b", "175B": "gpt3-175b", "530B": "mt-nlg-530b", "1T": "megatron-1008b"}

sizes = st.floats(1e6, 1e13)
ranks = st.integers(1, 10**5)
recipes = st.sampled_from(list(catalog.uniform_recipes().values()))
any_model = st.sampled_from(list(catalog.all_models().values()))


# -- training state ------------------------------------------------------------------------------------------
def test_70b_needs_1120_gb_which_is_14_h100():
    state = memory.state_bytes(70e9)
    assert state == 1120 * GB
    assert memory.against_hbm(state, H100) == 14
    assert memory.minimum_gpus(state, H100) == 14


def test_13b_needs_208_gb_so_three_h100():
    assert memory.state_bytes(13e9) == 208 * GB
    assert memory.minimum_gpus(memory.state_bytes(13e9), H100) == 3


def test_7b_trains_on_no_a100_but_serves_on_a_24_gb_card():
    state = memory.state_bytes(7e9, catalog.recipe("fp32-adam"))
    assert state == 112 * GB and memory.against_hbm(state, catalog.gpu("a100-80")) > 1
    weights = memory.weight_bytes(7e9, memory.BYTES_PER_VALUE["fp16"])
    assert weights == 14 * GB and memory.against_hbm(weights, catalog.gpu("rtx4090")) < 1


def test_slabs_stand_in_order():
    assert np.allclose(memory.state_slabs(1e9) / GB, [2, 2, 4, 4, 4])
    assert np.allclose(memory.state_slabs(1e9, catalog.recipe("fp32-adam")) / GB, [4, 4, 0, 4, 4])


# ZeRO, arXiv:1910.02054 Table 1: GB a GPU at 16 bytes; rows: ranks; columns: stage 1, 2, 3
ZERO_TABLE_1 = {
    7.5e9: {
        1: (120, 120, 120),
        4: (52.5, 41.3, 30),
        16: (35.6, 21.6, 7.5),
        64: (31.4, 16.6, 1.88),
        256: (30.4, 15.4, 0.47),
        1024: (30.1, 15.1, 0.12),
    },
    128e9: {
        1: (2048, 2048, 2048),
        4: (896, 704, 512),
        16: (608, 368, 128),
        64: (536, 284, 32),
        256: (518, 263, 8),
        1024: (513, 257, 2),
    },
    1e12: {
        1: (16000, 16000, 16000),
        4: (7000, 5500, 4000),
        16: (4750, 2875, 1000),
        64: (4187, 2218, 250),
        256: (4046, 2054, 62.5),
        1024: (4011, 2013, 15.6),
    },
}


@pytest.mark.parametrize("params", ZERO_TABLE_1)
def test_zero_table_1(params):
    for dp, published in ZERO_TABLE_1[params].items():
        ours = memory.sharded_state_bytes(params, ranks=dp, stage=np.array([1, 2, 3])) / GB
        assert np.allclose(ours, published, rtol=0.01, atol=0.006)


@given(sizes, recipes, ranks, st.integers(0, 3))
def test_sharding_conserves_the_state(params, recipe, n, stage):
    """Stage 3 over n ranks holds the state once; one rank, or stage 0, is the whole state; stages only shrink
    it."""
    whole = memory.state_bytes(params, recipe)
    assert memory.sharded_state_bytes(params, recipe, n, 3) * n == pytest.approx(whole)
    assert memory.sharded_state_bytes(params, recipe, 1, stage) == pytest.approx(whole)
    assert memory.sharded_state_bytes(params, recipe, n, 0) == pytest.approx(whole)
    per_stage = memory.sharded_state_bytes(params, recipe, n, np.arange(4))
    assert (np.diff(per_stage) <= 1e-6 * whole).all()


@given(sizes, recipes)
def test_state_is_the_sum_of_its_slabs_and_linear(params, recipe):
    assert memory.state_bytes(params, recipe) == pytest.approx(params * recipe.bytes_per_param)
    assert memory.state_bytes(2 * params, recipe) == pytest.approx(2 * memory.state_bytes(params, recipe))


# -- activations ---------------------------------------------------------------------------------------------
def korthikanti(s, b, h, a, layers, t):
    """arXiv:2205.05198 Table 2, bytes of all layers, as printed."""
    scores = 5 * a * s / h
    return {
        "none": s * b * h * layers * (34 + scores),
        "tp": s * b * h * layers * (10 + 24 / t + scores / t),
        "tp_sp": s * b * h * layers / t * (34 + scores),
        "tp_selective": s * b * h * layers * (10 + 24 / t),
        "tp_sp_selective": 34 * s * b * h * layers / t,
        "full": 2 * s * b * h * layers,
    }


OPTIONS = {
    "none": dict(),
    "tp": dict(tensor=8),
    "tp_sp": dict(tensor=8, sequence_parallel=1),
    "tp_selective": dict(tensor=8, recompute=memory.SELECTIVE),
    "tp_sp_selective": dict(tensor=8, sequence_parallel=1, recompute=memory.SELECTIVE),
    "full": dict(tensor=8, recompute=memory.FULL),
}


@in_one_test("option", OPTIONS)
@in_one_test("size", GPTS)
def test_korthikanti_table_2(size, option):
    model = catalog.model(GPTS[size])
    ours = memory.activation_bytes(model, 2048, 4, flash=0, **OPTIONS[option])
    assert ours == pytest.approx(korthikanti(2048, 4, model.hidden, model.heads, model.depth, 8)[option])


# Figure 1 of the same paper as digitised for calculon: GiB a GPU; micro-batch, pipeline stages, chunks a
# stage
@pytest.mark.parametrize(
    ("size", "micro_batch", "stages", "chunks", "tp_gib", "sp_selective_gib"),
    [
        ("22B", 4, 1, 1, 59.25, 9.56),
        ("175B", 1, 8, 3, 66.84, 12.35),
        ("530B", 1, 35, 3, 114.02, 23.08),
        ("1T", 1, 64, 1, 131.25, 26.56),
    ],
)
def test_korthikanti_figure_1(size, micro_batch, stages, chunks, tp_gib, sp_selective_gib):
    model = catalog.model(GPTS[size])
    in_flight = memory.in_flight_micro_batches(stages, 1000 * stages, 0, chunks) / stages
    for option, published in (("tp", tp_gib), ("tp_sp_selective", sp_selective_gib)):
        layers = memory.activation_bytes(model, 2048, micro_batch, flash=0, **OPTIONS[option])
        assert layers * in_flight / GIB == pytest.approx(published, rel=0.005)


def test_the_slabs_of_a_gpt_layer_are_korthikantis_terms():
    """Section 4.1: inputs, norms and dropout masks 10sbh; attention 8sbh, MLP 16sbh, both split; scores
    5as²b."""
    sbh = 2048 * 12288
    assert memory.layer_activation_slabs(GPT3, 2048, 1, flash=0).tolist() == [
        10 * sbh,
        8 * sbh,
        16 * sbh,
        80 * sbh,
    ]
    assert memory.layer_activation_slabs(GPT3, 2048, 1, 8, flash=0).tolist() == [
        10 * sbh,
        sbh,
        2 * sbh,
        10 * sbh,
    ]
    assert memory.layer_activation_slabs(GPT3, 2048, 1, 8, sequence_parallel=1)[0] == 10 * sbh / 8
    assert memory.layer_activation_slabs(GPT3, 2048, 1, 8, 4, recompute=memory.FULL).tolist() == [
        2 * sbh / 4,
        0,
        0,
        0,
    ]


@in_one_test("key", ["gpt3-175b", "llama3.1-405b", "gpt2"])
@in_one_test("recompute", [0, 1, 2])
def test_the_slabs_of_a_layer_are_all_of_it(key, recompute):
    layout = (catalog.model(key), 4096, 2, 4, 2, 1, recompute, 0)
    assert np.sum(memory.layer_activation_slabs(*layout)) == pytest.approx(
        memory.layer_activation_bytes(*layout)
    )


def test_attention_scores_are_five_a_s_over_h():
    """Section 4.1: 5as/h is 80 for GPT-3 and 64 for MT-NLG, so selective recompute saves 70 % and 65 %."""
    for key, ratio, saved in (("gpt3-175b", 80, 0.70), ("mt-nlg-530b", 64, 0.65)):
        model = catalog.model(key)
        assert 5 * model.heads * 2048 / model.hidden == ratio
        whole, selective = (memory.activation_bytes(model, 2048, 1, flash=0, recompute=r) for r in (0, 1))
        assert 1 - selective / whole == pytest.approx(saved, abs=0.005)


def test_flash_attention_saves_what_selective_recompute_saves():
    assert memory.activation_bytes(GPT3, 2048, 1, flash=1) == memory.activation_bytes(
        GPT3, 2048, 1, flash=0, recompute=memory.SELECTIVE
    )


def test_llama_layer_counted_by_hand():
    """Llama 3 8B, a token: inputs and norms 8·4096; q and output 4·4096, k and v 4·1024; gate, up, product
    6·14336."""
    llama = catalog.model("llama3-8b")
    assert memory.layer_activation_bytes(llama, 1, 1) == 8 * 4096 + 4 * 4096 + 4 * 1024 + 6 * 14336


def test_mixtral_layer_counted_by_hand():
    """Two experts a token: as Llama with twice the MLP, and each routed copy in and out (4·4096 bytes)."""
    mixtral = catalog.model("mixtral-8x7b")
    expected = 8 * 4096 + 4 * 4096 + 4 * 1024 + 2 * (6 * 14336 + 4 * 4096)
    assert memory.layer_activation_bytes(mixtral, 1, 1) == expected
    assert memory.activation_bytes(mixtral, 1, 1) == 32 * expected


def test_rules_of_thumb_miss_by_more_than_two():
    formula = memory.activation_bytes(GPT3, 2048, 1, flash=1)
    rule = memory.rule_of_thumb_activation_bytes(GPT3.depth, GPT3.hidden, 2048, 1)
    assert formula / rule == pytest.approx(34 / 14)
    assert memory.rule_of_thumb_activation_bytes(GPT3.depth, GPT3.hidden, 2048, 1, 2) == pytest.approx(
        memory.activation_bytes(GPT3, 2048, 1, recompute=memory.FULL)
    )


def test_full_recompute_peaks_with_one_layer_rebuilt():
    peak = memory.peak_activation_bytes(GPT3, 2048, 1, recompute=memory.FULL)
    assert peak == pytest.approx(2 * 2048 * 12288 * 96 + 34 * 2048 * 12288)
    assert memory.peak_activation_bytes(GPT3, 2048, 1) == memory.activation_bytes(GPT3, 2048, 1)


layouts = st.fixed_dictionaries(
    dict(
        seq=st.integers(1, 10**6),
        micro_batch=st.integers(1, 64),
        tensor=st.integers(1, 64),
        context=st.integers(1, 64),
        sequence_parallel=st.integers(0, 1),
        recompute=st.integers(0, 2),
        flash=st.integers(0, 1),
    )
)


@given(any_model, layouts)
def test_activations_are_finite_positive_and_shrink_where_they_should(model, layout):
    bytes_here = memory.activation_bytes(model, **layout)
    assert np.isfinite(bytes_here) and bytes_here > 0
    for change in (
        dict(tensor=2 * layout["tensor"]),
        dict(context=2 * layout["context"]),
        dict(sequence_parallel=1),
        dict(flash=1),
        dict(recompute=min(2, layout["recompute"] + 1)),
    ):
        assert memory.activation_bytes(model, **{**layout, **change}) <= bytes_here * (1 + 1e-12)
    twice = dict(layout, micro_batch=2 * layout["micro_batch"])
    assert memory.activation_bytes(model, **twice) == pytest.approx(2 * bytes_here)
    assert memory.peak_activation_bytes(model, **layout) >= bytes_here


@given(any_model, layouts)
def test_no_parallelism_and_one_rank_of_it_are_the_same(model, layout):
    alone = dict(layout, tensor=1, context=1)
    assert memory.activation_bytes(model, **dict(alone, sequence_parallel=1)) == memory.activation_bytes(
        model, **dict(alone, sequence_parallel=0)
    )


def test_output_layer_is_korthikantis_formula():
    s, b, h, v, t = 2048, 1, 12288, 50257, 8
    assert memory.output_layer_bytes(GPT3, s, b, t) == pytest.approx(4 * s * b * h / t * (1 + v / h))


def test_logits_of_llama3_at_8k():
    """8,192 tokens × 128,256 words × 10 bytes: 10.5 GB for one sequence, more than a layer of an 8B model."""
    assert memory.logits_peak_bytes(catalog.model("llama3-8b"), 8192, 1) == pytest.approx(10.5e9, rel=0.01)


# -- against the machine ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("key", "mib", "gigabytes"),
    [
        ("a100-80", 81920, 85.9),
        ("h100-sxm", 81559, 85.5),
        ("h200", 143771, 150.8),
        ("a100-40", 40960, 42.9),
        ("b200", 183359, 192.3),
    ],
)
def test_what_fits_is_held_against_what_the_driver_reports(key, mib, gigabytes):
    gpu = catalog.gpu(key)
    assert gpu.reported_bytes == mib * 2**20 == pytest.approx(gigabytes * 1e9, rel=2e-3)
    assert memory.capacity_bytes(gpu) == mib * 2**20 - 0.7e9
    assert memory.card_bytes(gpu) == mib * 2**20
    assert memory.capacity_bytes(gpu) > gpu.hbm_bytes
    assert gpu.reported_source


def test_a_server_gets_about_what_vllm_takes():
    """0.9 of what the driver reports, its default; on GPUs of 80 to 192 GB."""
    for key in ("a100-80", "h100-sxm", "h200", "b200"):
        gpu = catalog.gpu(key)
        assert memory.server_bytes(gpu) == gpu.hbm_bytes - 2e9
        assert memory.server_bytes(gpu) == pytest.approx(0.9 * gpu.reported_bytes, rel=0.03)


def test_nobody_else_takes_the_framework_from_a_datasheet():
    """What a GPU has for a job is said in two functions; three modules once had the second by themselves."""
    own = re.compile(r"hbm_bytes\b[^\n]*-[^\n]*FRAMEWORK_BYTES")
    found = [
        path for folder in ("engine", "widgets", "lessons") for path in (ROOT / folder).rglob("*.[pm][yd]")
    ]
    assert [path.name for path in found if own.search(path.read_text(encoding="utf-8"))] == ["memory.py"]


def test_where_nobody_printed_it_the_datasheet_is_all_there_is():
    tpu = catalog.gpu("tpu-v5p")
    assert memory.capacity_bytes(tpu) == memory.card_bytes(tpu) == tpu.hbm_bytes == 95e9


def test_every_reported_size_is_near_the_datasheets():
    """A slip of a digit, or GiB for GB, would show."""
    for gpu in catalog.all_gpus().values():
        assert 0.96 <= memory.capacity_bytes(gpu) / gpu.hbm_bytes <= 1.08, gpu.key
        assert bool(gpu.reported_bytes) == bool(gpu.reported_source)


# -- micro-batches in flight ---------------------------------------------------------------------------------
@in_one_test(
    "stages, micro_batches, stage, interleave, expected",
    [
        (4, 100, 0, 1, 4),
        (4, 100, 3, 1, 1),
        (4, 2, 0, 1, 2),
        (1, 8, 0, 1, 1),
        (8, 96, 0, 3, 8 * (1 + 7 / 24)),
        (8, 96, 7, 3, (2 * 8 + 1) / 3),
        (8, 100, 0, 3, (14 + 2 * 9 + 1) / 3),  # twelve groups, the first of nine
        (8, 8, 0, 3, 8),
    ],
)
def test_micro_batches_in_flight(stages, micro_batches, stage, interleave, expected):
    assert memory.in_flight_micro_batches(stages, micro_batches, stage, interleave) == pytest.approx(expected)


def test_a_stage_that_does_not_exist_is_refused():
    with refused("stage", "last_stage (3)", "4"):
        memory.in_flight_micro_batches(4, 8, stage=4)


# -- serving -------------------------------------------------------------------------------------------------
@in_one_test(
    "key, bytes_per_value, expected",
    [
        ("opt-13b", 2, 819200),
        ("llama2-7b", 2, 524288),
        ("llama2-13b", 2, 819200),
        ("llama2-70b", 2, 327680),
        ("llama3-8b", 2, 131072),
        ("llama3-70b", 1, 163840),
        ("qwen2.5-72b", 2, 327680),
        ("deepseek-v3", 2, 70272),
    ],
)
def test_published_kv_bytes_per_token(key, bytes_per_value, expected):
    assert memory.kv_bytes_per_token(catalog.model(key), bytes_per_value) == expected


def test_a_32k_context_of_llama2_70b_is_10_gib():
    assert memory.kv_bytes(catalog.model("llama2-70b"), 32768) == 10 * GIB


def test_llama3_70b_weighs_131_gib():
    assert memory.weight_bytes(models.parameters(catalog.model("llama3-70b"))) / GIB == pytest.approx(
        131.42, abs=0.01
    )


def test_windows_cap_the_cache():
    mistral, gemma = catalog.model("mistral-7b"), catalog.model("gemma3-27b")
    full_window = 4096 * memory.kv_bytes_per_token(mistral)
    assert memory.kv_bytes(mistral, 10**5) == memory.kv_bytes(mistral, 4096) == full_window
    assert memory.kv_bytes(gemma, 10**5) == pytest.approx((10 * 10**5 + 52 * 1024) * 2 * 16 * 128 * 2)


@given(any_model, st.integers(0, 10**6), st.integers(0, 1000))
def test_cache_grows_with_context_and_never_beyond_the_plain_rate(model, context, sequences):
    here = memory.kv_bytes(model, context, sequences)
    states = sequences * model.state_bytes_per_sequence
    assert 0 <= here - states <= context * sequences * memory.kv_bytes_per_token(model) * (1 + 1e-12)
    assert memory.kv_bytes(model, context + 1, sequences) >= here


# -- against the machine -------------------------------------------------------------------------------------
@given(st.floats(1, 1e16), st.floats(0, 40e9))
def test_minimum_gpus_hold_it_and_one_fewer_does_not(total, reserved):
    n = memory.minimum_gpus(total, H100, reserved)
    room = H100.hbm_bytes - reserved
    assert n * room >= total * (1 - 1e-12) and (n - 1) * room < total


def test_the_opening_case():
    """64 H100s hold 5.1 TB, the state is 1.1 TB; but plain data parallelism wants all of it on each GPU."""
    state = memory.state_bytes(70e9)
    cluster = catalog.cluster("dgx-h100", 8)
    assert state < 0.25 * cluster.hbm_bytes
    assert memory.sharded_state_bytes(70e9, ranks=cluster.gpus, stage=0) > 13 * H100.hbm_bytes
    assert memory.sharded_state_bytes(70e9, ranks=cluster.gpus, stage=3) < 0.25 * H100.hbm_bytes


@in_one_test(
    "call, complaint",
    [
        (lambda: memory.state_bytes(0), ("params", "0", "0")),
        (lambda: memory.state_bytes(float("nan")), ("params", "finite")),
        (lambda: memory.sharded_state_bytes(1e9, ranks=2.5), ("ranks",)),
        (lambda: memory.sharded_state_bytes(1e9, stage=4), ("stage", "0", "3", "4")),
        (lambda: memory.activation_bytes(GPT3, 0, 1), ("seq", "1", "0")),
        (lambda: memory.activation_bytes(GPT3, 8, 1, recompute=3), ("recompute", "0", "2")),
        (lambda: memory.minimum_gpus(1e12, H100, 90e9), ("hbm_bytes_left", "0")),
        (lambda: memory.against_hbm(-1, H100), ("total_bytes", "0", "-1")),
    ],
)
def test_bad_input_is_named(call, complaint):
    with refused(*complaint):
        call()


def test_eight_nodes_of_eight_h100s_hold_5_12_tb():
    assert memory.cluster_bytes(catalog.gpu("h100-sxm"), 64) == 5.12e12
    with pytest.raises(ValueError, match="gpus"):
        memory.cluster_bytes(catalog.gpu("h100-sxm"), 0.5)


# -- what is kept in 8 bits, and what is not kept ------------------------------------------------------------
def test_products_that_keep_their_inputs_in_8_bits_halve_them_and_nothing_else():
    """A dense layer of Llama 3.1 405B, by hand: outputs of two norms and of the activation function take a
    byte less each, the attention's output, which the attention keeps in 16 bits, gets a copy in 8."""
    llama = catalog.model("llama3.1-405b")
    hidden, ffn = 16384, 53248
    wide, narrow = (sum(memory.layer_values(llama, 0, saves)) for saves in (False, True))
    assert wide == 8 * hidden + 2 * (hidden + 2 * 8 * 128) + 2 * hidden + 6 * ffn
    assert wide - narrow == 2 * hidden - hidden + ffn


def test_experts_in_8_bits_with_weights_taken_early_keep_a_quarter_of_their_copies():
    deepseek = catalog.model("deepseek-v3")
    hidden, rows, shared = 7168, 8 * 2048, 2048
    kept = memory.layer_values(deepseek, 1, True, True)
    assert kept.mlp == 4 * rows + 8 * hidden  # one byte for each of a token's eight copies
    assert memory.layer_values(deepseek, 1).mlp == 4 * rows + 8 * 4 * hidden
    assert kept.activated == rows and kept.norms == 3 * hidden  # the router's input stays in 16 bits
    assert kept.shared == 5 * shared + hidden


def test_the_switches_change_memory_and_no_time():
    at = engine.Machine.of("gb200", "fp8")
    layout = engine.Layout(256, tp=4, pp=16, schedule="interleaved", interleave=4)
    plain = engine.estimate(
        "llama3.1-405b", at, engine.Job(1536, 8192, software=catalog.modern(loss="fused")), layout
    )
    narrow = engine.estimate(
        "llama3.1-405b",
        at,
        engine.Job(1536, 8192, software=catalog.modern(loss="fused", saves_fp8=True)),
        layout,
    )
    assert narrow.step_s == plain.step_s
    assert 0.84 < narrow.memory_bytes["activations"] / plain.memory_bytes["activations"] < 0.88
    assert narrow.fits and not plain.fits  # as NVIDIA ran it, see [ran] of calibration/bands.toml


def test_recomputed_modules_drop_what_was_kept():
    deepseek = catalog.model("deepseek-v3")
    for modules, part in (
        (("layernorm",), "norms"),
        (("moe_act",), "activated"),
        (("shared_experts",), "shared"),
    ):
        kept = memory.layer_values(deepseek, 1, True, True)
        dropped = memory.dropped_per_token(deepseek, 4096, 1, 1, 1, 1, modules, True, True)
        assert dropped == getattr(kept, part)
