"""The router runs: shares that follow from its biases, queues in order, and balancing that descends its own
loss."""

import random

import numpy as np
import pytest

from engine.executed import routing
from engine.mechanism import experts as forms
from tests.cases import in_one_test

EIGHT = (8, 2, 1.0, 3, routing.OFF, 0)


def run(experts=8, top_k=2, skew=1.0, seed=3, way=routing.OFF, steps=0):
    return routing.route(experts, top_k, skew, seed, way, steps)


def ratio(found, experts):
    return routing.imbalance(found["load"], experts)


# -- choosing ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("skew", [0.0, 0.7, 1.4])
def test_the_first_choices_follow_the_softmax_of_the_biases(skew):
    """1/(e+1)^skew over its sum. Over 20 seeds of 512 tokens an expert's share has a standard error below
    0.005."""
    expected = np.arange(1, 9) ** -skew / np.sum(np.arange(1, 9) ** -skew)
    loads = np.mean([run(top_k=1, skew=skew, seed=seed)["load"][:8] for seed in range(1, 21)], axis=0)
    assert loads / routing.TOKENS == pytest.approx(expected, abs=4 * 0.005)


def test_the_mean_probability_is_that_of_the_first_choices_too():
    """E[softmax(b + g)] over Gumbel noise is no softmax of b, but it is even where b is."""
    assert run(skew=0.0)["probability"][:8] == pytest.approx(np.full(8, 1 / 8), abs=4 * 0.15 / np.sqrt(512))


@pytest.mark.parametrize(("experts", "top_k"), [(4, 1), (8, 2), (64, 6), (64, 8)])
def test_every_token_makes_its_choices_at_different_experts(experts, top_k):
    found = run(experts, top_k)
    assert np.nansum(found["load"]) == routing.TOKENS * top_k and np.nanmax(found["load"]) <= routing.TOKENS
    assert np.isfinite(found["load"]).sum() == experts
    chosen = found["expert"][np.isfinite(found["expert"])].reshape(-1, top_k)
    assert len(chosen) == routing.TOKENS / routing.EVERY
    assert all(len(set(row)) == top_k for row in chosen)


def test_all_at_once_is_what_token_by_token_is():
    """The page's loops and Python's arrays, in random settings. numpy may round a logarithm or a sum
    otherwise in its last place, so that all but counts are equal to a few roundings of 1e-16."""
    rolls = random.Random(7)
    for _ in range(60):
        given = (
            rolls.choice([8, 16, 32, 64]),
            rolls.randint(1, 8),
            rolls.uniform(0, 2),
            rolls.randint(1, 40),
            rolls.choice([routing.OFF, routing.AUXILIARY, routing.BIAS]),
            rolls.randint(0, 25),
        )
        loops, arrays = routing.route.algorithm(*given), routing.route(*given)
        for name, expected in loops.items():
            found = np.atleast_1d(arrays[name])[: np.size(expected)]
            if name in ("load", "token", "expert", "place"):
                assert found.tolist() == expected, (name, given)
            else:
                assert found == pytest.approx(np.atleast_1d(expected), rel=1e-12, abs=1e-13), (name, given)


def test_states_are_those_of_the_generator_one_by_one():
    state, expected = routing.first_state(5), []
    for _ in range(1000):
        state = routing.next_state(state)
        expected.append(state)
    assert routing.next_states(routing.first_state(5), 1000).tolist() == expected


def test_an_independent_router_counts_the_same():
    """Scores from the generator in one piece, then a sort, instead of loops."""
    state, draws = routing.first_state(3), []
    for _ in range(routing.TOKENS * 8):
        state = state * 48271 % 2147483647
        draws.append(state / 2147483647)
    scores = -np.log(np.arange(1, 9)) - np.log(-np.log(np.reshape(draws, (-1, 8))))
    chosen = np.argsort(-scores, axis=1)[:, :2]
    assert run()["load"][:8].tolist() == np.bincount(chosen.ravel(), minlength=8).tolist()
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert run()["probability"][:8] == pytest.approx(shares.mean(axis=0))
    queued = np.zeros(8, dtype=int)
    places = []
    for row in chosen:
        for e in row:
            places.append(queued[e])
            queued[e] += 1
    assert run()["place"][:128].tolist() == np.reshape(places, (-1, 2))[::8].ravel().tolist()


@pytest.mark.parametrize(("experts", "top_k"), [(1, 1), (4, 4), (8, 1), (8, 2), (64, 8)])
def test_choosing_is_sorting_and_the_first_of_equals_wins(experts, top_k):
    random = np.random.default_rng(experts + top_k)
    for _ in range(200):
        score, chosen = random.integers(0, experts, experts).tolist(), [0] * top_k
        routing.choose(chosen, score, experts, top_k)
        assert chosen == sorted(range(experts), key=lambda e: -score[e])[:top_k]


