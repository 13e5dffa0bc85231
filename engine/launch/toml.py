"""A TOML file as entries: ``[a.b]`` and ``c = 1`` give the key ``a.b.c``.

All of TOML 1.0 is read, with numbers, truths, dates and arrays as the text that stands there, and the tables
of an array numbered, ``a.0.b``. What is no TOML is a fault, and the line is passed over; where it has a key
and an equals sign, what stands behind that is its value, as in a line of Python.
"""

from __future__ import annotations

from engine.frameworks.settings import Entry, Fault
from engine.launch.texts import Source
from engine.launch.yaml import DIGITS, character

BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
PYTHON = BARE | {"."}
NUMBER = frozenset("0123456789")
ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
WORDS = ("true", "false", "inf", "+inf", "-inf", "nan", "+nan", "-nan")
BASES = {  # how a number to another base begins -> the base, its digits
    "0x": (16, frozenset("0123456789abcdefABCDEF")),
    "0o": (8, frozenset("01234567")),
    "0b": (2, frozenset("01")),
}
DEEPEST = 100
VALUE, TABLE, HEADER, ARRAY = "a value", "a table", "a table with a header", "an array of tables"


def read(source: Source) -> tuple[list[Entry], list[Fault]]:
    """The entries of a TOML text, and a line for each that is not TOML."""
    reader = _TomlReader(source)
    reader.run()
    return reader.entries, reader.faults


class _Bad(Exception):
    """The line at hand is no TOML."""


