"""The puzzles: each solution is right, each wrong answer gets the words that help; files at a shell."""

import json

import pytest

from engine import puzzles
from engine.__main__ import main
from engine.puzzles import judging, puzzle_files
from tests import wrong_answers
from tests.cases import in_one_test

NAMES = puzzles.names()
WRONG = [(name, slip) for name in NAMES for slip in wrong_answers.of(name)]


def tried(name, code, task="check"):
    puzzle = puzzles.puzzle(name)
    return judging.tried(code, puzzle.FUNCTION, getattr(puzzle, task))


@in_one_test("name", NAMES)
def test_its_solution_is_right_and_its_start_is_not(name):
    puzzle = puzzles.puzzle(name)
    solved = tried(name, puzzle.SOLUTION)
    assert solved["right"] and solved["words"].startswith("Right"), solved
    start = tried(name, puzzle.START)
    assert not start["right"] and start["words"]
    assert tried(name, puzzle.SOLUTION, "run")["right"]


@in_one_test("name", NAMES)
def test_it_has_all_that_a_puzzle_needs(name):
    puzzle = puzzles.puzzle(name)
    assert len(puzzle.HINTS) == 3 and all(
        (puzzle.TITLE, puzzle.STATEMENT.strip(), puzzle.OPEN, puzzle.__doc__)
    )
    assert f"def {puzzle.FUNCTION}(" in puzzle.START and f"def {puzzle.FUNCTION}(" in puzzle.SOLUTION
    assert puzzle.START != puzzle.SOLUTION and "\t" not in puzzle.START and len(wrong_answers.of(name)) >= 20
    assert all(len(line) <= 100 for line in puzzle.START.splitlines())


@in_one_test("name, slip", WRONG)
def test_a_wrong_answer_gets_the_words_that_help(name, slip):
    code, words = wrong_answers.of(name)[slip]
    found = tried(name, code)
    assert not found["right"] and words in found["words"], found["words"]
    assert len(found["words"]) < 420


@pytest.mark.parametrize("name", NAMES)
def test_what_it_found_is_drawn(name):
    """Of a solution always, and of some wrong answers; all of a picture lies on its axis, in a look."""
    puzzle, drawn = puzzles.puzzle(name), 0
    states = [tried(name, puzzle.SOLUTION, task)["drawn"] for task in ("run", "check")]
    assert all(states)
    states += [tried(name, code)["drawn"] for code, _ in wrong_answers.of(name).values()]
    for state in filter(None, states):
        drawn += 1
        if "picture" not in state:
            assert state["give"]["own"][0] == 1
            continue
        picture = state["picture"]
        assert (
            picture["lines"] and picture["says"].endswith(".") and set(picture["key"]) <= set(judging.LOOKS)
        )
        for line, boxes in picture["lines"]:
            assert line and len(line) <= 20
            for start, end, text, look in boxes:
                assert 0 <= start <= end and isinstance(text, str) and look in judging.LOOKS
    assert drawn >= 4


ODD = ("None", "1", "'x'", "[]", "[None]", "{}", "object()", "[[]]", "float('nan')", "[1, 2, 3]", "'日本🎉'")
OF_THE_JUDGE = ("TypeError", "ValueError", "IndexError", "AttributeError", "KeyError")
ENDLESS_PRINT = "def f(*all):\n    while True:\n        print(1)\n"


@in_one_test("name", NAMES)
@in_one_test("value", ODD)
def test_whatever_comes_back_is_answered_in_words(name, value):
    """Nothing that a function can give ends in an error of the judge."""
    found = tried(name, f"def {puzzles.puzzle(name).FUNCTION}(*all):\n    return {value}\n")
    assert not found["right"] and found["words"]
    assert not found["words"].startswith(OF_THE_JUDGE), found


AWKWARD = {
    "a syntax error": ("def f(\n", "Python cannot read this line", 1),
    "an error": ("def f(*all):\n    return 1 / 0\n", "ZeroDivisionError", 2),
    "recursion": ("def f(*all):\n    return f(*all)\n", "calls itself without end", 2),
    "prints without end": (
        "def f(*all):\n    while True:\n        print(1)\n",
        "printed more than 200 lines",
        0,
    ),
    "a long print": ("def f(*all):\n    print('x' * 10**6)\n", "printed more than 200 lines", 0),
    "an exit": ("def f(*all):\n    raise SystemExit\n", "SystemExit", 2),
    "no function": ("g = 1\n", "There is no function f any more", 0),
    "a library": ("import no_such_library\n", "needs no libraries", 1),
    "non-ASCII": ("def f(*all):\n    größe = '日本'\n    return größe.nothing\n", "AttributeError", 3),
    "a null byte": ("def f(*all):\n    return '\0'\n", "cannot read this line", 0),
}


@in_one_test("what", AWKWARD)
def test_awkward_code_is_answered_at_its_line(what):
    code, words, line = AWKWARD[what]
    found = judging.tried(code, "f", lambda f: (repr(f(1)), None))
    assert words in found["words"] and found["line"] == line, found
    assert len(found["printed"]) <= judging.MOST_LINES


def test_json_for_the_page_is_json():
    value = {"a": [1, 2.5, None, True, 'é日本🎉"\\\n'], "b": {"c": ("x",)}}
    assert json.loads(judging.as_json(value)) == json.loads(json.dumps(value))


# -- the command line ----------------------------------------------------------------------------------------
def test_a_file_is_written_filled_in_and_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["puzzle"]) == 0 and "one_f_one_b" in capsys.readouterr().out
    assert main(["puzzle", "loss_scale"]) == 0
    file = tmp_path / "loss_scale.py"
    assert file.read_text(encoding="utf-8").endswith(puzzles.puzzle("loss_scale").START)
    assert main(["puzzle", "loss_scale"]) == 2  # somebody's work is not written over
    assert main(["puzzle", "loss_scale", "--check", str(file)]) == 1
    assert "not yet: " in capsys.readouterr().out
    file.write_text("print('é')\n" + puzzles.puzzle("loss_scale").SOLUTION, encoding="utf-8")
    assert main(["puzzle", "loss_scale", "--check", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["right"] and found["printed"] == ["é"]


def test_bad_arguments_get_one_line(tmp_path, capsys):
    damaged = tmp_path / "damaged.py"
    damaged.write_bytes(b"\xff\xfe\x00")
    for arguments, words in (
        (["puzzle", "nothing"], "puzzle must be one of"),
        (["puzzle", "--check", "x.py"], "--check needs the name of a puzzle"),
        (["puzzle", "ring_step", "--check", str(tmp_path / "none.py")], "must be a file of Python"),
        (["puzzle", "ring_step", "--check", str(damaged)], "must be a file of Python"),
    ):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1


def test_endless_and_deadly_files_are_ended(tmp_path, monkeypatch):
    for name, code, words, limit_s in (
        ("endless", "while True:\n    pass\n", "Stopped after", 2.0),
        ("deadly", "import os\nos._exit(3)\n", "Python itself ended", 60.0),
        ("silent", "import os\nos._exit(0)\n", "Python itself ended", 60.0),
    ):
        monkeypatch.setattr(puzzle_files, "LIMIT_S", limit_s)
        file = tmp_path / f"{name}.py"
        file.write_text(code, encoding="utf-8")
        found = puzzle_files.judged("ring_step", file)
        assert not found["right"] and words in found["words"]
