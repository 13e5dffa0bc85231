"""What leads a reader through a figure: names that are there, sentences that can be filled in."""

import pytest

from tests.cases import in_one_test
from tests.said import lacks
from widgets.kit import guide
from widgets.kit.controls import BadValue, Number
from widgets.kit.guide import Light, Step
from widgets.kit.widget import Widget, all_widgets, part, readout


class Toy(Widget):
    size = Number("Size", 2, 1, 9, whole=True)

    @part("size")
    def bars(self):
        return {"top": self.size}

    @readout("Twice")
    def twice(self):
        return f"{2 * self.size:g}"

    def half(self):
        return f"{self.size / 2:g}"

    def ready(self):
        return True

    def summary(self):
        return "A toy."


def toy(**more) -> type[Widget]:
    return type("Toy", (Toy,), {"__module__": "widgets.toy", **more})


def tour(*words: str, **state) -> type[Widget]:
    return toy(tour=tuple(Step(each, state) for each in words))


def test_a_sentence_says_a_readout_a_control_or_a_text_in_its_state():
    told = guide.tour(tour("{twice} of {size}, {half}.", "b.", "c.", size=3))[0]
    assert told == ("6 of 3, 1.5.", {"size": "3"}, "")


@in_one_test(
    "cls, words",
    [
        (tour("a.", "b."), ("tour", 3, 6, 2)),
        (tour("{nothing}.", "b.", "c."), ("{nothing}", "readout", "control", "text")),
        (tour("{ready}.", "b.", "c."), ("{ready}", "readout", "control", "text")),
        (tour("a.", "b.", "c.", length=3), ("toy", "'length'", "size")),
        (tour("a.", "b.", "c.", size=30), ("size", "whole number", 1, 9)),
        (toy(tour=(Step("a.", {}, "rods"),) * 3), ("toy", "'rods'", "bars")),
    ],
)
def test_a_tour_that_cannot_be_told_is_refused(cls, words):
    with pytest.raises(BadValue) as refused:
        guide.tour(cls)
    assert not lacks(str(refused.value), *words)


def test_parts_are_lights_and_a_widget_names_more():
    cls = toy(lights={"all": Light("everything", ("bars", "rims"))})
    assert guide.require_light(cls, "bars") == ("bars", ("bars",))
    assert guide.require_light(cls, "all").words == "everything"
    guide.require_marks(cls, {"bars", "rims"})
    with pytest.raises(BadValue, match=r"'all'.*'rims'"):
        guide.require_marks(cls, {"bars"})


@in_one_test("slug", [slug for slug, cls in all_widgets().items() if cls.lights])
def test_what_a_light_is_called_can_stand_behind_lights(slug):
    for light in all_widgets()[slug].lights.values():
        assert light.words[0].islower() and not light.words.endswith(".") and light.marks
