"""Which entry a name means."""

import json

import pytest

import engine
from engine import catalog
from engine.catalog import naming
from tests.cases import in_one_test
from tests.said import refused


@in_one_test(
    "name, key",
    [
        ("llama3.1-8b", "llama3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama3.1-8b"),
        ("Llama 3.1 8B", "llama3.1-8b"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama3.1-8b"),
        ("/models/Qwen3-30B-A3B-Instruct-2507/", "qwen3-30b-a3b"),
        ("Qwen/Qwen3.6-27B-FP8", "qwen3.5-27b"),
        ("Qwen/Qwen3-Next-80B-A3B-Thinking", "qwen3-next-80b-a3b"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3.1"),
        ("deepseek-ai/DeepSeek-V4-Pro", "deepseek-v4-pro"),
        ("moonshotai/Kimi-K2.6", "kimi-k2.5"),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "nemotron-3-super"),
        ("nvidia/Gemma-4-31B-IT-NVFP4", "gemma4-31b"),
        ("zai-org/GLM-4.6-FP8", "glm-4.5"),
        ("MiniMaxAI/MiniMax-M2.5", "minimax-m2"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("facebook/opt-1.3b", "opt-1.3b"),
        ("facebook/opt-13b", "opt-13b"),
        ("Llama-3_1-8B", "llama3.1-8b"),
        ("somebody/Llama-3.1-8B-Instruct-2611", "llama3.1-8b"),  # a month, as makers write it
    ],
)
def test_a_name_that_people_use(name, key):
    assert engine.model(name).key == catalog.model_key(name) == key


def test_no_two_entries_have_a_name_in_common():
    """But a model whose checkpoint another entry names too, by its own key."""
    said: dict[str, str] = {}
    for key, model in catalog.all_models().items():
        for name in (key, *model.also):
            assert said.setdefault(naming.squashed(name), key) == key, name


def test_an_unknown_name_is_refused_with_those_that_begin_like_it_first():
    with refused("qwen3.5-397b-a17b, qwen3.5-122b-a10b"):
        engine.model("qwen3.5")
    with refused("model must be a key"):  # no month, and so no word that may be left out
        engine.model("llama-3.1-8b-26110")
    with refused("model must be a key", "got 'no-such-model'"):
        engine.model("no-such-model")


def test_a_path_is_a_model(tmp_path):
    file = tmp_path / "mine" / "config.json"
    file.parent.mkdir()
    llama = {
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
    }
    file.write_text(json.dumps(llama), encoding="utf-8")
    for given in (str(file), str(file.parent)):
        assert engine.model(given).total_params == engine.model("llama3.1-8b").total_params
    with pytest.raises(ValueError, match="readable JSON file"):
        engine.model(str(tmp_path / "nowhere.json"))
