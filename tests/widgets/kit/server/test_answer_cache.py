"""What a server remembers of its answers: as much as it says, and nothing once its readers have left."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT
from widgets.kit.server.answer_cache import Answers, packed

STATES = [{"batch": float(batch)} for batch in range(1, 60)]


def in_memory(cache: Answers) -> int:
    """Bytes of all that is kept, each object as Python counts it."""
    return sum(
        sys.getsizeof(answer.text)
        + sys.getsizeof(answer.numbers)
        + sum(sys.getsizeof(part) + sum(sys.getsizeof(inner) for inner in part) for part in state)
        for state, answer in cache.kept.items()
    )


def test_a_text_of_wide_characters_counts_twice():
    """Python keeps two bytes for each character of a text that has one beyond Latin-1."""
    plain, wide = packed({"said": "10^9" * 100}), packed({"said": "10⁹ " * 100})
    assert len(plain.text) == len(wide.text) and wide.bytes > plain.bytes + len(plain.text) - 100


def test_what_is_counted_is_what_is_held_and_the_bound_holds():
    cache = Answers(most_bytes=100_000)
    for state in STATES:
        cache.shown("roofline", state)
    assert cache.bytes == in_memory(cache) <= cache.most_bytes
    assert 0 < len(cache.kept) < len(STATES)  # it had to forget some


def test_a_server_without_readers_forgets():
    """In a Python of its own, because the plugin changes Bokeh's routes for good."""
    subprocess.run([sys.executable, "-c", AT_REST], cwd=ROOT, check=True)


AT_REST = """
import panel.io.server
from widgets.kit.server import plugin
from widgets.kit.server.pages import stored
from widgets.kit.server.session import ANSWERS

ANSWERS.shown("roofline", {})
plugin.Socket.sessions.add("a reader")
plugin.rest()
assert ANSWERS.kept and ANSWERS.bytes, "somebody still reads"
plugin.Socket.sessions.clear()
plugin.rest()
assert not ANSWERS.kept and ANSWERS.bytes == 0 and stored.cache_info().currsize == 0
"""
