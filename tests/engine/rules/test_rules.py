"""Each boxed rule, held against the detailed model or the executed algorithm over the domain in which it is
claimed."""

from dataclasses import replace

import pytest

from engine import rules
from engine.rules import held
from engine.rules.held import HeldRule, RuleError
from tests.cases import in_one_test


def named(held: HeldRule) -> str:
    return f"{held.page[:2]} {held.anchor} {held.against}"


@pytest.mark.parametrize("entry", rules.ALL, ids=named)
def test_it_holds_in_its_domain(entry):
    """Within the error that it is allowed, which is no larger than the sweep needs."""
    found = entry.found
    assert 2 <= found.points <= 400
    if entry.allowed == 0:
        assert found.exact
    else:
        assert entry.allowed / 2 < found.worst <= entry.allowed


@in_one_test("entry", rules.ALL, ids=named)
def test_what_the_rule_says_changes_over_its_domain(entry):
    """A rule that is the same number everywhere could be held against anything."""
    assert len({round(float(entry.rule(**point)), 12) for point in entry.points()}) > 1


def entry(rule, model, **domain):
    return HeldRule("02-x", "rule-x", rule, model, domain, "two to four", "a count", 1.0)


def test_a_sweep_by_hand():
    """x + 1 over x at 2, 3 and 4: 3/2, 4/3, 5/4."""
    found = entry(lambda x: x, lambda x: x + 1, x=(2, 3, 4)).found
    assert (found.least, found.middle, found.most) == pytest.approx((1.25, 4 / 3, 1.5))
    assert (found.median, found.worst, found.points) == (pytest.approx(1 / 3), pytest.approx(0.5), 3)


def test_only_the_points_that_are_claimed_count():
    either = entry(lambda x, y: x, lambda x, y: y, x=(1, 2), y=(1, 2))
    same = replace(either, claims=lambda x, y: x == y)
    assert either.found.points == 4 and same.found.points == 2 and same.found.exact


@pytest.mark.parametrize(
    ("ratios", "says"),
    [
        ((1.0, 1.0), "exact"),
        ((1.0, 1.04), "at most 4 % above the rule, 1 % in the median"),
        ((0.96, 1.0), "at most 4 % below the rule, 1 % in the median"),
        ((0.96, 1.02), "at most 4 % off, 1 % in the median"),
        ((0.9, 2.1), "0.9 to 2.1 times the rule, 1.2 in the median"),
    ],
)
def test_what_the_page_says(ratios, says):
    least, most = ratios
    worst = max(abs(least - 1), abs(most - 1))
    assert held.verdict(RuleError(least, 1.2, most, 0.01, worst, 5)) == says


def test_an_entry_says_its_domain_and_where_its_error_comes_from():
    said = replace(entry(lambda x: x, lambda x: 2 * x, x=(1, 2)), because="Why.")
    assert (
        said.sentence
        == "Checked against a count, for two to four: 2 to 2 times the rule, 2 in the median. Why."
    )
