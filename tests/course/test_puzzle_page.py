"""Puzzles in the page: the fence, the programs that the page's Python (Brython) runs, and that it judges as
CPython does."""

import json
import re
import subprocess

import pytest

from course import lessons, puzzle_page
from course.fences import puzzle as fence
from course.strict_yaml import Refused
from engine import puzzles
from engine.puzzles import judging
from tests import machine, states, wrong_answers
from tests.conftest import ROOT

PUZZLE = ROOT / "site" / "theme" / "assets" / "puzzle"
FENCED = re.compile(r"^``` puzzle\nname: (\w+)$", re.MULTILINE)

# runs the worker's two scripts and Brython in node; a job is a puzzle's program and the solutions that it
# judges
IN_NODE = """
const fs = require("fs"), vm = require("vm");
const read = name => fs.readFileSync(name, "utf8");
const [before, brython, math, worker, jobs] = process.argv.slice(2).map(read);
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.importScripts = () => {};
globalThis.WorkerNavigator = class { language = "en"; userLanguage = "en"; };
Object.defineProperty(globalThis, "navigator", { value: new WorkerNavigator() });
let said = null;
globalThis.postMessage = message => { said = message; };
globalThis.process = undefined;
for (const text of [before, brython, math, worker]) vm.runInThisContext(text);
const found = JSON.parse(jobs).map(([puzzle, tries]) => {
  onmessage({ data: { puzzle } });
  return tries.map(([task, code]) => { onmessage({ data: { task, code } }); return said.answer ?? null; });
});
fs.writeSync(1, JSON.stringify(found));
"""


