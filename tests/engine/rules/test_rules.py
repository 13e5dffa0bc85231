"""Each boxed rule, held against the detailed model or the executed algorithm over the domain in which it is
claimed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine import catalog, rules
from engine.rules import held, splits_held
from engine.rules.held import HeldRule, RuleError
from tests.cases import in_one_test

ROOT = Path(__file__).resolve().parents[3]


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


def test_a_page_has_the_sentences_of_its_own_rules():
    pages = {path.stem for path in (ROOT / "lessons").glob("*.md")}
    for each in rules.ALL:
        assert each.page in pages and each.anchor.startswith("rule-")
        here = rules.of(each.page, each.anchor)
        assert each in here and {(one.page, one.anchor) for one in here} == {(each.page, each.anchor)}
        assert each.sentence in rules.sentences(each.page, each.anchor)
    assert rules.of("05-fsdp-and-zero", "rule-nobody-wrote") == []
    assert rules.sentences("05-fsdp-and-zero", "rule-nobody-wrote") == ""


# of these the words under a rule do not say how far they reach, or say it in other words, such as a week
UNTOLD = """
activations: seq
the-ring-allreduce: size
what-needs-the-bisection: nodes
two-levels: size
what-each-stage-leaves: stage
interleaving: stages
what-zero-bubble-schedules-wait-for: chunks
what-schedules-from-both-ends-wait-for: chunks
the-slowest-stage-sets-the-pace: batches extra
sequence-parallelism: seq
deal-the-tokens-out-in-zig-zag: order
ulysses-ends-at-the-heads: heads
how-often-to-write-young-1974: checkpoint_s mtbf_s
speculative-decoding-arxiv-2211-17192-equation-1-and-theorem-3-8: draft_cost
split-by-work: reading_s
a-layer-keeps-what-its-formulas-mention: seq batch hidden heads
an-update-under-half-a-gap-is-lost: weight
a-loss-scale-moves-gradients-into-the-window: scale
what-fusing-brings: elements
what-a-tile-is-worth: size
the-price-of-a-break: tensor_bytes
break-even: dynamic
"""
BYTES = {" B": 1, " kB": 1e3, " MB": 1e6, " GB": 1e9, " TB": 1e12}
UNITS = {"": 1, " k": 1e3, " million": 1e6, " %": 1e-2, " ms": 1e-3, " µs": 1e-6, "²⁰": 2**20}


@in_one_test("entry", rules.ALL, ids=named)
def test_the_words_say_from_where_to_where_it_was_tried(entry):
    """Both ends of each range of numbers, in some unit."""
    untold = dict(line.split(":") for line in UNTOLD.strip().splitlines())
    for name, values in entry.domain.items():
        numbers = [value for value in values if type(value) in (int, float)]
        if len(numbers) < len(values) or name in untold.get(entry.anchor.removeprefix("rule-"), "").split():
            continue
        units = BYTES if name.endswith(("bytes", "size")) else UNITS
        for end in (min(numbers), max(numbers)):
            told = [f"{end / scale:,g}" for unit, scale in units.items() if unit in entry.words]
            found = [each for each in told if re.search(rf"(?<![\w,.]){each}(?![\d.,]*\d)", entry.words)]
            assert found, f"{name} {end}, and the words are {entry.words}"


def test_what_tensor_ranks_send_of_what_they_compute_by_hand():
    """Llama 3 8B on an H100: F·W/C is 14,336 · 450e9 / 989e12 = 6.52, and with three matrices half as much
    again: 9.78. Seven eighths of eight ranks are 7 of it, and one rank sends nothing."""
    llama = catalog.model("llama3-8b")
    eight, alone = (splits_held.sending_share(llama, "h100-sxm", count, 4096) for count in (8, 1))
    assert eight == pytest.approx(7 / 9.784, rel=1e-3) and alone == 0


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
        ((1.0 - held.EXACT, 1.04), "at most 4 % above the rule, 1 % in the median"),
        ((0.96, 1.0), "at most 4 % below the rule, 1 % in the median"),
        ((0.96, 1.02), "from 4 % below the rule to 2 % above it, 1 % in the median"),
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
