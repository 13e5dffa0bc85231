"""PyTorch's caching allocator for CUDA memory, executed: sizes, pools, best fit, splitting, merging, and
running out of memory.

The policy of c10/cuda/CUDACachingAllocator.cpp with its constants (c10/core/AllocatorConfig.h, PyTorch 2.13),
for one stream. Written as a program for the page (see engine/base/program.py): a block is identified by its
index in the list of all blocks, and neighbours in a segment are linked. Leaves out other streams, private
pools of CUDA graphs, max_split_size_mb, garbage collection, and the memory of the CUDA context itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from engine.base.units import MIB

MIN_BLOCK = 512  # kMinBlockSize: every size is rounded up to a multiple of it
SMALL = 1 * MIB  # kSmallSize: requests up to this size go to the small pool
SMALL_SEGMENT = 2 * MIB  # kSmallBuffer: segment size of the small pool
LARGE_SEGMENT = 20 * MIB  # large_segment_size: segment size for requests below MIN_OWN
MIN_OWN = 10 * MIB  # kMinLargeAlloc: requests from this size on get a segment of their own size
ROUND_LARGE = 2 * MIB  # kRoundLarge: such sizes are rounded up to a multiple of this

FREE, USED, UNMAPPED = range(3)  # states of a block
NONE = -1


class Block:
    """A stretch of a segment, with its neighbours there, and what it holds."""

    def __init__(
        self, size: float, start: float, segment: int, before: int, after: int, state: int, kind: float
    ) -> None:
        self.size, self.start, self.segment = size, start, segment
        self.before, self.after = before, after
        self.state, self.kind = state, kind


class Segment:
    """What one request to the driver gave: its pool, its first block, and whether the GPU still has it."""

    def __init__(self, pool: int, first: int, alive: int) -> None:
        self.pool, self.first, self.alive = pool, first, alive


class Cache:
    """The free blocks of a pool and their sizes, in the same order: by size, then by address."""

    def __init__(self, blocks: list[int], sizes: list[float]) -> None:
        self.blocks, self.sizes = blocks, sizes


class Memory:
    """A GPU's memory as the allocator keeps it, with what has been counted so far."""

    def __init__(
        self,
        capacity: float,
        expandable: float,
        segments: list[Segment],
        blocks: list[Block],
        caches: list[Cache],
        reserved: float,
        allocated: float,
        mallocs: int,
        frees: int,
        retries: int,
    ) -> None:
        self.capacity, self.expandable = capacity, expandable
        self.segments, self.blocks, self.caches = segments, blocks, caches
        self.reserved, self.allocated = reserved, allocated
        self.mallocs, self.frees, self.retries = mallocs, frees, retries


def unused(capacity_bytes: float, expandable: float) -> Memory:
    """The memory of a GPU before anything is allocated; ``expandable`` is 1 for expandable segments."""
    return Memory(capacity_bytes, expandable, [], [], [Cache([], []), Cache([], [])], 0, 0, 0, 0, 0)


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
    memory: Memory, size: float, start: float, segment: int, before: int, after: int, state: int
) -> int:
    """Add a block between two neighbours; return its index."""
    number = len(memory.blocks)
    memory.blocks.append(Block(size, start, segment, before, after, state, 0))
    if before >= 0:
        memory.blocks[before].after = number
    if after >= 0:
        memory.blocks[after].before = number
    return number


def add_segment(memory: Memory, pool: int, size: float, state: int) -> int:
    """Add a segment that is one block; return the block's index."""
    block = add_block(memory, size, 0, len(memory.segments), NONE, NONE, state)
    memory.segments.append(Segment(pool, block, 1))
    return block


def cache_of(memory: Memory, block: int) -> Cache:
    """The cache of the pool to which a block belongs."""
    return memory.caches[memory.segments[memory.blocks[block].segment].pool]


def is_lower(block: Block, other: Block) -> bool:
    """Whether a block is at a lower address than another."""
    if block.segment != other.segment:
        return block.segment < other.segment
    return block.start < other.start


def put_in(memory: Memory, number: int) -> None:
    """Add a free block to its pool's cache, ordered by size, then by address."""
    block, cache = memory.blocks[number], cache_of(memory, number)
    place = bisect_left(cache.sizes, block.size)
    while (
        place < len(cache.sizes)
        and cache.sizes[place] == block.size
        and is_lower(memory.blocks[cache.blocks[place]], block)
    ):
        place += 1
    cache.blocks.insert(place, number)
    cache.sizes.insert(place, block.size)
    block.state = FREE


