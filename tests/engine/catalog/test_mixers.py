"""Attention that does not read all that it has seen: each kind counted by hand, and held against what was
published of a model that has it."""

import json
from pathlib import Path

import pytest

import engine
from engine import catalog, validation
from engine.catalog import config_json, models
from engine.mechanism import flops, memory
from engine.mechanism.shape import shape
from engine.serving.inference import Serving, infer, kept_bytes
from engine.step.layout import machine
from tests.cases import in_one_test
from tests.said import refused

CONFIGS = json.loads(Path(__file__).with_name("configs.json").read_text(encoding="utf-8"))
DENSE = {"kind": "dense", "width": 256}
H = 64  # hidden


def one(attention, mlp=DENSE, **more):
    """A model of two layers of width 64 with this attention."""
    group = {"count": 2, "attention": attention, "mlp": mlp, **more}
    return models.described("x", "X", hidden=H, vocab=100, groups=[group])


# -- by hand -------------------------------------------------------------------------------------------------
DELTA = {"kind": "linear", "heads": 4, "key_heads": 2, "key_dim": 8, "value_dim": 16, "convolution": 4}
# queries and keys 2·16, values and gate 64 each, a decay and a strength a head; convolution over 96 channels;
# bias and rate of each head's decay; the norm of a head; the output
DELTA_PARAMS = H * (32 + 64 + 64 + 8) + 4 * 96 + 8 + 16 + 64 * H
KDA = DELTA | {"key_heads": 4, "value_dim": 8, "decay": "channel", "decay_rank": 6, "gate_rank": 5}
# queries, keys, values 32 each and a strength a head; decay and gate through 6 and 5; convolution over 96;
# a bias for each channel and a rate for each head; norm; output
KDA_PARAMS = H * 100 + (H + 32) * 6 + (H + 32) * 5 + 4 * 96 + 36 + 8 + 32 * H
LIGHTNING = {"kind": "linear", "heads": 4, "key_heads": 4, "key_dim": 8, "value_dim": 8, "decay": "fixed"}
MAMBA = {"kind": "state space", "heads": 8, "head_dim": 4, "state": 16, "groups": 2}
# in: channels and gate 2·32, written and read 2·2·16, a step a head; convolution of 4 and a bias over 96;
# decay, skip and step a head, a norm; out
MAMBA_PARAMS = H * (64 + 64 + 8) + 5 * 96 + 24 + 32 + 32 * H
LATENT = {"heads": 8, "kv_lora": 32, "rope_dim": 4, "nope_dim": 12, "v_dim": 10, "q_lora": 24}
PLAIN_LATENT = {"kind": "latent", **LATENT}
INDEXED = {"kind": "indexed", "over": PLAIN_LATENT, "top": 16, "indexer": {"heads": 2, "dim": 8}}
INDEXER_PARAMS = 24 * 16 + H * 8 + H * 2 + 2 * 8  # queries from the latent, key, weights, a norm with shift


def layer_params(model) -> float:
    """Parameters of one layer's attention."""
    return model.layers[0].attention.parameters


@in_one_test(
    "attention, params, state",
    [
        (DELTA, DELTA_PARAMS, 4 * 4 * 8 * 16 + 2 * 96 * 3),
        (KDA, KDA_PARAMS, 4 * 4 * 8 * 8 + 2 * 96 * 3),
        (LIGHTNING, H * 96 + H * 32 + 32 + 32 * H, 4 * 4 * 8 * 8),
        (MAMBA, MAMBA_PARAMS, 4 * 32 * 16 + 2 * 96 * 3),
    ],
)
def test_a_state_counted_by_hand(attention, params, state):
    model = one(attention)
    assert layer_params(model) == params
    assert model.state_bytes_per_sequence == 2 * state
    assert model.cache_bytes_per_token() == 0
    assert memory.kv_bytes(model, 1000.0, 3.0) == memory.kv_bytes(model, 9.0, 3.0) == 3 * 2 * state


