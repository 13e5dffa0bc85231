"""make mutants: breaks the engine in many small ways, one at a time, and shows that its tests notice.

    python -m bench.mutants                     two to five of every module and table of engine/, some 650
    python -m bench.mutants step gpus.toml      these alone;  --each 20 for so many of each
    python -m bench.mutants --seed 7            others, by another lot

Each core has a process with a copy of the tree; the tree itself is never touched. A first run of the tests
records which functions each test calls; each mutant is then run against the tests that reach it, its module's
own and the quickest first. What was found is kept in build/mutants until the engine or the test in question
changes, so that an interrupted run goes on where it stopped. Exits with 1 if a mutant survives that
``bench/equivalents.toml`` does not explain.
"""

from __future__ import annotations

import argparse
import contextlib
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
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
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
    "pyproject.toml",
    "mkdocs.yml",
    "README.md",
    "CONTRIBUTING.md",
    "Makefile",
)
SITES_A_MUTANT, FEWEST, MOST = 80, 2, 5
MEMORY_BYTES = 6 * 2**30
# a mutant may compute for so long, and this factor over what its tests took in the first run: else it loops
PATIENCE_S, SLOWER = 30, 5
STUCK_S = 3600  # and a run may last so long by the clock, in case it waits for what never comes
FIRST_TESTS, NEXT_TESTS, SLOW_S = 15, 60, 1.0
SHARES = 16  # of the files of tests, in the first run: each is a process that imports the engine
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
def in_child(tree: Path, work) -> dict | None:
    """The result of ``work()`` in a fork that runs in ``tree``, with nothing of the engine imported yet; None
    if it died or exceeded its limits."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        _work(tree, work, read, write)
    os.close(write)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(STUCK_S)
    try:
        with open(read, encoding="utf-8") as answer:
            text = answer.read()
    finally:
        signal.alarm(0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # and the programs that its tests have left running
        os.waitpid(child, 0)
    return json.loads(text) if text else None


def _work(tree: Path, work, read: int, write: int) -> None:
    try:
        os.close(read)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        os.chdir(tree)
        sys.path[0] = str(tree)
        os.environ["PYTHONPATH"] = str(tree)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        try:
            found = json.dumps(work())
        except MemoryError:  # no answer is one, too
            return
        except Exception as error:
            found = json.dumps({"trouble": repr(error)})
        with open(write, "w", encoding="utf-8") as answer:
            answer.write(found)
    finally:
        os._exit(0)


def allow(seconds: float) -> None:
    """Have this process killed, and any that it starts, once it has computed for this much longer. Time by
    the clock would also run out on a busy machine, and the mutant would count as noticed."""
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds), most))


def own_copy(folder: Path) -> Path:
    """The copy of the tree that belongs to this process, made when it is first asked for."""
    tree = folder / str(os.getpid())
    if not tree.exists():
        tree.mkdir()
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, tree / name)
    return tree


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
        sys.settrace(self.watch)  # anew for each: Python stops watching where a test recurses without end

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            calls = sorted(
                {f"engine/{c.co_filename.removeprefix(self.inside)}:{c.co_firstlineno}" for c in self.now}
            )
            self.found[report.nodeid] = [report.duration, calls]


def noted(folder: Path, files: list[str]) -> dict[str, list]:
    """{test: [seconds, functions it calls]} for the passing tests of some files, from a monitored run."""
    tree = own_copy(folder)

    def work():
        import pytest

        watcher = Reach(tree)
        code = pytest.main(["-q", *PLUGINS_OFF, *files], plugins=[Settled(), watcher])
        return watcher.found if code == pytest.ExitCode.OK else {"trouble": str(code)}

    found = in_child(tree, work)
    if found is None or "trouble" in found:
        raise RuntimeError(f"{', '.join(files)} could not be run in the copy: {found}")
    return found


def digest(*sources: Path) -> str:
    """A name for what these files hold."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


class Kept:
    """A file of build/mutants: what was found about this engine, by name."""

    def __init__(self, what: str):
        parts = sorted(
            [*ROOT.glob("engine/**/*.*"), *ROOT.glob("tests/engine/**/*.*"), *ROOT.glob("tests/*.py")]
        )
        fixed = [p for p in parts if p.suffix in (".py", ".toml", ".json") and not p.name.startswith("test_")]
        self.path = KEPT / f"{what}-{digest(*fixed)}.json"
        self.found = json.loads(self.path.read_text()) if self.path.exists() else {}

    def save(self) -> None:
        KEPT.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.found))


def reached(pool: ProcessPoolExecutor, folder: Path, versions: dict[str, str]) -> dict[str, list]:
    """{test: [seconds, functions it calls]} for all passing tests of the files."""
    kept = Kept("reach")
    new = [file for file, version in versions.items() if version not in kept.found]
    if new:
        print(f"Noting which test calls which function, for {len(new)} files (once) ...", flush=True)
        shares = [new[i::SHARES] for i in range(min(SHARES, len(new)))]
        for share, found in zip(shares, pool.map(partial(noted, folder), shares)):
            kept.found |= {versions[file]: {} for file in share}
            for test, known in found.items():
                kept.found[versions[test.split("::")[0]]][test] = known
            kept.save()
    return {test: known for version in versions.values() for test, known in kept.found[version].items()}


def names_in(test_file: Path) -> set[str]:
    """Every word that a test file uses as a name, including modules."""
    return set(re.findall(r"[A-Za-z_]+", test_file.read_text(encoding="utf-8")))


def module_of(path: str) -> str:
    """The name under which a file's mutants are counted."""
    return "catalog" if path.endswith((".toml", "catalog/__init__.py")) else Path(path).stem


