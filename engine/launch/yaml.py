"""A YAML file as entries: ``a:`` with ``b: 1`` indented below it gives the key ``a.b``.

Read is what configurations and manifests are written in: maps and lists by indentation and in brackets, plain
and quoted texts over several lines, block texts (``|`` and ``>``), comments, several documents, anchors,
aliases and merge keys. Tags are passed over. Keys of several lines, and keys that are maps or lists, are not
understood, and said to be so. A line that is no YAML is a fault, and the reader goes on behind it.

``documents`` gives the tree, which keeps where each text stands; ``read`` gives it flat.
"""

from __future__ import annotations

import json as library
from dataclasses import dataclass, field

from engine.frameworks.settings import Entry, Fault
from engine.launch.texts import Source

MAP, LIST, TEXT = "map", "list", "text"
DEEPEST = 100
LONGEST_KEY = 1024  # characters, as YAML itself has it for keys without a question mark
MOST_NODES = 150_000  # aliases of aliases grow without end
MOST_PATHS = 4_000_000  # characters of all keys together
BLANK = " \t\r"
FLOW = ",[]{}"
NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
NOT_FIRST = frozenset(",[]{}#&*!|>'\"%@`")  # what no plain text begins with
ESCAPES = {
    "0": "\0",
    "a": "\x07",
    "b": "\x08",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\x0b",
    "f": "\x0c",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "\\": "\\",
    "/": "/",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
HEX = {"x": 2, "u": 4, "U": 8}
DIGITS = "0123456789abcdef"
NO_LINE = "not a line of YAML"


@dataclass
class YamlNode:
    """A map, a list or a text. ``start`` and ``stop`` bound a text in the given source, without its
    quotes; ``style`` is how it is written: "" plain, a quote, ``|`` or ``>``."""

    kind: str
    line: int
    text: str = ""
    style: str = ""
    start: int = -1
    stop: int = -1
    keys: list[YamlNode] = field(default_factory=list)  # of a map, each a text
    items: list[YamlNode] = field(default_factory=list)  # of a map or a list

    def pairs(self) -> list[tuple[YamlNode, YamlNode]]:
        """Keys and values of a map, of which the later of the same key wins; nothing of another node."""
        return list(zip(self.keys, self.items)) if self.kind == MAP else []

    def get(self, key: str) -> YamlNode | None:
        """The value of a key of a map, if there is one."""
        found = None
        for name, item in self.pairs():
            if name.text == key:
                found = item
        return found

    def at(self, *keys: str) -> YamlNode | None:
        """What stands below several keys."""
        found: YamlNode | None = self
        for key in keys:
            found = found.get(key) if found is not None else None
        return found

    def word(self, *keys: str) -> str:
        """The text below some keys; nothing where there is none."""
        found = self.at(*keys)
        return found.text if found is not None and found.kind == TEXT else ""

    def list(self, *keys: str) -> list[YamlNode]:
        """The items of a list below some keys."""
        found = self.at(*keys)
        return found.items if found is not None and found.kind == LIST else []


class _NotYaml(Exception):
    """Something that is not YAML, or not read; the reader goes on in the next line."""


class _NoMoreYaml(Exception):
    """Nothing more can be read."""


def read(source: Source) -> tuple[list[Entry], list[Fault]]:
    """The entries of a YAML text, and a line for each thing that is not understood."""
    nodes, faults = documents(source)
    flat = _Flat(source)
    for node in nodes:
        if not flat.add(node, "", 0):
            words = "its aliases grow without end; it was read up to here"
            faults.append(Fault(source.name, node.line, words))
            break
    return flat.entries, faults


def documents(source: Source) -> tuple[list[YamlNode], list[Fault]]:
    """The roots of a text's documents, and what is wrong with it."""
    reader = _YamlReader(source)
    found: list[YamlNode] = []
    try:
        reader.run(found)
    except _NoMoreYaml as stop:
        reader.fault(str(stop))
    return found, reader.faults


class _Flat:
    """The entries of a tree, while they are counted."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.entries: list[Entry] = []
        self.nodes = self.size = 0

    def add(self, node: YamlNode, path: str, depth: int) -> bool:
        """Take a node; whether there is an end to it."""
        self.nodes, self.size = self.nodes + 1, self.size + len(path)
        if depth > DEEPEST or self.nodes > MOST_NODES or self.size > MOST_PATHS:
            return False
        if node.kind == TEXT:
            if node.text or node.style:
                self.entries.append(entry(node, path, self.source))
            return True
        if node.kind == LIST:
            each = [(str(place), item) for place, item in enumerate(node.items)]
        else:
            pairs = node.pairs()
            self.nodes += len(pairs)
            last = {key.text: item for key, item in pairs}
            each = [(k.text, i) for k, i in pairs if i is last[k.text] or _both(i, last[k.text])]
        return all(self.add(item, f"{path}.{name}" if path else name, depth + 1) for name, item in each)


def _both(one: YamlNode, last: YamlNode) -> bool:
    """Whether a value that a later one replaces is given too, so that somebody can say so."""
    return one.kind == TEXT and last.kind == TEXT and bool(last.text)


def entry(node: YamlNode, path: str, source: Source) -> Entry:
    """A text as an entry, with its place where it stands in one piece on a line."""
    start, stop = node.start - source.start, node.stop - source.start
    whole = node.start >= 0 and source.text[start:stop] == node.text and "\n" not in node.text
    return Entry(
        path, node.text, source.name, node.line, node.start if whole else -1, node.stop if whole else -1
    )


class _YamlReader:
    """Goes through the text once, with a call for each level of nesting."""

    def __init__(self, source: Source) -> None:
        self.source, self.text, self.at = source, source.text, 0
        self.line, self.begun = source.first_line, 0
        self.faults: list[Fault] = []
        self.anchors: dict[str, YamlNode | None] = {}
        self.merged = 0
        self.margin = 0  # where the text begins: a part of a page is further in than a file

    # -- places ------------------------------------------------------------------------------------------
    def fault(self, words: str, line: int = 0) -> None:
        self.faults.append(Fault(self.source.name, line or self.line, words))

    def peek(self, ahead: int = 0) -> str:
        """The character at hand, or one behind it; nothing behind the end."""
        return self.text[self.at + ahead : self.at + ahead + 1]

    def line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def to(self, place: int) -> None:
        """Go on to a place, counting the lines that are passed."""
        self.line += self.text.count("\n", self.at, place)
        begun = self.text.rfind("\n", self.at, place) + 1
        self.begun = begun or self.begun
        self.at = place

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in BLANK:
            self.at += 1

    def ends(self) -> bool:
        """Whether nothing but blanks and a comment is left of the line; they are passed."""
        self.blanks()
        if self.peek() == "#":
            self.at = self.line_end()
        return self.peek() in ("", "\n")

    def mark(self, place: int) -> str:
        """``---`` or ``...`` where a line begins with it, which ends a document."""
        found = self.text[place : place + 3]
        behind = self.text[place + 3 : place + 4]
        return found if found in ("---", "...") and (not behind or behind in " \t\r\n") else ""

    def next(self) -> int:
        """Go to what stands next; its column, or −1 where the document ends."""
        while self.ends() and self.at < len(self.text):
            self.to(self.at + 1)
        column = self.at - self.begun
        if self.at >= len(self.text) or (column in (0, self.margin) and self.mark(self.at)):
            return -1
        return column

    def skip_line(self) -> None:
        self.to(self.line_end())

    def not_a_line(self) -> str:
        line = self.text[self.begun : self.line_end()].strip()
        return f"{NO_LINE}: {line[:60]}"

    def dash(self) -> bool:
        """Whether an item of a list begins here."""
        return self.peek() == "-" and self.peek(1) in ("", " ", "\t", "\r", "\n")

    # -- documents ---------------------------------------------------------------------------------------
    def run(self, found: list[YamlNode]) -> None:
        if self.text.startswith("\ufeff"):
            self.at = self.begun = 1
        self.margin = max(0, self.next())
        while self.at < len(self.text):
            column = self.next()
            if column < 0:
                if self.mark(self.at):
                    self.anchors = {}
                    again = self.mark(self.at) == "---"
                    self.at += 3
                    if again and not self.ends():
                        self.root(found, False)
                continue
            if column == 0 and self.peek() == "%":
                self.skip_line()
                continue
            self.root(found, True)

    def root(self, found: list[YamlNode], fresh: bool) -> None:
        """One document, or what follows behind a line that could not be read."""
        line = self.line
        try:
            node = self.node(-1, fresh, 0)
            if node.kind == TEXT and (node.text or node.style):
                self.fault(f"{NO_LINE}: {node.text[:60]}", line)
            else:
                found.append(node)
            if not self.ends():
                if self.text[self.begun : self.at].strip():
                    raise _NotYaml(self.not_a_line())
                if self.at - self.begun not in (0, self.margin) or not self.mark(self.at):
                    self.fault(self.not_a_line())
        except _NotYaml as bad:
            self.fault(str(bad))
            self.skip_line()

    # -- one node ----------------------------------------------------------------------------------------
    def node(self, parent: int, fresh: bool, depth: int) -> YamlNode:
        """What stands here, below a parent of that indentation; ``fresh`` where a map or list by
        indentation may begin."""
        if depth > DEEPEST:
            raise _NoMoreYaml("nested too deeply")
        if fresh and self.key_here():
            return self.map(self.at - self.begun, depth)
        anchor = self.properties()
        if self.ends():
            node = self.below(parent, depth, not fresh)
        elif fresh and self.dash():
            node = self.list(self.at - self.begun, depth)
        else:
            node = self.inline(parent, depth)
        if anchor:
            self.anchors[anchor] = node
        return node

    def below(self, parent: int, depth: int, even: bool = False) -> YamlNode:
        """What stands in the lines below; a map may have its list at its own indentation."""
        line = self.line
        column = self.next()
        if column > parent or (even and column == parent and self.dash()):
            return self.node(column - 1 if column == parent else parent, True, depth)
        return YamlNode(TEXT, line)

    def properties(self, looking: bool = False) -> str:
        """Anchor and tag in front of a node; the anchor's name, which means nothing until the node ends."""
        anchor = ""
        while self.peek() in ("&", "!") and self.peek():
            if self.peek() == "&":
                self.at += 1
                anchor = self.name()
                if not looking:
                    self.anchors[anchor] = None
            else:
                while self.peek() not in ("", " ", "\t", "\r", "\n", ",", "]", "}"):
                    self.at += 1
            self.blanks()
        return anchor

    def name(self) -> str:
        """The name of an anchor."""
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] in NAMES:
            self.at += 1
        if self.at == begin or self.at - begin > LONGEST_KEY:
            raise _NotYaml("an anchor without a name")
        return self.text[begin : self.at]

    def alias(self) -> YamlNode:
        self.at += 1
        name = self.name()
        found = self.anchors.get(name)
        if found is None:
            raise _NotYaml(f"*{name[:40]} is no anchor that stands before it")
        return found

    def inline(self, parent: int, depth: int) -> YamlNode:
        """A text, an alias, or a map or list in brackets."""
        c = self.peek()
        if c in ("|", ">") and c:
            return self.block_text(parent)
        if c == "*":
            return self.alias()
        if c in ("'", '"') and c:
            return self.quoted()
        if c in ("{", "[") and c:
            return self.flow(depth)
        if c in NOT_FIRST or self.dash() or not self.plain_end(self.at, False) > self.at:
            raise _NotYaml(self.not_a_line())
        return self.plain(parent, False)

    # -- maps and lists by indentation ---------------------------------------------------------------------
    def key_here(self) -> bool:
        """Whether a key and its colon stand here, on this line."""
        kept = (self.at, self.line, self.begun)
        end = self.line_end()
        try:
            self.properties(True)
            c = self.peek()
            if c in ("'", '"') and c:
                self.quoted()
            elif c == "*":
                self.alias()
            elif c in NOT_FIRST:
                return False
            else:
                self.at = self.plain_end(self.at, False)
            found = self.at <= end and self.at - kept[0] <= LONGEST_KEY
            self.blanks()
            return found and self.at > kept[0] and self.colon()
        except _NotYaml:
            return False
        finally:
            self.at, self.line, self.begun = kept

    def colon(self) -> bool:
        return self.peek() == ":" and self.peek(1) in ("", " ", "\t", "\r", "\n")

    def map(self, column: int, depth: int) -> YamlNode:
        node = YamlNode(MAP, self.line)
        while True:
            try:
                anchor = self.properties()
                c = self.peek()
                key = self.quoted() if c in ("'", '"') else self.alias() if c == "*" else self.plain_key()
                if key.kind != TEXT:
                    raise _NotYaml("a key that is a map or a list is not read here")
                if anchor:
                    self.anchors[anchor] = key
                self.blanks()
                self.at += 1
                place = len(node.items)
                node.keys.append(key)
                node.items.append(YamlNode(TEXT, self.line))
                if self.ends():
                    value = self.below(column, depth + 1, True)
                else:
                    value = self.node(column, False, depth + 1)
                if not self.merges(key, value):
                    raise _NotYaml("<< takes a map, or a list of maps")
                node.items[place] = value
                if not self.ends() and self.text[self.begun : self.at].strip():
                    raise _NotYaml(self.not_a_line())
            except _NotYaml as bad:
                self.fault(str(bad))
                self.skip_line()
            while True:
                here = self.next()
                if here < column or (here == column and self.key_here()):
                    break
                self.fault(self.not_a_line())
                self.skip_line()
            if here != column:
                return self.filled(node)

    def filled(self, node: YamlNode) -> YamlNode:
        """A map with what its merge keys bring, in front and without what it has itself."""
        own = [(key, item) for key, item in node.pairs() if key.text != "<<" or key.style]
        if len(own) == len(node.keys):
            return node
        has = {key.text for key, _ in own}
        brought: dict[str, tuple[YamlNode, YamlNode]] = {}
        for key, item in node.pairs():
            if key.text != "<<" or key.style:
                continue
            for one in reversed(item.items) if item.kind == LIST else [item]:
                self.merged += len(one.keys)
                if self.merged > MOST_NODES:
                    raise _NoMoreYaml("its merge keys grow without end; it was read up to here")
                for pair in one.pairs():
                    if pair[0].text not in has:
                        brought[pair[0].text] = pair
        pairs = [*brought.values(), *own]
        node.keys, node.items = [key for key, _ in pairs], [item for _, item in pairs]
        return node

    def merges(self, key: YamlNode, value: YamlNode) -> bool:
        if key.text != "<<" or key.style:
            return True
        return value.kind == MAP or (value.kind == LIST and all(one.kind == MAP for one in value.items))

    def plain_key(self) -> YamlNode:
        begin = self.at
        self.at = self.plain_end(begin, False)
        return self.piece(begin, self.at, "")

    def piece(self, begin: int, end: int, style: str) -> YamlNode:
        start = self.source.start + begin
        return YamlNode(TEXT, self.line, self.text[begin:end], style, start, start + end - begin)

    def list(self, column: int, depth: int) -> YamlNode:
        node = YamlNode(LIST, self.line)
        while True:
            try:
                self.at += 1
                if self.ends():
                    item = self.below(column, depth + 1)
                else:
                    item = self.node(column, True, depth + 1)
                node.items.append(item)
                if not self.ends() and self.text[self.begun : self.at].strip():
                    raise _NotYaml(self.not_a_line())
            except _NotYaml as bad:
                self.fault(str(bad))
                self.skip_line()
            here = self.next()
            while here > column:
                self.fault(self.not_a_line())
                self.skip_line()
                here = self.next()
            if here != column or not self.dash():
                return node

    # -- texts -------------------------------------------------------------------------------------------
    def plain_end(self, begin: int, flow: bool, first: bool = True) -> int:
        """Where a plain text ends that begins, or goes on, here on this line."""
        text, at, filled = self.text, begin, begin
        c, behind = text[at : at + 1], text[at + 1 : at + 2]
        if first and c in ("-", "?", ":") and (behind in ("", " ", "\t", "\r", "\n") or (flow and c != "-")):
            return begin
        while at < len(text):
            c = text[at]
            if c == "\n" or (flow and c in FLOW) or (c == "#" and at > begin and text[at - 1] in BLANK):
                break
            if c == ":":
                behind = text[at + 1 : at + 2]
                if not behind or behind in " \t\r\n" or (flow and behind in FLOW):
                    break
            at += 1
            if c not in BLANK:
                filled = at
        return filled

    def plain(self, parent: int, flow: bool) -> YamlNode:
        """A plain text; further lines of it have to stand further in than their parent."""
        begin, line = self.at, self.line
        end = self.plain_end(begin, flow)
        found = [self.text[begin:end]]
        self.at = end
        while True:
            self.blanks()
            if self.peek() != "\n":
                break
            at, breaks, first = self.at, 0, self.at
            while at < len(self.text) and self.text[at] in " \t\r\n":
                if self.text[at] == "\n":
                    breaks, first = breaks + 1, at + 1
                at += 1
            if at >= len(self.text) or self.text[at] == "#" or (not flow and at - first <= parent):
                break
            stop = self.plain_end(at, flow, False)
            if stop <= at or (at == first and self.mark(at)):
                break
            rest = self.text[stop : stop + 1024].lstrip(" \t")[:1]
            if not flow and rest == ":":
                break
            found.append(" " if breaks == 1 else "\n" * (breaks - 1))
            found.append(self.text[at:stop])
            self.to(stop)
            end = stop
        start = self.source.start
        return YamlNode(TEXT, line, "".join(found), "", start + begin, start + end)

    def quoted(self) -> YamlNode:
        """A text in quotes, whose lines are folded."""
        quote, begin, line, begun = self.peek(), self.at, self.line, self.begun
        found: list[str] = []
        at, run, text = begin + 1, begin + 1, self.text
        while True:
            while at < len(text) and text[at] != quote and text[at] != "\n" and text[at] != "\\":
                at += 1
            if at >= len(text):
                self.at, self.line, self.begun = begin, line, begun
                raise _NotYaml("a text in quotes is never closed")
            c = text[at]
            if c == quote:
                found.append(text[run:at])
                if quote == "'" and text[at + 1 : at + 2] == "'":
                    found.append("'")
                    at = run = at + 2
                    continue
                break
            if c == "\\" and quote == "'":
                at += 1
            elif c == "\\":
                found.append(text[run:at])
                at = run = self.escaped(at + 1, found)
            else:
                found.append(text[run:at].rstrip(" \t\r"))
                breaks, at = self.breaks(at)
                found.append(" " if breaks == 1 else "\n" * (breaks - 1))
                run = at
        self.to(at + 1)
        start = self.source.start
        return YamlNode(TEXT, line, "".join(found), quote, start + begin + 1, start + at)

    def breaks(self, at: int) -> tuple[int, int]:
        """How many lines end here, and where the next one that is not empty has its first character."""
        count = 0
        while at < len(self.text) and self.text[at] in " \t\r\n":
            if self.text[at] == "\n":
                count += 1
                if self.mark(at + 1):
                    self.to(at + 1)
                    raise _NotYaml("a document ends inside quotes")
            at += 1
        return count, at

    def escaped(self, at: int, found: list[str]) -> int:
        """What stands behind a backslash; where it ends."""
        c = self.text[at : at + 1]
        if c == "\r" and self.text[at + 1 : at + 2] == "\n":
            at, c = at + 1, "\n"
        if c == "\n":
            count, at = self.breaks(at)
            found.append("\n" * (count - 1))
            return at
        if c in ESCAPES:
            found.append(ESCAPES[c])
            return at + 1
        digits = self.text[at + 1 : at + 1 + HEX[c]].lower() if c in HEX else ""
        if not digits or len(digits) < HEX[c] or not set(digits) <= set(DIGITS):
            self.to(at)
            raise _NotYaml(f"\\{c} is no escape of YAML")
        number = int(digits, 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            self.to(at)
            raise _NotYaml(f"\\{c}{digits} is no character")
        found.append(character(number))
        return at + 1 + HEX[c]

    def block_text(self, parent: int) -> YamlNode:
        """``|`` keeps its lines, ``>`` folds them; + and − say what becomes of the last line ends, a digit
        how far the text is indented."""
        style, line = self.peek(), self.line
        self.at += 1
        keep, further = "", 0
        for _ in range(2):
            c = self.peek()
            if c in ("+", "-") and c and not keep:
                keep = c
                self.at += 1
            elif c in "123456789" and c and not further:
                further = int(c)
                self.at += 1
        if self.peek() not in ("", "\n") and self.peek() not in BLANK:
            raise _NotYaml(self.not_a_line())
        if not self.ends():
            raise _NotYaml(self.not_a_line())
        least = max(1, parent + 1)
        self.to(min(len(self.text), self.at + 1))
        indent = least + further - 1 if further else 0
        begin, at, end = self.at, self.at, self.at
        lines: list[str] = []
        text = self.text
        deepest = 0
        while at < len(text):
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            here = at
            while here < stop and text[here] == " " and (not indent or here - at < indent):
                here += 1
            bare = text[here:stop].rstrip("\r")
            if not bare:
                lines.append("")  # blank, or further in, which counts once the indentation is known
                deepest = max(deepest, here - at)
            else:
                if not indent:
                    indent = max(least, here - at, deepest)
                if here - at < indent:
                    break
                lines.append(bare)
                end = stop
            at = min(len(text), stop + 1)
        self.to(at)
        whole = at > begin and text[at - 1 : at] == "\n"
        start = self.source.start
        words = chomped(lines, style, keep, whole)
        return YamlNode(TEXT, line, words, style, start + begin, start + max(begin, end))

    # -- brackets ----------------------------------------------------------------------------------------
    def between(self, opened: int) -> str:
        """Pass blanks, lines and comments between brackets; the character that follows."""
        while self.ends() and self.at < len(self.text):
            self.to(self.at + 1)
            if self.mark(self.at):
                raise _NotYaml(f"a bracket of line {opened} is not closed before the document ends")
        if self.at >= len(self.text):
            raise _NotYaml(f"a bracket of line {opened} is never closed")
        return self.peek()

    def flow(self, depth: int) -> YamlNode:
        """A map or list in brackets, over as many lines as it likes."""
        if depth > DEEPEST:
            raise _NoMoreYaml("nested too deeply")
        opened = self.line
        closing = "}" if self.peek() == "{" else "]"
        node = YamlNode(MAP if closing == "}" else LIST, opened)
        self.at += 1
        while True:
            c = self.between(opened)
            if c == closing:
                break
            item = self.inside(depth + 1)
            paired = self.between(opened) == ":"
            value = YamlNode(TEXT, self.line)
            if paired or closing == "}":
                if item.kind != TEXT:
                    raise _NotYaml("a key that is a map or a list is not read here")
                if paired:
                    self.at += 1
                    if self.between(opened) not in ",]}":
                        value = self.inside(depth + 1)
                if not self.merges(item, value):
                    raise _NotYaml("<< takes a map, or a list of maps")
            if closing == "}":
                node.keys.append(item)
                node.items.append(value)
            elif paired:
                node.items.append(YamlNode(MAP, item.line, keys=[item], items=[value]))
            else:
                node.items.append(item)
            c = self.between(opened)
            if c == closing:
                break
            if c != ",":
                raise _NotYaml(f"a comma or a closing bracket was expected, got {c!r}")
            self.at += 1
        self.at += 1
        return self.filled(node)

    def inside(self, depth: int) -> YamlNode:
        """One node between brackets."""
        anchor = self.properties()
        c = self.between(self.line) if anchor else self.peek()
        if c in ("{", "["):
            node = self.flow(depth)
        elif c in ("'", '"') and c:
            node = self.quoted()
        elif c == "*":
            node = self.alias()
        elif c in NOT_FIRST or self.dash() or self.plain_end(self.at, True) <= self.at:
            raise _NotYaml(f"a value was expected, got {c!r}")
        else:
            node = self.plain(-1, True)
        if anchor:
            self.anchors[anchor] = node
        return node


def character(number: int) -> str:
    """The character of a number."""
    if number > 0xFFFF:
        rest = number - 0x10000
        return library.loads(f'"\\u{_hex(0xD800 + rest // 0x400)}\\u{_hex(0xDC00 + rest % 0x400)}"')
    return library.loads(f'"\\u{_hex(number)}"')


def _hex(number: int) -> str:
    return "".join(DIGITS[number // 16**place % 16] for place in (3, 2, 1, 0))


def chomped(lines: list[str], style: str, keep: str, whole: bool) -> str:
    """The lines of a block text as one: folded where they are to be, and with the line ends at its end that
    its mark keeps."""
    filled = len(lines)
    while filled and not lines[filled - 1]:
        filled -= 1
    found: list[str] = []
    for place in range(filled):
        line = lines[place]
        if place and line:
            before = place - 1
            while before >= 0 and not lines[before]:
                before -= 1
            empty = place - 1 - before
            flat = style == ">" and line[0] not in " \t" and before >= 0 and lines[before][0] not in " \t"
            ends = empty if flat or before < 0 else empty + 1
            found.append(" " if flat and not empty else "\n" * ends)
        found.append(line)
    ended = whole or filled < len(lines)
    if keep != "-" and filled and ended:
        found.append("\n")
    if keep == "+":
        found.append("\n" * (len(lines) - filled))
    return "".join(found)
