"""Runs many short cases in one pytest test, which names those that fail. For such cases pytest's own overhead
for a test would be longer than the case.

``@in_one_test`` is used like ``@pytest.mark.parametrize``; two of them give every pair. It is for cases that
need no fixtures of their own: fixtures such as ``tmp_path`` and ``monkeypatch`` are shared by all cases of a
test.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence

import pytest

Ids = Callable[[object], object] | Sequence[str] | None


def in_one_test(names: str, values: Iterable, ids: Ids = None) -> Callable:
    """Run the test once for each of the values, and go on to the last one even if some fail."""
    arguments = [name.strip() for name in names.split(",")]
    cases = [dict(zip(arguments, case if len(arguments) > 1 else [case], strict=True)) for case in values]
    assert cases, "no case, no test"
    assert not any(hasattr(value, "marks") for case in cases for value in case.values()), "pytest.param"

    def decorate(test: Callable) -> Callable:
        asked = inspect.signature(test).parameters
        assert set(arguments) <= set(asked), f"{test.__name__} has no {set(arguments) - set(asked)}"

        @functools.wraps(test)
        def of_each(**given):
            failed = []
            for at, case in enumerate(cases):
                try:
                    test(**case, **given)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    failed.append((_name(at, case, ids), error))
            if failed:
                told = "\n".join(f"[{name}] {type(error).__name__}: {error}" for name, error in failed)
                raise AssertionError(f"{len(failed)} of {len(cases)} cases:\n{told}") from failed[0][1]

        left = [asked[name] for name in asked if name not in arguments]
        of_each.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
        return of_each

    return decorate


def _name(at: int, case: dict, ids: Ids) -> str:
    if ids is not None and not callable(ids):
        return str(ids[at])
    named = (ids(value) if ids else None for value in case.values())
    return "-".join(
        str(value if name is None else name)[:60] for name, value in zip(named, case.values(), strict=True)
    )
