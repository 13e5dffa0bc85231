"""A pytest plugin: runs only the tests that ``make check`` has chosen, and notes the time of each test
function.

The times are in build/check/seconds.json: file -> [seconds to import it, {function: [tests, seconds]}].
Every run of tests adds to it, so that the next ``make check`` knows what fits into a minute.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.touched import NEEDED

FOLDER = Path(__file__).resolve().parents[1] / "build" / "check"
SECONDS = FOLDER / "seconds.json"
LATE = FOLDER / "late.json"  # the tests that were chosen, but for which no time was left
PLAN = "CHECK_PLAN"  # the environment's name for the file that says what to run
AT_LEAST_S = 15  # for tests, even if a busy machine has used up the minute before the first one starts

_imported: dict[str, float] = {}  # of this process: test file -> seconds
_took: dict[str, list] = defaultdict(lambda: [0, 0.0])  # file::function -> [tests, seconds]
_late: set[str] = set()  # tests for which no time was left


def known_seconds() -> dict[str, list]:
    """The times that earlier runs have noted."""
    return json.loads(SECONDS.read_bytes()) if SECONDS.is_file() else {}


def late() -> list[str]:
    """The tests of the last ``make check`` for which no time was left."""
    return json.loads(LATE.read_bytes()) if LATE.is_file() else []


def _plan() -> dict:
    return json.loads(Path(os.environ[PLAN]).read_bytes()) if PLAN in os.environ else {}


# -- only what was chosen ------------------------------------------------------------------------------------
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Sort the tests nearest to the change first, and among these the cases first that name a changed
    thing."""
    if not (plan := _plan()):
        return
    order = {file: place for place, file in enumerate(plan["files"])}
    chosen = [
        item
        for item in items
        if _function(item.nodeid)[1] in plan["files"].get(_function(item.nodeid)[0], ())
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    named = lambda item: any(stem in item.nodeid.partition("[")[2] for stem in plan["stems"])
    items[:] = sorted(chosen, key=lambda item: (not named(item), order[_function(item.nodeid)[0]]))


def pytest_collection_finish(session):
    """Set the time limit, with at least AT_LEAST_S for the nearest tests, however long collecting has
    taken."""
    if plan := _plan_of(session.config):
        plan["until"] = max(plan["until"], time.time() + AT_LEAST_S)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip a test when the minute is over, which happens if the machine is busier than when times were
    noted."""
    plan = _plan_of(item.config)
    if plan and time.time() > plan["until"]:
        _late.add(item.nodeid)
        pytest.skip("the minute was over")


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    """Skip a test that requests a browser or the site in a way that could not be read from its source."""
    if fixturedef.argname in NEEDED and _plan_of(request.config):
        pytest.skip(f"it needs {NEEDED[fixturedef.argname]}")


def _plan_of(config) -> dict:
    if not hasattr(config, "check_plan"):
        config.check_plan = _plan()
    return config.check_plan


# -- what it takes -------------------------------------------------------------------------------------------
def _function(nodeid: str) -> tuple[str, str]:
    file, _, name = nodeid.partition("::")
    return file, name.partition("[")[0]


def _spent_s() -> float:
    """The processor time of this process and of its finished children, which is the same on a busy and on an
    idle machine."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Note the time to import a test file."""
    began = _spent_s()
    report = yield
    if isinstance(collector, pytest.Module):
        _imported[collector.nodeid] = round(_spent_s() - began, 3)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note the time of a test, including its fixtures."""
    began = _spent_s()
    done = yield
    if item.nodeid not in _late:
        noted = _took["::".join(_function(item.nodeid))]
        noted[0] += 1
        noted[1] = round(noted[1] + _spent_s() - began, 3)
    return done


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Add the times of a worker. Each worker imports all files, and runs its share of the tests."""
    noted = getattr(node, "workeroutput", {}).get("noted")
    if noted:
        _imported.update(noted[0])
        _late.update(noted[2])
        for name, (tests, seconds) in noted[1].items():
            _took[name] = [_took[name][0] + tests, _took[name][1] + seconds]


def pytest_sessionfinish(session):
    """Add this run's times to the noted ones."""
    if hasattr(session.config, "workerinput"):
        session.config.workeroutput["noted"] = [_imported, dict(_took), sorted(_late)]
        return
    known = known_seconds()
    for file, seconds in _imported.items():
        known.setdefault(file, [0, {}])[0] = seconds
    for name, noted in _took.items():
        file, function = name.split("::")
        functions = known.setdefault(file, [0, {}])[1]
        if noted[0] >= functions.get(function, [0])[0]:  # the time of a part of the cases would be too short
            functions[function] = noted
    FOLDER.mkdir(parents=True, exist_ok=True)
    if PLAN in os.environ:
        LATE.write_text(json.dumps(sorted(_late)), encoding="utf-8")
    unfinished = SECONDS.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(known), encoding="utf-8")
    unfinished.replace(SECONDS)
