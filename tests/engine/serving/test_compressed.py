"""A cache of compressed entries, held against what vLLM printed of it."""

import pytest

import engine
from engine import catalog
from engine.serving import compressed

GIB = 2.0**30


def test_the_groups_of_v4_flash_to_the_byte():
    """vllm-project/vllm issue 54703: 62 layers of entries and index keys in blocks of 1,002,240 bytes; a
    window in two groups, and two kinds of compressors."""
    found = compressed.blocks(catalog.model("deepseek-v4-flash"), 1.0)
    assert found.each_bytes == 1_002_240
    assert (found.windows, found.window, found.compressors) == (2, 128, ((8, 4), (128, 8)))
    assert compressed.aligned(64 * 584) * 22 == 823_680 and compressed.aligned(64 * 584) * 21 == 786_240


def test_a_request_of_v4_pro_needs_what_vllm_says():
    """23.32 GiB for 1,048,576 tokens with steps of 16,384 (vllm-project/vllm issue 53961)."""
    found = compressed.blocks(catalog.model("deepseek-v4-pro"), 1.0)
    blocks = 4096 + 2 * 515 + 8195 + 4113
    assert found.of_request(1_048_576, 16_384) == blocks
    assert blocks * found.each_bytes / GIB == pytest.approx(23.32, abs=0.005)
    assert found.of_request(100, 16_384) < 100


def test_a_server_with_such_a_cache():
    line = "vllm serve deepseek-ai/DeepSeek-V4-Pro -tp 8 --kv-cache-dtype fp8 --max-num-batched-tokens 16384"
    fits = engine.check_launch(line, "b200", 8)
    assert fits.verdict == "fits" and fits.room.needed_bytes / GIB == pytest.approx(23.32, abs=0.005)
    assert engine.check_launch(line, "mi300x", 8).verdict == "cannot say"
    wide = engine.check_launch(line.replace(" --kv-cache-dtype fp8", ""), "b200", 8)
    assert wide.verdict == "cannot say" and "fp8 alone" in wide.unmodelled[0].why
    short = engine.check_launch(line + " --gpu-memory-utilization 0.70", "b200", 8)
    assert short.room.longest < 1_048_576 and short.verdict == "does not fit"
    drafts = engine.check_launch(
        "vllm serve deepseek-ai/DeepSeek-V4-Flash -tp 4 --kv-cache-dtype fp8 "
        '--speculative-config \'{"method":"dspark"}\'',
        "h20",
        4,
    )
    assert drafts.verdict == "fits" and drafts.parts["drafts"] > 2 * GIB
