"""What a person types, read as a quantity."""

import numpy as np
import pytest

from engine.base import typed, units
from tests.cases import in_one_test
from tests.said import refused

READ = [
    ("70B", "params", 70e9),
    ("70 b", "params", 70e9),
    ("7e10", "params", 7e10),
    (" 1,500 M ", "params", 1.5e9),
    ("7 billion", "params", 7e9),
    ("8B parameters", "params", 8e9),
    ("1.12 TB", "bytes", 1.12e12),
    ("1.12tb", "bytes", 1.12e12),
    ("1120 GB", "bytes", 1.12e12),
    ("1,120,000 MB", "bytes", 1.12e12),
    ("64 GiB", "bytes", 2.0**36),
    ("80 GiB", "bytes_binary", 80 * 2.0**30),
    ("20 MB", "bytes_binary", 20e6),
    ("400 Gbit/s", "bytes_per_s", 50e9),
    ("50 GBps", "bytes_per_s", 50e9),
    ("10 Gb/s", "bytes_per_s", 1.25e9),
    ("10 GB/s", "bytes_per_s", 10e9),
    ("400 Gbps", "bytes_per_s", 50e9),
    ("400 gbps", "bytes_per_s", 50e9),
    ("96.6 Gbit/s", "bytes_per_s", 12.075e9),
    ("96.6 Gbit/s", "Gb/s", 12.075e9),
    ("96.6", "Gb/s", 12.075e9),
    ("5 KB/s", "bytes_per_s", 5e3),
    ("80", "GB", 80e9),
    ("80 MB", "GB", 80e6),
    ("15.8", "days", 15.8 * units.DAY),
    ("15.8 days", "days", 15.8 * units.DAY),
    ("1 MiB", "bytes", 2.0**20),
    ("12.5 %", "percent", 0.125),
    ("1/8", "percent", 0.125),
    ("1/2001", "%", 1 / 2001),
    ("1/8", "share", 0.125),
    ("0.732", "share", 0.732),
    ("73.2 %", "share", 0.732),
    ("0.732", "%", 0.00732),
    ("12.5 %", "count", 0.125),
    ("1/8", "count", 0.125),
    ("3/4 GB", "bytes", 0.75e9),
    ("1⁄8", "count", 0.125),
    ("2^-3", "count", 0.125),
    ("12.3k", "count", 12300.0),
    ("12.3k", "tokens", 12300.0),
    ("8.19k tokens", "tokens", 8190.0),
    ("8,192 tokens", "tokens", 8192.0),
    ("305 %", "times", 3.05),
    ("107×", "percent", 107.0),
    ("2.85·10⁵×", "times", 285e3),
    ("4.1k", "tokens", 4100.0),
    ("1.5e12", "count", 1.5e12),
    ("2^20", "bytes", 2.0**20),
    ("8,192", "count", 8192.0),
    ("8\u00a0192", "count", 8192.0),
    ("0x3E9A", "count", 16026.0),
    ("0b1010", "count", 10.0),
    ("3 days 4 h", "seconds", 76 * 3600.0),
    ("3 days, 4 h and 5 min", "days", 76 * 3600.0 + 300),
    ("1h30min", "seconds", 5400.0),
    ("$1.2M", "dollars", 1.2e6),
    ("−$3", "dollars", -3.0),
    ("$-3", "dollars", -3.0),
    ("1.2", "M$", 1.2e6),
    ("$1.2", "M$", 1.2),
    ("5 µs", "seconds", 5e-6),
    ("−3 × 10^2", "count", -300.0),
    ("1.4e−45", "real", 1.4e-45),
    ("64 GPUs", "count", 64.0),
    ("48k tokens", "count", 48e3),
    ("64 micro-batches", "count", 64.0),
    ("3 tokens per GPU", "count", 3.0),
    ("7B weights", "params", 7e9),
    ("0B", "bytes", 0.0),
    ("40 %", "percent", 0.4),
    ("40", "percent", 0.4),
    ("40 percent", "percent", 0.4),
    ("$3M", "dollars", 3e6),
    ("3 M$", "dollars", 3e6),
    ("3 million dollars", "dollars", 3e6),
    ("3M", "dollars", 3e6),
    ("2 days", "seconds", 172800.0),
    ("2 min", "seconds", 120.0),
    ("1.5 hours", "seconds", 5400.0),
    ("12 us", "seconds", 12e-6),
    ("12 μs", "seconds", 12e-6),
    ("3 weeks", "seconds", 1814400.0),
    ("15T tokens", "tokens", 15e12),
    ("15T", "tokens", 15e12),
    ("620 000", "tokens", 620e3),
    ("600 TFLOPS", "flops_per_s", 600e12),
    ("3·10²⁴ FLOPs", "flops", 3e24),
    ("295 FLOPs/byte", "flops_per_byte", 295.0),
    (".5", "count", 0.5),
    ("−3", "count", -3.0),
    ("+4", "count", 4.0),
    ("14×", "times", 14.0),
    ("14 x", "times", 14.0),
    ("8-fold", "times", 8.0),
    ("3 fold", "times", 3.0),
    ("1e3", "count", 1000.0),
    ("~ 12k", "count", 12e3),
    ("3 x 10^9", "count", 3e9),
    ("3*10**9", "count", 3e9),
    ("10^-3 s", "seconds", 1e-3),
    ("2^30", "count", 2.0**30),
    ("1'000", "count", 1e3),
]
NOT_READ = [
    *(
        (text, "params")
        for text in (
            "",
            " ",
            "abc",
            "7 parsecs",
            "1e999",
            "nan",
            "Infinity",
            "--3",
            "0x10",
            "1/0",
            "1/0.0",
            "1:30",
            "3 to 4",
            "3-4",
            "7 bananas",
            "12 GPUs",
            "-$-3",
            "1 2",
            "<b>",
            "7B7",
            "%",
            "2^9999",
            "1" * 90,
            "7\nB",
            "__proto__",
        )
    ),
    ("1,12 TB", "bytes"),
    ("1,2345", "count"),
    ("80 Gb", "bytes"),
    ("400 gb/s", "bytes_per_s"),
    ("5 mW", "watts"),
    ("13.4 GB/s", "count"),
    ("13.4 GB/s", "tokens"),
    ("7 bananas", "count"),
    ("3 days 4 weeks", "seconds"),
    ("3 days 4 days", "seconds"),
    ("3 GB 4 MB", "bytes"),
    ("5 GB", "share"),
    ("$3", "bytes"),
    ("3 s", "bytes"),
    ("3 GB", "seconds"),
    ("5 m", "seconds"),
    ("3 constructor", "count"),
]


