"""Writes each lesson's notebook from its built page: build/static/notebooks/05-fsdp-and-zero.ipynb.

The built page already contains computed numbers, tables, pictures and links, so a notebook is that page in
another format: prose as Markdown, formulas as LaTeX, figures as the components that they are in Python
(widgets/kit/panel.py), programs as cells, and exercises, predictions and puzzles as cells that answer
(reader.py).
"""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import nbformat
from nbformat import v4

from course import html_tree, in_wheel, lessons, settings
from course.html_tree import Element, classes
from course.lessons import Lesson
from course.output import book, wheel
from course.output.notebooks import markdown, snippets
from course.output.notebooks.markdown import Cell, Writer
from course.output.notebooks.packed import pack
from engine import puzzles
from engine.base import units
from widgets.kit.page.cache import digest, kept
from widgets.kit.widget import Widget, all_widgets

FOLDER = "notebooks"  # in the built site
HERE = book.HERE
PYTHON = ("python", "py")
SECRET = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # folded away in Jupyter, in Colab
LETTERS = "abcd"
INSTALL = """\
This is lesson {number} of *System ML* as a notebook. It needs Python 3.11 or newer and the course's package,
which is not on PyPI. The next cell installs it {whence} if it is missing. Then run all cells. The figures
come alive, exercises and predictions wait for what you type between the quotes, and a program says so if it
needs what this machine does not have."""
LOCALLY = "from where you read the course, {home}, as long as that is open there,"
FIRST = """\
import importlib.util

if importlib.util.find_spec("system_ml") is None:
    %pip install -q "{requirement}"
"""
BEGIN = '''\
# @title Run this cell first: it brings the figures, and what checks your answers.
import panel as pn

from system_ml.course.output.notebooks.reader import read

pn.extension(inline=True)  # with its scripts, so that figures come alive without a network, too
exercise, predict = read("""
{packed}
""")
'''
NUMBERS = """\
# The numbers of this lesson, by the names that its text gives them.
from system_ml.course.lesson_code import load

numbers = load("{page}")
"""


def repository() -> str:
    """OWNER/NAME of the course's public repository on GitHub, if the build was given one (REPOSITORY)."""
    return settings.of("extra").get("repository") or ""


def files(site: Path) -> dict[str, str]:
    """File -> contents of all notebooks, made from the built lessons in this folder."""
    pages = {
        each: book.article_of((site / each.name / "index.html").read_text(encoding="utf-8"), each.name)[0]
        for each in lessons.numbered()
    }
    places = {lesson.name: _places(html) for lesson, html in pages.items()}
    made = {f"{FOLDER}/{lesson.name}.ipynb": _kept(lesson, html, places) for lesson, html in pages.items()}
    if repository():  # Binder installs what this file lists
        made[f"{FOLDER}/requirements.txt"] = f"jupyterlab\n{wheel.requirement('widgets', repository())}\n"
    return made


def _places(html: str) -> dict[str, str]:
    """Anchor -> Jupyter's name of the heading under which the anchor is found on a page."""
    found, under = {}, ""
    for at, piece in enumerate(re.split(r"(<h[123]\b.*?</h[123]>)", html, flags=re.DOTALL)):
        if at % 2:
            words = re.sub(r'<a class="headerlink.*?</a>|<[^>]+>', "", piece)
            under = "-".join(unescape(words).split())
        found |= dict.fromkeys(re.findall(r'\sid="([^"]+)"', piece), under)
    return found


def _kept(lesson: Lesson, html: str, places: dict[str, dict[str, str]]) -> str:
    """The notebook, taken from the cache unless something that it is made from has changed."""
    texts = [
        (snippets.ROOT / name).read_text(encoding="utf-8") for name in snippets.QUOTED.findall(lesson.text)
    ]
    package = wheel.requirement("widgets", repository())
    made_of = digest(html, json.dumps(places), settings.public_home(), package, *texts)
    make = lambda: notebook(lesson, html, places).encode()
    return kept(f"notebook.{made_of}", make, (__name__,)).decode()


