"""A router, executed: tokens choose their experts, queues fill up to a capacity, and two methods of balancing
the load are run.

Expert e gets a share of the first choices proportional to 1/(e + 1)^skew. A token's logit for it is the
router's bias, -skew·ln(e + 1), plus Gumbel noise. So the shares of the first choices are exactly the softmax
of the biases; and exp(bias + noise) is exp(bias) over a draw from the unit exponential, so a token's softmax
takes only a division.

The functions stay within the subset of Python that ``engine.base.program`` translates for the page, except
``route_at_once``, which is ``route`` over arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.base import check
from engine.base.program import full, program, zeros
from engine.base.types import Real

TOKENS = 512  # routed in total
EVERY = 8  # every eighth of them is followed individually
BATCH = 64  # tokens per step of balancing, fresh ones each time
AHEAD = 2  # steps that are drawn at a time: more would not fit the processor's caches
MOST_EXPERTS, MOST_CHOICES = 64, 8
PRIME, STEP = 2**31 - 1, 48271  # of the generator
OFF, AUXILIARY, BIAS = 0, 1, 2  # methods of balancing
AUXILIARY_RATE = 0.1  # of gradient descent, times the experts, since the loss's slope falls as 1/experts
BIAS_RATE = 0.04  # change of a bias in one step


def next_state(state: int) -> int:
    """Lehmer's generator with Park and Miller's revised multiplier (CACM 36:7, 1993): exact in doubles."""
    return (state * STEP) % PRIME


def first_state(seed: float) -> int:
    """A first state such that neighbouring seeds, whose first draws would be similar, are far apart."""
    state = (int(seed) * 69621 + 12345) % PRIME  # integer arithmetic is faster than float here
    for _ in range(4):
        state = next_state(state)
    return state


def draw_scores(score: list[float], weight: list[float], experts: int, state: int) -> int:
    """Write one token's exp(logit) for each expert into ``score``; return the generator's next state."""
    for e in range(experts):
        state = next_state(state)
        score[e] = weight[e] / -math.log(state / PRIME)
    return state


def choose(chosen: list[int], score: list[float], experts: int, top_k: int) -> None:
    """Write the experts with the highest scores into ``chosen``, the best first: each expert moves up past
    those with lower scores."""
    for e in range(experts):
        place, mine = e, score[e]
        if e >= top_k:
            place = top_k - 1
            if mine <= score[chosen[place]]:  # most scores are below the worst one chosen so far
                continue
        while place > 0 and mine > score[chosen[place - 1]]:
            chosen[place] = chosen[place - 1]
            place = place - 1
        chosen[place] = e


def total_of(score: list[float], experts: int) -> float:
    """The sum of the scores, by which a softmax divides."""
    total = 0
    for e in range(experts):
        total = total + score[e]
    return total


def set_weights(weight: list[float], bias: list[float], experts: int) -> None:
    """Set each weight to exp(bias)."""
    for e in range(experts):
        weight[e] = math.exp(bias[e])


def descend(bias: list[float], share: list[float], load: list[float], experts: int, top_k: int) -> None:
    """One step of gradient descent on experts·Σ f·P, where P is the mean share and f, the load's share, is
    held constant.

    dp_j/db_i of a token is p_j·(δ_ij - p_i), so the slope along b_i is experts · mean of p_i·(f_i - Σ f·p).
    """
    choices, rate = BATCH * top_k, AUXILIARY_RATE * experts
    for token in range(BATCH):
        mean, first = 0, token * experts
        for e in range(experts):
            mean = mean + share[first + e] * load[e] / choices
        for e in range(experts):
            slope = experts * share[first + e] * (load[e] / choices - mean)
            bias[e] = bias[e] - rate * slope / BATCH


def push(bias: list[float], load: list[float], experts: int, top_k: int) -> None:
    """One step of balancing without a loss: lower the bias of each expert with more than its share of the
    tokens, and raise the bias of each expert with less."""
    for e in range(experts):
        if load[e] * experts > BATCH * top_k:
            bias[e] = bias[e] - BIAS_RATE
        elif load[e] * experts < BATCH * top_k:
            bias[e] = bias[e] + BIAS_RATE


def balance(bias: list[float], experts: int, top_k: int, seed: float, way: float, steps: int) -> None:
    """Train only the biases, in place and on fresh tokens: by the auxiliary loss (Lepikhin et al.,
    arXiv:2006.16668, section 2.2; Fedus et al., arXiv:2101.03961, equation 4), or by the rule of Wang et al.,
    arXiv:2408.15664, algorithm 1, which DeepSeek-V3 uses.

    There is no model loss here, so nothing pulls the router back to its favourites.
    """
    score, weight, share, chosen = zeros(experts), zeros(experts), zeros(BATCH * experts), full(top_k, 0)
    state = first_state(seed + 1000)
    for _ in range(steps):
        load = zeros(experts)
        set_weights(weight, bias, experts)
        for token in range(BATCH):
            state = draw_scores(score, weight, experts, state)
            if way == AUXILIARY:
                total, first = total_of(score, experts), token * experts
                for e in range(experts):
                    share[first + e] = score[e] / total
            choose(chosen, score, experts, top_k)
            for rank in range(top_k):
                load[chosen[rank]] = load[chosen[rank]] + 1
        if way == AUXILIARY:
            descend(bias, share, load, experts, top_k)
        else:
            push(bias, load, experts, top_k)


# -- the same for all tokens at once -------------------------------------------------------------------------
def advance(states: np.ndarray, jump: int) -> np.ndarray:
    """Multiply the states by a jump modulo PRIME, in place, and return them. Works without a division: modulo
    PRIME, 2³¹ is 1, so the upper bits are added to the lower ones, twice."""
    states *= jump
    for _ in range(2):
        upper = states >> 31
        states &= PRIME
        states += upper
    return states


def next_states(state: int, count: int) -> np.ndarray:
    """The generator's next states, computed by doubling: all states so far jump ahead together."""
    states, jump = np.array([next_state(state)]), STEP
    while len(states) < count:
        states = np.concatenate([states, advance(states.copy(), jump)])
        jump = jump * jump % PRIME
    return states[:count]


