"""`system-ml check` where nobody looks: watching files, before a commit, and as a step of a workflow."""

import json
import os
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
import yaml

import engine.__main__ as command
from engine import arguments

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "deploy" / "check" / "action.yml").read_text("utf-8"))
README = (ROOT / "deploy" / "check" / "README.md").read_text("utf-8")
FITS = "vllm serve meta-llama/Llama-3.1-8B --max-model-len 8192\n"
TOO_LARGE = "vllm serve meta-llama/Llama-3.1-70B\n"


def test_watching_answers_again_when_a_file_is_saved(tmp_path, capsys):
    file = tmp_path / "serve.sh"
    file.write_text(TOO_LARGE, "utf-8")
    args = arguments.parser("").parse_args(["check", str(file), "--gpu", "h100-sxm", "--watch"])
    later = threading.Timer(1.0, lambda: file.write_text(FITS, "utf-8"))
    later.start()
    assert command.watched(args, "system-ml check", rounds=2) == 0
    out = capsys.readouterr().out
    assert "does not fit" in out and out.rindex("fits, with room for") > out.index("does not fit")


def test_the_hook_starts_the_command_that_there_is():
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    program, verb = hook["entry"].split()
    assert program in scripts and verb == "check" and hook["language"] == "python"
    assert f"id: {hook['id']}" in README


@pytest.fixture
def step(tmp_path):
    """Runs the action's script on files of a folder, with pip replaced; its status, outputs and summary."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, line in (
        ("python", f'[ "$1 $2" = "-m pip" ] || exec {sys.executable} "$@"'),
        ("system-ml", f'exec {sys.executable} -m engine "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        (programs / name).chmod(0o755)

    def run(texts: dict[str, str], **inputs):
        for name, text in texts.items():
            (tmp_path / name).write_text(text, "utf-8")
        given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
        [the] = ACTION["runs"]["steps"]
        told = {name: given[value.split(".")[1].strip(" }")] for name, value in the["env"].items()}
        places = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        paths = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path),
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            ["bash", "-e", "-c", the["run"]],
            cwd=tmp_path,
            env=os.environ | paths | places | told,
            check=False,
        )
        lines = Path(places["GITHUB_OUTPUT"]).read_text("utf-8").splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        return done.returncode, outputs, Path(places["GITHUB_STEP_SUMMARY"]).read_text("utf-8")

    return run


def test_the_action_passes_what_fits_and_says_so(step):
    status, outputs, summary = step({"serve.sh": FITS}, files="serve.sh")
    assert status == 0 and outputs["verdict"] == "fits" and summary.startswith("### vLLM, Llama 3.1 8B")
    assert json.loads(Path(outputs["json"]).read_text("utf-8"))["cache_tokens"] > 100_000


def test_the_action_stops_what_does_not_fit_and_what_nobody_can_say(step):
    status, outputs, summary = step({"serve.sh": TOO_LARGE}, files="serve.sh", gpu="h200", gpus="1")
    assert (status, outputs["verdict"]) == (3, "does not fit") and "does not fit" in summary
    status, outputs, _ = step({"notes.sh": "echo hello\n"}, files="notes.sh")
    assert (status, outputs["verdict"]) == (5, "cannot say")


def test_the_example_gives_inputs_that_the_action_has():
    example = yaml.safe_load(README.split("```yaml\n")[2].split("```")[0])
    [_, _, the] = example["steps"]
    assert the["uses"].endswith("deploy/check@v0.3.0") and set(the["with"]) <= set(ACTION["inputs"])