def in_brython(jobs: list, folder) -> list:
    """The judgements of the page's Python for each puzzle and each (task, code)."""
    node = machine.node()
    (folder / "run.cjs").write_text(IN_NODE, encoding="utf-8")
    (folder / "math.js").write_text(puzzle_page.math(), encoding="utf-8")
    (folder / "jobs.json").write_text(
        json.dumps([[puzzle_page.script(name), tries] for name, tries in jobs]), encoding="utf-8"
    )
    scripts = [PUZZLE / "before.js", puzzle_page.BRYTHON, folder / "math.js", PUZZLE / "worker.js"]
    command = [node, "--stack-size=4000", folder / "run.cjs", *scripts, folder / "jobs.json"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [[json.loads(each) if each else None for each in judged] for judged in json.loads(ran.stdout)]


def test_the_pages_python_says_what_cpython_says(tmp_path):
    """Of every start and solution, and of every other wrong answer unless all are asked: the same words, at
    the same line, with the same picture."""
    jobs = []
    for name in puzzles.names():
        puzzle = puzzles.puzzle(name)
        slips = [code for code, _ in wrong_answers.of(name).values()]
        codes = [puzzle.START, puzzle.SOLUTION, *states.daily(slips)]
        jobs.append((name, [("run", puzzle.SOLUTION), *(("check", code) for code in codes)]))
    for (name, tries), found in zip(jobs, in_brython(jobs, tmp_path)):
        for (task, code), mine in zip(tries, found):
            theirs = json.loads(judging.as_json(puzzles.tried(name, code, task)))
            assert mine == theirs, (name, code)


AWKWARD = {
    "def f(\n": ("cannot read this line", 1),
    "def f(*all):\n    return f(*all)\n": ("calls itself without end", 2),
    "import os\n": ("needs no libraries", 1),
    "def f(*all):\n    while True:\n        print('x')\n": ("printed more than 200 lines", 0),
    "def f(*all):\n    raise SystemExit\n": ("SystemExit", 2),
    "def f(*all):\n    größe = '日本🎉'\n    return größe.nothing\n": ("AttributeError", 3),
    "def f(*all):\n    raise ValueError('<b>')\n": ("<b>", 2),
}


def test_awkward_code_is_answered_there_too(tmp_path):
    codes = [code.replace("f(", "chunk_to_send(") for code in AWKWARD]
    [found] = in_brython([("ring_step", [("run", code) for code in codes])], tmp_path)
    for answer, (code, (words, line)) in zip(found, AWKWARD.items()):
        assert words in answer["words"] and answer["line"] == line and not answer["right"], (code, answer)


# lists all modules that the page's Python knows of, and those of the library that its package brings along
MODULES_OF = """
const { imported, VFS, stdlib_module_names: library } = __BRYTHON__;
const names = [...Object.keys(imported), ...Object.keys(VFS), ...library ?? []];
fs.writeSync(1, JSON.stringify(names));
"""


def modules_shipped(folder) -> list[str]:
    """The names of all modules that Brython has or could have."""
    text = puzzle_page.LIBRARY.read_text(encoding="utf-8")
    library, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    listing = IN_NODE.replace("before, brython, math, worker", "before, brython, math").replace(
        ", math, worker]", ", math]"
    )
    listing = listing[: listing.index("const found")].replace(", jobs] =", "] =") + MODULES_OF
    (folder / "list.cjs").write_text(listing, encoding="utf-8")
    (folder / "math.js").write_text(puzzle_page.math(), encoding="utf-8")
    scripts = [PUZZLE / "before.js", puzzle_page.BRYTHON, folder / "math.js"]
    ran = subprocess.run(
        [machine.node(), folder / "list.cjs", *scripts], capture_output=True, text=True, encoding="utf-8"
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return sorted({*library, *json.loads(ran.stdout)} - {"$timestamp"})


def test_of_all_modules_only_math_is_imported(tmp_path):
    names = modules_shipped(tmp_path)
    assert len(names) > 300 and {"browser", "browser.ajax", "javascript", "sys", "math"} <= set(names)
    tries, f = {}, "def chunk_to_send(*all):\n    return 0\n"
    for name in names:
        codes = [f"__import__({name!r})", f"__import__('math', fromlist=[{name!r}]).{name}"]
        if name != "__future__" and all(
            part.isidentifier() for part in name.split(".")
        ):  # that one is syntax
            codes += [f"import {name}", f"from {name} import *", f"from {name} import self"]
        tries |= dict.fromkeys(codes, name)
    [found] = in_brython([("ring_step", [("run", f"{code}\n{f}") for code in tries])], tmp_path)
    for (code, name), answer in zip(tries.items(), found):
        if code in ("import math", "from math import *", "__import__('math')"):
            assert answer["line"] == 0, (code, answer)  # there it went on
        else:
            assert answer is None or answer["line"] == 1, (code, answer)
        if name != "math" and "fromlist" not in code:
            assert "needs no libraries" in answer["words"], (code, answer)


TOO_MUCH = [f"return [0] * 10**{power}" for power in (10, 12, 18, 19, 30)] + ["return (0,) * 10**12"]


@pytest.mark.parametrize("name", states.daily(puzzles.names()))
def test_a_list_that_no_machine_holds_is_said_to_be_one(tmp_path, name):
    start = puzzles.puzzle(name).START.splitlines()
    head = start[: next(at for at, line in enumerate(start) if line.startswith("def ")) + 1]
    codes = ["\n".join([*head, f"    {line}\n"]) for line in TOO_MUCH]
    [found] = in_brython([(name, [("check", code) for code in codes])], tmp_path)
    for code, answer in zip(codes, found):
        assert "more memory than there is" in answer["words"], (code, answer)
        assert answer["line"] == len(head) + 1, (code, answer)


@pytest.mark.parametrize("words", ["cannot fit 'int' into an index-sized integer", ""])
def test_what_python_says_of_too_long_a_list_is_said_alike(words):
    for kind in (OverflowError, MemoryError) if words else (MemoryError,):
        assert judging.said(kind(words)) == "This asks for more memory than there is."
    assert "exp of anything" in judging.said(OverflowError("math range error"))


@pytest.mark.parametrize("name", puzzles.names())
def test_a_script_is_plain_python_on_its_own(name):
    text = puzzle_page.script(name)
    assert set(re.findall(r"^(?:from|import) .*", text, re.MULTILINE)) == {"import math"}
    assert "numpy" not in text and "HINTS" not in text and "SOLUTION" not in text
    assert f"def {puzzles.puzzle(name).FUNCTION}(" not in text
    names = {}
    exec(compile(text, name, "exec"), names)
    assert json.loads(names["answer"](puzzles.puzzle(name).SOLUTION, "check"))["right"]


def test_what_a_page_cannot_have_stops_the_build(tmp_path, monkeypatch):
    for text, words in (
        (
            "from course.output.book import pages\n\ndef run(f):\n    return pages(f)\n",
            "comes from course.output.book",
        ),
        ("def check(f):\n    return f\n", "has no run"),
    ):
        room = tmp_path / words.split()[0]
        room.joinpath("engine").mkdir(parents=True)
        room.joinpath("engine", "odd.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(puzzle_page, "ROOT", room)
        puzzle_page._defined.cache_clear()
        with pytest.raises(Refused, match=words):
            puzzle_page.Taken().take("engine.odd", "run")
    puzzle_page._defined.cache_clear()


# -- the fence -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("name: nothing", "there is no puzzle 'nothing'; there are"),
        ("figure: pipeline_timeline", "needs a line 'name: …'"),
        ("name: ring_step\nhint: one", "unknown key 'hint'; allowed are name, figure"),
        ("name: ring_step\nfigure: nothing", "there is no widget 'nothing'"),
        ("name: ring_step\nfigure: roofline", "roofline takes nothing from a puzzle"),
    ],
)
def test_a_wrong_fence_is_refused(source, words):
    with pytest.raises(Refused, match=re.escape(words)):
        fence.render(source)


def test_a_fence_says_everything_without_a_script():
    html = fence.render("name: one_f_one_b\nfigure: pipeline_timeline")
    assert html.count("<details") == html.count("</details>") == 4
    assert "readonly" in html and 'data-figure="pipeline_timeline"' in html
    for words in ("Turn it into 1F1B", "system-ml puzzle one_f_one_b", "Show me a way"):
        assert words in html


def test_each_puzzle_stands_in_its_lesson_once():
    found = [(name, lesson.name) for lesson in lessons.numbered() for name in FENCED.findall(lesson.text)]
    assert sorted(found) == sorted((name, puzzles.puzzle(name).LESSON) for name in puzzles.names())


def test_the_list_of_puzzles_has_each_of_them_once():
    """On the page of paths, each with a link to where its fence stands."""
    from course.fences import puzzles as list_of

    written = [name for _, found in list_of.listed() for name, _ in found]
    assert sorted(written) == sorted(puzzles.names())
    shown = list_of.render("")
    for lesson, found in list_of.listed():
        for name, _ in found:
            assert f'href="../{lesson.name}/#{fence.anchor(name)}"' in shown
            assert f'id="{fence.anchor(name)}"' in fence.render(f"name: {name}\n")
    [page] = [page for page in lessons.pages() if page.name == "paths"]
    assert "``` puzzles" in page.text
