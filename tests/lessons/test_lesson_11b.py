"""The numbers of lesson 11's second page are those worked by hand, and its words agree with the engine."""

from functools import cache

import numpy as np
import pytest

from engine import catalog
from engine.serving import decoding, drafts, prefix_cache
from engine.step import layout
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("11b-the-server.md")
H100, LLAMA = layout.machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "1 / np.sum(1 / np.arange(1, 33))": "24.6 %",  # H(32) = 4.0585
    "15 * decoding.token_bytes": "4.92 MB",
    "decoding.user_bytes(llama, context=8192) | GB": "2.68 GB",
    # 8,192 tokens in 2.62 s of prompts and 256 · 4.0585 steps of 13.16 ms
    "BATCH * 256 / whole_batch_s | count": "503",
    "8 * pcie": "504 GB/s",  # 8 · 63
    "empty_share(16)": "1.4 %",  # 7.5 / 519.5
    "empty_share(256)": "19.9 %",  # 127.5 / 639.5
    "decoding.user_bytes(llama, context=32768)": "10.7 GB",  # 32,768 · 327,680
    "fetched_s(wire=card)": "215 ms",  # 10.74 / 50
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.right("serving_frontier") == 2
    assert LESSON.truth("prefill_decode") == pytest.approx(0.327, abs=0.005)


def machine_of(width):
    """An H100 whose products are in fp8 if values have one byte."""
    return layout.machine(catalog.gpu("h100-sxm"), "fp8" if width == 1 else "bf16")


def test_long_contexts_keep_drafts_worth_while_past_the_critical_batch():
    tiny = catalog.model("llama3.2-1b")
    short, long = (
        drafts.speculative_gain(LLAMA, tiny, H100, 8, 179.0, context, 0.7, 3) for context in (1024.0, 8192.0)
    )
    assert 179 * 4 > 2 * 295 and short < 1.1 < 1.2 < long


def test_drafts_gain_less_and_less_towards_the_critical_batch_and_something_beyond_it():
    gains = [float(LESSON.value(f"short_gain(users={users})")) for users in (1, 16, 32, 64, 128, 256)]
    assert gains == sorted(gains, reverse=True)
    assert gains[1] < 0.92 * gains[0] and gains[3] < 0.75 * gains[0]  # 64 and 256 tokens to check, below 295
    assert gains[4] > 1.15 and gains[5] == pytest.approx(1.0, abs=0.05)  # 1.7 and 3.5 critical batches


@cache
def another_trace():
    """Another seed, and ten times the length."""
    return prefix_cache.turns(prefix_cache.Chats(100, 8, 1000, 100, 300, seed=2), 8000)


@cache
def hit_rates(room):
    """Of the lesson's trace, and of the other."""
    return [prefix_cache.hit_rate(trace, room) for trace in (LESSON.value("chats"), another_trace())]


@pytest.mark.parametrize("room", [25e3, 50e3, 100e3, 200e3, 400e3])
def test_the_hit_rates_hold_on_another_trace(room):
    """Within five points."""
    shown, other = hit_rates(room)
    assert other == pytest.approx(shown, abs=0.05)


def test_half_is_found_in_a_little_room_and_nine_tenths_in_enough():
    """As the words below the table say, of both traces; and a first token then takes a fraction."""
    for few, some, all_of_them in zip(*map(hit_rates, (25e3, 50e3, 400e3))):
        assert few == pytest.approx(0.5, abs=0.05) and some == pytest.approx(0.5, abs=0.1)
        assert all_of_them > 0.9
    reading, prompt = LESSON.value("reading"), LESSON.value("mean_prompt")
    cold, warm = (reading(prompt=np.round(prompt * share)).total_s for share in (1.0, 1.0 - all_of_them))
    assert warm < cold / 3


def token_s(tp, users, prompt=2048.0, output=256.0):
    return float(decoding.steady(LLAMA, H100, tp, users, prompt, output).token_s)


def test_few_users_are_served_sooner_by_one_replica_and_many_by_two():
    """They meet at about 50; with 512 in and 512 out later, beyond 150."""
    for users, large_wins in ((8, True), (32, True), (44, True), (56, False), (64, False), (128, False)):
        assert (token_s(8, users) < token_s(4, users / 2)) == large_wins
    assert token_s(8, 150, 512.0, 512.0) < token_s(4, 75, 512.0, 512.0)


