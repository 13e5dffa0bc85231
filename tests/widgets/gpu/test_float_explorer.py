"""float_explorer by hand: bits and what they mean, the ruler, rows of formats, and the flip that leaves no
number."""

import numpy as np
import pytest

from engine.mechanism import precision
from tests import states
from tests.cases import in_one_test
from tests.widgets.reading import Reader
from widgets.gpu.float_explorer import FOOT, NAMES, FloatExplorer
from widgets.kit.controls import BadValue

READER = Reader(FloatExplorer)
shown, text, met = READER.shown, READER.text, READER.met


def bits(**texts):
    return "".join(f"{bit:.0f}" for bit in shown(**texts)["parts"]["cells"]["bit"])


@in_one_test(
    "texts, pattern",
    [
        ({"value": 1}, "0011111110000000"),
        ({"value": 1.1}, "0011111110001101"),
        ({"value": 0.1, "format": "fp16"}, "0010111001100110"),
        ({"value": 448, "format": "e4m3"}, "01111110"),
        ({"value": 1, "format": "fp32"}, "0" + "01111111" + 23 * "0"),
        ({"value": 1e-8, "format": "fp16"}, 16 * "0"),
        ({"value": 1e5, "format": "fp16"}, "0111110000000000"),
    ],
)
def test_patterns_by_hand(texts, pattern):
    assert bits(**texts) == pattern


def test_a_flip_changes_its_bit_alone_and_what_the_pattern_means():
    assert bits(value=1, flips=1) == "0011111110000001" and text("means", value=1, flips=1) == "1.0078125"
    assert text("means", value=1, flips=2**15) == "−1" and text("means", value=1, flips=2**14) == "infinity"
    assert text("means", value=1.5, flips=2**14) == "not a number"
    assert text("means", value=1.1, flips=2**20) == text("means", value=1.1), (
        "bits beyond the format do nothing"
    )


def test_one_flip_to_no_number_is_the_target_and_two_or_an_overflow_are_not():
    assert met(value=1, flips=2**14) == {"no_number"}
    assert met(value=1) == set() and "no_number" not in met(value=1, flips=2**14 + 1)
    assert met(value=1e38, flips=1, format="fp16") == {"overflow"}


def row(name: str, **texts):
    """The places of one format's numbers on the ruler, from −1 to 1, and of the nearest of them."""
    parts = shown(**texts)["parts"]
    at = NAMES.index(name)
    middle = len(NAMES) - 1 - at
    low = parts["numbers"]["low"]
    near = (parts["nearest"]["left"] + parts["nearest"]["right"])[at] / 2
    return parts["numbers"]["x"][np.abs(low + FOOT - middle) < 0.01], near


def test_the_ruler_has_the_numbers_of_each_format_on_one_scale():
    """Around 1.1 E5M2's gap is 0.25, so the ruler reaches 0.375: to 0.725 and 1.475."""
    numbers, near = row("fp8 E5M2", value=1.1)
    assert 1.1 + 0.375 * numbers == pytest.approx([0.75, 0.875, 1, 1.25]) and near == pytest.approx(
        -0.1 / 0.375
    )
    numbers, near = row("fp8 E4M3", value=1.1)
    below = [0.75, 0.8125, 0.875, 0.9375]
    assert 1.1 + 0.375 * numbers == pytest.approx([*below, 1, 1.125, 1.25, 1.375])
    assert 1.1 + 0.375 * near == pytest.approx(1.125)
    numbers, near = row("bf16", value=1.1)
    assert np.diff(numbers[-10:]) * 0.375 == pytest.approx(2**-7) and near == pytest.approx(0.0015625 / 0.375)


def test_formats_too_fine_for_the_ruler_are_a_line_up_to_their_largest():
    lines = shown(value=1.1)["parts"]["lines"]
    drawn = (lines["right"] - lines["left"]).tolist()
    assert drawn == [2, 2, 0, 2, 0, 0] and row("fp16", value=1.1)[0].size == 0
    cut = shown(value=65000, format="fp16")["parts"]["lines"]["right"][3]
    assert cut == pytest.approx((65504 - 65000) / (1.5 * 2**13))
    assert row("fp8 E4M3", value=70000)[0].size == 0


