"""Chooses the figures and lessons that represent all others in browser tests.

What the kit does is the same code for every figure, and need not be seen in a browser fifty times over: a few
figures stand for the rest, chosen so that among them there is every kind of control and every way in which
one figure differs from another. A test that asks only this is marked ``of_the_kit``. What a figure says or
computes is always tested for every figure. If such a test has both ways of serving the course as a parameter,
only the static site is used: the page is the same, and other tests check that Python sends it the same data.
``of_the_kit(every=2)`` also tests half of the other lessons.

``make test EVERY=1`` runs every test for every figure; the workflow does so each week.
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
    """The properties in which a figure differs from others, as far as the kit knows."""
    found: set[tuple] = {(name, bool(getattr(cls, name))) for name in OF_A_FIGURE}
    found |= {(kind, bool(cls.methods(kind))) for kind in METHODS}
    found.add(("presets", bool(cls.presets)))
    for control in cls.controls().values():
        more = tuple((name, bool(getattr(control, name, False))) for name in OF_A_NUMBER)
        found.add((control.kind, more))
    return found


@cache
def figures() -> list[str]:
    """The representative figures, found by a greedy search: it repeatedly adds the figure with the most new
    traits."""
    left = {slug: traits(cls) for slug, cls in sorted(all_widgets().items())}
    missing, chosen = set().union(*left.values()), []
    while missing:
        chosen.append(max(left, key=lambda slug: len(left[slug] & missing)))
        missing -= left[chosen[-1]]
    return sorted(chosen)


def some() -> list[str]:
    """Every second representative, for tests that need only a few kinds of controls: on a phone, in Panel, in
    a notebook."""
    return sorted(all_widgets()) if ALL_OF_THEM else figures()[::2]


@cache
def addresses() -> list[str]:
    """The home page and the lessons that contain the representative figures."""
    left, chosen = set(figures()), [""]
    while left := left - {slug for address in chosen for slug in lessons()[address]}:
        chosen.append(max(lessons(), key=lambda address: len(left & set(lessons()[address]))))
    return sorted(chosen)


@cache
def standing() -> set[str]:
    """The representative figures and pages, by the names that tests/settled.py uses."""
    return {*figures(), *(address.removesuffix("/") or "index" for address in addresses())}


def is_asked(address: str, every: int | None = None) -> bool:
    """Whether a test of the lessons' common styles includes a page: yes for representative lessons, for pages
    that are not numbered lessons, and for one in ``every`` of the other lessons."""
    rest = [each for each in lessons() if each[:1].isdigit() and each not in addresses()]
    return ALL_OF_THEM or address not in rest or (every is not None and address in rest[::every])


def stands(item) -> bool:
    """Whether a test marked ``of_the_kit`` is for a representative figure or page."""
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
