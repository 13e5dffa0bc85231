"""What was pasted or dropped, as sources: a name, a text, and where each begins.

Nothing is lost: what cannot be read is refused as a whole, in one line that says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.frameworks.settings import Fault

LONGEST = 200_000  # characters of one text
MOST_TEXTS = 64
PASTED = "pasted"
FENCE = "```"


@dataclass(frozen=True)
class Source:
    """One text and what it is called; ``first_line`` is above 1 for a part of a larger text, and ``start`` is
    where that part begins in ``whole``."""

    name: str
    text: str
    first_line: int = 1
    start: int = 0
    whole: str = ""  # the text that was given, for one that is a part of it
    file: str = ""  # what a script writes this part to

    @property
    def given(self) -> str:
        """The text as the reader gave it, even where only a part of it is read."""
        return self.whole or self.text


Texts = str | Iterable[str | tuple[str, str]] | Mapping[str, str]


def sources(texts: Texts) -> tuple[list[Source], list[Fault]]:
    """Every text that can be read, in parts where it is a paste of several, and a line for each other."""
    found, faults = [], []
    given = _named(texts)
    if len(given) > MOST_TEXTS:
        words = f"at most {MOST_TEXTS} texts are read at once, got {len(given)}; the rest was left out"
        faults.append(Fault("", 0, words))
    for name, text in given[:MOST_TEXTS]:
        words = wrong_with(text)
        if words:
            faults.append(Fault(name, 0, words))
        else:
            several = parts(name, text)
            found += several
            if not several:
                faults.append(Fault(name, 0, "nothing stands between the fences of this text"))
    return found, faults


def _named(texts: Texts) -> list[tuple[str, str]]:
    if isinstance(texts, str):
        return [(PASTED, texts)]
    if isinstance(texts, Mapping):
        return [(str(name), _text(text)) for name, text in texts.items()]
    found = []
    try:
        each = list(texts)
    except TypeError:
        raise ValueError(f"texts must be a text, several, or texts by name; got {texts!r}") from None
    for number, one in enumerate(each, 1):
        if isinstance(one, tuple) and len(one) == 2:
            found.append((str(one[0]), _text(one[1])))
        else:
            found.append((PASTED if len(each) == 1 else f"{PASTED} {number}", _text(one)))
    return found


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(
        f"texts must be a text, several, or texts by name; got {type(value).__name__} among them"
    )


def wrong_with(text: str) -> str:
    """Why a text is not read at all; an empty text where it is."""
    if len(text) > LONGEST:
        return (
            f"a launch file has a few thousand characters, this one has {len(text):,}: nothing of it was read"
        )
    if not text.strip():
        return "this text is empty"
    if "\0" in text or "\ufffd" in text[:1000] or sum(c < " " and c not in "\t\n\r\f\v" for c in text) > 8:
        return "this is not a text (a checkpoint, an archive or a picture?): nothing of it was read"
    return ""


def parts(name: str, text: str) -> list[Source]:
    """A paste in its parts: blocks between fences, as in an issue, and JSON objects that begin and end at the
    left margin between other lines. A plain file is one part."""
    bounds = _fenced(text) or [(0, len(text))]
    found = []
    for start, stop in bounds:
        for a, b in _objects(text, start, stop):
            if text[a:b].strip():
                found.append(Source(name, text[a:b], 1 + text.count("\n", 0, a), a, text))
    return found


def _fenced(text: str) -> list[tuple[int, int]]:
    """What stands between lines of three back-ticks; nothing where there are none."""
    found, at, begun = [], 0, -1
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith(FENCE):
            if begun >= 0:
                found.append((begun, at))
                begun = -1
            else:
                begun = at + len(line)
        at += len(line)
    if begun >= 0:
        found.append((begun, len(text)))
    return found


def _objects(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """The part cut where a line that opens with a brace begins, and behind the brace that closes it. A brace
    inside a here-document belongs to the script."""
    found, at, begun, inside, until = [], start, start, False, ""
    for line in text[start:stop].splitlines(keepends=True):
        if until:
            until = "" if line.strip() == until else until
        elif inside:
            if line.rstrip() in ("}", "},"):
                found.append((begun, at + len(line)))
                begun, inside = at + len(line), False
        elif line.rstrip() == "{" or line.startswith('{"'):
            found.append((begun, at))
            begun, inside = at, not line.rstrip().endswith("}")
            if not inside:
                found.append((begun, at + len(line)))
                begun = at + len(line)
        elif "<<" in line and "<<<" not in line:
            until = line.split("<<", 1)[1].lstrip("-").strip().split(" ")[0].strip("'\";|>")
        at += len(line)
    return [*found, (begun, stop)]
