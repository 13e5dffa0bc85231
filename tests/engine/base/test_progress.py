"""The progress bar on standard error: its text, that it erases itself, and that only a terminal shows it."""

import io
import time
from types import SimpleNamespace

import pytest

from engine import Limits, Load, deploy
from engine.base import bar
from engine.base.bar import Bar
from engine.base.progress import tell
from engine.serving.deployment import finder


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(bar, "AFTER_S", 0.0)
    monkeypatch.setattr(bar, "EVERY_S", 0.001)
    monkeypatch.setattr(bar, "time", SimpleNamespace(monotonic=lambda: 7.0))  # no second passes for it
    monkeypatch.delenv("TERM", raising=False)


def drawn(to: Terminal, words: str) -> None:
    """Wait until the bar, which draws in a thread, has written these words."""
    until = time.monotonic() + 60
    while words not in to.getvalue():
        assert time.monotonic() < until, to.getvalue()
        time.sleep(0.001)


def test_it_says_how_far_the_work_is_and_rubs_itself_out():
    to = Terminal()
    with Bar("Searching", to):
        drawn(to, "Searching ... 0 s")
        tell(3, 12, "kinds")
        drawn(to, "Searching [######..................] 3 of 12 kinds, 0 s")
    *_, blanks, last = to.getvalue().split("\r")
    assert last == "" and blanks.strip() == "" and len(blanks) >= len("Searching [")
    tell(4, 12)  # nobody listens any more


def test_it_leaves_the_last_column_free_where_a_terminal_would_wrap(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    to = Terminal()
    Bar("Searching", to).put("0123456789")
    assert to.getvalue() == "\r012345678"


@pytest.mark.parametrize("terminal", [False, True])
def test_who_is_no_terminal_or_a_dumb_one_sees_nothing(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    to = Terminal() if terminal else io.StringIO()
    with Bar("Searching", to):
        tell(1, 2)
        time.sleep(0.05)
    assert to.getvalue() == ""


def test_what_is_done_soon_has_no_bar(monkeypatch):
    monkeypatch.setattr(bar, "AFTER_S", 5.0)
    to = Terminal()
    with Bar("Searching", to):
        pass
    assert to.getvalue().strip() == ""


def test_it_is_taken_away_when_the_work_fails_and_bars_may_be_nested():
    outer, inner = Terminal(), Terminal()
    with Bar("Outer", outer) as bar:
        with pytest.raises(ValueError, match="no"), Bar("Inner", inner):
            raise ValueError("no")
        tell(1, 2)
        assert bar.told == (1, 2, "")
    assert inner.getvalue().split("\r")[-1] == ""


def test_the_search_for_a_deployment_says_how_far_it_is():
    finder._searched.cache_clear()  # another test may have asked the same
    with Bar("Searching", io.StringIO()) as bar:
        found = deploy("llama3.1-8b", "h100-sxm", Load(4, 1000), Limits(1, 0.03), top=2)
    assert bar.told and bar.told[1] == 2 and f"{found.simulated} simulated" in bar.told[2]
