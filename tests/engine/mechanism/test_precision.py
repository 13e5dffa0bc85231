"""Formats by hand, then every pattern against numpy and torch."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.mechanism import precision
from engine.mechanism.precision import BF16, E4M3, E5M2, FORMATS, FP16, FP32, TF32
from tests import machine
from tests.cases import in_one_test


# -- by hand -------------------------------------------------------------------------------------------------
@in_one_test(
    "number_format, bits, largest, smallest_normal, smallest, epsilon",
    [
        (FP32, 32, 3.4028234663852886e38, 2.0**-126, 2.0**-149, 2.0**-23),
        (TF32, 19, 3.4011621342146535e38, 2.0**-126, 2.0**-136, 2.0**-10),
        (BF16, 16, 3.3895313892515355e38, 2.0**-126, 2.0**-133, 2.0**-7),
        (FP16, 16, 65504.0, 2.0**-14, 2.0**-24, 2.0**-10),
        (E4M3, 8, 448.0, 2.0**-6, 2.0**-9, 0.125),  # OFP8, table 1
        (E5M2, 8, 57344.0, 2.0**-14, 2.0**-16, 0.25),
    ],
)
def test_ranges_are_those_of_the_standards(number_format, bits, largest, smallest_normal, smallest, epsilon):
    assert (number_format.bits, number_format.largest) == (bits, largest)
    assert (number_format.smallest_normal, number_format.smallest, number_format.epsilon) == (
        smallest_normal,
        smallest,
        epsilon,
    )


@in_one_test(
    "number_format, x, near",
    [
        (BF16, 1.0001, 1.0),
        (BF16, 1 + 2.0**-8, 1.0),
        (BF16, 1 + 3 * 2.0**-8, 1 + 2.0**-6),  # ties to even, down and up
        (BF16, 0.1, 0.10009765625),
        (FP16, 0.1, 0.0999755859375),
        (E4M3, 0.1, 0.1015625),
        (E5M2, 0.1, 0.09375),
        (FP16, 2.0**-25, 0.0),
        (FP16, 2.0**-25 * 1.001, 2.0**-24),
        (FP16, 65519.9, 65504.0),
        (FP16, 65520.0, math.inf),
        (E4M3, 464.0, 448.0),
        (E4M3, -1e9, -448.0),
        (E5M2, 61440.0, math.inf),
        (FP16, -65520.0, -math.inf),
        (FP32, 0.1, 0.10000000149011612),
    ],
)
def test_rounding_by_hand(number_format, x, near):
    assert number_format.round(x) == near


def test_e4m3_has_no_infinity():
    assert E4M3.encode(1e9) == 0x7E and math.isnan(E4M3.decode(0x7F)) and math.isnan(E4M3.decode(0xFF))
    assert E4M3.decode(0x7E) == 448 and E5M2.decode(0x7C) == math.inf and math.isnan(E5M2.decode(0x7D))


@in_one_test(
    "number_format, x, pattern",
    [
        (BF16, 1.0, 0x3F80),
        (FP16, 1.0, 0x3C00),
        (E4M3, 1.0, 0x38),
        (E5M2, 1.0, 0x3C),
        (FP32, 1.0, 0x3F800000),
        (TF32, 1.0, 0x1FC00),
        (BF16, -2.0, 0xC000),
        (FP16, 0.1, 0x2E66),
    ],
)
def test_patterns_by_hand(number_format, x, pattern):
    assert number_format.encode(x) == pattern


def test_gaps_double_with_each_octave_and_stop_shrinking_below_the_normal_numbers():
    assert [BF16.gap(x) for x in (1, 1.99, 2, 256)] == [2.0**-7, 2.0**-7, 2.0**-6, 2.0]
    assert FP16.gap(2.0**-14) == FP16.gap(2.0**-20) == FP16.gap(0.0) == 2.0**-24


@pytest.mark.parametrize(
    "call",
    [
        lambda: FP16.round(math.nan),
        lambda: FP16.decode(70000),
        lambda: FP16.gap(1e6),
        lambda: FP16.encode(math.inf),
    ],
)
def test_what_is_refused_is_named(call):
    with pytest.raises(ValueError, match="must be"):
        call()


def test_bytes_in_memory():
    """Those of its bits; TF32 lies there as fp32, of which the units leave bits away."""
    found = {one.key: one.stored_bytes for one in precision.FORMATS}
    assert found == {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "e4m3": 1, "e5m2": 1}


# -- every pattern -------------------------------------------------------------------------------------------
def same(ours, theirs) -> bool:
    with np.errstate(invalid="ignore"):  # NaNs of fp32 that signal
        return np.array_equal(np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float), equal_nan=True)


def torch_type(number_format):
    torch = machine.torch()
    return torch, {
        "bf16": torch.bfloat16,
        "fp16": torch.float16,
        "e4m3": torch.float8_e4m3fn,
        "e5m2": torch.float8_e5m2,
    }[number_format.key]


def torch_decoded(number_format):
    torch, dtype = torch_type(number_format)
    whole = {8: torch.uint8, 16: torch.int16}[number_format.bits]
    return torch.arange(2**number_format.bits, dtype=torch.int32).to(whole).view(dtype).float().numpy()


def decisive(number_format) -> np.ndarray:
    """Every number of the format, every middle between two, and what lies next to a middle on either side, as
    fp32."""
    numbers = np.array([number_format.decode(p) for p in range(2 ** (number_format.bits - 1))])
    numbers = np.append(
        numbers[np.isfinite(numbers)], number_format.largest + number_format.gap(number_format.largest)
    )
    middles = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    sides = [np.nextafter(middles, np.float32(side)) for side in (0, np.inf)]
    found = np.concatenate([numbers[:-1].astype(np.float32), middles, *sides])
    return np.concatenate([found, -found])


def test_fp16_decodes_as_numpy_does():
    theirs = np.arange(2**16, dtype=np.uint16).view(np.float16)
    assert same([FP16.decode(p) for p in range(2**16)], theirs)


@pytest.mark.parametrize("number_format", [BF16, FP16, E4M3, E5M2], ids=lambda f: f.key)
def test_every_pattern_decodes_as_torch_does(number_format):
    assert same([number_format.decode(p) for p in range(2**number_format.bits)], torch_decoded(number_format))


@pytest.mark.parametrize("number_format", [BF16, FP16, E4M3, E5M2], ids=lambda f: f.key)
def test_every_decision_of_rounding_is_torchs(number_format):
    torch, dtype = torch_type(number_format)
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 12) and not number_format.has_infinity:
        pytest.skip("E4M3 overflowed to NaN before PyTorch 2.12")
    values = decisive(number_format)
    theirs = torch.from_numpy(values).to(dtype).float().numpy()
    assert same([number_format.round(float(v)) for v in values], theirs)


@pytest.mark.parametrize("number_format", FORMATS, ids=lambda f: f.key)
def test_numbers_survive_their_patterns(number_format):
    for pattern in np.unique(np.linspace(0, 2**number_format.bits - 1, 3001).astype(np.int64)).tolist():
        number = number_format.decode(pattern)
        if math.isfinite(number) and pattern != 2 ** (number_format.bits - 1):  # minus zero compares as zero
            assert number_format.encode(number) == pattern


@given(st.floats(-1e38, 1e38, width=64))
def test_fp32_is_numpys(x):
    assert FP32.round(x) == np.float32(x)
    if np.float32(x) != 0:
        assert FP32.encode(x) == np.float32(x).view(np.uint32)


@given(st.floats(1e-12, 400), st.sampled_from(FORMATS))
def test_rounding_is_within_half_a_gap_and_stays(x, number_format):
    near = number_format.round(x)
    assert abs(near - x) <= number_format.gap(x) / 2 and number_format.round(near) == near


# -- the explorer --------------------------------------------------------------------------------------------
def test_one_flip_of_the_top_exponent_bit_takes_one_to_infinity():
    found = precision.explored(1.0, 2.0**14, 8, 7, BF16.largest, 1)
    assert found["kind"] == precision.INFINITE and found["turns"] == 1 and found["pattern"] == 0x7F80
    assert precision.explored(1.5, 2.0**14, 8, 7, BF16.largest, 1)["kind"] == precision.NAN


def test_the_explorer_shows_pattern_roles_and_neighbours():
    found = precision.explored(1.0, 0, 4, 3, 448.0, 0)
    assert found["bit"][:8].tolist() == [0, 0, 1, 1, 1, 0, 0, 0] and np.isnan(found["bit"][8])
    assert found["role"][:8].tolist() == [0, 1, 1, 1, 1, 2, 2, 2]
    assert found["place"].tolist() == [-1, -0.5, 0, 1, 2] and found["around"].tolist() == [
        0.875,
        0.9375,
        1.0,
        1.125,
        1.25,
    ], "gaps below a power of two are half as wide"


@given(st.floats(1e-30, 1e30))
def test_side_by_side_is_one_by_one(x):
    found = precision.in_every_format(x)
    for i, number_format in enumerate(FORMATS):
        near = number_format.round(x)
        over = found["kind"][i] == precision.INFINITE
        assert np.isnan(found["size"][i]) if over else found["size"][i] == near
        assert (found["kind"][i] == precision.INFINITE) == (
            abs(precision.nearest(x, number_format.mantissa_bits, number_format.lowest_exponent))
            > number_format.largest
        )


@in_one_test("x", [1.1, 0.1, 3e-5, 70000.0, 1e-45])
@in_one_test("chosen", FORMATS, ids=[f.key for f in FORMATS])
def test_the_ruler_lists_the_numbers_that_decoding_finds(x, chosen):
    """All numbers of the two formats of 8 bits, against those of the ruler that are in reach."""
    found = precision.ruler(x, chosen.mantissa_bits, chosen.lowest_exponent)
    place, rows = (np.asarray(found[name]) for name in ("place", "row"))
    for i, of in enumerate(FORMATS):
        if of.bits > 8 or found["end"][i] > found["start"][i]:
            continue
        numbers = {of.decode(code) for code in range(256)}
        reach = found["reach"]
        expected = sorted(v for v in numbers if np.isfinite(v) and abs(v - x) <= reach * (1 + 1e-12))
        assert x + reach * place[rows == i] == pytest.approx(expected, rel=1e-9, abs=reach * 1e-9)
