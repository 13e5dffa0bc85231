"""Tests of a missing program are skipped, and the program is named once; if no program may be missing, the
run fails."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests import machine
from tests.conftest import ROOT

ASKS_NODE = "tests/widgets/kit/compiler/test_refusals.py"


def run_without_programs(tmp_path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a file of tests that need node where no program can be found, with a separate pytest cache."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-o", f"cache_dir={tmp_path}", ASKS_NODE]
    ours = ("PYTEST_XDIST", "MAY_LACK", "LACKED")  # the settings of the run that asks, .ci/run's among them
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {"PATH": str(tmp_path)} | settings
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


def test_without_node_a_run_is_green_and_says_what_it_left_out(tmp_path):
    ran = run_without_programs(tmp_path)
    assert ran.returncode == 0, ran.stdout[-2000:]
    [left_out] = re.findall(r"\n(\d+) left out: node is missing \(apt-get install nodejs\)\n", ran.stdout)
    assert int(left_out) == int(re.search(r"(\d+) skipped", ran.stdout)[1]) > 0


def test_a_run_that_may_lack_pytorch_alone_fails_without_node(tmp_path):
    ran = run_without_programs(tmp_path, MAY_LACK="PyTorch")
    assert ran.returncode == 1 and "this run may not lack node" in ran.stdout
    assert run_without_programs(tmp_path, MAY_LACK="PyTorch node").returncode == 0


def test_what_was_left_out_is_what_the_next_run_asks(tmp_path):
    first = run_without_programs(tmp_path)
    again = run_without_programs(tmp_path, LACKED="1")
    assert first.returncode == again.returncode == 0
    left_out = re.compile(r"^\d+ left out.*$", re.MULTILINE)
    assert left_out.findall(first.stdout) == left_out.findall(again.stdout) != []


@pytest.mark.parametrize("name", machine.HOW)
def test_a_skip_is_known_by_its_program(name):
    with pytest.raises(pytest.skip.Exception) as skipped:
        machine.lacks(name)
    report = SimpleNamespace(longrepr=("file", 1, f"Skipped: {skipped.value.msg}"))
    assert machine.lacked(report) == name
    assert machine.summary([name, name]) == [f"2 left out: {name} is missing ({machine.HOW[name]})"]


def test_another_reason_is_no_lack():
    assert machine.lacked(SimpleNamespace(longrepr=("file", 1, "Skipped: this machine has a GPU"))) is None
    assert machine.lacked(SimpleNamespace(longrepr="a traceback")) is None
