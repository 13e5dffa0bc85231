"""The page's own modules, run by node: neither a browser nor a built site is needed."""

import pytest

from tests import node


@pytest.fixture(scope="module")
def script():
    return node.page()
