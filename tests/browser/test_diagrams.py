"""Static pictures in a browser: whole and legible on a wide window and on a phone, in both themes, on paper, and with
JavaScript off."""

import itertools

import pytest

from course import lessons
from course.drawing.text import HEIGHT
from tests.states import ALL_OF_THEM

PAGES = [
    page.address
    for page in lessons.numbered()
    if {"diagram", "trace"} & {fence.kind for fence in page.fences}
]
SEEN = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}
SMALLEST = 12.9  # of a text, in CSS pixels: 13, and the rounding of a picture's width
# Every picture that is shown: its form and box, and the words, box and size of its texts.
PICTURES = """() => [...document.querySelectorAll("figure.diagram svg")]
  .filter((svg) => svg.getBoundingClientRect().width > 0)
  .map((svg) => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const box = (one) => { const b = one.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
    const texts = [...svg.querySelectorAll("text")].map((text) => {
      const size = scale * parseFloat(getComputedStyle(text).fontSize);
      const [left, top, right, bottom] = box(text);
      const margin = (bottom - top - HEIGHT * size) / 2;  // a font's lines are higher than its letters
      return { words: text.textContent, box: [left, top + margin, right, bottom - margin], size };
    });
    return { form: svg.getAttribute("class"), id: svg.closest("figure").id, box: box(svg), texts };
  })""".replace("HEIGHT", str(HEIGHT))
INSIDE = 1.0  # a glyph may reach so far out of its line's box


def meet(one: list[float], other: list[float]) -> bool:
    """Whether two texts share more than the margins of their lines."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across > INSIDE and down > 3.0


def require_legible(picture: dict) -> None:
    left, top, right, bottom = picture["box"]
    for text in picture["texts"]:
        assert text["size"] >= SMALLEST, (picture["id"], text)
        assert left - INSIDE <= text["box"][0] and text["box"][2] <= right + INSIDE, (picture["id"], text)
        assert top - INSIDE <= text["box"][1] and text["box"][3] <= bottom + 3, (picture["id"], text)
    for one, other in itertools.combinations(picture["texts"], 2):
        assert not meet(one["box"], other["box"]), (picture["id"], one["words"], other["words"])


@pytest.mark.parametrize("form", SEEN)
def test_texts_of_pictures_are_whole_apart_and_large_enough(visit, static, form):
    """Without scripts: a picture needs none. Of every other lesson on a wide window and of the others on a phone,
    unless all are asked."""
    window = visit(viewport=SEEN[form], java_script_enabled=False)
    window.forgive(" csp")  # what scripts would have loaded
    for address in PAGES if ALL_OF_THEM else PAGES[list(SEEN).index(form) :: 2]:
        page = window.go(f"{static}{address}")
        shown = page.evaluate(PICTURES)
        assert len(shown) == page.locator("figure.diagram").count() > 0
        assert {picture["form"] for picture in shown} == {f"{form}-form"}
        for picture in shown:
            require_legible(picture)
            assert picture["box"][0] >= 0 and picture["box"][2] <= SEEN[form]["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= SEEN[form]["width"]


def test_a_picture_follows_the_theme_and_is_light_on_paper(visit, static):
    page = visit(color_scheme="dark").go(f"{static}07-pipeline-parallel/")
    mark = page.locator("figure.diagram svg.wide-form .m-forward").first
    ground = "getComputedStyle(document.body).getPropertyValue('--c-paper')"

    def fill():
        return mark.evaluate("mark => getComputedStyle(mark).fill")

    dark, paper = fill(), page.evaluate(ground)
    page.emulate_media(media="print")
    assert fill() != dark and page.evaluate(ground) != paper
    page.set_viewport_size(SEEN["narrow"])
    assert {picture["form"] for picture in page.evaluate(PICTURES)} == {"wide-form"}


def test_a_screen_reader_gets_a_title_a_description_and_a_list(visit, static):
    page = visit().go(f"{static}07-pipeline-parallel/")
    for figure in page.locator("figure.diagram").all():
        picture = figure.locator("svg.wide-form")
        named = picture.evaluate(
            "svg => ['aria-labelledby', 'aria-describedby'].map("
            "(key) => document.getElementById(svg.getAttribute(key)).textContent)"
        )
        assert picture.get_attribute("role") == "img" and all(named)
        assert figure.locator(".diagram-words li").count() >= 3


def test_the_first_picture_of_lesson_07_is_on_the_first_screen(visit, static):
    page = visit(viewport=SEEN["wide"]).go(f"{static}07-pipeline-parallel/")
    box = page.locator("figure.diagram svg.wide-form").first.bounding_box()
    assert box["y"] + box["height"] <= SEEN["wide"]["height"]
