"""The split of a decode step adds up to inference's own, and the cache that fits is the one worked by
hand."""

import numpy as np
import pytest

from engine import catalog
from engine.mechanism.shape import shape
from engine.serving import decoding, inference
from engine.serving.inference import Serving, decode_step
from engine.step import layout
from engine.step.layout import machine
from tests.cases import in_one_test

H100 = machine(catalog.gpu("h100-sxm"))
LLAMA70, DSV3, MIXTRAL = (
    catalog.model("llama3-70b"),
    catalog.model("deepseek-v3"),
    catalog.model("mixtral-8x7b"),
)


@in_one_test("model", [LLAMA70, DSV3, MIXTRAL], ids=lambda m: m.key)
@in_one_test("place, name", list(enumerate(decoding.ALL_REDUCES)))
def test_the_parts_add_up_to_the_step(model, place, name):
    tp = np.array([1.0, 2, 4, 8, 16])
    ours = decoding.split(model, H100, tp, 24.0, 3000.0, all_reduce=place)
    whole = [decode_step(model, H100, int(t), 24, 3000, all_reduce=name).total_s for t in tp]
    np.testing.assert_allclose(ours.total_s, whole, rtol=1e-12)
    assert all((part >= 0).all() for part in ours)


@in_one_test("model", list(catalog.all_models().values()), ids=lambda m: m.key)
@in_one_test("context", [300, 200_000])
def test_the_parts_add_up_for_layers_that_read_only_a_part_of_what_they_keep(model, context):
    ours = decoding.split(model, H100, 2.0, 16.0, float(context))
    assert ours.total_s == pytest.approx(decode_step(model, H100, 2, 16, context).total_s, rel=1e-12)
    assert all(part >= 0 for part in ours)


def test_an_indexer_reads_a_key_of_each_token_and_the_latents_of_2048():
    v32, context = catalog.model("deepseek-v3.2"), 131072.0
    read = inference.read_bytes(shape(v32), context, 1.0, 2.0, 8.0)
    assert read == pytest.approx(61 * (128 * 2 * context + 2048 * 576 * 2))
    assert inference.kept_bytes(shape(v32), context, 1.0, 2.0, 8.0) == pytest.approx(85_888 * context)


def test_stored_narrow_the_weights_are_read_faster_and_computed_no_faster():
    wide, narrow = (decoding.split(LLAMA70, H100, 8, 1.0, 0.0, weight_bytes=b) for b in (2.0, 1.0))
    assert narrow.weights_s == pytest.approx(
        wide.weights_s / 2, rel=0.02
    )  # the output layer stays in 16 bits
    full = decode_step(LLAMA70, H100, 8, 512, 0, weight_precision="fp8").total_s
    assert decoding.split(LLAMA70, H100, 8, 512.0, 0.0, weight_bytes=1.0).total_s == pytest.approx(full)


def test_users_by_hand():
    """Llama 3 70B on 8 × H100: 80 − 2 − 141.1/8 = 60.4 GB free on each, and 8k tokens take 327,680 · 8,192 /
    8 = 336 MB: 179 users; at 128k 11. In fp8 both ways 69 GB are free and each takes half: about 410."""
    assert decoding.room(LLAMA70, H100.gpu, 8, 8192).users == 179
    assert decoding.room(LLAMA70, H100.gpu, 8, 131072).users == 11
    assert decoding.room(LLAMA70, H100.gpu, 8, 8192, 1.0, 1.0).users == pytest.approx(410, abs=3)
    for tp in (4, 8, 16):
        ours = decoding.room(LLAMA70, H100.gpu, tp, 4096).users
        assert ours == inference.largest_batch(LLAMA70, H100, Serving(tp, prompt=4000, output=96))


def test_heads_of_their_own_by_hand():
    """64 query heads share 8 pairs: eight times the cache. DeepSeek-V3 keeps 576 values where 128 keys of
    192 and values of 128 would stand."""
    assert decoding.own_heads(LLAMA70) == 8
    assert decoding.own_heads(DSV3) == pytest.approx(128 * (192 + 128) / 576)
    shared, own = (decoding.room(LLAMA70, H100.gpu, 8, 8192, head_copies=c) for c in (1.0, 8.0))
    assert own.user_bytes == pytest.approx(8 * shared.user_bytes)
    alone, copied = (decoding.room(LLAMA70, H100.gpu, 16, 8192, head_copies=c) for c in (1.0, 8.0))
    assert copied.user_bytes == pytest.approx(4 * alone.user_bytes)  # 16 ranks hold 8 heads twice, or 64 once


def test_several_cases_are_each_one_s_own():
    """Every head with a cache of its own, in fp8, beside the usual one in 16 bits."""
    found = decoding.rooms(LLAMA70, H100.gpu, 8192, [(8, 2.0, 2.0, 0), (8, 1.0, 1.0, 1)])
    usual = decoding.room(LLAMA70, H100.gpu, 8, 8192, 2.0, 2.0)
    own = decoding.room(LLAMA70, H100.gpu, 8, 8192, 1.0, 1.0, head_copies=8.0)
    assert found.user_bytes.tolist() == [usual.user_bytes, own.user_bytes]
    assert own.user_bytes == pytest.approx(8 / 2 * usual.user_bytes)