def logarithms(states: np.ndarray) -> np.ndarray:
    """The logarithms of what is drawn in these states."""
    drawn = states / PRIME
    return np.log(drawn, out=drawn)


def balanced(bias: np.ndarray, top_k: int, seed: float, way: float, steps: int) -> np.ndarray:
    """``balance`` over arrays: with all tokens of a step at once, and with the random draws of AHEAD steps at
    once. Returns the biases.

    Sums over rows are products with a vector of ones, which take half the time.
    """
    experts = len(bias)
    states = next_states(first_state(seed + 1000), AHEAD * BATCH * experts).reshape(AHEAD, BATCH, experts)
    jump, each, every = pow(STEP, states.size, PRIME), np.ones(BATCH), np.ones(experts)
    drawn = logarithms(states)
    for step in range(steps):
        if step and step % AHEAD == 0:
            drawn = logarithms(advance(states, jump))
        score = -np.exp(bias) / drawn[step % AHEAD]
        worst = np.sort(score, axis=1)[:, experts - top_k, np.newaxis]
        part = each @ (score >= worst).astype(float) / (BATCH * top_k)
        if way == AUXILIARY:
            share = score / (score @ every)[:, np.newaxis]
            slope = experts * (part * (each @ share) - (share @ part) @ share) / BATCH
            bias = bias - AUXILIARY_RATE * experts * slope
        else:
            bias = bias - BIAS_RATE * np.sign(part * experts - 1.0)
    return bias


