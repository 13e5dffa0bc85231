"""Time of layers that keep a state, or read what an indexer picks: at least that of their arithmetic, and of
what they move."""

import pytest

from engine import catalog
from engine.calibration import known
from engine.calibration.attention import rate_at
from engine.mechanism import matmul, mixing
from tests.cases import in_one_test


@in_one_test("key", ["qwen3-next-80b-a3b", "nemotron-3-super", "deepseek-v3.2"])
def test_a_long_sequence_takes_its_flops_at_the_rate_that_is_reached_or_moves_its_bytes(key):
    """On an H100: the longer of both, and a part of the other; twice as many sequences take twice as long,
    since a start of each kernel is nothing against 16,384 tokens."""
    mixer = next(g.attention for g in catalog.model(key).layers if hasattr(g.attention, "reading"))
    at = known.attention("prefill", "h100-sxm").rates
    four_s, eight_s = (mixing.sequence_s(mixer, n, 16384.0, 1.0, at) for n in (4.0, 8.0))
    work = mixer.reading(16384.0)
    flops_s = 4 * (work.flops + work.repeated_flops) / (mixer.reached * rate_at(at.flops_per_s, 128.0))
    moved_s = 4 * (work.moved_bytes + work.repeated_bytes) / at.memory_bytes_per_s
    assert max(flops_s, moved_s) < four_s < max(flops_s, moved_s) + 0.5 * min(flops_s, moved_s)
    assert eight_s == pytest.approx(2 * four_s, rel=0.02)


def test_a_token_reads_and_writes_a_state_of_each_sequence():
    """Qwen3-Next: 32 heads of 128 × 128 in fp32, there and back, 4 MiB a sequence; at 3.35 TB/s at the
    most."""
    mixer = catalog.model("qwen3-next-80b-a3b").layers[0].attention
    at = matmul.chip(catalog.gpu("h100-sxm"))
    one_s, two_s = (mixing.token_s(mixer, batch, 4096.0, 1.0, 2.0, at) for batch in (1024.0, 2048.0))
    moved = 2 * 4 * 32 * 128 * 128
    assert 1.0 < (two_s - one_s) / (1024 * moved / 3.35e12) < 1.3
