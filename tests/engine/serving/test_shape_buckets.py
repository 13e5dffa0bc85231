"""Batch sizes to capture: the best list against all lists, the shipped ones against their sources, costs by
hand."""

from itertools import combinations

import numpy as np
import pytest

from engine import catalog
from engine.serving import shape_buckets as buckets
from engine.serving.shape_buckets import BEST, EVERY, LARGEST, POWERS, SHIPPED
from engine.step import layout


def counts_of(steps: dict[int, int]) -> list[float]:
    return [float(steps.get(batch, 0)) for batch in range(LARGEST + 1)]


def padded(counts, sizes) -> float:
    return sum(
        count * (min(s for s in sizes if s >= batch) - batch) for batch, count in enumerate(counts) if batch
    )


def test_the_shipped_list_is_vllm_s():
    """vllm/config/compilation.py: [1, 2, 4] + list(range(8, 256, 8)) + …, here up to 128."""
    assert buckets.captured_sizes(SHIPPED) == [1, 2, 4, *range(8, 136, 8)]
    assert buckets.captured_sizes(POWERS) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert buckets.captured_sizes(EVERY) == list(range(1, 129))


def test_the_largest_batch_has_a_bucket_too():
    """128 in one of 128; what is larger than all has the largest."""
    found = buckets.buckets_of([8, LARGEST])
    assert (found[8], found[9], found[LARGEST]) == (8, LARGEST, LARGEST)
    assert buckets.buckets_of([8])[LARGEST] == 8


def test_padding_by_hand():
    """Ten steps with 3 sequences and five with 9: powers of two pad one row and seven."""
    counts = counts_of({3: 10, 9: 5})
    assert buckets.padding(counts, buckets.buckets_of(buckets.captured_sizes(POWERS))) == 10 * 1 + 5 * 7


def test_the_best_list_is_no_worse_than_any_other():
    """Every list of four sizes out of those that occur, and 128."""
    counts = counts_of({3: 10, 9: 5, 10: 30, 17: 4, 40: 12, 41: 2, 90: 1})
    found = buckets.best(counts, 4)
    assert found[-1] == LARGEST and sorted(found) == found
    least = min(padded(counts, (*some, LARGEST)) for some in combinations((3, 9, 10, 17, 40, 41, 90), 3))
    assert padded(counts, found) == least == buckets.padding(counts, buckets.buckets_of(found))


def all_cuts_tried(counts, kept) -> list[float]:
    """The best list of sizes, found by trying every cut for every batch and number of sizes; the first of
    equals."""
    batch = np.arange(LARGEST + 1.0)
    lack = np.array(
        [
            [
                np.dot(counts[i + 1 : j + 1], j - batch[i + 1 : j + 1]) if i < j else np.inf
                for i in range(LARGEST + 1)
            ]
            for j in range(LARGEST + 1)
        ]
    )
    fewest, cuts = np.where(batch == 0, 0.0, np.inf), []
    for _ in range(kept):
        total = fewest + lack
        cuts.append(np.argmin(total, axis=1))
        fewest = np.min(total, axis=1)
    sizes = [LARGEST]
    for cut in cuts[:0:-1]:
        sizes.insert(0, cut[sizes[0]])
    return sizes


@pytest.mark.parametrize("seed", range(8))
def test_the_search_finds_the_list_that_trying_all_finds(seed):
    """Ties too: most batches of some seeds never occur, so that many lists pad the same number of rows."""
    random = np.random.default_rng(seed)
    counts = np.where(
        random.random(LARGEST + 1) < [0.05, 0.2, 0.6, 1.0][seed % 4], random.integers(0, 40, LARGEST + 1), 0
    )
    for kept in (1, 2, 3, 7, 20, 48):
        assert buckets.best(counts.tolist(), kept) == all_cuts_tried(counts, kept)


def test_a_list_begins_where_most_batches_are_even_at_one():
    """100 steps of a single sequence, ten of 64: a bucket of 1 leaves 10 · 64 rows of padding, one of 64
    leaves 100 · 63."""
    assert buckets.best(counts_of({1: 100, 64: 10, 128: 1}), 2) == [1, 128]


def test_the_largest_bucket_is_always_there():
    assert buckets.best(counts_of({5: 1}), 1) == [LARGEST]


def test_as_many_run_as_arrive_times_how_long_they_stay():
    """Little's law, over a hundred seeds: the spread of the mean of 100 runs is some per cent."""
    means = [
        np.dot(buckets.batches(24, 0.8, seed), np.arange(LARGEST + 1)) / buckets.STEPS for seed in range(100)
    ]
    assert np.mean(means) == pytest.approx(24, rel=0.05)


def test_each_step_is_counted_once():
    assert sum(buckets.batches(24, 0.8, 3)) == buckets.STEPS


def test_plans_under_traffic():
    every, best, shipped, powers = (
        buckets.fit(24, 0.8, 1, plan, 8) for plan in (EVERY, BEST, SHIPPED, POWERS)
    )
    assert every["padded"] == 0 and every["graphs"] == 128
    assert best["graphs"] == powers["graphs"] == 8 and best["padded"] == best["least"] == powers["least"]
    assert best["padded"] < shipped["padded"] < powers["padded"]
    as_many = buckets.fit(24, 0.8, 1, BEST, shipped["graphs"])
    assert shipped["least"] == as_many["padded"] < shipped["padded"]


def test_a_second_dimension_multiplies():
    """19 sizes at 64 lengths: 1,216 graphs; at 6.4 MB and 0.4 s each 7.8 GB and 8 minutes."""
    cost = buckets.cost(19, 64, 6.4e6, 0.4)
    assert cost.graphs == 1216 and cost.capture_s == pytest.approx(486.4)
    assert cost.memory_bytes == pytest.approx(7.78e9, rel=1e-3)


def test_padding_costs_rows_and_hardly_any_time():
    """Below some hundred rows a step on an H100 is the reading of the weights."""
    step_s = buckets.step_times_s(catalog.model("llama3-8b"), layout.machine(catalog.gpu("h100-sxm")))
    found = buckets.fit(24, 0.8, 1, POWERS, 8)
    lost = buckets.time_lost(found["counts"], step_s, step_s[found["bucket"].astype(int)])
    assert found["padded"] / found["rows"] > 0.2 and 0 < lost < 0.02


def test_room_is_what_the_weights_leave():
    """80 GB less 16 GB of weights and the framework's."""
    room = buckets.room_bytes(catalog.model("llama3-8b"), catalog.gpu("h100-sxm"))
    assert 60e9 < room < 64e9
    assert buckets.lengths_that_fill(0.1, room, 19, 6.4e6) == pytest.approx(0.1 * room / (19 * 6.4e6))
