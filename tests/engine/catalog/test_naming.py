"""Which entry a name means."""

import json

import pytest

import engine
from engine import catalog
from engine.catalog import naming
from tests.cases import in_one_test
from tests.engine.catalog.test_mixers import CONFIGS
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
        # how weights are stored, in the words of those who store them
        ("DeepSeek-V3-W4AFP8", "deepseek-v3"),
        ("cyankiwi/Kimi-Linear-48B-A3B-Instruct-AWQ-4bit", "kimi-linear-48b"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "llama3.1-70b"),
        ("nytopop/Qwen3-30B-A3B.w8a8", "qwen3-30b-a3b"),
        ("Qwen3.5-397B-A17B-Q4_K_S.gguf", "qwen3.5-397b-a17b"),
        ("Qwen3-30B-A3B-UD-Q4_K_XL.gguf", "qwen3-30b-a3b"),
        ("DeepSeek-R1-UD-IQ1_S-00001-of-00003.gguf", "deepseek-v3"),
        ("google_gemma-3-27b-it-Q4_0.gguf", "gemma3-27b"),
        ("gemma3:27b-it-fp16", "gemma3-27b"),
        ("gaunernst/gemma-3-27b-it-int4-awq", "gemma3-27b"),
        ("gradientai/Llama-3-8B-Instruct-Gradient-1048k", "llama3-8b"),
        # derived from, or of the same shape
        ("alignment-handbook/zephyr-7b-sft-full", "mistral-7b"),
        ("01-ai/Yi-1.5-34B-Chat", "yi-34b"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct-GPTQ-Int4", "qwen2.5-32b"),
        ("Qwen/Qwen1.5-32B-Chat", "qwen1.5-32b"),
        ("Qwen/Qwen2.5-VL-7B-Instruct-AWQ", "qwen2.5-vl-7b"),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "qwen3-vl-30b-a3b"),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "llama3.2-11b-vision"),
        ("somebody/Llama-3.1-8B-Instruct-2611", "llama3.1-8b"),  # a month, as makers write it
    ],
)
def test_a_name_that_people_use(name, key):
    assert engine.model(name).key == catalog.model_key(name) == key


def test_a_word_that_says_bits_is_told_from_one_that_says_parameters():
    bits = ("4bit", "3.5bpw", "q4", "iq2", "w4a16", "w4afp8", "fp8", "int4", "nf4", "mxfp4", "exl3")
    assert all(naming.says_bits(word) for word in bits)
    assert not any(
        naming.says_bits(word) for word in ("8b", "a3b", "v3", "qwen3", "7b", "r1", "k2", "glm", "q")
    )
    assert naming.unstored(["qwen3", "30b", "a3b", "q4", "k", "xl"]) == ["qwen3", "30b", "a3b"]
    assert naming.unstored(["m", "00001", "of", "00003"]) == ["m"]


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


def test_a_model_is_a_name_a_folder_a_file_or_the_text_of_a_config_json(tmp_path):
    text = json.dumps(CONFIGS["Qwen/Qwen3-8B"]["config"])
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    known = catalog.model("qwen3-8b").total_params
    for said in (str(tmp_path), str(tmp_path / "config.json"), f"\n{text}"):
        assert engine.model(said).total_params == pytest.approx(known, rel=1e-4)
    quantised = {"quantization": {"quant_algo": "W4A16_NVFP4", "exclude_modules": ["lm_head"]}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quantised), encoding="utf-8")
    assert engine.model(str(tmp_path)).stored == "rest nvfp4"
    (tmp_path / "hf_quant_config.json").write_text("{", encoding="utf-8")
    with refused("hf_quant_config.json", "readable"):
        engine.model(str(tmp_path))
    with refused("This is not JSON", "line 1"):
        engine.model("{here")
