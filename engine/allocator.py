"""PyTorch's caching allocator for CUDA memory, executed: sizes, pools, best fit, splitting, joining, running out.

The policy of c10/cuda/CUDACachingAllocator.cpp with its constants (c10/core/AllocatorConfig.h, PyTorch 2.13), for one
stream. Written as a program for the page (see engine/program.py): a heap is a list of columns with one number for each
block, and neighbours in a segment are linked. Leaves out other streams, private pools of CUDA graphs,
max_split_size_mb, garbage collection, and what the CUDA context takes for itself.
"""

from __future__ import annotations

import math

from engine.units import MIB

MIN_BLOCK = 512                 # kMinBlockSize: every size is rounded up to a multiple of it
SMALL = 1 * MIB                 # kSmallSize: up to here a request goes to the small pool
SMALL_SEGMENT = 2 * MIB         # kSmallBuffer: what the small pool asks the driver for
LARGE_SEGMENT = 20 * MIB        # large_segment_size: what requests below MIN_OWN are packed into
MIN_OWN = 10 * MIB              # kMinLargeAlloc: from here on a request gets a segment of its own size
ROUND_LARGE = 2 * MIB           # kRoundLarge: rounded up to this

SIZE, START, SEGMENT, BEFORE, AFTER, STATE, KIND = range(7)          # columns: of a block
FREE, USED, UNMAPPED = range(3)                                      # its state
POOL, FIRST, ALIVE = range(3)                                        # columns: of a segment
RESERVED, ALLOCATED, MALLOCS, FREES, RETRIES, CAPACITY, EXPANDABLE = range(7)    # of the allocator
NONE = -1


def rounded_bytes(requested_bytes):
    """What a request takes of a block: a multiple of 512 bytes (round_size)."""
    return max(MIN_BLOCK, MIN_BLOCK * math.ceil(requested_bytes / MIN_BLOCK))


def segment_bytes(size_bytes):
    """What the driver is asked for when no cached block fits (get_allocation_size)."""
    if size_bytes <= SMALL:
        return SMALL_SEGMENT
    if size_bytes < MIN_OWN:
        return LARGE_SEGMENT
    return ROUND_LARGE * math.ceil(size_bytes / ROUND_LARGE)


def pool_of(size_bytes):
    """0 for the small pool, 1 for the large one."""
    return 0 if size_bytes <= SMALL else 1


def page_bytes(pool):
    """What an expandable segment grows and shrinks by."""
    return SMALL_SEGMENT if pool == 0 else LARGE_SEGMENT


def splits(pool, expandable, remaining_bytes):
    """Whether what a request leaves of a block becomes a block of its own (should_split)."""
    if pool == 0 or expandable > 0:
        return remaining_bytes >= MIN_BLOCK
    return remaining_bytes > SMALL


# -- blocks -------------------------------------------------------------------------------------------------------
def add_block(blocks, size, start, segment, before, after, state):
    """A new block between two neighbours; its number."""
    number = len(blocks[SIZE])
    blocks[SIZE].append(size)
    blocks[START].append(start)
    blocks[SEGMENT].append(segment)
    blocks[BEFORE].append(before)
    blocks[AFTER].append(after)
    blocks[STATE].append(state)
    blocks[KIND].append(0)
    if before >= 0:
        blocks[AFTER][before] = number
    if after >= 0:
        blocks[BEFORE][after] = number
    return number


def add_segment(segments, blocks, pool, size, state):
    """A new segment of one block; the block's number."""
    number = len(segments[POOL])
    block = add_block(blocks, size, 0, number, NONE, NONE, state)
    segments[POOL].append(pool)
    segments[FIRST].append(block)
    segments[ALIVE].append(1)
    return block


def place_in(blocks, cached, size, segment, start):
    """Where a free block like this stands in their order, by size, then by address, or would stand."""
    low, high, sizes = 0, len(cached), blocks[SIZE]
    while low < high:
        middle = (low + high) // 2
        other = sizes[cached[middle]]
        if other < size or (other == size and is_lower(blocks, cached[middle], segment, start)):
            low = middle + 1
        else:
            high = middle
    return low


def is_lower(blocks, block, segment, start):
    """Whether a block has a lower address than this."""
    if blocks[SEGMENT][block] != segment:
        return blocks[SEGMENT][block] < segment
    return blocks[START][block] < start


def put_in(blocks, cached, block):
    """A block is free: among those that may be handed out."""
    blocks[STATE][block] = FREE
    place = place_in(blocks, cached, blocks[SIZE][block], blocks[SEGMENT][block], blocks[START][block])
    cached.insert(place, block)


