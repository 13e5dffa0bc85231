"""What a person types, read as a quantity."""

import numpy as np
import pytest

from engine import typed, units

READ = [
    ("70B", "params", 70e9), ("70 b", "params", 70e9), ("7e10", "params", 7e10), (" 1,500 M ", "params", 1.5e9),
    ("7 billion", "params", 7e9), ("8B parameters", "params", 8e9), ("1.12 TB", "bytes", 1.12e12), ("1.12tb", "bytes", 1.12e12),
    ("1120 GB", "bytes", 1.12e12), ("1,120,000 MB", "bytes", 1.12e12), ("64 GiB", "bytes", 2.0**36), ("80 GiB", "bytes_binary", 80 * 2.0**30),
    ("20 MB", "bytes_binary", 20e6), ("400 Gbit/s", "bytes_per_s", 50e9), ("50 GBps", "bytes_per_s", 50e9), ("40 %", "percent", 0.4),
    ("40", "percent", 0.4), ("40 percent", "percent", 0.4), ("$3M", "dollars", 3e6), ("3 M$", "dollars", 3e6),
    ("3 million dollars", "dollars", 3e6), ("3M", "dollars", 3e6), ("2 days", "seconds", 172800.0), ("2 min", "seconds", 120.0),
    ("1.5 hours", "seconds", 5400.0), ("12 us", "seconds", 12e-6), ("12 μs", "seconds", 12e-6), ("3 weeks", "seconds", 1814400.0),
    ("15T tokens", "tokens", 15e12), ("15T", "tokens", 15e12), ("620 000", "tokens", 620e3), ("600 TFLOPS", "flops_per_s", 600e12),
    ("3·10²⁴ FLOPs", "flops", 3e24), ("295 FLOPs/byte", "flops_per_byte", 295.0), (".5", "count", 0.5), ("−3", "count", -3.0),
    ("+4", "count", 4.0), ("14×", "times", 14.0), ("14 x", "times", 14.0), ("8-fold", "times", 8.0), ("3 fold", "times", 3.0),
    ("1e3", "count", 1000.0), ("~ 12k", "count", 12e3),
    ("3 x 10^9", "count", 3e9), ("3*10**9", "count", 3e9), ("10^-3 s", "seconds", 1e-3), ("2^30", "count", 2.0**30), ("1'000", "count", 1e3),
]
NOT_READ = [*((text, "params") for text in (
    "", " ", "abc", "7 parsecs", "1e999", "nan", "Infinity", "--3", "0x10", "1 2", "<b>", "7B7", "%", "2^9999", "1" * 90, "7\nB", "__proto__")),
    ("1,12 TB", "bytes"), ("1,2345", "count"), ("80 Gb", "bytes"), ("400 Gbps", "bytes_per_s"), ("400 Gb/s", "bytes_per_s"),
    ("$3", "bytes"), ("3 s", "bytes"), ("3 GB", "seconds"), ("5 m", "seconds"), ("3 constructor", "count")]


@pytest.mark.parametrize("text, family, value", READ)
def test_a_typed_quantity_is_read(text, family, value):
    assert typed.parse(text, family) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text, family", NOT_READ)
def test_nonsense_another_dimension_and_what_could_be_two_things_are_not(text, family):
    assert typed.parse(text, family) is None


@pytest.mark.parametrize("family", units.FAMILIES)
def test_what_is_printed_can_be_typed(family):
    """The value typed back prints the same again, and is the printed one to the digits shown."""
    scales = [scale for scale, _ in units.FAMILIES[family]]
    for value in np.geomspace(scales[0] / 100, scales[-1] * 5000, 300):
        text = units.human(value, family)
        if "under" not in text:
            assert units.human(typed.parse(text, family), family) == text
            assert typed.parse(text, family) == pytest.approx(value, rel=5.01e-3)


def test_no_word_of_a_family_means_two_things_in_another_case():
    """'mb' would be milli or mega, were there both: the first in any case is then the only one."""
    for family in units.FAMILIES:
        known = {}
        for word, scale in typed.words(family).items():
            if scale is not None:
                assert known.setdefault(word.lower(), scale) == scale, (family, word)
