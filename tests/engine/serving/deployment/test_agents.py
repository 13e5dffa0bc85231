"""Deployments for agents: the hit rate is what the deployment's own caches come to."""

import pytest

from engine import catalog
from engine.serving import sessions
from engine.serving.deployment import Limits, agents
from engine.serving.deployment.agents import Below
from engine.serving.sessions import Sessions, Tier
from engine.step.layout import Machine
from tests.said import refused

MODEL, H100 = catalog.model("llama3.1-8b"), Machine.of("h100-sxm")
AGENTS = Sessions(1.0, 10.0, 2000, 8000, 1000, 300, 8.0, 6.0)
HOST = Below("host", 200e9, 20e9)


def test_the_requests_of_sessions_by_hand():
    """10 turns on average come to 10 requests a second. A prompt has 10,000 + 9 · 1,300 = 21,700 tokens, and
    a geometric number of turns before it with variance 9 · 10: √90 · 1,300 / 21,700 = 0.568 of the mean."""
    load = agents.load_of(AGENTS, 0.5)
    assert load.per_s == 10.0 and load.prefix_share == 0.5 and load.output == 300
    mean = load.prompt * 2.718281828 ** (load.prompt_spread**2 / 2)
    assert mean == pytest.approx(21_700, rel=1e-3)
    assert 2.718281828 ** (load.prompt_spread**2) - 1 == pytest.approx(0.568**2, rel=1e-2)


def test_what_is_found_holds_the_share_that_it_was_searched_with():
    """A host's memory under the GPUs holds what the device gives up, so fewer GPUs are needed than where all
    has to be on the device; and the share is what the caches of the best come to, run anew."""
    found = agents.deploy(
        MODEL, H100, AGENTS, Limits(2.0, 0.04), (HOST,), formats=("fp8",), pools=False, top=1
    )
    one, held = found.found.best, found.held
    assert found.load.prefix_share <= held.share + agents.AGREES
    assert held.by_tier["host"] > 0.0 and held.fetched_s > 0.0
    tokens, each = agents.device_tokens(MODEL, H100, found.load, one)
    assert each == 131_072  # 32 layers · 8 heads · 128 · 2 · 2 bytes
    host = Tier("host", HOST.held_bytes * one.reads.gpus / each, HOST.bytes_per_s * one.reads.gpus)
    again = sessions.run(AGENTS, (Tier("device", tokens), host), one.replicas, "session", each)
    assert again == held


def test_a_tier_that_is_too_slow_is_refused_by_name():
    with refused("bytes_per_s", "fetching takes"):
        slow = Below("disk", 4e12, 1e6)
        agents.deploy(MODEL, H100, AGENTS, Limits(2.0, 0.04), (slow,), formats=("fp8",), pools=False, top=1)
    with refused("route", "session, any"):
        agents.deploy(MODEL, H100, AGENTS, Limits(2.0, 0.04), route="near")
