"""A router at work: tokens choose their experts, queues fill to a capacity, and two ways of evening the load are run.

Expert e draws a share of the first choices that falls as 1/(e + 1)^skew. A token's logit for it is the router's bias,
-skew·ln(e + 1), plus noise of Gumbel's kind. So the shares of the first choices are exactly the softmax of the biases;
and exp(bias + noise) is exp(bias) over a draw from the unit exponential, so that a token's softmax costs a division.

The functions keep to the part of Python that ``engine.program`` writes out for the page, but for ``route_at_once``, which
is ``route`` again over arrays.
"""

from __future__ import annotations

import math

import numpy as np

from engine import check
from engine.program import full, program, zeros

TOKENS = 512                    # routed in all
EVERY = 8                       # of them, every eighth is followed one by one
BATCH = 64                      # tokens of one step of balancing, fresh ones in each
MOST_EXPERTS, MOST_CHOICES = 64, 8
PRIME, STEP = 2**31 - 1, 48271  # of the generator
OFF, AUXILIARY, BIAS = 0, 1, 2  # ways of balancing
AUXILIARY_RATE = 0.1            # of gradient descent, times the experts, since the loss's slope falls as 1/experts
BIAS_RATE = 0.04                # what a bias moves in one step, up or down


def next_state(state):
    """Lehmer's generator with Park and Miller's revised multiplier (CACM 36:7, 1993): exact in doubles."""
    return (state * STEP) % PRIME


def first_state(seed):
    """Far apart for seeds side by side, whose first draws would be alike."""
    state = (int(seed) * 69621 + 12345) % PRIME       # whole numbers are counted in faster than floats
    for _ in range(4):
        state = next_state(state)
    return state


def draw_scores(score, weight, experts, state):
    """One token's exp(logit) for each expert, into ``score``; gives the generator's next state."""
    for e in range(experts):
        state = next_state(state)
        score[e] = weight[e] / -math.log(state / PRIME)
    return state


def choose(chosen, score, experts, top_k):
    """The experts with the highest scores, the best first, into ``chosen``: each moves up past the worse ones."""
    for e in range(experts):
        place, mine = e, score[e]
        if e >= top_k:
            place = top_k - 1
            if mine <= score[chosen[place]]:        # most are no better than the worst one chosen
                continue
        while place > 0 and mine > score[chosen[place - 1]]:
            chosen[place] = chosen[place - 1]
            place = place - 1
        chosen[place] = e


def total_of(score, experts):
    """The sum of the scores: what a softmax divides by."""
    total = 0
    for e in range(experts):
        total = total + score[e]
    return total


def set_weights(weight, bias, experts):
    """exp(bias)."""
    for e in range(experts):
        weight[e] = math.exp(bias[e])


def descend(bias, share, load, experts, top_k):
    """One step of gradient descent on experts·Σ f·P, with P the mean share and f, the load's part, held constant.

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


def push(bias, load, experts, top_k):
    """One step without a loss: the bias of an expert with more than its part falls, that of one with less rises."""
    for e in range(experts):
        if load[e] * experts > BATCH * top_k:
            bias[e] = bias[e] - BIAS_RATE
        elif load[e] * experts < BATCH * top_k:
            bias[e] = bias[e] + BIAS_RATE


def balance(bias, experts, top_k, seed, way, steps):
    """Train the biases alone, in place and on fresh tokens: by the auxiliary loss (Lepikhin et al., arXiv:2006.16668,
    section 2.2; Fedus et al., arXiv:2101.03961, equation 4), or by the rule of Wang et al., arXiv:2408.15664, algorithm
    1, that DeepSeek-V3 took over.

    The loss that the model is trained for is not there: nothing pulls the router back to its favourites.
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


# -- the same, all tokens at once --------------------------------------------------------------------------------------
def next_states(state, count):
    """The generator's next states. All so far step ahead together, by as many as they are."""
    states, jump = np.array([next_state(state)]), STEP
    while len(states) < count:
        states = np.concatenate([states, states * jump % PRIME])
        jump = jump * jump % PRIME
    return states[:count]


def scores(bias, states):
    """exp(logit) of each token, a row, for each expert."""
    drawn = states / PRIME
    return -np.exp(bias) / np.log(drawn, out=drawn)


