"""A cache of entries that stand for several tokens each, as vLLM lays it out for DeepSeek-V4.

All layers share blocks of one size: as large as the entries of 256 tokens, with the keys of the indexers, of
all layers together. Beside them a request has blocks of 64 tokens of the window, and blocks of 4 and of 8
tokens for what the compressors still need, as many of each as a step's tokens take: with asynchronous
scheduling two steps are under way. So most of what a request of ordinary length takes does not depend on its
length.

The sizes are those of vllm-project/vllm issue 54703 (V4-Flash: five groups of 1,002,240, 823,680, 786,240,
870,912 and 656,640 bytes), which this reproduces to the byte, and issue 53961 needs 23.32 GiB for a V4-Pro of
1,048,576 tokens and steps of 16,384, which are 17,434 blocks. Known in fp8 alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.base import ops
from engine.catalog import models

if TYPE_CHECKING:
    from engine.catalog.models import Model

BLOCK, WINDOW_BLOCK = 256, 64  # tokens
ALIGNED = 576  # bytes that the part of a layer in a block is a multiple of
TURNED, SCALES = 64, 8  # values of a key that stay in 16 bits; bytes of the scales of the others
INDEX_SCALE, WIDE = 4, 4  # bytes of a scale; of a value in fp32
STATE_BLOCKS = {1: 8, 2: 4}  # tokens of a compressor's block, by how many stretches its entries are made of
UNDER_WAY = 2  # steps


class EntryBlocks(NamedTuple):
    """The blocks of one GPU: bytes of each, how many groups there are for the window, and for compressors the
    tokens that each needs and those of a block."""

    each_bytes: float
    windows: int
    window: int
    compressors: tuple[tuple[int, int], ...]

    def of_request(self, tokens: int, step: int) -> int:
        """Blocks that a request of this many tokens takes, in steps of at most so many."""
        found = -(-tokens // BLOCK) + self.windows * behind(tokens, step, self.window, WINDOW_BLOCK)
        for needed, block in self.compressors:
            found = found + behind(tokens, step, needed, block)
        return found


def behind(tokens: int, step: int, needed: int, block: int) -> int:
    """Blocks for the last ``needed`` tokens and for those of the steps under way."""
    return -(-min(needed - 1 + UNDER_WAY * step, tokens) // block) + 1


def compresses(model: Model) -> bool:
    """Whether some layers keep entries that stand for several tokens."""
    return any(getattr(parts[0], "ratio", 0) for _, parts in models.blocks(model))


def aligned(size: float) -> float:
    """A layer's part of a block."""
    return float(ops.ceil(size / ALIGNED)) * ALIGNED


def blocks(model: Model, pp: float) -> EntryBlocks:
    """The blocks of a model with such layers; a pipeline's stages have an even part of the layers."""
    entries, windows, window = 0.0, 0.0, 1
    states: dict[
        int, tuple[int, float]
    ] = {}  # by stretches: the tokens that are needed, and bytes of a block
    for count, parts in models.blocks(model):
        kind = parts[0]
        width = float(kind.head_dim) + TURNED + SCALES  # in 8 bits, but for what is turned
        windows = windows + float(count) * aligned(WINDOW_BLOCK * width)
        window = max(window, int(kind.window))
        if not kind.ratio:
            continue
        entries = entries + float(count) * aligned(BLOCK / kind.ratio * width)
        stretches = int(kind.overlaps)
        block = STATE_BLOCKS[stretches]
        each = aligned(block * 2 * stretches * float(kind.head_dim) * WIDE)
        if kind.index_dim:
            entries = entries + float(count) * aligned(
                BLOCK / kind.ratio * (float(kind.index_dim) + INDEX_SCALE)
            )
            each = each + aligned(block * 2 * stretches * float(kind.index_dim) * WIDE)
        before = states[stretches][1] if stretches in states else 0.0
        states[stretches] = (stretches * int(kind.ratio), before + float(count) * each)
    groups = max(1, int(ops.ceil(windows / entries)))
    found = []
    for stretches, (needed, size) in states.items():
        found += [(needed, STATE_BLOCKS[stretches]) for _ in range(max(1, int(ops.ceil(size / entries))))]
    return EntryBlocks(entries / pp, groups, window, tuple(found))
