"""A shell script, read without running it: its commands, each word with the place where it was written.

Understood are continued lines, comments, both kinds of quotes, variables (set in the script, exported, with a
default, appended to), arrays, whole-number arithmetic and here-documents. What only running could tell (the
output of a command, an argument of the script, a variable from outside) becomes an unknown word that keeps
its reason, which is told only where the word would have mattered. Both branches of a condition are read, one
after the other, and the later one wins; of a loop its first turn is.

``within`` reads a text that is a part of something else: the one behind ``bash -c``, or in a YAML file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from engine.frameworks.settings import Fault, one_line
from engine.launch.texts import LONGEST, Source

MOST_WORDS = 20_000
KEYWORDS_TEXT = """
if then elif else fi for while until do done case esac function time { } ! in
"""
KEYWORDS = frozenset(KEYWORDS_TEXT.split())
SETTERS = frozenset(("export", "declare", "local", "readonly", "typeset", "env"))
NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
DIGITS = frozenset("0123456789")
SPACE = " \t\r\n"
INSIDE = 10**8  # above every place in a text


class Bit(NamedTuple):
    """A stretch of text on one line; ``start`` is its place in the source, −1 if it was worked out."""

    text: str
    line: int
    start: int = -1
    quoted: bool = False


@dataclass(frozen=True)
class Word:
    """What a program gets as one argument."""

    bits: tuple[Bit, ...]
    known: bool = True  # false where a part of it could only be known by running the script
    why: Fault | None = None  # what is not known, or what was taken where there is a choice

    @property
    def text(self) -> str:
        """The word's characters, without quotes."""
        return "".join(bit.text for bit in self.bits)

    @property
    def line(self) -> int:
        """The line on which the word ends; 0 for a word without characters."""
        return self.bits[-1].line if self.bits else 0

    def span(self, drop: int = 0) -> tuple[int, int]:
        """Where the word, without its first characters, stands in the source: (−1, −1) if in several
        places."""
        bits = [bit for bit in self.bits if bit.text]
        for bit in bits:
            if drop >= len(bit.text) and bit is not bits[-1]:
                drop -= len(bit.text)
                continue
            whole = bit is bits[-1] and bit.start >= 0
            return (bit.start + drop, bit.start + len(bit.text)) if whole else (-1, -1)
        return -1, -1

    def without(self, drop: int) -> Word:
        """The word without its first characters."""
        bits: list[Bit] = []
        for bit in self.bits:
            gone = min(drop, len(bit.text))
            drop -= gone
            if gone < len(bit.text):
                start = bit.start + gone if bit.start >= 0 else -1
                bits.append(Bit(bit.text[gone:], bit.line, start, bit.quoted))
        return replace(self, bits=tuple(bits))


@dataclass
class Script:
    """What a script says: its commands, its arrays and variables, and the files that it writes itself."""

    commands: list[list[Word]] = field(default_factory=list)
    before: list[dict[str, Word]] = field(default_factory=list)  # what is set in front of each command
    variables: dict[str, list[Word]] = field(default_factory=dict)
    written: list[Source] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unknown: list[Fault] = field(default_factory=list)  # what could only be known by running it


def read(source: Source, variables: dict[str, list[Word]] | None = None) -> Script:
    """The script of a source; ``variables`` are set before it begins."""
    return _Reader(source, variables or {}).run()


def within(name: str, word: Word, variables: dict[str, list[Word]] | None = None) -> Script:
    """The script that a word is, with the places of its own words in the text around it."""
    script = read(Source(name, word.text, INSIDE, INSIDE), variables)
    places = _Places(word)
    script.commands = [[places.word(each) for each in words] for words in script.commands]
    script.before = [{key: places.word(each) for key, each in one.items()} for one in script.before]
    script.variables = {key: [places.word(each) for each in words] for key, words in script.variables.items()}
    script.faults = [places.fault(each) for each in script.faults]
    script.unknown = [places.fault(each) for each in script.unknown]
    return script


