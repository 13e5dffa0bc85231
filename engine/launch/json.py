"""A JSON text as entries: ``{"a": {"b": 1}}`` gives the key ``a.b``. An array's items are numbered,
``a.0.b``.

Read character by character with a list as its stack, so that no nesting is too deep; comments are passed
over, as some programs allow them. The first thing that is not JSON ends it, with its line and column.
"""

from __future__ import annotations

from engine.frameworks.settings import Entry, Fault
from engine.launch.texts import Source

SPACE = " \t\r\n"
WORDS = ("true", "false", "null")
NUMBER = frozenset("0123456789+-.eE")
DEEPEST = 200


class _Stop(Exception):
    """The text is not JSON from here on."""


def read(source: Source) -> tuple[list[Entry], list[Fault]]:
    """The entries of a JSON text, and what is wrong with it."""
    reader = _JsonReader(source)
    try:
        reader.run()
    except _Stop as stop:
        return reader.entries, [Fault(source.name, reader.line, f"not JSON: {stop}, column {reader.column}")]
    return reader.entries, []


class _JsonReader:
    def __init__(self, source: Source) -> None:
        self.source, self.text, self.at = source, source.text, 0
        self.line, self.begun = source.first_line, 0
        self.entries: list[Entry] = []
        self.path: list[str | int] = []

    @property
    def column(self) -> int:
        return self.at - self.begun + 1

    def run(self) -> None:
        self.skip()
        self.value()
        while self.path:
            self.skip()
            c = self.text[self.at : self.at + 1]
            last = self.path[-1]
            if c == ",":
                self.at += 1
                self.skip()
                if self.text[self.at : self.at + 1] in ("]", "}"):
                    raise _Stop("a comma before the closing bracket")
                if isinstance(last, int):
                    self.path[-1] = last + 1
                else:
                    self.key()
                self.value()
            elif c == ("]" if isinstance(last, int) else "}"):
                self.at += 1
                self.path.pop()
            elif not c:
                raise _Stop("a bracket is never closed")
            else:
                raise _Stop(f"a comma or a closing bracket was expected, got {c!r}")
        self.skip()
        if self.at < len(self.text):
            raise _Stop("something follows the last bracket")

    def skip(self) -> None:
        """Blanks, lines and comments."""
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == "\n":
                self.at += 1
                self.line, self.begun = self.line + 1, self.at
            elif c in SPACE:
                self.at += 1
            elif self.text.startswith("//", self.at) or c == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def key(self) -> None:
        """``"name":``, which becomes the last part of the path."""
        if self.text[self.at : self.at + 1] != '"':
            raise _Stop("a name in double quotes was expected")
        self.path[-1] = self.quoted()
        self.skip()
        if self.text[self.at : self.at + 1] != ":":
            raise _Stop("a colon was expected")
        self.at += 1
        self.skip()

    def quoted(self) -> str:
        begin = self.at = self.at + 1
        while self.at < len(self.text) and self.text[self.at] not in '"\n':
            self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text) or self.text[self.at] == "\n":
            raise _Stop("a text is never closed")
        self.at += 1
        return self.text[begin : self.at - 1]

    def value(self) -> None:
        """One value; of an object or array, its beginning up to the first item."""
        while True:
            self.skip()
            c = self.text[self.at : self.at + 1]
            if c not in ("{", "[") or not c:
                break
            if len(self.path) >= DEEPEST:
                raise _Stop("nested too deeply")
            self.at += 1
            self.skip()
            if self.text[self.at : self.at + 1] == ("}" if c == "{" else "]"):
                self.at += 1
                return
            if c == "{":
                self.path.append("")
                self.key()
            else:
                self.path.append(0)
        begin, line = self.at, self.line
        if c == '"':
            text = self.quoted()
            self.entry(text, line, begin)
            return
        while self.at < len(self.text) and (
            self.text[self.at] in NUMBER or "a" <= self.text[self.at].lower() <= "z"
        ):
            self.at += 1
        text = self.text[begin : self.at]
        if not text or not (text in WORDS or set(text) <= NUMBER):
            raise _Stop(f"a value was expected, got {self.text[begin : begin + 20]!r}")
        self.entry(text, line, begin)

    def entry(self, text: str, line: int, begin: int) -> None:
        key = ".".join(map(str, self.path))
        start = self.source.start + begin
        self.entries.append(Entry(key, text, self.source.name, line, start, self.source.start + self.at))
