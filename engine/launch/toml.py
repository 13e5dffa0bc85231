"""A TOML file as entries: ``[a.b]`` and ``c = 1`` give the key ``a.b.c``.

Read line by line, with the values as text. Understood is what configurations use: sections, dotted keys,
texts in either quotes, numbers, truths and arrays, which may go over several lines.
"""

from __future__ import annotations

from engine.frameworks.settings import Entry, Fault
from engine.launch.texts import Source

QUOTES = "'\""
BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.\"' ")


def read(source: Source) -> tuple[list[Entry], list[Fault]]:
    """The entries of a TOML text, and a line for each that is not TOML."""
    entries, faults, section = [], [], ""
    lines = source.text.splitlines(keepends=True)
    at, number = source.start, 0
    while number < len(lines):
        line, begin, first = lines[number], at, source.first_line + number
        at += len(line)
        number += 1
        bare = line.strip()
        if not bare or bare[0] == "#":
            continue
        if bare[0] == "[":
            section = uncommented(bare).strip("[] \t").replace('"', "").replace("'", "").replace(" ", "")
            continue
        key, equals, rest = line.partition("=")
        if not equals or not key.strip() or not set(key.strip()) <= BARE:
            faults.append(Fault(source.name, first, f"not a line of TOML: {bare[:60]}"))
            continue
        value = uncommented(rest.strip())
        start = begin + len(key) + 1 + len(rest) - len(rest.lstrip())
        depth = value.count("[") - value.count("]") if value.startswith("[") else 0
        pieces = [value]
        while depth > 0 and number < len(lines):
            pieces.append(uncommented(lines[number].strip()))
            at += len(lines[number])
            number += 1
            depth += pieces[-1].count("[") - pieces[-1].count("]")
        name = key.strip().replace('"', "").replace("'", "").replace(" ", "")
        full = f"{section}.{name}" if section else name
        stop = start + len(value) if len(pieces) == 1 else -1
        text = (
            value[1:-1]
            if len(value) > 1 and value[0] in QUOTES and value[-1] == value[0]
            else " ".join(pieces)
        )
        entries.append(Entry(full, text, source.name, first, start if stop >= 0 else -1, stop))
    return entries, faults


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
