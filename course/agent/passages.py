"""The sections of the built course, and which of them speak of a question: the entries of the site's own
search, ranked by how rare the words are that they share with it (BM25), with titles and tags counted more."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import cache
from html import unescape
from typing import NamedTuple

from engine.base.built import SITE

INDEX = SITE / "search" / "search_index.json"
SPOKEN = (
    SITE / "assets" / "js" / "spoken.js"
)  # what people type, as the course says it; the page's search has it, too
SATURATION, LENGTH = 1.2, 0.6  # BM25's k and b
WEIGHTS = {"title": 4, "tags": 4, "text": 1}  # how often a word counts in each field
LONGEST = 6000  # characters of a passage
WORD = re.compile(r"[a-z0-9]+(?:[.'][a-z0-9]+)*")
NOTHING = {
    *re.findall(
        r"\w+", "a an and are as at be by can do does for from how i if in is it its me my of on or our"
    ),
    *re.findall(r"\w+", "the to we what when which why with you your"),
}
ENDINGS = re.compile(r"(?<=[a-z]{3})(?:ies|es|s)$")


class Passage(NamedTuple):
    """A section: its title, its page's address within the course, its text, and how well it fits."""

    title: str
    address: str
    text: str
    score: float


class _Section(NamedTuple):
    title: str
    address: str
    text: str
    words: Counter[str]
    boost: float


def search(query: str, limit: int = 5) -> list[Passage]:
    """The passages that fit a question best, the best first; ValueError where no course is built."""
    if not INDEX.is_file():
        raise ValueError(
            "this installation does not have the built course, so its lessons cannot be searched"
        )
    sections, rarity, mean = _indexed()
    asked = [word for word in dict.fromkeys(words(said(query))) if word in rarity]
    found = []
    for section in sections:
        size = SATURATION * (1.0 - LENGTH + LENGTH * section.words.total() / mean)
        shared = [(word, section.words[word]) for word in asked if word in section.words]
        score = sum(rarity[word] * count * (SATURATION + 1) / (count + size) for word, count in shared)
        score *= section.boost * (len(shared) / max(1, len(asked))) ** 0.5
        if score > 0.0:
            found.append((score, section))
    found.sort(key=lambda one: -one[0])
    return [Passage(one.title, one.address, one.text, round(score, 2)) for score, one in found[:limit]]


def words(text: str) -> list[str]:
    """The words of a text that say something, without the endings of a plural."""
    return [ENDINGS.sub("", word) for word in WORD.findall(text.lower()) if word not in NOTHING]


def said(query: str) -> str:
    """A question in the course's words: `OOM` is out of memory, and `bandwith` bandwidth."""
    for pattern, words_of_ours in _spoken():
        query = pattern.sub(words_of_ours, query)
    return query


@cache
def _spoken() -> list[tuple[re.Pattern[str], str]]:
    if not SPOKEN.is_file():
        return []
    _, _, table = SPOKEN.read_text(encoding="utf-8").partition("spoken = ")
    known: dict[str, str] = json.loads(table.partition(";\n")[0])
    return [(re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE), ours) for pattern, ours in known.items()]


@cache
def _indexed() -> tuple[list[_Section], dict[str, float], float]:
    docs = json.loads(INDEX.read_text(encoding="utf-8"))["docs"]
    titles = {doc["location"]: _plain(doc["title"]) for doc in docs}
    sections = []
    for doc in docs:
        page = doc["location"].partition("#")[0]
        title, text = _plain(doc["title"]), _plain(doc["text"])
        above = titles.get(page, title)
        counted: Counter[str] = Counter()
        for field, several in (("title", title), ("text", text), ("tags", " ".join(doc.get("tags", [])))):
            for word in words(several):
                counted[word] += WEIGHTS[field]
        name = title if title == above else f"{above}: {title}"
        sections.append(
            _Section(name, doc["location"], text[:LONGEST], counted, min(doc.get("boost", 1.0), 1.0))
        )
    held = Counter(word for section in sections for word in section.words)
    rarity = {word: math.log(1.0 + (len(sections) - n + 0.5) / (n + 0.5)) for word, n in held.items()}
    return sections, rarity, sum(section.words.total() for section in sections) / len(sections)


def _plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())
