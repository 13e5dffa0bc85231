"""The prefix cache: it finds what a search through all that was served finds, holds no more than it may, and
lets go of what was used longest ago."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.serving import prefix_cache
from engine.serving.prefix_cache import Chats, PrefixCache, Turn
from tests.said import refused

REQUESTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8).map(tuple), max_size=30)


def common(one, other):
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


@given(REQUESTS)
def test_without_a_limit_it_finds_the_longest_prefix_of_all_that_was_served(requests):
    cache, served = PrefixCache(1e9), []
    for tokens in requests:
        assert cache.serve(tokens) == max((common(tokens, other) for other in served), default=0)
        served.append(tokens)
    distinct = {tokens[:n] for tokens in requests for n in range(1, len(tokens) + 1)}
    assert cache.held == len(distinct)  # each prefix is held once


@settings(deadline=None)
@given(REQUESTS, st.integers(0, 20))
def test_it_never_holds_more_than_it_may_and_never_finds_what_was_not_served(requests, capacity):
    cache, served = PrefixCache(capacity), []
    for tokens in requests:
        found = cache.serve(tokens)
        assert found <= max((common(tokens, other) for other in served), default=0)
        assert cache.held == sum(len(node.tokens) for node in cache.nodes()) <= capacity
        served.append(tokens)


def test_the_least_recently_used_gives_way_from_its_end():
    """Room for eight: 1234 and 1256 share two tokens (six in all); a third of four pushes out 34, which was
    used before 56."""
    cache = PrefixCache(8)
    assert [cache.serve(tokens) for tokens in ((1, 2, 3, 4), (1, 2, 5, 6), (7, 8, 9, 0))] == [0, 2, 0]
    assert cache.serve((1, 2, 5, 6)) == 4
    assert cache.serve((1, 2, 3, 4)) == 2


def test_a_request_longer_than_the_cache_keeps_its_beginning():
    cache = PrefixCache(3)
    assert cache.serve((1, 2, 3, 4, 5)) == 0 and cache.held == 3
    assert cache.serve((1, 2, 3, 9)) == 3


def test_a_conversation_by_hand():
    """100 tokens of system prompt, questions of 10, answers of 20, three turns: prompts of 110, 140 and 170,
    of which 0, 130 and 160 are known, and of the next conversation's 110 the system prompt."""
    trace = prefix_cache.turns(Chats(1, 3, 100, 10, 20), 4)
    assert [turn.prompt for turn in trace] == [110, 140, 170, 110]
    assert prefix_cache.hits(trace, 1e9) == [0, 130, 160, 100]
    assert prefix_cache.hits(trace, 0) == [0, 0, 0, 0]
    assert prefix_cache.hits([Turn((1, 2, 3), 2)] * 2, 1e9) == [0, 1]  # the last token is computed anyway


@pytest.mark.parametrize(
    ("change", "count", "words"),
    [(dict(chats=0), 4, "chats"), (dict(turns=0), 4, "turns"), ({}, 0, "count"), ({}, 1.5, "count")],
)
def test_a_trace_has_conversations_turns_and_requests(change, count, words):
    with refused(words, "whole number"):
        prefix_cache.turns(Chats(2, 2, 4, 2, 2)._replace(**change), count)


def test_more_room_finds_more_until_all_conversations_fit():
    trace = prefix_cache.turns(Chats(20, 5, 50, 10, 20), 600)
    rates = [prefix_cache.hit_rate(trace, room) for room in (0, 200, 800, 2000, 4000, 1e9)]
    assert rates == sorted(rates) and rates[0] == 0
    most = sum(50 + 30 * n for n in range(5)) / sum(60 + 30 * n for n in range(5))
    assert rates[-1] == pytest.approx(most, abs=0.01) and rates[-2] == pytest.approx(most, abs=0.02)
