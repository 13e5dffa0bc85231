"""make mutants: breaks the engine in many small ways, one at a time, and shows that its tests notice.

    python -m bench.mutants                     two to five of every module and table of engine/, some 600
    python -m bench.mutants step gpus.toml      these alone;  --each 20 for so many of each
    python -m bench.mutants --seed 7            others, by another lot

Works in a copy of the tree, never in the tree itself. A first run of the tests records which functions each
test calls (kept in build/mutants until engine or tests change); each mutant is then run against the tests
that reach it, its module's own and the quickest first. Exits with 1 if a mutant survives that
``bench/equivalents.toml`` does not explain.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench import mutations, tally
from bench.mutations import Mutant

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "mutants"
EQUIVALENTS = ROOT / "bench" / "equivalents.toml"
COPIED = (
    "engine",
    "widgets",
    "course",
    "lessons",
    "site",
    "tests",
    "record",
    "measure",
    "kernels",
    "bench",
    "docs",
)
SITES_A_MUTANT, FEWEST, MOST = 80, 2, 5
MEMORY_BYTES = 6 * 2**30
PATIENCE_S, SLOWER = (
    60,
    5,
)  # time limit of a mutant, and the factor over what its tests took in the first run
CATALOGUE_TESTS = ("test_catalog", "test_tables")
BIG_TABLES = ("gpus", "models", "nodes", "links", "prices", "recipes")  # every other test names these
PLUGINS_OFF = ("-p", "no:cacheprovider", "-p", "no:xdist")


@dataclass(frozen=True)
class Verdict:
    """The outcome of testing a mutant."""

    mutant: Mutant
    outcome: str  # killed, survived or equivalent
    by: str  # the test that failed, or the reason why none can


# -- a separate process for each run -------------------------------------------------------------------------
def in_child(tree: Path, work, limit_s: float) -> dict | None:
    """The result of ``work()`` in a fork that runs in ``tree``, with nothing of the engine imported yet; None
    if it exceeded the time limit or died."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        _work(tree, work, read, write)
    os.close(write)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    with open(read, encoding="utf-8") as answer:
        text = answer.read()
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def _work(tree: Path, work, read: int, write: int) -> None:
    try:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        os.chdir(tree)
        sys.path[0] = str(tree)
        os.environ["PYTHONPATH"] = str(tree)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            found = json.dumps(work())
        except Exception as error:
            found = json.dumps({"trouble": repr(error)})
        with open(write, "w", encoding="utf-8") as answer:
            answer.write(found)
    finally:
        os._exit(0)


class Settled:
    """Makes Hypothesis draw the same examples for every mutant, and not spend time shrinking a failing
    one."""

    def pytest_collection(self):
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutants",
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")


class FirstFailure:
    """A plugin for pytest that notes the first test to fail."""

    def __init__(self):
        self.test = ""

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.test:
            self.test = report.nodeid

    def pytest_collectreport(self, report):
        if report.failed and not self.test:
            self.test = f"{report.nodeid} (cannot be collected)"


# -- which test reaches which function -----------------------------------------------------------------------
class Reach:
    """Records for each test its duration and the engine's functions that it calls, as file:first line."""

    def __init__(self, tree: Path):
        self.inside, self.now, self.found = f"{tree}/engine/", set(), {}

    def watch(self, frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(self.inside):
            self.now.add(frame.f_code)

    def pytest_runtest_protocol(self, item):
        self.now = set()

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            calls = sorted(
                {f"engine/{c.co_filename.removeprefix(self.inside)}:{c.co_firstlineno}" for c in self.now}
            )
            self.found[report.nodeid] = [report.duration, calls]


def reached(tree: Path, files: list[str]) -> dict[str, list]:
    """{test: [seconds, functions it calls]} for all passing tests, from a monitored run; a file's results are
    kept while neither it nor the engine changes."""

    def digest(*sources: Path) -> str:
        return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]

    engine = sorted(path for path in (tree / "engine").rglob("*") if path.suffix in (".py", ".toml", ".json"))
    kept = KEPT / f"reach-{digest(*engine)}.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    names = {file: f"{file} {digest(tree / file)}" for file in files}
    new = [file for file in files if names[file] not in known]
    if new:
        print(
            f"Noting which test calls which function of the engine, for {len(new)} files (once) ...",
            flush=True,
        )

        def work():
            import pytest

            watcher = Reach(tree)
            sys.settrace(watcher.watch)
            pytest.main(["-q", *PLUGINS_OFF, *new], plugins=[Settled(), watcher])
            return watcher.found

        found = in_child(tree, work, 3600)
        if not found or "trouble" in found:
            sys.exit(f"The tests could not be run in the copy: {found}")
        for file in new:
            known[names[file]] = {
                test: noted for test, noted in found.items() if test.startswith(f"{file}::")
            }
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known))
    return {test: noted for file in files for test, noted in known[names[file]].items()}


