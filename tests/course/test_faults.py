"""A mistake in a widget is reported by a quick build in one line: file, line, what is allowed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from course import faults
from tests.course.test_contributing import WIDGET as GUIDE
from tests.course.test_contributing import skeleton
from tests.course.test_fences import copy, run  # noqa: F401  the first is a fixture

ROOT = Path(__file__).resolve().parents[2]
WIDGET = "widgets/foundations/faulty_widget.py"  # a name that no reader of the guide uses
# what is wrong -> (words of the skeleton, their replacement, the message of the build)
SLIPS = {
    "a column that is not there": (
        'p.text("bytes", 0',
        'p.text("byts", 0',
        "column 'byts'; bar has bytes, label",
    ),
    "no Python": ("def is_past(self):", "def is_past(self)", "SyntaxError: expected ':'"),
    "an unknown name": (
        "memory.state_bytes",
        "memroy.state_bytes",
        "NameError: name 'memroy' is not defined",
    ),
    "an unknown function": ("memory.state_bytes", "memory.state_bites", "has no attribute 'state_bites'"),
    "an unknown control": (
        "(self.size)",
        "(self.sise)",
        "MyWidget has no 'sise'; its controls are size, gpu",
    ),
    "a module that is not there": ("import memory", "import memroy", "cannot import name 'memroy'"),
    "a condition": (
        "return self.state_bytes() >",
        "return self.size and self.size >",
        "use np.where, &, |, ~",
    ),
    "a control undeclared": (
        '@part("gpu")',
        '@part("size")',
        "declares the controls ['size'] but reads ['gpu']",
    ),
    "a control that is none": ('@part("gpu")', '@part("gpus")', "'gpus' could not be resolved"),
    "a hint of nothing": ('@hint("bar")', '@hint("bra")', "a hint for 'bra'; the parts are bar, limit"),
    "an unknown source": ('sources["limit"]', 'sources["limits"]', "no 'limits'; there are bar, limit"),
    "an unknown colour": ('color["hbm"]', 'color["hmb"]', "there is no 'hmb'; there are compute, "),
    "an unknown property": ("line_width=2", "linewidth=2", "similar attributes are line_width or"),
    "a default out of bounds": (
        "3e9, 0.1e9",
        "30e9, 0.1e9",
        "the default must be a number from 1e+08 to 2e+10",
    ),
    "an unknown option": ('"h100-sxm")', '"h100")', "the default must be one of v100-16, "),
    "an unknown family": ('family="params"', 'family="parms"', "family must be one of bytes, "),
    "a preset's value": ('"gpu": "b200"', '"gpu": "b2000"', "gpu must be one of v100-16, "),
    "no summary": ("def summary", "def sumary", "a widget needs a method 'summary'"),
    "no question": ("    question = ", "    quesion = ", "a widget needs a line 'question = …'"),
    "no target": ("target=True", "", "a widget needs one @regime(target=True); it has none"),
    "no widget": (
        "class MyWidget(Widget):",
        "from widgets.gpu.fusion import Fusion as MyWidget\n\n\nclass Not:",
        "no class in this module is a Widget",
    ),
}
# builds the faulty widgets one by one, as `make dev` does, each in a process of its own
ALONE = """
import os, sys
from pathlib import Path
from course import quick
from widgets.kit.widget import all_widgets