class _TomlReader:
    def __init__(self, source: Source) -> None:
        self.source, self.text = source, source.text
        self.at, self.line = 0, source.first_line
        self.entries: list[Entry] = []
        self.faults: list[Fault] = []
        self.section = ""
        self.kinds: dict[str, str] = {}  # what each path is
        self.counts: dict[str, int] = {}  # of the tables of an array

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def to(self, place: int) -> None:
        self.line += self.text.count("\n", self.at, place)
        self.at = place

    def line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def gap(self) -> None:
        """Pass blanks, lines and comments."""
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == "#":
                self.at = self.line_end()
            elif c in " \t\n" or self.peek(2) == "\r\n":
                self.to(self.at + 1)
            else:
                return

    def ends(self) -> None:
        """The line has to end here, but for a comment."""
        self.blanks()
        if self.peek() == "#":
            end = self.line_end()
            if any(c < " " and c not in "\t\r" for c in self.text[self.at : end]):
                raise _Bad
            self.at = end
        if self.peek() not in ("", "\n") and self.peek(2) != "\r\n":
            raise _Bad

    def run(self) -> None:
        while True:
            self.gap()
            if self.at >= len(self.text):
                return
            begin, line, many = self.at, self.line, len(self.entries)
            try:
                self.header() if self.peek() == "[" else self.pair(self.section, True)
                self.ends()
            except _Bad as bad:
                while len(self.entries) > many:
                    self.entries.pop()
                self.wrong(begin, line, str(bad))

    def wrong(self, begin: int, line: int, why: str) -> None:
        """A line that is no TOML; a value in it is kept as it stands."""
        self.at, self.line = begin, line
        end = self.line_end()
        bare = self.text[begin:end].strip()
        self.faults.append(Fault(self.source.name, line, why or f"not a line of TOML: {bare[:60]}"))
        key, equals, rest = self.text[begin:end].partition("=")
        name = key.strip()
        if equals and name and set(name) <= PYTHON:
            value = uncommented(rest.strip())
            start = self.source.start + end - len(rest.lstrip())
            stop = start + len(value)
            if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
                value = value[1:-1]
            self.entries.append(
                Entry(_joined(self.section, name), value, self.source.name, line, start, stop)
            )
        elif bare[:1] == "[":
            self.section = uncommented(bare).strip("[] \t").replace('"', "").replace("'", "").replace(" ", "")
        self.to(end)

    # -- keys --------------------------------------------------------------------------------------------
    def keys(self) -> list[str]:
        """``a . "b c"`` in its parts."""
        found: list[str] = []
        while True:
            self.blanks()
            c, begin = self.peek(), self.at
            if c in ("'", '"') and c:
                found.append(self.quoted())
            else:
                while self.at < len(self.text) and self.text[self.at] in BARE:
                    self.at += 1
                if self.at == begin:
                    raise _Bad
                found.append(self.text[begin : self.at])
            self.blanks()
            if self.peek() != "." or len(found) > DEEPEST:
                return found
            self.at += 1

    def below(self, path: str, key: str, kind: str) -> str:
        """The path of a key, which may lead through what is a table, or through the last of an array's."""
        path = _joined(path, key)
        known = self.kinds.setdefault(path, kind)
        if known == ARRAY:
            return f"{path}.{self.counts[path] - 1}"
        if known == VALUE:
            raise _Bad(f"{path[:60]} has a value already")
        return path

    def header(self) -> None:
        """``[a.b]`` or ``[[a.b]]``."""
        several = self.peek(2) == "[["
        closing = "]]" if several else "]"
        self.at += len(closing)
        keys = self.keys()
        if self.peek(len(closing)) != closing:
            raise _Bad
        self.at += len(closing)
        path = ""
        for key in keys[:-1]:
            path = self.below(path, key, TABLE)
        path = _joined(path, keys[-1])
        known = self.kinds.get(path)
        if several:
            if known not in (None, ARRAY):
                raise _Bad(f"{path[:60]} stands twice")
            self.kinds[path] = ARRAY
            self.counts[path] = self.counts.get(path, 0) + 1
            path = f"{path}.{self.counts[path] - 1}"
        elif known not in (None, TABLE):
            raise _Bad(f"{path[:60]} stands twice")
        self.kinds[path] = HEADER
        self.section = path

    def pair(self, path: str, own: bool, depth: int = 0) -> None:
        """``a.b = value``."""
        line, keys = self.line, self.keys()
        if self.peek() != "=":
            raise _Bad
        self.at += 1
        self.blanks()
        for key in keys[:-1]:
            path = self.below(path, key, HEADER if own else TABLE)
            if self.kinds[path] == VALUE:
                raise _Bad(f"{path[:60]} has a value already")
        path = _joined(path, keys[-1])
        if path in self.kinds:
            raise _Bad(f"{path[:60]} stands twice")
        self.kinds[path] = VALUE
        begin = self.at
        if self.peek() == "{":
            self.inline(path, depth)
            return
        text = self.value(depth)
        raw = self.text[begin : self.at]
        whole = "\n" not in raw
        start = self.source.start + begin
        self.entries.append(
            Entry(
                path, text, self.source.name, line, start if whole else -1, start + len(raw) if whole else -1
            )
        )

    def inline(self, path: str, depth: int) -> None:
        """``{ a = 1, b = 2 }``, on one line."""
        if depth > DEEPEST:
            raise _Bad("nested too deeply")
        self.at += 1
        self.blanks()
        if self.peek() == "}":
            self.at += 1
            return
        self.kinds[path] = TABLE
        while True:
            self.blanks()
            self.pair(path, False, depth + 1)
            self.blanks()
            c = self.peek()
            if c not in (",", "}") or not c:
                raise _Bad
            self.at += 1
            if c == "}":
                self.kinds[path] = VALUE
                return

    # -- values ------------------------------------------------------------------------------------------
    def value(self, depth: int) -> str:
        """A value as text: of a quoted one what it says, of a number to another base its decimals, of every
        other what stands there."""
        c, begin = self.peek(), self.at
        if c in ("'", '"') and c:
            return self.several(c * 3) if self.peek(3) == c * 3 else self.quoted()
        if c == "[":
            self.array(depth)
            lines = self.text[begin : self.at].split("\n")
            return " ".join(uncommented(line.strip()) for line in lines)
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n,]}#=":
            self.at += 1
        text = self.text[begin : self.at]
        clock = self.text[self.at + 1 : self.at + 4]
        if len(text) == 10 and text[4:5] == "-" and self.peek() == " " and clock[2:] == ":":
            self.at += 1
            while self.at < len(self.text) and self.text[self.at] not in " \t\r\n,]}#=":
                self.at += 1
            text = self.text[begin : self.at]
        if not plain(text):
            raise _Bad
        if text[:2] in BASES:
            return str(int(text[2:].replace("_", ""), BASES[text[:2]][0]))
        return text

    def array(self, depth: int) -> None:
        """``[1, 2]``, over as many lines as it likes."""
        if depth > DEEPEST:
            raise _Bad("nested too deeply")
        self.at += 1
        while True:
            self.gap()
            if self.peek() == "]":
                break
            if self.peek() == "{":
                kinds, many = self.kinds, len(self.entries)
                self.kinds = {}
                self.inline("", depth + 1)
                self.kinds = kinds
                while len(self.entries) > many:
                    self.entries.pop()
            else:
                self.value(depth + 1)
            self.gap()
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != "]":
                raise _Bad
        self.at += 1

    def quoted(self) -> str:
        """A text in quotes of either kind, on one line."""
        quote = self.peek()
        found: list[str] = []
        self.at += 1
        run = self.at
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == quote:
                found.append(self.text[run : self.at])
                self.at += 1
                return "".join(found)
            if (c < " " and c != "\t") or c == "\x7f":
                break
            if c == "\\" and quote == '"':
                found.append(self.text[run : self.at])
                self.at += 1
                found.append(self.escaped())
                run = self.at
            else:
                self.at += 1
        raise _Bad

    def several(self, quotes: str) -> str:
        """A text in three quotes of either kind."""
        found: list[str] = []
        self.at += 3
        if self.peek(2) == "\r\n":
            self.at += 1
        if self.peek() == "\n":
            self.to(self.at + 1)
        run = self.at
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == quotes[0] and self.peek(3) == quotes:
                more = 3
                while more < 5 and self.text[self.at + more : self.at + more + 1] == quotes[0]:
                    more += 1
                found.append(self.text[run : self.at + more - 3])
                self.at += more
                return "".join(found).replace("\r\n", "\n")
            if (c < " " and c not in "\t\r\n") or c == "\x7f":
                raise _Bad
            if c == "\\" and quotes[0] == '"':
                found.append(self.text[run : self.at])
                self.at += 1
                behind = self.at
                while behind < len(self.text) and self.text[behind] in " \t\r":
                    behind += 1
                if self.text[behind : behind + 1] == "\n":
                    while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
                        self.to(self.at + 1)
                else:
                    found.append(self.escaped())
                run = self.at
            else:
                self.to(self.at + 1)
        raise _Bad("a text in three quotes is never closed")

    def escaped(self) -> str:
        c = self.peek()
        self.at += 1
        if c in ESCAPES:
            return ESCAPES[c]
        many = {"u": 4, "U": 8}.get(c, 0)
        digits = self.peek(many).lower()
        if not many or len(digits) < many or not set(digits) <= set(DIGITS):
            raise _Bad
        number = int(digits, 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise _Bad
        self.at += many
        return character(number)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def plain(text: str) -> bool:
    """Whether a text is a truth, a number, a date or a time of TOML."""
    if text in WORDS:
        return True
    if text[:2] in BASES:
        return _grouped(text[2:], BASES[text[:2]][1])
    if text[2:3] == ":" or (text[4:5] == "-" and text[7:8] == "-"):
        return _moment(text)
    bare = text[1:] if text[:1] in ("+", "-") else text
    mantissa, power, exponent = bare.replace("E", "e").partition("e")
    whole, point, part = mantissa.partition(".")
    if not _grouped(whole, NUMBER) or (len(whole) > 1 and whole[0] == "0"):
        return False
    if point and not _grouped(part, NUMBER):
        return False
    return not power or _grouped(exponent[1:] if exponent[:1] in ("+", "-") else exponent, NUMBER)


def _shaped(text: str, shape: str, most: tuple[int, ...]) -> bool:
    """Whether a text has digits where a shape has a 0, and no number of two digits above its most."""
    if len(text) != len(shape) or any((c in NUMBER) != (s == "0") for c, s in zip(text, shape)):
        return False
    pairs = [text[-1 - 3 * place - 1 : len(text) - 3 * place] for place in range(len(most))]
    return all(c == s for c, s in zip(text, shape) if s != "0") and all(
        int(pair) <= limit for pair, limit in zip(pairs, most)
    )


def _moment(text: str) -> bool:
    """``1979-05-27``, ``07:32:00.5``, or both with an offset."""
    if text[2:3] == ":":
        clock, point, part = text.partition(".")
        return _shaped(clock, "00:00:00", (59, 59, 23)) and (
            not point or (_grouped(part, NUMBER) and "_" not in part)
        )
    day, behind = text[:10], text[10:]
    if not _shaped(day, "0000-00-00", (31, 12)) or "00" in (day[5:7], day[8:]) or day[:4] == "0000":
        return False
    if not behind:
        return True
    clock = behind[1:]
    if clock[-1:] in ("Z", "z"):
        clock = clock[:-1]
    elif clock[-6:-5] in ("+", "-") and _shaped(clock[-5:], "00:00", (59, 23)):
        clock = clock[:-6]
    return behind[0] in "Tt " and clock[2:3] == ":" and _moment(clock)


def _grouped(text: str, digits: frozenset[str]) -> bool:
    """Digits, with single strokes between some of them."""
    return bool(text) and all(piece and set(piece) <= digits for piece in text.split("_"))


def uncommented(text: str) -> str:
    """A line without the comment at its end; a # inside quotes is none."""
    quote = ""
    for place, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == "#":
            return text[:place].rstrip()
    return text.rstrip()
