"""Validation of arguments: every bad input becomes a ValueError that names argument, value and what is allowed.

``trusted()`` switches the checks off for code whose inputs were already checked at its own border: the layout search,
which evaluates millions of points made by itself, and the widget compiler, whose symbolic values cannot be compared.
"""

from __future__ import annotations

from contextvars import ContextVar

import numpy as np

_TRUSTED: ContextVar[bool] = ContextVar("engine_check_trusted", default=False)


class trusted:
    """Skip validation inside the block; for callers that have validated their inputs themselves."""

    def __enter__(self):
        self._before = _TRUSTED.set(True)

    def __exit__(self, *failure):
        _TRUSTED.reset(self._before)


# Whether the checks are off: lets a function that is called often skip several of them at once. Not a function of its
# own, since a step asks some thirty times.
is_trusted = _TRUSTED.get


def _numbers(name: str, value):
    """The value as a float array, or a ValueError: text, None, NaN and infinities are never numbers here."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    return array


def _require(ok, name: str, value, allowed: str) -> None:
    if not np.all(ok):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


def positive(**values) -> None:
    """Each named value is a finite number above zero."""
    if not _TRUSTED.get():
        for name, value in values.items():
            _require(_numbers(name, value) > 0, name, value, "greater than 0")


def non_negative(**values) -> None:
    """Each named value is a finite number of at least zero."""
    if not _TRUSTED.get():
        for name, value in values.items():
            _require(_numbers(name, value) >= 0, name, value, "at least 0")


def whole(at_least: int = 1, **values) -> None:
    """Each named value is a whole number of at least ``at_least`` (whole floats such as 8.0 are accepted)."""
    if not _TRUSTED.get():
        for name, value in values.items():
            array = _numbers(name, value)
            fits = (array >= at_least) & (array == np.floor(array))
            _require(fits, name, value, f"a whole number of at least {at_least}")


def between(low: float, high: float, **values) -> None:
    """Each named value is a finite number in [low, high]."""
    if not _TRUSTED.get():
        for name, value in values.items():
            array = _numbers(name, value)
            _require((array >= low) & (array <= high), name, value, f"between {low:g} and {high:g}")


def share(**values) -> None:
    """Each named value is a fraction above 0 and at most 1."""
    if not _TRUSTED.get():
        for name, value in values.items():
            array = _numbers(name, value)
            _require((array > 0) & (array <= 1), name, value, "above 0 and at most 1")


def ordered(**values) -> None:
    """Each named value is at most the next one."""
    if not _TRUSTED.get():
        arrays = [(name, value, _numbers(name, value)) for name, value in values.items()]
        for (name, value, low), (next_name, next_value, high) in zip(arrays, arrays[1:]):
            _require(low <= high, name, value, f"at most {next_name} ({next_value!r})")


def one_of(allowed, **values) -> None:
    """Each named value is one of ``allowed``."""
    if not _TRUSTED.get():
        for name, value in values.items():
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}")
