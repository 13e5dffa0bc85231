"""The catalogue's small tables against what their sources print: tests/published/catalog/tables.json."""

import json
from pathlib import Path

import pytest

from engine import catalog, matmul

PRINTED = json.loads((Path(__file__).parents[1] / "published" / "catalog" / "tables.json").read_text(encoding="utf-8"))
BEST = [(precision, key, tflops) for precision in ("bf16", "fp8")
        for key, tflops in PRINTED["best_matrix_products"][precision].items()]


@pytest.mark.parametrize("precision, key, tflops", BEST)
def test_the_best_matrix_product_is_the_measured_one(precision, key, tflops):
    """To half of the share's last digit."""
    peak = getattr(catalog.gpu(key), f"{precision}_flops_per_s")
    assert matmul.achievable_share(catalog.gpu(key), precision) == pytest.approx(tflops * 1e12 / peak, abs=0.0006)


@pytest.mark.parametrize("key, sibling, precisions", [
    ("a100-40", "a100-80", ["bf16"]), ("a800", "a100-80", ["bf16"]), ("h800", "h100-sxm", ["bf16", "fp8"]),
    ("h200", "h100-sxm", ["bf16"])])
def test_what_was_not_measured_is_its_siblings(key, sibling, precisions):
    for precision in precisions:
        assert (matmul.achievable_share(catalog.gpu(key), precision)
                == matmul.achievable_share(catalog.gpu(sibling), precision))


@pytest.mark.parametrize("precision, middle", [("bf16", 0.803), ("fp16", 0.803), ("fp8", 0.734), ("fp4", 0.734)])
def test_a_chip_that_nobody_measured_has_the_median(precision, middle):
    """By hand: of 14 shares in bf16 the eighth smallest, of 7 in fp8 the fourth."""
    assert matmul.achievable_share(catalog.gpu("l40s"), precision) == middle


def test_compiled_steps_are_those_printed():
    steps = catalog.compiled_steps()
    for key, milliseconds in PRINTED["compiled_ms"].items():
        if key != "source":
            assert [steps[key].eager_s, steps[key].compiled_s] == pytest.approx([t / 1e3 for t in milliseconds])
    (key, rates), = [(k, v) for k, v in PRINTED["compiled_tokens_per_s"].items() if k != "source"]
    found = [steps[key].eager_s, steps[key].compiled_s]
    assert found == pytest.approx([2 * 8192 / rate for rate in rates], rel=1e-4)
    assert {key: step.cold_s for key, step in steps.items() if step.cold_s} == {
        key: seconds for key, seconds in PRINTED["cold_s"].items() if key != "source"}


def test_interruptions_are_as_far_apart_as_reported():
    printed, found = PRINTED["interruptions"], catalog.interruptions()
    for key, (days, count) in printed["days_and_count"].items():
        assert found[key].mtbf_s == pytest.approx(days * 86400 / count, abs=0.5)
    for key, hours in printed["hours"].items():
        assert found[key].mtbf_s == hours * 3600
    assert {key: each.gpus for key, each in found.items()} == printed["gpus"]


def test_runs_took_the_hours_reported():
    printed, found = PRINTED["runs"], catalog.runs()
    assert {key: run.gpu_hours for key, run in found.items()} == {k: sum(v) for k, v in printed["gpu_hours"].items()}
    assert {key: run.gpus for key, run in found.items()} == printed["gpus"]