def test_a_chosen_format_with_wide_gaps_widens_the_ruler_to_them():
    """2e−8 in fp16: its gap there is 2⁻²⁴ = 6e−8; 0 and one number on either side are in sight."""
    numbers, near = row("fp16", value=2e-8, format="fp16")
    reach = 1.5 * 2**-24
    assert 2e-8 + reach * numbers == pytest.approx([-(2**-24), 0, 2**-24]) and near == numbers[1]


@in_one_test("state", states.scattered(FloatExplorer, 60))
def test_no_number_of_the_ruler_is_off_it(state):
    widget = FloatExplorer()
    widget.set_raw(state)
    numbers = widget.shown()["parts"]["numbers"]["x"]
    assert (np.abs(numbers) <= 1).all() and numbers.size < precision.MOST_TICKS


def test_the_chosen_row_says_what_its_bits_mean_and_no_error_beside_it():
    """Once infinity stood beside "off by 0 %", the error of the number before its bit was flipped."""
    for flips in (0, 2**14):
        parts = shown(value=1, flips=flips)["parts"]
        assert parts["chosen"]["text"] == ("infinity" if flips else "1") and parts["chosen"]["name"] == "bf16"
        at = NAMES.index("bf16")
        rows = parts["formats"]
        assert [rows[name][at] for name in ("name", "became", "became_short", "error", "short")] == 5 * [""]


@in_one_test("value, pattern", [("0", 16 * "0"), ("-1", "1011111110000000"), ("-1.1", "1011111110001101")])
def test_zero_and_numbers_below_it_can_be_typed(value, pattern):
    assert bits(value=value) == pattern and not met(value=value)
    became = shown(value=value)["parts"]["formats"]["became"][0]
    assert became.startswith(value.replace("-", "−")) and "lost" not in became


def test_below_zero_the_ruler_is_the_mirror_image_and_around_zero_both_sides():
    for name in ("fp8 E5M2", "bf16"):
        above, near = row(name, value="1.1")
        below, mirrored = row(name, value="-1.1")
        assert sorted(-below) == pytest.approx(sorted(above)) and mirrored == pytest.approx(-near)
    around, near = row("fp16", value="0", format="fp16")
    assert sorted(around) == pytest.approx([-1 / 1.5, 0, 1 / 1.5]) and near == 0


def test_all_formats_side_by_side():
    found = shown(value=1e-7, format="fp32")["parts"]
    rows = found["formats"]
    assert rows["became"] == [
        "",
        "1.00001·10⁻⁷",
        "1.00117·10⁻⁷",
        "1.19209·10⁻⁷, subnormal",
        "0, lost",
        "0, lost",
    ]
    assert found["chosen"]["text"] == "1.00000001·10⁻⁷"
    assert rows["error"][3:] == ["off by 19 %", "off by 100 %", "off by 100 %"]
    assert shown(value=1e5)["parts"]["formats"]["became"][3:] == ["too large"] * 3


def test_a_row_s_number_and_its_error_agree():
    """1.1 is 1.125 in E4M3, off by 2.3 %: with "1.1" beside that error the row would deny itself."""
    rows = shown(value=1.1, format="bf16")["parts"]["formats"]
    assert rows["became"][4] == "1.125" and rows["error"][4] == "off by 2.3 %"
    for became, error in zip(rows["became"], rows["error"]):
        if became and "under" not in error:
            off = abs(float(became) - 1.1) / 1.1
            assert 100 * off == pytest.approx(float(error.split()[2]), rel=0.03)


def test_texts_follow():
    assert (
        text("gap", value=1) == "0.00781"
        and text("means", value=1e-5, format="e4m3") == "0"
        and text("means", value=1e5, format="fp16") == "infinity"
    )
    assert "underflow" in met(value=1e-5, format="fp16")


@pytest.mark.parametrize("raw", ["-1", "1.5", str(2**32), "x", ""])
def test_bits_are_whole_numbers_of_their_range(raw):
    with pytest.raises(BadValue, match="flips must be a whole number"):
        shown(flips=raw)


def test_a_row_of_bits_survives_its_link():
    control = FloatExplorer.controls()["flips"]
    assert control.read(control.write(2.0**31 + 5)) == 2.0**31 + 5 and np.all(control.grid <= 2**31)
