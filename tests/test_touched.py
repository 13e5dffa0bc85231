"""Which tests a change touches: found from the sources, on a small tree of each kind and on the real one."""

import json
import subprocess
from pathlib import Path

import pytest

from tests import check, chosen
from tests.touched import NEEDED, PACKAGES, Tree

ROOT = Path(__file__).resolve().parents[1]
SMALL = {
    "engine/__init__.py": "",
    "engine/base.py": "def one(): return 1",
    "engine/middle.py": "def two():\n    from engine import base\n    return base.one()",
    "engine/far.py": "",
    "engine/tables/__init__.py": "",
    "engine/tables/read.py": (
        "from pathlib import Path\ndef table(name): return (Path(__file__).parent / name).read_text()"
    ),
    "engine/tables/gpus.toml": "",
    "widgets/__init__.py": "",
    "widgets/part/one_bar.py": "from engine import middle",
    "widgets/kit.py": (
        "import importlib, pkgutil\nfrom pathlib import Path\nPARTS = Path(__file__).parent\n"
        "class Widget: pass\n"
        "def every():\n    found = pkgutil.walk_packages([str(PARTS)])\n"
        "    return [importlib.import_module(module.name) for module in found]"
    ),
    "course/__init__.py": "",
    "course/pages.py": (
        "from pathlib import Path\nLESSONS = Path(__file__).resolve().parents[1] / 'lessons'\n"
        "def read(name, folder=LESSONS): return (folder / name).read_text()\n"
        "def every(folder=LESSONS): return list(folder.glob('*.md'))\n"
        "def title(text): return text[:10]"
    ),
    "course/html.py": (
        "from pathlib import Path\nfrom jinja2 import Environment, FileSystemLoader\n"
        "def page():\n    made = Environment(loader=FileSystemLoader(Path(__file__).parent / 'templates'))\n"
        "    return made.get_template('whole.html')"
    ),
    "course/templates/whole.html": "{% include 'piece.html' %}",
    "course/templates/piece.html": "",
    "lessons/01-a-start.md": "``` widget\nname: one_bar\n```\n\nHere `#!n middle.two()` are.",
    "lessons/02-the-end.md": "Nothing",
    "site/js/near.js": 'import { far } from "./far.js";',
    "site/js/far.js": "",
    "tests/__init__.py": "",
    "tests/conftest.py": (
        "import pytest\nfrom tests import node\nfrom course import html\n"
        "@pytest.fixture\ndef site(): return html.page()\n"
        "@pytest.fixture\ndef browser(): pass\n"
        "@pytest.fixture\ndef script(): return node.run()\n"
        "@pytest.fixture\ndef shown(browser): pass\n"
        "@pytest.fixture(params=['site'])\ndef origin(request): return request.getfixturevalue(request.param)"
    ),
    "tests/node.py": (
        "from pathlib import Path\nROOT = Path(__file__).resolve().parents[1]\n"
        "def run():\n    site = ROOT / 'site'\n    return [p.read_text() for p in (site / 'js').glob('*.js')]"
    ),
    "tests/test_base.py": "from engine import base\ndef test_one(): assert base.one()",
    "tests/test_middle.py": "from engine.middle import two\ndef test_two(): assert two()",
    "tests/test_far.py": "def test_nothing():\n    '''Like lessons/01-a-start.md.'''\n    import engine.far",
    "tests/test_gone.py": "def test_it():\n    from engine import gone",
    "tests/test_table.py": "from engine.tables import read\ndef test_it(): read.table('gpus.toml')",
    "tests/test_by_path.py": (
        "from pathlib import Path\nROOT = Path(__file__).parents[1]\n"
        "def test_it(): (ROOT / 'engine' / 'tables' / 'gpus.toml').read_text()"
    ),
    "tests/test_first.py": (
        "from course import pages\nTEXT = pages.read('01-a-start.md')\ndef test_it(): assert TEXT"
    ),
    "tests/test_lessons.py": "from course.pages import every\ndef test_it(): every()",
    "tests/test_title.py": "from course import pages\ndef test_it(): pages.title('')",
    "tests/test_page.py": "from course import html\ndef test_it(): html.page()",
    "tests/test_script.py": "def test_it(script): pass",
    "tests/test_process.py": (
        "import subprocess\nCODE = 'from engine import base; base.one()'\n"
        "def test_it(): subprocess.run(['python', '-c', CODE])"
    ),
    "tests/test_each.py": "from widgets import kit\ndef test_it(): kit.every()",
    "tests/test_kit.py": "from widgets.kit import Widget\ndef test_it(): Widget()",
    "tests/test_shown.py": "from engine import far\ndef test_it(shown): pass",
    "tests/test_both.py": (
        "from engine import far\ndef test_plain(): pass\ndef test_built(origin): pass\n"
        "def helper(): from playwright.sync_api import sync_playwright; sync_playwright()\n"
        "def test_launched(): helper()"
    ),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    for name, text in SMALL.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Tree(root, [*SMALL, "engine/gone.py"])


def files(tree, *changed: str) -> set[str]:
    """The names of the touched test files, without tests that need a browser or the built site."""
    found = tree.touched(changed)
    return {Path(file).stem.removeprefix("test_") for file in found.near.keys() - found.only_pages}


@pytest.mark.parametrize(
    ("changed", "touched"),
    {
        "engine/base.py": {"base", "middle", "process", "each", "first", "lessons"},
        "engine/middle.py": {"middle", "each", "first", "lessons"},
        "engine/gone.py": {"gone"},
        "engine/tables/gpus.toml": {"table", "by_path"},
        "lessons/01-a-start.md": {"first", "lessons"},
        "lessons/02-the-end.md": {"lessons"},
        "widgets/part/one_bar.py": {"each", "first", "lessons"},
        "course/templates/piece.html": {"page"},
        "site/js/far.js": {"script"},
        "tests/test_far.py": {"far"},
        "tests/node.py": {"script"},
        "engine/far.py": {"far", "both"},
    }.items(),
)
def test_what_depends_on_a_changed_file_is_touched_and_nothing_else(small, changed, touched):
    also = {"each"} if changed.startswith("widgets/") else set()
    assert files(small, changed) == touched | also


def test_what_needs_a_page_is_known_from_its_fixtures(small):
    found = small.touched(["engine/far.py"])
    assert found.only_pages == {"tests/test_shown.py"}
    assert found.pages["tests/test_both.py"] == {"test_built", "test_launched"}
    assert small.pages["tests/test_shown.py", "test_it"] == NEEDED["browser"]
    assert small.pages["tests/test_both.py", "test_built"] == NEEDED["site"]


def test_its_own_test_is_the_nearest(small):
    near = small.touched(["engine/base.py"]).near
    assert near["tests/test_base.py"] == 0 < near["tests/test_process.py"] < near["tests/test_lessons.py"]


# -- the real tree -------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def real():
    known = json.loads(check.FACTS.read_bytes()) if check.FACTS.is_file() else {}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return Tree(ROOT, [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()], known)


def nearest(tree, changed: str, most: int) -> dict[str, int]:
    found = tree.touched([changed])
    return {
        file: steps for file, steps in found.near.items() if steps <= most and file not in found.only_pages
    }


@pytest.mark.parametrize(
    ("changed", "test", "most"),
    [
        ("engine/mechanism/pipeline.py", "tests/engine/mechanism/test_pipeline.py", 0),
        ("engine/mechanism/pipeline.py", "tests/lessons/test_lesson_07.py", 3),
        ("engine/catalog/gpus.toml", "tests/engine/catalog/test_catalog.py", 3),
        ("lessons/07-pipeline-parallel.md", "tests/lessons/test_lesson_07.py", 3),
        ("lessons/07-pipeline-parallel.py", "tests/lessons/test_lesson_07.py", 4),
        ("lessons/glossary.md", "tests/course/test_glossary.py", 4),
        ("widgets/foundations/memory_stack.py", "tests/widgets/foundations/test_memory_stack.py", 0),
        ("widgets/foundations/memory_stack.py", "tests/widgets/test_contract.py", 4),
        ("site/theme/assets/widget/view.js", "tests/widgets/kit/page/test_typed.py", 8),
        ("site/theme/assets/css/type.css", "tests/course/test_styles.py", 5),
        ("course/templates/widget.html", "tests/course/test_fences.py", 6),
        ("CONTRIBUTING.md", "tests/course/test_contributing.py", 4),
        ("tests/lessons/reading.py", "tests/lessons/test_lesson_07.py", 2),
    ],
)
def test_a_change_reaches_the_test_that_asks_of_it(real, changed, test, most):
    assert nearest(real, changed, most).get(test) is not None, real.touched([changed]).near.get(test)


def test_a_module_that_few_know_touches_few(real):
    """If every module led to all lessons or all widgets, and from there to most tests, nothing could be left
    out."""
    touched = nearest(real, "engine/executed/rounded_training.py", 4)
    assert 1 <= len(touched) < len(real.tests) / 10


def test_every_module_of_the_project_is_known(real):
    packages = {file.split("/")[0] for file in real.sources}
    assert set(PACKAGES) <= packages


def test_all_that_asks_for_a_page_in_the_browsers_folder_is_left_out(real):
    asking = {
        (file, name)
        for file, names in real.tests.items()
        for name in names
        for argument in real.sources[file].definitions[name][3]
        if argument in {"site", "static", "browser", "served", "visit", "glance", "own_page", "compiled"}
    }
    assert len(asking) > 200 and asking <= real.pages.keys()


# -- what fits -----------------------------------------------------------------------------------------------
def noted(**seconds: float) -> dict[str, list]:
    """Noted times as if each of these files had one test function with ten tests."""
    return {f"tests/test_{name}.py": [0, {"test_it": [10, each]}] for name, each in seconds.items()}


def test_the_nearest_fit_first_and_the_rest_is_counted(small):
    touched = small.touched(["engine/base.py"])
    costs = noted(process=4, each=1, first=1, lessons=40)
    choice = check.choose(touched, small.tests, costs, seconds=4, workers=2)
    assert next(iter(choice.files)) == "tests/test_base.py"
    assert set(choice.files) == {
        f"tests/test_{name}.py" for name in ("base", "middle", "process", "each", "first")
    }
    assert choice.further == {"tests/test_lessons.py": ["test_it"]} and choice.left == 10
    assert choice.tests == 1 + 1 + 3 * 10 and choice.seconds <= 8


def test_of_a_file_that_is_too_long_the_quick_functions_are_taken(small):
    costs = {"tests/test_far.py": [0, {"test_nothing": [1, 0.1]}]}
    costs |= {"tests/test_both.py": [0, {"test_plain": [5, 9]}]}
    touched = small.touched(["engine/far.py"])
    choice = check.choose(touched, small.tests, costs, seconds=2, workers=1)
    assert choice.files == {"tests/test_far.py": ["test_nothing"]}
    assert choice.further == {"tests/test_both.py": ["test_plain"]} and choice.left == 5
    assert choice.pages["tests/test_both.py"] == ["test_built", "test_launched"]


def test_what_is_run_is_noted(tmp_path, monkeypatch):
    """Runs pytest in separate processes: only the planned tests run, and their times are noted afterwards."""
    plan = tmp_path / "plan.json"
    file = "tests/test_timing.py"
    names = Tree(ROOT, [file]).tests[file]
    plan.write_text(json.dumps({"files": {file: names[:1]}, "stems": [], "until": 0}), encoding="utf-8")
    code = (
        "import sys, pytest; from pathlib import Path; from tests import chosen\n"
        f"chosen.FOLDER = Path({str(tmp_path)!r}); chosen.SECONDS = chosen.FOLDER / 'seconds.json'\n"
        "chosen.LATE = chosen.FOLDER / 'late.json'\n"
        f"sys.exit(pytest.main(['-n', '1', '-o', 'cache_dir={tmp_path}', {file!r}]))"
    )
    monkeypatch.setenv(chosen.PLAN, str(plan))
    done = subprocess.run([check.BIN / "python", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    seconds = json.loads((tmp_path / "seconds.json").read_bytes())
    assert list(seconds[file][1]) == names[:1]
