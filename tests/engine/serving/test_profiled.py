"""What vLLM's profiling run finds, against its own logs."""

import pytest

import engine
from engine import catalog
from engine.frameworks import vllm
from engine.mechanism.shape import shape
from engine.serving import draft_memory, paged, pictures, profiled
from engine.validation import launch_cases

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
    assert found.room is not None and found.room.tokens == pytest.approx(377456, rel=0.1)


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


# -- pictures ------------------------------------------------------------------------------------------------
def test_a_tower_that_reads_pictures():
    """Qwen3-VL: the largest picture has 16,384 tokens of four patches. By hand for one rank: 2·(2·4,304 +
    4·1,152 + 6·16·16) bytes a patch. Half a million pixels of 16·16·4 are 512 tokens."""
    tower = catalog.model("qwen3-vl-8b").tower
    assert tower is not None and catalog.model("qwen3-8b").tower is None
    assert pictures.tokens(tower, 2048, 0.0) == 16384 and pictures.tokens(tower, 2048, 2**19) == 2048
    assert pictures.tokens(tower, 100, 2**19) == 512
    assert pictures.read_bytes(tower, 16384, 1) == 4 * 16384 * 2 * (2 * 4304 + 4 * 1152 + 6 * 16**2)
    assert pictures.kept_bytes(tower, 16384, 4096) == 16384 * 4096 * 2 * 4
    for text, image, video in (
        ("image=0,video=0", False, False),
        ('{"image": 0, "video":0}', False, False),
        ("image=1,video=0", True, False),
        ("image=0", False, True),
        ("", True, True),
    ):
        assert (pictures.allowed(text, "image"), pictures.allowed(text, "video")) == (image, video)
    assert pictures.pixels_of('{"max_pixels": 1048576}') == 1048576 and pictures.pixels_of("{}") == 0


def test_a_video_as_long_as_the_context():
    """Qwen2.5-VL 7B with its 128,000 tokens: 98,304 in 0.8.1 (vllm-project/vllm issue 15264) and 114,688 in
    0.23. That log has -14.28 GiB left of 0.22 of an A100, with 15.67 of weights and 0.53 of graphs: the rest,
    15.5 GiB, is what the run took. Qwen3-VL's is no longer than a picture, but for 0.11."""
    tower = catalog.model("qwen2.5-vl-7b").tower
    assert tower is not None
    for context, pixels, release, read in (
        (128000, 0.0, (0, 8), 98304),
        (128000, 0.0, (0, 23), 114688),
        (1_000_000, 0.0, (0, 23), 131072),  # sixteen frames
        (128000, 14 * 14 * 4 * 1000, (0, 23), 8000),
        (8192, 0.0, (0, 23), 0),
        (128000, 0.0, (0, 7), 0),
    ):
        assert pictures.video_tokens("qwen2.5-vl-7b", tower, context, pixels, release) == read
    for release, read in (((0, 11), 114688), ((0, 12), 0)):
        assert pictures.video_tokens("qwen3-vl-8b", tower, 128000, 0.0, release) == read
    line = "pip install vllm==0.23.0\nvllm serve Qwen/Qwen2.5-VL-7B-Instruct --gpu-memory-utilization 0.22"
    found = engine.check_launch(line, "a100-80")
    assert found.verdict == "does not fit" and found.parts is not None
    taken = found.parts["activations"] + found.parts["framework"]
    assert taken / GIB == pytest.approx(0.22 * 79.25 - 15.67 - 0.53 + 14.28, rel=0.03)
    without = engine.check_launch(line + " --limit-mm-per-prompt '{\"video\": 0}'", "a100-80").parts
    assert without is not None and without["activations"] < 0.2 * found.parts["activations"]


def test_what_pictures_add_and_what_turns_them_off():
    line = "vllm serve Qwen/Qwen3-VL-8B-Instruct --max-model-len 8192"
    options = ("", " --limit-mm-per-prompt image=0,video=0", " --language-model-only")
    reads, none, text = ((engine.check_launch(line + more, "rtx5090").parts or {}) for more in options)
    assert reads["activations"] > 2 * none["activations"] and none["activations"] == text["activations"]
    assert none["weights"] - text["weights"] == 2 * 576388336
    few = engine.check_launch(line + " --mm-processor-kwargs '{\"max_pixels\": 524288}'", "rtx5090").parts
    assert few is not None and few["activations"] < reads["activations"]
    four = "vllm serve Qwen/Qwen3-VL-32B-Instruct -tp 4"
    cut, whole = (engine.check_launch(four + m, "h100-sxm").parts for m in ("", " --mm-encoder-tp-mode data"))
    assert cut is not None and whole is not None
    assert whole["weights"] - cut["weights"] == pytest.approx(2 * 0.75 * 595266800)


