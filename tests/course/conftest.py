"""A fixture that runs the page's own scripts in node, without a browser or a built site."""

import pytest

from tests import node


@pytest.fixture(scope="module")
def script():
    return node.page()
