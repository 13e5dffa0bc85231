"""What a mark says under the pointer: on its lane, and below on the memory's own axis."""

from widgets.fsdp_timeline import FsdpTimeline

STEPS = 36          # down the picture: less than half a lane each


def test_blocks_and_memory_speak_under_the_pointer(visit, origin):
    page = visit().go(f"{origin}fsdp_timeline/")
    box = page.locator("[data-plot]").bounding_box()
    said = set()
    for across in (0.01, 0.21, 0.45):
        for down in range(STEPS):
            page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down / STEPS)
            note = page.locator(".widget-hint")
            said |= {note.inner_text()} if note.is_visible() else set()
    hints = FsdpTimeline().hints()
    for part in ("tasks", "waits", "memory"):
        assert said & set(hints[part]), f"{part} says nothing"
    assert said <= {text for texts in hints.values() for text in texts}
