"""A cached page equals a newly rendered one, and a page is rendered again when something that it is made from
changes."""

import importlib
import logging

import pytest
from material.plugins.search.plugin import SearchIndex
from mkdocs.config import load_config
from mkdocs.structure.files import File, get_files
from mkdocs.structure.nav import get_navigation
from mkdocs.structure.pages import Page

from course import lessons, rendered, settings
from course.links import glossary
from widgets.kit.page import dependencies

SETTINGS = {"lang": ["en"], "separator": " ", "pipeline": [], "fields": {}}


@pytest.fixture
def times(tmp_path, monkeypatch):
    """A counter of the pages that mkdocs renders during a test."""
    monkeypatch.setenv("KEEP_COMPILED", str(tmp_path))
    own, count = Page.render, []
    monkeypatch.setattr(
        Page, "render", rendered._keeping(lambda *given: (count.append(given[0].file.src_uri), own(*given)))
    )
    return count


def read(name: str) -> tuple[Page, list]:
    """A page of the course as read by mkdocs, and the arguments needed to render it."""
    config = load_config(str(settings.FILE))
    files = get_files(config)
    get_navigation(files, config)
    page = files.get_file_from_path(name).page
    page.read_source(config)
    return page, [config, files]


def shown(page: Page) -> tuple:
    """Everything that mkdocs uses from a rendered page."""
    links = {file.src_uri: anchors for file, anchors in page.links_to_anchors.items()}
    return page.content, str(page.toc), page.title, page.present_anchor_ids, links


def test_a_kept_page_is_the_page_and_its_entries_in_the_search_are_its_own(times):
    found, entries = [], []
    add = SearchIndex.add_entry_from_context
    for index_page in (add, rendered._keeping_entries(add), rendered._keeping_entries(add)):
        page, given = read("teach.md")
        page.render(*given)
        found.append(shown(page))
        index = SearchIndex(**SETTINGS)
        index_page(index, page)
        entries.append(index.entries)
    assert times == ["teach.md"]
    assert len(found[0][0]) > 2000 and found[0] == found[1] == found[2]
    assert len(entries[0]) > 3 and entries[0] == entries[1] == entries[2]


def test_a_kept_page_warns_as_it_did(times, caplog):
    page, given = read("teach.md")
    text = "# A page\n\nTo [nowhere](no-such-page.md).\n"
    for _ in range(2):
        page.file = File.generated(given[0], "teach.md", content=text)
        page.markdown, page.content = text, None
        caplog.clear()
        with caplog.at_level(logging.WARNING, "mkdocs"):
            page.render(*given)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "no-such-page.md" in caplog.text
    assert times == ["teach.md"]


def test_a_page_is_made_of_what_its_text_names():
    text = (
        "Text.\n\n``` widget\nname: bubble_map\n```\n\n``` table\nrows: 1\n```\n\n"
        "``` diagram\nname: rails\n```\n\n`#!n collectives.ring(8)`, (figure:roofline)\n"
    )
    found = set(rendered.modules(text))
    named = [
        "course.diagrams.rails",
        "course.fences.table",
        "engine.mechanism.collectives",
        "course.links.glossary",
    ]
    assert found >= {*named, "course.exercises", "course.fences.widget", "course.fences.diagram"}
    assert {"roofline", "bubble_map"} <= {name.rpartition(".")[2] for name in found}
    assert not {"course.fences.trace", "course.diagrams.schedule"} & found
    assert not [name for name in found if name.endswith("memory_stack")]
    assert all(dependencies.source(name) for name in found)


@pytest.mark.parametrize(
    ("page", "of_others"), [("17-triton.md", False), ("formulas.md", True), ("figures.md", True)]
)
def test_a_page_that_collects_is_made_of_all_pages_and_all_code(page, of_others):
    page, given = read(page)
    found = rendered.sources(page, *given)
    assert (dependencies.state_of_all() in found) == of_others
    assert (lessons.read("05-fsdp-and-zero.md").text in found) == of_others
    assert glossary.PAGE.read_text(encoding="utf-8") in found


def test_a_page_is_made_of_the_files_that_it_quotes():
    page, given = read("17-triton.md")
    quoted = (dependencies.ROOT / "kernels" / "softmax.py").read_text(encoding="utf-8")
    assert quoted in rendered.sources(page, *given)


def test_every_module_of_fences_is_one_and_a_page_has_it():
    """What fences share is named in course/lessons.py; a module that is no fence would be taken for one."""
    kinds = lessons.kinds_of_fence()
    assert all(callable(importlib.import_module(f"course.fences.{kind}").format) for kind in kinds)
    assert {fence.kind for page in lessons.pages() for fence in page.fences}.issuperset(kinds)
    assert set(rendered.OF_ITS_OWN) < set(kinds)
