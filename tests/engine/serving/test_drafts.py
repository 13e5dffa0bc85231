"""Speculative decoding: the formula by hand, and what it comes to in a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.serving import decoding, drafts
from engine.step.layout import machine

H100, LLAMA = machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")


def test_speculative_decoding_by_hand():
    """a = 0.8, k = 4: 1 + 0.8 + 0.64 + 0.512 + 0.4096 = 3.3616 tokens; at 5 % a draft token 3.3616 / 1.2 =
    2.80."""
    assert drafts.tokens_per_verification(0.8, 4) == pytest.approx(3.3616)
    assert drafts.speculative_speed_up(0.8, 4, 0.05) == pytest.approx(3.3616 / 1.2)
    assert drafts.tokens_per_verification(0.0, 4) == 1 and drafts.tokens_per_verification(1.0, 4) == 5


@given(st.floats(0, 1), st.integers(0, 16))
def test_speculation_never_gives_less_than_one_token_nor_more_than_were_drafted(accepted, drafted):
    tokens = drafts.tokens_per_verification(accepted, drafted)
    assert 1 - 1e-9 <= tokens <= drafted + 1 + 1e-6
    assert tokens == pytest.approx(sum(accepted**i for i in range(drafted + 1)), rel=1e-6)


def test_a_lone_users_speculation_is_the_formulas_and_a_full_batchs_is_none():
    """One user checks four tokens in about the time of one: the formula, with the draft's own share of a
    step. With 256 users 1,024 tokens are checked, four critical batches, and nothing is gained."""
    draft = catalog.model("llama3.2-1b")
    share = (
        decoding.split(draft, H100, 8, 1.0, 2048.0).total_s
        / decoding.split(LLAMA, H100, 8, 1.0, 2048.0).total_s
    )
    gains = [
        drafts.speculative_gain(LLAMA, draft, H100, 8, users, 2048.0, 0.7, 3)
        for users in (1.0, 64.0, 128.0, 256.0)
    ]
    assert gains[0] == pytest.approx(
        drafts.speculative_speed_up(0.7, 3, share), rel=0.05
    )  # AllReduces of four rows
    assert gains == sorted(gains, reverse=True) and gains[-1] < 1


def test_a_check_reads_each_cache_once():
    """At 131,072 tokens the caches are most of a step; a check of four tokens of each user still takes hardly
    longer."""
    draft = catalog.model("llama3.2-1b")
    plain, own = (decoding.split(model, H100, 8, 4.0, 131072.0).total_s for model in (LLAMA, draft))
    assert drafts.speculative_gain(LLAMA, draft, H100, 8, 4.0, 131072.0, 0.7, 3) == pytest.approx(
        drafts.speculative_speed_up(0.7, 3, own / plain), rel=0.05
    )


def test_a_draft_that_is_never_right_only_costs():
    assert drafts.speculative_gain(LLAMA, catalog.model("llama3.2-1b"), H100, 8, 1.0, 1000.0, 0.0, 4) < 1
