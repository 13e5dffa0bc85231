"""Matches that must exist by construction: if one is missing, the build stops and says which."""

from __future__ import annotations

import re


def there(match: re.Match[str] | None, what: str) -> re.Match[str]:
    """The match; if it is None, a ValueError that says what was looked for."""
    if match is None:
        raise ValueError(f"{what} is missing")
    return match
