"""What stands under a figure: three lines at the most; the rest of its assumptions is folded, and nothing is
lost."""

import re

import pytest

from course import widget_html
from widgets.kit.widget import all_widgets


def test_as_many_sentences_stand_as_are_read_at_a_glance():
    short = "Wires are as sold. " + "One more sentence of fifty characters or so is here. " * 6
    seen, folded = widget_html.caption(short.strip())
    assert seen.startswith("Wires are as sold. One more") and len(seen) <= widget_html.SHORT
    assert f"{seen} {folded}" == short.strip() and folded.startswith("One more")
    assert widget_html.caption("Of 2.5 GB/s. It is so.") == ("Of 2.5 GB/s. It is so.", "")


@pytest.mark.parametrize("slug", sorted(all_widgets()))
def test_the_page_has_all_of_a_figure_s_assumptions(slug):
    cls = all_widgets()[slug]
    seen, folded = widget_html.caption(cls.assumptions)
    assert f"{seen} {folded}".split() == cls.assumptions.split()
    assert len(seen) <= 2 * widget_html.SHORT, "the first sentence alone is longer than a glance"
    html = str(widget_html.figure(cls(), slug))
    [caption] = re.findall(r'<figcaption class="widget-caption">(.*?)</figcaption>', html, re.DOTALL)
    assert caption and ('class="widget-left-out"' in html) == bool(folded)
