"""Validation of arguments: every bad input becomes a ValueError that names the argument, its value and what
is allowed.

``trusted()`` switches the checks off for code that has already checked its inputs: the layout search, which
evaluates millions of points of its own making, and the widget compiler, whose symbolic values cannot be
compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from contextvars import ContextVar
from typing import Any

import numpy as np

from engine.base.types import Real, Truth

LARGEST = 1e100  # the product of three such numbers is still a number

_TRUSTED: ContextVar[bool] = ContextVar("engine_check_trusted", default=False)


class trusted:
    """Skip validation inside the block, for callers that have checked their inputs themselves."""

    def __enter__(self) -> None:
        self._before = _TRUSTED.set(True)

    def __exit__(self, *failure: Any) -> None:
        _TRUSTED.reset(self._before)


# Whether the checks are off, so that a function called often can skip several at once. A bare reference
# rather than a function, because one step calls it some thirty times.
is_trusted = _TRUSTED.get


def _numbers(name: str, value: Real) -> np.ndarray:
    """The value as a float array; ValueError for text, None, NaN, infinities, and what is larger than any
    quantity."""
    try:
        if isinstance(value, str):  # of which float() would read the digits
            raise TypeError
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    if not (np.abs(array) < LARGEST).all():
        raise ValueError(f"{name} must be less than {LARGEST:g}, got {value!r}")
    return array


def _require(ok: Truth, name: str, value: Real, allowed: str) -> None:
    if not np.all(ok):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


def positive(**values: Real) -> None:
    """Each named value is a finite number above zero."""
    if not _TRUSTED.get():
        for name, value in values.items():
            _require(_numbers(name, value) > 0, name, value, "greater than 0")


def non_negative(**values: Real) -> None:
    """Each named value is a finite number of at least zero."""
    if not _TRUSTED.get():
        for name, value in values.items():
            _require(_numbers(name, value) >= 0, name, value, "at least 0")


def whole(at_least: int = 1, **values: Real) -> None:
    """Each named value is a whole number of at least ``at_least`` (whole floats such as 8.0 are accepted)."""
    if not _TRUSTED.get():
        for name, value in values.items():
            array = _numbers(name, value)
            fits = (array >= at_least) & (array == np.floor(array))
            _require(fits, name, value, f"a whole number of at least {at_least}")


def between(low: float, high: float, **values: Real) -> None:
    """Each named value is a finite number in [low, high]."""
    if not _TRUSTED.get():
        for name, value in values.items():
            array = _numbers(name, value)
            _require((array >= low) & (array <= high), name, value, f"between {low:g} and {high:g}")


def share(**values: Real) -> None:
    """Each named value is a fraction above 0 and at most 1."""
    if not _TRUSTED.get():
        for name, value in values.items():
            array = _numbers(name, value)
            _require((array > 0) & (array <= 1), name, value, "above 0 and at most 1")


def ordered(**values: Real) -> None:
    """Each named value is at most the next one."""
    if not _TRUSTED.get():
        arrays = [(name, value, _numbers(name, value)) for name, value in values.items()]
        for (name, value, low), (next_name, next_value, high) in itertools.pairwise(arrays):
            _require(low <= high, name, value, f"at most {next_name} ({next_value!r})")


def one_of(allowed: Collection[Any], **values: Any) -> None:
    """Each named value is one of ``allowed``."""
    if not _TRUSTED.get():
        for name, value in values.items():
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}")
