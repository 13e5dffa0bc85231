"""From entries to settings: what a framework's table says that a key means, and what nobody said.

A ``Draft`` takes entries one by one and keeps where each value came from. A framework then asks it for what
it needs; what was not given is assumed, with the reason, and what nobody asked for is listed as ignored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

WHOLE, NUMBER, FLAG, TEXT = "whole", "number", "flag", "text"
ANY_TEXT = "any text"  # even "auto" and "none" are values
LARGEST = 10**12
NOTHING = ("", "none", "null", "~", "auto")
TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
NOT_READ = "not read: nothing here knows it to change memory or time"
NOT_KNOWN = "its value is not known without running the script: write it there"
SHOWN = 60  # characters of a value that a message repeats


class Entry(NamedTuple):
    """One key with its value as text. ``start`` and ``stop`` bound the value in the given text, and ``begin``
    is where its key stands; they are −1 where that is nowhere in one piece, as with a sum."""

    key: str
    value: str
    file: str
    line: int
    start: int = -1
    stop: int = -1
    begin: int = -1


def one_line(text: str, most: int = 400) -> str:
    """A text on one line and short enough to read."""
    words = " ".join(text[: 4 * most].split())
    return words if len(words) <= most else f"{words[:most]} …"


class Fault(NamedTuple):
    """Something wrong with a text or with what it asks for, in one line."""

    file: str
    line: int  # 0 where it is not about one line
    words: str
    misspelt: bool = False  # a key that nobody knows, and that is nearly one

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return one_line(f"{place}{self.words}")


class Field(NamedTuple):
    """What a key of a framework sets: a name of ours, and what its value is."""

    name: str
    kind: str = WHOLE


@dataclass(frozen=True)
class Setting:
    """A value that was read, under our name, with the key and the line it came from."""

    name: str
    value: Any
    entry: Entry

    @property
    def key(self) -> str:
        """The setting's name, as its file spells it."""
        return self.entry.key

    @property
    def file(self) -> str:
        """The file in which the setting stands."""
        return self.entry.file

    @property
    def line(self) -> int:
        """The line on which it stands, counted from 1."""
        return self.entry.line


@dataclass(frozen=True)
class Assumed:
    """A value that no text gives, and why it was taken."""

    name: str
    value: Any
    why: str


@dataclass(frozen=True)
class Ignored:
    """An entry that changes nothing here, or that nobody knows."""

    key: str
    value: str
    file: str
    line: int
    why: str


@dataclass(frozen=True)
class Refused:
    """What cannot be started, and the error that the framework gives."""

    error: str
    file: str = ""
    line: int = 0


def meant(key: str, alike: list[str]) -> str:
    """Which of some keys one is a slip of the pen for: word by word the same or nearly so. Where a whole word
    is another (``eval`` for ``train``), it is another key."""
    words = _words(key)
    for one in alike:
        pairs = list(zip(words, _words(one)))
        if len(words) == len(_words(one)) and all(_slip(mine, its) for mine, its in pairs):
            return one
    return ""


def _words(key: str) -> list[str]:
    return key.replace("-", "_").replace(".", "_").split("_")


def _slip(mine: str, its: str) -> bool:
    """Whether two words are the same, or long ones that differ in a letter or two."""
    if mine == its:
        return True
    return min(len(mine), len(its)) > 3 and len(get_close_matches(mine, [its], 1, 0.7)) > 0


