"""PyTorch's caching allocator for CUDA memory, executed: sizes, pools, best fit, splitting, merging, and
running out of memory.

The policy of c10/cuda/CUDACachingAllocator.cpp with its constants (c10/core/AllocatorConfig.h, PyTorch 2.13),
for one stream. Written as a program for the page (see engine/base/program.py): a block is a row of numbers,
identified by its index in the list of all blocks, and neighbours in a segment are linked. A pool's cache is
two lists in the same order: the indices of the free blocks and their sizes. Leaves out other streams, private
pools of CUDA graphs, max_split_size_mb, garbage collection, and the memory of the CUDA context itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

from engine.base.units import MIB

MIN_BLOCK = 512  # kMinBlockSize: every size is rounded up to a multiple of it
SMALL = 1 * MIB  # kSmallSize: requests up to this size go to the small pool
SMALL_SEGMENT = 2 * MIB  # kSmallBuffer: segment size of the small pool
LARGE_SEGMENT = 20 * MIB  # large_segment_size: segment size for requests below MIN_OWN
MIN_OWN = 10 * MIB  # kMinLargeAlloc: requests from this size on get a segment of their own size
ROUND_LARGE = 2 * MIB  # kRoundLarge: such sizes are rounded up to a multiple of this

SIZE, START, SEGMENT, BEFORE, AFTER, STATE, KIND = range(7)  # columns of a block
FREE, USED, UNMAPPED = range(3)  # states of a block
NUMBERS, SIZES = range(2)  # rows of a pool's cache
POOL, FIRST, ALIVE = range(3)  # columns of a segment
RESERVED, ALLOCATED, MALLOCS, FREES, RETRIES, CAPACITY, EXPANDABLE = range(7)  # columns of the allocator
NONE = -1


def rounded_bytes(requested_bytes: float) -> int:
    """The block size for a request: a multiple of 512 bytes (round_size)."""
    return max(MIN_BLOCK, MIN_BLOCK * math.ceil(requested_bytes / MIN_BLOCK))


def segment_bytes(size_bytes: int) -> float:
    """The segment size requested from the driver when no cached block fits (get_allocation_size)."""
    if size_bytes <= SMALL:
        return SMALL_SEGMENT
    if size_bytes < MIN_OWN:
        return LARGE_SEGMENT
    return ROUND_LARGE * math.ceil(size_bytes / ROUND_LARGE)


def pool_of(size_bytes: int) -> int:
    """0 for the small pool, 1 for the large one."""
    return 0 if size_bytes <= SMALL else 1


def page_bytes(pool: int) -> float:
    """The step in which an expandable segment grows and shrinks."""
    return SMALL_SEGMENT if pool == 0 else LARGE_SEGMENT


def splits(pool: int, expandable: float, remaining_bytes: float) -> bool:
    """Whether the remainder of a block becomes a separate block (should_split)."""
    if pool == 0 or expandable > 0:
        return remaining_bytes >= MIN_BLOCK
    return remaining_bytes > SMALL


# -- blocks --------------------------------------------------------------------------------------------------
def add_block(
    blocks: list[list[Any]], size: float, start: float, segment: int, before: int, after: int, state: int
) -> int:
    """Add a block between two neighbours; return its index."""
    number = len(blocks)
    blocks.append([size, start, segment, before, after, state, 0])
    if before >= 0:
        blocks[before][AFTER] = number
    if after >= 0:
        blocks[after][BEFORE] = number
    return number


def add_segment(
    segments: list[list[Any]], blocks: list[list[Any]], pool: int, size: float, state: int
) -> int:
    """Add a segment that is one block; return the block's index."""
    number = len(segments[POOL])
    block = add_block(blocks, size, 0, number, NONE, NONE, state)
    segments[POOL].append(pool)
    segments[FIRST].append(block)
    segments[ALIVE].append(1)
    return block


def is_lower(block: list[float], other: list[float]) -> bool:
    """Whether a block is at a lower address than another."""
    if block[SEGMENT] != other[SEGMENT]:
        return block[SEGMENT] < other[SEGMENT]
    return block[START] < other[START]