def names_in(test_file: Path) -> set[str]:
    """Every word that a test file uses as a name, including modules."""
    return set(re.findall(r"[A-Za-z_]+", test_file.read_text(encoding="utf-8")))


def module_of(path: str) -> str:
    """The name under which a file's mutants are counted."""
    return "catalog" if path.endswith((".toml", "catalog/__init__.py")) else Path(path).stem


def batches(mutant: Mutant, reach: dict, naming: dict[str, set[str]]) -> list[list[str]]:
    """The tests for a mutant in the order in which they are run, its module's own and the quickest first:
    those that reach its function. Code outside of functions, or kept from an earlier call, is covered by the
    files that name the module or the table."""
    stem, module = Path(mutant.path).stem, module_of(mutant.path)
    place = f"{mutant.path}:{mutant.function}"
    asked = {test for test, (_, called) in reach.items() if mutant.function and place in called}
    named = module if mutant.path.endswith(".py") else stem
    files = {
        file
        for file, names in naming.items()
        if Path(file).stem.startswith(f"test_{module}")
        or (module == "catalog" and Path(file).stem in CATALOGUE_TESTS)
        or (not asked and named in names and named not in BIG_TABLES)
    }
    asked |= {test for test in reach if test.split("::")[0] in files}
    order = sorted(asked, key=lambda test: (f"/test_{module}" not in test, reach[test][0]))
    return [batch for batch in (order[:40], order[40:]) if batch]


def patience_s(plan: list[list[str]], reach: dict) -> float:
    """How long the tests of a plan may take before the mutant counts as an endless loop."""
    return PATIENCE_S + SLOWER * sum(reach[test][0] for batch in plan for test in batch)


# -- one mutant ----------------------------------------------------------------------------------------------
def verdict(tree: Path, mutant: Mutant, plan: list[list[str]], limit_s: float, tick: int) -> Verdict:
    """Put a mutant into the tree, run the tests of the plan until one fails, and put the file back."""
    place = tree / mutant.path
    whole = place.read_text(encoding="utf-8")

    def work():
        import pytest

        for tests in plan:
            first = FirstFailure()
            code = pytest.main(["-x", "-q", *PLUGINS_OFF, *tests], plugins=[Settled(), first])
            if (
                code == pytest.ExitCode.USAGE_ERROR
            ):  # tests whose names the mutant changed: run all of their files
                files = sorted({test.split("::")[0] for test in tests})
                code = pytest.main(["-x", "-q", *PLUGINS_OFF, *files], plugins=[Settled(), first])
            if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
                return {"by": first.test or "an error at import"}
            if code != pytest.ExitCode.OK:
                return {"by": "", "trouble": str(code)}
        return {"by": ""}

    try:
        place.write_text(mutant.source, encoding="utf-8")
        os.utime(place, (tick, tick))  # compiled files are found by the source's time in seconds and its size
        found = in_child(tree, work, limit_s)
    finally:
        place.write_text(whole, encoding="utf-8")
        os.utime(place, (tick + 1, tick + 1))
    if found is None:
        return Verdict(mutant, "killed", f"no end in {limit_s:.0f} s, or no memory")
    if found.get("trouble"):
        sys.exit(f"The tests of {mutant.path}, line {mutant.line}, could not be run: {found['trouble']}")
    return Verdict(mutant, "killed" if found["by"] else "survived", found["by"])


def explained() -> dict[tuple[str, str], str]:
    """Why a change cannot have an effect, by file and change. An entry whose line no longer exists is an
    error."""
    entries = tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8"))["equivalent"]
    possible = {
        path: {mutant.change for mutant in mutations.of(path, (ROOT / path).read_text(encoding="utf-8"))}
        for path in {entry["path"] for entry in entries}
    }
    for entry in entries:
        if entry["change"] not in possible[entry["path"]]:
            sys.exit(f"{EQUIVALENTS.name} explains what is no mutant of {entry['path']}: {entry['change']}")
    return {(entry["path"], entry["change"]): entry["why"] for entry in entries}


