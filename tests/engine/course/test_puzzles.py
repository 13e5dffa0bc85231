"""The puzzles: each solution is right, each wrong answer gets the words that help, and the engine agrees."""

import json

import numpy as np
import pytest

from engine.__main__ import main
from engine.course import puzzle_files, puzzles
from engine.course.puzzles import judging, one_f_one_b
from engine.executed import pipeline_schedules, ranks, ranks_schedules
from engine.mechanism import mesh, online_softmax
from engine.serving import shape_buckets

NAMES = puzzles.names()
WRONG = [(name, slip) for name in NAMES for slip in puzzles.puzzle(name).WRONG]


def tried(name, code, task="check"):
    puzzle = puzzles.puzzle(name)
    return judging.tried(code, puzzle.FUNCTION, getattr(puzzle, task))


def function(name):
    """The solution, as a function."""
    names = {}
    exec(puzzles.puzzle(name).SOLUTION, names)
    return names[puzzles.puzzle(name).FUNCTION]


@pytest.mark.parametrize("name", NAMES)
def test_its_solution_is_right_and_its_start_is_not(name):
    puzzle = puzzles.puzzle(name)
    solved = tried(name, puzzle.SOLUTION)
    assert solved["right"] and solved["words"].startswith("Right"), solved
    start = tried(name, puzzle.START)
    assert not start["right"] and start["words"]
    assert tried(name, puzzle.SOLUTION, "run")["right"]


@pytest.mark.parametrize("name", NAMES)
def test_it_has_all_that_a_puzzle_needs(name):
    puzzle = puzzles.puzzle(name)
    assert len(puzzle.HINTS) == 3 and all(
        (puzzle.TITLE, puzzle.STATEMENT.strip(), puzzle.OPEN, puzzle.__doc__)
    )
    assert f"def {puzzle.FUNCTION}(" in puzzle.START and f"def {puzzle.FUNCTION}(" in puzzle.SOLUTION
    assert puzzle.START != puzzle.SOLUTION and "\t" not in puzzle.START and len(puzzle.WRONG) >= 7
    assert all(len(line) <= 100 for line in puzzle.START.splitlines())


@pytest.mark.parametrize("name, slip", WRONG)
def test_a_wrong_answer_gets_the_words_that_help(name, slip):
    code, words = puzzles.puzzle(name).WRONG[slip]
    found = tried(name, code)
    assert not found["right"] and words in found["words"], found["words"]
    assert len(found["words"]) < 420


ODD = ("None", "1", "'x'", "[]", "[None]", "{}", "object()", "[[]]", "float('nan')", "[1, 2, 3]", "'日本🎉'")
OF_THE_JUDGE = ("TypeError", "ValueError", "IndexError", "AttributeError", "KeyError")
ENDLESS_PRINT = "def f(*all):\n    while True:\n        print(1)\n"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ODD)
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


@pytest.mark.parametrize("what", AWKWARD)
def test_awkward_code_is_answered_at_its_line(what):
    code, words, line = AWKWARD[what]
    found = judging.tried(code, "f", lambda f: (repr(f(1)), None))
    assert words in found["words"] and found["line"] == line, found
    assert len(found["printed"]) <= judging.MOST_LINES


def test_json_for_the_page_is_json():
    value = {"a": [1, 2.5, None, True, 'é日本🎉"\\\n'], "b": {"c": ("x",)}}
    assert json.loads(judging.as_json(value)) == json.loads(json.dumps(value))


# -- the engine agrees ---------------------------------------------------------------------------------------
def test_the_engines_1f1b_is_the_solution():
    for stages, batches in one_f_one_b.SIZES:
        mine = one_f_one_b.played(
            one_f_one_b.orders_of(function("one_f_one_b"), stages, batches), stages, batches
        )
        engines = pipeline_schedules.by_key("1f1b", stages, batches)
        assert max(mine["end"]) == engines["total_s"]
        assert mine["held"] == list(engines["held"][:stages])


def test_a_ring_of_the_solution_is_executed():
    """``ranks.execute`` sums what ranks send: the chunks of the solution make every sum complete."""
    for count in (2, 3, 8):
        pieces = ranks_schedules.cut(count, count)
        steps = [
            ranks.Step(
                ranks_schedules.SCATTER,
                tuple(
                    ranks.Move(rank, (rank + 1) % count, *pieces[c], pieces[c][0], ranks.ADD)
                    for rank in range(count)
                    for c in [function("ring_step")(rank, count, step)]
                ),
            )
            for step in range(count - 1)
        ]
        buffers = ranks.example(count, count)
        owners = puzzles.puzzle("ring_step").reduced(function("ring_step"), count)
        outputs = [pieces[chunk] for chunk in owners]
        last = ranks.execute("reduce_scatter", ranks.full_memory(buffers), steps, pieces, outputs).states[-1]
        for rank, chunk in enumerate(owners):
            assert last.values[rank][chunk] == np.sum(buffers, axis=0)[chunk]


def test_coordinates_are_the_meshs():
    size = mesh.sizes(gpus=512.0, tp=8.0, pp=4.0)
    for rank in (0, 7, 8, 300, 511):
        at = mesh.coordinates(float(rank), size)
        assert function("rank_coordinates")(rank, [8, 16, 4]) == [at.tp, at.dp, at.pp]


def test_merged_parts_are_the_engines():
    one, other = (3.0, 1.5, 4.0), (2.0, 1.0, -1.0)
    parts = [online_softmax.Partial(*map(np.array, (m, t, [w]))) for m, t, w in (one, other)]
    engines = online_softmax.joined(*parts)
    wanted = [engines.maximum, engines.total, engines.weighted[0]]
    assert function("merge_partials")(one, other) == pytest.approx([float(each) for each in wanted])


def test_the_best_sizes_are_the_engines():
    counts = shape_buckets.batches(24, 0.8, 1)
    for kept in (1, 3, 8):
        mine = function("pick_buckets")(counts, kept)
        fewest = shape_buckets.padding(counts, shape_buckets.buckets_of(shape_buckets.best(counts, kept)))
        assert shape_buckets.padding(counts, shape_buckets.buckets_of(mine)) == fewest


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
