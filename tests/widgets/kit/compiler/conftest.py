"""The compiler's tests need neither a browser nor a built site: node runs what it writes."""

import pytest

from tests.node import Script


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    return Script(tmp_path_factory.mktemp("node"))