def test_what_is_kept_and_what_is_drawn_again_add_up_to_the_target():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(50)), rng.dirichlet(np.ones(50))
    kept, rest = np.minimum(p, q), np.maximum(0, p - q)
    np.testing.assert_allclose(kept + (1 - kept.sum()) * rest / rest.sum(), p)


def test_static_batches_wait_for_the_longest_as_the_harmonic_number_says():
    longest = np.random.default_rng(1).exponential(size=(20_000, 32)).max(axis=1).mean()
    assert longest == pytest.approx(np.sum(1 / np.arange(1, 33)), rel=0.02)  # 20,000 batches of 32


def waits(places, load):
    """Mean wait over mean service where requests come at random to so many places: Erlang's C."""
    blocked = 1.0
    for place in range(1, places + 1):
        blocked = places * load * blocked / (place + places * load * blocked)
    return blocked / (1 - load * (1 - blocked)) / (places * (1 - load))


def test_the_designs_fleets():
    """12 replicas of TP 4 in bf16; 13 of TP 2 or 8 of TP 4 in fp8: 48, 26 and 32 GPUs."""

    def users(tp, width, prompt=2048.0):
        counts = np.arange(1.0, 300)
        steady = decoding.steady(LLAMA, machine_of(width), tp, counts, prompt, 512.0, width, width)
        return np.max(np.where(steady.token_s <= 0.05, counts, 0))

    assert [tp * np.ceil(1000 / users(tp, width)) for tp, width in ((4, 2.0), (2, 1.0), (4, 1.0))] == [
        48,
        26,
        32,
    ]
    assert users(2, 1.0) == 79 and "max_num_seqs=79" in LESSON.text
    assert waits(79, 0.8) < 0.02 and LESSON.value("reading_share(users=79)") == pytest.approx(0.48, abs=0.02)
    assert (
        users(2, 1.0, 8192.0) < decoding.room(LLAMA, H100.gpu, 2, 8704, 1.0, 1.0).users
    )  # prefills, not caches


def test_prompts_take_more_of_a_token_than_the_step():
    """With 64 users, prompts of 2,048 tokens and answers of 256."""
    whole_s, prompts_s = LESSON.value("kept_full(users=64)").token_s, LESSON.value("prompts_part_s")
    assert whole_s - prompts_s == pytest.approx(LESSON.value("a_token(users=64, context=2176)").total_s)
    assert prompts_s > whole_s / 2


def test_the_envelope():
    """Memory has room for far more than 128 chats, of whose seats a static batch uses a fifth at most."""
    assert LESSON.value("chat_room").users > 4 * 128
    assert 1 / np.sum(1 / np.arange(1, 129)) < 0.2
    assert LESSON.value("prefix_gain") == pytest.approx(1.40, abs=0.02)  # 66.5 / (19.2 + 56.5 / 2)


def test_a_disk_only_just_makes_what_a_prefill_makes():
    made, disk = LESSON.value("made_bytes_per_s"), LESSON.value("DISK")
    assert made == pytest.approx(disk, rel=0.1)
    deepseek = catalog.model("deepseek-v3")
    share = decoding.token_bytes(deepseek) / decoding.token_bytes(LLAMA)
    active = catalog.models.active_parameters(deepseek) / catalog.models.parameters(LLAMA)
    assert (share, active) == (pytest.approx(0.2, abs=0.03), pytest.approx(0.5, abs=0.05))
    assert share / active == pytest.approx(0.4, abs=0.02)


def test_no_measured_acceptance_keeps_up_with_its_first():
    for measured in LESSON.value("MEASURED").values():
        by_rule = LESSON.value("by_rule")(measured[0])
        assert by_rule[0] == pytest.approx(measured[0])
        assert all(rule > seen for rule, seen in zip(by_rule[1:], measured[1:]))
        assert list(measured) == sorted(measured)


def test_every_table_renders():
    assert LESSON.tables() and all("<table>" in table for table in LESSON.tables())
