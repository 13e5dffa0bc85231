"""Which figures, and which lessons, stand for all.

What the kit does is the same code for every figure, and need not be seen in a browser fifty times over: a few
figures stand for the rest, chosen so that among them there is every kind of control and every way in which
one figure differs from another. A test that asks only this is marked ``of_the_kit``. Whatever a figure says
or computes is asked of each of them, always. Where such a test takes both ways of serving the course, the
static site stands for both: the page is the same, and that Python tells it the same is asked elsewhere.
``of_the_kit(every=2)`` asks the half of the lessons that others stand for, too.

``make test EVERY=1`` asks every figure everything; the workflow does so each week.
"""

from __future__ import annotations

from functools import cache

from tests.browser.hands import lessons
from tests.states import ALL_OF_THEM
from widgets.kit.widget import Widget, all_widgets

OF_A_NUMBER = ("log", "whole", "only", "slider", "more")
OF_A_FIGURE = ("sections", "paper", "in_page", "lights", "tour")
METHODS = ("table_of", "document_label", "hint_of", "action_label", "measured_by")


def traits(cls: type[Widget]) -> set[tuple]:
    """In what a figure differs from others, as far as the kit knows."""
    found: set[tuple] = {(name, bool(getattr(cls, name))) for name in OF_A_FIGURE}
    found |= {(kind, bool(cls.methods(kind))) for kind in METHODS}
    found.add(("presets", bool(cls.presets)))
    for control in cls.controls().values():
        more = tuple((name, bool(getattr(control, name, False))) for name in OF_A_NUMBER)
        found.add((control.kind, more))
    return found


@cache
def figures() -> list[str]:
    """The fewest that a simple search finds: again and again the figure that adds most to those chosen."""
    left = {slug: traits(cls) for slug, cls in sorted(all_widgets().items())}
    missing, chosen = set().union(*left.values()), []
    while missing:
        chosen.append(max(left, key=lambda slug: len(left[slug] & missing)))
        missing -= left[chosen[-1]]
    return sorted(chosen)


def some() -> list[str]:
    """Every other of them, for what a few kinds of controls show: a phone's, Panel's, a notebook's."""
    return sorted(all_widgets()) if ALL_OF_THEM else figures()[::2]


@cache
def addresses() -> list[str]:
    """The home page and the lessons on which those figures are."""
    left, chosen = set(figures()), [""]
    while left := left - {slug for address in chosen for slug in lessons()[address]}:
        chosen.append(max(lessons(), key=lambda address: len(left & set(lessons()[address]))))
    return sorted(chosen)


@cache
def standing() -> set[str]:
    """The figures and pages that stand for the rest, as tests/settled.py names them."""
    return {*figures(), *(address.removesuffix("/") or "index" for address in addresses())}


def is_asked(address: str, every: int | None = None) -> bool:
    """Whether a page is asked what the numbered lessons have from the same styles: those that stand for all,
    every page that is none of them, and of the rest ``every`` so many."""
    rest = [each for each in lessons() if each[:1].isdigit() and each not in addresses()]
    return ALL_OF_THEM or address not in rest or (every is not None and address in rest[::every])


def stands(item) -> bool:
    """Whether a test marked ``of_the_kit`` is one of those that stand for the rest."""
    asked = item.callspec.params
    if ALL_OF_THEM:
        return True
    if "opened" in asked:
        return is_asked(asked["opened"], **item.get_closest_marker("of_the_kit").kwargs)
    if "origin" in asked:
        return asked["origin"] == "static"
    if "address" in asked:
        return asked["address"] in addresses()
    return asked.get("slug", asked.get("own_page")) in figures()
