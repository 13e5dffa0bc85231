"""A Python source as entries: ``TrainingArguments(bf16=True)`` gives the key ``TrainingArguments.bf16``.

Nothing is run, and Python's own parser is not used, because the page runs this module as well. Read are the
calls and the literals handed to them: numbers, texts, truths, lists, maps, whole-number sums, and names that
such a literal was assigned to before. Everything else is a value that only running the program would tell;
its key is kept, so that whoever knows it can say that it was left out.

A call is named by what is called: ``FastLanguageModel.from_pretrained`` with its class, ``model.train`` by
its method alone. A call itself gives an entry without a value, an argument without a name its place.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.frameworks.settings import Entry
from engine.launch.texts import Source

SMALL = frozenset("abcdefghijklmnopqrstuvwxyz_")
LARGE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LETTERS = SMALL | LARGE
DIGITS = frozenset("0123456789")
IN_NUMBERS = DIGITS | LETTERS | {"."}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, (")", "]", "}")
QUOTES = ("'", '"')
PREFIXES = ("r", "b", "u", "f", "t", "rb", "br", "fr", "rf")
CONSTANTS = {"True": "true", "False": "false", "None": "none"}
DEEPEST, DEEPEST_MAP = 40, 4  # brackets in brackets, and maps in maps
MOST_ENTRIES = 5_000
MOST_DIGITS = 15
TWO = ("==", "!=", "<=", ">=", ":=", "->", "+=", "-=", "*=", "/=", "//", "**", "|=", "&=", "%=")
NAME, NUMBER, TEXT, FORMATTED, SIGN, END = "name", "number", "text", "formatted", "sign", "end"


class Token(NamedTuple):
    """A piece of a program; of a text ``word`` is what stands between the quotes, and so are the bounds."""

    kind: str
    word: str
    start: int
    stop: int
    line: int


class Value(NamedTuple):
    """What an expression is worth: a NUMBER, a TEXT, a NAME (true, false, none, or a type of torch), a
    "list", a "map", or nothing that is known (kind "")."""

    kind: str
    word: str
    start: int = -1
    stop: int = -1
    line: int = 0
    items: tuple = ()  # pairs of a key and a value


UNKNOWN = Value("", "")


def read(source: Source) -> tuple[list[Entry], list[Entry]]:
    """The entries of a program, and those whose value only running it would tell."""
    reader = Reader(tokens(source.text, source.first_line), source)
    reader.program()
    return reader.found, reader.unknown


def is_python(lines: list[str]) -> bool:
    """Whether these lines are a program: it imports something or defines something, or calls something over
    several lines and assigns what comes of it."""
    for line in lines[:400]:
        words = line.split()
        if words[0] == "from" and len(words) > 3 and words[2] == "import":
            return True
        if (
            words[0] == "import"
            and len(words) > 1
            and set(words[1].split(".")[0]) <= LETTERS | DIGITS | {","}
        ):
            return True
        if words[0] in ("def", "class") and line.endswith(":"):
            return True
        name, equals, rest = line.partition("=")
        called = rest.strip().partition("(")
        bare = name.replace(",", "").replace(" ", "").replace(".", "")
        if equals and called[1] and bare and set(bare) <= LETTERS | DIGITS and " = " in line:
            callee = called[0].replace(".", "")
            if callee and set(callee) <= LETTERS | DIGITS and callee[0] in LETTERS:
                return True
        if name.strip().split("(")[0] in CALLED and "(" in name:
            return True
    return False


# what somebody pastes alone, without the lines around it
CALLED = (
    "TrainingArguments",
    "SFTConfig",
    "LoraConfig",
    "BitsAndBytesConfig",
    "GRPOConfig",
    "DPOConfig",
    "LLM",
)


# -- tokens --------------------------------------------------------------------------------------------------
def tokens(text: str, first_line: int) -> list[Token]:
    """A program in pieces, without its comments and blanks; END stands where a line ends outside of
    brackets."""
    found: list[Token] = []
    at, line, depth = 0, first_line, 0
    size = len(text)
    while at < size:
        c = text[at]
        if c == "\n":
            if not depth and found and found[-1].kind != END:
                found.append(Token(END, "", at, at, line))
            at, line = at + 1, line + 1
        elif c == "#":
            end = text.find("\n", at)
            at = end if end >= 0 else size
        elif c == "\\":
            line += text[at + 1 : at + 2] == "\n"
            at += 2
        elif c in LETTERS:
            end = at + 1
            while end < size and (text[end] in LETTERS or text[end] in DIGITS):
                end += 1
            word = text[at:end]
            if end < size and text[end] in QUOTES and word.lower() in PREFIXES:
                token = quoted(text, end, line, "f" in word.lower() or "t" in word.lower())
                line += text.count("\n", end, token[1])
                found.append(token[0])
                at = token[1]
            else:
                found.append(Token(NAME, word, at, end, line))
                at = end
        elif c in DIGITS or (c == "." and text[at + 1 : at + 2] in DIGITS and at + 1 < size):
            end = at + 1
            while end < size and (
                text[end] in IN_NUMBERS
                or (text[end] in "+-" and text[end - 1] in "eE" and text[at : at + 2] != "0x")
            ):
                end += 1
            found.append(Token(NUMBER, text[at:end], at, end, line))
            at = end
        elif c in QUOTES:
            token = quoted(text, at, line, False)
            line += text.count("\n", at, token[1])
            found.append(token[0])
            at = token[1]
        elif c in " \t\r\f\v":
            at += 1
        else:
            sign = text[at : at + 2] if text[at : at + 2] in TWO else c
            if sign == "->" or len(sign) == 1:
                depth += sign in OPENING
                depth -= sign in CLOSING
                depth = max(0, depth)
            found.append(Token(SIGN, sign, at, at + len(sign), line))
            at += len(sign)
    found.append(Token(END, "", size, size, line))
    return found


def quoted(text: str, at: int, line: int, formatted: bool) -> tuple[Token, int]:
    """The text that opens here, and where what follows begins. One that is never closed ends with its
    line."""
    mark = text[at] * 3 if text[at : at + 3] == text[at] * 3 else text[at]
    begin = at + len(mark)
    end = begin
    while end < len(text) and text[end : end + len(mark)] != mark:
        if text[end] == "\n" and len(mark) == 1:
            break
        end += 2 if text[end] == "\\" else 1
    end = min(end, len(text))
    closed = text[end : end + len(mark)] == mark
    word = text[begin:end]
    kind = FORMATTED if formatted and "{" in word else TEXT
    return Token(kind, word, begin, end, line), end + (len(mark) if closed else 0)


# -- expressions and calls -----------------------------------------------------------------------------------
class Reader:
    """A walk over the tokens, which looks at each once."""

    def __init__(self, pieces: list[Token], source: Source) -> None:
        self.pieces = pieces
        self.source = source
        self.at = 0
        self.names: dict[str, Value] = {}
        self.found: list[Entry] = []
        self.unknown: list[Entry] = []
        self.entered = 0

    def here(self, ahead: int = 0) -> Token:
        """The token at hand, or one behind it."""
        place = self.at + ahead
        return self.pieces[place] if place < len(self.pieces) else self.pieces[-1]

    def is_sign(self, word: str, ahead: int = 0) -> bool:
        """Whether this sign is at hand."""
        token = self.here(ahead)
        return token.kind == SIGN and token.word == word

    def program(self) -> None:
        """All lines."""
        while self.at < len(self.pieces) and len(self.found) < MOST_ENTRIES:
            if self.here().kind == END:
                self.at += 1
            else:
                self.statement()

    def statement(self) -> None:
        """A line: a literal that a name is assigned to is kept; of everything else the calls are read."""
        token = self.here()
        if token.kind == NAME and token.word in ("def", "class"):
            self.at += 2  # its name, which is not called here
            self.rest()
            return
        if token.kind == NAME and self.is_sign(":", 1):  # a name with its type
            place = self.at + 2
            while place < len(self.pieces) and self.pieces[place].kind == NAME and place < self.at + 6:
                place += 1
            if (
                place < len(self.pieces)
                and self.pieces[place].kind == SIGN
                and self.pieces[place].word == "="
            ):
                self.at = place + 1
                self.assign(token.word)
                return
        if token.kind == NAME and self.is_sign("=", 1):
            self.at += 2
            self.assign(token.word)
            return
        self.rest()

    def assign(self, name: str) -> None:
        """A name and what it is worth from here on."""
        value = self.expression(0)
        if self.here().kind == END or self.is_sign(";"):
            self.names[name] = value
        else:
            self.names[name] = UNKNOWN
            self.rest()

    def rest(self) -> None:
        """What is left of a line, for the calls in it."""
        while self.here().kind != END:
            before = self.at
            self.expression(0)
            if self.at == before:
                self.at += 1

    def expression(self, depth: int) -> Value:
        """The value of what stands before the next comma, bracket, equals sign or end of a line."""
        parts: list[Value] = []
        signs: list[str] = []
        known, awaits = True, True  # whether an operand comes next
        while True:
            token = self.here()
            if token.kind == END or (
                token.kind == SIGN and token.word in (",", ")", "]", "}", "=", ":", ";")
            ):
                break
            if token.kind == SIGN and token.word in ("+", "-", "*", "//"):
                if awaits and token.word == "-" and self.here(1).kind == NUMBER and not parts:
                    number = self.here(1)
                    self.at += 2
                    parts.append(Value(NUMBER, "-" + number.word, token.start, number.stop, number.line))
                    awaits = False
                    continue
                known = known and not awaits
                signs.append(token.word)
                awaits = True
                self.at += 1
                continue
            if not awaits and token.kind == TEXT and parts and parts[-1].kind == TEXT:  # texts side by side
                self.at += 1
                parts[-1] = Value(TEXT, parts[-1].word + token.word, -1, -1, token.line)
                continue
            known = known and awaits
            value = self.operand(depth)
            if value is None:
                known = False
                self.at += 1
            else:
                parts.append(value)
            awaits = False
        if not known or awaits or not parts or any(not part.kind for part in parts):
            return UNKNOWN
        return parts[0] if len(parts) == 1 else sum_of(parts, signs)

    def operand(self, depth: int) -> Value | None:
        """A literal, a name, a call or something in brackets; None for a word or sign that is neither."""
        token = self.here()
        if token.kind in (NUMBER, TEXT):
            self.at += 1
            return Value(token.kind, token.word, token.start, token.stop, token.line)
        if token.kind == FORMATTED:
            self.at += 1
            return UNKNOWN
        if token.kind == SIGN and token.word in OPENING:
            return self.bracket(depth)
        if token.kind != NAME:
            return None
        if token.word in ("if", "else", "for", "in", "not", "and", "or", "lambda", "is", "await", "yield"):
            return None
        names, last = [token.word], token
        self.at += 1
        while self.is_sign(".") and self.here(1).kind == NAME:
            last = self.here(1)
            names.append(last.word)
            self.at += 2
        value = self.worth(names, token, last)
        while self.is_sign("(") or self.is_sign("[") or (self.is_sign(".") and self.here(1).kind == NAME):
            if self.is_sign("."):
                names = [*names, self.here(1).word]
                self.at += 2
            elif self.is_sign("("):
                value = self.call(names, token, depth)
                names = [names[-1].lower()]
            else:
                self.bracket(depth)
                value = UNKNOWN
        return value

    def worth(self, names: list[str], token: Token, last: Token) -> Value:
        """What a name is worth that is not called."""
        if len(names) == 1:
            if token.word in CONSTANTS:
                return Value(NAME, CONSTANTS[token.word], token.start, token.stop, token.line)
            return self.names.get(token.word, UNKNOWN)
        if names[0] == "torch" and len(names) == 2:
            return Value(NAME, names[1], token.start, last.stop, token.line)
        return UNKNOWN

    def bracket(self, depth: int) -> Value:
        """A list or tuple, a map, or an expression in brackets."""
        opening = self.here()
        self.at += 1
        if depth >= DEEPEST:
            self.skip()
            return UNKNOWN
        items: list[tuple[str, Value]] = []
        pairs, plain, commas = 0, True, 0
        while self.here().kind != END and not (self.here().kind == SIGN and self.here().word in CLOSING):
            before = self.at
            value = self.expression(depth + 1)
            if self.is_sign(":"):
                self.at += 1
                items.append((value.word if value.kind == TEXT else "", self.expression(depth + 1)))
                pairs += 1
            elif self.at > before:
                items.append(("", value))
            if self.is_sign(","):
                commas += 1
                self.at += 1
            elif self.at == before:
                plain = False
                self.at += 1
        closing = self.here()
        if closing.kind == SIGN:
            self.at += 1
        if not plain or closing.kind != SIGN:
            return UNKNOWN
        if opening.word == "{":
            named = pairs == len(items) and all(key for key, _ in items)
            return Value("map", "", -1, -1, opening.line, tuple(items)) if named else UNKNOWN
        if opening.word == "(" and len(items) == 1 and not commas:
            return items[0][1]
        if pairs or any(not one.kind or one.kind == "map" for _, one in items):
            return UNKNOWN
        words = ", ".join(one.word if one.kind != TEXT else f'"{one.word}"' for _, one in items)
        return Value("list", f"[{words}]", opening.start, closing.stop, opening.line)

    def skip(self) -> None:
        """To behind the bracket that closes the one just opened."""
        depth = 1
        while depth and self.at < len(self.pieces) - 1:
            token = self.here()
            if token.kind == SIGN:
                depth += token.word in OPENING
                depth -= token.word in CLOSING
            self.at += 1

    def call(self, names: list[str], token: Token, depth: int) -> Value:
        """The arguments of a call, each as an entry; the value of ``dict(…)`` is a map."""
        begin = self.here()
        self.at += 1
        if depth >= DEEPEST:
            self.skip()
            return UNKNOWN
        callee = called(names)
        items: list[tuple[str, Value, Token]] = []
        place, whole = 0, True
        while self.here().kind != END and not (self.here().kind == SIGN and self.here().word in CLOSING):
            before, first = self.at, self.here()
            if first.kind == NAME and self.is_sign("=", 1):
                self.at += 2
                items.append((first.word, self.expression(depth + 1), first))
            elif self.is_sign("**"):
                self.at += 1
                spread = self.expression(depth + 1)
                whole = whole and spread.kind == "map"
                for key, value in spread.items:
                    items.append((key, value, first))
                if spread.kind != "map":
                    items.append(("**", UNKNOWN, first))
            else:
                value = self.expression(depth + 1)
                if self.at > before:
                    items.append((str(place), value, first))
                    place += 1
            here = self.here()
            if self.at == before or (here.kind == SIGN and here.word in (",", ":", "=", ";")):
                self.at += 1
        if self.here().kind == SIGN:
            self.at += 1
        if names == ["dict"]:
            pairs = tuple((key, value) for key, value, _ in items)
            named = whole and all(not key.isdigit() for key, _ in pairs)
            return Value("map", "", -1, -1, begin.line, pairs) if named else UNKNOWN
        self.found.append(
            Entry(callee, "", self.source.name, token.line, begin=self.source.start + token.start)
        )
        for key, value, first in items:
            self.enter(f"{callee}.{key}", value, first, 0)
        return UNKNOWN

    def enter(self, key: str, value: Value, first: Token, depth: int) -> None:
        """An argument as an entry; a map as one for each of its keys."""
        begin = self.source.start + first.start
        self.entered += 1  # a map may hold one map many times over
        if value.kind == "map":
            for name, inside in value.items:
                if depth < DEEPEST_MAP and self.entered < MOST_ENTRIES:
                    self.enter(f"{key}.{name}", inside, first, depth + 1)
            return
        if not value.kind:
            self.unknown.append(Entry(key, "", self.source.name, first.line, begin=begin))
            return
        start = self.source.start + value.start if value.start >= 0 else -1
        stop = self.source.start + value.stop if value.start >= 0 else -1
        line = value.line or first.line
        self.found.append(Entry(key, value.word, self.source.name, line, start, stop, begin))


def called(names: list[str]) -> str:
    """How a call is named: a method with its class, where a class is named, else what is called alone."""
    if len(names) > 1 and names[-1][0] in SMALL and names[-2][0] in LARGE:
        return f"{names[-2]}.{names[-1]}"
    return names[-1]


def sum_of(parts: list[Value], signs: list[str]) -> Value:
    """A sum or product of whole numbers, which stands nowhere in one piece."""
    if len(signs) != len(parts) - 1 or any(part.kind != NUMBER for part in parts):
        return UNKNOWN
    numbers = []
    for part in parts:
        bare = part.word.replace("_", "").removeprefix("-")
        if not bare.isdigit() or len(bare) > MOST_DIGITS:
            return UNKNOWN
        numbers.append(int(bare) * (-1 if part.word.startswith("-") else 1))
    terms, between = [numbers[0]], []
    for sign, number in zip(signs, numbers[1:]):
        if sign == "*":
            terms[-1] = terms[-1] * number
        elif sign == "//":
            if number <= 0:
                return UNKNOWN
            terms[-1] = terms[-1] // number
        else:
            between.append(sign)
            terms.append(number)
        if abs(terms[-1]) > 10**MOST_DIGITS:
            return UNKNOWN
    found = terms[0]
    for sign, number in zip(between, terms[1:]):
        found = found + number if sign == "+" else found - number
    return Value(NUMBER, str(found), -1, -1, parts[0].line)
