"""The command ``system-ml``: its additions to the engine's command line, and its messages for bad input."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import engine
from course import command, serve
from engine.__main__ import COMMANDS
from tests.conftest import ROOT


def said(line: str, capsys) -> tuple[int, str, str]:
    try:
        status = command.main(line.split())
    except SystemExit as ended:
        status = ended.code
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def taken():
    """A port on which a program listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def built(monkeypatch, tmp_path):
    """Pretends that there is a built course, without building one."""
    (tmp_path / "index.html").touch()
    monkeypatch.setattr(serve, "SITE", tmp_path)


def test_it_has_all_commands_of_the_engine_and_its_own():
    assert set(command.commands().commands.choices) == {*COMMANDS, "serve", "mcp", "completion"}


def test_the_engine_answers_under_its_name(capsys):
    status, out, _ = said("nodes --csv", capsys)
    assert status == 0 and out.startswith("key,name,gpu,")
    status, out, err = said("estimate --model llama3-8b --gpu none --gpus 8 --global-batch 8 --seq 8", capsys)
    assert (status, out) == (2, "") and err.startswith("system-ml estimate: error: ")


# -- bad input -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve --port 0", "--port must be from 1 to 65535, got 0"),
        ("serve --port 70000", "--port must be from 1 to 65535, got 70000"),
        ("serve --port nine", "argument --port: invalid int value: 'nine'"),
        ("serve --prot 5006", "there is no flag --prot; did you mean --port?"),
        ("serve --static --watch", "not allowed with argument --static"),
        ("completion tcsh", "invalid choice: 'tcsh'"),
        ("check nowhere.sh", "'nowhere.sh': No such file or directory"),
        ("puzzle ring_step --check nowhere.py", "got nowhere.py"),
        ("gpus --csv --json", "not allowed with argument --csv"),
        ("estimate", "the following arguments are required"),
        ("estimate --cvs", "there is no flag --cvs"),
        ("puzzle ring_step --csv", "--csv is for the list"),
        ("fly", "invalid choice: 'fly'"),
        ("", "the following arguments are required: command"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_two(line, words, built, capsys):
    status, out, err = said(line, capsys)
    assert (status, out) == (2, "") and words in err and err.count("\n") == 1


@pytest.mark.parametrize("flags", ["", "--static", "--watch"])
def test_a_port_in_use_is_said(flags, taken, built, capsys):
    status, out, err = said(f"serve {flags} --port {taken}", capsys)
    assert (status, out) == (2, "")
    assert (
        err == f"system-ml serve: error: port {taken} is in use; without --port the next free one is taken\n"
    )


def test_without_a_port_the_next_free_one_is_taken(taken, monkeypatch, capsys):
    monkeypatch.setattr(serve, "PORT", taken)
    assert taken < serve.port_of(None) < taken + serve.TRIED
    assert capsys.readouterr().out.startswith(f"Port {taken} is taken; using ")
    monkeypatch.setattr(serve, "TRIED", 1)
    with pytest.raises(ValueError, match=f"no port from {taken} to {taken} is free"):
        serve.port_of(None)


def test_what_is_not_built_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(serve, "SITE", tmp_path / "static")
    status, out, err = said("serve", capsys)
    assert (status, out) == (2, "") and "`make serve` builds" in err and err.count("\n") == 1


def test_where_nothing_can_be_watched_is_said(built, monkeypatch, capsys):
    monkeypatch.delattr(serve.os, "fork")  # as in Windows
    status, out, err = said("serve --watch", capsys)
    assert (status, out) == (2, "") and "this system cannot" in err and err.count("\n") == 1
    monkeypatch.setattr(serve, "IN_WHEEL", True)
    assert "needs a clone of the course" in said("serve --watch", capsys)[2]


def test_a_server_that_does_not_come_up_is_a_line(taken, monkeypatch):
    monkeypatch.setattr(serve, "is_free", lambda port: True)
    with pytest.raises(ValueError, match="stopped at once, with exit code 1"):
        serve.wait_until_up(taken, lambda: 1)


OLD = """
import runpy, sys
sys.version_info, sys.argv = (3, 10, 4), {argv}
{do}
"""


@pytest.mark.parametrize("module", ["engine", "course.serve", "course.command"])
def test_an_old_python_is_a_line(module):
    code = OLD.format(argv=["-m"], do=f"runpy.run_module({module!r}, run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "System ML needs Python 3.11 or newer; this is 3.10.\n"


def test_an_old_python_cannot_import_the_engine(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    with pytest.raises(ImportError, match=r"needs Python 3\.11 or newer; this is 3\.10"):
        runpy.run_path(engine.__file__)


@pytest.mark.parametrize("module", ["engine", "course.command"])
def test_a_pipe_gets_utf_8_whatever_the_machine_thinks(module):
    """As in Windows, where a pipe takes the letters of the country."""
    done = subprocess.run(
        [sys.executable, "-m", module, "fabrics", "--json"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0 and not done.stdout.isascii()
    assert json.loads(done.stdout.decode("utf-8"))


# -- completion ----------------------------------------------------------------------------------------------
TRIED = {
    "pl": {"plan"},
    "serve --": {"--help", "--port", "--static", "--watch"},
    "estimate --model llama3-": {"llama3-8b", "llama3-70b"},
    "deploy --gpu=h100-s": {"--gpu=h100-sxm"},
    "estimate --schedule zb": {"zb-h1", "zb-h2", "zb-v"},
    "puzzle ring_s": {"ring_step"},
}


def offered(line: str, folder: Path) -> set[str]:
    """The completions that the command offers to a shell for a line."""
    said = folder / "said"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(said),
        "COMP_LINE": f"system-ml {line}",
        "COMP_POINT": str(len(f"system-ml {line}")),
    }
    subprocess.run([sys.executable, "-m", "course.command"], cwd=ROOT, env=os.environ | asked, check=True)
    return {word.strip() for word in said.read_text(encoding="utf-8").split("\n") if word.strip()}


@pytest.mark.parametrize("line", TRIED)
def test_words_are_completed(line, tmp_path):
    assert offered(line, tmp_path) - {"-h"} == TRIED[line]


def test_a_reader_of_the_words_who_stops_early_is_no_fault():
    line = f"{sys.executable} -c 'from course.command import main; main()' completion bash | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1


@pytest.mark.parametrize("shell", command.SHELLS)
def test_each_shell_is_given_its_words(shell, capsys, tmp_path):
    status, out, _ = said(f"completion {shell}", capsys)
    assert status == 0 and "system-ml" in out
    if not (program := shutil.which(shell)):
        assert shell != "bash", "bash is everywhere"
        return
    script = tmp_path / "completion"
    script.write_text(out, encoding="utf-8")
    assert subprocess.run([program, "-n", script], capture_output=True).returncode == 0
