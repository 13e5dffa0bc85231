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


def test_what_is_in_no_function_is_tried_by_its_room_and_by_all_that_name_it():
    """A dataclass's defaults, say. No test tried those of the module ``models``, whose name is a table's."""
    files = {
        "tests/engine/catalog/test_layers.py": {"models", "engine"},
        "tests/engine/catalog/test_catalog.py": {"catalog"},
        "tests/engine/step/test_search.py": {"models", "layers"},
        "tests/engine/step/test_layout.py": {"layout"},
    }
    reach = {f"{file}::test_it": [0.1, []] for file in files}

    def tried(path: str) -> set[str]:
        mutant = mutations.Mutant(path, 1, 0, "", "", "", "")
        plan = mutants.batches(mutant, reach, files)
        return {test.split("/")[-1].split(".")[0] for _, tests in plan for test in tests}

    assert tried("engine/catalog/models.py") == {"test_layers", "test_catalog"}
    assert tried("engine/catalog/layers.py") == {"test_layers", "test_catalog", "test_search"}
    assert tried("engine/step/layout.py") == {"test_search", "test_layout"}


def in_a_small_tree(tmp_path, files: dict[str, str], lines: list[str]) -> subprocess.CompletedProcess:
    """Run ``lines`` in a process in which ``mutants`` is about these files only; ``copies`` is its folder."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "copies").mkdir()
    copied = sorted({name.split("/")[0] for name in files})
    first = [
        "from pathlib import Path",
        "from bench import mutants, mutations",
        f"mutants.ROOT, mutants.COPIED = Path({str(tmp_path)!r}), {copied}",
        "copies = mutants.ROOT / 'copies'",
    ]
    command = [sys.executable, "-c", "\n".join([*first, *lines])]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def tried(*sizes: str) -> list[str]:
    """Lines that print the verdict on a file with each of these sizes."""
    return [
        f"for tick, size in enumerate({sizes}):",
        "    whole = (mutants.ROOT / 'small' / 'sized.py').read_text()",
        "    one = mutations.Mutant('small/sized.py', 1, 0, '', '', '', whole.replace('3', size, 1))",
        "    found = mutants.verdict(copies, one, [(60, ['small/test_sized.py::test_it'])], 2 * tick)",
        "    print(found.outcome, found.by)",
    ]


def test_a_mutant_under_which_the_tests_cannot_be_loaded_is_noticed(tmp_path):
    """The first run could load them. Pytest says of it that it was called wrongly, since the broken module is
    imported by conftest.py already, and that must not count as a survivor."""
    files = {
        "small/sized.py": "SIZE = 3\n",
        "small/conftest.py": "import sized\n",
        "small/test_sized.py": "def test_it():\n    pass\n",
    }
    done = in_a_small_tree(tmp_path, files, tried("2", "3 / 0"))
    assert done.stdout.splitlines() == ["survived ", "killed the tests cannot be loaded"], done.stderr


def test_a_mutant_that_takes_all_memory_is_noticed(tmp_path):
    """Whether pytest catches what is raised then, or fails itself: the first run had enough."""
    files = {
        "small/sized.py": "def size():\n    return 3\n",
        "small/conftest.py": (
            "import sized\n\n\ndef pytest_runtest_logfinish():\n    if sized.size() > 3:\n"
            "        raise MemoryError\n"
        ),
        "small/test_sized.py": "def test_it():\n    pass\n",
    }
    done = in_a_small_tree(tmp_path, files, tried("3", "4"))
    first, second = done.stdout.splitlines()
    assert first == "survived " and second.startswith("killed "), done.stderr


def test_what_a_test_calls_is_noted_after_one_that_recurses_without_end(tmp_path):
    """Python stops tracing where the tracing itself meets the limit: the tests that came after one of the
    puzzles' seemed to call nothing, and no mutant was shown to them."""
    files = {
        "engine/sized.py": "def size():\n    return 3\n",
        "engine/test_sized.py": (
            "import sized\n\n\ndef test_endless():\n    f = lambda: f()\n    try:\n        f()\n"
            "    except RecursionError:\n        pass\n\n\ndef test_size():\n    assert sized.size() == 3\n"
        ),
    }
    lines = ["print(mutants.noted(copies, ['engine/test_sized.py'])['engine/test_sized.py::test_size'][1])"]
    done = in_a_small_tree(tmp_path, files, lines)
    assert "'engine/sized.py:1'" in done.stdout, done.stderr
