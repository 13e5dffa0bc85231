"""Whatever number the course prints can be typed back, and means what it meant."""

import re

import pytest

from course import lessons, numbers
from engine.base import typed, units
from tests.lessons.reading import Lesson
from widgets.kit.widget import all_widgets

NAMES = [f"{lesson.name}.md" for lesson in lessons.numbered()]
NO_VALUE = re.compile("under|about|–|inf|nan")  # a limit, or no number at all
UNIT = "|".join(
    sorted((re.escape(unit) for unit in units.UNITS if len(unit) > 1 or unit in "%×"), key=len)[::-1]
)
QUANTITY = re.compile(rf"(?<![\w.,$−])(?P<number>−?\d[\d,]*(?:\.\d+)?)[ \u00a0]?(?P<unit>{UNIT})(?![\w/])")


@pytest.mark.parametrize("name", NAMES)
def test_every_computed_number_of_a_page_can_be_typed(name):
    """As it stands on the page, with no-break spaces, in its own unit, and with its unit left out."""
    lesson, wrong = Lesson(name), []
    with lessons.on(lesson.source):
        for source in dict.fromkeys(lesson.computed):
            form = numbers.form(source)
            value, shown = numbers.computed(form["expression"]), numbers.evaluate(source)
            if isinstance(value, str) or NO_VALUE.search(shown):
                continue
            unit, digits = form["unit"] or "count", int(form["digits"] or 3)
            reading = typed.parse(shown.replace(" ", "\u00a0"), unit)
            if reading.value is None or numbers.show(reading.value, form["unit"], digits) != shown:
                wrong.append((source, shown, reading))
                continue
            near = max(reading.half, 0.5 * 10 ** (1 - digits) * abs(value))
            if abs(reading.value - value) > near * (1 + 1e-9):
                wrong.append((source, value, reading))
    assert wrong == []


def test_quantities_are_found_in_words():
    words = "2 of 8 GPUs hold 1,120 GB in 12 µs, 2.25× as much, at −3 % of $5M a day."
    assert [found[0] for found in QUANTITY.finditer(words)] == ["1,120 GB", "12 µs", "2.25×", "−3 %"]


@pytest.mark.parametrize("slug", all_widgets())
def test_every_quantity_of_a_figure_s_words_can_be_typed(slug):
    """In its readouts and its summary, at rest and in each preset."""
    cls = all_widgets()[slug]
    for preset in (None, *cls.presets):
        widget = cls()
        if preset:
            widget.set_state(cls.presets[preset])
        shown = widget.shown()
        said = [readout["text"] for readout in shown["readouts"].values()]
        for found in QUANTITY.finditer(" · ".join([*said, shown["summary"]])):
            reading = typed.parse(found[0], found["unit"])
            alone = typed.parse(found["number"], found["unit"])
            assert reading.value is not None and reading.value == alone.value, (slug, found[0])
            scale = units.UNITS[found["unit"]][0]
            plain = float(found["number"].replace(",", "").replace("−", "-"))
            assert reading.value == pytest.approx(plain * scale, rel=1e-12), (slug, found[0])