def balanced(bias, top_k, seed, way, steps):
    """``balance``, a step's tokens at once; the biases after it."""
    experts = len(bias)
    states = next_states(first_state(seed + 1000), BATCH * experts).reshape(BATCH, experts)
    jump, each = pow(STEP, BATCH * experts, PRIME), np.ones(BATCH)
    for _ in range(steps):
        score = scores(bias, states)
        states = states * jump % PRIME
        worst = np.sort(score, axis=1)[:, experts - top_k, np.newaxis]
        part = each @ (score >= worst).astype(float) / (BATCH * top_k)      # half the time of a sum over rows
        if way == AUXILIARY:
            share = score / score.sum(axis=1, keepdims=True)
            slope = experts * share * (part - share @ part[:, np.newaxis])
            bias = bias - AUXILIARY_RATE * experts * slope.mean(axis=0)
        else:
            bias = bias - BIAS_RATE * np.sign(part * experts - 1.0)
    return bias


def route_at_once(experts, top_k, skew, seed, way, steps):
    """``route`` over arrays: with balancing it is up to half a million draws, a tenth of a second in Python's loops."""
    experts, top_k, steps = int(experts), int(top_k), int(steps)
    bias = -skew * np.log(np.arange(1.0, experts + 1.0))
    if way != OFF:
        bias = balanced(bias, top_k, seed, way, steps)
    score = scores(bias, next_states(first_state(seed), TOKENS * experts).reshape(TOKENS, experts))
    chosen = np.argsort(-score, axis=1)[:, :top_k]      # a tie, which doubles hardly know, may fall otherwise
    load = np.bincount(chosen.ravel(), minlength=experts)
    queued = np.argsort(chosen, axis=None, kind="stable")       # expert by expert, in the order of the tokens
    place = np.empty(TOKENS * top_k)
    place[queued] = np.arange(TOKENS * top_k) - np.repeat(np.cumsum(load) - load, load)
    probability = (score / score.sum(axis=1, keepdims=True)).mean(axis=0)
    return {"load": load, "probability": probability, "bias": bias,
            "token": np.repeat(np.arange(TOKENS // EVERY), top_k), "expert": chosen[::EVERY].ravel(),
            "place": place.reshape(TOKENS, top_k)[::EVERY].ravel(),
            "loss": experts / (TOKENS * top_k) * (load @ probability)}


# -- the whole -----------------------------------------------------------------------------------------------------------
@program(route_at_once, load=MOST_EXPERTS, probability=MOST_EXPERTS, bias=MOST_EXPERTS, token=TOKENS // EVERY * MOST_CHOICES,
         expert=TOKENS // EVERY * MOST_CHOICES, place=TOKENS // EVERY * MOST_CHOICES, loss=())
def route(experts, top_k, skew, seed, way, steps):
    """512 tokens choose: load and mean probability of each expert, and the router's biases; of every eighth token the
    experts it chose and its place in their queues, counted from 0; and the auxiliary loss experts·Σ f·P, 1 at best.

    Tokens queue in their order, the choices of one in the order of their scores.
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
    return {"load": load, "probability": probability, "bias": bias, "token": token, "expert": expert, "place": place,
            "loss": loss}


# -- what a run says -------------------------------------------------------------------------------------------------
def counted(load):
    """The loads without the places that no expert fills."""
    return np.where(np.isfinite(load), load, 0.0)


def mean_load(load, experts):
    """Tokens at each expert, were they even."""
    check.whole(experts=experts)
    return np.sum(counted(load)) / experts


def imbalance(load, experts):
    """The fullest expert over the mean: 1 at best, experts/top_k at worst."""
    return np.max(counted(load)) / mean_load(load, experts)


def kept(load, capacity_rows):
    """Of each expert's queue, what its capacity takes."""
    check.positive(capacity_rows=capacity_rows)
    return np.minimum(load, capacity_rows)


def dropped_share(load, capacity_rows):
    """Choices beyond the capacity, as a share of all choices."""
    asked = counted(load)
    return np.sum(asked - kept(asked, capacity_rows)) / np.sum(asked)


def dropped_load(load, capacity_rows):
    """What the capacity of each expert turns away."""
    return load - kept(load, capacity_rows)


def worked(load, capacity_rows, experts):
    """(fullest, average): what experts compute after dropping, over the mean that they would if all were even."""
    done, mean = kept(counted(load), capacity_rows), mean_load(load, experts)
    return np.max(done) / mean, np.sum(done) / experts / mean
