"""The same visits and servers as the browser tests have."""

from tests.browser.conftest import left_behind, served, visit  # noqa: F401
