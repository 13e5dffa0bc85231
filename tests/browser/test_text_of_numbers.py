"""Both formatters print the same characters."""

import json

import numpy as np
import pytest

from engine.base import units
from tests import states

CALL = """async ([name, calls]) => {
  const numbers = await import("/assets/widget/numbers.js");
  return JSON.stringify(calls.map(given => numbers[name](...given)));
}"""


def in_page(script, name: str, calls: list) -> list:
    return json.loads(script.evaluate(CALL, [name, calls]))


def edges(scale: float) -> list[float]:
    """Numbers around a scale at which rounding could go either way."""
    near = [
        0.4995,
        0.9985,
        0.9994,
        0.9995,
        0.99949999999999,
        0.9996,
        1.0,
        1.005,
        1.0049999,
        1.015,
        1.25,
        1.235,
        2.5,
        12.5,
        12.45,
        99.95,
        99.949999,
        100.5,
        101.5,
        999.4,
        999.5,
        999.49999999,
        999.9,
        1000.0,
        1000.5,
        1234.5,
        12345.5,
        0.0005,
        0.00099951,
    ]
    return [scale * value for value in near]


def sample(count: int = 1500) -> list[float]:
    """Zero, ties, powers of ten, the tiny and the huge, and seeded random numbers; each with both signs."""
    random = np.random.default_rng(1)
    values = [0.0, 5e-324, 1e-300, 1e290, 0.1 + 0.2, 1 / 3, 2.0**53, 2.0**63]
    values += [10.0**k for k in range(-25, 26)] + [
        value for k in range(-9, 19, 3) for value in edges(10.0**k)
    ]
    values += (10.0 ** random.uniform(-12, 28, count)).tolist() + (
        random.integers(1, 10**6, count) / 1000
    ).tolist()
    values += (random.integers(0, 10**5, 300) + 0.5).tolist()
    return values + [-value for value in values]


def wrong(script, name: str, python, calls: list) -> list:
    """The calls whose text differs between page and Python."""
    both = zip(calls, in_page(script, name, calls), (python(*given) for given in calls), strict=True)
    return [each for each in both if each[1] != each[2]]


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 6])
def test_plain_numbers(script, digits):
    assert wrong(script, "number", units.number, [[value, digits] for value in sample()]) == []


@pytest.mark.parametrize("family", units.FAMILIES)
def test_numbers_with_the_scale_that_suits_them(script, family):
    around = [value for scale, _ in units.FAMILIES[family] for value in edges(scale)]
    calls = [[value, family, digits] for value in (*around, *states.daily(sample(200))) for digits in (2, 3)]
    assert wrong(script, "human", units.human, calls) == []


def test_numbers_in_a_unit_asked_for(script):
    calls = [
        [value, unit, 3]
        for unit in units.UNITS
        for value in (*edges(units.UNITS[unit][0]), *states.daily(sample(30), 3))
    ]
    assert wrong(script, "in_unit", units.in_unit, calls) == []


def test_no_line_ends_between_a_number_and_its_unit(script):
    said = [units.human(value, family) for family in units.FAMILIES for value in (0.0, 1.0, 7e5, 3.2e13)]
    texts = [*said, *(f"{text} of 12 users, 3 to {text}." for text in said), "2 × H100", "1.5 GPU-hours", ""]
    assert in_page(script, "unbroken", [[text] for text in texts]) == [units.unbroken(text) for text in texts]