def test_the_draws_are_those_of_the_published_generator():
    """Park and Miller's revised minimal standard from 1: its 10,000th number is 399,268,537."""
    state = 1
    for _ in range(10_000):
        state = routing.next_state(state)
    assert state == 399268537


# -- the loss ------------------------------------------------------------------------------------------------
def test_no_seed_is_one_that_the_generator_never_leaves():
    """0 would be followed by 0 for ever. By hand: seed 0 begins at 12345, and four steps on."""
    state = 12345
    for _ in range(4):
        state = state * 48271 % 2147483647
    assert routing.first_state(0) == state
    assert all(0 < routing.first_state(seed) < 2147483647 for seed in range(200))


def test_the_loss_is_experts_times_load_times_probability():
    found = run()
    load, probability = found["load"][:8], found["probability"][:8]
    assert found["loss"] == pytest.approx(8 * np.sum(load / 1024 * probability))
    assert run(skew=0.0)["loss"] == pytest.approx(1, abs=0.02) and found["loss"] > 1.2


def test_descending_follows_the_loss_s_slope():
    """Against finite differences of E·Σ f·P(b), with f held where it was."""
    random = np.random.default_rng(0)
    experts, top_k = 4, 1
    noise, bias = random.gumbel(size=(routing.BATCH, experts)), np.array([0.5, 0.0, -0.3, -0.9])
    load = np.bincount(np.argmax(noise + bias, axis=1), minlength=experts).astype(float)

    def shares(b):
        raised = np.exp(noise + b)
        return raised / raised.sum(axis=1, keepdims=True)

    def loss(b):
        return experts * np.sum(load / routing.BATCH * shares(b).mean(axis=0))

    slope = [(loss(bias + step) - loss(bias - step)) / 2e-6 for step in np.eye(experts) * 1e-6]
    moved = bias.tolist()
    routing.descend(moved, shares(bias).ravel().tolist(), load.tolist(), experts, top_k)
    assert bias - moved == pytest.approx(routing.AUXILIARY_RATE * experts * np.array(slope), rel=1e-5)


def test_pushing_moves_each_bias_against_its_load():
    bias = [0.0, 0.0, 0.0, 0.0]
    routing.push(bias, [40, 16, 0, 8], 4, 1)  # 64 tokens, 16 each would be even
    assert bias == pytest.approx([-routing.BIAS_RATE, 0, routing.BIAS_RATE, routing.BIAS_RATE])


@in_one_test("way, steps", [(routing.AUXILIARY, 50), (routing.BIAS, 100)])
@in_one_test("experts, top_k", [(8, 2), (16, 1), (64, 8)])
def test_balancing_evens_the_load(way, steps, experts, top_k):
    """What is left is chance: with k·512/E tokens expected, the fullest of E stands about 3 standard errors
    above."""
    before, after = run(experts, top_k), run(experts, top_k, way=way, steps=steps)
    chance = 1 + 3.5 * np.sqrt(experts / (512 * top_k)) + 0.1
    assert ratio(before, experts) > 2.2 and ratio(after, experts) < chance
    assert after["loss"] < 1.05 < before["loss"]


def test_more_steps_of_balancing_even_it_further():
    ratios = [ratio(run(way=routing.AUXILIARY, steps=steps), 8) for steps in (0, 5, 15, 50)]
    assert ratios == sorted(ratios, reverse=True)


def test_a_seed_changes_the_tokens_and_not_the_law():
    one, other, again = (run(seed=seed)["load"][:8].tolist() for seed in (1, 2, 1))
    assert one != other and one == again


# -- what a run says -----------------------------------------------------------------------------------------
def test_overflow_is_what_stands_beyond_the_capacity():
    load = np.array([300.0, 100.0, 80.0, 32.0, np.nan])  # 512 choices, capacity 128
    capacity = forms.capacity_rows(512, 1, 4, 1.0)
    assert capacity == 128 and routing.kept(load, capacity)[:4].tolist() == [128, 100, 80, 32]
    assert routing.dropped_share(load, capacity) == pytest.approx(172 / 512)
    assert (load - routing.kept(load, capacity))[:4].tolist() == [172, 0, 0, 0]
    assert routing.mean_load(load, 4) == 128 and routing.imbalance(load, 4) == pytest.approx(300 / 128)
    assert routing.worked(load, capacity, 4) == pytest.approx((1.0, 340 / 512))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="capacity_rows must be greater than 0"):
        routing.dropped_share(np.ones(2), 0)
    with pytest.raises(ValueError, match="experts must be a whole number"):
        routing.imbalance(np.ones(2), 2.5)