class _Places:
    """Where the characters of a word stand in the text that it is a part of. Places and lines of the word's
    own script are counted from INSIDE on, so that they are told from those of variables from around it."""

    def __init__(self, word: Word) -> None:
        self.bits = [bit for bit in word.bits if bit.text]
        self.offsets: list[int] = []
        self.begins = [0]  # where each line of the word begins
        at = 0
        for bit in self.bits:
            self.offsets.append(at)
            for place, c in enumerate(bit.text):
                if c == "\n":
                    self.begins.append(at + place + 1)
            at += len(bit.text)

    def of(self, offset: int) -> tuple[Bit, int]:
        """The piece in which a character stands, and its place in that."""
        which = bisect_left(self.offsets, offset + 1) - 1
        return self.bits[which], offset - self.offsets[which]

    def line(self, line: int) -> int:
        """A line as counted around the word."""
        if line < INSIDE or not self.bits:
            return line
        bit, at = self.of(self.begins[min(line - INSIDE, len(self.begins) - 1)])
        return bit.line + bit.text.count("\n", 0, at)

    def bit(self, bit: Bit) -> Bit:
        if bit.start < INSIDE or not self.bits:
            return bit._replace(line=self.line(bit.line))
        around, at = self.of(bit.start - INSIDE)
        whole = around.start >= 0 and at + len(bit.text) <= len(around.text)
        line = around.line + around.text.count("\n", 0, at)
        return Bit(bit.text, line, around.start + at if whole else -1, bit.quoted)

    def fault(self, fault: Fault) -> Fault:
        return fault._replace(line=self.line(fault.line))

    def word(self, word: Word) -> Word:
        why = self.fault(word.why) if word.why else None
        return Word(tuple(self.bit(bit) for bit in word.bits), word.known, why)


