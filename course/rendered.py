"""Runs mkdocs, reusing a page as an earlier build has rendered it if nothing that the page is made from has
changed: ``python -m course.rendered build -d FOLDER``.

A page is made from its text, the settings, the glossary, the names of all pages, the titles of all lessons,
the files that it quotes, and code: the Markdown extensions, its fences, and the widgets, pictures and engine
modules that its text names. A page with a fence that collects from other pages depends on everything.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from jinja2 import Environment
from material.plugins.search.plugin import SearchIndex
from mkdocs.__main__ import cli
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import BuildError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink, get_toc

from course import faults, lessons, numbers, settings
from course.fences import diagram, gallery, widget
from course.lessons import Lesson
from course.links import glossary
from widgets.kit.page import dependencies
from widgets.kit.page.cache import digest, kept
from widgets.kit.widget import all_widgets

ROOT = dependencies.ROOT
OF_ITS_OWN = (
    "widget",
    "table",
    "diagram",
    "trace",
    "puzzle",
)  # fences that show only what they name; others collect
EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/*.py"))
CITED = ("pyproject.toml", "LICENSE", *EXAMPLES)  # read by fences that collect
QUOTED = re.compile(r'^ *--8<-- "([^":]+)', re.MULTILINE)
FENCED = re.compile(r"^ *``` *(\w+)", re.MULTILINE)
ITSELF = "course.rendered"  # this module's name, even when it runs as __main__
SETTINGS = ROOT / "mkdocs.yml"
TEMPLATES = ("site/theme", "course/templates")
LOG = logging.getLogger("mkdocs")


def keep() -> None:
    """Make mkdocs store each rendered page and its search entries. The course's Markdown extensions are
    imported here, because mkdocs would report an error in their imports as an error in its settings."""
    for name in re.findall(r"\bcourse(?:\.\w+)+", SETTINGS.read_text(encoding="utf-8")):
        _import(name)
    Page.render = _keeping(Page.render)
    SearchIndex.add_entry_from_context = _keeping_entries(SearchIndex.add_entry_from_context)


def read_templates() -> None:
    """Finds a template that cannot be read; mkdocs reads some of them only after rendering all pages."""
    jinja = Environment(extensions=["jinja2.ext.i18n", "jinja2.ext.do"])
    for folder in TEMPLATES:
        for path in sorted((ROOT / folder).rglob("*.html")):
            jinja.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _import(name: str) -> None:
    """A module, or the module in which a function is."""
    is_module = dependencies.source(name) is not None
    importlib.import_module(name if is_module else name.rpartition(".")[0])


# -- what a page is made from --------------------------------------------------------------------------------
def sources(page: Page, config: MkDocsConfig, files: Files) -> list[str]:
    """The texts that a page is made of."""
    whole, lesson = page.file.content_string, lessons.read(page.file.src_uri)
    known = [f"{lesson.name} {lesson.title}" for lesson in lessons.numbered()]
    quoted = _texts_of(QUOTED.findall(whole))
    others = [file.src_uri for file in files if file.is_documentation_page()]
    collected = [] if _is_of_its_own(whole) else _everything()
    terms = glossary.PAGE.read_text(encoding="utf-8") if glossary.PAGE.exists() else ""
    settings = [SETTINGS.read_text(encoding="utf-8"), str(config.site_url)]
    return [page.file.src_uri, whole, lesson.code, *known, *quoted, *others, terms, *settings, *collected]


def _is_of_its_own(text: str) -> bool:
    return not (set(FENCED.findall(text)) & set(lessons.kinds_of_fence()) - set(OF_ITS_OWN))


def _everything() -> list[str]:
    """All pages, all code, and what else a page that collects may read."""
    texts = [text for page in lessons.pages() for text in (page.text, page.code)]
    return [*texts, *_texts_of(CITED), *gallery.drawn(), dependencies.state_of_all()]


def _texts_of(names: Iterable[str]) -> list[str]:
    return [(ROOT / name).read_text(encoding="utf-8") for name in names if (ROOT / name).is_file()]


def modules(text: str, page: Lesson | None = None) -> tuple[str, ...]:
    """The modules that a page with this text is made by, the file beside it included."""
    text = f"{text}\n{page.code}" if page else text
    words, kinds = set(re.findall(r"\w+", text)), set(FENCED.findall(text))
    extensions = [name for name in settings.extensions()[0] if name.startswith("course.")]
    made_by = [f"course.fences.{kind}" for kind in lessons.kinds_of_fence() if kind in kinds]
    shown = [name for slug in all_widgets().keys() & words for name in widget.depends_on(f"name: {slug}\n")]
    drawn = [f"course.diagrams.{name}" for name in diagram.names() if name in words]
    with lessons.on(page):
        behind = numbers.named_in(text)
    return tuple(sorted({ITSELF, *extensions, *made_by, *shown, *drawn, *behind}))


# -- pages ---------------------------------------------------------------------------------------------------
def _keeping(render: Callable) -> Callable:
    def kept_render(page: Page, config: MkDocsConfig, files: Files) -> None:
        def made() -> bytes:
            try:
                with _warnings() as warnings:
                    render(page, config, files)
            except lessons.LessonFault as fault:
                raise BuildError(str(fault)) from fault  # which mkdocs prints without a traceback
            return json.dumps(_record(page) | {"warnings": warnings}).encode()

        name = f"page.{digest(*sources(page, config, files))}"
        record = json.loads(
            kept(name, made, modules(page.file.content_string, lessons.read(page.file.src_uri)))
        )
        if page.content is None:
            _restore(page, files, record)

    return kept_render


def _record(page: Page) -> dict[str, Any]:
    """Everything that mkdocs reads from a page after it has been rendered."""
    links = page.links_to_anchors or {}
    return {
        "content": page.content,
        "toc": [_token(link) for link in page.toc],
        "title": page._title_from_render,
        "anchors": sorted(page.present_anchor_ids or ()),
        "links": {file.src_uri: anchors for file, anchors in links.items()},
    }


def _token(link: AnchorLink) -> dict[str, Any]:
    children = [_token(child) for child in link.children]
    return {"name": link.title, "id": link.id, "level": link.level, "children": children}


def _restore(page: Page, files: Files, record: dict[str, Any]) -> None:
    """Set the page to its state after it was rendered, and repeat its warnings to mkdocs."""
    page.content, page.toc = record["content"], get_toc(record["toc"])
    page._title_from_render, page.present_anchor_ids = record["title"], set(record["anchors"])
    linked = {files.get_file_from_path(name): anchors for name, anchors in record["links"].items()}
    page.links_to_anchors = {file: anchors for file, anchors in linked.items() if file}
    for level, words in record["warnings"]:
        LOG.log(level, words)


@contextmanager
def _warnings() -> Iterator[list[tuple[int, str]]]:
    """The messages that mkdocs logs inside this block, with their levels."""
    said: list[tuple[int, str]] = []
    listener = logging.Handler(logging.WARNING)
    listener.emit = lambda record: said.append((record.levelno, record.getMessage()))
    LOG.addHandler(listener)
    try:
        yield said
    finally:
        LOG.removeHandler(listener)


# -- the search ----------------------------------------------------------------------------------------------
def _keeping_entries(add: Callable) -> Callable:
    def kept_add(index: SearchIndex, page: Page) -> None:
        def made() -> bytes:
            before = len(index.entries)
            add(index, page)
            return json.dumps([index.entries.pop() for _ in index.entries[before:]][::-1]).encode()

        about = [page.url, str(page.title), json.dumps(page.meta, default=str), page.content or ""]
        toc = json.dumps([_token(link) for link in page.toc])
        index.entries += json.loads(kept(f"search.{digest(*about, toc)}", made, (ITSELF,)))

    return kept_add


if __name__ == "__main__":
    try:
        read_templates()
        keep()
        cli()
    except Exception as error:  # mkdocs itself says what is wrong with a lesson
        sys.exit(faults.one_line(error))