def test_an_indexer_adds_its_weights_its_key_and_its_reading():
    model, plain = one(INDEXED), one(PLAIN_LATENT)
    assert layer_params(model) == layer_params(plain) + INDEXER_PARAMS
    assert model.cache_bytes_per_token(1.0) == 2 * (36 + 8)
    work = model.layers[0].attention.decoding(100.0)
    assert work.flops == 2 * 8 * (32 + 4 + 32) * 16  # 16 of 100 tokens are read
    assert work.repeated_flops == 2 * 2 * 8 * 100  # and all 100 are scored
    assert model.layers[0].attention.decoding(10.0).flops == 2 * 8 * 68 * 10


def test_a_whole_sequence_moves_its_values_and_a_state_for_each_chunk():
    """Queries, keys, values and results in 16 bits, and every 64 tokens a state in fp32, read and written. A
    delta rule's 16 queries and keys, 64 values and results; of a state space's 32 channels in, gate and out,
    and 2·16 written and as many read, or one group's beside Mamba's own scan, which keeps its state."""
    delta, mamba, first = (
        one(table).layers[0].attention.reading(640.0)
        for table in (DELTA, MAMBA, MAMBA | {"groups": 1, "step_rank": 4})
    )
    assert delta.moved_bytes == 640 * (2 * (16 + 16 + 64 + 64) + 2 * 4 * (4 * 8 * 16) / 64)
    assert mamba.moved_bytes == 640 * (2 * (3 * 32 + 32 + 32) + 2 * 4 * (32 * 16) / 64)
    assert first.moved_bytes == 640 * 2 * (3 * 32 + 16 + 16)
    # 8 heads: 4 · 4 · 16 for the state, and 2 · 64 · (16 + 4) within the chunk; 6 for each of Mamba's values
    assert mamba.flops == 640 * 8 * (4 * 4 * 16 + 2 * 64 * 20)
    assert first.flops == 640 * 6 * 32 * 16


def test_of_a_whole_sequence_what_was_picked_is_read_and_all_is_scored():
    """Of 64 tokens the first 16 see 8 on average, the others 16: 14, and each is scored against 32. To read
    the latents of 14 as they are costs more than keys and values of all 32; of 640 tokens it costs less."""
    short, long = (one(INDEXED).layers[0].attention.reading(seq) for seq in (64.0, 640.0))
    assert short.flops == 64 * 32 * 2 * 8 * ((12 + 4) + 10)
    assert long.flops == 640 * (16 - 16 * 16 / 1280) * 2 * 8 * (32 + 4 + 32)
    assert short.repeated_flops == 64 * 32 * 2 * 2 * 8
    grouped = one(INDEXED | {"over": GROUPED}).layers[0].attention.reading(64.0)
    assert grouped.flops == 64 * 14 * 2 * 8 * (16 + 16)


GROUPED = {"kind": "grouped", "heads": 8, "kv_heads": 2, "head_dim": 16}
KINDS = (GROUPED, PLAIN_LATENT, INDEXED, DELTA, KDA, LIGHTNING, MAMBA, MAMBA | {"groups": 1, "step_rank": 4})


@in_one_test("table", KINDS)
def test_what_the_layer_s_norm_has_written_is_not_cast_to_8_bits(table):
    """The norm writes it in 8 bits. In a layer 416 wide, a product that reads 416 values reads that."""
    group = {"count": 1, "attention": table, "mlp": DENSE}
    model = models.described("x", "X", hidden=416, vocab=100, groups=[group])
    cast = [one.casts_input for one in model.layers[0].attention.projections if one.k == 416]
    assert cast and not any(cast)


def test_a_layer_that_reuses_an_index_has_no_indexer():
    shared = {key: value for key, value in INDEXED.items() if key != "indexer"}
    model = one(shared)
    assert layer_params(model) == layer_params(one(PLAIN_LATENT))
    assert model.layers[0].attention.decoding(100.0).repeated_flops == 0