def test_a_verdict_that_twice_as_much_would_turn_is_none():
    """gemma-3-27b in 4 bits on 24 GB (vllm-project/vllm issue 16199), and what has no count at all."""
    line = "VLLM_USE_V1=0 vllm serve gaunernst/gemma-3-27b-it-int4-awq --max-model-len 4096"
    line += " --gpu-memory-utilization 0.98"
    found = engine.check_launch(line, "a10g")
    assert found.verdict == "cannot say" and "factor of two" in found.unmodelled[0].why
    eleven = engine.check_launch("vllm serve meta-llama/Llama-3.2-11B-Vision-Instruct", "a100-80")
    assert eleven.verdict == "cannot say" and "eight layers" in eleven.unmodelled[0].why


def test_pictures_that_some_layers_attend_to():
    """Llama 3.2 11B Vision reads a picture for each of 256 requests while it profiles: out of memory on four
    A100 (vllm-project/vllm issue 8903), an H100 of 96 GB (9630) and one A100, where 32 requests were few
    enough (9445). By hand for each of a picture's 6,432 patches on one rank: 2·(2·5,120 + 4·1,280) bytes in a
    layer, 2·(11·1,280 + 6,432) beside it."""
    tower = pictures.CROSSED["llama3.2-11b-vision"]
    assert pictures.crossed_bytes(tower, 2, 1) == (
        2 * 6432 * 2 * (2 * 5120 + 4 * 1280),
        2 * 6432 * 2 * (11 * 1280 + 6432),
    )
    line = (
        "pip install vllm==0.6.3\nvllm serve meta-llama/Llama-3.2-11B-Vision-Instruct --max-model-len 4096 "
    )
    for gpu, more, gpus in (("a100-80", "--enforce-eager -tp 4", 4), ("h20", "", 1), ("a100-80", "", 1)):
        assert engine.check_launch(line + more, gpu, gpus).verdict == "does not fit", (gpu, more)
    few = engine.check_launch(line + "--max-num-seqs 32 --enforce-eager", "a100-80", 1)
    assert few.verdict == "cannot say" and "cached of these" in few.unmodelled[0].why  # and not that it fails


def test_the_second_engine_made_the_logits_of_all_tokens():
    """vLLM 0.7 with VLLM_USE_V1=1: a 32B in 4 bits on four cards of 8 GB fails with 12K tokens a step, and 3K
    are the most (vllm-project/vllm issue 12529). By hand for two tokens and four ranks: a quarter of 152,064
    logits, all of them twice, and 5,120 values of the last layer."""
    size = shape(catalog.model("qwen2.5-32b"))
    assert profiled.all_logits_bytes(size, 2, 4) == 2 * 2 * (2.25 * 152064 + 5120)
    assert profiled.all_logits_bytes(size, 2, 1) == 2 * 2 * (152064 + 5120)
    case = launch_cases.strangers()["vllm-k8s-qwen2.5-coder-32b-gptq-4x3070"]
    for most, verdict in (("12K", "does not fit"), ("6K", "does not fit"), ("3K", "fits")):
        texts = {name: text.replace("tokens=12K", f"tokens={most}") for name, text in case["texts"].items()}
        assert engine.check_launch(texts, launch_cases.gpu_of(case), 4).verdict == verdict
    later = {name: text.replace("v0.7.0", "v0.8.0") for name, text in case["texts"].items()}
    found = engine.check_launch(later, launch_cases.gpu_of(case), 4)
    assert found.parts is not None and found.parts["activations"] < 2 * GIB


def test_stages_that_are_not_even():
    """VLLM_PP_LAYER_PARTITION=16,32: the second has two thirds of weights and cache."""
    line = "vllm serve Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8 --pipeline-parallel-size 2 --max-model-len 32768"
    even, uneven = (
        engine.check_launch(at + line, "rtx5090", 2) for at in ("", "VLLM_PP_LAYER_PARTITION=16,32 ")
    )
    assert even.parts is not None and uneven.parts is not None and even.room and uneven.room
    assert uneven.parts["weights"] == pytest.approx(even.parts["weights"] * 4 / 3)
    assert uneven.room.needed_bytes == pytest.approx(even.room.needed_bytes * 4 / 3)
    wrong = engine.check_launch("VLLM_PP_LAYER_PARTITION=16,30 " + line, "rtx5090", 2)
    assert "sum(partitions)=46 does not match 48" in wrong.refused[0].error


