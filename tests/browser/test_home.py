"""The home page: a drawing in the first screen that moves with one slider, and the lessons as tiles below it."""

import pytest
from PIL import Image
from playwright.sync_api import expect

from course import lessons
from tests.browser.hands import Hand

SLUG = "training_step"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SIZES = {"a desk": {}, "a phone": PHONE}


@pytest.mark.parametrize("size", SIZES)
def test_the_drawing_its_sentence_and_its_slider_are_in_the_first_screen(visit, static, size):
    """Without the card's clutter, and not covered on a first visit."""
    page = visit(predictions=True, **SIZES[size]).go(static)
    hand = Hand(page, SLUG)
    for part in ("[data-summary]", "[data-plot]", "input[type=range]"):
        box = hand.figure.locator(part).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"], part
    assert box["width"] > page.viewport_size["width"] / 3, "the slider is too short to be dragged"
    for part in (".widget-head", ".widget-presets", ".widget-readouts", "[data-control=gpu]", "figcaption"):
        expect(hand.figure.locator(part)).to_be_hidden()
    assert hand.figure.get_attribute("data-covered") is None


def test_the_sentence_follows_the_slider_by_keyboard(visit, static):
    hand = Hand(visit().go(static), SLUG)
    slider, said = hand.figure.locator("input[type=range]").first, hand.figure.locator("[data-summary]")
    expect(said).to_contain_text("Compute binds: on 8 GPUs")
    slider.press("Home")
    expect(said).to_contain_text("Memory binds: on 1 GPU ")
    slider.press("End")
    expect(said).to_contain_text("The network binds: on 16,384 GPUs")
    expect(slider).to_have_attribute("aria-valuetext", "16,384")


def test_it_plays_where_motion_is_welcome_and_stops_at_a_touch(visit, static):
    page = visit().go(static)
    hand = Hand(page, SLUG)
    button = hand.figure.locator(".opening-play")
    button.click()
    expect(hand.figure.locator("[data-summary]")).to_contain_text("on 2 GPUs")
    expect(button).to_have_attribute("aria-label", "Pause")
    hand.figure.locator("input[type=range]").first.press("Home")
    expect(button).to_have_attribute("data-play", "play")


def test_it_offers_no_motion_to_those_who_want_none(visit, static):
    hand = Hand(visit(reduced_motion="reduce").go(static), SLUG)
    expect(hand.figure.locator(".opening-play")).to_have_count(0)


@pytest.mark.parametrize(("scheme", "hidden"), [("light", "dark"), ("dark", "light")])
def test_each_lesson_has_a_tile_with_its_picture_in_the_page_s_colours(visit, static, scheme, hidden):
    page = visit(color_scheme=scheme).go(static)
    tiles = page.locator(".map a[data-lesson]")
    expect(tiles).to_have_count(len(lessons.numbered()))
    for lesson, tile in zip(lessons.numbered(), tiles.all()):
        tile.scroll_into_view_if_needed()
        picture = tile.locator(f"img.{scheme}")
        expect(picture).to_be_visible()
        page.wait_for_function(
            "image => image.complete && image.naturalWidth === 320", arg=picture.element_handle()
        )
        expect(tile.locator(f"img.{hidden}")).to_be_hidden()
        called = {other.front["lesson"]: other.number for other in lessons.numbered()}
        needs = ", ".join(called[number] for number in lesson.front["needs"])
        expect(tile).to_contain_text(f"needs {needs}" if needs else " min")


def test_a_tile_points_at_what_it_needs(visit, static):
    page = visit().go(static)
    page.locator("a[data-lesson='12']").hover()
    marked = page.locator(".map a.needed").evaluate_all("tiles => tiles.map(tile => tile.dataset.lesson)")
    assert marked == ["3", "11"]
    page.locator("h1").hover()
    expect(page.locator(".map a.needed")).to_have_count(0)


def test_tiles_are_light(site):
    """All of one theme together are under a seventh of a first visit's budget."""
    for theme in ("light", "dark"):
        files = [site / "assets" / "tiles" / f"{lesson.name}-{theme}.webp" for lesson in lessons.numbered()]
        assert sum(file.stat().st_size for file in files) < 128_000
        for file in files:
            with Image.open(file) as picture:
                assert picture.size == (320, 200) and picture.format == "WEBP"
