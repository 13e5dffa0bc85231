"""The search index has each widget, rule, symbol and form of a word, and leads only to places that exist."""

import gzip
import json
import re

import pytest

from course import excerpts
from course.links import glossary
from widgets.kit.widget import all_widgets

LIMIT_GZIP_BYTES = 365_000  # the index of all pages, fetched once when a reader clicks into the search field


@pytest.fixture(scope="module")
def entries(site) -> dict[str, dict]:
    return {
        entry["location"]: entry
        for entry in json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    }


def test_every_entry_leads_to_a_place_that_exists(site, entries):
    pages = {}
    for location in entries:
        page, _, anchor = location.partition("#")
        if page not in pages:
            pages[page] = set(re.findall(r'\bid="([^"]+)"', (site / page / "index.html").read_text("utf-8")))
        assert not anchor or anchor in pages[page], location


def test_each_widget_is_there_with_its_slug_and_controls_in_its_lesson_and_alone(entries):
    for slug, cls in all_widgets().items():
        own = [
            entry
            for location, entry in entries.items()
            if location == f"{slug}/" or location.endswith(f"#w-{slug}")
        ]
        assert len(own) > 1, slug
        for entry in own:
            assert slug in entry["text"] and all(
                control.label in entry["text"].replace("&lt;", "<").replace("&amp;", "&")
                for control in cls.controls().values()
            )


def test_a_section_does_not_repeat_its_figures(entries):
    assert "alonelink" not in "".join(entry["text"].replace(" ", "") for entry in entries.values())


def test_rules_forms_and_symbols_are_there(entries):
    rules = [
        f"{lesson.name}/#{rule.anchor}"
        for lesson in excerpts.lessons_with("rule")
        for rule in lesson.boxes("rule")
    ]
    assert len(rules) > 60 and all(entries[rule]["title"].startswith("Rule: ") for rule in rules)
    assert all(
        list(entry.also) == entries[f"glossary/#{entry.anchor}"].get("tags", [])
        for entry in glossary.entries()
    )
    assert "alpha α" in entries["02-collectives/#rule-alpha-and-beta"]["text"]
    assert "Psi Ψ" in entries["05-fsdp-and-zero/#three-cuts"]["text"]
    assert "B_crit" in entries["04-data-parallel/#the-critical-batch"]["text"]


def test_the_words_of_a_table_s_cells_are_apart(entries):
    assert re.search(r"\bH100 SXM\b", entries["numbers/#accelerators"]["text"])


def test_numbers_in_a_row_are_left_out_but_where_one_looks_for_them(entries):
    """The rows of a table: its words are kept."""
    assert re.search(r"H100 SXM 2022 80 85.5 3.35 989", entries["numbers/#accelerators"]["text"])
    waves = entries["17-triton/#waves-and-tails"]["text"]
    assert "Tiles on 132" in waves and not re.search(r"\d (?:\d[\d.,]* ){3}", waves)


def test_the_index_is_small(site):
    assert len(gzip.compress((site / "search" / "search_index.json").read_bytes())) < LIMIT_GZIP_BYTES