# -- what is stored, and other servers -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("line", "gpus", "gib"),
    [
        ("meta-llama/Meta-Llama-3.1-405B-Instruct-FP8 --tensor-parallel-size 8", 8, 57.75),  # issue 6746
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", 1, 67.72),  # pull request 12569
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", 1, 29.09),  # issue 25350
        ("Qwen/Qwen2.5-VL-72B-Instruct --tensor-parallel-size 4", 4, 34.43),  # issue 16570
        ("Qwen/Qwen3.8-27B-FP8 --tensor-parallel-size 2", 2, 14.28),  # vllm-project/recipes 810
        ("gaunernst/gemma-3-27b-it-int4-awq", 1, 17.6),  # issue 16199
    ],
)
def test_weights_are_those_of_the_logs(line, gpus, gib):
    found = engine.check_launch(f"vllm serve {line}", "h100-sxm", gpus).parts
    assert found is not None and found["weights"] / GIB == pytest.approx(gib, rel=0.04)


def test_sglang_s_share_by_the_card():
    """0.847 on an RTX 4090: 512 + 2,048·1.5 + 24·2 + 128 of 24,564 MiB. On an H100 its issue 29092
    has 0.828, and this 0.835."""
    for gpu, share in (("rtx4090", 0.847), ("h100-sxm", 0.835)):
        launch = engine.check_launch("python -m sglang.launch_server --model-path Qwen/Qwen3-8B", gpu).launch
        assert launch is not None and launch.server is not None and launch.server.share == share
    said = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --mem-fraction-static 0.7"
    launch = engine.check_launch(said, "h100-sxm").launch
    assert launch is not None and launch.server is not None and launch.server.share == 0.7


def test_sglang_s_steps_have_to_do_with_what_its_share_leaves():
    """0.97 of an H100 leaves 2.4 GiB. A step of 32,768 tokens of Qwen3-8B takes 3.0, 2 bytes each of three
    times 12,288 and three times 4,096 values, with 0.5 of graphs and 0.085 of buffers beside it; one of 4,096
    an eighth of that."""
    size = shape(catalog.model("qwen3-8b"))
    by_hand = 32768 * 2 * (3 * 12288 + 3 * 4096) + profiled.FIXED_BYTES
    assert profiled.step_bytes(size, 32768.0, 1.0) == pytest.approx(by_hand)
    line = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --mem-fraction-static 0.97"
    long = engine.check_launch(f"{line} --chunked-prefill-size 32768", "h100-sxm")
    assert long.verdict == "does not fit" and "out of memory" in long.refused[0].error
    assert engine.check_launch(f"{line} --chunked-prefill-size 4096", "h100-sxm").verdict == "fits"
    whole = engine.check_launch(f"{line} --chunked-prefill-size -1", "h100-sxm").launch
    assert whole is not None and whole.server is not None and whole.server.chunk == 16384


def test_a_flag_may_be_cut_short():
    """--tensor_parallel 2 (vllm-project/vllm issue 28228)."""
    launch = engine.check_launch("vllm serve Qwen/Qwen3-8B --tensor_parallel 2", "rtx3090", 2).launch
    assert launch is not None and launch.server is not None and launch.server.tp == 2
    near = engine.check_launch("vllm serve Qwen/Qwen3-8B --tensor-paralel-size 2", "rtx3090", 2).faults
    assert "did you mean tensor-parallel-size?" in str(near[0])


def test_chat_models_of_qwen_2_5_take_fewer_tokens():
    for name, most in (
        ("Qwen2.5-32B", 131072),
        ("Qwen2.5-32B-Instruct-AWQ", 32768),
        ("Qwen2.5-VL-7B", 128000),
    ):
        launch = engine.check_launch(f"vllm serve Qwen/{name}", "h200").launch
        assert launch is not None and launch.server is not None and launch.server.longest == most


def test_what_vllm_lays_out_in_its_own_way_gets_no_verdict():
    """DeepSeek-V4's cache (vllm-project/vllm issue 53961), the second sampler (pull request 48601), and
    as many requests as there are blocks for states, give or take a fifth (vllm-project/recipes 831)."""
    for line, gpu, gpus, why in (
        ("vllm serve deepseek-ai/DeepSeek-V4-Pro -tp 8 --kv-cache-dtype fp8", "mi300x", 8, "compressed"),
        ("VLLM_USE_V2_MODEL_RUNNER=1 vllm serve Qwen/Qwen3.6-27B-FP8 -tp 4", "h100-sxm", 4, "second runner"),
        ("vllm serve Qwen/Qwen3.8-27B-FP8", "rtx-pro-6000", 1, "known to a fifth"),
    ):
        found = engine.check_launch(line, gpu, gpus)
        assert found.verdict == "cannot say" and why in found.unmodelled[0].why
    few = engine.check_launch("vllm serve Qwen/Qwen3.8-27B-FP8 --max-num-seqs 512", "rtx-pro-6000", 1)
    assert few.verdict == "fits"