def batches(mutant: Mutant, reach: dict, naming: dict[str, set[str]]) -> list[tuple[float, list[str]]]:
    """The tests for a mutant in the order in which they are run, each batch with the time that it may take:
    those that reach its function, the slow ones last, its module's own and the quickest first. Code outside
    of functions, or kept from an earlier call, is covered by the files of its room, and by those that name
    the module or the table."""
    stem, module = Path(mutant.path).stem, module_of(mutant.path)
    place = f"{mutant.path}:{mutant.function}"
    asked = {test for test, (_, called) in reach.items() if mutant.function and place in called}
    named = module if mutant.path.endswith(".py") else stem
    room = Path("tests/engine", *Path(mutant.path).parts[1:-1][:1])
    files = {
        file
        for file, names in naming.items()
        if Path(file).stem.startswith(f"test_{module}")
        or (module == "catalog" and Path(file).stem in CATALOGUE_TESTS)
        or (not asked and Path(file).parent == room)
        or (not asked and named in names and named not in BIG_TABLES)
    }
    asked |= {test for test in reach if test.split("::")[0] in files}
    order = sorted(
        asked, key=lambda test: (reach[test][0] > SLOW_S, f"/test_{module}" not in test, reach[test][0])
    )
    second = FIRST_TESTS + NEXT_TESTS
    return [
        (PATIENCE_S + SLOWER * sum(reach[test][0] for test in batch), batch)
        for batch in (order[:FIRST_TESTS], order[FIRST_TESTS:second], order[second:])
        if batch
    ]


# -- one mutant ----------------------------------------------------------------------------------------------
def verdict(folder: Path, mutant: Mutant, plan: list[tuple[float, list[str]]], tick: int) -> Verdict:
    """Put a mutant into the tree, run the tests of the plan until one fails, and put the file back."""
    tree = own_copy(folder)
    place = tree / mutant.path
    whole = place.read_text(encoding="utf-8")

    def work():
        import pytest

        for seconds, tests in plan:
            allow(seconds)
            first = FirstFailure()
            code = pytest.main(["-x", "-q", *PLUGINS_OFF, *tests], plugins=[Settled(), first])
            if (
                code == pytest.ExitCode.USAGE_ERROR
            ):  # tests whose names the mutant changed: run all of their files
                files = sorted({test.split("::")[0] for test in tests})
                code = pytest.main(["-x", "-q", *PLUGINS_OFF, *files], plugins=[Settled(), first])
            if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
                return {"by": first.test or "an error at import"}
            if code == pytest.ExitCode.USAGE_ERROR:  # the unbroken tree could run them
                return {"by": "the tests cannot be loaded"}
            if code == pytest.ExitCode.INTERNAL_ERROR:  # so it did with these: out of memory, as a rule
                return {"by": first.test or "pytest itself fails"}
            if code != pytest.ExitCode.OK:
                return {"by": "", "trouble": str(code)}
        return {"by": ""}

    try:
        place.write_text(mutant.source, encoding="utf-8")
        os.utime(place, (tick, tick))  # compiled files are found by the source's time in seconds and its size
        found = in_child(tree, work)
    finally:
        place.write_text(whole, encoding="utf-8")
        os.utime(place, (tick + 1, tick + 1))
    if found is None:
        return Verdict(mutant, "killed", "no end, or no memory")
    if found.get("trouble"):  # nobody knows, so somebody has to look
        return Verdict(mutant, "survived", f"the tests could not be run: {found['trouble']}")
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

    files = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/engine/**/test_*.py"))
    versions = {file: f"{file} {digest(ROOT / file)}" for file in files}
    naming = {file: names_in(ROOT / file) for file in files}
    mutants = [mutant for path in targets(names) for mutant in lot(path, seed, each)]
    kept, now, verdicts = Kept("kills"), int(time.time()), []
    settled = known(mutants, kept, versions)
    print(f"{len(mutants)} mutants, {len(settled)} of them settled before.", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, one_for_each_core() as pool:
        folder = Path(name).resolve()
        reach = reached(pool, folder, versions)
        new = [mutant for mutant in mutants if mutant not in settled]
        plans = [batches(mutant, reach, naming) for mutant in new]
        tried = pool.map(partial(verdict, folder), new, plans, range(now, now + 2 * len(new), 2))
        for mutant in mutants:
            found = settled.get(mutant) or next(tried)
            file = found.by.split("::")[0]
            if found.outcome == "killed" and file in versions:
                kept.found[key(mutant)] = [versions[file], found.by]
                kept.save()
            verdicts.append(found)
            say(found)
    return verdicts


@contextlib.contextmanager
def one_for_each_core() -> Iterator[ProcessPoolExecutor]:
    """Processes that try mutants; whatever ends the run, what they have not begun is dropped."""
    pool = ProcessPoolExecutor(mp_context=get_context("fork"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def key(mutant: Mutant) -> str:
    """The name under which a verdict is kept."""
    return f"{mutant.path}:{mutant.line} {mutant.kind}: {mutant.change}"


def known(mutants: list[Mutant], kept: Kept, versions: dict[str, str]) -> dict[Mutant, Verdict]:
    """The mutants that need not be tried: explained ones, and those that a test killed which is still the
    same."""
    reasons, found = explained(), {}
    for mutant in mutants:
        version, by = kept.found.get(key(mutant), ("", ""))
        if why := reasons.get((mutant.path, mutant.change)):
            found[mutant] = Verdict(mutant, "equivalent", why)
        elif version in versions.values():
            found[mutant] = Verdict(mutant, "killed", by)
    return found


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