def swallow(blocks, segments, block, other):
    """A block takes in its neighbour, which no longer exists."""
    if blocks[BEFORE][block] == other:
        blocks[START][block] = blocks[START][other]
        blocks[BEFORE][block] = blocks[BEFORE][other]
        if blocks[BEFORE][block] >= 0:
            blocks[AFTER][blocks[BEFORE][block]] = block
        else:
            segments[FIRST][blocks[SEGMENT][block]] = block
    else:
        blocks[AFTER][block] = blocks[AFTER][other]
        if blocks[AFTER][block] >= 0:
            blocks[BEFORE][blocks[AFTER][block]] = block
    blocks[SIZE][block] += blocks[SIZE][other]


def join(blocks, segments, cached, block):
    """A block that is free, or unmapped, takes in neighbours of its own state (try_merge_blocks)."""
    for other in [blocks[BEFORE][block], blocks[AFTER][block]]:
        if other >= 0 and blocks[STATE][other] == blocks[STATE][block]:
            if blocks[STATE][other] == FREE:
                cached.remove(other)
            swallow(blocks, segments, block, other)


def cut(blocks, block, size, state):
    """What is behind so many bytes of a block becomes a block of its own; its number."""
    rest = add_block(blocks, blocks[SIZE][block] - size, blocks[START][block] + size, blocks[SEGMENT][block], block,
                     blocks[AFTER][block], state)
    blocks[SIZE][block] = size
    return rest


def extent(blocks, block):
    """A block's size with the unmapped space behind it."""
    after = blocks[AFTER][block]
    return blocks[SIZE][block] + (blocks[SIZE][after] if after >= 0 and blocks[STATE][after] == UNMAPPED else 0)


def best_fit(blocks, cached, size, expandable):
    """The smallest cached block that is large enough, none: -1; one that could grow counts with what it could grow to."""
    place, last = place_in(blocks, cached, size, NONE, NONE), len(cached) - 1
    if place > last:
        return NONE
    while expandable > 0 and place < last and extent(blocks, cached[place + 1]) < extent(blocks, cached[place]):
        place += 1
    return cached[place]


# -- the driver ---------------------------------------------------------------------------------------------------
def new_segment(state, segments, blocks, cached, size):
    """cudaMalloc: a segment of one free block; its number, or -1 where the GPU has no room."""
    asked = segment_bytes(size)
    if state[RESERVED] + asked > state[CAPACITY]:
        return NONE
    state[RESERVED] += asked
    state[MALLOCS] += 1
    block = add_segment(segments, blocks, pool_of(size), asked, FREE)
    put_in(blocks, cached, block)
    return block


def mapped(state, segments, blocks, cached, block, size):
    """Back the front of an unmapped block with pages; the free block it becomes part of, or -1 without room."""
    page = page_bytes(segments[POOL][blocks[SEGMENT][block]])
    asked = page * math.ceil(size / page)
    if state[RESERVED] + asked > state[CAPACITY]:
        return NONE
    state[RESERVED] += asked
    state[MALLOCS] += 1
    if asked < blocks[SIZE][block]:
        cut(blocks, block, asked, UNMAPPED)
    blocks[STATE][block] = FREE
    join(blocks, segments, cached, block)
    put_in(blocks, cached, block)
    return block


def has_room(blocks, block, size):
    """Whether free and unmapped blocks from here on have so many bytes of address space."""
    room = 0
    while room < size and block >= 0 and blocks[STATE][block] != USED:
        room += blocks[SIZE][block]
        block = blocks[AFTER][block]
    return room >= size


def growing_block(segments, blocks, pool, size):
    """The lowest place of the pool's expandable segment where so many bytes can be had (find_expandable_block)."""
    for segment in range(len(segments[POOL])):
        block = segments[FIRST][segment]
        while segments[POOL][segment] == pool and block >= 0:
            if blocks[STATE][block] == UNMAPPED:
                before = blocks[BEFORE][block]
                start = before if before >= 0 and blocks[STATE][before] == FREE else block
                if has_room(blocks, start, size):
                    return start
            block = blocks[AFTER][block]
    return NONE


def grown(state, segments, blocks, cached, size):
    """A free block of so many bytes from mapping pages (try_allocate_expandable_block); -1 without room."""
    pool = pool_of(size)
    block = growing_block(segments, blocks, pool, size)
    if block < 0:
        space = LARGE_SEGMENT * math.ceil(1.125 * state[CAPACITY] / LARGE_SEGMENT)
        block = add_segment(segments, blocks, pool, space, UNMAPPED)
    if blocks[STATE][block] == UNMAPPED:
        block = mapped(state, segments, blocks, cached, block, min(blocks[SIZE][block], size))
    while block >= 0 and blocks[SIZE][block] < size:
        after = blocks[AFTER][block]
        block = mapped(state, segments, blocks, cached, after, min(size - blocks[SIZE][block], blocks[SIZE][after]))
    return block


