"""Single measured figures, each with its source, compared with the constants.

The rows were selected by a hash among those that were used neither for fitting nor for a band, before anyone
knew their errors. Since the bands hold for 80 %, some rows must lie outside.
"""

import json
import math
from pathlib import Path

import numpy as np

from engine.calibration import known
from engine.calibration.fit import judge, tables
from engine.calibration.fit.kinds import KINDS
from tests.cases import in_one_test

CITED = json.loads((Path(__file__).parent / "cited.json").read_text(encoding="utf-8"))
KIND = {kind.name: kind for kind in KINDS}


def one(case) -> tables.Rows:
    """The case as a table of one row."""
    columns = tables.TABLES[KIND[case["kind"]].table]
    return tables.Rows(
        {
            name: np.array([str(value)], dtype=object)
            if columns[name].words is not None
            else np.array([value], dtype=float)
            for name, value in case["row"].items()
        }
    )


def judged(case) -> tuple[float, tuple[float, float]]:
    """Measured over predicted, and the stated band for this ratio."""
    kind, rows = KIND[case["kind"]], one(case)
    found = known.known(case["kind"], case["key"], case["gpu"])
    predicted = float(kind.predict(rows, found.rates, known.sheet(case["gpu"]))[0])
    return case["measured_s"] / predicted, found.band(float(kind.size(rows)[0]))


def name(case) -> str:
    return f"{case['kind']} {case['key']} {case['gpu']}"


@in_one_test("case", CITED, ids=name)
def test_a_cited_figure_is_met(case):
    """Within its band, taken twice as wide: none of the figures is off by another order than was stated."""
    ratio, (low, high) = judged(case)
    assert 2.0 * math.log(low) - 0.05 <= math.log(ratio) <= 2.0 * math.log(high) + 0.05, (ratio, low, high)


def test_most_figures_lie_within_their_band():
    inside = [low <= ratio <= high for ratio, (low, high) in map(judged, CITED)]
    assert 25 <= len(inside) <= 45
    assert np.mean(inside) >= 0.65  # 80 % is stated; of 40 draws fewer than 65 % would be one in fifty


def test_cited_rows_fitted_nothing():
    for case in CITED:
        assert judge.tenths(one(case), KIND[case["kind"]].shape)[0] >= judge.BAND, name(case)


def test_every_figure_names_repository_and_commit():
    for case in CITED:
        assert "@095f58a5" in case["source"] or "@7d475133" in case["source"], name(case)
