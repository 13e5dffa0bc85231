"""A prefix cache, executed: a radix tree over the tokens of prompts and answers, whose least recently used
leaves give way (SGLang's RadixAttention, arXiv:2312.07104 section 3).

Keys and values of a token depend on all tokens before it and on none after. So a prompt that begins like an
earlier one can use that part of its cache, and only the rest is prefilled.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.base import check
from engine.serving.events import draw


class PrefixNode:
    """Some tokens that follow those of the parent. Their caches are held together, or not at all."""

    def __init__(self, tokens: tuple[int, ...], parent: PrefixNode | None) -> None:
        self.tokens, self.parent, self.children = tokens, parent, {}
        self.used = 0  # when it was last part of a request

    def shared(self, tokens: tuple[int, ...]) -> int:
        """With how many of the node's tokens the given tokens begin."""
        if tokens[: len(self.tokens)] == self.tokens:
            return len(self.tokens)
        for count, (ours, theirs) in enumerate(zip(self.tokens, tokens)):
            if ours != theirs:
                return count
        return min(len(self.tokens), len(tokens))

    def split(self, count: int) -> PrefixNode:
        """Cut the node in two after ``count`` tokens. Returns the first part, which becomes the parent of the
        rest."""
        upper = PrefixNode(self.tokens[:count], self.parent)
        upper.used, upper.children = self.used, {self.tokens[count]: self}
        if self.parent is not None:
            self.parent.children[self.tokens[0]] = upper
        self.tokens, self.parent = self.tokens[count:], upper
        return upper


class PrefixCache:
    """Caches of tokens, at most ``capacity`` of them."""

    def __init__(self, capacity: float) -> None:
        check.non_negative(capacity=capacity)
        self.capacity, self.held, self.now, self.root = capacity, 0, 0, PrefixNode((), None)
        self.leaves: set[PrefixNode] = set()

    def serve(self, tokens: tuple[int, ...]) -> int:
        """How many of a request's first tokens are held. From now on all of its tokens are held, if they
        fit."""
        self.now += 1
        node, known = self.root, 0
        while known < len(tokens) and tokens[known] in node.children:
            child = node.children[tokens[known]]
            count = child.shared(tokens[known:])
            if count < len(child.tokens):
                child = child.split(count)
            node, known = child, known + count
            node.used = self.now
        rest = tokens[known:]
        if rest:
            leaf = PrefixNode(rest, node)
            leaf.used, node.children[rest[0]] = self.now, leaf
            self.leaves.add(leaf)
            self.leaves.discard(node)
            self.held += len(rest)
        self._evict()
        return known

    def _evict(self) -> None:
        """Drop the leaf that was used longest ago, again and again until what is held fits."""
        while self.held > self.capacity:
            leaf = min(self.leaves, key=lambda node: node.used)
            over = self.held - self.capacity
            if leaf.used == self.now and over < len(leaf.tokens):  # the request is too long: drop its end
                leaf.tokens = leaf.tokens[: int(len(leaf.tokens) - over)]
                self.held = sum(len(node.tokens) for node in self.nodes())
                return
            assert leaf.parent is not None
            del leaf.parent.children[leaf.tokens[0]]
            self.held -= len(leaf.tokens)
            self.leaves.remove(leaf)
            if not leaf.parent.children and leaf.parent is not self.root:
                self.leaves.add(leaf.parent)

    def nodes(self) -> list[PrefixNode]:
        """All nodes but the root."""
        found, look = [], [self.root]
        while look:
            children = look.pop().children.values()
            found.extend(children)
            look.extend(children)
        return found


# -- a trace of conversations --------------------------------------------------------------------------------
class Chats(NamedTuple):
    """Conversations that take turns: all begin with the same system prompt, and each prompt holds what was
    said before."""

    chats: int  # at once; one that ends is followed by a new one
    turns: int  # of each
    system: int  # tokens of the system prompt
    question: int  # tokens of each question …
    answer: int  # … and of its answer
    seed: int = 1


class Turn(NamedTuple):
    """One request of a trace: its tokens with those of the answer, and how many of them are the prompt."""

    tokens: tuple[int, ...]
    prompt: int


def turns(of: Chats, count: int) -> list[Turn]:
    """``count`` requests, each from a conversation that is drawn at random. A token is a number that belongs
    to one place in one conversation, or to one place in the system prompt."""
    check.whole(chats=of.chats, turns=of.turns, count=count)
    system, state = tuple(range(of.system)), 9973 * (of.seed + 1)
    chats: list[tuple[tuple[int, ...], int]] = [((), 0)] * of.chats
    fresh, found = of.system, []
    for _ in range(count):
        state = draw(state)
        place = state % of.chats
        said, turn = chats[place]
        prompt = (said or system) + tuple(range(fresh, fresh + of.question))
        fresh += of.question
        whole = prompt + tuple(range(fresh, fresh + of.answer))
        fresh += of.answer
        found.append(Turn(whole, len(prompt)))
        chats[place] = (whole, turn + 1) if turn + 1 < of.turns else ((), 0)
    return found


def hits(trace: list[Turn], capacity: float) -> list[int]:
    """The tokens of each prompt that a cache of this capacity holds; the last token of a prompt is computed
    in any case, because the answer's first token comes from it."""
    cache = PrefixCache(capacity)
    return [min(cache.serve(turn.tokens), turn.prompt - 1) for turn in trace]


def hit_rate(trace: list[Turn], capacity: float) -> float:
    """The share of all tokens of prompts that is found in the cache, after the first quarter of the trace."""
    begin = len(trace) // 4
    found = hits(trace, capacity)[begin:]
    return sum(found) / sum(turn.prompt for turn in trace[begin:])