def test_compressed_tokens_counted_by_hand():
    """Eight heads of 16, queries from 24, two groups of rank 6; every 4th token an entry, the best 5 read."""
    table = {
        "kind": "compressed",
        "heads": 8,
        "head_dim": 16,
        "query_rank": 24,
        "groups": 2,
        "output_rank": 6,
        "window": 10,
        "ratio": 4,
        "index_heads": 2,
        "index_dim": 8,
        "top": 5,
    }
    model = one(table)
    plain = H * 24 + 24 * 128 + H * 16 + 128 * 6 + 12 * H + 24 + 16 + 8
    entries = 4 * H * 16 + 4 * 2 * 16 + 16
    indexer = 4 * H * 8 + 4 * 2 * 8 + 8 + 24 * 16 + H * 2
    assert layer_params(model) == plain + entries + indexer
    assert model.cache_bytes_per_token() == 2 * 2 * (16 + 8) / 4
    assert model.state_bytes_per_sequence == 2 * 2 * 10 * 16
    work = model.layers[0].attention.decoding(100.0, 2.0)
    assert work.flops == 4 * 8 * 16 * (10 + 5)
    assert work.repeated_bytes == 2 * (16 * 15 + 8 * 25)
    assert layer_params(one({key: table[key] for key in list(table)[:7]})) == plain


def test_latent_experts_counted_by_hand():
    """Tokens of 64 become 16 before eight experts of 32, and 64 after; one choice in three does nothing."""
    table = {"kind": "experts", "experts": 8, "top_k": 3, "width": 32, "latent": 16, "idle_experts": 4}
    mlp = one(LIGHTNING, table).layers[0].mlp
    assert mlp.parameters == 8 * 3 * 16 * 32 + 2 * H * 16 + H * 12
    assert mlp.used == 2
    assert mlp.active == 2 * 3 * 16 * 32 + 2 * H * 16 + H * 12
    assert mlp.matrices == mlp.active
    size = shape(one(LIGHTNING, table))
    assert (size.routed[0].hidden, size.routed[0].top_k) == (16, 2)
    assert sum(product.k * product.n for product in size.routed[0].shared) == 2 * H * 16


def test_gates_shared_tensors_and_borrowed_caches():
    plain = {"kind": "grouped", "heads": 8, "kv_heads": 2, "head_dim": 16}
    count = layer_params(one(plain))
    assert layer_params(one(plain | {"gate_width": 128})) == count + H * 128
    assert layer_params(one(plain | {"tensors": 1})) == count - H * 32
    assert one(plain | {"tensors": 1}).cache_bytes_per_token(1.0) == 2 * 32
    assert one(plain | {"tensors": 0}).cache_bytes_per_token() == 0
    assert layer_params(one(PLAIN_LATENT | {"gate_width": 8})) == layer_params(one(PLAIN_LATENT)) + H * 8


# -- as published --------------------------------------------------------------------------------------------
@in_one_test(
    "key, cache, state",
    [
        ("deepseek-v4-pro", 9_848, 61 * 128 * 512 * 2),  # 9.62 GiB at a million tokens, as DeepSeek says
        ("deepseek-v3.2", 85_888, 0),  # 83.9 GiB
        ("kimi-k3", 27_648, 449_372_160),  # 434 MB of states and 15 MB of convolutions
        ("qwen3.5-397b-a17b", 30_720, 192_061_440),
        ("nemotron-3-super", 8_192, 170_229_760),
        ("minimax-m1", 40_960, 293_601_280),
    ],
)
def test_caches_and_states_as_published(key, cache, state):
    model = catalog.model(key)
    assert model.cache_bytes_per_token() == cache
    assert model.state_bytes_per_sequence == state
    assert memory.kv_bytes(model, 2.0**20) == 2**20 * cache + state


def test_deepseek_v4_keeps_a_ninth_of_v3_2_at_a_million_tokens():
    """9.62 and 83.9 GiB (DeepSeek-V4's announcement)."""
    v4, v3 = (
        memory.kv_bytes(catalog.model(key), 2.0**20) / 2**30 for key in ("deepseek-v4-pro", "deepseek-v3.2")
    )
    assert (v4, v3) == (pytest.approx(9.62, abs=0.01), pytest.approx(83.9, abs=0.05))


def test_v3_2_indexer_is_a_small_part_of_dense_attention():
    """16,384 FLOPs a key against 278,528 of 128 heads over latents, 5.9 % (from DeepSeek-V3.2's config)."""
    attention = catalog.model("deepseek-v3.2").layers[0].attention
    assert attention.indexer.flops(1.0) == 16_384
    assert attention.decoding(1.0).flops == 278_528


