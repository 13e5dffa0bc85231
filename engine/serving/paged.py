"""A cache in blocks that hold keys and values of attention in one layer and a state of fixed size in
another, as vLLM divides it for models of both kinds.

A block of attention is made as long as it takes to be as large as one layer's state, in whole 16 tokens;
layers are divided into groups of equal size, of one kind each, and a block belongs to all layers of a group.
So 16 layers of attention beside 48 of states, as in Qwen3.6-27B, are four groups: each request takes three
blocks for its states, and one for each 784 tokens. Held against vllm-project/recipes pull requests 551 (856
blocks) and 810 (377,456 tokens); vLLM's own words for it are in vllm-project/vllm issue 49064. The rounding
and the grouping are as remembered of vllm/v1/core/kv_cache_utils.py.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.base import ops
from engine.mechanism.shape import Shape
from engine.serving import inference

KERNEL = 16  # tokens that an attention kernel's block has at least
NEARLY = 1.25  # kinds whose layers are nearly as many are not divided


class CacheBlocks(NamedTuple):
    """The blocks of one GPU."""

    each_bytes: float
    tokens: int  # of a block of attention, in all layers of a group
    attention: int  # groups with attention …
    states: int  # … and groups with states: blocks that a request takes whatever its length

    def of_request(self, tokens: int) -> int:
        """CacheBlocks that a request of this many tokens takes."""
        return -(-tokens // self.tokens) * self.attention + self.states


def has_states(size: Shape) -> bool:
    """Whether some layers keep a state of fixed size instead of a cache, beside others that have a cache."""
    kinds = [(_state(kind), float(kind.cached)) for kind in size.attended]
    return any(state and not cached for state, cached in kinds) and any(cached for _, cached in kinds)


def _state(kind) -> float:
    return float(getattr(kind.mixer, "state_bytes", 0.0)) if kind.mixer is not None else 0.0


def blocks(size: Shape, value: float, tp: float, pp: float, more: float = 0.0) -> CacheBlocks:
    """The blocks of a model with both kinds of layers, for keys and values of ``value`` bytes each, where
    ``more`` layers with attention draft tokens."""
    depth = float(size.depth)
    attention = [kind for kind in size.attended if float(kind.cached)]
    stateful = [kind for kind in size.attended if _state(kind) and not float(kind.cached)]
    shards = float(inference.kv_shards(size, tp))
    a_token = max(float(kind.cached) for kind in attention) * value / shards
    state = max(_state(kind) for kind in stateful) / tp
    tokens = max(KERNEL, int(ops.ceil(state / a_token / KERNEL)) * KERNEL)
    counts = [sum(float(kind.share) for kind in kinds) * depth / pp for kinds in (attention, stateful)]
    counts[0] = counts[0] + more
    least, most = min(counts), max(counts)
    group = most if most < NEARLY * least else least
    groups = [max(1, int(ops.ceil(count / group - 1e-9))) for count in counts]
    return CacheBlocks(tokens * a_token * group, tokens, groups[0], groups[1])
