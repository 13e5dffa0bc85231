"""Bad input becomes a ValueError that names the argument, its value and what is allowed."""

import numpy as np
import pytest

from engine.base import check
from tests.cases import in_one_test


@in_one_test(
    "rule, bad, complaint",
    [
        (check.positive, 0, "size must be greater than 0, got 0"),
        (check.positive, -1.5, "size must be greater than 0, got -1.5"),
        (check.positive, float("nan"), "size must be finite, got nan"),
        (check.positive, float("inf"), "size must be finite, got inf"),
        (check.positive, "big", "size must be a number, got 'big'"),
        (check.positive, None, "size must be finite, got None"),
        (check.positive, [1, 2, 0], r"size must be greater than 0, got \[1, 2, 0\]"),
        (check.non_negative, -1, "size must be at least 0, got -1"),
        (check.whole, 1.5, "size must be a whole number of at least 1, got 1.5"),
        (check.whole, 0, "size must be a whole number of at least 1, got 0"),
        (check.share, 0, "size must be above 0 and at most 1, got 0"),
        (check.share, 1.01, "size must be above 0 and at most 1, got 1.01"),
    ],
)
def test_a_bad_value_is_named(rule, bad, complaint):
    with pytest.raises(ValueError, match=complaint):
        rule(size=bad)


def test_between_and_one_of_say_what_is_allowed():
    with pytest.raises(ValueError, match="stage must be between 0 and 3, got 4"):
        check.between(0, 3, stage=4)
    with pytest.raises(ValueError, match=r"stage must be between 0 and 3, got 3\.5"):
        check.between(0, 3, stage=3.5)
    with pytest.raises(ValueError, match=r"low must be at most high \(1\), got 2"):
        check.ordered(low=2, high=1)
    with pytest.raises(ValueError, match="op must be one of a, b; got 'c'"):
        check.one_of(("a", "b"), op="c")


def test_good_values_pass_as_numbers_and_arrays():
    check.positive(a=1, b=np.array([0.5, 2]))
    check.whole(a=8.0, b=np.arange(1, 4))
    check.whole(0, stage=0)
    check.share(mfu=1)


def test_trusted_code_is_not_checked_and_trust_ends_with_the_block():
    with check.trusted():
        check.positive(size=-1)
        assert check.is_trusted()
    with pytest.raises(ValueError, match="size must be greater than 0"):
        check.positive(size=-1)


def test_trust_ends_when_the_block_fails():
    with pytest.raises(KeyError), check.trusted():
        raise KeyError
    assert not check.is_trusted()