@in_one_test("text, unit, value", READ)
def test_a_typed_quantity_is_read(text, unit, value):
    reading = typed.parse(text, unit)
    assert reading.value == pytest.approx(value, rel=1e-12) and not reading.refused


@in_one_test("text, unit", NOT_READ)
def test_nonsense_another_dimension_and_what_could_be_two_things_are_not(text, unit):
    """Each is refused in a sentence that says what was expected."""
    reading = typed.parse(text, unit)
    assert reading.value is None and reading.refused.endswith(".")
    kind = typed.KINDS[typed.FAMILY[unit]]
    assert kind in reading.refused or "bits to some" in reading.refused


@in_one_test(
    "text, unit, words",
    [
        ("", "GB", "Type an amount of data first."),
        ("NaN", "GB", "“NaN” is no number; this needs an amount of data."),
        ("-inf", "count", "“-inf” is no number; this needs a number."),
        ("13.4 GB/s", "count", "That is a bandwidth; this needs a number."),
        ("7 bananas", "count", "“bananas” is not what is counted here; this needs a number."),
        ("7 bananas", "GB", "“bananas” is no unit that is known here; this needs an amount of data."),
        ("3 4", "days", "These are two numbers; this needs one, a time."),
        ("8 GPUs of 80 GB", "GB", "These are two numbers; this needs one, an amount of data."),
        ("$3M", "GB", "That is an amount of money; this needs an amount of data."),
        ("3 M$", "GB", "That is an amount of money; this needs an amount of data."),
        ("24.8k", "GB", "That is a number; this needs an amount of data."),
        ("17.6k", "times", "That is a number; this needs a factor."),
        ("80 Gb", "GB", "“Gb” is bits to some and bytes to others: write GB for bytes, Gbit for bits."),
        (
            "9 gb/s",
            "GB/s",
            "“gb/s” is bits to some and bytes to others: write GB/s for bytes, Gbit/s for bits.",
        ),
        ("1/0", "%", "No number is divided by 0; this needs a share."),
        ("1e999", "count", "No computer's number is that large; this needs a number."),
        ("1" * 10**6, "tokens", "No number is that long: only the first 80 characters are kept."),
        ("1,5 TB", "TB", "A comma parts thousands, as in 8,192; for decimals write a point."),
        ("twelve", "%", "No number that can be read here; this needs a share."),
    ],
)
def test_a_refusal_says_what_was_expected(text, unit, words):
    assert words in typed.parse(text, unit).refused


