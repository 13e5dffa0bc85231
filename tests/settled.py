"""Leaves out tests while nothing has changed that could change their outcome.

Some questions take minutes and are about few files: whether Firefox shows a page as Chromium does, whether
nginx hands the site out. ``tests/settled.toml`` lists, for each such question, its tests and the files that
the answer rests on. A question may be asked of each figure, or of each page: then the answer also rests on
the figure's own module with all that it imports, or on the page's text, and the few that stand for the rest
(representatives.py) are asked each time.

When its tests pass, ``make test`` writes a digest of the question's files into ``tests/settled.json``,
which is committed. While the digest stays the same the tests are left out, and the end of the run says so.
They run when a file changes, when they are named (``make test PYTEST=...``), and with ``EVERY=1``, weekly.
In .ci/run, where ``CI`` is set, nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections import Counter
from collections.abc import Container, Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.states import ALL_OF_THEM
from widgets.kit.page import dependencies

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = ROOT / "tests" / "settled.toml"
ANSWERED = ROOT / "tests" / "settled.json"


class Question(NamedTuple):
    tests: list[str]  # files of tests, relative to the root, or nodes in them; * stands for anything
    rests_on: list[str] = []  # the files that decide the answer: patterns as of Path.glob
    modules: list[str] = []  # further such files: these modules and all that they import
    each: str = ""  # "figure" or "page" if the question is asked separately for every one

    def has(self, nodeid: str) -> bool:
        """Whether this is one of the question's tests."""
        file = nodeid.partition("::")[0]
        return any(fnmatchcase(nodeid if "::" in one else file, one) for one in self.tests)

    def digest(self) -> str:
        """A name for the present contents of these files and of the tests."""
        own = (one.partition("::")[0] for one in self.tests)
        files = {path for pattern in (*self.rests_on, *own) for path in ROOT.glob(pattern)}
        told = hashlib.sha256()
        for path in sorted(files):
            if path.is_file() and "__pycache__" not in path.parts:
                told.update(path.relative_to(ROOT).as_posix().encode() + _sum(path))
        if self.modules:
            told.update(_state(*self.modules).encode())
        return told.hexdigest()[:16]


@cache
def _sum(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def questions() -> dict[str, Question]:
    """All questions, by the names that are printed at the end of a run."""
    return {name: Question(**each) for name, each in tomllib.loads(QUESTIONS.read_text("utf-8")).items()}


def digests() -> dict[str, str]:
    """The digest of each question, by its name, or by ``"name: figure"`` if it is asked separately for each
    figure."""
    found = {}
    for name, question in questions().items():
        digest = question.digest()
        if question.each:
            of_each = figures() if question.each == "figure" else pages()
            found |= {f"{name}: {one}": f"{digest[:8]}{state[:8]}" for one, state in of_each.items()}
        else:
            found[name] = digest
    return found


def _state(*modules: str) -> str:
    """A name for the contents of these modules and of all that they import. The imports that a build has
    noted are used, which saves seconds; what it has compiled stays hidden from tests, which compile anew."""
    with pytest.MonkeyPatch.context() as only_now:
        if "KEEP_COMPILED" not in os.environ:
            only_now.setenv("KEEP_COMPILED", str(ROOT / "build" / "compiled"))
        return dependencies.state(*modules)


@cache
def figures() -> dict[str, str]:
    """Figure -> a name for the contents of its module and of all that the module imports."""
    files = sorted(ROOT.glob("widgets/[!k]*/[!_]*.py"))
    modules = {path.stem: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    return {slug: _state(module) for slug, module in modules.items()}


@cache
def pages() -> dict[str, str]:
    """A page's address, without slash -> a name for its text and its numbers. The home page is "index"."""
    texts = sorted(path for path in ROOT.glob("lessons/*.md") if path.name != "README.md")
    return {path.stem: _page(path) for path in texts}


def _page(text: Path) -> str:
    numbers = text.with_suffix(".py")
    return hashlib.sha256(_sum(text) + (_sum(numbers) if numbers.is_file() else b"")).hexdigest()


def answered() -> dict[str, str]:
    """Question -> the digest at which its tests last passed."""
    return json.loads(ANSWERED.read_text(encoding="utf-8"))


def of(nodeid: str) -> str | None:
    """The question that a test belongs to, with its figure or page if it is asked separately for each."""
    name = next((name for name, question in questions().items() if question.has(nodeid)), None)
    if name is None or not (each := questions()[name].each):
        return name
    case = nodeid.partition("[")[2].removesuffix("]")
    if each == "page":
        one = case.removesuffix("/") or "index"
        return f"{name}: {one}" if one in pages() else None
    return next((f"{name}: {one}" for one in case.split("-") if one in figures()), None)


@cache
def settled() -> frozenset[str]:
    """The questions whose tests need not run; read once, before this run answers any."""
    if ALL_OF_THEM:
        return frozenset()
    known = answered()
    return frozenset(name for name, digest in digests().items() if known.get(name) == digest)


def left_out(items: Iterable[Any], standing: Container[str]) -> list[Any]:
    """The tests among these whose question is settled, without those for ``standing``, the figures and pages
    that are always tested."""
    return [
        item
        for item in items
        if (name := of(item.nodeid)) in settled() and name and name.partition(": ")[2] not in standing
    ]


def newly_answered(passed: Iterable[str], others: Iterable[str]) -> dict[str, str]:
    """Question -> digest, of those whose tests all passed in a whole run: some passed, and none failed or
    lacked a program."""
    good, bad = {of(test) for test in passed}, {of(test) for test in others}
    return {name: digest for name, digest in digests().items() if name in good - bad}


def note(found: dict[str, str]) -> None:
    """Stores the answers for the next run, and deletes those of questions that no longer exist."""
    asked, before = digests(), answered()
    known = {name: digest for name, digest in (before | found).items() if name in asked}
    if known != before and "CI" not in os.environ:
        ANSWERED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def summary() -> list[str]:
    """For the end of a run: a line for each question whose tests were left out."""
    many = Counter(name.partition(": ")[0] for name in settled())
    return [
        f"{name} ({many[name]} {each.each}s)" if each.each else name
        for name, each in questions().items()
        if many[name]
    ]
