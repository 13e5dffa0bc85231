"""``make check``: what can be said within a minute of a change: style, imports, types, and the nearest tests.

    python -m tests.check               what changed since the last commit; without a change, the last commit
    python -m tests.check --base main   what changed since then

Tests that need a browser or the built site are left out, and so are those that are too far from the change
for a minute. It says how many, and the command that runs them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from tests import chosen
from tests.touched import Touched, Tree

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
FACTS = chosen.FOLDER / "sources.json"
LIMIT_S = 60
TESTS_S = 42  # planned for tests, so that a machine a bit slower than the last time keeps the limit
START_S = 4  # time until pytest and its processes have started
LEAST_S = 10  # for tests, however long everything before them took
UNKNOWN_S = 0.3  # assumed for a test function, or an import, that no run has timed
ALONE_S = 5  # shorter runs are not worth a second process
OF_ALL = ("pyproject.toml", "constraints.txt")  # any test may depend on them


# -- what changed --------------------------------------------------------------------------------------------
def git(*arguments: str) -> list[str]:
    """The lines that git prints; if git fails, exit with a message."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"check: git {arguments[0]}: {done.stderr.strip() or 'failed'}")
    return [line for line in done.stdout.split("\0" if "-z" in arguments else "\n") if line]


def changes(base: str) -> tuple[list[str], str]:
    """The changed files, including deleted ones, and the commit that they are compared with."""
    new = git("ls-files", "-z", "--others", "--exclude-standard")
    if base:
        [since] = git("merge-base", base, "HEAD")
        return sorted({*git("diff", "-z", "--name-only", "--no-renames", since), *new}), f"since {base}"
    if now := sorted({*git("diff", "-z", "--name-only", "--no-renames", "HEAD"), *new}):
        return now, "since the last commit"
    return git("diff", "-z", "--name-only", "--no-renames", "HEAD~1", "HEAD"), "by the last commit"


# -- what fits -----------------------------------------------------------------------------------------------
class Choice(NamedTuple):
    """The tests to run and the tests to leave out; numbers of tests are those of the last run."""

    files: dict[str, list[str]]  # test file -> its functions, the nearest to the change first
    seconds: float  # that one process needs
    tests: int
    pages: dict[str, list[str]]  # tests that need a browser or the built site
    paged: int
    further: dict[str, list[str]]  # tests too far from the change to fit into a minute
    left: int


def choose(
    touched: Touched, tests: dict[str, list[str]], known: dict[str, list], seconds: float, workers: int
) -> Choice:
    """The nearest tests that fit into ``seconds`` on ``workers`` processes."""
    files: dict[str, list[str]] = {}
    further: dict[str, list[str]] = {}
    left_s = seconds * workers
    by_distance = groupby(
        sorted(touched.near, key=lambda file: touched.near[file]), lambda file: touched.near[file]
    )
    for _, group in by_distance:
        asked = {
            f: [n for n in tests[f] if n not in touched.pages[f]]
            for f in group
            if f not in touched.only_pages
        }
        costs = {file: _cost(known, file, names, workers) for file, names in asked.items()}
        for file in sorted(asked, key=lambda file: (costs[file], file)):
            if costs[file] <= left_s:
                files[file] = asked[file]
                left_s -= costs[file]
                continue
            some, rest, took = [], [], _cost(known, file, [], workers)
            for name in sorted(asked[file], key=lambda name: _function(known, file, name)[1]):
                took += _function(known, file, name)[1]
                (some if took <= left_s else rest).append(name)
            if some:
                files[file] = some
                left_s -= _cost(known, file, some, workers)
            further[file] = rest
    pages = {file: sorted(touched.pages[file]) for file in touched.near if touched.pages[file]}
    count = lambda one: sum(_function(known, file, name)[0] for file, names in one.items() for name in names)
    return Choice(
        files, seconds * workers - left_s, count(files), pages, count(pages), further, count(further)
    )


def _function(known: dict[str, list], file: str, name: str) -> tuple[int, float]:
    """The number of tests that a function expands to, and the seconds that they take."""
    return tuple(known.get(file, [0, {}])[1].get(name, (1, UNKNOWN_S)))


def _cost(known: dict[str, list], file: str, names: Iterable[str], workers: int) -> float:
    """The seconds of one process for a file: every process imports it, and the tests are shared among
    them."""
    imported = known.get(file, [UNKNOWN_S])[0]
    return workers * imported + sum(_function(known, file, name)[1] for name in names)


# -- the stages ----------------------------------------------------------------------------------------------
class Stage:
    """A tool that runs at the same time as others. Its name and time are printed in one line; its output
    follows if it fails."""

    def __init__(self, name: str, *commands: list[str]):
        self.name, self.commands, self.said, self.good, self.took = name, commands, "", True, 0.0
        self.thread = Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        """Runs the tool's commands in turn, until one fails."""
        began = time.perf_counter()
        for command in self.commands:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            self.took = time.perf_counter() - began
            if done.returncode:
                self.good, self.said = False, (done.stdout + done.stderr).rstrip()
                return

    def end(self) -> bool:
        """Waits for the tool, prints the result, and returns whether it passed."""
        self.thread.join()
        print(f"{self.name} {self.took:.1f} s{'' if self.good else ': FAILED'}", flush=True)
        if not self.good:
            print(self.said, flush=True)
        return self.good


