"""Linear attention run in two ways, and what the closed form of its cost says of both."""

import numpy as np
import pytest

from engine.catalog.mixers import CHUNK, LinearAttention
from engine.executed.delta_rule import in_chunks, token_by_token
from tests.said import refused


def drawn(tokens=200, keys=16, values=24, seed=5):
    """Queries, keys of length 1, values, decays and shares."""
    lot = np.random.default_rng(seed)
    key = lot.normal(size=(tokens, keys))
    key /= np.linalg.norm(key, axis=1, keepdims=True)
    query, value = lot.normal(size=(tokens, keys)), lot.normal(size=(tokens, values))
    return query, key, value, lot.uniform(0.9, 1.0, tokens), lot.uniform(0.1, 1.0, tokens)


@pytest.mark.parametrize("chunk", [1, 7, 64, 256])
def test_chunks_give_what_tokens_one_by_one_give(chunk):
    given = drawn()
    one, several = token_by_token(*given), in_chunks(*given, chunk=chunk)
    assert several.read == pytest.approx(one.read, abs=1e-9)
    assert several.state == pytest.approx(one.state, abs=1e-9)


def test_a_key_that_was_written_gives_its_value_back():
    """With a share of 1 and no decay the state gives for the last key what was written last, whatever was
    there."""
    key = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = token_by_token(key, key, np.array([[5.0], [7.0]]), np.ones(2), np.ones(2))
    assert found.read.ravel().tolist() == [5.0, 7.0]


def test_the_closed_form_counts_what_is_run():
    """One head of 128 by 128 over 640 tokens, in chunks of 64, and decoded token by token."""
    kind = LinearAttention(hidden=64, heads=1, key_heads=1, key_dim=128, value_dim=128)
    run = drawn(640, 128, 128)
    assert in_chunks(*run, chunk=int(CHUNK)).flops == pytest.approx(kind.reading(640.0).flops)
    assert token_by_token(*run).flops == 640 * kind.decoding(1.0).flops


def test_what_does_not_fit_together_is_refused():
    query, key, value, decay, share = drawn(8)
    with refused("tokens_of_decay", "8", "7"):
        token_by_token(query, key, value, decay[1:], share)