all_widgets()  # so that no process imports the other widgets
all_widgets.cache_clear()
for faulty in sorted(Path("faulty").glob("*.py")):
    Path(sys.argv[1]).write_text(faulty.read_text())
    child = os.fork()
    if not child:
        said = os.open(faulty.with_suffix(".said"), os.O_CREAT | os.O_WRONLY)
        os.dup2(said, 1)
        os.dup2(said, 2)
        quick.make(Path("build/quick"), set(), {"faulty_widget"})
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    faulty.with_suffix(".code").write_text(str(code))
"""


@pytest.fixture(scope="module")
def said(copy) -> dict[str, tuple[int, str]]:  # noqa: F811
    """The exit status and the output of each build."""
    folder = copy / "faulty"
    folder.mkdir()
    good = skeleton(*GUIDE)
    for place, (before, after, _) in enumerate(SLIPS.values()):
        assert before in good, before
        (folder / f"{place:02}.py").write_text(good.replace(before, after), encoding="utf-8")
    (copy / "lessons" / "index.md").write_text("# A page\n", encoding="utf-8")
    # Python distinguishes versions of a module only by its size and the second in which it was written
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", ALONE, WIDGET], cwd=copy, env=environment, check=True)
    (copy / WIDGET).unlink()
    ends = [
        (int(path.with_suffix(".code").read_text()), path.with_suffix(".said").read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.py"))
    ]
    return dict(zip(SLIPS, ends, strict=True))


@pytest.mark.parametrize("what", SLIPS)
def test_a_slip_is_one_line_with_its_place(said, what):
    code, words = said[what]
    assert code == 1 and words.count("\n") == 1, words
    assert re.match(rf"{re.escape(WIDGET)}:\d+: ", words) and SLIPS[what][2] in words, words


NEAR = {
    "no summary",
    "no question",
    "no target",
    "no widget",
    "a control that is none",
}  # where nothing stands


@pytest.mark.parametrize("what", [what for what in SLIPS if what not in NEAR])
def test_the_line_is_that_of_the_slip(said, what):
    line = int(said[what][1].split(":")[1])
    before, after, _ = SLIPS[what]
    written = skeleton(*GUIDE).replace(before, after).splitlines()
    assert after in written[line - 1] or any(word in written[line - 1] for word in after.split())


# -- the line of an error ------------------------------------------------------------------------------------
def raised(function) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_fault_of_the_kit_keeps_its_traceback():
    assert faults.one_line(raised(lambda: 1 / 0)).startswith("Traceback")


def test_a_fault_that_knows_its_place_is_told_from_the_root():
    error = ValueError(f"{ROOT}/engine/x.py:3: too large")
    assert faults.one_line(error) == "engine/x.py:3: too large"


def test_a_module_that_does_not_know_one_of_its_names_is_told_instead_of_the_lesson(tmp_path, monkeypatch):
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    module = tmp_path / "engine" / "x.py"
    module.parent.mkdir()
    module.write_text("def state():\n    return memroy\n", encoding="utf-8")
    known: dict = {}
    exec(compile(module.read_text(), module, "exec"), known)
    assert faults.of_code(raised(known["state"])) == "engine/x.py:2: NameError: name 'memroy' is not defined"
    assert faults.of_code(raised(lambda: eval("stat(1)", known))) == ""  # the lesson's own
    assert faults.of_code(raised(lambda: eval("stat(1", known))) == ""


def test_a_template_is_told_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    place = tmp_path / "site" / "theme" / "main.html"
    place.parent.mkdir(parents=True)
    place.write_text("<p>\n{% bloc x %}\n", encoding="utf-8")
    made = Environment(loader=FileSystemLoader(place.parent))
    error = raised(lambda: made.get_template("main.html"))
    assert (
        faults.of_code(error)
        == "site/theme/main.html:2: TemplateSyntaxError: Encountered unknown tag 'bloc'."
    )
    place.write_text("<p>\n\n{{ a.b }}\n", encoding="utf-8")
    error = raised(lambda: made.get_template("main.html").render())
    assert faults.of_code(error) == "site/theme/main.html:3: UndefinedError: 'a' is undefined"


def test_of_what_mkdocs_says_the_line_with_a_place_is_kept():
    said = ["ERROR   -  Error reading page 'x.md':\n", "ERROR   -  lessons/x.md:3: no 'a'\n", "Aborted!\n"]
    assert faults.said_by_mkdocs(said) == "lessons/x.md:3: no 'a'"
    said = ["Error: MkDocs encountered an error parsing the configuration file: while parsing\n"]
    said += ["expected the node content\n", '  in "/a/mkdocs.yml", line 189, column 1\n']
    assert faults.said_by_mkdocs(said) == "mkdocs.yml:189: while parsing expected the node content"
    assert faults.said_by_mkdocs(["WARNING -  a link to nowhere\n"]) == "a link to nowhere"


BROKEN = {  # file -> the text added to its end, and the message of the full build
    "engine/catalog/gpus.toml": ("[broken\n", "this is not TOML"),
    "engine/mechanism/memory.py": ("def (:\n", "SyntaxError: invalid syntax"),
    "site/theme/main.html": ("{% bloc x %}\n", "TemplateSyntaxError: Encountered unknown tag 'bloc'."),
    "mkdocs.yml": ("nav: [\n", "expected the node content"),
}


@pytest.mark.parametrize("file", BROKEN)
def test_a_file_that_cannot_be_read_is_one_line_of_the_whole_build(copy, file):  # noqa: F811
    added, words = BROKEN[file]
    good = (copy / file).read_text(encoding="utf-8")
    (copy / "lessons" / "index.md").write_text("# A page\n", encoding="utf-8")
    (copy / file).write_text(good + added, encoding="utf-8")
    try:
        done = run(copy, "-m", "course.faults", "course.build")
    finally:
        (copy / file).write_text(good, encoding="utf-8")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    assert re.match(rf"{re.escape(file)}:\d+: ", last) and words in last, last
    assert [line for line in done.stderr.splitlines() if line.strip()] == [last]