def typed(changed: Iterable[str]) -> list[str]:
    """The changed files that pyright checks."""
    include = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pyright"][
        "include"
    ]
    inside = tuple(f"{folder}/" for folder in include)
    return [
        each
        for each in changed
        if each.endswith(".py") and each.startswith(inside) and (ROOT / each).is_file()
    ]


def listed(name: str, files: dict[str, list[str]], tests: dict[str, list[str]]) -> str:
    """The command that runs these tests."""
    lines = ["--numprocesses=auto", "--dist=worksteal"]
    for file, names in files.items():
        whole = len(names) == len(tests.get(file, ()))
        lines += [file] if whole else [f"{file}::{each}" for each in names]
    if len(lines) <= 4:
        return f'make test PYTEST="{" ".join(lines[2:])}"'
    place = chosen.FOLDER / name
    place.write_text("\n".join(lines), encoding="utf-8")
    return f"make test PYTEST=@{place.relative_to(ROOT)}"


def run(choice: Choice, stems: list[str], until: float) -> bool:
    """Run the chosen tests, in as many processes as are worth starting."""
    plan = chosen.FOLDER / "plan.json"
    plan.write_text(json.dumps({"files": choice.files, "stems": stems, "until": until}), encoding="utf-8")
    workers = 0 if choice.seconds < ALONE_S else os.cpu_count() or 1
    command = [sys.executable, "-m", "pytest", "--no-header", "-n", str(workers), *choice.files]
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {chosen.PLAN: str(plan)}, capture_output=True, text=True
    )
    said, good = (done.stdout + done.stderr).rstrip(), done.returncode in (0, 5)
    took = time.perf_counter() - began
    counted = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", said.splitlines()[-1] if said else "")
    late = chosen.late()
    print(
        f"{', '.join(counted)} in {len(choice.files)} files {took:.1f} s{'' if good else ': FAILED'}",
        flush=True,
    )
    if not good:
        print(said, flush=True)
    if late:
        how = listed("late", {each: [] for each in late}, {})
        print(f"left out: {len(late)} for which this machine was too busy: {how}", flush=True)
    return good


def main() -> int:
    """Runs all stages; 1 if one of them fails."""
    began, started = time.time(), time.perf_counter()
    parser = argparse.ArgumentParser(prog="make check", description=__doc__.split("\n")[0])
    parser.add_argument("--base", default=os.environ.get("PRE_COMMIT_FROM_REF", ""))
    changed, since = changes(parser.parse_args().base)
    print(f"{len(changed)} files changed {since}", flush=True)
    chosen.FOLDER.mkdir(parents=True, exist_ok=True)
    chosen.LATE.unlink(missing_ok=True)
    stages = [
        Stage("ruff", [f"{BIN}/ruff", "check", "."], [f"{BIN}/ruff", "format", "--check", "."]),
        Stage("imports", [f"{BIN}/lint-imports", "--no-cache"]),
    ]
    if files := typed(changed):
        stages.append(
            Stage(f"pyright {len(files)} files", [f"{BIN}/pyright", "--pythonpath", sys.executable, *files])
        )
    before = json.loads(FACTS.read_bytes()) if FACTS.is_file() else {}
    facts = dict(before)
    listing = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    tree = Tree(ROOT, [*listing, *changed], facts)
    touched, known = tree.touched(changed), chosen.known_seconds()
    if facts != before:
        FACTS.write_text(json.dumps(facts), encoding="utf-8")
    spent = time.perf_counter() - started
    workers = os.cpu_count() or 1
    choice = choose(touched, tree.tests, known, max(LEAST_S, TESTS_S - START_S - spent), workers)
    good = stages[0].end() & stages[1].end()
    stems = [Path(each).stem for each in changed]
    if choice.files:
        good &= run(choice, stems, began + LIMIT_S - 5)
    for stage in stages[2:]:
        good &= stage.end()
    if choice.pages:
        how = listed("pages", choice.pages, tree.tests)
        print(f"left out: {choice.paged} that need a browser or the built site: {how}")
    if choice.left:
        how = listed("further", choice.further, tree.tests)
        print(f"left out: {choice.left:,} that are further away than a minute reaches: {how}")
    for each in sorted(set(changed) & set(OF_ALL)):
        print(f"{each} may touch every test: make test")
    partly = "all well, as far as it came," if chosen.late() else "all well"
    end = "FAILED" if not good else partly if choice.files else "no test was asked, and the rest is well,"
    print(f"{end} in {time.perf_counter() - started:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
