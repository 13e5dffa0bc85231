"""What a checkpoint's formats come to in bytes, by hand and as published."""

import pytest

from engine import catalog
from engine.catalog import models, stored
from tests.cases import in_one_test
from tests.said import refused

LAYER = {
    "count": 1,
    "attention": {"kind": "grouped", "heads": 8, "kv_heads": 2, "head_dim": 16},
    "mlp": {
        "kind": "experts",
        "experts": 8,
        "top_k": 2,
        "width": 64,
        "shared_experts": 1,
        "shared_width": 48,
    },
}
SMALL = models.described("x", "X", hidden=64, vocab=100, groups=[LAYER])
EXPERTS, SHARED, QKV, OUTPUT, ENDS = 8 * 3 * 64 * 64, 3 * 64 * 48, 64 * 12 * 16, 128 * 64, 2 * 100 * 64
OTHERS = 3 * 64 + 8 * 64  # norms and the router


@in_one_test(
    "formats, bytes_",
    [
        ("", 2 * (EXPERTS + SHARED + QKV + OUTPUT + ENDS + OTHERS)),
        ("experts mxfp4", 0.53125 * EXPERTS + 2 * (SHARED + QKV + OUTPUT + ENDS + OTHERS)),
        ("rest fp8", EXPERTS + SHARED + QKV + OUTPUT + 2 * (ENDS + OTHERS)),
        ("attention bf16, rest nvfp4", 0.5625 * (EXPERTS + SHARED) + 2 * (QKV + OUTPUT + ENDS + OTHERS)),
        ("attention bf16, output fp8, rest fp8", EXPERTS + SHARED + OUTPUT + 2 * (QKV + ENDS + OTHERS)),
        ("rest fp8, ends fp8", EXPERTS + SHARED + QKV + OUTPUT + ENDS + 2 * OTHERS),
    ],
)
def test_formats_counted_by_hand(formats, bytes_):
    assert SMALL.weight_bytes(formats) == pytest.approx(bytes_)


def test_a_value_on_average_gives_all_weights_back():
    model = catalog.model("deepseek-v4-pro")
    ends = models.embedding_parameters(model) + models.head_parameters(model)
    each = models.bytes_of_a_weight(model, model.stored)
    assert each * (model.total_params - ends) + 2 * ends == pytest.approx(model.weight_bytes())


@in_one_test(
    "key, bytes_, within",
    [
        ("gpt-oss-120b", 60.8 * 2**30, 2e-3),  # its model card, table 1
        ("gpt-oss-20b", 12.8 * 2**30, 4e-3),
        ("kimi-k2", 1.03e12, 2e-3),  # the size of its repository
        ("kimi-k2-thinking", 594e9, 3e-3),
        ("llama3.1-8b", 16.06e9, 2e-3),
    ],
)
def test_checkpoints_take_what_is_published(key, bytes_, within):
    assert catalog.model(key).weight_bytes() == pytest.approx(bytes_, rel=within)


def test_every_entry_of_the_catalogue_can_be_parsed():
    for model in catalog.all_models().values():
        assert set(stored.parsed(model.stored)) == set(stored.PARTS)


def test_a_server_logs_what_is_counted():
    """vLLM of a Qwen3-30B-A3B in w4a16: "model weights take 15.68GiB" (vllm-project/vllm issue 17327)."""
    told = {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "format": "pack-quantized"}
    told["config_groups"] = {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}}
    formats = stored.of_config({"quantization_config": told})
    assert catalog.model("qwen3-30b-a3b").weight_bytes(formats) == pytest.approx(15.68 * 2**30, rel=0.02)


# -- what files say ------------------------------------------------------------------------------------------
COMPRESSED = {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}
INT4 = {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}
LAYERS = [f"model.layers.{i}.self_attn" for i in range(4)]
KEEPS = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]


@in_one_test(
    "quantised, formats",
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "rest fp8-block"),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}, "experts mxfp4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "rest awq"),
        ({"quant_method": "gptq", "bits": 8}, "rest int8"),
        *(
            ({**COMPRESSED, "config_groups": {"group_0": {"weights": weights}}}, kind)
            for weights, kind in [
                ({"num_bits": 8, "type": "float", "strategy": "channel"}, "rest fp8"),  # FP8_DYNAMIC
                ({"num_bits": 8, "type": "int", "strategy": "channel"}, "rest int8"),  # W8A8
                ({"num_bits": 4, "type": "float", "group_size": 16}, "rest nvfp4"),
            ]
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            "rest nf4-double",
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": INT4}, "ignore": KEEPS},
            "attention bf16, shared bf16, dense bf16, rest int4-32",
        ),
        (
            {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", *(f"{one}*" for one in LAYERS)]},
            "attention bf16, rest nvfp4",
        ),
        (
            {"quant_algo": "NVFP4", "exclude_modules": [f"{one}.q_a_proj" for one in LAYERS]},
            "attention bf16, output nvfp4, rest nvfp4",
        ),
        ({"quant_algo": "NVFP4", "exclude_modules": ["model.layers.0.self_attn*"]}, "rest nvfp4"),
    ],
)
def test_formats_follow_from_the_file(quantised, formats):
    assert stored.of_config({"num_hidden_layers": 4, "quantization_config": quantised}) == formats


def test_the_file_beside_it_counts_too():
    beside = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    assert stored.of_config({"num_hidden_layers": 4}, beside) == "rest fp8"
    assert stored.of_config({"num_hidden_layers": 4}) == ""


def test_what_is_not_known_is_refused():
    with refused("stored", "experts", "mxfp4", "'experts int3'"):
        stored.parsed("experts int3")
    with refused("quant_method", "compressed-tensors", "'aqlm'"):
        stored.of_config({"quantization_config": {"quant_method": "aqlm"}})
    with refused("quant_algo", "NVFP4", "'W2A16'"):
        stored.of_config({"quantization_config": {"quant_algo": "W2A16"}})
