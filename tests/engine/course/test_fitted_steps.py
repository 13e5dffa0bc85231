"""The fit of a training step's three constants finds what made the steps, and holds what is shipped near what
the published steps want. The other constants that a few rows fitted are worked out again beside it."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.calibration import DEFAULT, constants
from engine.course import fitted_steps, validation
from engine.course.fitted_steps import BOUNDS, FREE, Steps
from engine.step import step

README = (Path(constants.__file__).parent / "README.md").read_text(encoding="utf-8")


def marked(constant: str) -> list[dict]:
    """The rows that fitted a constant other than the three."""
    return [case for case in validation.load() if case.get("constant") == constant]


def made_of(truth) -> list[dict]:
    """The fitted steps, with what the engine says of them in place of what was published."""
    made = []
    for case in fitted_steps.cases():
        [name] = case["measured"]
        made.append(case | {"measured": {name: validation.training_step(case, truth)[name]}})
    return made


@pytest.mark.parametrize("values", [(0.75, 0.2, 0.85), (0.9, 0.05, 0.78)])
def test_the_fit_finds_the_constants_that_made_the_steps(values):
    truth = replace(DEFAULT, **dict(zip(BOUNDS, values)))
    found = fitted_steps.fit(Steps(made_of(truth)))
    for name in BOUNDS:
        assert getattr(found, name) == pytest.approx(getattr(truth, name), abs=2e-3), name


def test_a_constant_ends_at_its_bound_and_the_others_are_fitted_beside_it():
    made = Steps(made_of(replace(DEFAULT, memory_share=0.6)))
    found = fitted_steps.fit(made)
    assert found.memory_share == BOUNDS["memory_share"][0]
    assert fitted_steps.fit(made, FREE).memory_share == pytest.approx(0.6, abs=5e-3)
    for name in ("matmul_sustained", "matmul_power"):
        for change in (-0.01, 0.01):
            moved = replace(found, **{name: getattr(found, name) + change})
            assert made.misfit(moved) > made.misfit(found)


def test_the_steps_are_those_that_the_constants_name():
    """Sixteen, two on GB200 and one on V100; two that fitted zero_nics and four COPYING_SLOWS are others."""
    groups = fitted_steps.marked().groups
    recipes = sum(count for name, count in groups.items() if name.startswith("H100 recipes"))
    assert (groups["Korthikanti Table 5"], groups["Megatron SC21 tables"], groups["Llama 3 Table 4"]) == (
        2,
        4,
        1,
    )
    assert (recipes, groups["GB200 recipes, dense bf16"], groups["Megatron-LM of 2020"]) == (9, 2, 1)
    assert sum(groups.values()) == 19
    assert (len(marked("zero_nics")), len(marked("step.COPYING_SLOWS"))) == (2, 4)


def test_what_is_shipped_fits_nearly_as_well_as_the_best():
    """0.6 % more misfit than the least. A constant that moves by a tenth is noticed."""
    assert 0.0 <= fitted_steps.excess() < 0.03
    assert fitted_steps.excess(matmul_sustained=1.1 * DEFAULT.matmul_sustained) > 0.05
    for name, (low, high) in BOUNDS.items():
        assert low <= getattr(DEFAULT, name) <= high


def test_no_constant_has_more_digits_than_the_steps_can_tell_but_one():
    """Two digits; the third of matmul_sustained is nothing that they know, as the README says."""
    digits = {name: len(repr(getattr(DEFAULT, name)).removeprefix("0.")) for name in BOUNDS}
    assert digits == {"matmul_sustained": 3, "matmul_power": 2, "memory_share": 2}
    assert abs(fitted_steps.excess(matmul_sustained=0.85) - fitted_steps.excess()) < 0.005


def test_the_span_of_a_constant_ends_where_the_misfit_has_grown():
    name, steps, best = "matmul_sustained", fitted_steps.marked(), fitted_steps.best()
    span = fitted_steps.span(steps, best, name)
    assert span.low < DEFAULT.matmul_sustained < best.matmul_sustained < span.high
    beyond = span.high + 2 * fitted_steps.EDGE
    held = fitted_steps.fit(steps, BOUNDS | {name: (beyond, beyond)})
    assert steps.misfit(held) > (1 + fitted_steps.SLACK) * steps.misfit(best)


def test_the_readme_says_what_the_fit_finds():
    best, free = fitted_steps.best(), fitted_steps.best(bounded=False)
    for there in (best, free):
        said = " / ".join(f"{getattr(there, name):.3f}" for name in BOUNDS)
        assert said in README, said
    assert f"{fitted_steps.excess():.1%}".replace("%", " %") in README
    assert f"{fitted_steps.excess(matmul_sustained=0.855):.1%}".replace("%", " %") in README


# -- constants that a few rows fitted ------------------------------------------------------------------------
def test_what_a_call_from_torch_takes_is_read_off_its_smallest_messages():
    """19 to 25 µs, 20.8 in the mean."""
    rows = marked("validation.TORCH_CALL_S")
    each = [
        case["measured"]["time_s"] - validation.collective(case | {"harness": "nccl-tests"})["time_s"]
        for case in rows
    ]
    assert len(rows) == 6 and max(case["bytes"] for case in rows) == 128 * 1024
    assert min(each) < validation.TORCH_CALL_S < max(each)
    assert np.mean(each) == pytest.approx(validation.TORCH_CALL_S, rel=0.1)


def test_flat_buffers_are_read_off_two_readings_of_blooms():
    """8.5 and 13.0 GB."""
    each = [
        case["measured"]["total_bytes"]
        - validation.training_step(case)["total_bytes"]
        + step.FLAT_BUFFERS_BYTES
        for case in marked("step.FLAT_BUFFERS_BYTES")
    ]
    assert len(each) == 2 and min(each) < step.FLAT_BUFFERS_BYTES < max(each)
    assert np.mean(each) == pytest.approx(step.FLAT_BUFFERS_BYTES, rel=0.15)


def test_what_copying_takes_of_hidden_traffic_is_read_off_nine_steps(monkeypatch):
    """One model with and without overlap, and the dense H100 recipes with overlap among the fitted steps."""
    four = marked("step.COPYING_SLOWS")
    five = [
        case
        for case in fitted_steps.cases()
        if re.match("H100 recipes, dense", case["group"]) and case["job"].get("overlap_tensor")
    ]
    assert (len(four), len(five)) == (4, 5) and all(case["layout"]["tp"] > 1 for case in four + five)
    steps = Steps(four + five)
    steps.roots = np.full(9, 1.0 / 3.0)

    def misfit(share: float) -> float:
        monkeypatch.setattr(step, "COPYING_SLOWS", share)
        return steps.misfit(DEFAULT)

    shipped, tried = step.COPYING_SLOWS, np.linspace(0.2, 0.8, 61)
    found = min(tried, key=misfit)
    assert found == pytest.approx(shipped, abs=0.1)
    assert misfit(shipped) < 1.03 * misfit(found)
