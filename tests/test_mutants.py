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
