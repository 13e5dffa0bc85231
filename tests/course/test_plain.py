"""Each page as Markdown: its numbers filled in, its figures named, its answers folded, nothing of the
screen left."""

import re

import pytest

from course import html_tree, lessons, settings
from course.output import book, plain
from course.output.plain import Source
from tests.cases import in_one_test
from widgets.kit.widget import all_widgets

PAGES = [page for _, pages in plain.sections() for page in pages]
FENCE = re.compile(r"^( *|(?:> ?)*)```.*?^\1```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def texts(site) -> dict[str, str]:
    return {page.folder: (site / page.file).read_text("utf-8") for page in PAGES}


def prose(text: str) -> str:
    """The text without its programs."""
    return FENCE.sub("", text)


def test_every_number_of_a_page_is_in_its_markdown(site, texts):
    for folder in ("01-why-distributed", "05-fsdp-and-zero", "about"):
        article, _ = book.article_of((site / folder / "index.html").read_text("utf-8"), folder)
        found = html_tree.find(html_tree.parse(article), "n")
        numbers = {html_tree.text(each) for each in found if html_tree.text(each)}
        plainly = " ".join(re.sub(r"\\(.)", r"\1", texts[folder]).split())
        assert len(numbers) > 4 and [each for each in numbers if each not in plainly] == []


def test_each_figure_is_named_by_its_question_and_leads_to_its_page(site, texts):
    for lesson in lessons.numbered():
        for slug in lesson.widgets:
            assert f"[{all_widgets()[slug].question}](../{slug}/)" in texts[lesson.name], slug
            assert (site / slug / "index.html").is_file()


def test_nothing_of_the_screen_is_left(texts):
    for folder, text in texts.items():
        assert (
            text.startswith("# ") and text.count("\n# ") == len(re.findall("^# ", text, re.MULTILINE)) - 1
        ), folder
        assert not re.search(
            r"<(?!/?(details|summary|br|su[bp])\b)[a-z]+[ >]", prose(text).replace("\\<", "")
        ), folder
        assert "data:image" not in text and "[copy as Markdown]" not in text and "headerlink" not in text
        assert "From *System ML*" in text.splitlines()[-1]
    assert sum(map(len, texts.values())) > 1e6


def test_what_answers_a_question_is_folded(texts):
    text = texts["01-why-distributed"]
    assert text.count("<details><summary>Solution</summary>") >= 4
    for answer in re.findall(r"Predict first.*?(?=\n>? ?\n> \*\*Break|$)", text, re.DOTALL)[:1]:
        assert "<details><summary>The answer</summary>" in answer


def test_every_symptom_is_in_its_page_and_in_the_book(site, texts):
    """Each is an article inside the page's."""
    html = (site / "symptoms" / "index.html").read_text("utf-8")
    ids = re.findall(r'<h3 class="symptom-see" id="([\w-]+)"', html)
    assert len(ids) > 40 and texts["symptoms"].count("**How to tell.**") == len(ids)
    printed = (site / "book" / "index.html").read_text("utf-8")
    assert [each for each in ids if f'id="symptoms--{each}"' not in printed] == []


@in_one_test("home, href, whole", [
    ("", "../glossary/#hbm", "../glossary/#hbm"),
    ("https://a.org/c/", "../glossary/#hbm", "https://a.org/c/glossary/#hbm"),
    ("https://a.org/c/", "#three-cuts", "https://a.org/c/05-x/#three-cuts"),
    ("https://a.org/c/", "https://b.org/", "https://b.org/"),
])  # fmt: skip
def test_links_are_whole_where_the_course_has_an_address(monkeypatch, home, href, whole):
    monkeypatch.setattr(settings, "public_home", lambda: home)
    page = plain.written(
        f'<article><h1>T</h1><p><a href="{href}">w</a></p></article>', Source("05-x", "T", "")
    )
    assert f"[w]({whole})" in page and (f"{home}05-x/" if home else "(CC BY 4.0)") in page.splitlines()[-1]
