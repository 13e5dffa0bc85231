"""The caching allocator by hand, from the constants of c10/core/AllocatorConfig.h (PyTorch 2.13)."""

import itertools
import random

import numpy as np
import pytest

from engine.base.units import GIB, MIB
from engine.one_gpu import allocator
from engine.one_gpu.allocator import FREE, UNMAPPED, USED
from tests.cases import in_one_test


class Heap:
    """The allocator with methods named like the calls of its user."""

    def __init__(self, capacity=GIB, expandable=0):
        self.memory = allocator.unused(capacity, expandable)

    def malloc(self, size):
        return allocator.take(self.memory, allocator.rounded_bytes(size), 0)

    def free(self, block):
        allocator.release(self.memory, block)

    def empty_cache(self):
        for pool in (1, 0):
            allocator.give_back(self.memory, pool)

    def stuck(self):
        return allocator.stuck_bytes(self.memory)

    def __getattr__(self, name):
        return getattr(self.memory, name)

    def where(self, block):
        """(segment, start) of a block."""
        return self.blocks[block].segment, self.blocks[block].start

    def layout(self, segment):
        """[(state, bytes)] of a segment from its start."""
        found, block = [], self.segments[segment].first
        while block >= 0:
            found.append((self.blocks[block].state, self.blocks[block].size))
            block = self.blocks[block].after
        return found


@in_one_test(
    "asked, block, segment",
    [  # reference_cases, allocator_round_*
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (1048576, 1048576, 2 * MIB),
        (1048577, 1049088, 20 * MIB),
        (9437184, 9437184, 20 * MIB),
        (10485760, 10485760, 10485760),
        (10485761, 10486272, 12582912),
    ],
)
def test_sizes_of_blocks_and_of_what_the_driver_is_asked_for(asked, block, segment):
    assert allocator.rounded_bytes(asked) == block
    assert allocator.segment_bytes(block) == segment
    heap = Heap()
    assert heap.blocks[heap.malloc(asked)].size == (segment if segment - block <= MIB < block else block)
    assert heap.reserved == segment and heap.mallocs == 1


def test_a_small_request_cuts_a_piece_off_a_small_segment():
    heap = Heap()
    heap.malloc(1)
    assert heap.layout(0) == [(USED, 512), (FREE, 2 * MIB - 512)]


def test_a_mib_and_a_half_is_cut_from_a_segment_of_20_mib():
    heap = Heap()
    heap.malloc(1.5 * MIB)
    heap.malloc(1.5 * MIB)
    assert heap.layout(0) == [(USED, 1.5 * MIB), (USED, 1.5 * MIB), (FREE, 17 * MIB)]
    assert heap.mallocs == 1 and heap.allocated == 3 * MIB


def test_a_large_rest_up_to_one_mib_stays_with_its_block():
    heap = Heap()
    heap.malloc(11 * MIB)  # rounded up to a segment of 12 MiB: 1 MiB is left
    assert heap.layout(0) == [(USED, 12 * MIB)]
    heap.malloc(11 * MIB - 512)  # 1 MiB and 512 bytes are left: more than 1 MiB
    assert heap.layout(1) == [(USED, 11 * MIB - 512), (FREE, MIB + 512)]


def test_an_expandable_segment_splits_any_rest():
    heap = Heap(expandable=1)
    heap.malloc(11 * MIB)
    assert heap.layout(0)[:2] == [(USED, 11 * MIB), (FREE, 9 * MIB)] and heap.reserved == 20 * MIB


def test_freed_blocks_join_with_free_neighbours_on_both_sides():
    heap = Heap()
    a, b, c = (heap.malloc(2 * MIB) for _ in range(3))
    heap.free(a)
    heap.free(c)
    assert heap.layout(0) == [(FREE, 2 * MIB), (USED, 2 * MIB), (FREE, 16 * MIB)]
    heap.free(b)
    assert heap.layout(0) == [(FREE, 20 * MIB)] and heap.reserved == 20 * MIB and heap.frees == 0


def test_blocks_of_two_segments_never_join():
    heap = Heap(capacity=45 * MIB)
    for block in [heap.malloc(20 * MIB), heap.malloc(20 * MIB)]:
        heap.free(block)
    heap.malloc(2 * MIB)  # sits in the first segment, which cannot be given back now
    assert heap.malloc(40 * MIB) == -1  # though 38 MiB of 40 are free
    assert heap.reserved == 20 * MIB and heap.frees == 1 and heap.retries == 1


@pytest.mark.parametrize("expandable", [0, 1])
def test_what_is_free_beside_a_tenant_is_stuck_and_a_whole_segment_or_page_is_not(expandable):
    """Two segments, or two pages of one, of 20 MiB; a tenant of 2 MiB in the first: 18 MiB are stuck, 20 are
    not."""
    heap = Heap(expandable=expandable)
    for block in [heap.malloc(20 * MIB), heap.malloc(20 * MIB)]:
        heap.free(block)
    assert heap.stuck() == 0 and heap.reserved == 40 * MIB
    heap.malloc(2 * MIB)
    assert heap.stuck() == 18 * MIB and heap.reserved - heap.allocated == 38 * MIB
    heap.empty_cache()
    assert heap.stuck() == 18 * MIB == heap.reserved - heap.allocated  # what is stuck is what stays


def test_the_smallest_block_that_fits_is_taken_the_lower_one_of_equals():
    heap = Heap()
    for block in [heap.malloc(size * MIB) for size in (40, 24, 30, 24)]:
        heap.free(block)
    assert heap.where(heap.malloc(23 * MIB)) == (1, 0)
    assert heap.where(heap.malloc(23 * MIB)) == (3, 0)
    assert heap.where(heap.malloc(23 * MIB)) == (2, 0)


