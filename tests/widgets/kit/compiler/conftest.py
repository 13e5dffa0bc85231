"""The compiler's tests need neither a browser nor a built site: node runs what it writes."""

import pytest

from tests import node


@pytest.fixture(scope="module")
def script():
    return node.page()