def put_in(blocks: list[list[Any]], cached: list[list[Any]], number: int) -> None:
    """Add a free block to the cache, ordered by size, then by address."""
    block, numbers, sizes = blocks[number], cached[NUMBERS], cached[SIZES]
    size = block[SIZE]
    place = bisect_left(sizes, size)
    while place < len(sizes) and sizes[place] == size and is_lower(blocks[numbers[place]], block):
        place += 1
    numbers.insert(place, number)
    sizes.insert(place, size)
    block[STATE] = FREE


def take_out(blocks: list[list[Any]], cached: list[list[Any]], number: int) -> None:
    """Remove a block from the cache."""
    numbers, sizes = cached[NUMBERS], cached[SIZES]
    place = bisect_left(sizes, blocks[number][SIZE])
    while numbers[place] != number:
        place += 1
    numbers.pop(place)
    sizes.pop(place)


def join(blocks: list[list[Any]], segments: list[list[Any]], cached: list[list[Any]], number: int) -> None:
    """Merge a free or unmapped block with neighbours in the same state, which then no longer exist
    (try_merge_blocks)."""
    block = blocks[number]
    before, after, state = block[BEFORE], block[AFTER], block[STATE]
    if before >= 0 and blocks[before][STATE] == state:
        other = blocks[before]
        if state == FREE:
            take_out(blocks, cached, before)
        block[SIZE] += other[SIZE]
        block[START], block[BEFORE] = other[START], other[BEFORE]
        if block[BEFORE] >= 0:
            blocks[block[BEFORE]][AFTER] = number
        else:
            segments[FIRST][block[SEGMENT]] = number
    if after >= 0 and blocks[after][STATE] == state:
        other = blocks[after]
        if state == FREE:
            take_out(blocks, cached, after)
        block[SIZE] += other[SIZE]
        block[AFTER] = other[AFTER]
        if block[AFTER] >= 0:
            blocks[block[AFTER]][BEFORE] = number


def cut(blocks: list[list[Any]], number: int, size: float, state: int) -> int:
    """Split off what follows the first ``size`` bytes of a block; return the new block's index."""
    block = blocks[number]
    rest = add_block(
        blocks, block[SIZE] - size, block[START] + size, block[SEGMENT], number, block[AFTER], state
    )
    block[SIZE] = size
    return rest


def extent(blocks: list[list[Any]], number: int) -> float:
    """A block's size including the unmapped space after it."""
    block = blocks[number]
    after = block[AFTER]
    return block[SIZE] + (blocks[after][SIZE] if after >= 0 and blocks[after][STATE] == UNMAPPED else 0)


def best_fit(blocks: list[list[Any]], cached: list[list[Any]], size: int, expandable: float) -> int:
    """The position in the cache of the smallest block that is large enough, −1 if there is none. A block that
    can grow counts with the size that it could grow to."""
    numbers = cached[NUMBERS]
    place, last = bisect_left(cached[SIZES], size), len(numbers) - 1
    if place > last:
        return NONE
    while (
        expandable > 0
        and place < last
        and extent(blocks, numbers[place + 1]) < extent(blocks, numbers[place])
    ):
        place += 1
    return place


# -- the driver ----------------------------------------------------------------------------------------------
def new_segment(
    state: list[Any], segments: list[list[Any]], blocks: list[list[Any]], cached: list[list[Any]], size: int
) -> int:
    """cudaMalloc: make a segment that is one free block. Returns the block's index, or -1 if the GPU has no
    room."""
    asked = segment_bytes(size)
    if state[RESERVED] + asked > state[CAPACITY]:
        return NONE
    state[RESERVED] += asked
    state[MALLOCS] += 1
    block = add_segment(segments, blocks, pool_of(size), asked, FREE)
    put_in(blocks, cached, block)
    return block


