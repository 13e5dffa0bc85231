"""The workflow and .ci/run walk the path that README shows a newcomer, with the same system packages."""

import re
import subprocess

import yaml

from tests import machine
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALL = (ROOT / ".ci" / "install").read_text(encoding="utf-8")
RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PACKAGES = re.search(r"^packages=\((.*)\)$", INSTALL, re.MULTILINE)[1].split()


def test_readme_names_what_ci_installs():
    [named] = re.findall(r"apt-get install ([\w -]+)", README)
    assert sorted(named.split()) == sorted(PACKAGES)


def test_each_program_that_a_test_may_lack_comes_with_these_packages():
    for how in machine.HOW.values():
        assert how.removeprefix("apt-get install ") in PACKAGES or how == "make recorder"


def test_ci_installs_nothing_else():
    commands = [line.strip() for line in RUN.splitlines() if line.strip() and not line.startswith("#")]
    installing = [line for line in commands if re.search(r"\b(apt|pip|npm|install)\b", line)]
    assert installing == ['bash "$here/.ci/install"']
    assert [line for line in commands if "make" in line and "mktemp" not in line] == [
        "make .venv/.ready",
        "make site & site=$!     # the tests need it; its one process leaves a core to lint",
        "make lint",
        'MAY_LACK="PyTorch mcp" make test',
        "make recorder",
        'MAY_LACK="" LACKED=1 make test',
    ]


def test_workflows_install_what_readme_names_or_nothing():
    assert WORKFLOWS
    for file in WORKFLOWS:
        for job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values():
            said = "\n".join(step.get("run", "") for step in job.get("steps", []))
            assert "apt" not in said, file.name
            if "make test" in said:
                assert "bash .ci/install" in said, file.name
    [tests] = [file for file in WORKFLOWS if file.name == "tests.yml"]
    steps = yaml.safe_load(tests.read_text(encoding="utf-8"))["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == ["bash .ci/run"]


def test_the_scripts_are_bash():
    for name in ("install", "run"):
        subprocess.run(["bash", "-n", ROOT / ".ci" / name], check=True)
