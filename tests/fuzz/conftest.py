"""The same visits and servers as the browser tests have."""

from tests.browser.conftest import served, visit  # noqa: F401
