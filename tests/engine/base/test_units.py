"""Scales and their text."""

import pytest

from engine.base import units
from tests.cases import in_one_test
from tests.said import refused


@in_one_test(
    "value, family, text",
    [
        (1.12e12, "bytes", "1.12 TB"),
        (80e9, "bytes", "80 GB"),
        (999.9e9, "bytes", "1 TB"),
        (1.5 * 2.0**30, "bytes_binary", "1.5 GiB"),
        (50e9, "bytes_per_s", "50 GB/s"),
        (989e12, "flops_per_s", "989 TFLOP/s"),
        (3.44e15, "flops", "3.44 PFLOP"),
        (8.6016, "seconds", "8.6 s"),
        (0, "seconds", "0 s"),
        (3.4e-6, "seconds", "3.4 µs"),
        (7e9, "params", "7B"),
        (15e12, "tokens", "15T tokens"),
        (3e6, "dollars", "$3M"),
        (86400, "seconds", "1 day"),
        (2 * 86400, "seconds", "2 days"),
        (365.25 * 86400, "seconds", "1 year"),
        (1, "tokens", "1 token"),
        (1000, "tokens", "1k tokens"),
        (0.354, "percent", "35.4 %"),
        (14, "times", "14×"),
        (8192, "tokens", "8,192 tokens"),
        (8190, "tokens", "8.19k tokens"),
        (12288, "tokens", "12,288 tokens"),
        (128000, "tokens", "128k tokens"),
        (2**20, "tokens", "1,048,576 tokens"),
        (2**25, "tokens", "33.6M tokens"),
        (0.0351, "times", "3.51 %"),
        (0.09996, "times", "0.1×"),
        (0, "times", "0×"),
        (285467, "times", "2.85·10⁵×"),
        (107.39, "percent", "107×"),
        (9.994, "percent", "999 %"),
    ],
)
def test_a_value_takes_the_scale_that_leaves_at_least_one_in_front(value, family, text):
    assert units.human(value, family) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.12e12, "GB", "1,120 GB"),
        (1.12e12, "TB", "1.12 TB"),
        (2.0**30, "GiB", "1 GiB"),
        (1.5e9, "days", "17,361 days"),
        (3600, "GPU-hours", "1 GPU-hour"),
    ],
)
def test_a_value_in_the_unit_asked_for(value, unit, text):
    assert units.in_unit(value, unit) == text


@in_one_test(
    "value, text",
    [
        (0.1, "0.1"),
        (0.0, "0"),
        (65504.0, "65,504"),
        (1.4e-45, "1.4·10⁻⁴⁵"),
        (-3.38953e38, "−3.39·10³⁸"),
        (5e-324, "5·10⁻³²⁴"),
        (1e6, "10⁶"),
        (999999.0, "10⁶"),
        (2.0**24, "16,777,216"),
        (9.996e-4, "0.001"),
        (2e-8, "2·10⁻⁸"),
    ],
)
def test_a_number_that_may_be_tiny_or_huge(value, text):
    assert units.human(value, "real") == text


@in_one_test(
    "text, shown",
    [
        ("201 to 10 % of 83.9 GB/s", "201 to 10~% of 83.9~GB/s"),
        ("2 × H100, 3 days", "2~× H100, 3~days"),
        ("−79 %. 12 users of 8 GPUs", "−79~%. 12 users of 8 GPUs"),
        ("8.19k tokens", "8.19k tokens"),
        ("1 TB", "1~TB"),
        ("5 Seconds, 7 Bs", "5 Seconds, 7 Bs"),
    ],
)
def test_no_line_ends_between_a_number_and_its_unit(text, shown):
    assert units.unbroken(text) == shown.replace("~", "\u00a0")


def test_unknown_families_units_and_values_are_refused():
    with refused("family", "bytes", "'parsec'"):
        units.human(1, "parsec")
    with pytest.raises(ValueError, match=r"unit must be one of .*got 'parsec'"):
        units.in_unit(1, "parsec")
    with pytest.raises(ValueError, match="finite"):
        units.number(float("nan"))
