"""The engine against published runs: targets, honest halves, and a validation that notices a broken
formula."""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from engine import catalog, validation
from engine.calibration.constants import DEFAULT, names
from engine.mechanism import matmul
from engine.mechanism.shape import shape
from tests.cases import in_one_test
from tests.said import refused

OUTCOME = validation.validate()
CASES = validation.load()


@in_one_test("place", validation.TARGETS, ids=lambda place: f"{place[0]} {place[1]}")
def test_target(place):
    summary = next(s for s in OUTCOME.summaries if (s.group, s.quantity) == place)
    assert summary.met, (summary.mean, summary.largest, summary.target)


def test_unfitted_rows_are_met_as_well():
    for summary in OUTCOME.summaries:
        if summary.target is not None and summary.unfitted:
            assert summary.unfitted_mean <= summary.target, summary


def test_at_most_a_dozen_constants():
    assert len(names()) <= 12


def test_most_rows_fitted_nothing():
    fitted, rows = Counter(), Counter()
    for row in OUTCOME.compared:
        rows[row.group] += 1
        fitted[row.group] += row.fitted
    for group, count in fitted.items():
        assert 2 * count <= rows[group], group
    assert sum(fitted.values()) < 0.1 * len(OUTCOME.compared)


def test_llama_3_utilisation_within_three_points_and_a_half():
    """Two and a half with a price for AllGathers that charged their chunks; as measured they are faster."""
    for row in OUTCOME.compared:
        if row.group == "Llama 3 paper, table 4":
            assert abs(row.predicted - row.measured) / 989e12 < 0.035


def test_worst_first():
    errors = [abs(row.error) for row in OUTCOME.compared]
    assert errors == sorted(errors, reverse=True)
    means = [summary.mean for summary in OUTCOME.summaries]
    assert means == sorted(means, reverse=True)


def test_every_case_says_where_it_comes_from():
    for case in CASES:
        assert case["source"] and case["id"] and case["kind"] in validation.KINDS and case["measured"]
    places = [(case["id"], case["kind"]) for case in CASES]
    assert len(set(places)) == len(places)


def test_every_constant_matters():
    """Moved by a fifth, each constant moves some row; so none is dead weight."""
    base = {(row.case, row.quantity): row.predicted for row in OUTCOME.compared}
    for name in names():
        moved = validation.validate(calibration=replace(DEFAULT, **{name: getattr(DEFAULT, name) * 0.8}))
        largest = max(
            abs(row.predicted / base[row.case, row.quantity] - 1) for row in moved.compared if row.predicted
        )
        assert largest > 0.002, name


def misfit(calibration) -> float:
    """The mean squared logarithm of the error over the rows that fitted a constant, where each group has the
    same weight."""
    groups = defaultdict(list)
    for case in CASES:
        for row in validation.rows_of(case, calibration) if case["fitted"] else []:
            if row.fitted:
                groups[row.group].append(math.log(row.predicted / row.measured) ** 2)
    return sum(sum(group) / len(group) for group in groups.values())


@pytest.mark.parametrize("name", sorted(set(names()) - {"launch_s"}))
def test_a_fitted_constant_stands_where_its_rows_want_it(name):
    """Half as large again or smaller by as much fits worse. A ring cannot have more than all of a line's
    rate, and where it has, only the inside of a node is left to wait for."""
    value, least = getattr(DEFAULT, name), misfit(DEFAULT)
    assert misfit(replace(DEFAULT, **{name: value / 1.5})) > least
    if 1.5 * value < 1.0 or name != "network_share":
        assert misfit(replace(DEFAULT, **{name: 1.5 * value})) > least


def test_what_was_not_fitted_is_what_others_measured():
    """20 kernels from launch to launch (NVIDIA, "Getting started with CUDA graphs"); NCCL's hwLat of a ring
    by network: LL, LL128 and Simple."""
    network = catalog.link("ib-ndr")
    assert DEFAULT.launch_s == 3.8e-6
    assert (network.short_s, network.middle_s, network.latency_s) == (2.7e-6, 4.0e-6, 9.6e-6)


def test_a_wrong_constant_is_noticed():
    broken = validation.validate(calibration=replace(DEFAULT, matmul_sustained=0.6))
    assert [s for s in broken.summaries if s.met is False]


def test_full_servers_multiply_for_as_much_of_the_time_as_is_said():
    shares = []
    for case in validation.load():
        if case["group"] == "throughput, TensorRT-LLM 1.0":
            gpu, asked = catalog.gpu(case["gpu"]), case["serving"]
            tokens = case["measured"]["tokens_per_s"] * (1 + asked["prompt"] / asked["output"])
            flops = 2 * shape(validation.model_of(case)).matmul_params * tokens / asked["tp"]
            best = gpu.peak_flops_per_s(case["precision"]) * matmul.achievable_share(gpu, case["precision"])
            shares.append(flops / best)
    assert len(shares) == 55 and min(shares) > 0.15 and max(shares) < 0.8
    assert np.mean(shares) == pytest.approx(matmul.SERVER_MULTIPLIES, abs=0.01)


def test_servers_that_read_a_cache_for_each_query_head_are_off_like_those_that_have_one_for_each():
    """TensorRT-LLM 0.6. If a group shared its reads, Llama 70B would be too fast, by most in long answers."""
    rows = [case for case in validation.load() if case["group"] == "throughput, TensorRT-LLM 0.6"]
    alone, shared, own = [], [], []
    for case in rows:
        [row] = validation.rows_of(case)
        if case["serving"].get("shares_reads", True):
            own.append(row.error)
            continue
        alone.append(row.error)
        asked = case["serving"] | {"shares_reads": True}
        shared.append(validation.rows_of(case | {"serving": asked})[0].error)
    assert len(alone) == 8 and np.ptp(alone) < 0.25 < 0.8 < np.ptp(shared)
    assert np.mean(alone) == pytest.approx(np.mean(own), abs=0.07)


def test_no_cases_is_an_error(tmp_path):
    with refused("cases", "directory"):
        validation.load(tmp_path)
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="cases must be valid JSON"):
        validation.load(tmp_path)


def test_a_row_and_a_groups_error_are_those_of_the_whole_report():
    row = validation.row("nim_llama3_70b_fp8_itl")
    assert row in OUTCOME.compared and row.measured == 0.01154
    for summary in OUTCOME.summaries:
        if summary.group == "throughput, TensorRT-LLM 1.0":
            assert validation.mean_error("throughput, TensorRT-LLM 1.0") == pytest.approx(summary.mean)
    with pytest.raises(ValueError, match="case_id must be one of"):
        validation.row("no_such_case")
    with pytest.raises(ValueError, match="rows must be"):
        validation.mean_error("no such group")


def test_the_short_report_shows_the_two_worst_rows_of_each_quantity_and_the_long_one_all():
    places, worst = Counter(), []
    for row in OUTCOME.compared:
        places[row.group, row.quantity] += 1
        worst += [row.case] if places[row.group, row.quantity] <= 2 else []
    assert [row["case"] for row in OUTCOME.worst().rows] == worst and max(places.values()) > 2
    assert [row["case"] for row in OUTCOME.worst(None).rows] == [row.case for row in OUTCOME.compared]
