"""The page's own scripts, run by node: neither a browser nor a built site is needed."""

import pytest

from tests.node import Script


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    return Script(tmp_path_factory.mktemp("node"))
