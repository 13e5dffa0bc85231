"""Attention over cut sequences: executed, it equals attention over everything and obeys the closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.executed import ring_attention
from engine.mechanism import context_parallel, online_softmax
from engine.mechanism.context_parallel import CONTIGUOUS, FULL, ZIGZAG
from tests.cases import in_one_test
from tests.said import refused

LLAMA = catalog.model("llama3.1-405b")
# float64 sums of up to 64 terms around 5: a few units in the last place, 1e-15 each
SAME = 1e-13


def arrays(heads=4, tokens=16, kv_heads=2, dim=4, seed=0):
    draw = np.random.default_rng(seed).normal
    return (
        draw(size=(heads, tokens, dim)),
        draw(size=(kv_heads, tokens, dim)),
        draw(size=(kv_heads, tokens, dim)),
    )


def by_hand(q, k, v, causal):
    """One softmax a query, written out."""
    out = np.zeros((len(q), q.shape[1], v.shape[-1]))
    for head in range(len(q)):
        shared = head * len(k) // len(q)
        for i in range(q.shape[1]):
            last = i + 1 if causal else q.shape[1]
            weights = np.exp(q[head, i] @ k[shared, :last].T / q.shape[-1] ** 0.5)
            out[head, i] = weights @ v[shared, :last] / weights.sum()
    return out


# -- the running softmax -------------------------------------------------------------------------------------
def test_two_keys_by_hand():
    """Scores 0 and ln 3, values 4 and 8: weights 1/4 and 3/4, so 7; relative to the larger score 1/3 and 1,
    sum 4/3."""
    q, seen = np.array([[1.0]]), np.array([[True]])
    first = online_softmax.of_keys(q, np.array([[0.0]]), np.array([[4.0]]), seen)
    second = online_softmax.of_keys(q, np.array([[np.log(3)]]), np.array([[8.0]]), seen)
    both = online_softmax.joined(first, second)
    assert both.maximum == pytest.approx(np.log(3)) and both.total == pytest.approx(4 / 3)
    assert online_softmax.output(both) == pytest.approx(7)


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(1, 11), seed=st.integers(0, 50), scale=st.sampled_from([1.0, 30.0]))
def test_parts_join_in_any_order_and_cut(cut, seed, scale):
    q, k, v = (array[0] for array in arrays(1, 12, 1, seed=seed))
    q, seen = q * scale, np.ones((12, 12), dtype=bool)  # scaled scores would overflow without the maximum
    parts = [
        online_softmax.of_keys(q, k[keys], v[keys], seen[:, keys]) for keys in (slice(0, cut), slice(cut, 12))
    ]
    whole = online_softmax.output(online_softmax.of_keys(q, k, v, seen))
    for one, other in (parts, parts[::-1]):
        assert np.allclose(online_softmax.output(online_softmax.joined(one, other)), whole, atol=SAME)


def test_joining_is_associative_and_nothing_changes_nothing():
    q, k, v = (array[0] for array in arrays(1, 12, 1))
    a, b, c = (
        online_softmax.of_keys(q, k[i : i + 4], v[i : i + 4], np.ones((12, 4), dtype=bool)) for i in (0, 4, 8)
    )
    left = online_softmax.joined(online_softmax.joined(a, b), c)
    right = online_softmax.joined(a, online_softmax.joined(b, c))
    assert all(np.allclose(one, other, atol=SAME) for one, other in zip(left, right))
    same = online_softmax.joined(online_softmax.nothing(12, 4), a)
    assert all((one == other).all() for one, other in zip(same, a))


def test_a_query_that_sees_no_key_has_nothing_and_puts_out_zero():
    q, k, v = (array[0] for array in arrays(1, 4, 1))
    hidden = online_softmax.of_keys(q, k, v, np.zeros((4, 4), dtype=bool))
    assert (
        np.isneginf(hidden.maximum).all()
        and not hidden.total.any()
        and not online_softmax.output(hidden).any()
    )


def test_attention_at_once_is_the_softmax_written_out():
    for causal in (True, False):
        assert np.allclose(ring_attention.attention(*arrays(), causal), by_hand(*arrays(), causal), atol=SAME)


# -- the ring ------------------------------------------------------------------------------------------------
@in_one_test("order", context_parallel.ORDERS)
@in_one_test("count", [1, 2, 4, 8])
def test_a_ring_equals_attention_over_everything(count, order):
    run = ring_attention.ring(*arrays(), count, order)
    assert np.allclose(run.output(count), by_hand(*arrays(), order != FULL), atol=SAME)
    assert run.differences[-1] < SAME and run.differences[0] == np.abs(run.dense).max()


def test_zigzag_gives_each_rank_an_early_and_a_late_chunk():
    run = ring_attention.ring(*arrays(), 4, ZIGZAG)
    assert run.positions.tolist() == [[0, 1, 14, 15], [2, 3, 12, 13], [4, 5, 10, 11], [6, 7, 8, 9]]
    assert (
        ring_attention.ring(*arrays(), 4, CONTIGUOUS).positions.tolist()
        == np.arange(16).reshape(4, 4).tolist()
    )


def test_the_work_of_four_ranks_by_hand():
    """Blocks of 4 tokens: 10 pairs on the diagonal, 16 or none off it; zig-zag always 8."""
    contiguous, zigzag = (
        ring_attention.ring(*arrays(), 4, order).pairs.tolist() for order in (CONTIGUOUS, ZIGZAG)
    )
    assert contiguous == [[10, 10, 10, 10], [0, 16, 16, 16], [0, 0, 16, 16], [0, 0, 0, 16]]
    assert zigzag == [[10] * 4, [8] * 4, [8] * 4, [8] * 4]


@in_one_test("order", context_parallel.ORDERS)
@in_one_test("count, block", [(1, 4), (2, 6), (4, 4), (5, 2), (8, 2)])
def test_closed_forms_count_what_the_run_did(count, block, order):
    q, k, v = arrays(tokens=count * block)
    run = ring_attention.ring(q, k, v, count, order)
    step, rank = np.arange(count)[:, None], np.arange(count)
    assert (context_parallel.block_owner(rank, step, count) == run.blocks).all()
    assert (context_parallel.block_pairs(rank, step, count, block, order) == run.pairs).all()
    assert (context_parallel.step_pairs(step[:, 0], count, block, order) == run.pairs.max(axis=1)).all()
    assert context_parallel.ring_busy_share(count, block, order) == pytest.approx(
        run.pairs.sum() / (count * run.pairs.max(axis=1).sum())
    )
    assert (run.sent_bytes == context_parallel.ring_sent_bytes(count * block, count, 2, 4)).all()


def test_contiguous_causal_blocks_idle_half_the_ring_and_zigzag_none_of_it():
    assert [context_parallel.ring_busy_share(n, 1e6, CONTIGUOUS) for n in (2, 4, 16)] == pytest.approx(
        [2 / 3, 4 / 7, 16 / 31], abs=1e-5
    )
    assert (
        context_parallel.ring_busy_share(16, 4096, ZIGZAG)
        == 1
        == context_parallel.ring_busy_share(16, 4096, FULL)
    )


# -- Ulysses -------------------------------------------------------------------------------------------------
@in_one_test("causal", [True, False])
@in_one_test("count, kv_heads", [(1, 1), (2, 2), (4, 4), (4, 8)])
def test_ulysses_equals_attention_over_everything(count, kv_heads, causal):
    q, k, v = arrays(heads=8, kv_heads=kv_heads)
    run = ring_attention.ulysses(q, k, v, count, causal)
    assert np.allclose(run.result, by_hand(q, k, v, causal), atol=SAME) and run.max_difference < SAME
    assert run.sent_bytes == pytest.approx(context_parallel.ulysses_sent_bytes(16, count, 8, kv_heads, 4))


def test_ulysses_stops_at_the_heads():
    with pytest.raises(ValueError, match="kv_heads must be a multiple of 4, got 2"):
        ring_attention.ulysses(*arrays(), 4)
    assert context_parallel.ulysses_most_ranks(LLAMA.kv_heads) == 8
    assert context_parallel.ulysses_most_ranks(LLAMA.kv_heads, tensor=8) == 1


def test_a_ring_sends_n_over_two_times_as_much_and_less_with_few_key_heads():
    assert context_parallel.ring_over_ulysses(8, 96, 96) == 4
    q, k, v = arrays(heads=8, kv_heads=4)
    ring, swap = ring_attention.ring(q, k, v, 4, FULL), ring_attention.ulysses(q, k, v, 4, False)
    assert ring.sent_bytes / swap.sent_bytes == pytest.approx(context_parallel.ring_over_ulysses(4, 8, 4))
    assert context_parallel.ring_over_ulysses(16, LLAMA.heads, LLAMA.kv_heads) == pytest.approx(16 / 17)


# -- overlap -------------------------------------------------------------------------------------------------
def test_what_hides_a_block_by_hand():
    """989 TFLOP/s over 50 GB/s: 19,780 tokens for full blocks; 16 queries a key head divide it, zig-zag
    doubles it."""
    assert context_parallel.hidden_from_tokens(96, 96, 989e12, 50e9, FULL) == pytest.approx(19780)
    assert context_parallel.hidden_from_tokens(128, 8, 989e12, 50e9, FULL) == pytest.approx(19780 / 16)
    assert context_parallel.hidden_from_tokens(128, 8, 989e12, 50e9, ZIGZAG) == pytest.approx(19780 / 8)


@pytest.mark.parametrize("order", [FULL, ZIGZAG])
def test_at_the_threshold_attention_is_as_long_as_the_message(order):
    block = context_parallel.hidden_from_tokens(128, 8, 600e12, 46e9, order)
    pairs = context_parallel.block_pairs(3, 1, 16, block, order)
    compute_s = context_parallel.attention_s(pairs, 128, 128, 600e12)
    assert compute_s == pytest.approx(context_parallel.kv_block_bytes(block, 8, 128) / 46e9)


@pytest.mark.parametrize("order", [FULL, ZIGZAG])
def test_at_the_threshold_with_latency_attention_is_as_long_as_the_whole_message(order):
    block = context_parallel.hidden_from_tokens_with_latency(128, 8, 128, 600e12, 46e9, 20e-6, order)
    compute_s = context_parallel.attention_s(
        context_parallel.block_pairs(3, 1, 16, block, order), 128, 128, 600e12
    )
    kv_bytes = context_parallel.kv_block_bytes(block, 8, 128)
    assert compute_s == pytest.approx(context_parallel.message_s(kv_bytes, 46e9, 20e-6))
    assert block > context_parallel.hidden_from_tokens(128, 8, 600e12, 46e9, order)


def test_without_latency_the_two_thresholds_agree():
    block = context_parallel.hidden_from_tokens_with_latency(128, 8, 128, 989e12, 50e9, 0.0, ZIGZAG)
    assert block == pytest.approx(19780 / 8)


def test_a_step_waits_for_the_longer_and_the_last_for_no_message():
    assert context_parallel.ring_step_s(np.arange(3), 3, 2.0, 5.0).tolist() == [5.0, 5.0, 2.0]
    assert context_parallel.ring_step_s(np.arange(3), 3, 5.0, 2.0).tolist() == [5.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ring_attention.ring(*arrays(), 8, 3), ("order", "0, 1, 2", "3")),
        (lambda: ring_attention.ring(*arrays(tokens=12), 4, ZIGZAG), ("tokens", "8", "12")),
        (lambda: ring_attention.ring(*arrays(heads=3), 2), ("heads", "2", "3")),
        (lambda: context_parallel.block_pairs(0, 0, 4, 0, FULL), ("block", "0", "0")),
        (lambda: context_parallel.hidden_from_tokens(8, 8, 0, 1, FULL), ("flops_per_s", "0", "0")),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()


def test_the_example_has_scores_in_halves_and_digits_for_values():
    q, k, v = ring_attention.example(1, 32)
    scores = 2 * (q[0] @ k[0].T / 2)
    assert (scores == np.rint(scores)).all() and len(np.unique(scores)) > 8
    assert set(np.unique(v)) <= set(range(1, 10)) and v.shape == (1, 32, 1)


def test_the_frames_are_the_states_of_the_run():
    """Three ranks in room for four: after k blocks what state k holds, after the last what the last holds."""
    run = ring_attention.ring(*ring_attention.example(1, 3 * 2), 3, CONTIGUOUS)
    frames = ring_attention.example_frames(3, 2, CONTIGUOUS, 4)
    total, output = (column.reshape(5, 4, 2) for column in (frames.total, frames.output))
    for state in range(5):
        for rank, part in enumerate(run.states[min(state, 3)]):
            assert (total[state, rank] == part.total[0]).all()
            assert (output[state, rank] == online_softmax.output(part)[0, :, 0]).all()
    assert not total[0].any() and total[1, :3].all() and not total[:, 3].any()


@pytest.mark.parametrize("order", [FULL, CONTIGUOUS, ZIGZAG])
def test_the_mask_shows_as_many_pairs_as_are_counted(order):
    """Three ranks of four tokens, every query and key asked for one by one, and ranks that there are not."""
    rank, token, owner, key = np.indices((5, 4, 5, 4))
    query_at, key_at = (context_parallel.position(*of, 3, 4, order) for of in ((rank, token), (owner, key)))
    shown = (rank < 3) & (owner < 3) & ((order == FULL) | (key_at <= query_at))
    counted = context_parallel.seen_keys(rank, token, owner, 3, 4, order)
    assert (shown == (key < counted)).all(), "the keys that are seen are the first"
    seen = counted[..., 0].sum(axis=1)
    assert not seen[3:].any() and not seen[:, 3:].any()
    for rank in range(3):
        for step in range(3):
            owner = int(context_parallel.block_owner(rank, step, 3))
            assert seen[rank, owner] == context_parallel.block_pairs(rank, step, 3, 4, order)


@pytest.mark.parametrize("order", [FULL, CONTIGUOUS, ZIGZAG])
def test_tokens_are_counted_by_what_they_see(order):
    """The tokens before the n-th see fewer than so many keys, and no other."""
    rank, token, owner, keys = np.indices((4, 4, 4, 6))
    sees = context_parallel.seen_keys(rank, token, owner, 4, 4, order)
    fewer = context_parallel.tokens_that_see_fewer(keys, rank, owner, 4, 4, order)
    assert ((token < fewer) == (sees < keys)).all()
    diagonal = [context_parallel.tokens_that_see_fewer(n, 0, 0, 4, 4, CONTIGUOUS) for n in range(6)]
    assert diagonal == [0, 0, 1, 2, 3, 4], "of a rank's own four keys its tokens see 1, 2, 3 and 4"
