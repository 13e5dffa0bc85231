"""A widget's fence with an unknown name or value stops the build, and the message names file and line."""

import os
import re
import shutil
import subprocess
import sys
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from markdown import Markdown
from pygments.lexers import get_all_lexers

from course import lessons as locate
from course.fences import widget as fence
from course.output import wheel
from engine.base.units import unbroken
from tests import states
from widgets.kit.widget import all_widgets

ROOT = Path(__file__).resolve().parents[2]
SLUG, CLS = min(all_widgets().items())
NUMBER = next(c for c in CLS.controls().values() if c.kind == "number")
CHOICES = [
    (slug, c)
    for slug, cls in sorted(all_widgets().items())
    for c in cls.controls().values()
    if c.kind == "choice"
]
PREDICTION = (
    "predict: How many?\nanswers: [one, two]\nright: min(1, 2)\ntold_by: [it is the second]\nwhy: Because."
)

# what is wrong -> (the fence's lines, words of the message)
WRONG = {
    "an unknown widget": ("name: no_such_widget", "there is no widget 'no_such_widget'"),
    "no widget": ("size: 3", "needs a line 'name: …'"),
    "an unknown control": (f"name: {SLUG}\nno_such_control: 3", f"{SLUG} has no control 'no_such_control'"),
    "a value above the range": (
        f"name: {SLUG}\n{NUMBER.name}: {NUMBER.bounds[1] * 2:g}",
        f"{NUMBER.name} must be",
    ),
    "a value below the range": (
        f"name: {SLUG}\n{NUMBER.name}: {NUMBER.bounds[0] / 2 - 1:g}",
        f"{NUMBER.name} must be",
    ),
    "a value that is no number": (f"name: {SLUG}\n{NUMBER.name}: nan", "got 'nan'"),
    "an infinite value": (f"name: {SLUG}\n{NUMBER.name}: 1e999", "got '1e999'"),
    "an unknown option": (
        f"name: {CHOICES[0][0]}\n{CHOICES[0][1].name}: abacus",
        f"{CHOICES[0][1].name} must be one of",
    ),
    "no YAML": (f"name: {SLUG}\n{NUMBER.name}: [1, 2", "is not YAML"),
    "half a prediction": (f"name: {SLUG}\npredict: How many?", "missing: asks, why"),
    "answers that are no list": (
        f"name: {SLUG}\n{PREDICTION.replace('[one, two]', 'one')}",
        "a list of two to four",
    ),
    "one answer": (f"name: {SLUG}\n{PREDICTION.replace('[one, two]', '[one]')}", "a list of two to four"),
    "a right answer that is not there": (
        f"name: {SLUG}\n{PREDICTION.replace('min(1, 2)', 'min(2, 3)')}",
        "from 0 to 1, got 2",
    ),
    "a right answer that cannot be computed": (
        f"name: {SLUG}\n{PREDICTION.replace('min(1, 2)', 'nonsense')}",
        "nonsense",
    ),
    "a number that cannot be computed": (
        f"name: {SLUG}\n{PREDICTION.replace('Because.', 'It is `#!n nonsense | TB`.')}",
        "nonsense",
    ),
}
# what is wrong -> the line of the page that is named
BUILT = {
    "an unknown widget": 6,
    "an unknown control": 7,
    "a value above the range": 6,
    "no YAML": 7,
    "a right answer that is not there": 9,
}


def page(lines: str) -> str:
    return f"# A page\n\nText.\n\n``` widget\n{lines}\n```\n"


def html(text: str) -> str:
    """The page as the site's own fences turn it into HTML."""
    return Markdown(extensions=["course.fences"]).convert(text)


@pytest.mark.parametrize("what", WRONG)
def test_a_faulty_fence_is_refused_with_its_place(what, tmp_path, monkeypatch):
    lines, words = WRONG[what]
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "09-x.md").write_text(page(lines), encoding="utf-8")
    monkeypatch.setattr(locate.fault, "__defaults__", (tmp_path / "lessons",))
    with pytest.raises(locate.LessonFault) as stopped:
        html(page(lines))
    assert re.match(r"lessons/09-x\.md:\d+: ", str(stopped.value)), stopped.value
    assert words in str(stopped.value)


