"""How a table of the catalogue is read: each is a TOML file beside this module, and every entry is checked
against the annotations of the class that it describes.

A wrong type, a negative number, an unknown or a missing key is reported in one line: file and line, the key,
what is allowed, and what was found.
"""

from __future__ import annotations

import math
import re
import tomllib
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parent
ROOT = PLACE.parents[1]
LONGEST = 200  # characters of a line that is quoted
AT = re.compile(r" \((?:at line (?P<line>\d+), column \d+|at end of document)\)$")  # ends what tomllib says


def read(name: str | Path) -> dict:
    """The contents of one file, ``read("gpus.toml")``: entry -> fields; ValueError with file and line if it
    is no TOML. An absolute path is read as it is."""
    text = (PLACE / name).read_text(encoding="utf-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(_not_toml(name, text.splitlines(), str(error))) from None


def _not_toml(name: str | Path, lines: list[str], words: str) -> str:
    """Of a fault that tomllib found: its line first, and the key that stands twice."""
    found = AT.search(words)
    line = int(found["line"]) if found and found["line"] else len(lines)
    written = lines[line - 1].strip()[:LONGEST] if line <= len(lines) else ""
    if words.startswith(("Cannot overwrite", "Cannot declare", "Cannot mutate")):
        fault = f"{written.partition('=')[0].strip()} stands twice; each key and each heading may stand once"
    else:
        fault = f"this is not TOML: {AT.sub('', words)}, in {written!r}"
    return f"{_shown(name)}:{line}: {fault}"


def table(name: str, kind: Any, **named: Callable[[str], object]) -> dict[str, Any]:
    """Every entry of one file, checked: key -> fields.

    ``kind`` is a dataclass or a TypedDict that says what an entry holds, several of them that say it
    together, a function that gives these for an entry, or ``list[kind]`` where an entry is a list of them. A
    field in ``named`` holds the key of another entry and is replaced by that entry.
    """
    return {key: checked(name, key, value, kind, **named) for key, value in read(name).items()}


def checked(name: str | Path, key: str, value: Any, kind: Any, **named: Callable[[str], object]) -> Any:
    """One entry with the entries that it names resolved; ValueError with file and line for anything wrong in
    it."""
    if typing.get_origin(kind) is list:
        _require(isinstance(value, list), name, key, "", f"{key!r} must be a list of tables, got {value!r}")
        return [checked(name, key, each, typing.get_args(kind)[0], **named) for each in value]
    _require(isinstance(value, dict), name, key, "", f"{key!r} must be a table, got {value!r}")
    hints, required = _allowed(kind(value) if isinstance(kind, types.FunctionType) else kind)
    for field, given in value.items():
        allowed = ", ".join(hints)
        _require(field in hints, name, key, field, f"{key!r} has no key {field!r}; it may have {allowed}")
        expected = str if field in named else hints[field]
        fault = _fault(given, expected)
        _require(not fault, name, key, field, f"{key!r}: {field} must be {fault}, got {given!r}")
    missing = [field for field in required if field not in value]
    _require(not missing, name, key, "", f"{key!r} is missing {', '.join(missing)}")
    return value | {
        field: _found(find, name, key, field, value[field]) for field, find in named.items() if field in value
    }


def where(name: str | Path, key: str = "", field: str = "") -> str:
    """'engine/catalog/gpus.toml:14': the line of a field, or of its entry's heading."""
    lines = (PLACE / name).read_text(encoding="utf-8").splitlines()
    heading = re.compile(rf"\s*\[+\s*[\"']?{re.escape(key)}[\"']?\s*\]")
    start = next((i for i, line in enumerate(lines) if heading.match(line)), -1)
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if field and re.match(rf"\s*[\"']?{re.escape(field)}[\"']?\s*=", line):
            return f"{_shown(name)}:{number}"
        if start >= 0 and line.lstrip().startswith("[") and not heading.match(line):
            break
    return f"{_shown(name)}:{max(start, 0) + 1}"


def _shown(name: str | Path) -> str:
    """The path of a file of the engine from the repository's root; any other path as it was given."""
    path = Path(name)
    if not path.is_absolute():
        return f"engine/catalog/{path}"
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def _require(fine: bool, name: str | Path, key: str, field: str, fault: str) -> None:
    if not fine:
        raise ValueError(f"{where(name, key, field)}: {fault}")


def _found(find: Callable[[str], object], name: str | Path, key: str, field: str, given: str) -> object:
    try:
        return find(given)
    except ValueError as error:
        raise ValueError(f"{where(name, key, field)}: {error}") from None


@cache
def _allowed(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(field -> annotation, the required fields) of a dataclass or a TypedDict, or of several, of which a
    later one says what a field of several is; the key comes from the heading."""
    if isinstance(kind, tuple):
        parts = [_allowed(each) for each in kind]
        hints = {name: hint for each, _ in parts for name, hint in each.items()}
        needed = {name: name in required for each, required in parts for name in each}
        return hints, tuple(name for name in hints if needed[name])
    hints = {name: hint for name, hint in typing.get_type_hints(kind).items() if name != "key"}
    if not is_dataclass(kind):
        written = typing.get_type_hints(kind, include_extras=True)
        optional = {n for n, hint in written.items() if typing.get_origin(hint) is typing.NotRequired}
        return hints, tuple(name for name in hints if kind.__total__ and name not in optional)
    given = [field for field in fields(kind) if field.init and field.name != "key"]
    optional = {f.name for f in given if f.default is not MISSING or f.default_factory is not MISSING}
    return {f.name: hints[f.name] for f in given}, tuple(f.name for f in given if f.name not in optional)


def _fault(value: Any, kind: Any) -> str:
    """What a value must be according to its annotation, or an empty text if it already is."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        faults = [_fault(value, each) for each in arguments if each is not type(None)]
        return "" if "" in faults else " or ".join(faults)
    if origin in (list, tuple):
        if not isinstance(value, list):
            return f"a list, each {_fault(None, arguments[0])}"
        return next((f"a list, each {fault}" for each in value if (fault := _fault(each, arguments[0]))), "")
    if typing.is_typeddict(kind) or is_dataclass(kind):
        hints, required = _allowed(kind)
        if not isinstance(value, dict) or not value.keys() <= hints.keys():
            return f"a table with no keys but {', '.join(hints)}"
        if is_dataclass(kind) and not set(required) <= value.keys():
            return f"a table with {', '.join(required)}"
        faults = (f"a table whose {key} is {_fault(each, hints[key])}" for key, each in value.items())
        return next((fault for fault in faults if not fault.endswith(" is ")), "")
    if kind is dict:
        return "" if isinstance(value, dict) else "a table"
    if kind is bool:
        return "" if isinstance(value, bool) else "true or false"
    if kind is str:
        return "" if isinstance(value, str) else "a text in quotes"
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is int:
        return "" if whole and value >= 0 else "a whole number of at least 0"
    if kind is float:
        number = whole or (isinstance(value, float) and math.isfinite(value))
        return "" if number and value >= 0 else "a number of at least 0"
    raise TypeError(f"no rule says what the catalogue may hold for {kind!r}")