def route_at_once(
    experts: float, top_k: float, skew: float, seed: float, way: float, steps: float
) -> dict[str, np.ndarray]:
    """``route`` over arrays: with balancing there are up to half a million draws, which would take a tenth of
    a second in Python loops."""
    experts, top_k, steps = int(experts), int(top_k), int(steps)
    bias = -skew * np.log(np.arange(1.0, experts + 1.0))
    if way != OFF:
        bias = balanced(bias, top_k, seed, way, steps)
    drawn = logarithms(next_states(first_state(seed), TOKENS * experts)).reshape(TOKENS, experts)
    score = -np.exp(bias) / drawn  # exp(logit) of each token for each expert
    chosen = np.argsort(-score, axis=1)[:, :top_k]  # ties, rare in doubles, may be resolved differently
    load = np.bincount(chosen.ravel(), minlength=experts)
    queued = np.argsort(chosen, axis=None, kind="stable")  # expert by expert, in token order
    place = np.empty(TOKENS * top_k)
    place[queued] = np.arange(TOKENS * top_k) - np.repeat(np.cumsum(load) - load, load)
    probability = (score / score.sum(axis=1, keepdims=True)).mean(axis=0)
    return {
        "load": load,
        "probability": probability,
        "bias": bias,
        "token": np.repeat(np.arange(TOKENS // EVERY), top_k),
        "expert": chosen[::EVERY].ravel(),
        "place": place.reshape(TOKENS, top_k)[::EVERY].ravel(),
        "loss": experts / (TOKENS * top_k) * (load @ probability),
    }


# -- the whole -----------------------------------------------------------------------------------------------
@program(
    route_at_once,
    load=MOST_EXPERTS,
    probability=MOST_EXPERTS,
    bias=MOST_EXPERTS,
    token=TOKENS // EVERY * MOST_CHOICES,
    expert=TOKENS // EVERY * MOST_CHOICES,
    place=TOKENS // EVERY * MOST_CHOICES,
    loss=(),
)
def route(experts: float, top_k: float, skew: float, seed: float, way: float, steps: float) -> dict[str, Any]:
    """Route 512 tokens: load and mean probability of each expert, and the router's biases; for every eighth
    token the experts it chose and its positions in their queues, counted from 0; and the auxiliary loss
    experts·Σ f·P, whose best value is 1.

    Tokens queue in order, and each token's choices in order of their scores.
    """
    experts, top_k, steps = int(experts), int(top_k), int(steps)
    bias, weight, score, chosen = zeros(experts), zeros(experts), zeros(experts), full(top_k, 0)
    for e in range(experts):
        bias[e] = -skew * math.log(e + 1)
    if way != OFF:
        balance(bias, experts, top_k, seed, way, steps)
    set_weights(weight, bias, experts)
    load, probability = zeros(experts), zeros(experts)
    token, expert, place = [], [], []
    state = first_state(seed)
    for t in range(TOKENS):
        state = draw_scores(score, weight, experts, state)
        total = total_of(score, experts)
        for e in range(experts):
            probability[e] += score[e] / total
        choose(chosen, score, experts, top_k)
        for rank in range(top_k):
            e = chosen[rank]
            if t % EVERY == 0:
                token.append(t / EVERY)
                expert.append(e)
                place.append(load[e])
            load[e] = load[e] + 1
    loss = 0
    for e in range(experts):
        probability[e] /= TOKENS
        loss = loss + experts * load[e] / (TOKENS * top_k) * probability[e]
    return {
        "load": load,
        "probability": probability,
        "bias": bias,
        "token": token,
        "expert": expert,
        "place": place,
        "loss": loss,
    }


# -- reading a run -------------------------------------------------------------------------------------------
def counted(load: Real) -> Real:
    """The loads of the experts that exist; the column has places for more."""
    return np.where(np.isfinite(load), load, 0.0)


def mean_load(load: Real, experts: Real) -> Real:
    """Tokens per expert if the load were even."""
    check.whole(experts=experts)
    return np.sum(counted(load)) / experts


def imbalance(load: Real, experts: Real) -> Real:
    """The load of the fullest expert over the mean load: 1 at best, experts/top_k at worst."""
    return np.max(counted(load)) / mean_load(load, experts)


def kept(load: Real, capacity_rows: Real) -> Real:
    """The part of each expert's queue that its capacity accepts."""
    check.positive(capacity_rows=capacity_rows)
    return np.minimum(load, capacity_rows)


def dropped_share(load: Real, capacity_rows: Real) -> Real:
    """Choices beyond the capacity, as a share of all choices."""
    asked = counted(load)
    return np.sum(asked - kept(asked, capacity_rows)) / np.sum(asked)


def worked(load: Real, capacity_rows: Real, experts: Real) -> tuple[Real, Real]:
    """(fullest, average): the experts' work after dropping, relative to the mean of an even load."""
    done, mean = kept(counted(load), capacity_rows), mean_load(load, experts)
    return np.max(done) / mean, np.sum(done) / experts / mean
