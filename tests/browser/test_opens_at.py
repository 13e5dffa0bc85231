"""A link to a figure's state opens at the figure, on every page that has one."""

import pytest

from course import lessons, strict_yaml
from tests import states
from widgets.kit.widget import all_widgets

SLUGS = [
    (page.name, strict_yaml.mapping(fence.source)["name"])
    for page in lessons.pages()
    for fence in page.fences
    if fence.kind == "widget"
]
TOP = "slug => document.getElementById(`w-${slug}`).getBoundingClientRect().top"


def changed(slug: str) -> str:
    """One control of a figure, as an address has it, at another value than its first."""
    name, control = next(iter(all_widgets()[slug].controls().items()))
    other = next(
        value for value in (*getattr(control, "keys", ()), *getattr(control, "grid", ()), "on", "off")
    )
    written = other if isinstance(other, str) else control.write(other)
    return f"{slug}.{name}={written}"


@pytest.mark.parametrize(("page", "slug"), states.daily(SLUGS, 6))
def test_a_link_to_a_state_opens_at_the_figure(glance, static, page, slug):
    where = "" if page == "index" else f"{page}/"
    opened = glance().go(f"{static}{where}?{changed(slug)}")
    opened.wait_for_function(
        "slug => document.getElementById(`w-${slug}`).dataset.state !== 'loading'", arg=slug
    )
    top, height = opened.evaluate(TOP, slug), opened.evaluate("innerHeight")
    assert -1 <= top < height / 2 + 1, f"{slug} stands {top:.0f} px below the top of the window"


def test_an_address_with_a_place_opens_there_and_one_without_a_state_at_the_top(visit, static):
    page, slug = "13-pytorch-internals", "dispatcher_trace"
    opened = visit().go(f"{static}{page}/?{changed(slug)}#takeaway")
    place = opened.evaluate("document.getElementById('takeaway').getBoundingClientRect().top")
    assert 0 <= place < opened.evaluate("innerHeight")
    assert visit().go(f"{static}{page}/").evaluate("scrollY") == 0
