"""Checks that a text contains what it must say, however its sentences are worded."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def lacks(text: str, *parts: object) -> list[str]:
    """Those of ``parts`` that are missing in ``text``: numbers with their units, names, values.

    A part must occur as a whole: "60 %" is not in "160 %", "48 GB" not in "48 GB/s",
    "stage 1" not in "stage 16".
    """
    return [str(part) for part in parts if not re.search(_whole(str(part)), text)]


@contextmanager
def refused(*parts: object) -> Iterator[None]:
    """A block that must raise a ValueError whose message names these: the argument, the value, what is
    allowed."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  its words are asked below
        yield
    assert not lacks(str(error.value), *parts), error.value


def _whole(part: str) -> str:
    return rf"(?<![\w−])(?<!\d[.,]){re.escape(part)}(?!\w|/\w|[.,]\d)"