def take_out(memory: Memory, number: int) -> None:
    """Remove a block from its pool's cache."""
    cache = cache_of(memory, number)
    place = bisect_left(cache.sizes, memory.blocks[number].size)
    while cache.blocks[place] != number:
        place += 1
    cache.blocks.pop(place)
    cache.sizes.pop(place)


def join(memory: Memory, number: int) -> None:
    """Merge a free or unmapped block with neighbours in the same state, which then no longer exist
    (try_merge_blocks)."""
    block = memory.blocks[number]
    before, after = block.before, block.after
    if before >= 0 and memory.blocks[before].state == block.state:
        other = memory.blocks[before]
        if block.state == FREE:
            take_out(memory, before)
        block.size += other.size
        block.start, block.before = other.start, other.before
        if block.before >= 0:
            memory.blocks[block.before].after = number
        else:
            memory.segments[block.segment].first = number
    if after >= 0 and memory.blocks[after].state == block.state:
        other = memory.blocks[after]
        if block.state == FREE:
            take_out(memory, after)
        block.size += other.size
        block.after = other.after
        if block.after >= 0:
            memory.blocks[block.after].before = number


def cut(memory: Memory, number: int, size: float, state: int) -> int:
    """Split off what follows the first ``size`` bytes of a block; return the new block's index."""
    block = memory.blocks[number]
    rest = add_block(memory, block.size - size, block.start + size, block.segment, number, block.after, state)
    block.size = size
    return rest


def extent(memory: Memory, number: int) -> float:
    """A block's size including the unmapped space after it."""
    block = memory.blocks[number]
    if block.after < 0 or memory.blocks[block.after].state != UNMAPPED:
        return block.size
    return block.size + memory.blocks[block.after].size


def best_fit(memory: Memory, pool: int, size: int) -> int:
    """The position in the pool's cache of the smallest block that is large enough, −1 if there is none. A
    block that can grow counts with the size that it could grow to."""
    cache = memory.caches[pool]
    place, last = bisect_left(cache.sizes, size), len(cache.blocks) - 1
    if place > last:
        return NONE
    while (
        memory.expandable > 0
        and place < last
        and extent(memory, cache.blocks[place + 1]) < extent(memory, cache.blocks[place])
    ):
        place += 1
    return place


# -- the driver ----------------------------------------------------------------------------------------------
def new_segment(memory: Memory, size: int) -> int:
    """cudaMalloc: make a segment that is one free block. Returns the block's index, or -1 if the GPU has no
    room."""
    asked = segment_bytes(size)
    if memory.reserved + asked > memory.capacity:
        return NONE
    memory.reserved += asked
    memory.mallocs += 1
    block = add_segment(memory, pool_of(size), asked, FREE)
    put_in(memory, block)
    return block


def mapped(memory: Memory, number: int, size: float) -> int:
    """Map pages to the front of an unmapped block. Returns the free block that this part now belongs to, or
    -1 if there is no room."""
    block = memory.blocks[number]
    page = page_bytes(memory.segments[block.segment].pool)
    asked = page * math.ceil(size / page)
    if memory.reserved + asked > memory.capacity:
        return NONE
    memory.reserved += asked
    memory.mallocs += 1
    if asked < block.size:
        cut(memory, number, asked, UNMAPPED)
    block.state = FREE
    join(memory, number)
    put_in(memory, number)
    return number


def has_room(memory: Memory, number: int, size: int) -> bool:
    """Whether the free and unmapped blocks from this block on have enough address space."""
    room = 0
    while room < size and number >= 0 and memory.blocks[number].state != USED:
        room += memory.blocks[number].size
        number = memory.blocks[number].after
    return room >= size


def growing_block(memory: Memory, pool: int, size: int) -> int:
    """The lowest place in the pool's expandable segment where this many bytes are available
    (find_expandable_block)."""
    for segment in memory.segments:
        number = segment.first
        while segment.pool == pool and number >= 0:
            block = memory.blocks[number]
            if block.state == UNMAPPED:
                before = block.before
                start = before if before >= 0 and memory.blocks[before].state == FREE else number
                if has_room(memory, start, size):
                    return start
            number = block.after
    return NONE


