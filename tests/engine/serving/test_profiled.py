"""What vLLM's profiling run finds, against its own logs."""

import pytest

import engine
from engine import catalog
from engine.frameworks import vllm
from engine.mechanism.shape import shape
from engine.serving import paged, profiled

GIB = 2.0**30
# GiB of activations in 0.19.0 on H100 with 8,192 tokens and 1,024 requests: llm-d-incubation/llm-d-planner
# accuracy/accuracy_report.md at 875a4fd6
MEASURED = {
    ("llama3.1-8b", 1): 1.89,
    ("llama3.1-8b", 4): 1.89,
    ("qwen2.5-7b", 1): 2.21,
    ("qwen3-8b", 1): 2.21,
    ("qwen3-14b", 1): 2.23,
    ("qwen3-30b-a3b", 1): 2.68,
    ("deepseek-v2-lite", 1): 1.93,
    ("gemma-7b", 1): 3.63,
    ("gemma2-27b", 1): 3.66,
    ("gemma3-27b", 1): 3.99,
    ("phi-4", 1): 1.52,
    ("gpt-oss-20b", 2): 2.87,
    ("mixtral-8x7b", 2): 1.21,
    ("llama4-scout", 4): 3.19,
}


@pytest.mark.parametrize(("key", "tp"), MEASURED)
def test_the_peak_of_the_run_is_that_of_the_logs(key, tp):
    found = profiled.peak_bytes(shape(catalog.model(key)), 8192, 1024, tp, profiled.PICKED) / GIB
    assert found == pytest.approx(MEASURED[key, tp], rel=0.1)


def test_sorted_logits_took_more():
    """Qwen3-14B: 5.64 GiB in 0.15 and 0.16, 2.23 GiB in 0.17 (the same report, Part 2). Llama 3 8B with 256
    requests: 1.26 GiB (vllm-project/vllm pull request 10511)."""
    size = shape(catalog.model("qwen3-14b"))
    before = profiled.peak_bytes(size, 8192, 1024, 1, profiled.SORTED) / GIB
    assert before == pytest.approx(5.64, rel=0.02)
    llama = profiled.peak_bytes(shape(catalog.model("llama3-8b")), 8192, 256, 1, profiled.SORTED) / GIB
    assert llama == pytest.approx(1.26, rel=0.05)


def test_a_layer_s_inside_decides_where_few_are_sampled():
    """By hand: one request, 20,000 tokens of Llama 3.1 8B. 2 bytes of 3·14,336 + 3·4,096 values a token."""
    found = profiled.peak_bytes(shape(catalog.model("llama3.1-8b")), 20000, 1, 1, profiled.SORTED)
    assert found == 20000 * 2 * (3 * 14336 + 3 * 4096) + profiled.FIXED_BYTES


def test_blocks_of_attention_are_as_large_as_a_state():
    """Qwen3.6-27B: 784 tokens of 4,096 bytes beside states of 3.2 MB, 16 layers a block; three such blocks
    for each request. One H100 with 0.95 has 856 of them (vllm-project/recipes pull request 551)."""
    of = paged.blocks(shape(catalog.model("qwen3.6-27b")), 2.0, 1.0, 1.0)
    assert (of.tokens, of.attention, of.states) == (784, 1, 3)
    assert of.each_bytes == 784 * 4096 * 16
    assert of.of_request(785) == 2 + 3
    line = "vllm serve Qwen/Qwen3.6-27B-FP8 --gpu-memory-utilization 0.95"
    found = engine.check_launch(line, "h100-sxm")
    assert found.verdict == "does not fit" and found.room is not None
    assert found.room.blocks == pytest.approx(856, rel=0.04)
    assert "exceeds available Mamba cache blocks" in found.refused[0].error
    assert engine.check_launch(line + " --max-num-seqs 512", "h100-sxm").verdict == "fits"
    assert not paged.has_states(shape(catalog.model("llama3.1-8b")))


def test_tokens_of_a_cache_with_states():
    """377,456 tokens on two RTX 5090 (vllm-project/recipes pull request 810)."""
    line = "vllm serve Qwen/Qwen3.8-27B-FP8 --tensor-parallel-size 2 --max-model-len 262144"
    found = engine.check_launch(line, "rtx5090", 2)
    assert found.room is not None and found.room.tokens == pytest.approx(377456, rel=0.04)


def test_the_release_decides():
    """2.23 and 5.64 GiB of the same model, and graphs that count to the share since 0.21."""
    line = "vllm serve Qwen/Qwen3-14B --max-model-len 8192"
    parts = {
        text: engine.check_launch(text + line, "h100-sxm").parts or {}
        for text in ("", "pip install vllm==0.19.0\n", "pip install 'vllm==0.16.0'\n", "VLLM_USE_V1=0 ")
    }
    newest, nineteen, sixteen, first = parts.values()
    assert newest["activations"] == nineteen["activations"] < 0.5 * sixteen["activations"]
    assert "graphs" in newest and "graphs" not in nineteen
    assert first["activations"] < sixteen["activations"]  # 256 requests
    wrong = engine.check_launch("pip install vllm==latest\n" + line, "h100-sxm")
    assert "'latest' is no release: write vllm==0.8.5" in str(wrong.faults[0])
    old = engine.check_launch("vllm serve Qwen/Qwen3-14B --swap-space 4", "h100-sxm").launch
    assert old is not None and old.server is not None and old.server.release == (0, 17)


def test_the_card_decides_how_much_a_step_has():
    """vllm-project/vllm pull requests 12369 and 17885, issue 53961."""
    asked = {"h100-sxm": (8192, 1024), "a100-80": (2048, 256), "rtx4090": (2048, 256), "b200": (16384, 1024)}
    asked["mi300x"] = (8192, 1024)
    for gpu, (chunk, requests) in asked.items():
        launch = engine.check_launch("vllm serve Qwen/Qwen3-8B", gpu).launch
        assert launch is not None and launch.server is not None
        assert (launch.server.chunk, launch.server.requests) == (chunk, requests), gpu
    few = engine.check_launch("vllm serve Qwen/Qwen3-8B --max-num-seqs 1 --max-model-len 1024", "rtx4090")
    assert few.launch is not None and few.launch.server is not None and few.launch.server.chunk == 1024


def test_graphs_of_fewer_sizes_take_less():
    assert [vllm.sizes_of(most) for most in (1, 2, 4, 8, 256, 512)] == [1, 2, 3, 4, 35, 51]
    eager = engine.check_launch("vllm serve Qwen/Qwen3-8B --enforce-eager", "rtx4090").parts
    assert eager is not None and eager["graphs"] == 0.0


def test_weights_on_the_host():
    """DeepSeek-V2-Lite takes 14 GiB less of the GPU with --cpu-offload-gb 14."""
    line = "vllm serve deepseek-ai/DeepSeek-V2-Lite-Chat --enforce-eager"
    whole, parted = (engine.check_launch(line + more, "rtx3090") for more in ("", " --cpu-offload-gb 14"))
    assert whole.parts is not None and parted.parts is not None
    assert whole.parts["weights"] - parted.parts["weights"] == 14 * GIB
    assert (whole.verdict, parted.verdict) == ("does not fit", "fits")
