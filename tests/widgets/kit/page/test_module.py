"""The module of a widget that the site gives out."""

import pytest
from bokeh.settings import settings

from widgets.kit.page import module
from widgets.kit.widget import all_widgets


@pytest.fixture
def compiled():
    """The text of a widget's module, made anew each time."""

    def made() -> str:
        module._picture.cache_clear()
        return module.made.__wrapped__(all_widgets()["memory_stack"])[0].decode()

    yield made
    module._picture.cache_clear()


@pytest.fixture
def uuids():
    """As in a notebook, where Panel asks Bokeh for them."""
    settings.simple_ids.set_value(False)
    yield
    settings.simple_ids.unset_value()


def test_it_is_the_same_whatever_ids_bokeh_gives(compiled, request):
    numbered = compiled()
    request.getfixturevalue("uuids")
    assert compiled() == numbered
    assert "memory_stack-1" in numbered


def test_it_is_the_same_when_others_were_made_before(compiled):
    first = compiled()
    assert compiled() == first