def notebook(lesson: Lesson, html: str, places: dict[str, dict[str, str]]) -> str:
    """The file of one lesson's notebook, made from its page; ``places`` are the places in all lessons."""
    article = html_tree.parse(html)
    html_tree.remove(article, lambda one: "headerlink" in classes(one))
    page = _Page(lesson, article, places)
    writer = Writer(page.link, page.special)
    first, *others = _cells(writer.blocks(article))
    begin = v4.new_code_cell(BEGIN.format(packed=pack(page.answers)), metadata=SECRET | {"tags": ["begin"]})
    ours = NUMBERS.format(page=lesson.name)
    named = [v4.new_code_cell(ours, metadata={"tags": ["numbers"]})] if lesson.code else []
    cells = [first, *_installing(lesson), begin, *named, *others]
    for at, cell in enumerate(cells):
        cell["id"] = f"{lesson.number}-{at:03d}"
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    about = {"kernelspec": python, "language_info": {"name": "python"}, "title": lesson.heading}
    made = v4.new_notebook(cells=cells, metadata=about)
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def _cells(pieces: list[str | Cell]) -> list[Any]:
    """The pieces as cells: a new one with each heading and each program."""
    cells: list[Any] = []
    words: list[str] = []
    for piece in [*pieces, None]:
        begins = isinstance(piece, str) and piece.startswith("#")
        if words and (begins or not isinstance(piece, str)):
            cells.append(v4.new_markdown_cell("\n\n".join(words)))
            words = []
        if isinstance(piece, Cell):
            cells.append(v4.new_code_cell(piece.code, metadata={"tags": [piece.kind]}))
        elif piece is not None:
            words.append(piece)
    return cells


def _installing(lesson: Lesson) -> list[Any]:
    """The text that says what is needed, and the cell that installs it."""
    home = settings.of("site_url")
    is_local = not settings.public_home() and not repository()
    words = INSTALL.format(
        number=lesson.number, whence=LOCALLY.format(home=home) if is_local else "from the course"
    )
    code = FIRST.format(requirement=wheel.requirement("widgets", repository()))
    return [v4.new_markdown_cell(words), v4.new_code_cell(code, metadata={"tags": ["install"]})]


class _Page:
    """A lesson's page while it is turned into cells: the pieces that are more than text, and the right
    answers."""

    def __init__(self, lesson: Lesson, article: Element, places: dict[str, dict[str, str]]) -> None:
        self.lesson, self.places = lesson, places
        self.answers: dict[str, dict] = {"exercises": {}, "predictions": {}}
        self.known: dict[str, tuple[str, ...]] = {}  # names that the cells so far define
        programs = [fence for fence in lesson.fences if fence.kind not in lessons.kinds_of_fence()]
        self.programs = dict(zip(html_tree.find(article, "highlight"), programs, strict=True))
        # a solution is folded, which a cell cannot be; and a cell does not fit into a list
        self.text_alone = {
            inside
            for outer in article.iter()
            if outer.tag == "li" or "solution" in classes(outer)
            for inside in outer.iter()
        }

    def link(self, href: str) -> str:
        """The address in a notebook for a link of the page: a lesson's notebook, or the published course."""
        where = urljoin(f"{HERE}{self.lesson.name}/", href)
        if not where.startswith(HERE):
            return where
        parts = urlsplit(where)
        name = parts.path.strip("/")
        if name not in self.places or parts.query:
            return settings.public_home() and settings.public_home() + where.removeprefix(HERE)
        under = self.places[name].get(parts.fragment, "")
        if name == self.lesson.name:
            return f"#{under}" if under else ""
        return f"{name}.ipynb" + (f"#{under}" if under else "")

    def special(self, element: Element, writer: Writer) -> list[str | Cell] | None:
        """The pieces of a figure, a program, an exercise or a puzzle; None for anything else."""
        if "data-widget" in element.attrib:
            return self.figure(element, writer)
        if element in self.programs:
            return [self.program(element)]
        if "exercise" in classes(element):
            return self.exercise(element, writer)
        if "puzzle" in classes(element):
            return self.puzzle(element, writer)
        return None

    def program(self, element: Element) -> str | Cell:
        fence, code = self.programs[element], "".join(element.itertext()).strip("\n")
        if fence.kind not in PYTHON or element in self.text_alone:
            return markdown.fenced(code, "python" if fence.kind in PYTHON else fence.kind)
        snippet = snippets.as_cell(code, fence.source, self.known)
        return Cell("program", snippet.cell) if snippet else markdown.fenced(code, "python")

    # -- a figure --------------------------------------------------------------------------------------------
    def figure(self, element: Element, writer: Writer) -> list[str | Cell]:
        """The pieces of a figure: its prediction, the component, and its caption."""
        slug = element.attrib["data-widget"]
        cls = all_widgets()[slug]
        asked = html_tree.find(element, "widget-predict")
        found = self.prediction(slug, asked[0], writer) if asked else []
        found.append(Cell("figure", _component(cls, json.loads(element.attrib["data-initial"]))))
        for kind in ("widget-break-it", "widget-caption", "widget-left-out"):
            found += [writer.line(each) for each in html_tree.find(element, kind)]
        return found

    def prediction(self, slug: str, box: Element, writer: Writer) -> list[str | Cell]:
        question = writer.line(html_tree.first(box, "widget-predict-question"))
        about: dict[str, Any] = {"why": writer.line(html_tree.first(box, "widget-why"))}
        buttons = [one for one in box.iter("button") if "data-answer" in one.attrib]
        if buttons:
            about |= {"choices": len(buttons)}
            about["right"] = [one.attrib["data-answer"] for one in buttons].index("right")
            hint = f"one of the letters {', '.join(LETTERS[: len(buttons)])}"
        else:
            about["number"] = {
                "truth": float(box.attrib["data-truth"]),
                "family": box.attrib["data-family"],
                "scale": float(box.attrib["data-scale"]),
                "shown": box.attrib["data-shown"],
                "digits": int(box.attrib["data-digits"]),
            }
            hint = _hint(box)
        self.answers["predictions"][slug] = about
        choices = [f"- {letter}) {writer.line(one)}" for letter, one in zip(LETTERS, buttons)]
        cell = Cell("prediction", f'predict("{slug}", "")  # {hint}')
        return [question, *(["\n".join(choices)] if choices else []), cell]

    # -- an exercise, a puzzle -------------------------------------------------------------------------------
    def exercise(self, element: Element, writer: Writer) -> list[str | Cell]:
        number = len(self.answers["exercises"]) + 1
        title = html_tree.first(element, "admonition-title")
        title.text = f"Exercise {number}: {title.text or ''}"
        forms = {
            html_tree.text(html_tree.first(form, "answer-asked")): form
            for form in html_tree.find(element, "answer")
        }
        if len(forms) != len(html_tree.find(element, "answer")):
            raise ValueError(f"{self.lesson.file}: {html_tree.text(title)}: two questions have one name")
        self.answers["exercises"][number] = {label: _asked(form, label) for label, form in forms.items()}
        told, solution = [each for each in element if each.tag != "details"], element.find("details")
        found = markdown.quoted(writer.pieces(told[1:], before=f"**{writer.line(title)}**"))
        if forms:
            hints = [next(form.iter("input")).attrib["placeholder"] for form in forms.values()]
            names = [json.dumps(label, ensure_ascii=False) for label in forms]
            fields = [f'    {name}: "",  # {hint}' for name, hint in zip(names, hints)]
            found.append(Cell("exercise", "\n".join([f"exercise({number}, {{", *fields, "})"])))
        return found + (writer.pieces([solution]) if solution is not None else [])

    def puzzle(self, element: Element, writer: Writer) -> list[str | Cell]:
        name = element.attrib["data-puzzle"]
        about = puzzles.puzzle(name)
        start = f"%%puzzle {name}\n{about.START.strip()}"
        title = writer.line(html_tree.first(element, "puzzle-title"))
        hints = [
            (html_tree.text(each[0]), writer.line(each[1]) if each[1].tag == "p" else "")
            for each in html_tree.find(element, "puzzle-hint")
        ]
        folds = [
            piece
            for words, hint in hints
            for piece in markdown.folded(words, [hint or markdown.fenced(about.SOLUTION, "python")])
        ]
        task = writer.blocks(html_tree.first(element, "puzzle-task"))
        more = writer.line(html_tree.first(element, "puzzle-open"))
        return [f"### {title}", *task, Cell("puzzle", start), *folds, more]


