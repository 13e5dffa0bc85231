"""Agents' traffic: sessions that take turns, pause while a tool runs, and begin with what all have in common;
and how much of their prompts a server's caches then hold.

A turn's prompt is everything that was said in its session before, and something new. Whether its caches are
still there when the tool is done depends on how much other sessions used meanwhile. So the share of tokens
that is found is a result: of how large the caches are, on the device and in the tiers below it, and of
whether a session's turns come to the replica that has them.

The caches are those of a radix tree with least recent use (``prefix_cache.PrefixCache``), kept as one number
a session, because all of a session's tokens are used at once: what gives way is the end of the session
that waited longest. What all sessions share is used by each turn and never gives way. A tier below gets what
the one above gives up. ``tests/engine/serving/test_sessions.py`` holds it to the tree itself.

Leaves out blocks of several tokens, sessions that branch, and that a turn which is being answered cannot give
way.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import NamedTuple

from engine.base import check
from engine.serving.events import draw

SESSION, ANY = ROUTES = ("session", "any")  # a session's turns to its own replica, or each to any of them
LAST = 2147483647.0  # of ``draw``


class Sessions(NamedTuple):
    """Agents or chats: ``per_s`` of them begin each second, at random times."""

    per_s: float
    turns: float  # of a session on average; after each turn it goes on with the same probability
    opening: int  # tokens that a session begins with, of its own …
    system: int  # … after those that all of them begin with
    added: int  # tokens that come with each further turn: a tool's result, a question
    answer: int  # tokens of each answer
    pause_s: float  # seconds from an answer to the next turn, on average (exponential)
    turn_s: float = 0.0  # seconds that a turn is worked on, the same for all

    @property
    def prompt(self) -> float:
        """Tokens of a prompt, on average over all turns. The number of turns is geometric, and of all turns
        the mean has ``turns`` − 1 before it."""
        return self.system + self.opening + (self.turns - 1.0) * (self.added + self.answer)

    @property
    def most(self) -> float:
        """The share of all prompts' tokens that endless caches hold: all but what is new."""
        new = self.opening / self.turns + self.added * (1.0 - 1.0 / self.turns)
        return 1.0 - new / self.prompt


class Tier(NamedTuple):
    """A place for caches: how many tokens it holds on each replica, and how fast it gives them back; the
    device itself takes no time."""

    name: str
    tokens: float
    bytes_per_s: float = math.inf


class Found(NamedTuple):
    """What the caches held of a run's prompts."""

    share: float  # of all prompts' tokens, found in any tier
    by_tier: dict[str, float]  # … by the tier it was found in
    fetched_s: float  # seconds that a turn waits for tiers below the device, on average
    prompt: float  # tokens of a prompt, on average
    turns: int  # that were counted


class ReplicaCaches:
    """The caches of one replica: for each tier, the tokens of each session, that used longest ago first."""

    def __init__(self, tiers: tuple[Tier, ...], system: int) -> None:
        self.room = [max(0.0, tier.tokens - (0 if place else system)) for place, tier in enumerate(tiers)]
        self.held: list[OrderedDict[int, float]] = [OrderedDict() for _ in tiers]
        self.sums = [0.0 for _ in tiers]

    def take(self, session: int) -> list[float]:
        """The tokens of a session in each tier; it is taken out of them all, to be put back as used."""
        found = [tier.pop(session, 0.0) for tier in self.held]
        self.sums = [size - there for size, there in zip(self.sums, found, strict=True)]
        return found

    def put(self, session: int, tokens: float, place: int = 0) -> None:
        """Keep a session's tokens in a tier, and let what no longer fits sink to the next one."""
        while place < len(self.held) and tokens > 0.0:
            tier = self.held[place]
            tier[session] = tier.get(session, 0.0) + tokens
            tier.move_to_end(session)
            self.sums[place] += tokens
            sinks: list[tuple[int, float]] = []
            while self.sums[place] > self.room[place]:
                oldest, there = next(iter(tier.items()))
                goes = min(there, self.sums[place] - self.room[place])
                self.sums[place] -= goes
                if goes < there:
                    tier[oldest] = there - goes
                else:
                    del tier[oldest]
                sinks.append((oldest, goes))
            for other, goes in sinks[:-1]:
                self.put(other, goes, place + 1)
            if not sinks:
                return
            session, tokens = sinks[-1]
            place += 1