# -- what drafts tokens --------------------------------------------------------------------------------------
def test_a_module_of_deepseek_v3_has_11_5_billion_parameters():
    """As its repository's README_WEIGHTS.md counts it without embedding and output layer."""
    found = draft_memory.module_bytes(catalog.model("deepseek-v3"), 1.0, 1.0)
    assert found == pytest.approx(11.5e9, rel=0.01)


def test_what_drafts_take():
    """N-grams nothing; a module a layer and its cache; another model its weights and its cache."""
    line = "vllm serve deepseek-ai/DeepSeek-V3.1 -tp 8"
    bare, grams, own = (
        engine.check_launch(line + more, "h200", 8)
        for more in (
            "",
            ' --speculative-config \'{"method": "ngram", "num_speculative_tokens": 4}\'',
            ' --speculative-config \'{"method": "mtp", "num_speculative_tokens": 1}\'',
        )
    )
    assert bare.parts is not None and grams.parts == bare.parts and own.parts is not None
    assert own.parts["drafts"] == pytest.approx(11.5e9 / 8, rel=0.02) and own.served is None
    assert own.room and bare.room and own.room.needed_bytes == pytest.approx(bare.room.needed_bytes * 62 / 61)
    other = 'vllm serve Qwen/Qwen3-32B --speculative-config \'{"model": "Qwen/Qwen3-0.6B"}\''
    found = engine.check_launch(other, "h100-sxm")
    assert found.parts is not None and found.room is not None
    assert found.launch is not None and found.launch.server is not None
    assert found.parts["drafts"] == 2 * catalog.model("qwen3-0.6b").total_params
    assert found.room.needed_bytes == 2 * 2 * 8 * 128 * (64 + 28) * found.launch.server.longest
    for more, why in (
        ('{"method": "eagle3", "model": "some/head"}', "draft"),
        ('{"method": "mtp"}', "draft"),
    ):
        unknown = engine.check_launch(f"vllm serve Qwen/Qwen3-32B --speculative-config '{more}'", "h100-sxm")
        assert unknown.verdict == "cannot say" and why in unknown.unmodelled[0].why
    wrong = engine.check_launch("vllm serve Qwen/Qwen3-32B --speculative-config eagle", "h100-sxm")
    assert "speculative-config must be an object in JSON, got 'eagle'" in str(wrong.faults[0])


def test_a_cache_of_a_given_size():
    line = "vllm serve Qwen/Qwen3-8B --max-model-len 4096 --kv-cache-memory-bytes"
    small, large = (engine.check_launch(f"{line} {size}", "rtx4090") for size in (2**30, 2**34))
    assert small.room is not None and small.room.cache_bytes == 2**30 and small.verdict == "fits"
    assert large.verdict == "does not fit" and "out of memory" in large.refused[0].error


def test_what_is_shrunk_to_fp8_was_loaded_whole_until_2026():
    """70B in 16 bits are 131 GiB, which no H100 has, in fp8 67 (vllm-project/vllm pull request 31914)."""
    line = "vllm serve meta-llama/Llama-3.1-70B-Instruct --quantization fp8 --max-model-len 2048"
    line += " --gpu-memory-utilization 0.97 --max-num-seqs 16 --enforce-eager"
    now = engine.check_launch(line, "h100-sxm")
    before = engine.check_launch("pip install vllm==0.11.0\n" + line, "h100-sxm")
    shrunk = "pip install vllm==0.11.0\n" + line.replace("Instruct ", "Instruct-FP8 ")
    stored = engine.check_launch(shrunk, "h100-sxm")
    assert (now.verdict, before.verdict, stored.verdict) == ("fits", "does not fit", "fits")
    assert "out of memory" in before.refused[0].error


def test_a_release_that_does_not_know_a_model_has_its_experts_whole():
    """Qwen3-VL came with 0.11; a week before, the log showed the model of transformers (QwenLM/Qwen3-VL issue
    1489). Of 235 billion parameters each of eight ranks then has all experts; a dense one is cut as ever."""
    line = "pip install vllm==0.{}\nvllm serve Qwen/Qwen3-VL-235B-A22B-Instruct -tp 8 --max-model-len 8192"
    before, since = (engine.check_launch(line.format(each), "h200", 8) for each in ("10.2", "11.0"))
    assert before.room.parts["weights"] > 7 * since.room.parts["weights"] and not before.fits and since.fits
    dense = "pip install vllm==0.10.2\nvllm serve Qwen/Qwen3-VL-8B-Instruct -tp 2 --max-model-len 8192"
    assert engine.check_launch(dense, "h200", 2).fits