@pytest.fixture(scope="module")
def copy(tmp_path_factory, site):
    """A copy of everything that a build needs, with a single lesson. It includes the widgets that the site's
    build has compiled, and Python's compiled modules."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("engine", "widgets", "course", "site", "build/compiled"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("mkdocs.yml", "constraints.txt", "CHANGELOG.md", *wheel.MADE_BY):  # and of the package
        shutil.copy(ROOT / name, folder)
    settings = (folder / "mkdocs.yml").read_text(encoding="utf-8")
    one_page = re.sub(
        r"^nav:\n(?:[ #].*\n|\n)*", "nav:\n  - Home: index.md\n\n", settings, flags=re.MULTILINE
    )
    (folder / "mkdocs.yml").write_text(one_page, encoding="utf-8")
    (folder / "lessons").mkdir()
    return folder


def build(folder: Path, text: str) -> subprocess.CompletedProcess:
    """Run the full build of a course with this one page."""
    (folder / "lessons" / "index.md").write_text(text, encoding="utf-8")
    return run(folder, "-m", "course.build")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Python in a copy of the course."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(folder)},
    )


# builds each page of a folder alone, as `make dev` does, and notes its output and exit status; each build is
# a process forked from one that has imported everything
ALONE = """
import os, sys
from pathlib import Path
from course import quick

for page in sorted(Path("pages").glob("*.md")):
    Path("lessons/index.md").write_text(page.read_text())
    child = os.fork()
    if not child:
        said = os.open(page.with_suffix(".said"), os.O_CREAT | os.O_WRONLY)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.exit(quick.make(Path("build/quick"), {"index.md"}, set()))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    page.with_suffix(".code").write_text(str(code))