def fresh(state, segments, blocks, cached, size):
    """A free block of memory that was not ours before."""
    if state[EXPANDABLE] > 0:
        return grown(state, segments, blocks, cached, size)
    return new_segment(state, segments, blocks, cached, size)


def unmap(state, segments, blocks, cached, block):
    """Give back the whole pages inside a free block (unmap_block)."""
    page = page_bytes(segments[POOL][blocks[SEGMENT][block]])
    start, end = blocks[START][block], blocks[START][block] + blocks[SIZE][block]
    low, high = page * math.ceil(start / page), page * math.floor(end / page)
    if low < high:
        cached.remove(block)
        unmap_pages(state, segments, blocks, cached, block, low, high)


def unmap_pages(state, segments, blocks, cached, block, low, high):
    """Of a block that is nobody's, give back what is between two edges of pages; what is left of it stays cached."""
    start, end = blocks[START][block], blocks[START][block] + blocks[SIZE][block]
    if high < end:
        put_in(blocks, cached, cut(blocks, block, high - start, FREE))
    if low > start:
        front = block
        block = cut(blocks, front, low - start, UNMAPPED)
        put_in(blocks, cached, front)
    blocks[STATE][block] = UNMAPPED
    state[RESERVED] -= high - low
    state[FREES] += 1
    join(blocks, segments, cached, block)


def give_back(state, segments, blocks, cached):
    """Return to the driver what is whole: free segments, or free pages (release_cached_blocks)."""
    for block in [cached[i] for i in range(len(cached))]:
        if state[EXPANDABLE] > 0:
            unmap(state, segments, blocks, cached, block)
        elif returnable_bytes(state, segments, blocks, block) > 0:
            cached.remove(block)
            segments[ALIVE][blocks[SEGMENT][block]] = 0
            state[RESERVED] -= blocks[SIZE][block]
            state[FREES] += 1


def returnable_bytes(state, segments, blocks, block):
    """What of a free block could go back to the driver now: all of it, its whole pages, or nothing."""
    if state[EXPANDABLE] > 0:
        page = page_bytes(segments[POOL][blocks[SEGMENT][block]])
        start, end = blocks[START][block], blocks[START][block] + blocks[SIZE][block]
        return max(0, page * math.floor(end / page) - page * math.ceil(start / page))
    return blocks[SIZE][block] if blocks[BEFORE][block] < 0 and blocks[AFTER][block] < 0 else 0


def stuck_bytes(state, segments, blocks, caches):
    """Free bytes that cannot go back, since their segment, or their page, has a tenant.

    PyTorch counts them as inactive_split_bytes, in expandable segments not at all.
    """
    stuck = 0
    for pool in range(2):
        for block in caches[pool]:
            stuck += blocks[SIZE][block] - returnable_bytes(state, segments, blocks, block)
    return stuck


# -- requests -----------------------------------------------------------------------------------------------------
def allocate(state, segments, blocks, caches, requested, kind):
    """A block for a request, or -1: out of memory."""
    return take(state, segments, blocks, caches, rounded_bytes(requested), kind)


def take(state, segments, blocks, caches, size, kind):
    """The same for a size that is rounded already."""
    pool = pool_of(size)
    block = best_fit(blocks, caches[pool], size, state[EXPANDABLE])
    if block < 0:
        block = fresh(state, segments, blocks, caches[pool], size)
    if block < 0:
        give_back(state, segments, blocks, caches[1])
        give_back(state, segments, blocks, caches[0])
        state[RETRIES] += 1
        block = fresh(state, segments, blocks, caches[pool], size)
    if block < 0:
        return NONE
    caches[pool].remove(block)
    if splits(pool, state[EXPANDABLE], blocks[SIZE][block] - size):
        put_in(blocks, caches[pool], cut(blocks, block, size, FREE))
    blocks[STATE][block] = USED
    blocks[KIND][block] = kind
    state[ALLOCATED] += blocks[SIZE][block]
    return block


def release(state, segments, blocks, caches, block):
    """A tensor is gone: its block is free, and joined to free neighbours. Nothing goes back to the driver."""
    state[ALLOCATED] -= blocks[SIZE][block]
    cached = caches[segments[POOL][blocks[SEGMENT][block]]]
    blocks[STATE][block] = FREE
    join(blocks, segments, cached, block)
    put_in(blocks, cached, block)


def largest_free(blocks, caches):
    """The largest block that could be handed out without asking the driver."""
    largest = 0
    for pool in range(2):
        for block in caches[pool]:
            largest = max(largest, blocks[SIZE][block])
    return largest