def mapped(
    state: list[Any],
    segments: list[list[Any]],
    blocks: list[list[Any]],
    cached: list[list[Any]],
    block: int,
    size: float,
) -> int:
    """Map pages to the front of an unmapped block. Returns the free block that this part now belongs to, or
    -1 if there is no room."""
    page = page_bytes(segments[POOL][blocks[block][SEGMENT]])
    asked = page * math.ceil(size / page)
    if state[RESERVED] + asked > state[CAPACITY]:
        return NONE
    state[RESERVED] += asked
    state[MALLOCS] += 1
    if asked < blocks[block][SIZE]:
        cut(blocks, block, asked, UNMAPPED)
    blocks[block][STATE] = FREE
    join(blocks, segments, cached, block)
    put_in(blocks, cached, block)
    return block


def has_room(blocks: list[list[Any]], block: int, size: int) -> bool:
    """Whether the free and unmapped blocks from this block on have enough address space."""
    room = 0
    while room < size and block >= 0 and blocks[block][STATE] != USED:
        room += blocks[block][SIZE]
        block = blocks[block][AFTER]
    return room >= size


def growing_block(segments: list[list[Any]], blocks: list[list[Any]], pool: int, size: int) -> int:
    """The lowest place in the pool's expandable segment where this many bytes are available
    (find_expandable_block)."""
    for segment in range(len(segments[POOL])):
        block = segments[FIRST][segment]
        while segments[POOL][segment] == pool and block >= 0:
            if blocks[block][STATE] == UNMAPPED:
                before = blocks[block][BEFORE]
                start = before if before >= 0 and blocks[before][STATE] == FREE else block
                if has_room(blocks, start, size):
                    return start
            block = blocks[block][AFTER]
    return NONE


def grown(
    state: list[Any], segments: list[list[Any]], blocks: list[list[Any]], cached: list[list[Any]], size: int
) -> int:
    """A free block of this size, made by mapping pages (try_allocate_expandable_block); -1 if there is no
    room."""
    pool = pool_of(size)
    block = growing_block(segments, blocks, pool, size)
    if block < 0:
        space = LARGE_SEGMENT * math.ceil(1.125 * state[CAPACITY] / LARGE_SEGMENT)
        block = add_segment(segments, blocks, pool, space, UNMAPPED)
    if blocks[block][STATE] == UNMAPPED:
        block = mapped(state, segments, blocks, cached, block, min(blocks[block][SIZE], size))
    while block >= 0 and blocks[block][SIZE] < size:
        after = blocks[block][AFTER]
        block = mapped(
            state, segments, blocks, cached, after, min(size - blocks[block][SIZE], blocks[after][SIZE])
        )
    return block


def fresh(
    state: list[Any], segments: list[list[Any]], blocks: list[list[Any]], cached: list[list[Any]], size: int
) -> int:
    """A free block of memory newly obtained from the driver."""
    if state[EXPANDABLE] > 0:
        return grown(state, segments, blocks, cached, size)
    return new_segment(state, segments, blocks, cached, size)


def unmap(
    state: list[Any], segments: list[list[Any]], blocks: list[list[Any]], cached: list[list[Any]], block: int
) -> None:
    """Return the whole pages inside a free block (unmap_block)."""
    page = page_bytes(segments[POOL][blocks[block][SEGMENT]])
    start, end = blocks[block][START], blocks[block][START] + blocks[block][SIZE]
    low, high = page * math.ceil(start / page), page * math.floor(end / page)
    if low < high:
        take_out(blocks, cached, block)
        unmap_pages(state, segments, blocks, cached, block, low, high)


def unmap_pages(
    state: list[Any],
    segments: list[list[Any]],
    blocks: list[list[Any]],
    cached: list[list[Any]],
    block: int,
    low: float,
    high: float,
) -> None:
    """Return the part of a free block between two page boundaries; the rest of it stays cached."""
    start, end = blocks[block][START], blocks[block][START] + blocks[block][SIZE]
    if high < end:
        put_in(blocks, cached, cut(blocks, block, high - start, FREE))
    if low > start:
        front = block
        block = cut(blocks, front, low - start, UNMAPPED)
        put_in(blocks, cached, front)
    blocks[block][STATE] = UNMAPPED
    state[RESERVED] -= high - low
    state[FREES] += 1
    join(blocks, segments, cached, block)


