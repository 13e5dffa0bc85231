"""The wheel, installed outside of this tree: it plans a run, validates itself, imports every widget and
serves the course.

WHEEL=… tests a wheel that was made elsewhere, as the workflow does on each system and Python. Use
--noconftest with it, because tests/conftest.py needs packages that are installed only for development.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from urllib.request import urlopen

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


ELSEWHERE = "WHEEL" in os.environ
WAYS = [[], ["--static"]] if ELSEWHERE else [[]]  # here, tests/browser/test_deploy.py tries the other
SERVED = {  # address -> words that are found there
    "": "System ML",
    "01-why-distributed/": "Why distributed at all?",
    "memory_stack/": 'data-widget="memory_stack"',
    "assets/widgets/memory_stack.js": "export",
}
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
WINDOWS = sys.platform == "win32"


@pytest.fixture(scope="module")
def wheel(request, tmp_path_factory) -> Path:
    """The wheel of this tree with the built course in it, or the one that the environment names."""
    if ELSEWHERE:
        return Path(os.environ["WHEEL"])
    request.getfixturevalue("site")
    return made(ROOT, tmp_path_factory.mktemp("wheel"))


def made(tree: Path, folder: Path) -> Path:
    command = [*PIP, "wheel", str(tree), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.PIPE)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder that holds what the wheel holds, and nothing else."""
    target = tmp_path_factory.mktemp("target")
    subprocess.run(
        [*PIP, "install", "--no-deps", "--no-compile", "--target", str(target), str(wheel)],
        check=True,
        stderr=subprocess.PIPE,
    )
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"engine", "widgets", "course"}
    return target


def away(installed: Path, folder: Path) -> dict:
    """The arguments for subprocess that run a command outside of this tree."""
    environment = os.environ | {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    return {"cwd": folder, "env": environment, "text": True, "encoding": "utf-8"}


def run(installed: Path, folder: Path, *command: str) -> str:
    """What a command prints."""
    done = subprocess.run(command, capture_output=True, **away(installed, folder))
    assert done.returncode == 0, done.stderr
    return done.stdout


def system_ml(installed: Path) -> list[str]:
    """The command as pip has put it there."""
    [script] = [file for file in installed.glob("*/system-ml*") if file.is_file()]
    return [str(script)] if WINDOWS else [sys.executable, str(script)]


def test_every_widget_can_be_imported_and_shown(installed, tmp_path):
    count, *where = run(installed, tmp_path, sys.executable, "-c", EVERY_WIDGET).splitlines()
    modules = [file for file in (ROOT / "widgets").glob("[a-z]*/*.py") if file.parent.name != "kit"]
    assert count == f"{sum(file.name != '__init__.py' for file in modules)} True True"
    assert len(where) == 3 and all(Path(file).is_relative_to(installed) for file in where)


def test_it_has_the_version_of_the_project(wheel, installed, tmp_path):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert wheel.name.startswith(f"system_ml-{version}-")
    assert run(installed, tmp_path, *system_ml(installed), "--version") == f"system-ml {version}\n"


PLAN = "plan --model llama3-8b --gpu h100-sxm --gpus 64 --global-batch 512 --seq 8192"


@pytest.mark.parametrize("words", [["validate"], PLAN.split()], ids=lambda words: words[0])
def test_its_command_validates_and_plans(installed, tmp_path, words):
    assert json.loads(run(installed, tmp_path, *system_ml(installed), *words, "--json"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("flags", WAYS, ids=str)
def test_its_command_serves_the_course_and_says_that_a_port_is_in_use(installed, tmp_path, flags):
    command = [*system_ml(installed), "serve", "--port", str(free_port()), *flags]
    apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if WINDOWS else {}
    where, pipe = away(installed, tmp_path), subprocess.PIPE
    server = subprocess.Popen(command, stdout=pipe, stderr=pipe, **where, **apart)
    try:
        opened = re.search(r"is open on (http://localhost:\d+/)", server.stdout.readline())
        assert opened, server.stderr.read()
        for path, words in SERVED.items():
            with urlopen(opened[1] + path, timeout=30) as got:
                assert words in got.read().decode("utf-8")
                kind = got.headers["Content-Type"]
                assert kind.startswith("text/javascript" if path.endswith(".js") else "text/html")
        if not flags:
            with urlopen(f"{opened[1]}live/health", timeout=30) as got:
                assert got.read() == b"well"
        again = subprocess.run(command, capture_output=True, timeout=60, **where)
        assert again.returncode == 2 and again.stdout == "" and again.stderr.count("\n") == 1
        assert "is in use" in again.stderr
    finally:
        server.send_signal(signal.CTRL_BREAK_EVENT if WINDOWS else signal.SIGTERM)
        _, fault = server.communicate(timeout=30)
    assert server.returncode == 0 and "Traceback" not in fault
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    ELSEWHERE, reason="makes a wheel, for which only the tests' own installation has what it takes"
)
def test_without_a_build_the_wheel_has_the_rest_and_says_so(tmp_path):
    """Somebody who installs a fresh clone gets such a wheel."""
    tree, target = tmp_path / "tree", tmp_path / "target"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "hatch_build.py"):
        shutil.copy(ROOT / name, tree)
    for name in ("engine", "widgets", "course"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    with zipfile.ZipFile(made(tree, tmp_path)) as packed:
        assert not any(name.startswith("course/packed") for name in packed.namelist())
        packed.extractall(target)
    serve = [sys.executable, "-m", "course.command", "serve"]
    done = subprocess.run(serve, capture_output=True, **away(target, tmp_path))
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert "does not have the built course" in done.stderr


def test_what_is_pinned_lies_within_what_is_declared():
    """The versions used for building and testing are among the allowed ones; `make floors` tries the oldest
    of these."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.lower().split("==") for line in lines if "==" in line)
    extras = [line for name, extra in PROJECT["optional-dependencies"].items() for line in extra]
    declared = [Requirement(line) for line in [*PROJECT["dependencies"], *extras]]
    apart = [line for name in ("bench", "frameworks") for line in PROJECT["optional-dependencies"][name]]
    unpinned = {Requirement(line).name for line in apart}  # other people's programs, installed beside ours
    for one in declared:
        if one.name not in unpinned | {PROJECT["name"]}:
            version = pinned[one.name.lower()]
            assert one.specifier.contains(version), f"{one} does not allow the pinned {version}"
            assert {clause.operator for clause in one.specifier} & {">=", "=="}, f"{one} has no floor"
