"""Tests that are left out while nothing has changed that could change their outcome.

Some questions take minutes and are about few files: whether Firefox shows a page as Chromium does, whether
nginx hands the site out. ``tests/settled.toml`` lists, for each such question, the files of its tests and the
files that the answer rests on. When the tests pass, ``make test`` writes a digest of all these into
``tests/settled.json``, which is committed. While the digest stays the same the tests are left out, and the
end of the run says so.

They run when a file changes, when they are named (``make test PYTEST=...``), and with ``EVERY=1``, weekly.
In .ci/run, where ``CI`` is set, nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.states import ALL_OF_THEM

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = ROOT / "tests" / "settled.toml"
ANSWERED = ROOT / "tests" / "settled.json"


class Question(NamedTuple):
    tests: list[str]  # files of tests, relative to the root; * stands for any name
    rests_on: list[str]  # the files that decide the answer: patterns as of Path.glob

    def digest(self) -> str:
        """A name for the present contents of these files and of the tests."""
        files = {path for pattern in (*self.rests_on, *self.tests) for path in ROOT.glob(pattern)}
        told = hashlib.sha256()
        for path in sorted(files):
            if path.is_file() and "__pycache__" not in path.parts:
                told.update(path.relative_to(ROOT).as_posix().encode() + _sum(path))
        return told.hexdigest()[:16]


@cache
def _sum(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def questions() -> dict[str, Question]:
    """All of them, by the words that name them at the end of a run."""
    return {name: Question(**each) for name, each in tomllib.loads(QUESTIONS.read_text("utf-8")).items()}


def answered() -> dict[str, str]:
    """Question -> the digest at which its tests last passed."""
    return json.loads(ANSWERED.read_text(encoding="utf-8"))


def of(nodeid: str, asked: dict[str, Question]) -> str | None:
    """The question that a test belongs to."""
    file = nodeid.partition("::")[0]
    return next((name for name, each in asked.items() if any(fnmatch(file, one) for one in each.tests)), None)


def open_questions() -> set[str]:
    """Those whose tests have to run."""
    known = {} if ALL_OF_THEM else answered()
    return {name for name, each in questions().items() if known.get(name) != each.digest()}


def left_out(items: Iterable[Any]) -> list[Any]:
    """The tests among these whose question is settled."""
    asked, still_open = questions(), open_questions()
    return [item for item in items if (name := of(item.nodeid, asked)) and name not in still_open]


def newly_answered(passed: Iterable[str], others: Iterable[str]) -> dict[str, str]:
    """Question -> digest, of those whose tests all passed in a whole run: some passed, and none failed or
    lacked a program."""
    asked = questions()
    good, bad = Counter(of(test, asked) for test in passed), Counter(of(test, asked) for test in others)
    return {name: each.digest() for name, each in asked.items() if good[name] and not bad[name]}


def note(found: dict[str, str]) -> None:
    """Keeps the answers for the next run, and forgets questions that are not asked any more."""
    known = {name: digest for name, digest in (answered() | found).items() if name in questions()}
    if known != answered() and "CI" not in os.environ:
        ANSWERED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