class Draft:
    """The settings of one launch while they are collected."""

    def __init__(self) -> None:
        self.settings: dict[str, Setting] = {}
        self.unknown: dict[str, Ignored] = {}  # our names that are set to what only running could tell
        self.used: set[str] = set()
        self.assumed: list[Assumed] = []
        self.ignored: list[Ignored] = []
        self.unmodelled: list[Ignored] = []
        self.refused: list[Refused] = []
        self.faults: list[Fault] = []

    def lacks(self, name: str, why: str) -> None:
        """Note that what is set under one of our names is not modelled."""
        self.unmodelled.append(Ignored(*self.settings[name].entry[:4], why))

    def read(self, entries: Iterable[Entry], table: dict[str, Field], unmodelled: dict[str, str]) -> None:
        """Take entries by a framework's table; ``unmodelled`` are keys that change memory or time in a way
        that the engine does not know."""
        known = [*table, *unmodelled]
        for entry in entries:
            key = entry.key
            if key in unmodelled:
                if not entry.value or entry.value.lower() not in (*FALSE, *NOTHING):
                    self.unmodelled.append(Ignored(*entry[:4], unmodelled[key]))
            elif key in table:
                self.take(table[key], entry)
            else:
                near = ""
                if len(key) < 80 and len(self.ignored) < 100:
                    near = meant(key, get_close_matches(key, known, 3, 0.86))
                if near:
                    words = f"{key} is not known, did you mean {near}? What follows is without it"
                    self.faults.append(Fault(entry.file, entry.line, words, True))
                else:
                    self.ignored.append(Ignored(key, entry.value[:SHOWN], entry.file, entry.line, NOT_READ))

    def take(self, field: Field, entry: Entry) -> None:
        """One entry; a later one with the same meaning wins, as with the programs themselves."""
        low = entry.value.strip().lower()
        says_nothing = low == "auto" or (
            low in NOTHING and field.kind != FLAG and not (field.kind == TEXT and low == "none")
        )
        if says_nothing and field.kind != ANY_TEXT:
            self.ignored.append(Ignored(entry.key, entry.value, entry.file, entry.line, "gives no value"))
            return
        value = converted(entry.value, field.kind)
        if value is None:
            words = f"{entry.key} must be {ALLOWED[field.kind]}, got {entry.value[:SHOWN]!r}"
            self.faults.append(Fault(entry.file, entry.line, words))
            return
        before = self.settings.get(field.name)
        if before and before.value != value:
            words = (
                f"{entry.key} {entry.value[:SHOWN]} replaces {before.key} {before.value} of line "
                f"{before.line}"
            )
            self.faults.append(Fault(entry.file, entry.line, words))
        self.settings[field.name] = Setting(field.name, value, entry)

    def given(self, name: str) -> Any:
        """The value that was read, or None."""
        self.used.add(name)
        found = self.settings.get(name)
        if found is None and name in self.unknown:
            self.unmodelled.append(self.unknown.pop(name))
        return found.value if found else None

    def ask(self, *names: str) -> None:
        """Note that these are known, and that what they say changes nothing more."""
        for name in names:
            self.given(name)

    def get(self, name: str, otherwise: Any, why: str = "its default") -> Any:
        """The value that was read, or the one that is assumed, which is noted."""
        found = self.given(name)
        if found is not None:
            return found
        self.assume(name, otherwise, why)
        return otherwise

    def assume(self, name: str, value: Any, why: str) -> None:
        """Note a value that no text gives."""
        self.assumed = [one for one in self.assumed if one.name != name]
        self.assumed.append(Assumed(name, value, why))

    def refuse(self, error: str, name: str = "") -> None:
        """Note an error that the framework gives, at the line of the setting that is to blame."""
        found = self.settings.get(name)
        self.refused.append(Refused(error, found.file if found else "", found.line if found else 0))

    def leave(self, why: str = "changes neither memory nor time here") -> None:
        """What was read and never asked for is ignored."""
        for name, setting in self.settings.items():
            if name not in self.used:
                self.ignored.append(Ignored(*setting.entry[:4], why))


ALLOWED = {
    WHOLE: "a whole number of at least 0",
    NUMBER: "a number of at least 0",
    FLAG: "true or false",
    TEXT: "a text",
    ANY_TEXT: "a text",
}


def converted(text: str, kind: str) -> Any:
    """A text as a value of a kind; None if it is none."""
    bare = text.strip()
    if kind in (TEXT, ANY_TEXT):
        return bare
    if kind == FLAG:
        low = bare.lower()
        return True if low in TRUE or not bare else False if low in (*FALSE, *NOTHING) else None
    if len(bare) > 40:
        return None
    try:
        value = float(bare.replace("_", ""))
    except ValueError:
        return None
    if not 0 <= value <= LARGEST:
        return None
    if kind == NUMBER:
        return value
    if value == -1 or value != int(value):
        return None
    return int(value)


def overrides(words: Iterable[Any]) -> list[Entry]:
    """The words ``section.key=value`` of a command, with or without a plus sign before them."""
    found = []
    for word in words:
        key, equals, value = word.text.partition("=")
        if equals and not key.startswith("-"):
            found.append(Entry(key.lstrip("+"), value, "", word.line, *word.span(len(key) + 1)))
    return found
