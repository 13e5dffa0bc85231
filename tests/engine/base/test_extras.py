"""What a part needs is said together with how to install it."""

import pytest

from engine.base import extras


def test_what_is_there_is_not_asked_for(monkeypatch):
    monkeypatch.setitem(extras.NEEDED, "widgets", ("json", "re"))
    assert extras.need("widgets") is None


def test_what_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(extras.NEEDED, "widgets", ("json", "no_such_library"))
    with pytest.raises(
        ImportError, match=r'needs no_such_library: pip install "system-ml-course\[widgets\]"$'
    ) as said:
        extras.need("widgets")
    assert said.value.name == "no_such_library"