def give_back(
    state: list[Any], segments: list[list[Any]], blocks: list[list[Any]], cached: list[list[Any]]
) -> None:
    """Return everything that is entirely free to the driver: whole segments, or whole pages
    (release_cached_blocks)."""
    numbers = cached[NUMBERS]
    for block in [numbers[i] for i in range(len(numbers))]:
        if state[EXPANDABLE] > 0:
            unmap(state, segments, blocks, cached, block)
        elif returnable_bytes(state, segments, blocks, block) > 0:
            take_out(blocks, cached, block)
            segments[ALIVE][blocks[block][SEGMENT]] = 0
            state[RESERVED] -= blocks[block][SIZE]
            state[FREES] += 1


def returnable_bytes(
    state: list[Any], segments: list[list[Any]], blocks: list[list[Any]], block: int
) -> float:
    """How much of a free block could be returned to the driver now: all of it, its whole pages, or
    nothing."""
    if state[EXPANDABLE] > 0:
        page = page_bytes(segments[POOL][blocks[block][SEGMENT]])
        start, end = blocks[block][START], blocks[block][START] + blocks[block][SIZE]
        return max(0, page * math.floor(end / page) - page * math.ceil(start / page))
    return blocks[block][SIZE] if blocks[block][BEFORE] < 0 and blocks[block][AFTER] < 0 else 0


def stuck_bytes(
    state: list[Any], segments: list[list[Any]], blocks: list[list[Any]], caches: list[list[list[Any]]]
) -> float:
    """Free bytes that cannot be returned, because their segment, or their page, is partly in use.

    PyTorch counts them as inactive_split_bytes, but not in expandable segments.
    """
    stuck = 0
    for cached in caches:
        for block in cached[NUMBERS]:
            stuck += blocks[block][SIZE] - returnable_bytes(state, segments, blocks, block)
    return stuck


# -- requests ------------------------------------------------------------------------------------------------
def take(
    state: list[Any],
    segments: list[list[Any]],
    blocks: list[list[Any]],
    caches: list[list[list[Any]]],
    size: int,
    kind: float,
) -> int:
    """A block for a request of rounded size, or -1: out of memory."""
    pool = pool_of(size)
    cached = caches[pool]
    place = best_fit(blocks, cached, size, state[EXPANDABLE])
    if place >= 0:
        block = cached[NUMBERS].pop(place)
        cached[SIZES].pop(place)
    else:
        block = fresh(state, segments, blocks, cached, size)
        if block < 0:
            give_back(state, segments, blocks, caches[1])
            give_back(state, segments, blocks, caches[0])
            state[RETRIES] += 1
            block = fresh(state, segments, blocks, cached, size)
        if block < 0:
            return NONE
        take_out(blocks, cached, block)
    found = blocks[block]
    if splits(pool, state[EXPANDABLE], found[SIZE] - size):
        put_in(blocks, cached, cut(blocks, block, size, FREE))
    found[STATE] = USED
    found[KIND] = kind
    state[ALLOCATED] += found[SIZE]
    return block


def release(
    state: list[Any],
    segments: list[list[Any]],
    blocks: list[list[Any]],
    caches: list[list[list[Any]]],
    number: int,
) -> None:
    """Free a tensor's block and merge it with free neighbours. Nothing is returned to the driver."""
    block = blocks[number]
    cached = caches[segments[POOL][block[SEGMENT]]]
    state[ALLOCATED] -= block[SIZE]
    block[STATE] = FREE
    join(blocks, segments, cached, number)
    put_in(blocks, cached, number)


def largest_free(caches: list[list[list[Any]]]) -> float:
    """The largest block that could be allocated without asking the driver."""
    largest = 0
    for cached in caches:
        if len(cached[SIZES]) > 0:
            largest = max(largest, cached[SIZES][len(cached[SIZES]) - 1])
    return largest