def test_the_words_of_the_question_may_stand_behind_a_number():
    assert typed.parse("3 H100s", "count", "H100s that hold it").value == 3
    assert typed.parse("3 bananas", "count", "Bananas in the basket").value == 3
    assert typed.parse("67.8 tokens/s", "count", "Tokens a second of one user").value == 67.8
    assert typed.parse("67.8 tokens/s", "count", "Tokens of one user").value is None
    assert typed.parse("13.4 GB/s", "count", "GB/s for a model").value is None  # a unit is never a noun


def test_a_reading_says_how_near_it_is_and_whether_it_had_a_unit():
    assert typed.parse("8.19k", "tokens")[:4] == (8190.0, 5.0, 3, False)
    assert typed.parse("8,190", "tokens")[:4] == (8190.0, 0.5, 4, True)
    assert typed.parse("0.050 GB", "MB")[:4] == (50e6, 0.5e6, 2, False)
    assert typed.parse("1/8", "count")[:4] == (0.125, 0.0, 0, True)


def test_an_unknown_unit_is_the_callers_fault():
    with refused("unit", "bytes", "'furlongs'"):
        typed.parse("3", "furlongs")


@pytest.mark.parametrize("family", units.FAMILIES)
def test_what_is_printed_can_be_typed(family):
    """The value typed back prints the same again, and is the printed one to the digits shown."""
    scales = [scale for scale, _ in units.FAMILIES[family]]
    for value in np.geomspace(scales[0] / 100, scales[-1] * 5000, 300):
        for sign in (1, -1):
            text = units.human(sign * value, family)
            if "under" in text or "about" in text:
                continue
            for written in (text, text.replace(" ", "\u00a0"), f" {text} "):
                reading = typed.parse(written, family)
                assert units.human(reading.value, family) == text
                assert reading.value == pytest.approx(sign * value, rel=5.01e-3)
                assert abs(reading.value - sign * value) <= reading.half * (1 + 1e-9)


@pytest.mark.parametrize("unit", units.UNITS)
def test_what_is_printed_in_a_unit_can_be_typed(unit):
    for value in np.geomspace(units.UNITS[unit][0] / 100, units.UNITS[unit][0] * 5e6, 100):
        for digits in (2, 3, 5):
            text = units.in_unit(value, unit, digits)
            reading = typed.parse(text, unit)
            assert units.in_unit(reading.value, unit, digits) == text
            shown_to = max(reading.half, 0.5 * 10 ** (1 - digits) * value)
            assert abs(reading.value - value) <= shown_to * (1 + 1e-9)
            alone = text.split()[0]
            if "$" not in alone:
                assert typed.parse(alone.rstrip("kMBT×%"), unit).value == reading.value


@in_one_test("family", units.FAMILIES)
def test_no_word_of_a_family_means_two_things_in_another_case(family):
    """'mb' would be milli or mega, were there both. Where the case of a b tells bits from bytes, a word in
    yet another case is read only if it can be one thing."""
    known = {}
    for word, scale in typed.words(family).items():
        known.setdefault(word.lower(), set()).add(scale)
    for word, scales in known.items():
        scales.discard(None)
        assert len(scales) <= 1 or family == "bytes_per_s", (family, word)
        if len(scales) > 1 and word not in typed.words(family):
            assert typed.scale_of(word, family) is None