@in_one_test("name", CONFIGS)
def test_a_config_json_gives_the_catalogues_model(name):
    known = catalog.model(CONFIGS[name]["model"])
    found = config_json.model(json.dumps(CONFIGS[name]["config"]))
    assert found.total_params == pytest.approx(known.counted_params or known.total_params, rel=4e-4)
    assert found.active_params == pytest.approx(known.active_params, rel=4e-3)
    assert found.cache_bytes_per_token() == known.cache_bytes_per_token()
    assert found.state_bytes_per_sequence == known.state_bytes_per_sequence
    alike = [[(g.count, type(g.attention), type(g.mlp), g.window) for g in m.layers] for m in (found, known)]
    assert alike[0] == alike[1]


STRANGERS = json.loads(Path(__file__).with_name("strangers.json").read_text(encoding="utf-8"))


@in_one_test("name", STRANGERS)
def test_a_file_of_a_model_that_is_not_in_the_catalogue_gives_its_parameters(name):
    """Held against the library's own class, built from the same file (transformers 5.24), and where it has
    none against what the maker says (EXAONE 4.5 of 33B, Step 3.7, Ring-mini)."""
    row = STRANGERS[name]
    found = config_json.model(json.dumps(row["config"]))
    counted = row["total"] % 10**6 > 0
    assert found.total_params == pytest.approx(row["total"], rel=1e-3 if counted else 0.025)
    assert found.active_params <= found.total_params


@in_one_test(
    "name, changes, words",
    [
        ("XiaomiMiMo/MiMo-V2-Flash", {"moe_layer_freq": [1] * 47}, ("moe_layer_freq", "48 layers", "got 47")),
        ("XiaomiMiMo/MiMo-V2-Flash", {"hybrid_layer_pattern": [2] * 48}, ("hybrid_layer_pattern", "got 2")),
        ("XiaomiMiMo/MiMo-V2-Flash", {"swa_v_head_dim": -128}, ("swa_v_head_dim", "at least 1")),
        ("zai-org/GLM-5.2", {"indexer_types": ["full"] * 3}, ("indexer_types", "78 layers", "got 3")),
        ("zai-org/GLM-5.2", {"mlp_layer_types": ["thin"] * 78}, ("mlp_layer_types", "got thin")),
        ("zai-org/GLM-5.2", {"index_topk": -1}, ("index_topk", "at least 1", "got -1")),
        (
            "zai-org/GLM-5.2",
            {"max_position_embeddings": -5},
            ("max_position_embeddings", "above 0", "got -5"),
        ),
        ("zai-org/GLM-5.2", {"n_routed_experts": None}, ("no num_local_experts", "n_routed_experts")),
        ("MiniMaxAI/MiniMax-M3", {"block_configs": [{"ffn": 1}]}, ("block_configs", "not read")),
        ("MiniMaxAI/MiniMax-M3", {"talker_config": {"hidden_size": 1}}, ("talker_config", "not read")),
        ("MiniMaxAI/MiniMax-M3", {"moe_layer_freq": 2}, ("moe_layer_freq", "1 or a list", "got 2")),
        ("MiniMaxAI/MiniMax-M3", {"type_vocab_size": 2}, ("type_vocab_size", "encoders")),
        ("Qwen/Qwen3.5-9B", {"layer_types": [["full_attention"]] * 32}, ("layer_types", "full_attention")),
        ("LiquidAI/LFM2.5-8B-A1B", {"conv_L_cache": 0}, ("conv_L_cache", "at least 1", "got 0")),
    ],
)
def test_a_strangers_contradiction_is_one_line_that_names_the_key(name, changes, words):
    config = json.loads(json.dumps(STRANGERS[name]["config"]))
    config.get("text_config", config).update(changes)
    with refused(*words):
        config_json.model(json.dumps(config))


@in_one_test(
    "name, part, changes, words",
    [
        (
            "mistralai/Voxtral-Mini-3B-2507",
            "audio_config",
            {"model_type": "ears"},
            ("audio_config.model_type",),
        ),
        ("mistralai/Voxtral-Mini-3B-2507", "audio_config", {"num_hidden_layers": 0}, ("encoder_layers",)),
        ("Qwen/Qwen3.5-9B", "vision_config", {"model_type": "eyes"}, ("vision_config.model_type", "eyes")),
        ("Qwen/Qwen3.5-9B", "vision_config", {"depth": None}, ("vision_config has no depth",)),
        ("Qwen/Qwen3.5-9B", "vision_config", {"hidden_size": -1}, ("hidden_size", "from 1", "got -1")),
    ],
)
def test_a_wrong_tower_is_named(name, part, changes, words):
    config = json.loads(json.dumps(STRANGERS[name]["config"]))
    config[part].update(changes)
    if part == "vision_config" and "model_type" in changes:
        config[part]["hidden_size"] = 2048  # a share of the model that cannot be guessed
    with refused(*words):
        config_json.model(json.dumps(config))


