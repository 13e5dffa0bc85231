"""The fit of a training step's three constants recovers the constants that steps were made with, and the
shipped constants are those that it finds.
The other constants, each fitted on a few rows, are computed again as well."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import validation
from engine.calibration import DEFAULT, constants
from engine.step import step
from engine.validation import fitted_steps
from engine.validation.fitted_steps import BOUNDS, FREE, Steps

SOURCE = Path(constants.__file__)
README = (SOURCE.parent / "README.md").read_text(encoding="utf-8")


def marked(constant: str) -> list[dict]:
    """The rows that were used to fit this constant, which is none of the three."""
    return [case for case in validation.load() if case.get("constant") == constant]


def made_of(truth) -> list[dict]:
    """The steps used for fitting, with the engine's times for the constants ``truth`` instead of the
    published times."""
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
    recipes = sum(count for name, count in groups.items() if name.startswith("NVIDIA on H100"))
    assert (groups["Megatron-LM, 2022"], groups["Megatron-LM, 2021"], groups["Llama 3 paper, table 4"]) == (
        2,
        4,
        1,
    )
    assert (recipes, groups["NVIDIA on GB200, dense bf16"], groups["Megatron-LM, 2020"]) == (9, 2, 1)
    assert sum(groups.values()) == 19
    assert (len(marked("zero_nics")), len(marked("step.COPYING_SLOWS"))) == (2, 4)


def test_what_is_shipped_is_what_the_steps_want():
    """To three digits: nobody chooses among them. If a change to the training step moves the optimum, make
    calibrate writes the new one. A constant that moves by a tenth is noticed."""
    assert {name: getattr(DEFAULT, name) for name in BOUNDS} == fitted_steps.rounded()
    assert 0.0 <= fitted_steps.excess() < 1e-3
    assert fitted_steps.excess(matmul_sustained=1.1 * DEFAULT.matmul_sustained) > 0.05


def test_the_fit_does_not_depend_on_what_shipped_before():
    steps = fitted_steps.marked()
    for start in ((0.95, 0.01, 0.74), (0.6, 0.3, 0.9)):
        found = fitted_steps.fit(steps, start=replace(DEFAULT, **dict(zip(BOUNDS, start))))
        for name in BOUNDS:
            assert getattr(found, name) == pytest.approx(getattr(fitted_steps.best(), name), abs=1e-6), name


def test_the_fit_writes_the_file_that_ships(tmp_path, capsys):
    """From any constants; twice is once. A file without one of them is refused."""
    shipped = SOURCE.read_text(encoding="utf-8")
    other = tmp_path / "constants.py"
    other.write_text(fitted_steps.written(shipped, dict.fromkeys(BOUNDS, 0.5)), encoding="utf-8")
    assert other.read_text(encoding="utf-8").count("float = 0.5\n") == 3
    for _ in range(2):
        assert fitted_steps.main(["--into", str(other)]) == 0
        assert other.read_text(encoding="utf-8") == shipped
    assert "misfit as fitted" in capsys.readouterr().out
    with pytest.raises(ValueError, match="memory_share has 0 lines"):
        fitted_steps.written(shipped.replace("memory_share: float", "share: float"), fitted_steps.rounded())


def test_the_span_of_a_constant_ends_where_the_misfit_has_grown():
    name, steps, best = "matmul_sustained", fitted_steps.marked(), fitted_steps.best()
    span = fitted_steps.span(steps, best, name)
    assert span.low < best.matmul_sustained < span.high
    beyond = span.high + 2 * fitted_steps.EDGE
    held = fitted_steps.fit(steps, BOUNDS | {name: (beyond, beyond)})
    assert steps.misfit(held) > (1 + fitted_steps.SLACK) * steps.misfit(best)


BEFORE = {"matmul_sustained": 0.845, "matmul_power": 0.14, "memory_share": 0.75}


def test_the_readme_says_what_the_fit_finds():
    best, free = fitted_steps.best(), fitted_steps.best(bounded=False)
    for there in (best, free):
        said = " / ".join(f"{getattr(there, name):.3f}" for name in BOUNDS)
        assert said in README, said
    assert f"{fitted_steps.excess(**BEFORE):.1%}".replace("%", " %") in README


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


def test_what_copying_takes_of_hidden_traffic_is_what_overlap_gains():
    """One model with and without overlap, in bf16 and fp8: 1.071 and 1.096 times faster (ours 1.071, 1.100).
    Other faults of the estimate cancel in these, so they tell the constant best."""
    without, overlapped = marked("step.COPYING_SLOWS")[:2], marked("step.COPYING_SLOWS")[2:]
    for slow, fast in zip(without, overlapped, strict=True):
        assert [validation.job_of(case).software.overlaps for case in (slow, fast)] == ["data", "data+tensor"]
        ours = [validation.training_step(case)["step_s"] for case in (slow, fast)]
        measured = [case["measured"]["step_s"] for case in (slow, fast)]
        assert ours[0] / ours[1] == pytest.approx(measured[0] / measured[1], rel=0.006)


def test_what_copying_takes_lies_between_what_its_steps_want(monkeypatch):
    """By their absolute times those four say 0.32. The dense H100 recipes with overlap, which fit the rates
    as well, say 0.78: they are too fast for other reasons, too. All nine say 0.56, which they hardly
    tell from 0.45."""
    four = marked("step.COPYING_SLOWS")
    five = [
        case
        for case in fitted_steps.cases()
        if re.match("NVIDIA on H100, dense", case["group"])
        and "tensor" in validation.job_of(case).software.overlaps
    ]
    assert (len(four), len(five)) == (4, 5) and all(case["layout"]["tp"] > 1 for case in four + five)
    shipped, tried = step.COPYING_SLOWS, np.linspace(0.0, 1.0, 51)

    def best(cases: list[dict]) -> tuple[float, float]:
        """What these steps want, all with one weight, and how much more misfit the shipped value has."""
        steps = Steps(cases)
        steps.roots = np.full(len(cases), len(cases) ** -0.5)
        misfits = {share: misfit(steps, share) for share in tried}
        found = min(misfits, key=misfits.__getitem__)
        return found, misfit(steps, shipped) / misfits[found] - 1.0

    def misfit(steps: Steps, share: float) -> float:
        monkeypatch.setattr(step, "COPYING_SLOWS", share)
        return steps.misfit(DEFAULT)

    assert best(four)[0] < shipped < best(five)[0]
    found, more = best(four + five)
    assert found == pytest.approx(0.56, abs=0.05) and more < fitted_steps.SLACK