def _component(cls: type[Widget], initial: dict) -> str:
    """The cell that shows a figure in the state in which the lesson opens it."""
    figure = cls()
    figure.set_raw(initial)
    given = ", ".join(f"{name}={_written(figure, name)}" for name in initial)
    return in_wheel.of_program(f"from {cls.__module__} import {cls.__name__}\n\n{cls.__name__}({given})")


def _written(figure: Widget, name: str) -> str:
    """A control's value as Python writes it."""
    about, value = figure.controls()[name], getattr(figure, name)
    if about.kind == "choice":
        return json.dumps(about.write(value))
    short = f"{value:g}" if not isinstance(value, bool) else str(value)
    return short if isinstance(value, bool) or float(short) == value else repr(value)


def _hint(box: Element) -> str:
    """What may be typed as a prediction."""
    field = next(box.iter("input"))
    if "placeholder" in field.attrib:
        return field.attrib["placeholder"]
    if "data-low" in field.attrib:
        low, high = (
            units.human(float(field.attrib[end]), box.attrib["data-family"])
            for end in ("data-low", "data-high")
        )
        return f"from {low} to {high}"
    return f"where on the {box.attrib['data-axis']} axis? With its unit"


def _asked(form: Element, label: str) -> dict:
    """The attributes of a page's field, as arguments of verdict.Asked."""
    about = form.attrib
    found = {
        "label": label,
        "expected": float(about["data-expected"]),
        "within": float(about["data-within"]),
        "scale": float(about["data-scale"]),
        "slips": json.loads(about["data-slips"]),
        **{name: about[f"data-{name}"] for name in ("family", "shown", "side", "unit")},
    }
    if "data-trap" in about:
        found |= {"trap": float(about["data-trap"]), "hint": about["data-hint"]}
    return found
