"""float_explorer by hand: bits and what they mean, neighbours, rows of formats, and the flip that leaves no number."""

import numpy as np
import pytest

from tests.widgets.reading import Reader
from widgets.float_explorer import FloatExplorer
from widgets.kit.controls import BadValue


READER = Reader(FloatExplorer)
shown, text, met = READER.shown, READER.text, READER.met


def bits(**texts):
    return "".join(f"{bit:.0f}" for bit in shown(**texts)["parts"]["cells"]["bit"])


@pytest.mark.parametrize("texts, pattern", [
    ({"value": 1}, "0011111110000000"), ({"value": 1.1}, "0011111110001101"), ({"value": 0.1, "format": "fp16"}, "0010111001100110"),
    ({"value": 448, "format": "e4m3"}, "01111110"), ({"value": 1, "format": "fp32"}, "0" + "01111111" + 23 * "0"),
    ({"value": 1e-8, "format": "fp16"}, 16 * "0"), ({"value": 1e5, "format": "fp16"}, "0111110000000000"),
])
def test_patterns_by_hand(texts, pattern):
    assert bits(**texts) == pattern


def test_a_flip_changes_its_bit_alone_and_what_the_pattern_means():
    assert bits(value=1, flips=1) == "0011111110000001" and text("means", value=1, flips=1) == "1.0078125"
    assert text("means", value=1, flips=2**15) == "−1" and text("means", value=1, flips=2**14) == "infinity"
    assert text("means", value=1.5, flips=2**14) == "not a number"
    assert text("means", value=1.1, flips=2**20) == text("means", value=1.1), "bits beyond the format do nothing"


def test_one_flip_to_no_number_is_the_target_and_two_or_an_overflow_are_not():
    assert met(value=1, flips=2**14) == {"no_number"}
    assert met(value=1) == set() and "no_number" not in met(value=1, flips=2**14 + 1)
    assert met(value=1e38, flips=1, format="fp16") == {"overflow"}


def test_neighbours_lie_a_gap_apart_and_half_a_gap_below_a_power_of_two():
    found = shown(value=1)["parts"]["neighbours"]
    assert found["place"].tolist() == [-1, -0.5, 0, 1, 2]
    assert found["text"] == ["0.9921875", "0.99609375", "1", "1.0078125", "1.015625"]
    assert len(set(shown(value=1.1, format="fp32")["parts"]["neighbours"]["text"])) == 5
    assert shown(value=65504, format="fp16")["parts"]["neighbours"]["text"][3:] == ["infinity", "NaN"]


def test_what_was_asked_is_marked_where_it_lies():
    place = shown(value=1.1)["parts"]["asked"]["place"]
    assert place == pytest.approx((1.1 - 1.1015625) / 2**-7)


def test_all_formats_side_by_side():
    rows = shown(value=1e-7)["parts"]["formats"]
    assert rows["became"][:3] == ["1e−7", "1.00001e−7", "1.00117e−7"]
    assert rows["became"][3:] == ["1.19209e−7, subnormal", "0: lost", "0: lost"] and rows["over"].tolist() == [0, 0, 0, 0, 1, 1]
    assert shown(value=1e5)["parts"]["formats"]["became"][3:] == ["too large"] * 3


def test_texts_follow():
    assert text("gap", value=1) == "0.00781" and text("kind", value=1e-40) == "subnormal" and text("kind", value=1e-5, format="e4m3") == "zero"
    assert "underflow" in met(value=1e-5, format="fp16")


@pytest.mark.parametrize("raw", ["-1", "1.5", str(2**32), "x", ""])
def test_bits_are_whole_numbers_of_their_range(raw):
    with pytest.raises(BadValue, match="flips must be a whole number"):
        shown(flips=raw)


def test_a_row_of_bits_survives_its_link():
    control = FloatExplorer.controls()["flips"]
    assert control.read(control.write(2.0**31 + 5)) == 2.0**31 + 5 and np.all(control.grid <= 2**31)