def test_what_a_key_tells_of_a_layer_is_in_its_groups():
    mimo = config_json.model(json.dumps(STRANGERS["XiaomiMiMo/MiMo-V2-Flash"]["config"]))
    full, windowed = mimo.layers[0], mimo.layers[1]
    assert (full.attention.kv_heads, windowed.attention.kv_heads) == (4, 8)
    assert (full.attention.qk_dim, full.attention.value_dim) == (192, 128)
    assert full.attention.cached == 4 * (192 + 128) and windowed.window.tokens == 128
    liquid = config_json.model(json.dumps(STRANGERS["LiquidAI/LFM2.5-8B-A1B"]["config"]))
    assert liquid.state_bytes_per_sequence == 18 * 2 * 2048 * 2
    assert liquid.cache_bytes_per_token() == 6 * 2 * 8 * 64 * 2
    glm = config_json.model(json.dumps(STRANGERS["zai-org/GLM-5.2"]["config"]))
    assert sum(g.count for g in glm.layers if g.attention.indexer) == 21  # 57 of 78 reuse what these picked
    assert glm.mtp_modules == 1


# -- bad files -----------------------------------------------------------------------------------------------
QWEN, NEMOTRON, KIMI = (
    "Qwen/Qwen3.5-35B-A3B",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "moonshotai/Kimi-K3",
)
FLASH = "deepseek-ai/DeepSeek-V4-Flash"


@in_one_test(
    "name, changes, words",
    [
        (QWEN, {"layer_types": ["linear_attention"] * 39}, ("layer_types", "40 layers", "got 39")),
        (QWEN, {"layer_types": ["linear"] * 40}, ("layer_types", "linear_attention", "got linear")),
        (QWEN, {"linear_num_value_heads": None}, ("no linear_num_value_heads",)),
        (QWEN, {"linear_key_head_dim": -1}, ("linear_key_head_dim", "at least 1", "got -1")),
        (QWEN, {"hyper_mixing_layers": 7}, ("hyper_mixing_layers", "not read")),
        (QWEN, {"num_experts_per_tok": 20, "num_experts": 16}, ("num_experts_per_tok", "at most the 16")),
        (NEMOTRON, {"hybrid_override_pattern": "MEX" + "M" * 85}, ("hybrid_override_pattern", "got X")),
        (NEMOTRON, {"mamba_head_dim": None}, ("mamba_head_dim",)),
        (KIMI, {"linear_attn_config": {"num_heads": 96, "head_dim": 128}}, ("full_attn_layers",)),
        (FLASH, {"compress_ratios": [0, 4, 128]}, ("compress_ratios", "43 numbers", "got 3")),
        (FLASH, {"compress_ratios": [3] * 44}, ("compress_ratios", "got 3")),
        (FLASH, {"o_groups": 0}, ("o_groups", "at least 1")),
    ],
)
def test_a_contradiction_is_one_line_that_names_the_key(name, changes, words):
    config = json.loads(json.dumps(CONFIGS[name]["config"]))
    config.get("text_config", config).update(changes)
    with refused(*words):
        config_json.model(json.dumps(config))


SPARSE = {
    "model_type": "minimax_m3",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 32000,
    "layer_types": ["full_attention", *["minimax_m3_sparse"] * 3],
}


