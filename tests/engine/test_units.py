"""Scales and their text."""

import pytest

from engine import units


@pytest.mark.parametrize("value, family, text", [
    (1.12e12, "bytes", "1.12 TB"), (80e9, "bytes", "80 GB"), (999.9e9, "bytes", "1 TB"),
    (1.5 * 2.0**30, "bytes_binary", "1.5 GiB"), (50e9, "bytes_per_s", "50 GB/s"),
    (989e12, "flops_per_s", "989 TFLOP/s"), (3.44e15, "flops", "3.44 PFLOP"), (8.6016, "seconds", "8.6 s"),
    (0, "seconds", "0 s"), (3.4e-6, "seconds", "3.4 µs"), (7e9, "params", "7B"), (15e12, "tokens", "15T tokens"),
    (3e6, "dollars", "$3M"), (86400, "seconds", "1 day"), (2 * 86400, "seconds", "2 days"), (365.25 * 86400, "seconds", "1 year"),
    (1, "tokens", "1 token"), (1000, "tokens", "1k tokens"), (0.354, "percent", "35.4 %"), (14, "times", "14×")])
def test_a_value_takes_the_scale_that_leaves_at_least_one_in_front(value, family, text):
    assert units.human(value, family) == text


@pytest.mark.parametrize("value, unit, text", [(1.12e12, "GB", "1,120 GB"), (1.12e12, "TB", "1.12 TB"),
                                               (2.0**30, "GiB", "1 GiB"), (1.5e9, "days", "17,361 days"), (3600, "GPU-hours", "1 GPU-hour")])
def test_a_value_in_the_unit_asked_for(value, unit, text):
    assert units.in_unit(value, unit) == text


@pytest.mark.parametrize("value, text", [(0.1, "0.1"), (0.0, "0"), (65504.0, "65,504"), (1.4e-45, "1.4e−45"), (-3.38953e38, "−3.39e38"),
                                         (5e-324, "5e−324"), (1e6, "1e6"), (999999.0, "1e6"), (9.996e-4, "0.001"), (2e-8, "2e−8")])
def test_a_number_that_may_be_tiny_or_huge(value, text):
    assert units.human(value, "real") == text


def test_unknown_families_units_and_values_are_refused():
    with pytest.raises(ValueError, match="family must be one of bytes, .*got 'parsec'"):
        units.human(1, "parsec")
    with pytest.raises(ValueError, match="unit must be one of .*got 'parsec'"):
        units.in_unit(1, "parsec")
    with pytest.raises(ValueError, match="finite"):
        units.number(float("nan"))
