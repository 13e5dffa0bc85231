"""Sessions that take turns: shares by hand, the radix tree that they stand for, and published rates."""

import math

import pytest

from engine.serving import sessions
from engine.serving.prefix_cache import PrefixCache
from engine.serving.sessions import Sessions, Tier
from tests.said import refused

AGENT = Sessions(0.5, 8.0, 2000, 6000, 1200, 300, 4.0, 3.0)
ENDLESS = (Tier("device", 1e12),)


def test_endless_caches_miss_what_is_new_by_hand():
    """8 turns on average: a prompt has 8,000 + 7 · 1,500 = 18,500 tokens, of which 2,000/8 + 1,200 · 7/8 =
    1,300 are new: 92.97 % are held."""
    assert AGENT.prompt == 18_500 and AGENT.most == pytest.approx(1 - 1300 / 18_500)
    found = sessions.run(AGENT, ENDLESS, count=40_000)
    assert found.share == pytest.approx(AGENT.most, abs=0.004)
    assert found.prompt == pytest.approx(AGENT.prompt, rel=0.03) and found.fetched_s == 0.0


def test_without_room_only_what_fits_is_held():
    assert sessions.run(AGENT, (Tier("device", 0.0),)).share == 0.0
    alone = sessions.run(AGENT, (Tier("device", 6000.0),))  # what all begin with, and nothing else
    assert alone.share == pytest.approx(6000 / alone.prompt)


def test_more_room_never_holds_less_and_what_is_lost_above_is_found_below():
    shares = [sessions.run(AGENT, (Tier("device", room),)).share for room in (2e4, 1e5, 2e5, 1e6)]
    assert shares == sorted(shares) and shares[0] < 0.45 < 0.9 < shares[-1]
    whole = sessions.run(AGENT, (Tier("device", 2e5),))
    parts = sessions.run(AGENT, (Tier("device", 1e5), Tier("host", 1e5, 50e9)), bytes_per_token=1e5)
    assert parts.share == pytest.approx(whole.share, abs=0.02)
    assert parts.by_tier["device"] < whole.share
    tokens = parts.by_tier["host"] * parts.prompt
    assert parts.fetched_s == pytest.approx(tokens * 1e5 / 50e9, rel=1e-6)


def test_turns_that_go_anywhere_find_less():
    """On four replicas that hold everything, a turn that may go to any of them finds what its session left
    there: less than the one that goes home, which finds as much as on a single replica."""
    home = sessions.run(AGENT, ENDLESS, 4, "session", count=40_000)
    anywhere = sessions.run(AGENT, ENDLESS, 4, "any", count=40_000)
    assert home.share == pytest.approx(AGENT.most, abs=0.006)
    assert anywhere.share < home.share - 0.1
    assert anywhere.share > 6000 / anywhere.prompt


@pytest.mark.parametrize("room", [30_000, 80_000, 200_000])
def test_it_is_the_radix_tree_that_it_stands_for(room):
    """The tree drops whole turns, and this the end of one: they differ by less than a turn a session."""
    of = AGENT._replace(system=400, opening=300, added=120, answer=30)
    scaled = room / 10
    cache, said, held, asked = PrefixCache(scaled), {}, 0, 0
    order = sessions._turns(of, 3000, 1)
    fresh = of.system
    for nth, (session, turn, _) in enumerate(order):
        if turn and session not in said:  # its first turns were before the run
            continue
        grown = of.added if turn else of.opening
        prompt = said.get(session, tuple(range(of.system))) + tuple(range(fresh, fresh + grown))
        whole = prompt + tuple(range(fresh + grown, fresh + grown + of.answer))
        fresh += grown + of.answer
        known = min(cache.serve(whole), len(prompt))
        said[session] = whole
        if nth >= 1000:
            held, asked = held + known, asked + len(prompt)
    found = sessions.run(of, (Tier("device", scaled),), count=3000)
    assert found.share == pytest.approx(held / asked, abs=0.02)


def test_the_conversations_of_mooncake_as_published():
    """12,031 requests in an hour with 12,035 tokens of prompt and 343 of answer find 37.4 % in endless
    caches, 36.2 % in 25.6 million tokens, 21.5 % in 5.1 and 5.5 % in 1 (least recent use; computed from
    kvcache-ai/Mooncake FAST25-release/traces). If each turn brings as many tokens, the first share says how
    many: 12,035 · (1 − 0.374) = 7,534, and so 1.57 turns a session. The share at 5.1 million decides the mean
    pause, 160 s, if it is exponential. The other two follow, within 1.2 hundredths."""
    new = round(12_035 * (1 - 0.374))
    turns = 1 + (12_035 - new) / (new + 343)
    per_s = 12_031 / 3540 / turns
    conversations = Sessions(per_s, turns, new, 0, new, 343, 160.0)
    assert conversations.most == pytest.approx(0.374, abs=0.001)
    rooms = (25.6e6, 5.1e6, 1e6)
    shares = [sessions.run(conversations, (Tier("device", room),), count=30_000).share for room in rooms]
    assert shares == pytest.approx([0.362, 0.215, 0.055], abs=0.012)


def test_fetching_pays_where_the_wire_is_faster_than_the_prefill():
    """160 kB a token over 50 GB/s come in 3.2 µs; a prefill of 100,000 tokens a second takes 10."""
    assert sessions.fetch_pays(160e3, 50e9, 100e3) and not sessions.fetch_pays(160e3, 10e9, 100e3)


def test_what_cannot_be_is_refused():
    with refused("turns", "at least 1"):
        sessions.run(AGENT._replace(turns=0.5), ENDLESS)
    with refused("route", "session, any", "'near'"):
        sessions.run(AGENT, ENDLESS, route="near")
    assert math.isinf(Tier("device", 1.0).bytes_per_s)
