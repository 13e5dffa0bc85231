"""llama.cpp and Ollama: what their logs and tables say, and what is said of a wrong value."""

import pytest

import engine
from engine.frameworks import llamacpp
from engine.serving import in_file

GIB, MIB = 2.0**30, 2.0**20


def checked(line, gpu="rtx4090", gpus=1):
    return engine.check_launch(line, gpu, gpus)


def test_llama_3_8b_in_4_bits():
    """Its log: 4,403.49 MiB of weights on the GPU beside the embedding, which stays outside; 1,024 MiB of
    cache for 8,192 tokens, 258.50 MiB of buffer (as remembered)."""
    found = checked("./llama-server -m models/Meta-Llama-3-8B-Instruct-Q4_K_M.gguf -ngl 99 -c 8192")
    assert found.verdict == "fits" and found.parts is not None and found.room is not None
    assert found.parts["weights"] == pytest.approx(4403.49 * MIB, rel=0.01)
    assert found.parts["activations"] == 258.5 * MIB
    assert found.room.needed_bytes == 1024 * MIB
    assert found.served is None  # the engine's times are not those of its kernels
    without = checked("llama-server -m Meta-Llama-3-8B-Q4_K_M.gguf -ngl 99 -c 8192 -fa off").parts
    assert without is not None and without["activations"] == 512 * MIB  # 4 bytes of 32·512·8,192 scores


def test_a_cache_in_8_bits_and_experts_on_the_host():
    line = "llama-server -hf unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M -ngl 99 -c 32768"
    wide, narrow = checked(line).room, checked(line + " -ctk q8_0 -ctv q8_0").room
    assert wide is not None and narrow is not None
    assert narrow.needed_bytes / wide.needed_bytes == (34 / 32) / 2
    every, half = checked(line + " -cmoe").parts, checked(line + " --n-cpu-moe 24").parts
    all_here, moved = checked(line).parts, checked(line + " -ot ffn_.*_exps=CPU").parts
    assert every is not None and half is not None and all_here is not None and moved == every
    away = 48 * 128 * 3 * 2048 * 768 * in_file.BITS["q4_k_m"] / 8
    assert all_here["weights"] - every["weights"] == pytest.approx(away)
    assert all_here["weights"] - half["weights"] == pytest.approx(away / 2)


def test_layers_go_to_the_host_where_none_are_asked_for():
    """--fit is on unless layers are named; a context that is not named is lowered first."""
    line = "llama-server -m Llama-3.3-70B-Instruct-Q4_K_M.gguf -c 8192"
    asked, free = checked(line + " -ngl 99"), checked(line)
    assert (asked.verdict, free.verdict) == ("does not fit", "fits")
    assert "cudaMalloc failed: out of memory" in asked.refused[0].error
    layers = {one.name: one.value for one in free.assumed}["layers on the GPUs"]
    assert 30 < layers < 80
    both = checked(line.split(" -c ")[0], "rtx3090", 2)
    assert both.verdict == "fits" and both.launch is not None and both.launch.server is not None
    assert both.launch.server.pp == 2 and 4096 < both.launch.server.longest < 131072
    some = checked(line + " -ngl 20").parts
    whole = checked(line + " -ngl 99").parts
    assert some is not None and whole is not None and some["weights"] < 0.26 * whole["weights"]


def test_what_is_wrong_or_not_modelled():
    found = checked("llama-server -m Llama-3.1-8B-Q8_0.gguf -ngl many -ctk q9 --ctx-sise 4096")
    told = "\n".join(map(str, found.faults))
    assert "ngl must be a whole number, auto or all, got 'many'" in told
    assert "ctk must be one of f32, f16, bf16, q8_0" in told
    assert [one.why for one in found.ignored] == ["not known; did you mean ctx-size?"]
    for more in ("--mmproj m.gguf", "-md d.gguf", "-sm row", "-ts 3,1", "-ot blk.[0-9].ffn=CPU", "--rpc a:1"):
        assert checked(f"llama-server -m Llama-3.1-8B-Q8_0.gguf -ngl 99 {more}").verdict == "not modelled", (
            more
        )
    assert checked("llama-server -m Llama-3.1-8B-Q8_0.gguf -ngl 99 -ts 1,1", gpus=2).verdict == "fits"
    assert "no model is named" in str(checked("llama-server -c 4096").faults[-1])


def test_how_a_file_is_stored():
    for name, bits in {
        "Qwen3.5-397B-A17B-Q4_K_S.gguf": "q4_k_s",
        "unsloth/Qwen3-30B-A3B-GGUF:UD-Q4_K_XL": "q4_k_m",
        "gpt-oss-20b-mxfp4.gguf": "mxfp4",
        "m-IQ2_XXS-00001-of-00002.gguf": "iq2_xxs",
        "gemma3:27b-it-fp16": "fp16",
        "model.gguf": "",
    }.items():
        assert llamacpp.bits_of(name) == bits, name


def test_ollama_runs_with_as_many_layers_as_fit():
    """gemma3:27b-it-fp16 on two RTX 5090 starts (ollama/ollama issue 11162)."""
    texts = {
        "Modelfile": "FROM gemma3:27b-it-fp16\nPARAMETER num_ctx 8192\n",
        "run.sh": "ollama run gemma3:27b-it-fp16",
    }
    found = checked(texts, "rtx5090", 2)
    assert found.verdict == "fits" and found.launch is not None and found.launch.server is not None
    assert (found.launch.server.longest, found.launch.server.pp) == (8192, 2)
    assert found.parts is not None and found.parts["weights"] == pytest.approx(25.15 * GIB, rel=0.02)
    for name, key in {
        "llama3.1": "llama3.1-8b",
        "deepseek-r1:70b": "llama3.1-70b",
        "deepseek-r1:671b": "deepseek-v3",
        "qwen3:30b-a3b-q8_0": "qwen3-30b-a3b",
    }.items():
        launch = checked(f"ollama run {name}").launch
        assert launch is not None and launch.model.key == key
    forced = checked("FROM llama3.1:70b\nPARAMETER num_gpu 99\n")
    assert forced.verdict == "does not fit"
    assert "is not in the catalogue" in str(checked("ollama run nobody:7b").faults[-1])
