"""What a mark says under the pointer: on its lane, and below on the memory's own axis."""

from markupsafe import escape

from engine.base import units
from widgets.kit.widget import all_widgets
from widgets.training.fsdp_timeline import FsdpTimeline

STEPS = 36  # down the picture: less than half a lane each


def test_blocks_and_memory_speak_under_the_pointer(visit, origin):
    page = visit().go(f"{origin}fsdp_timeline/")
    box = page.locator("[data-plot]").bounding_box()
    said = set()
    for across in (0.01, 0.21, 0.45):
        for down in range(STEPS):
            page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down / STEPS)
            note = page.locator(".widget-hint")
            said |= {note.inner_text().replace("\u00a0", " ")} if note.is_visible() else set()
    hints = FsdpTimeline().hints()
    for part in ("tasks", "waits", "memory"):
        assert said & set(hints[part]), f"{part} says nothing"
    assert said <= {text for texts in hints.values() for text in texts}


# -- what a readout means ------------------------------------------------------------------------------------
def test_a_readout_s_label_says_what_it_means_when_it_is_touched(glance, static):
    """Within the figure's width, over what stands there, and without moving it."""
    page = glance(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).go(
        f"{static}allocator_replay/"
    )
    page.locator(".widget-rest > summary").tap()
    told = page.locator("[data-readout=reserved]").locator("xpath=..").locator(".readout-help")
    read = "label => [getComputedStyle(label, '::after').content, label.closest('dl').offsetHeight]"
    before, height = told.evaluate(read)
    assert before == "none"
    told.tap()
    after, still = told.evaluate(read)
    assert "memory_reserved()" in after and still == height
    assert told.get_attribute("aria-label").startswith("Reserved: ")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_help_of_a_readout_is_in_its_figure(site):
    for slug, cls in all_widgets().items():
        page = (site / slug / "index.html").read_text(encoding="utf-8")
        helps = [method.readout_help for method in cls.methods("readout_help").values()]
        assert [
            said for said in helps if said and f'data-help="{escape(units.unbroken(said))}"' not in page
        ] == []
