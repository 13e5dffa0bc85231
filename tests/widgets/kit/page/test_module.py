"""The module of a widget that the site gives out."""

from bokeh.settings import settings

from widgets.kit.page import module
from widgets.kit.widget import all_widgets


def made_anew() -> str:
    module._picture.cache_clear()
    return module.made.__wrapped__(all_widgets()["memory_stack"])[0].decode()


def test_it_is_the_same_whatever_ids_bokeh_gives():
    """The numbers of a process go on; in a notebook Panel asks Bokeh for UUIDs."""
    first = made_anew()
    assert made_anew() == first and "memory_stack-1" in first
    settings.simple_ids.set_value(False)
    try:
        assert made_anew() == first
    finally:
        settings.simple_ids.unset_value()
        module._picture.cache_clear()