# -- all of them ---------------------------------------------------------------------------------------------
def targets(names: list[str]) -> list[str]:
    """The paths of the named modules and tables; of all of them if none is named."""
    every = sorted([*ROOT.glob("engine/**/*.py"), *ROOT.glob("engine/catalog/*.toml")])
    paths = [str(path.relative_to(ROOT)) for path in every]
    unknown = [name for name in names if not any(name in (Path(p).name, Path(p).stem) for p in paths)]
    if unknown:
        sys.exit(f"No module or table of the engine is called {', '.join(unknown)}.")
    return [p for p in paths if not names or Path(p).name in names or Path(p).stem in names]


def lot(path: str, seed: int, each: int | None) -> list[Mutant]:
    """The mutants of a file that are tried: some of all possible ones, drawn by the seed."""
    mutants = mutations.of(path, (ROOT / path).read_text(encoding="utf-8"))
    count = each or min(MOST, max(FEWEST, round(len(mutants) / SITES_A_MUTANT)))
    return mutations.chosen(mutants, count, seed)


def run(names: list[str], seed: int, each: int | None) -> list[Verdict]:
    """Try the mutants of the named modules; returns a verdict on each."""
    import hypothesis.strategies  # noqa: F401  what every fork would import anew
    import numpy.random  # noqa: F401
    import pint  # noqa: F401
    import pytest  # noqa: F401

    reasons, verdicts, tick = explained(), [], int(time.time())
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder).resolve()
        for name in COPIED:
            if (ROOT / name).exists():
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "mkdocs.yml", "README.md", "CONTRIBUTING.md", "Makefile"):
            shutil.copy2(ROOT / name, tree / name)
        files = sorted(str(p.relative_to(tree)) for p in tree.glob("tests/engine/**/test_*.py"))
        reach = reached(tree, files)
        naming = {file: names_in(tree / file) for file in files}
        for path in targets(names):
            for mutant in lot(path, seed, each):
                tick += 2
                why = reasons.get((mutant.path, mutant.change))
                plan = batches(mutant, reach, naming)
                found = (
                    Verdict(mutant, "equivalent", why)
                    if why
                    else verdict(tree, mutant, plan, patience_s(plan, reach), tick)
                )
                verdicts.append(found)
                say(found)
    return verdicts


def say(found: Verdict) -> None:
    """Print a verdict with the changed line."""
    mutant = found.mutant
    print(
        f"{found.outcome:10s} {mutant.path}:{mutant.line} ({mutant.kind})\n"
        f"    - {mutant.before.strip()}\n    + {mutant.after.strip()}\n    {found.by}",
        flush=True,
    )


def table(verdicts: list[Verdict]) -> str:
    """The results by module, for RESULTS.md."""
    rows = ["| module | mutants | killed | equivalent | survived |", "|---|--:|--:|--:|--:|"]
    counts = Counter((v.mutant.path.removeprefix("engine/"), v.outcome) for v in verdicts)
    totals = Counter(v.outcome for v in verdicts)
    for module in dict.fromkeys(path for path, _ in counts):
        one = {outcome: counts[module, outcome] for outcome in ("killed", "equivalent", "survived")}
        rows.append(f"| {module} | {sum(one.values())} | " + " | ".join(map(str, one.values())) + " |")
    whole = [len(verdicts), totals["killed"], totals["equivalent"], totals["survived"]]
    return "\n".join([*rows, "| **all** | " + " | ".join(f"**{n}**" for n in whole) + " |"])


def main() -> int:
    """Run the mutants that the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(description="Break the engine in small ways; its tests must notice.")
    parser.add_argument("names", nargs="*", help="modules or tables, such as step or gpus.toml; none: all")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--each", type=int, help="so many of each; otherwise two to five, by size")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    options = parser.parse_args()
    began = time.perf_counter()
    verdicts = run(options.names, options.seed, options.each)
    survived = [v for v in verdicts if v.outcome == "survived"]
    took_s = time.perf_counter() - began
    text = f"{len(verdicts)} mutants in {took_s:.0f} s; {len(survived)} survived.\n\n{table(verdicts)}"
    print(f"\n{text}")
    if options.write:
        tally.write("Mutants", f"`make mutants`, {tally.circumstances()}: {text}")
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main())
