"""Experts on ranks equal experts on one machine, forward and backward; their rows are counted against the
formulas."""

import numpy as np
import pytest

from engine.executed import executed_experts as executed
from engine.mechanism import experts as forms
from tests.said import refused

TOKENS, EXPERTS, HIDDEN, WIDTH, TOP_K, RANKS = 64, 8, 4, 6, 2, 4
RANDOM = np.random.default_rng(9)
LAYER = executed.Experts(
    RANDOM.normal(size=(EXPERTS, HIDDEN, WIDTH)), RANDOM.normal(size=(EXPERTS, WIDTH, HIDDEN))
)
X, DY = RANDOM.normal(size=(2, TOKENS, HIDDEN))
SCORES = RANDOM.normal(size=(TOKENS, EXPERTS))
CHOICES = executed.top_choices(SCORES, TOP_K)
GATES = RANDOM.uniform(0.2, 0.8, size=(TOKENS, TOP_K))


def run(choices=CHOICES, x=X, layer=LAYER, ranks=RANKS):
    return executed.execute(x, DY, choices, GATES, layer, ranks)


# -- the same result -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_any_number_of_ranks_gives_the_result_of_one_machine(ranks):
    """To the order of the sums: a few units in the last place."""
    assert run(ranks=ranks).output == pytest.approx(executed.dense(X, CHOICES, GATES, LAYER), abs=1e-12)


def test_the_gradients_are_those_of_the_output():
    """Against central differences of Σ dy·y: their error is the step squared, and rounding over the step."""
    found = run()

    def objective(x, layer=LAYER):
        return np.sum(DY * executed.dense(x, CHOICES, GATES, layer))

    step = 1e-6
    for place in [(0, 0), (17, 3), (63, 1)]:
        nudge = np.zeros_like(X)
        nudge[place] = step
        slope = (objective(X + nudge) - objective(X - nudge)) / (2 * step)
        assert found.input_gradient[place] == pytest.approx(slope, abs=1e-6)
    for place in [(0, 0, 0), (5, 2, 4)]:
        nudge = np.zeros_like(LAYER.up)
        nudge[place] = step
        more, less = (objective(X, executed.Experts(LAYER.up + sign * nudge, LAYER.down)) for sign in (1, -1))
        assert found.up_gradient[place] == pytest.approx((more - less) / (2 * step), abs=1e-6)


def test_a_dropped_choice_adds_nothing():
    kept = executed.within_capacity(CHOICES, EXPERTS, 10)
    assert (kept == executed.NOWHERE).any()
    assert run(kept).output == pytest.approx(executed.dense(X, kept, GATES, LAYER), abs=1e-12)
    lost = (kept == executed.NOWHERE).all(axis=1)
    assert np.all(run(kept).output[lost] == 0)


def test_queues_are_filled_in_order():
    choices = np.array([[0, 1], [0, 2], [0, 1], [1, 0]])
    assert executed.within_capacity(choices, 3, 2).tolist() == [[0, 1], [0, 2], [-1, 1], [-1, -1]]


# -- what moved ----------------------------------------------------------------------------------------------
def test_two_all_to_alls_forward_and_two_backward_move_every_choice():
    found = run()
    assert len(found.moved_rows) == 4
    assert [moved.sum() for moved in found.moved_rows] == [TOKENS * TOP_K] * 4
    assert (found.moved_rows[1] == found.moved_rows[0].T).all() and (
        found.moved_rows[3] == found.moved_rows[1]
    ).all()


def test_even_choices_send_the_bytes_of_the_closed_form():
    """Every rank's tokens choose all experts equally: each sends (n-1)/n of its T·k rows, four times."""
    even = np.array([[(token + 4 * choice) % EXPERTS for choice in range(TOP_K)] for token in range(TOKENS)])
    row_bytes = HIDDEN * 2.0
    sent = run(even).moved_bytes(row_bytes).sum(axis=1)
    at = forms.copies(TOP_K, EXPERTS, RANKS, RANKS, 1, False)
    assert sent.tolist() == [4 * TOKENS / RANKS * at.link * row_bytes] * RANKS


@pytest.mark.parametrize(("node_limit", "once"), [(8, False), (8, True), (4, True), (2, True), (4, False)])
def test_copies_on_the_wires_are_those_expected(node_limit, once):
    """4,096 tokens with even random scores: the standard error of a mean is below 0.03. A limit is taken by
    the form as used up, which is 1 % too many."""
    scores = np.random.default_rng(1).normal(size=(4096, 256))
    choices = executed.limited_choices(scores, 8, 8, node_limit)
    counted = executed.counted_copies(choices, 64, 4, 64, 8, once)
    expected = forms.copies(8, 256, 64, 8, node_limit, once)
    assert counted == pytest.approx([float(share) for share in expected], rel=0.02, abs=0.03)


def test_node_limited_routing_meets_no_more_nodes():
    scores = np.random.default_rng(2).normal(size=(512, 256))
    choices = executed.limited_choices(scores, 8, 8, 4)
    nodes = [len(set(row // 32)) for row in choices]
    assert max(nodes) == 4 and all(len(set(row)) == 8 for row in choices)
    free = executed.limited_choices(scores, 8, 8, 8)
    assert (free == executed.top_choices(scores, 8)).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run(ranks=0), ("ranks",)),
        (lambda: run(ranks=3), ("ranks", "64 tokens", "3")),
        (lambda: run(ranks=16), ("ranks", "8 experts", "16")),
        (lambda: executed.limited_choices(SCORES, 2, 4, 5), ("node_limit", "1", "4")),
        (lambda: executed.within_capacity(CHOICES, EXPERTS, 0), ("capacity_rows",)),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()
