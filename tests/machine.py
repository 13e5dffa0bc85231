"""Finds the programs that a machine may lack: PyTorch, a browser, nginx, node.

A test that needs one asks here, and is skipped where it is missing. At the end of a run each missing program
is named once, with the number of tests left out and the command that adds it (tests/conftest.py).

Two settings are for .ci/run, which has to test everything. ``MAY_LACK="PyTorch"`` names the programs that may
be missing: any other fails the run. ``LACKED=1`` runs only the tests that the last run left out because
something was missing.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from importlib import util
from pathlib import Path
from typing import Any, NoReturn

import pytest

from course import browsers

ROOT = Path(__file__).resolve().parents[1]
IS_MISSING = " is missing on this machine"
# the name of a program -> the command that adds it
HOW = {
    "PyTorch": "make recorder",
    "Chromium": "apt-get install chromium",
    "Firefox": "apt-get install firefox-esr",
    "nginx": "apt-get install nginx-light",
    "node": "apt-get install nodejs",
    "mcp": "make recorder",
}
FIREFOX = ("firefox-esr", "firefox")


# -- what a test asks for ------------------------------------------------------------------------------------
def lacks(name: str) -> NoReturn:
    """Skips the test that needs this program."""
    assert name in HOW, name
    pytest.skip(f"{name}{IS_MISSING}", allow_module_level=True)


def torch(module: str = "torch") -> Any:
    """PyTorch, or another module that comes with it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        lacks("PyTorch")


def node() -> str:
    """The path of node."""
    return shutil.which("node") or lacks("node")


def nginx() -> str:
    """The path of nginx, which Debian keeps where only root looks."""
    return shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or lacks("nginx")


def chromium(playwrights_own: str) -> str:
    """The path of a Chromium."""
    try:
        return browsers.find(playwrights_own)
    except LookupError as error:
        if "CHROMIUM" in os.environ:  # whoever names a browser wants this one
            pytest.fail(str(error), pytrace=False)
        lacks("Chromium")


def firefox() -> str:
    """The path of a Firefox."""
    if named := os.environ.get("FIREFOX"):
        return shutil.which(named) or pytest.fail(f"FIREFOX={named} is not a program", pytrace=False)
    return next((path for name in FIREFOX if (path := shutil.which(name))), None) or lacks("Firefox")


def mcp() -> str:
    """The Python in which the official client of the Model Context Protocol is installed: the one that
    MCP_PYTHON names, or this one."""
    if named := os.environ.get("MCP_PYTHON"):
        return shutil.which(named) or pytest.fail(f"MCP_PYTHON={named} is not a program", pytrace=False)
    return sys.executable if util.find_spec("mcp") else lacks("mcp")


def interpreted(module: str) -> Any:
    """The JSON that a module prints when Triton interprets its kernels. It runs in a separate process,
    because Triton decides on import whether to interpret."""
    settings = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# -- what is said at the end ---------------------------------------------------------------------------------
def lacked(report: Any) -> str | None:
    """The missing program because of which a test, or a whole file of tests, was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    found = reason.removeprefix("Skipped: ").removesuffix(IS_MISSING)
    return found if IS_MISSING in reason and found in HOW else None


def summary(programs: Iterable[str]) -> list[str]:
    """A line for each program that tests were skipped for: how many, and what adds it."""
    return [f"{many} left out: {name} is missing ({HOW[name]})" for name, many in Counter(programs).items()]


def not_allowed(programs: Iterable[str]) -> list[str]:
    """The missing programs that make this run a failure: none, unless ``MAY_LACK`` is set."""
    if (allowed := os.environ.get("MAY_LACK")) is None:
        return []
    return sorted(set(programs) - set(allowed.split()))
