"""Models from their config.json: the published files' keys give the catalogue's models, parameter for
parameter."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.base import check
from engine.catalog import config_json, models
from engine.step import own
from tests.cases import in_one_test

# The keys that determine the model's shape, copied from the files at Hugging Face
FILES = {
    "llama3-70b": {
        "model_type": "llama",
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_attention_heads": 64,
        "num_hidden_layers": 80,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
    },
    "llama3.2-1b": {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_attention_heads": 32,
        "num_hidden_layers": 16,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
        "rope_scaling": {"factor": 32.0},
    },
    "mistral-7b": {
        "model_type": "mistral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "sliding_window": 4096,
        "vocab_size": 32000,
    },
    "mistral-nemo-12b": {
        "model_type": "mistral",
        "hidden_size": 5120,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 131072,
        "sliding_window": None,
    },
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 32000,
    },
    "qwen2.5-7b": {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_attention_heads": 28,
        "num_hidden_layers": 28,
        "num_key_value_heads": 4,
        "vocab_size": 152064,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "max_window_layers": 28,
        "tie_word_embeddings": False,
    },
    "qwen3-30b-a3b": {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_attention_heads": 32,
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "vocab_size": 151936,
        "tie_word_embeddings": False,
        "attention_bias": False,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2",
        "hidden_size": 2048,
        "intermediate_size": 10944,
        "moe_intermediate_size": 1408,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "num_hidden_layers": 27,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "q_lora_rank": None,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 102400,
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "num_hidden_layers": 61,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "moe_layer_freq": 1,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "quantization_config": {"fmt": "e4m3"},
    },
    "gpt2-xl": {"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48, "vocab_size": 50257},
    "llama4-maverick": {
        "model_type": "llama4",
        "text_config": {
            "model_type": "llama4_text",
            "hidden_size": 5120,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16384,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "num_hidden_layers": 48,
            "num_local_experts": 128,
            "num_experts_per_tok": 1,
            "interleave_moe_layer_step": 2,
            "vocab_size": 202048,
            "tie_word_embeddings": False,
        },
    },
}


@in_one_test("key", FILES)
def test_a_file_gives_the_model_of_the_catalogue(key):
    fields, known = config_json.read(json.dumps(FILES[key])), catalog.model(key)
    with check.trusted():
        here = own.model(own.model_options()[0], fields)
        ours = models.parameters(here)
    # left out: learned positions, LayerNorm's and linear biases (GPT-2), query and key norms (Qwen 3), the
    # router's bias, vision
    assert ours == pytest.approx(models.parameters(known) - known.extra_params, rel=2e-3)
    sizes = models.sizes_of(known)
    numbers = sizes | {"vocab": known.vocab, "tied": known.tied}
    for name in config_json.FIELDS:
        if name not in (
            "head_dim",
            "rope_dim",
            "nope_dim",
            "v_dim",
            "qkv_bias",
            "window",
            "windowed_layers",
            "kv_heads",
        ):
            assert fields[name] == numbers[name], name
    if not known.attention.latent:
        assert (fields["head_dim"], fields["kv_heads"]) == (known.head_dim, known.kv_heads)
    if key.startswith("mistral"):
        assert (fields["window"], fields["windowed_layers"]) == (sizes["window"], sizes["windowed_layers"])


def test_windowed_layers_are_counted_from_their_list():
    """gpt-oss-120b: 36 layers, every second of which sees 128 tokens."""
    kinds = ["sliding_attention", "full_attention"] * 18
    given = FILES["mixtral-8x7b"] | {"num_hidden_layers": 36, "sliding_window": 128, "layer_types": kinds}
    fields, known = config_json.read(json.dumps(given)), models.sizes_of(catalog.model("gpt-oss-120b"))
    for name, number in (("window", 128), ("windowed_layers", 18)):
        assert fields[name] == known[name] == number
    assert config_json.read(json.dumps(given | {"use_sliding_window": False}))["windowed_layers"] == 0
    gemma = FILES["mixtral-8x7b"] | {"model_type": "gemma2", "num_hidden_layers": 42, "sliding_window": 4096}
    assert config_json.read(json.dumps(gemma))["windowed_layers"] == 21  # every second, without a list
    del given["layer_types"]
    assert config_json.read(json.dumps(given))["windowed_layers"] == 36  # all, where the file says no more


@in_one_test(
    "missing, words",
    [
        ("num_hidden_layers", "no num_hidden_layers (nor n_layer, num_layers, n_layers)"),
        ("hidden_size", "no hidden_size"),
        ("num_attention_heads", "no num_attention_heads"),
        ("vocab_size", "no vocab_size."),
        ("intermediate_size", "no intermediate_size"),
        ("num_experts_per_tok", "no num_experts_per_tok"),
    ],
)
def test_a_missing_key_is_named(missing, words):
    config = {key: value for key, value in FILES["mixtral-8x7b"].items() if key != missing}
    with pytest.raises(ValueError, match=re.escape(words)):
        config_json.read(json.dumps(config))


@in_one_test(
    "text, words",
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "one object"),
        ("3", "one object"),
        ("{}", "no num_hidden_layers"),
        ('{"vocab_size": 32000}', "no num_hidden_layers"),
        ("__import__('os')", "not JSON"),
    ],
)
def test_another_file_is_refused_in_words(text, words):
    with pytest.raises(ValueError, match=words):
        config_json.read(text)


WRONG = [  # the faulty entry of an otherwise good file, and words of the message
    ({"hidden_size": "4096"}, 'hidden_size must be a whole number from 128 to 32,768, got "4096".'),
    ({"num_hidden_layers": -3}, "num_hidden_layers must be a whole number from 1 to 200, got -3."),
    ({"num_hidden_layers": 32.5}, "num_hidden_layers must be a whole number from 1 to 200, got 32.5."),
    ({"num_hidden_layers": True}, "num_hidden_layers must be a whole number from 1 to 200, got true."),
    ({"hidden_size": [4096]}, "hidden_size must be a whole number from 128 to 32,768, got [4096]."),
    (
        {"vocab_size": {"all": 32000}},
        'vocab_size must be a whole number from 256 to 524,288, got {"all":32000}.',
    ),
    ({"hidden_size": 99999999}, "hidden_size must be a whole number from 128 to 32,768, got 99999999."),
    ({"hidden_size": 10**60}, "hidden_size must be a whole number from 128 to 32,768, got 1e+60."),
    ({"tie_word_embeddings": "yes"}, 'tie_word_embeddings must be true or false, got "yes".'),
    ({"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false, got 1."),
    ({"model_type": 5}, "model_type must be a text in quotes, got 5."),
    ({"num_key_value_heads": 5}, "num_key_value_heads must divide the 32 attention heads, got 5."),
    (
        {"num_attention_heads": 30, "num_key_value_heads": 10},
        "hidden_size must be a multiple of the 30 attention heads where no head_dim is given, got 4096.",
    ),
    ({"num_experts_per_tok": 9}, "num_experts_per_tok must be at most the 8 experts, got 9."),
    (
        {"first_k_dense_replace": 32, "num_hidden_layers": 31},
        "first_k_dense_replace must be at most the 31 layers, got 32.",
    ),
    (
        {"sliding_window": 4096, "layer_types": ["sliding_attention"] * 33},
        "layer_types must name 32 layers, one for each; got 33.",
    ),
    ({"text_config": [1]}, "text_config must be an object in braces, got [1]."),
    (
        {"text_config": {"hidden_size": "8"}},
        'hidden_size must be a whole number from 128 to 32,768, got "8".',
    ),
    (
        {"hidden_size": "x" * 60},
        'hidden_size must be a whole number from 128 to 32,768, got "' + "x" * 39 + ".",
    ),
    (
        {"num_attention_heads": 4, "num_key_value_heads": 4},
        "It gives head dim as 1024, where 16 to 512 is allowed.",
    ),
    (
        {"layer_types": ["linear_attention"] * 3},
        (
            "layer_types must be a list of sliding_attention, full_attention, chunked_attention, got "
            '["linear_attention","linear_attention",".'
        ),
    ),
    (
        {"full_attention_interval": 4},
        (
            "full_attention_interval must be left out: layers of linear attention and state spaces are not "
            "modelled, got 4."
        ),
    ),
    (
        {"linear_num_value_heads": 32},
        (
            "linear_num_value_heads must be left out: layers of linear attention and state spaces are not "
            "modelled, got 32."
        ),
    ),
    ({"sliding_window": 10**6}, "It gives window as 1000000, where 0 to 131072 is allowed."),
]


@in_one_test("changes, words", WRONG)
def test_a_wrong_value_is_named_with_what_is_allowed(changes, words):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        config_json.read(json.dumps(FILES["mixtral-8x7b"] | changes))


@pytest.mark.parametrize(("digits", "said"), [("1e999", "Infinity"), ("-1e999", "-Infinity")])
def test_a_number_beyond_all_doubles_is_named_with_its_sign(digits, said):
    text = json.dumps(FILES["mixtral-8x7b"] | {"hidden_size": "here"}).replace('"here"', digits)
    with pytest.raises(ValueError, match=f", got {said}\\.$"):
        config_json.read(text)


def test_a_width_of_experts_is_none_where_there_are_no_experts():
    config = FILES["mixtral-8x7b"] | {"num_local_experts": 0, "moe_intermediate_size": 14336}
    assert config_json.read(json.dumps(config))["ffn"] == FILES["mixtral-8x7b"]["intermediate_size"]
    del config["intermediate_size"]
    with pytest.raises(ValueError, match="intermediate_size"):
        config_json.read(json.dumps(config))


NOT_JSON = {
    '{"hidden_size": 4096,\n "vocab_size" 32000}': "line 2, column 15",
    '{\n  "hidden_size": NaN}': "line 2, column 18",
    '{"a": 1,\n': "line 2, column 1",
    "{": "line 1, column 2",
    "": "line 1, column 1",
    "{} x": "line 1, column 4",
    '{"a": tru}': "line 1, column 7",
    '{"a": "b': "line 1, column 7",
    '{"a": "\\u2682': "line 1, column 9",
    '{"a": "\\\\u2682': "line 1, column 7",
}


@in_one_test("text, place", NOT_JSON.items())
def test_where_it_is_not_json(text, place):
    with pytest.raises(ValueError, match=f"^This is not JSON: {re.escape(place)}\\.$"):
        config_json.read(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"hidden_size": ' + "9" * 5000 + "}", '{"hidden_size": 1e999}', "\ufeff{}", "\0"]
)
def test_no_text_ends_in_a_traceback(text):
    with pytest.raises(ValueError, match=r"\.$"):
        config_json.read(text)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
KEYS = st.sampled_from([*config_json.KEYS, config_json.INNER])
NEAR = st.sampled_from([0, 1, 2, 3, 7, 8, 16, 31, 32, 64, 128, 256, 1000, 4096, 14336, 32000, 131072])


@settings(max_examples=400, deadline=None)
@given(base=st.sampled_from(list(FILES)), changes=st.dictionaries(KEYS, NEAR | ANYTHING, max_size=4))
def test_any_file_is_a_model_that_can_be_counted_or_refused_in_words(base, changes):
    try:
        fields = config_json.read(json.dumps(FILES[base] | changes))
    except ValueError as refused:
        fields, said = None, str(refused)
    if fields is None:
        assert said.endswith(".") and len(said) < 200
        return
    with check.trusted():
        params = models.parameters(own.model(own.model_options()[0], fields))
    assert 0 < params < 1e15
    assert all(least <= fields[name] <= most for name, (least, most) in config_json.BOUNDS.items())


@given(text=st.text(max_size=40))
def test_any_text_is_refused_in_words(text):
    with pytest.raises(ValueError, match=r"\.$"):
        config_json.read(text)
