"""The wheel, as somebody has it who installed it: away from this tree, it plans a run, validates itself and
imports every widget."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EVERY_WIDGET = """
import engine, widgets, course
from widgets.kit.widget import all_widgets
from course import widget_html
from widgets.kit.page import module

html = widget_html.figure(all_widgets()["memory_stack"](), "w-memory_stack")
print(len(all_widgets()), "<figure" in html, len(module.module(all_widgets()["memory_stack"])) > 1000)
print(*{name.__file__ for name in (engine, widgets, course)}, sep="\\n")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds what the wheel holds, and nothing else."""
    made, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("target")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--wheel-dir", str(made)],
        check=True,
        stderr=subprocess.PIPE,
    )
    [wheel] = made.glob("*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-compile", "--target", str(target), str(wheel)],
        check=True,
        stderr=subprocess.PIPE,
    )
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"engine", "widgets", "course"}
    return target


def run(installed: Path, folder: Path, *command: str) -> str:
    """What a command prints, away from this tree."""
    environment = os.environ | {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_widget_can_be_imported_and_shown(installed, tmp_path):
    count, *where = run(installed, tmp_path, sys.executable, "-c", EVERY_WIDGET).splitlines()
    modules = [file for file in (ROOT / "widgets").glob("[a-z]*/*.py") if file.parent.name != "kit"]
    assert count == f"{sum(file.name != '__init__.py' for file in modules)} True True"
    assert len(where) == 3 and all(Path(file).is_relative_to(installed) for file in where)


PLAN = "plan --model llama3-8b --gpu h100-sxm --gpus 64 --global-batch 512 --seq 8192"


@pytest.mark.parametrize("words", [["validate"], PLAN.split()], ids=lambda words: words[0])
def test_its_command_validates_and_plans(installed, tmp_path, words):
    said = run(installed, tmp_path, sys.executable, str(installed / "bin" / "system-ml"), *words, "--json")
    assert json.loads(said)


def test_what_is_pinned_lies_within_what_is_declared():
    """What is built and tested on is allowed; `make floors` tries the oldest that is."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.lower().split("==") for line in lines if "==" in line)
    extras = [line for name, extra in PROJECT["optional-dependencies"].items() for line in extra]
    declared = [Requirement(line) for line in [*PROJECT["dependencies"], *extras]]
    unpinned = {Requirement(line).name for line in PROJECT["optional-dependencies"]["bench"]}
    for one in declared:
        if one.name not in unpinned | {PROJECT["name"]}:
            version = pinned[one.name.lower()]
            assert one.specifier.contains(version), f"{one} does not allow the pinned {version}"
            assert {clause.operator for clause in one.specifier} & {">=", "=="}, f"{one} has no floor"