@in_one_test(
    "keys, top",
    [
        ({}, (16 + 1) * 128),  # the blocks that the file does not name: 16 of 128 tokens, and the own
        ({"index_block_size": 64, "index_topk_blocks": 8, "index_local_blocks": 2}, (8 + 2) * 64),
        ({"index_local_blocks": 0}, 16 * 128),
        ({"sparse_attention_config": {"sparse_block_size": 64, "sparse_local_block": 0}}, 16 * 64),
        ({"sparse_attention_config": {"sparse_topk_blocks": 4, "sparse_local_block": 3}}, (4 + 3) * 128),
    ],
)
def test_sparse_blocks_are_the_picked_and_the_latest(keys, top):
    """In the words of MiniMax-M3's file, which are a table of their own, and in those of transformers, which
    writes them beside the others."""
    model = config_json.model(json.dumps(SPARSE | keys))
    full, sparse = model.layers
    assert (full.count, sparse.count) == (1, 3)
    assert sparse.attention.top == top and sparse.attention.over == full.attention


def test_a_file_with_infinity_is_read():
    """As Python's json writes it: Nemotron's time_step_limit is [0.0, Infinity]."""
    text = json.dumps(CONFIGS[NEMOTRON]["config"] | {"time_step_limit": [0.0, float("inf")]})
    assert "Infinity" in text
    assert config_json.model(text).total_params == catalog.model("nemotron-3-super").total_params


# -- through the engine --------------------------------------------------------------------------------------
MIXED = [
    key
    for key, model in catalog.all_models().items()
    if any(map(models.is_mixer, [g.attention for g in model.layers]))
]


# models of gated delta layers or Kimi's beside softmax attention: all of their kernels are timed in the
# published cases; of Mamba-2's the forward pass alone is
TIMED = {
    *("kimi-k3", "kimi-linear-48b", "ling-3.0-flash"),
    *("qwen3.5-397b-a17b", "qwen3.5-122b-a10b", "qwen3.5-35b-a3b", "qwen3.5-27b", "qwen3-next-80b-a3b"),
}


def test_the_constants_of_linear_attention_meet_the_timings_that_fitted_them_and_those_that_did_not():
    """Seven timings of the gated delta rule on H100 and B200 and of Kimi's on H20 fitted two numbers, two of
    Mamba-2 a third; the others, those on the H800 among them, fitted nothing."""
    rows = [row for row in validation.validate().compared if row.kind == "mixer"]
    by_host = ("mamba2_h100_1024", "mamba2_h100_2048")  # whose kernels wait for the host that launches them
    fitted = [abs(row.error) for row in rows if row.fitted]
    held_out = [abs(row.error) for row in rows if not row.fitted and row.case not in by_host]
    assert (len(fitted), len(held_out)) == (9, 15)
    assert max(fitted) < 0.1 and sum(fitted) / 9 < 0.05
    assert max(held_out) < 0.08 and sum(held_out) / 15 < 0.04


@in_one_test("key", MIXED)
def test_all_kinds_are_served_and_trained(key):
    model, at = catalog.model(key), machine(catalog.gpu("b200"))
    found = infer(model, at, Serving(tp=2, batch=4, prompt=2048, output=64))
    assert 0 < found.decode.attention_s < found.decode.total_s < found.prefill.total_s
    assert "attention" in found.extrapolates
    step = engine.estimate(model, at, engine.Job(global_batch=64, seq=4096), engine.Layout(gpus=64, tp=2))
    assert 0 < step.step_s < 1000
    assert ("attention" in step.extrapolates) == (key not in TIMED)


def test_long_contexts_cost_a_state_nothing():
    """Of Nemotron's 88 layers eight read a cache, so that four times the context takes less than thrice as
    long."""
    model, at = catalog.model("nemotron-3-super"), machine(catalog.gpu("h200"))
    near, far = (
        infer(model, at, Serving(tp=8, batch=64, prompt=prompt, output=64)).decode.attention_s
        for prompt in (8192, 32768)
    )
    assert near < far < 3 * near


def test_ranks_divide_states_and_not_latents():
    size = shape(catalog.model("kimi-k3"))
    whole, cut = (kept_bytes(size, 1000.0, 1.0, 2.0, tp) for tp in (1.0, 8.0))
    assert whole - cut == pytest.approx(449_372_160 * 7 / 8)


def test_linear_attention_takes_the_same_flops_at_any_length():
    model = catalog.model("minimax-m1")
    mixing = [flops.attention_flops_per_token(model, seq) for seq in (4096, 8192)]
    softmax = 2 * 64 * 256 * 10 * 2048  # ten layers see 2,048 more tokens on average
    assert mixing[1] - mixing[0] == pytest.approx(softmax)
