"""``make mutants``: every change explained in bench/equivalents.toml is still one of the mutants, and the
tests can be run the way it runs them."""

import subprocess
import sys

from bench import mutants, mutations
from tests.conftest import ROOT


def test_every_explained_change_is_a_mutant_of_its_file():
    """``explained`` exits if the line of an entry no longer exists, which would stop ``make mutants``."""
    assert all(len(why) > 20 for why in mutants.explained().values())


def test_a_change_is_known_by_its_code_and_not_by_a_comment():
    [plain], [told] = (mutations.of("a.py", f"size = 3{words}\n") for words in ("", "  # of a block"))
    assert plain.change == told.change == "size = 3  ->  size = 4"
    assert told.source == "size = 4  # of a block\n"


def test_the_tests_run_without_the_plugins_that_mutants_leave_out():
    command = [sys.executable, "-m", "pytest", "-q", *mutants.PLUGINS_OFF, "tests/test_said.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mutant_under_which_the_tests_cannot_be_loaded_is_noticed(tmp_path):
    """The first run could load them, and nobody would miss this one: pytest says of it that it was called
    wrongly, since the broken module is imported by conftest.py. A small tree stands for the engine's."""
    (tmp_path / "small").mkdir()
    for name, text in {
        "sized.py": "SIZE = 3 / 1\n",
        "conftest.py": "import sized\n",
        "test_sized.py": "def test_it():\n    pass\n",
    }.items():
        (tmp_path / "small" / name).write_text(text)
    (tmp_path / "copies").mkdir()
    script = (
        "import pathlib\nfrom bench import mutants, mutations\n"
        f"mutants.ROOT, mutants.COPIED = pathlib.Path({str(tmp_path)!r}), ('small',)\n"
        "for after in ('3 / 2', '3 / 0'):\n"
        "    one = mutations.Mutant('small/sized.py', 1, 0, '', '', '', f'SIZE = {after}\\n')\n"
        "    plan = [(60, ['small/test_sized.py::test_it'])]\n"
        f"    found = mutants.verdict(pathlib.Path({str(tmp_path / 'copies')!r}), one, plan, 1000)\n"
        "    print(found.outcome, found.by)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["survived ", "killed the tests cannot be loaded"], done.stderr
