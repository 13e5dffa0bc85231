"""The one rule by which the public functions refuse what they cannot answer.

``answers`` reads a function's annotations. An ``int`` is a whole number and a ``float`` a finite one: no
text, no truth value, no array, and none larger than anything that exists (``MOST``). ``guard`` asks the same
of the fields of a class when one is made. Whatever does not fit is a ValueError that names argument, value
and what is allowed. What a number has to be beyond that, such as positive, the formula behind the function
says.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import types
import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, ParamSpec, TypeVar

from engine.base import check

P = ParamSpec("P")
R = TypeVar("R")
LARGEST_WHOLE, LARGEST = 10**12, 1e18
MOST = {"gpus": 10**7, "ranks": 10**7, "tp": 10**6, "pp": 10**6, "dp": 10**6, "top": 100}  # of these names
LONGEST = 100  # characters of a value that is quoted
MANY = 1000  # entries of a sequence


class Allowed(NamedTuple):
    """What may stand for an argument: a test, and the words for what passes it."""

    fits: Callable[[Any], bool]
    allowed: str


def answers(function: Callable[P, R]) -> Callable[P, R]:
    """A public function that looks at its arguments before it answers."""
    names = [
        name for name, each in inspect.signature(function).parameters.items() if each.kind != each.VAR_KEYWORD
    ]

    @functools.cache
    def kinds() -> dict[str, Allowed]:  # once it is asked: the classes that it names may be defined below it
        hints = typing.get_type_hints(function)
        return {name: _kind(name, hints[name]) for name in names if name in hints}

    @functools.wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not check.is_trusted():
            _hold_all((*zip(names, args), *kwargs.items()), kinds())
        return function(*args, **kwargs)

    return asked


def guard(*classes: type) -> None:
    """Have classes look at their fields, after their own checks. It is done from outside, because the page
    translates the modules of some of them, and knows no such decorator."""
    for cls in classes:
        made_by = "__new__" if issubclass(cls, tuple) else "__init__"
        setattr(cls, made_by, _guarded(cls, getattr(cls, made_by)))


def _guarded(cls: type, make: Callable[..., Any]) -> Callable[..., Any]:
    names = list(inspect.signature(make).parameters)[1:]

    @functools.cache
    def kinds() -> dict[str, Allowed]:
        return dict(_fields(cls))

    @functools.wraps(make)
    def asked(own: Any, *args: Any, **kwargs: Any) -> Any:
        if check.is_trusted():
            return make(own, *args, **kwargs)
        given = (*zip(names, args), *kwargs.items())
        try:
            made = make(own, *args, **kwargs)
        except ValueError:  # in the class's own words, which a page says as well
            raise
        except Exception:
            _hold_all(given, kinds())
            raise
        _hold_all(given, kinds())
        return made

    return asked


def _hold_all(given: Iterable[tuple[str, Any]], known: dict[str, Allowed]) -> None:
    """ValueError, unless each of the named values that is known to be of a kind is of that kind."""
    for name, value in given:
        if name in known:
            _hold(name, value, known[name])


def _hold(name: str, value: Any, kind: Allowed) -> None:
    """ValueError, unless the value is of this kind."""
    if not kind.fits(value):
        raise ValueError(f"{name} must be {kind.allowed}, got {_quoted(value)}")


@functools.cache
def _fields(cls: type) -> list[tuple[str, Allowed]]:
    """The fields of a class of ours that hold numbers, texts and truth values, and what they may be."""
    hints = typing.get_type_hints(cls)
    names = [field.name for field in fields(cls)] if is_dataclass(cls) else list(getattr(cls, "_fields", ()))
    return [
        (name, _kind(name, hints[name]))
        for name in names
        if not inspect.isclass(hints[name]) or hints[name] in PLAIN
    ]


def _whole(name: str) -> Allowed:
    most = MOST.get(name, LARGEST_WHOLE)

    def fits(value: Any) -> bool:
        if type(value) is not int and not (_is_number(value) and value == math.floor(value)):
            return False
        return -most <= value <= most

    return Allowed(fits, f"a whole number of at most {most:,}")


def _number(name: str) -> Allowed:
    most = MOST.get(name, LARGEST)
    return Allowed(
        lambda value: _is_number(value) and -most <= value <= most, f"a number of at most {most:g}"
    )


def _is_number(value: Any) -> bool:
    """A finite number of Python's or numpy's; a truth value is none, and an array of one is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return isinstance(value, int) or math.isfinite(float(value))


PLAIN: dict[Any, Callable[[str], Allowed]] = {
    int: _whole,
    float: _number,
    bool: lambda _: Allowed(lambda value: isinstance(value, bool), "True or False"),
    str: lambda _: Allowed(lambda value: isinstance(value, str), "a text"),
    types.NoneType: lambda _: Allowed(lambda value: value is None, "None"),
}


def _kind(name: str, hint: Any) -> Allowed:
    """What an annotation lets an argument be; anything, where it says nothing that can be asked."""
    if hint in PLAIN:
        return PLAIN[hint](name)
    if isinstance(hint, (types.UnionType, typing._UnionGenericAlias)):  # type: ignore[attr-defined]
        return _either([_kind(name, each) for each in typing.get_args(hint)])
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (tuple, Sequence):
        return _entries(name, origin, [each for each in inner if each is not ...], ... not in inner)
    if inspect.isclass(hint) and hint is not object:
        return Allowed(lambda value: isinstance(value, hint), f"an engine.{hint.__name__}")
    return Allowed(lambda value: True, "anything")


def _either(kinds: Collection[Allowed]) -> Allowed:
    tests = [kind.fits for kind in kinds]
    return Allowed(
        lambda value: any(fits(value) for fits in tests), " or ".join(kind.allowed for kind in kinds)
    )


def _entries(name: str, origin: Any, inner: list[Any], fixed: bool) -> Allowed:
    """A tuple or a list of so many, or of any number of one kind."""
    of = [_kind(name, each) for each in inner]
    several = f"a list of {of[0].allowed}" if of else "a list"

    def fits(value: Any) -> bool:
        if not isinstance(value, (tuple, list)) or len(value) > MANY:
            return False
        if fixed and origin is tuple:
            return len(value) == len(of) and all(kind.fits(each) for kind, each in zip(of, value))
        return all(of[0].fits(each) for each in value)

    return Allowed(fits, several)


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"
