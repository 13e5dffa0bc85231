"""The programs that lessons print, run as a reader would: their blocks in one file, under torchrun."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lessons.forked import END
from tests.lessons.reading import Lesson


def written(lesson: Lesson, place: Path) -> None:
    """The lesson's Python blocks, one after the other, as train.py in this folder."""
    (place / "train.py").write_text("\n\n".join(lesson.code("python")), encoding="utf-8")


def commands(lesson: Lesson) -> list[tuple[str, list[str]]]:
    """The commands of the lesson's console, each with the lines that it is said to print."""
    [console] = lesson.code("console")
    found = re.findall(r"^(\$ .+)\n((?:[^$].*\n)+)", console, re.MULTILINE)
    return [(command, printed.splitlines()) for command, printed in found]


ABORTED_AT_EXIT = "terminate called without an active exception"
SIGABRT, SIGTERM = -6, -15


def did_all_its_work(returncode: int, errors: str) -> bool:
    """Whether a program ended well, or was aborted by gloo after its last line.

    Gloo's thread lets go of the last collective's tensor under Python's lock. When Python is already ending,
    that aborts the process, and torchrun then terminates the other ranks (pytorch/pytorch#179291; seen in one
    run of three with four ranks on two busy cores). An exception of the program itself is no such end."""
    if returncode == 0:
        return True
    ends = {int(code) for code in re.findall(r"exitcode\s*: (-?\d+)", errors)}
    raised = re.search(r'File "[^"]*(train|watched_ddp)\.py", line', errors)
    return ABORTED_AT_EXIT in errors and SIGABRT in ends and ends <= {SIGABRT, SIGTERM} and not raised


def ran(place, command: str) -> list[str]:
    """What a command of the lesson prints, run in this folder."""
    launcher, *arguments = command.removeprefix("$ ").split()
    assert launcher == "torchrun"
    done = _run(place, "-m", "torch.distributed.run", *arguments)
    assert did_all_its_work(done.returncode, done.stderr), done.stderr[-4000:]
    return done.stdout.splitlines()


def ran_forked(place, command: str) -> list[str]:
    """The same, where torchrun itself is not what is asked: in a fifth of the time (see forked.py)."""
    return all_forked([(place, command)])[0]


def all_forked(runs: list[tuple[Path, str]]) -> list[list[str]]:
    """What each of some commands prints, run in its folder after those before it."""
    asked = []
    for place, command in runs:
        launcher, option, ranks, *arguments = command.removeprefix("$ ").split()
        assert (launcher, option) == ("torchrun", "--nproc-per-node")
        asked.append([str(place), int(ranks), *arguments])
    done = _run(runs[0][0], str(Path(__file__).with_name("forked.py")), json.dumps(asked))
    assert done.returncode == 0, done.stderr[-4000:]
    return [each.splitlines() for each in done.stdout.split(f"{END}\n")[:-1]]


def _run(place, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def alike(found: list[str], wanted: list[str]) -> None:
    """Asserts that both are the same lines, except that a loss may differ by two hundredths."""
    assert [re.sub(r"\d\.\d\d", "", line) for line in found] == [
        re.sub(r"\d\.\d\d", "", line) for line in wanted
    ]
    for one, other in zip(found, wanted, strict=True):
        losses = [float(digits) for line in (one, other) for digits in re.findall(r"\d\.\d\d", line)]
        assert not losses or losses[0] == pytest.approx(losses[1], abs=0.02)