class _Reader:
    """Goes through the text once. ``words`` is the command at hand, ``bits`` the word at hand."""

    def __init__(self, source: Source, variables: dict[str, list[Word]]) -> None:
        self.source, self.text = source, source.text
        self.at, self.line = 0, source.first_line
        self.script = Script(variables=dict(variables))
        self.words: list[Word] = []
        self.bits: list[Bit] = []
        self.known, self.open = True, False  # whether a word can be known, and whether one has begun
        self.why: Fault | None = None
        self.size = self.made = 0
        self.documents: list[tuple[str, bool]] = []  # the mark, and whether it is in quotes
        self.command: list[Word] = []  # the last one, and the file that it writes
        self.target = self.file = ""
        self.unknown: set[str] = set()
        self.joined_at = 0  # the last line that continues the one before it
        self.cut = self.before = ""  # what ends a continued command, and what has ended the one before

    def run(self) -> Script:
        text = self.text
        while self.at < len(text):
            if self.size > LONGEST or self.made > MOST_WORDS:
                self.fault("the script's variables grow without end; it was read up to here")
                break
            self.step(text[self.at])
        self.end_command()
        return self.script

    def fault(self, words: str) -> None:
        self.script.faults.append(Fault(self.source.name, self.line, words))

    def take(self, count: int = 1) -> str:
        """The next characters, which are passed."""
        found = self.text[self.at : self.at + count]
        self.line += found.count("\n")
        self.at += count
        return found

    def line_end(self) -> int:
        """Where the line at hand ends."""
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def until(self, stop: str) -> str:
        """What stands before the next ``stop``, which is passed too; to the end if there is none."""
        end = self.text.find(stop, self.at)
        end = len(self.text) if end < 0 else end
        found = self.take(end - self.at)
        self.take(len(stop))
        return found

    # -- one character -----------------------------------------------------------------------------------
    def step(self, c: str) -> None:
        if c == "\\":
            self.backslash()
        elif c in "'\"":
            self.open = True
            self.single() if c == "'" else self.double()
        elif c == "$":
            self.dollar(quoted=False)
        elif c == "`":
            self.take()
            self.until("`")
            self.not_known("the output of a command")
        elif c == "#" and not self.open:
            continued = bool(self.words) and self.joined_at == self.line
            self.take(self.line_end() - self.at)
            self.cut = f"the comment in line {self.line}" if continued else ""
        elif c == "\n":
            self.end_command()
            self.take()
            self.here_documents()
        elif c in " \t\r":
            self.end_word()
            self.take()
        elif c == "(" and self.array():
            pass
        elif c in ";&|()":
            self.end_command()
            self.take()
        elif c in "<>":
            self.redirection(c)
        else:
            self.literal()

    def literal(self) -> None:
        begin, line = self.at, self.line
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n\\'\"$`;&|()<>":
            self.at += 1
        self.add(Bit(self.text[begin : self.at], line, self.source.start + begin))

    def add(self, bit: Bit) -> None:
        self.open = True
        self.bits.append(bit)
        self.size += len(bit.text)

    def backslash(self) -> None:
        width = 2 if self.text[self.at + 1 : self.at + 2] == "\n" else 3
        if width == 2 or self.text[self.at + 1 : self.at + 3] == "\r\n":
            self.end_word()
            self.take(width)
            self.joined_at = self.line
        else:
            behind = self.text[self.at + 1 : self.line_end()]
            if behind[:1] in (" ", "\t") and (not behind.strip() or behind.strip()[0] == "#"):
                self.cut = f"the blank behind the backslash in line {self.line}"
            self.take()
            begin, line = self.at, self.line
            self.add(Bit(self.take(), line, self.source.start + begin, True))

    def single(self) -> None:
        self.take()
        begin, line = self.at, self.line
        self.add(Bit(self.until("'"), line, self.source.start + begin, True))

    def double(self) -> None:
        """Between double quotes, line by line, so that each piece knows its own."""
        self.take()
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == '"':
                self.take()
                return
            if self.size > LONGEST:
                return
            if c == "$":
                self.dollar(quoted=True)
            elif c == "\\" and self.text[self.at + 1 : self.at + 2] == "\n":
                self.take(2)
                self.add(Bit(" ", self.line, -1, True))
            elif c == "\\":
                self.take()
                begin, line = self.at, self.line
                self.add(Bit(self.take(), line, self.source.start + begin, True))
            elif c == "`":
                self.take()
                self.until("`")
                self.not_known("the output of a command")
            else:
                begin, line = self.at, self.line
                while self.at < len(self.text) and self.text[self.at] not in '"$\\`\n':
                    self.at += 1
                if self.at < len(self.text) and self.text[self.at] == "\n":
                    self.at, self.line = self.at + 1, self.line + 1
                self.add(Bit(self.text[begin : self.at], line, self.source.start + begin, True))

    # -- variables ---------------------------------------------------------------------------------------
    def not_known(self, what: str) -> None:
        self.open, self.known = True, False
        what = one_line(what, 60)
        fault = Fault(self.source.name, self.line, f"{what} is not known without running the script")
        self.why = self.why or fault
        if what not in self.unknown:
            self.unknown.add(what)
            self.script.unknown.append(fault)

    def dollar(self, quoted: bool) -> None:
        ahead = self.text[self.at + 1 : self.at + 3]
        if ahead == "((":
            self.take(3)
            line = self.line
            words = self.balanced("(", ")", 2)
            value = arithmetic(words, self.number)
            self.not_known(f"$(({words}))") if value is None else self.add(Bit(str(value), line, -1, quoted))
        elif ahead[:1] == "(":
            self.take(2)
            line = self.line
            command, _, words = self.balanced("(", ")", 1).strip().partition(" ")
            # expr of whole numbers alone is worked out; every other command would have to be run
            value = arithmetic(words.replace("\\*", "*"), self.number) if command == "expr" else None
            if value is None:
                self.not_known("the output of a command")
            else:
                self.add(Bit(str(value), line, -1, quoted))
        elif ahead[:1] == "{":
            self.take(2)
            self.expand(self.balanced("{", "}", 1), quoted)
        elif ahead[:1] in NAME and ahead:
            self.take()
            begin = self.at
            while self.at < len(self.text) and self.text[self.at] in NAME:
                self.at += 1
            self.expand(self.text[begin : self.at], quoted)
        elif ahead[:1] in ("@", "*", "?", "#", "$", "!") and ahead:
            self.take(2)
            self.not_known("an argument of the script")
        else:
            self.add(Bit(self.take(), self.line, -1, quoted))

    def balanced(self, opening: str, closing: str, depth: int) -> str:
        """What stands before the brackets are closed again."""
        begin = self.at
        while self.at < len(self.text) and depth:
            c = self.take()
            depth += (c == opening) - (c == closing)
        return self.text[begin : self.at].rstrip(closing) if not depth else self.text[begin : self.at]

    def expand(self, inside: str, quoted: bool) -> None:
        """A variable, an array or a variable with a default."""
        name, rest = inside, ""
        for place, c in enumerate(inside):
            if c not in NAME:
                name, rest = inside[:place], inside[place:]
                break
        values = self.script.variables.get(name)
        if rest[:2] in (":-", ":=") or rest[:1] in ("-", "="):
            if values is None or not "".join(v.text for v in values):
                default = rest[2:] if rest[0] == ":" else rest[1:]
                self.default(default, quoted)
                return
            rest = ""
        if rest[:2] == ":+" or rest[:1] == "+":
            if values is not None:
                self.default(rest[2:] if rest[0] == ":" else rest[1:], quoted)
            return
        if rest[:2] == ":?" or rest[:1] == "?":
            rest = ""
        if name == "" and rest.startswith("#"):
            many = self.script.variables.get(rest[1:].split("[")[0])
            self.not_known(f"${{{inside}}}") if many is None else self.add(Bit(str(len(many)), self.line))
            return
        if values is None:
            self.not_known(f"the variable ${name}" if name else f"${{{inside}}}")
            return
        several = rest in ("[@]", "[*]")
        if rest and not several:
            if rest[:1] == "[" and rest[1:-1].isdigit() and int(rest[1:-1]) < len(values):
                values = [values[int(rest[1:-1])]]
            else:
                self.not_known(f"${{{inside}}}")
                return
        for number, word in enumerate(values):
            if number:
                self.end_word()
            self.known = self.known and word.known
            self.why = self.why or word.why
            self.open = self.open or quoted or several or not word.known
            for each in word.bits:
                bit = each if each.line else each._replace(line=self.line)  # 0 is in another text
                self.add(bit) if quoted or several else self.split(bit)

    def default(self, words: str, quoted: bool) -> None:
        """The default of a variable: text, or another variable."""
        bare = words.strip("\"'")
        if bare.startswith("$"):
            self.expand(bare.strip("${}"), quoted)
        elif words:
            begin = self.text.rfind(bare, 0, self.at)
            self.add(Bit(bare, self.line, self.source.start + begin if begin >= 0 else -1, quoted))

    def split(self, bit: Bit) -> None:
        """A value without quotes: its blanks part words."""
        at, text = 0, bit.text
        while at < len(text) and self.made <= MOST_WORDS:
            if text[at] in SPACE:
                self.end_word()
                at += 1
                continue
            end = at
            while end < len(text) and text[end] not in SPACE:
                end += 1
            self.add(Bit(text[at:end], bit.line, bit.start + at if bit.start >= 0 else -1, True))
            at = end

    def number(self, name: str) -> int | None:
        """A variable as a whole number, for arithmetic."""
        words = self.script.variables.get(name)
        text = words[0].text.strip() if words else ""
        return int(text) if 0 < len(text) < 16 and set(text) <= DIGITS else None

    # -- words and commands ------------------------------------------------------------------------------
    def end_word(self) -> None:
        if self.open:
            self.words.append(Word(tuple(self.bits), self.known, self.why))
            self.made += 1
        self.bits, self.known, self.open, self.why = [], True, False, None

    def array(self) -> bool:
        """``NAME=( … )`` or ``NAME+=( … )``; whether there was one."""
        text = "".join(bit.text for bit in self.bits)
        if not text.endswith("=") or not set(text[:-1].rstrip("+")) <= NAME:
            return False
        name, before = text[:-1].rstrip("+"), self.words
        more = text.endswith("+=")
        self.bits, self.open, self.words = [], False, []
        self.take()
        while self.at < len(self.text) and self.made <= MOST_WORDS and self.size <= LONGEST:
            c = self.text[self.at]
            if c == ")":
                break
            if c == "\n":
                self.end_word()
                self.take()
            elif c in ";&|<>(":
                self.add(Bit(c, self.line, self.source.start + self.at))
                self.take()
            else:
                self.step(c)
        self.end_word()
        self.take()
        items, self.words = self.words, before
        self.script.variables[name] = [*self.script.variables.get(name, []), *items] if more else items
        return True

    def redirection(self, c: str) -> None:
        """Files are not read and not written, but a here-document is kept."""
        if self.bits and set("".join(b.text for b in self.bits)) <= DIGITS:
            self.bits, self.open = [], False
        self.end_word()
        if self.text[self.at : self.at + 2] == "<<" and self.text[self.at : self.at + 3] != "<<<":
            self.take(2)
            self.take(self.text[self.at : self.at + 1] == "-")
            rest = self.text[self.at : self.line_end()].lstrip()
            mark = rest.split(" ")[0].split(">")[0].strip()
            self.take(self.text.find(mark, self.at) + len(mark) - self.at if mark else 0)
            self.documents.append((mark.strip("'\"\\"), mark[:1] in ("'", '"', "\\")))
        else:
            writes = c == ">"
            while self.text[self.at : self.at + 1] in ("<", ">", "&") and self.at < len(self.text):
                self.take()
            while self.text[self.at : self.at + 1] in (" ", "\t") and self.at < len(self.text):
                self.take()
            begin = self.at
            while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|()<>":
                self.take()
            if writes and self.at > begin:
                self.file = self.text[begin : self.at].strip("'\"")

    def here_documents(self) -> None:
        """What stands before the mark, as a source of its own with its variables filled in."""
        documents, self.documents = self.documents, []
        for mark, plain in documents:
            first, begin, body = self.line, self.at, []
            while self.at < len(self.text):
                line = self.text[self.at : self.line_end()]
                self.take(len(line) + 1)
                if line.strip() == mark:
                    break
                body.append(line)
            text = "\n".join(body) if plain else self.filled("\n".join(body))
            same = text == "\n".join(body)
            start = self.source.start + begin if same else -(10**9)
            self.script.written.append(
                Source(self.source.name, text, first, start, self.source.given, self.target)
            )

    def filled(self, text: str) -> str:
        """A here-document with the variables that are known."""
        for name in sorted(self.script.variables, key=len, reverse=True):
            value = " ".join(word.text for word in self.script.variables[name])
            if len(value) * text.count("$") < LONGEST:
                text = text.replace("${" + name + "}", value).replace("$" + name, value)
        return text

    def end_command(self) -> None:
        self.end_word()
        words, self.words = self.words, []
        self.target, self.file = self.file, ""
        if len(words) > 3 and words[0].text == "for" and words[2].text == "in":
            self.turn(words[1].text, words[3])
        while words and words[0].text in KEYWORDS:
            words = words[1:]
        setting = words and words[0].text in SETTERS
        rest = words[1:] if setting else words
        while rest and setting and words[0].text == "env" and rest[0].text.startswith("-"):
            rest = rest[2:] if rest[0].text == "-u" else rest[1:]
        before: dict[str, Word] = {}
        while rest and self.assigned(rest[0]):
            name = rest[0].text.split("=", 1)[0].rstrip("+")
            before[name] = self.script.variables[name][0]
            rest = rest[1:]
        if setting and words[0].text != "env":
            return
        if rest:
            if rest[0].text in ("tee", "bash", "sh", "sbatch"):
                named = [w.text for w in rest[1:] if not w.text.startswith("-")]
                self.target = self.target if rest[0].text == "tee" and not named else [*named, "x.sh"][0]
            if self.before and rest[0].text.startswith("-"):
                words = f"{self.before} ends the command: what follows it is not passed to it"
                self.script.faults.append(Fault(self.source.name, rest[0].line, words))
            self.before, self.cut = self.cut, ""
            self.script.commands.append(rest)
            self.script.before.append(before)

    def turn(self, name: str, first: Word) -> None:
        """The variable of a loop, in the first of its turns."""
        if name and set(name) <= NAME:
            words = f"of the loop over {name} its first turn is read, with {first.text[:40]}"
            why = first.why or Fault(self.source.name, first.line, words)
            self.script.variables[name] = [Word(first.bits, first.known, why)]

    def assigned(self, word: Word) -> bool:
        """``NAME=value`` or ``NAME+=value``, which is kept; whether it was one."""
        text = word.text
        name = text.split("=", 1)[0]
        more, name = name.endswith("+"), name.rstrip("+")
        if "=" not in text or not name or not set(name) <= NAME or name[0] in DIGITS:
            return False
        value = word.without(text.index("=") + 1)
        before = self.script.variables.get(name, []) if more else []
        joined = tuple(b for w in (*before, value) for b in w.bits)
        whys = [w.why for w in (*before, word) if w.why]
        known = word.known and all(w.known for w in before)
        self.script.variables[name] = [Word(joined, known, whys[0] if whys else None)]
        return True