# -- a fleet -------------------------------------------------------------------------------------------------
def test_a_full_replica_is_that_of_inference():
    """Users as many as asked for: the step at the mean context, and of each prefill one part in
    ``output``."""
    ours = decoding.steady(LLAMA70, H100, 4, 16, 2000.0, 400.0)
    step = decode_step(LLAMA70, H100, 4, 16, 2200).total_s
    first = inference.prefill(LLAMA70, H100, 4, 1, 2000).total_s
    assert ours.token_s == pytest.approx(step + 16 * first / 400) and ours.first_s == pytest.approx(first)
    assert ours.tokens_per_s_per_gpu == pytest.approx(16 / ours.token_s / 4)


def test_no_more_users_than_the_cache_holds_and_none_where_the_weights_do_not_fit():
    fitting = inference.largest_batch(LLAMA70, H100, Serving(4, prompt=8000, output=192))
    many = decoding.steady(LLAMA70, H100, 4, 1e6, 8000.0, 192.0)
    assert many.batch == fitting
    assert decoding.steady(LLAMA70, H100, 1, 8, 8000.0, 192.0).tokens_per_s_per_gpu == 0


def test_the_frontier_is_the_best_of_what_meets_each_target():
    """Two rows, of one and of two GPUs. At 15 ms the first has 1 + (15 − 10)/(20 − 10) · 2 = 2 users: 133
    tokens/s."""
    token_s, batch, tp = (
        np.array([[0.01, 0.02], [0.03, 0.04]]),
        np.array([[1.0, 3.0], [10.0, 40.0]]),
        np.array([1.0, 2.0]),
    )
    most = decoding.best_within(np.array([0.005, 0.01, 0.015, 0.025, 0.04, 1.0]), token_s, batch, tp)
    assert most == pytest.approx([0, 100, 2 / 0.015, 150, 500, 500])
    assert decoding.users_within(0.015, token_s, batch) == pytest.approx(np.array([[2.0, 0.0]]))


@pytest.mark.parametrize(
    ("model", "gpu", "width"),
    [("llama3-70b", "h100-sxm", 2.0), ("llama3-8b", "a100-80", 2.0), ("deepseek-v3", "h200", 1.0)],
)
def test_the_most_users_within_a_target_are_those_that_counting_finds(model, gpu, width):
    """From the grid's straight lines, then exactly: the same as trying every number of users."""
    model, at, tp = catalog.model(model), layout.machine(catalog.gpu(gpu)), np.array([2.0, 4.0, 8.0, 16.0])
    grid, every = decoding.USERS, np.arange(1.0, 2000)
    case = (2048.0, 256.0, width, width)
    coarse, fine = (decoding.steady(model, at, tp[:, None], users[None, :], *case) for users in (grid, every))
    for target_s in (0.012, 0.02, 0.042, 0.08, 0.2):
        found = decoding.steady_within(target_s, coarse, model, at, tp, *case)
        most = np.max(np.where(fine.token_s <= target_s, fine.tokens_per_s_per_gpu, 0.0), axis=1)
        assert found.tokens_per_s_per_gpu == pytest.approx(
            most, rel=0.01
        )  # the best may stand between two of its points
        exact = decoding.steady(model, at, tp, np.maximum(1.0, found.batch), *case)
        np.testing.assert_allclose(exact.token_s[most > 0], found.token_s[most > 0])
        assert (found.token_s <= target_s).all()
        allowed = np.max(
            np.where((fine.token_s <= target_s) & (fine.tokens_per_s_per_gpu > 0), fine.batch, 0.0), axis=1
        )
        estimated = decoding.users_within(
            target_s, coarse.token_s, coarse.batch * (coarse.tokens_per_s_per_gpu > 0)
        )[0]
        assert (abs(estimated - allowed) <= np.maximum(4, 0.02 * allowed)).all()


def test_money_and_gpus_by_hand():
    """$2.50 an hour at 1,000 tokens/s: 3.6 million tokens, so $0.694 a million. 10,000 tokens/s at 300 a GPU:
    34 GPUs, in replicas of 8: 40."""
    assert decoding.dollars_per_million(2.5, 1000) == pytest.approx(0.694, abs=5e-4)
    assert decoding.gpus_for(10_000, 300, 8) == 40


def test_more_gpus_a_replica_bring_less_each_and_answer_sooner():
    """Lesson 11's title, for 70B and 64 users a replica."""
    tp = np.array([4.0, 8.0])
    ours = decoding.steady(LLAMA70, H100, tp, 64.0, 1000.0, 500.0)
    assert (np.diff(ours.token_s) < 0).all() and (np.diff(ours.tokens_per_s_per_gpu) < 0).all()
