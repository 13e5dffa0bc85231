"""budget_guard by hand: the bill, the refusal and by how much, the line of the ceiling."""

import pytest

from tests.widgets.reading import Reader
from widgets.budget_guard import ALONG, BudgetGuard


shown = Reader(BudgetGuard).shown


def test_the_default_is_priced_and_allowed():
    """512 · 21 · 24 = 258,048 hours; times 3 times 1.1: 851,558 dollars."""
    found = shown()
    assert found["readouts"]["total"] == {"text": "$852k", "alarm": False}
    assert "258,048 GPU-hours" in found["summary"] and "$148k under the ceiling, and allowed" in found["summary"]
    assert not found["regimes"]["refusal"]["met"]


def test_a_week_longer_is_refused_by_how_much():
    """28 days cost 1,135,411 dollars: 135,411 too much."""
    refusal = shown(duration_s=28 * 86400)["regimes"]["refusal"]
    assert refusal["met"] and "Refused: $135k over the ceiling of $1M, 13.5 % too much" in refusal["text"]
    assert "stop after 24.7 days, or take 450 GPUs" in refusal["text"]     # 303,030 hours / 672 = 450.9


def test_what_is_just_the_ceiling_is_allowed():
    assert not shown(gpus=100, duration_s=36000, price=1, overhead=0, ceiling=1000)["regimes"]["refusal"]["met"]
    assert shown(gpus=100, duration_s=36001, price=1, overhead=0, ceiling=1000)["regimes"]["refusal"]["met"]


def test_every_place_on_the_line_costs_the_ceiling():
    limit = shown(ceiling=1e5)["parts"]["limit"]
    inside = (limit["longest_s"] > 3600) & (limit["longest_s"] < 2 * 365.25 * 86400)
    dollars = limit["gpus"] * limit["longest_s"] / 3600 * 3 * 1.1
    assert inside.sum() > 40 and dollars[inside] == pytest.approx(1e5) and len(ALONG) == len(inside)


@pytest.mark.parametrize("preset, bill, allowed", [
    ("nanochat, $100", "$96", True), ("DeepSeek-V3 at its own price", "$5.58M", True),
    ("Llama 3.1 405B at $3", "$92.5M", True)])
def test_presets_cost_what_was_published(preset, bill, allowed):
    found = shown(**BudgetGuard.presets[preset])
    assert found["readouts"]["total"]["text"] == bill and found["regimes"]["refusal"]["met"] is not allowed