def test_the_pools_do_not_share():
    heap = Heap()
    heap.free(heap.malloc(20 * MIB))
    heap.malloc(MIB)
    assert heap.mallocs == 2 and heap.reserved == 22 * MIB


def test_without_room_whole_cached_segments_go_back_before_it_gives_up():
    heap = Heap(capacity=100 * MIB)
    heap.free(heap.malloc(60 * MIB))
    assert heap.malloc(80 * MIB) >= 0
    assert (heap.reserved, heap.frees, heap.retries) == (80 * MIB, 1, 1)


def test_pages_of_an_expandable_segment_join_and_go_back_alone():
    heap = Heap(capacity=60 * MIB, expandable=1)
    first, second = heap.malloc(20 * MIB), heap.malloc(20 * MIB)
    heap.free(first)
    heap.free(second)
    assert heap.where(heap.malloc(38 * MIB)) == (0, 0)  # the two are neighbours: no request to the driver
    assert heap.reserved == 40 * MIB and heap.mallocs == 2
    heap.empty_cache()
    assert heap.reserved == 40 * MIB  # the last page is half in use


def test_a_gap_of_unmapped_pages_is_filled_again_from_below():
    heap = Heap(capacity=100 * MIB, expandable=1)
    blocks = [heap.malloc(20 * MIB) for _ in range(3)]
    heap.free(blocks[0])
    heap.empty_cache()
    assert heap.reserved == 40 * MIB and heap.layout(0)[0] == (UNMAPPED, 20 * MIB)
    assert heap.where(heap.malloc(15 * MIB)) == (0, 0) and heap.reserved == 60 * MIB


def test_an_expandable_segment_grows_by_what_its_free_end_lacks():
    heap = Heap(expandable=1)
    heap.malloc(12 * MIB)  # 8 MiB of its page are free
    assert heap.where(heap.malloc(30 * MIB)) == (0, 12 * MIB)
    assert heap.reserved == 60 * MIB  # 22 MiB more: two pages


def fit_by_trying(heap, cached, size):
    """The first of all blocks that are large enough, by size and then by address; −1 if there is none. Where
    segments grow it is a later one, as long as each could grow to less than the one before
    (get_free_block)."""

    def order(block):
        return heap.blocks[block].size, *heap.where(block)

    def could_be(block):
        after = heap.blocks[block].after
        free_behind = after >= 0 and heap.blocks[after].state == UNMAPPED
        return heap.blocks[block].size + (heap.blocks[after].size if free_behind else 0)

    fitting = sorted((block for block in cached.blocks if heap.blocks[block].size >= size), key=order)
    found = next(iter(fitting), -1)
    for block in fitting[1:] if heap.expandable else []:
        if could_be(block) >= could_be(found):
            break
        found = block
    return found


@pytest.mark.parametrize("expandable", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_fit_is_that_of_trying_all(expandable, seed):
    rolls, heap, held = random.Random(seed), Heap(capacity=8 * GIB, expandable=expandable), []
    found = []
    for _ in range(1500):
        if held and rolls.random() < 0.48:
            heap.free(held.pop(rolls.randrange(len(held))))
        else:
            held.append(heap.malloc(512 * rolls.choice([1, 2, 3, 3000, 5000, 30000]) * rolls.randint(1, 3)))
        for pool, cached in enumerate(heap.caches):
            size = 512 * rolls.choice([1, 2, 6, 2500, 9000, 60000])
            place = allocator.best_fit(heap.memory, pool, size)
            found.append(cached.blocks[place] if place >= 0 else -1)
            assert found[-1] == fit_by_trying(heap, cached, size)
    assert len(set(found)) > 100 and -1 in found


@pytest.mark.parametrize("expandable", [0, 1])
@pytest.mark.parametrize("seed", range(6))
def test_books_balance_whatever_is_asked(expandable, seed):
    """Random requests: each segment is tiled by its blocks, no two free ones side by side, and the counters
    agree."""
    rolls, heap, held = random.Random(seed), Heap(capacity=400 * MIB, expandable=expandable), []
    for _ in range(600):
        if held and rolls.random() < 0.45:
            heap.free(held.pop(rolls.randrange(len(held))))
        elif (block := heap.malloc(int(2 ** rolls.uniform(5, 26)))) >= 0:
            held.append(block)
        live = [s for s in range(len(heap.segments)) if heap.segments[s].alive]
        layouts = [heap.layout(segment) for segment in live]
        assert sum(size for row in layouts for state, size in row if state == USED) == heap.allocated
        assert sum(size for row in layouts for state, size in row if state != UNMAPPED) == heap.reserved
        assert heap.reserved <= heap.capacity
        assert all(a[0] != b[0] or a[0] == USED for row in layouts for a, b in itertools.pairwise(row))
        free = sorted(heap.blocks[block].size for cached in heap.caches for block in cached.blocks)
        assert free == sorted(size for row in layouts for state, size in row if state == FREE)
        for cached in heap.caches:
            assert cached.sizes == sorted(heap.blocks[block].size for block in cached.blocks)
            assert cached.blocks == sorted(
                cached.blocks, key=lambda block: (heap.blocks[block].size, *heap.where(block))
            )
    for block in held:
        heap.free(block)
    heap.empty_cache()
    assert heap.allocated == heap.reserved == 0
    assert all(heap.blocks[heap.segments[segment].first].before == -1 for segment in live)


def test_largest_free_is_over_both_pools():
    heap = Heap()
    heap.free(heap.malloc(30 * MIB))
    heap.malloc(1)
    assert allocator.largest_free(heap.memory) == 30 * MIB
    assert np.isclose(heap.reserved - heap.allocated, 32 * MIB - 512)