# -- whole-number arithmetic ---------------------------------------------------------------------------------
TIGHT = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
MOST = 10**15


def arithmetic(words: str, number: Callable[[str], int | None]) -> int | None:
    """The value of a sum of whole numbers and variables with + − * / % and brackets; None if it has none."""
    values: list[int] = []
    waiting: list[str] = []

    def apply() -> bool:
        if len(values) < 2:
            return False
        right, left, sign = values.pop(), values.pop(), waiting.pop()
        if sign in "/%" and not right:
            return False
        found = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: abs(left) // abs(right) * (1 if left * right >= 0 else -1),
            "%": lambda: left % right,
        }[sign]()
        values.append(found)
        return abs(found) < MOST

    at, fine = 0, True
    while at < len(words) and fine and len(values) < 1000:
        c = words[at]
        end = at + 1
        if c in NAME or c == "$":
            begin = at
            while end < len(words) and words[end] in NAME | {"{", "}"}:
                end += 1
            name = words[begin:end].strip("${}")
            value = int(name) if set(name) <= DIGITS and 0 < len(name) < 16 else number(name)
            fine = value is not None
            values.append(value or 0)
        elif c == "(":
            waiting.append(c)
        elif c == ")":
            while fine and waiting and waiting[-1] != "(":
                fine = apply()
            fine = fine and bool(waiting)
            waiting = waiting[:-1]
        elif c in "+-" and (not words[:at].strip() or words[:at].rstrip()[-1] in "(+-*/%"):
            values.append(0)
            waiting.append(c)
        elif c in TIGHT:
            while fine and waiting and waiting[-1] != "(" and TIGHT[waiting[-1]] >= TIGHT[c]:
                fine = apply()
            waiting.append(c)
        elif c not in SPACE:
            fine = False
        at = end
    while fine and waiting:
        fine = waiting[-1] != "(" and apply()
    return values[0] if fine and len(values) == 1 else None