def grown(memory: Memory, size: int) -> int:
    """A free block of this size, made by mapping pages (try_allocate_expandable_block); -1 if there is no
    room."""
    pool = pool_of(size)
    number = growing_block(memory, pool, size)
    if number < 0:
        space = LARGE_SEGMENT * math.ceil(1.125 * memory.capacity / LARGE_SEGMENT)
        number = add_segment(memory, pool, space, UNMAPPED)
    if memory.blocks[number].state == UNMAPPED:
        number = mapped(memory, number, min(memory.blocks[number].size, size))
    while number >= 0 and memory.blocks[number].size < size:
        after = memory.blocks[number].after
        number = mapped(memory, after, min(size - memory.blocks[number].size, memory.blocks[after].size))
    return number


def fresh(memory: Memory, size: int) -> int:
    """A free block of memory newly obtained from the driver."""
    return grown(memory, size) if memory.expandable > 0 else new_segment(memory, size)


def unmap(memory: Memory, number: int) -> None:
    """Return the whole pages inside a free block (unmap_block)."""
    block = memory.blocks[number]
    page = page_bytes(memory.segments[block.segment].pool)
    low, high = page * math.ceil(block.start / page), page * math.floor((block.start + block.size) / page)
    if low < high:
        take_out(memory, number)
        unmap_pages(memory, number, low, high)


def unmap_pages(memory: Memory, number: int, low: float, high: float) -> None:
    """Return the part of a free block between two page boundaries; the rest of it stays cached."""
    start, end = memory.blocks[number].start, memory.blocks[number].start + memory.blocks[number].size
    if high < end:
        put_in(memory, cut(memory, number, high - start, FREE))
    if low > start:
        front = number
        number = cut(memory, front, low - start, UNMAPPED)
        put_in(memory, front)
    memory.blocks[number].state = UNMAPPED
    memory.reserved -= high - low
    memory.frees += 1
    join(memory, number)


def give_back(memory: Memory, pool: int) -> None:
    """Return everything of a pool that is entirely free to the driver: whole segments, or whole pages
    (release_cached_blocks)."""
    free = memory.caches[pool].blocks
    for number in [free[i] for i in range(len(free))]:
        if memory.expandable > 0:
            unmap(memory, number)
        elif returnable_bytes(memory, number) > 0:
            take_out(memory, number)
            memory.segments[memory.blocks[number].segment].alive = 0
            memory.reserved -= memory.blocks[number].size
            memory.frees += 1


def returnable_bytes(memory: Memory, number: int) -> float:
    """How much of a free block could be returned to the driver now: all of it, its whole pages, or
    nothing."""
    block = memory.blocks[number]
    if memory.expandable > 0:
        page = page_bytes(memory.segments[block.segment].pool)
        end = block.start + block.size
        return max(0, page * math.floor(end / page) - page * math.ceil(block.start / page))
    return block.size if block.before < 0 and block.after < 0 else 0


def stuck_bytes(memory: Memory) -> float:
    """Free bytes that cannot be returned, because their segment, or their page, is partly in use.

    PyTorch counts them as inactive_split_bytes, but not in expandable segments.
    """
    stuck = 0
    for cache in memory.caches:
        for number in cache.blocks:
            stuck += memory.blocks[number].size - returnable_bytes(memory, number)
    return stuck


# -- requests ------------------------------------------------------------------------------------------------
def take(memory: Memory, size: int, kind: float) -> int:
    """A block for a request of rounded size, or -1: out of memory."""
    pool = pool_of(size)
    place = best_fit(memory, pool, size)
    number = memory.caches[pool].blocks[place] if place >= 0 else fresh(memory, size)
    if number < 0:
        give_back(memory, 1)
        give_back(memory, 0)
        memory.retries += 1
        number = fresh(memory, size)
    if number < 0:
        return NONE
    take_out(memory, number)
    block = memory.blocks[number]
    if splits(pool, memory.expandable, block.size - size):
        put_in(memory, cut(memory, number, size, FREE))
    block.state, block.kind = USED, kind
    memory.allocated += block.size
    return number


def release(memory: Memory, number: int) -> None:
    """Free a tensor's block and merge it with free neighbours. Nothing is returned to the driver."""
    block = memory.blocks[number]
    memory.allocated -= block.size
    block.state = FREE
    join(memory, number)
    put_in(memory, number)


def largest_free(memory: Memory) -> float:
    """The largest block that could be allocated without asking the driver."""
    largest = 0
    for cache in memory.caches:
        if len(cache.sizes) > 0:
            largest = max(largest, cache.sizes[len(cache.sizes) - 1])
    return largest
