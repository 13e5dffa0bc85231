"""Four requests, and the radix tree of prefixes that they leave: what each finds in it, and what it has to
compute."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture
from engine.serving.prefix_cache import PrefixCache, PrefixNode

SYSTEM, QUESTION, ANSWER, OTHER = 1000, 100, 300, 500  # tokens
HIGH = 26.0
NAMES = {  # where a node begins and how long it is -> its name
    "system": "system prompt",
    "a1": "Ann, turn 1",
    "a2": "Ann, turn 2",
    "b1": "Ben, turn 1",
    "c1": "a program without it",
}


class Asked(NamedTuple):
    """A request: whose, its prompt's tokens, and how many of them were found."""

    name: str
    prompt: int
    found: int


def run() -> tuple[PrefixCache, list[Asked], dict[int, str]]:
    """The tree after the four requests, what each found, and a node's name by its first token."""
    fresh = 0

    def some(count: int) -> tuple[int, ...]:
        nonlocal fresh
        fresh += count
        return tuple(range(fresh - count, fresh))

    cache, asked = PrefixCache(1e9), []
    system = some(SYSTEM)
    names = {system[0]: NAMES["system"]}

    def ask(name: str, key: str, before: tuple[int, ...], question: int) -> tuple[int, ...]:
        prompt = before + some(question)
        names[prompt[len(before)]] = NAMES[key]
        whole = prompt + some(ANSWER)
        asked.append(Asked(name, len(prompt), min(cache.serve(whole), len(prompt))))
        return whole

    first = ask("Ann asks", "a1", system, QUESTION)
    ask("Ben asks", "b1", system, QUESTION)
    ask("Ann asks again", "a2", first, QUESTION)
    ask("a program asks", "c1", (), OTHER)
    return cache, asked, names


def draw(width: float) -> Picture:
    cache, asked, names = run()
    found = sum(each.found for each in asked)
    prompts = sum(each.prompt for each in asked)
    picture = Picture(
        f"Four prompts of {prompts:,} tokens in all find {found:,} of them in the tree.",
        "A tree that grows to the right: a system prompt, from which two conversations branch off, one of "
        "them with a second turn; and another branch that shares nothing.",
        width,
    )
    longest = max(len(each) for each in _paths(cache.root))
    scale = (width - 2) / longest
    y = _below(picture, cache.root, names, 0.0, 4.0, scale) + 8
    for each in asked:
        line = f"{each.name}: {each.found:,} tokens found, {each.prompt - each.found:,} computed"
        picture.text(0, y + 8, line)
        picture.tell(line)
        y += 18
    return picture


def _paths(node: PrefixNode) -> list[tuple[int, ...]]:
    ends = [path for child in node.children.values() for path in _paths(child)] or [()]
    return [node.tokens + path for path in ends]


def _below(
    picture: Picture, node: PrefixNode, names: dict[int, str], left: float, y: float, scale: float
) -> float:
    """Draw what hangs on a node, from this height down; returns the height below it."""
    for child in node.children.values():
        long = len(child.tokens) * scale
        if node.tokens:
            picture.line((left, y + HIGH / 2 - 2), (left, y + HIGH / 2 + 2), ink="ink-faint")
        name = names[child.tokens[0]]
        picture.box(left, y, long - 3, HIGH, "hbm-pale", name, tokens=len(child.tokens))
        picture.tell(f"{name}: {len(child.tokens):,} tokens")
        below = _below(picture, child, names, left + long, y, scale)
        y = max(below, y + HIGH + 8)
    return y
