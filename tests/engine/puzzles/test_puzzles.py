"""The puzzles: each solution is right, each wrong answer gets the words that help; files at a shell."""

import itertools
import json

import pytest

from engine import puzzles
from engine.__main__ import main
from engine.puzzles import judging, puzzle_files, tiled_softmax
from tests import wrong_answers
from tests.cases import in_one_test

NAMES = puzzles.names()
WRONG = [(name, slip) for name in NAMES for slip in wrong_answers.of(name)]


def tried(name, code, task="check"):
    return puzzles.tried(name, code, task)


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
    """Of a solution always, and of some wrong answers; all of a picture lies on its axis, in a look, and
    nothing of a line over another part of it. Nothing of a solution is wrong."""
    puzzle, drawn = puzzles.puzzle(name), 0
    states = [tried(name, puzzle.SOLUTION, task)["drawn"] for task in ("run", "check")]
    assert all(states)
    for state in states:
        assert "wrong" not in {
            box[3] for _, boxes in state.get("picture", {}).get("lines", []) for box in boxes
        }
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
            spans = sorted(box[:2] for box in boxes)
            nested = name == "best_fit"  # there a block lies inside of the room that it is cut from
            assert nested or all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
            for start, end, text, look in boxes:
                assert 0 <= start <= end and isinstance(text, str) and look in judging.LOOKS
    assert drawn >= 4


def picture_of(name, code):
    """The lines of what is drawn for an answer: name -> boxes, and its words."""
    found = tried(name, code)
    return dict(found["drawn"]["picture"]["lines"]), found["words"]


def test_the_expert_whose_bias_is_wrong_is_the_one_that_the_words_name():
    for code, _ in wrong_answers.of("balance_bias").values():
        found = tried("balance_bias", code)
        if not found["drawn"]:
            continue
        wrong = [line for line, boxes in found["drawn"]["picture"]["lines"] if boxes[0][3] == "wrong"]
        assert len(wrong) == 1 and f"and {wrong[0]} has" in found["words"]


def test_a_prompt_s_tokens_are_counted_and_a_written_one_is_not():
    lines, _ = picture_of("fill_step", puzzles.puzzle("fill_step").SOLUTION)
    looks = {(look, bool(text)) for boxes in lines.values() for _, _, text, look in boxes}
    assert looks == {("compute", True), ("hbm", False)}


def test_a_ring_marks_the_chunk_that_would_be_counted_twice():
    lines, words = picture_of("ring_step", "def chunk_to_send(rank, ranks, step):\n    return rank\n")
    wrong = [(line, box[0]) for line, boxes in lines.items() for box in boxes if box[3] == "wrong"]
    assert all(("✗" in str(box[2])) == (box[3] == "wrong") for boxes in lines.values() for box in boxes)
    assert len(wrong) == 1 and f"sends chunk {wrong[0][1]} to {wrong[0][0]} " in words


def test_one_pass_that_runs_is_drawn_with_those_that_wait_for_ever():
    """The first stage waits for the backward of its one forward, and the second begins with another one."""
    stuck = (
        "def one_forward_one_backward(stage, stages, micro_batches):\n    work = []\n"
        "    for i in range(micro_batches):\n        at = i ^ 1 if stage else i\n"
        "        work += [('F', at), ('B', at)]\n    return work\n"
    )
    found = tried("one_f_one_b", stuck)
    assert "own" in (found["drawn"] or {}).get("give", {}), found["words"]


def test_a_short_warm_up_is_told_when_the_first_backward_can_come():
    """A forward of each stage takes the micro-batch to the last one: the time of four."""
    code, _ = wrong_answers.of("one_f_one_b")["one forward too few"]
    assert "cannot reach it before the time of 4:" in tried("one_f_one_b", code)["words"]


def test_a_mean_outside_of_its_values_is_told_from_one_that_is_their_border():
    tiles = (((1.0, 2.0),), ((0.0, 9.0), (0.0, 1.0)))
    for found, outside in ((9.0, False), (9.5, True), (1.0, False), (0.5, True)):
        assert tiled_softmax.why(tiles, found).startswith("No mean lies outside") == outside


def test_the_last_token_is_looked_at_too():
    lazy = puzzles.puzzle("route_tokens").SOLUTION.replace("return routed", "return [*routed[:-1], []]")
    found = tried("route_tokens", lazy)
    assert not found["right"] and "Token 7 of 8" in found["words"]


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
    "an error in a call": (
        "def g(x):\n    return 1 / x\n\n\ndef f(*all):\n    return g(0)\n",
        "ZeroDivision",
        2,
    ),
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
        assert found["line"] == 0 and puzzle_files.lines(found) == [f"not yet: {found['words']}"]