def run(
    of: Sessions,
    tiers: tuple[Tier, ...],
    replicas: int = 1,
    route: str = SESSION,
    bytes_per_token: float = 0.0,
    count: int = 20_000,
    seed: int = 1,
) -> Found:
    """So many turns of sessions, of which the first third, in which the caches fill up, is not counted.

    With ``route`` "session" all turns of a session go to one replica, as a router does that follows sessions
    or prefixes; with "any" each goes to a random one, which has what the session left there the last time.
    """
    check.one_of(ROUTES, route=route)
    check.positive(per_s=of.per_s, turns=of.turns)
    check.non_negative(pause_s=of.pause_s, turn_s=of.turn_s, bytes_per_token=bytes_per_token)
    check.whole(at_least=0, system=of.system, added=of.added)
    check.whole(opening=of.opening, answer=of.answer, replicas=replicas, count=count)
    if of.turns < 1.0 or not tiers:
        raise ValueError(
            f"turns must be at least 1 and tiers at least one, got {of.turns:g} and {len(tiers)}"
        )
    places = [ReplicaCaches(tiers, of.system) for _ in range(replicas)]
    on_device = tiers[0].tokens >= of.system
    begins, found, waits, prompts, counted = count // 3, [0.0 for _ in tiers], 0.0, 0.0, 0
    for nth, (session, turn, chance) in enumerate(_turns(of, count, seed)):
        fresh = of.opening if turn == 0 else of.added
        before = 0.0 if turn == 0 else of.opening + (turn - 1) * of.added + turn * of.answer
        at = places[(session if route == SESSION else chance) % replicas]
        there = at.take(session)
        system = float(of.system) if on_device and nth >= replicas else 0.0
        if nth >= begins:
            counted += 1
            prompts += of.system + before + fresh
            found = [sum_of + here for sum_of, here in zip(found, there, strict=True)]
            found[0] += system
            for tier, here in zip(tiers, there, strict=True):
                waits += here * bytes_per_token / tier.bytes_per_s
        at.put(session, before + fresh + of.answer)
    by_tier = {tier.name: held / prompts for tier, held in zip(tiers, found, strict=True)}
    return Found(sum(by_tier.values()), by_tier, waits / counted, prompts / counted, counted)


def _turns(of: Sessions, count: int, seed: int) -> list[tuple[int, int, int]]:
    """(session, turn, a number drawn) of the turns in the order in which they come, at the end of a run that
    is twice as long, so that as many sessions are under way as ever are."""
    state, now, coming = 7919 * (seed + 1), 0.0, []
    session, most = 0, 2 * count
    while len(coming) < most:
        state = draw(state)
        now -= math.log(state / LAST) / of.per_s
        at, turn = now, 0
        while True:
            state = draw(state)
            coming.append((at, session, turn, state // 7))
            state = draw(state)
            if state / LAST >= 1.0 - 1.0 / of.turns:
                break
            state = draw(state)
            at += of.turn_s - math.log(state / LAST) * of.pause_s
            turn += 1
        session += 1
    coming = sorted(one for one in coming if one[0] <= now)
    return [(session, turn, chance) for _, session, turn, chance in coming[-count:]]


def fetch_pays(bytes_per_token: float, bytes_per_s: float, prefill_tokens_per_s: float) -> bool:
    """Whether a token's caches come sooner from a tier than a prefill computes them again."""
    check.positive(bytes_per_s=bytes_per_s, prefill_tokens_per_s=prefill_tokens_per_s)
    return bytes_per_token / bytes_per_s < 1.0 / prefill_tokens_per_s
