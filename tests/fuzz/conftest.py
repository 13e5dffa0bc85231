"""Makes the fixtures of the browser tests, visits and servers, available to the fuzz tests."""

from tests.browser.conftest import left_behind, served, visit  # noqa: F401