"""
SENTENCES = {  # a sentence that the page's figure does not accept -> words of the message
    '[a word](figure "no_such_control: 3")': f"{SLUG} has no control 'no_such_control'",
    "[a word]{lights: no_such_part}": f"{SLUG} has no part 'no_such_part' to light",
}
GOOD = page(f"name: {SLUG}\n{PREDICTION}")


@pytest.fixture(scope="module")
def alone(copy) -> dict[str, tuple[int, str]]:
    """The faulty pages and a good one, each built alone: text -> exit status and output of the build."""
    texts = [GOOD, *(page(WRONG[what][0]) for what in BUILT)]
    texts += [f"{page(f'name: {SLUG}')}\nText with\n{sentence} in it.\n" for sentence in SENTENCES]
    folder = copy / "pages"
    folder.mkdir()
    for place, text in enumerate(texts):
        (folder / f"{place:02}.md").write_text(text, encoding="utf-8")
    run(copy, "-c", ALONE).check_returncode()
    ends = [
        (int(path.with_suffix(".code").read_text()), path.with_suffix(".said").read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.md"))
    ]
    return dict(zip(texts, ends, strict=True))


@pytest.mark.parametrize(("what", "line"), BUILT.items())
def test_a_faulty_fence_fails_a_quick_build(alone, what, line):
    lines, words = WRONG[what]
    code, said = alone[page(lines)]
    assert code == 1 and "Traceback" not in said
    assert re.search(rf"lessons/index\.md:{line}: .*" + re.escape(words), said), said


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_that_the_figure_does_not_take_fails_a_quick_build(alone, sentence):
    code, said = next(end for text, end in alone.items() if sentence in text)
    assert code == 1 and "Traceback" not in said
    assert f"lessons/index.md:10: {SENTENCES[sentence]}" in said, said


def test_a_good_fence_is_built_quickly(alone):
    assert alone[GOOD] == (0, "")


def test_a_faulty_fence_fails_the_whole_build(copy):
    lines, words = WRONG["an unknown widget"]
    done = build(copy, page(lines))
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert f"lessons/index.md:{BUILT['an unknown widget']}: " in done.stdout + done.stderr
    assert words in done.stdout + done.stderr


def test_a_good_fence_builds(copy):
    """So that the failures above are due to their faults."""
    done = build(copy, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f'data-widget="{SLUG}"' in (copy / "build" / "static" / "index.html").read_text(encoding="utf-8")


def test_a_link_to_nowhere_fails_the_build(copy):
    done = build(copy, "# A page\n\n[a lesson](no-such-lesson.md)\n")
    assert done.returncode != 0 and "no-such-lesson.md" in done.stdout + done.stderr


@pytest.mark.parametrize("slug", sorted(all_widgets()))
def test_every_state_can_stand_in_a_fence(slug, compiled):
    cls = all_widgets()[slug]
    for state in states.scattered(cls, 5):
        widget = cls()
        widget.set_raw(state)
        lines = [
            f"{name}: {control.write(getattr(widget, name))}" for name, control in cls.controls().items()
        ]
        out = fence.render("\n".join([f"name: {slug}", *lines]))
        assert f'data-widget="{slug}"' in out and unbroken(widget.shown()["summary"]) in unescape(out)


# -- which fences there are ----------------------------------------------------------------------------------
def put(text: str, folder: Path, monkeypatch) -> str:
    (folder / "lessons").mkdir()
    (folder / "lessons" / "09-x.md").write_text(text, encoding="utf-8")
    for reader in (locate.fault, locate.places):
        monkeypatch.setattr(reader, "__defaults__", (folder / "lessons", *reader.__defaults__[1:]))
    return text


ODD = {  # what is wrong with a fence -> (the page's lines from the fourth on, words of the message)
    "an unknown name": ("``` facts\nof: h100\n```", "there is no fence 'facts'; there are api, cite, "),
    "an unknown name without a space": ("```facts\nof: h100\n```", "there is no fence 'facts'"),
    "an unknown name and no lines": ("``` facts\n```", "there is no fence 'facts'"),
    "an unknown name in a box": ("!!! note\n\n    ``` facts\n    of: h100\n    ```", "no fence 'facts'"),
    "no end": (f"``` widget\nname: {SLUG}\n", "begins no fence"),
    "an end that is indented": (f"``` widget\nname: {SLUG}\n  ```\n", "begins no fence"),
    "more than a name": (f"``` widget {SLUG}\nname: {SLUG}\n```", "begins no fence"),
    "an option in its head": (f"``` widget size=3\nname: {SLUG}\n```", "begins no fence"),
}


@pytest.mark.parametrize("what", ODD)
def test_what_is_no_fence_is_refused_with_its_place(what, tmp_path, monkeypatch):
    lines, words = ODD[what]
    text = put(f"# A page\n\nText.\n{lines}\n", tmp_path, monkeypatch)
    line = next(at for at, line in enumerate(text.split("\n"), 1) if "```" in line)
    with pytest.raises(locate.LessonFault) as stopped:
        Markdown(extensions=["course.fences", "admonition"]).convert(text)
    assert str(stopped.value).startswith(f"lessons/09-x.md:{line}: "), stopped.value
    assert words in str(stopped.value)


def test_a_program_is_no_fault_of_ours(tmp_path, monkeypatch):
    text = put("# A\n\n``` python\nx = 1\n```\n\n```\nplain\n```\n", tmp_path, monkeypatch)
    html = Markdown(extensions=["course.fences", "pymdownx.highlight"]).convert(text)
    assert html.count('class="highlight"') == 2


@pytest.mark.parametrize("name", locate.kinds_of_fence())
def test_no_slip_in_a_name_makes_a_program_of_a_fence(name):
    """Pygments knows hundreds of languages; none is called what someone might type for a fence."""
    dropped = {name[:at] + name[at + 1 :] for at in range(len(name))}
    doubled = {name[:at] + name[at] + name[at:] for at in range(len(name))}
    swapped = {name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1)}
    languages = {alias for _, aliases, *_ in get_all_lexers() for alias in aliases}
    slips = (dropped | doubled | swapped | {f"{name}s", name.capitalize()}) - set(locate.kinds_of_fence())
    assert not slips & languages


def test_a_fence_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    text = put("# A\n\n``` widget\nname: x\n```\n", tmp_path, monkeypatch)
    monkeypatch.delattr(fence, "format")
    with pytest.raises(locate.LessonFault, match=r"09-x\.md:3: course/fences/widget\.py does not work: Attr"):
        html(text)


HEADING = re.compile(r'<h([1-6])[ >]|role="heading" aria-level="(\d)"')


@pytest.mark.parametrize("page", ["planner", "deploy", "fit", "04-data-parallel"])
def test_no_heading_of_a_page_skips_a_level(site, page):
    text = (site / page / "index.html").read_text(encoding="utf-8")
    article = text[text.index("<article") : text.index("</article>")]
    levels = [int(plain or said) for plain, said in HEADING.findall(article)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels)), levels
