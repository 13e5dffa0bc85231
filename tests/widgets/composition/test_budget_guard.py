"""budget_guard by hand: the bill, the refusal and by how much, the line of the ceiling."""

import numpy as np
import pytest

from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.composition.budget_guard import ALONG, BILLS, FRAME, BudgetGuard

shown = Reader(BudgetGuard).shown


def test_the_default_is_priced_and_allowed():
    """512 · 21 · 24 = 258,048 hours; times 3 times 1.1: 851,558 dollars."""
    found = shown()
    assert found["parts"]["run"]["text"] == "$852k, 85.2 % of the ceiling"
    assert found["readouts"]["hours"] == {"text": "258,048", "alarm": False}
    assert not lacks(found["summary"], "$148k")  # under the ceiling
    assert not found["regimes"]["refusal"]["met"]


def test_a_week_longer_is_refused_by_how_much():
    """28 days cost 1,135,411 dollars: 135,411 too much."""
    refusal = shown(duration_s=28 * 86400)["regimes"]["refusal"]
    assert refusal["met"] and not lacks(refusal["text"], "$135k", "$1M", "13.5 %")
    assert not lacks(refusal["text"], "24.7 days", "450 GPUs")  # 303,030 hours / 672 = 450.9


def test_what_is_just_the_ceiling_is_allowed():
    assert not shown(gpus=100, duration_s=36000, price=1, overhead=0, ceiling=1000)["regimes"]["refusal"][
        "met"
    ]
    assert shown(gpus=100, duration_s=36001, price=1, overhead=0, ceiling=1000)["regimes"]["refusal"]["met"]


def test_every_place_on_the_line_costs_the_ceiling():
    limit = shown(ceiling=1e5)["parts"]["limit"]
    low, high = FRAME["y"]
    inside = (limit["longest_s"] > low) & (limit["longest_s"] < high)
    dollars = limit["gpus"] * limit["longest_s"] / 3600 * 3 * 1.1
    assert inside.sum() > 40 and dollars[inside] == pytest.approx(1e5) and len(ALONG) == len(inside)


@pytest.mark.parametrize(
    ("preset", "bill", "allowed"),
    [
        ("nanochat, $100", "$96", True),
        ("DeepSeek-V3 at its own price", "$5.58M", True),
        ("Llama 3.1 405B at $3", "$92.5M", True),
    ],
)
def test_presets_cost_what_was_published(preset, bill, allowed):
    found = shown(**BudgetGuard.presets[preset])
    assert found["parts"]["run"]["short"] == bill and found["regimes"]["refusal"]["met"] is not allowed


@pytest.mark.parametrize("ceiling", [50, 1e4, 1e6, 2e8])
def test_the_ceiling_and_each_bill_are_lines_inside_the_frame(ceiling):
    """Both ends of a line cost the same, and none runs along an edge."""
    parts = shown(ceiling=ceiling)["parts"]
    for line, dollars in ((parts["limit_line"], ceiling), (parts["bills"], BILLS)):
        for end in "01":
            assert line[f"x{end}"] * line[f"y{end}"] / 3600 * 3 * 1.1 == pytest.approx(dollars)
            for axis in "xy":
                at = np.atleast_1d(line[f"{axis}{end}"])
                assert (at >= FRAME[axis][0] * 0.999).all() and (at <= FRAME[axis][1] * 1.001).all()


@pytest.mark.parametrize(("gpus", "days"), [(512, 21), (512, 28), (8, 1)])
def test_what_is_left_is_what_the_ceiling_pays_for_beyond_the_run(gpus, days):
    """1,000,000 dollars over 3.3 an hour are 303,030 hours."""
    run = shown(gpus=gpus, duration_s=days * 86400)["parts"]["run"]
    pays_for_s = 1e6 / 3.3 / gpus * 3600
    assert run["longest_s"] == pytest.approx(min(pays_for_s, FRAME["y"][1]))
    allowed = pays_for_s >= days * 86400
    assert run["left"].endswith(" left") is allowed and (run["left"] == "refused") is not allowed
