"""A model on GPUs of one kind: the room worked by hand, and where narrow weights gain."""

import pytest

from engine import catalog
from engine.serving.hosted import Hosted

EIGHT_B = Hosted(catalog.model("llama3-8b"), catalog.gpu("h100-sxm"))
SEVENTY_B = Hosted(catalog.model("llama3-70b"), catalog.gpu("h100-sxm"))


def test_the_room_is_what_the_weights_leave_over_a_cache():
    # 80 GB less 2 for the framework and 8.03 · 2 of weights; 32 layers, keys and values, 8 heads of 128
    left, cache = 80e9 - 2e9 - 16.06e9, 32 * 2 * 8 * 128 * 2 * 4096
    assert EIGHT_B.room(4096, tp=1).users == int(left / cache) == 115


def test_fp8_makes_prompts_and_tokens_faster_and_four_bits_only_tokens():
    reads = {bits: SEVENTY_B.prompt(2048, weight_bytes=bits).total_s for bits in (2.0, 1.0, 0.5)}
    writes = {bits: SEVENTY_B.token(1, 2048, weight_bytes=bits).total_s for bits in (2.0, 1.0, 0.5)}
    assert reads[1.0] < reads[2.0] == reads[0.5]
    assert writes[0.5] < writes[1.0] < writes[2.0]


def test_prompts_that_are_read_together_take_no_longer_than_one_after_the_other():
    assert SEVENTY_B.prompt(2048, prompts=4).total_s < 4 * SEVENTY_B.prompt(2048).total_s


def test_a_full_replica_pays_a_prompt_for_every_answer():
    alone = EIGHT_B.kept_full(1, prompt=2048, output=256, tp=1)
    written = EIGHT_B.token(1, 2048 + 128, tp=1).total_s
    assert alone.token_s == pytest.approx(written + EIGHT_B.prompt(2048, tp=1).total_s / 256, rel=1e-9)
