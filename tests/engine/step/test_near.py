"""Numbers near those that layouts cannot divide, and what a plan says of them."""

import pytest

import engine
from engine.step import near
from engine.step.layout import Job
from tests.cases import in_one_test


@in_one_test(
    "number, divided_by, most, found",
    [
        (488, 256 * 64, 600, 512),  # 8 · 61: of the powers of two within 6 % the largest
        (500, 512 * 64, 500, 480),  # GPUs are only left out
        (4100, 2**20, 5000, 4096),
        (1009, 2**20, 2000, 1024),  # a prime
        (512, 2**20, 600, 512),
        (3, 2**20, 10, 3),  # nothing lies within 6 % of it
    ],
)
def test_the_nearest_number_that_can_be_divided_in_most_ways(number, divided_by, most, found):
    assert near.nearest(number, divided_by, most) == found


def test_divisors_and_common_ones():
    for number in range(1, 200):
        divisors = [each for each in range(1, number + 1) if number % each == 0]
        assert near.divisor_count(number) == len(divisors)
        assert near.is_awkward(number) == any(
            each in divisors
            for each in (11, 13, *range(17, 200, 2))
            if all(each % prime for prime in range(3, each))
        )


def test_a_round_batch_is_left_as_it_is():
    """Also DeepSeek-V3's 15,360 = 2¹⁰ · 3 · 5."""
    assert near.numbers(Job(15360, 4096), 2048, int) == []
    assert near.near_batch(488, 256) == near.snapped(488.0, 256.0)["sequences"] == 512


def test_a_plan_says_which_near_batch_leaves_more_to_choose_from():
    found = engine.plan("mixtral-8x7b", "b200", Job(488, 8192), 256, top=1)
    (one,) = found.near
    assert (one.what, one.asked, one.near) == (near.SEQUENCES, 488, 512)
    other = engine.plan("mixtral-8x7b", "b200", Job(512, 8192), 256, top=1)
    assert one.choice == other.layouts / found.layouts > 1 and one.mfu == other.best.mfu()
    assert "488 → 512 sequences: +" in str(found) and found.as_dict()["near"][0]["near"] == 512
    assert other.near == () and "near numbers" not in str(other).lower()


def test_where_nothing_is_legal_the_message_has_the_near_numbers():
    """Nothing divides 500 GPUs and a batch of 512 or 32 heads; 384 can be cut in 62 ways, 256 in 89."""
    with pytest.raises(ValueError, match="got 512; near: 500 → 384 GPUs"):
        engine.plan("llama3.1-8b", "h100-sxm", Job(512, 4096), 500)


def test_fewer_gpus_are_named_only_where_they_are_faster():
    """With 352 = 32 · 11 every layout has 11 or more data ranks."""
    found = engine.plan("llama3.1-8b", "h100-sxm", Job(352, 4096), 352, top=1)
    for one in found.near:
        assert one.what != near.GPUS or one.mfu / one.asked_mfu > one.asked / one.near
