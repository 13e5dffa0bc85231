"""The states on which tests try widgets: the stored ones and those that a search finds."""

import pytest

from tests import states
from tests.representatives import ALL_OF_THEM
from widgets.kit.widget import all_widgets


@pytest.mark.parametrize("slug", states.FOUND)
def test_the_state_that_is_kept_is_the_one_that_a_search_finds(slug):
    """Runs with EVERY=1. If a stored state no longer meets the target, each run has to search for one."""
    cls = all_widgets()[slug]
    assert states.at_the_target(cls) == states.default(cls) | states.FOUND[slug]
    if ALL_OF_THEM:
        assert states.at_the_target(cls, searched=True) == states.at_the_target(cls)
