"""A YAML file as entries: ``a:`` with ``b: 1`` indented below it gives the key ``a.b``.

The part of YAML that configurations are written in, line by line: maps by indentation, lists of items,
one-line maps and lists in brackets, quotes, comments. Anchors, tags, folded texts and several documents are
not understood, and said to be so.
"""

from __future__ import annotations

from engine.frameworks.settings import Entry, Fault
from engine.launch.texts import Source
from engine.launch.toml import uncommented

QUOTES = " '\""
MARKS = ("&", "*", "!", "|", ">", "%", "?")


def read(source: Source) -> tuple[list[Entry], list[Fault]]:
    """The entries of a YAML text, and a line for each that is not understood."""
    entries: list[Entry] = []
    faults: list[Fault] = []
    stack: list[tuple[int, str]] = []  # (indentation, key) of the maps at hand
    at, skipping = source.start, -1
    counts: dict[str, int] = {}
    for number, line in enumerate(source.text.splitlines(keepends=True), source.first_line):
        begin, at = at, at + len(line)
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if not bare or bare[0] == "#" or bare in ("---", "..."):
            continue
        if skipping >= 0 and indent > skipping:
            continue
        skipping = -1
        item = False
        while bare.startswith("- ") or bare == "-":
            while stack and stack[-1][0] >= indent and stack[-1][1].isdigit():
                stack.pop()
            while stack and stack[-1][0] > indent:
                stack.pop()
            parent = ".".join(key for _, key in stack)
            place = counts.get(parent, 0)
            counts[parent] = place + 1
            stack.append((indent, str(place)))
            moved = len(bare) - len(bare[1:].lstrip())
            bare, indent, item = bare[1:].lstrip(), indent + moved, True
        key, colon, rest = _pair(bare)
        if not colon:
            if item and bare:
                path = ".".join(name for _, name in stack)
                entries.append(_entry(path, bare, source, number, begin, line))
            elif bare:
                faults.append(Fault(source.name, number, f"not a line of YAML: {bare[:60]}"))
            continue
        while stack and stack[-1][0] >= indent and not (item and stack[-1][0] < indent):
            stack.pop()
        path = ".".join([*(name for _, name in stack), key])
        value = uncommented(rest.strip())
        if not value:
            stack.append((indent, key))
        elif value[0] in MARKS:
            skipping = indent
            faults.append(Fault(source.name, number, f"{key}: {value[:20]} is YAML that is not read here"))
        elif value[0] in "{[" and value[-1] in "}]":
            entries += _flow(path, value, source.name, number)
        else:
            entries.append(_entry(path, value, source, number, begin, line))
    return entries, faults


def _pair(bare: str) -> tuple[str, str, str]:
    """Key, colon and the rest of a line; no colon where it is not a pair."""
    if bare[:1] in ("'", '"'):
        end = bare.find(bare[0], 1)
        if end > 0 and bare[end + 1 : end + 2] == ":":
            return bare[1:end], ":", bare[end + 2 :]
        return bare, "", ""
    if bare.endswith(":") and ": " not in bare:
        return bare[:-1], ":", ""
    key, colon, rest = bare.partition(": ")
    return (key.strip(), ":", rest) if colon and key.strip() and " #" not in key else (bare, "", "")


def _entry(path: str, value: str, source: Source, number: int, begin: int, line: str) -> Entry:
    value, kept = uncommented(value), uncommented(line)
    start = begin + len(kept) - len(value)  # it ends the line, but for a comment
    text = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    return Entry(path, text, source.name, number, start, start + len(value))


def _flow(path: str, value: str, name: str, number: int) -> list[Entry]:
    """A map or list on one line; what is nested in it stays text."""
    found, pieces, depth, piece = [], [], 0, ""
    for c in value[1:-1]:
        depth += (c in "{[") - (c in "}]")
        if c == "," and not depth:
            pieces.append(piece)
            piece = ""
        else:
            piece += c
    pieces.append(piece)
    for place, piece in enumerate(p.strip() for p in pieces if p.strip()):
        key, colon, rest = piece.partition(":")
        if value[0] == "{" and colon:
            found.append(Entry(f"{path}.{key.strip(QUOTES)}", rest.strip(QUOTES), name, number))
        else:
            found.append(Entry(f"{path}.{place}", piece.strip(QUOTES), name, number))
    return found
