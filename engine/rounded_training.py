"""Arithmetic in a format, executed step by step: a weight that is trained in it, a sum that is gathered in it.

Every result is rounded as the format rounds it (``engine.precision``). The functions keep to the part of Python that
``engine.program`` writes out for the page.
"""

from __future__ import annotations

import math

import numpy as np

from engine import check, precision
from engine.precision import exponent_of, gap_at, nearest
from engine.program import full, program, zeros
from engine.routing import first_state, next_state

SHOWN, MOST_STEPS = 161, 4000       # points of a curve, and steps that a curve may stand for
START, TARGET, NEARLY = 1.0, 2.0, 1.98
MASTER_BYTES = 4.0                  # of an fp32 copy of a weight
MOST = 2147483647                   # of the generator's states


def either_side(x, m, lowest, draw):
    """Stochastic rounding: up or down with the odds of the distance, so that the mean is x. ``draw`` is even in [0, 1)."""
    gap = gap_at(x, m, lowest)
    return math.floor(x / gap + draw) * gap


@program(step=SHOWN, exact=SHOWN, plain=SHOWN, stochastic=SHOWN, compensated=SHOWN, master=SHOWN, landed=())
def trained(exponent_bits, m, rate, steps, seed):
    """w ← w - rate·(w - 2) from w = 1, ``steps`` times: gradient descent on (w - 2)²/2.

    ``exact`` in doubles. ``plain``: weight and update rounded to nearest. ``stochastic``: the sum rounded up or down by
    chance. ``compensated``: Kahan's second number of the same format gathers what each sum lost (Kahan, CACM 8:1, 1965).
    ``master``: the sum in fp32, the gradient taken at its copy in the format, which is what is shown. ``landed`` counts the
    steps that moved the plain weight.
    """
    lowest = 2 - 2.0 ** (exponent_bits - 1)
    exact, plain, stochastic, compensated, kept, master, copy = START, START, START, START, 0.0, START, START
    plain_was, compensated_was, kept_was, master_was = TARGET, TARGET, 0.0, TARGET      # before the last step
    step, state, landed = zeros(SHOWN), first_state(seed), 0
    curves = [zeros(SHOWN), zeros(SHOWN), zeros(SHOWN), zeros(SHOWN), zeros(SHOWN)]
    done = 0
    for i in range(SHOWN):
        until = math.floor(i * steps / (SHOWN - 1))
        while done < until:
            done = done + 1
            exact = exact - rate * (exact - TARGET)
            state = next_state(state)
            stochastic = either_side(stochastic + rate * (TARGET - stochastic), m, lowest, state / MOST)
            # of the others, what one step did not move no later one will
            if plain != plain_was:
                plain_was = plain
                plain = nearest(plain + nearest(rate * (TARGET - plain), m, lowest), m, lowest)
                landed = landed + (1 if plain != plain_was else 0)
            if compensated != compensated_was or kept != kept_was:
                compensated_was, kept_was = compensated, kept
                update = nearest(nearest(rate * (TARGET - compensated), m, lowest) - kept, m, lowest)
                compensated = nearest(compensated + update, m, lowest)
                kept = nearest(nearest(compensated - compensated_was, m, lowest) - update, m, lowest)
            if master != master_was:
                master_was = master
                master = nearest(master - rate * (copy - TARGET), 23, -126)
                copy = nearest(master, m, lowest)
        step[i] = until
        curves[0][i], curves[1][i], curves[2][i], curves[3][i], curves[4][i] = exact, plain, stochastic, compensated, copy
    return {"step": step, "exact": curves[0], "plain": curves[1], "stochastic": curves[2], "compensated": curves[3],
            "master": curves[4], "landed": landed}


def stall_level(half_gap, rate):
    """The weight at which that happens here, on its way from 1 up to 2; 1 where it never sets out."""
    return np.maximum(TARGET - stall_distance(2 * half_gap, rate), START)


def share_lost(rate, deviation, number_format):
    """Of normal weights around 0, those that an update of the size of ``rate`` does not move: their half gap is larger.

    |w| is past 2^e, the first octave whose half gap 2^(e - m - 1) is more than the rate. Adam's updates are about as large as
    the rate, whatever the gradient. Leaves out that updates add up where they are kept.
    """
    check.positive(rate=rate, deviation=deviation)
    octave = math.floor(math.log2(rate)) + number_format.mantissa_bits + 2
    return math.erfc(2.0**octave / deviation / math.sqrt(2))


def stall_distance(gap, rate):
    """How far from its target a weight stops: rate · distance is half a gap there, and rounds back."""
    check.positive(gap=gap, rate=rate)
    return gap / 2 / rate


def share_landed(landed, steps):
    """Of the updates, those that moved the weight."""
    check.positive(steps=steps)
    return landed / steps


@program(total=(), exact=())
def gathered(count, product_m, sum_m, block, seed):
    """The sum of so many products of numbers even in [0, 1), in order: into a sum of ``sum_m`` bits, which every ``block``
    products is added to one of fp32 and begun anew. ``exact`` is the same sum in doubles, of the same rounded factors."""
    state, total, part, exact = first_state(seed), 0.0, 0.0, 0.0
    for i in range(int(count)):
        state = next_state(state)
        left = nearest(state / MOST, product_m, -126)
        state = next_state(state)
        product = left * nearest(state / MOST, product_m, -126)
        exact = exact + product
        part = nearest(part + product, sum_m, -126)
        if (i + 1) % int(block) == 0 or i + 1 == count:
            total = nearest(total + part, 23, -126)
            part = 0.0
    return {"total": total, "exact": exact}


# -- a loss scale ---------------------------------------------------------------------------------------------------------------
SAMPLES = 2048                          # gradients that are rounded one by one
VALUES = 1e8                            # gradients in a model, whose largest decides whether a step is skipped
FIRST_OCTAVE, LAST_OCTAVE = -60, 50     # of the histogram
OCTAVES = LAST_OCTAVE - FIRST_OCTAVE
OCTAVE_STARTS, OCTAVE_ENDS = np.arange(FIRST_OCTAVE, LAST_OCTAVE, dtype=float), np.arange(FIRST_OCTAVE, LAST_OCTAVE) + 1.0
MULTIBOX_MEDIAN, MULTIBOX_SPREAD = -28.8, 3.6       # fitted: see tests/engine/test_rounded_training.py
FIRST_SCALE = 65536.0                   # torch.amp.GradScaler's init_scale
SCALER_STEPS, MOST_CORNERS = 20_000, 1700
HIGHEST_SCALE = 127                     # a scale is an fp32 number: 2^127 is the largest power of two, and torch stops there
LOST, SMALL, WHOLE, OVER = range(4)


def normal_draw(state, following):
    """A draw from the standard normal by Box and Muller, from two states of the generator."""
    return math.sqrt(-2 * math.log(state / MOST)) * math.cos(2 * math.pi * following / MOST)


def upper_quantile(share):
    """The z that a standard normal exceeds with this small probability: Abramowitz and Stegun 26.2.23, off by 4.5e-4."""
    t = math.sqrt(-2 * math.log(share))
    return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t)


def fate(size, half, m, lowest, largest):
    """What becomes of a gradient's size: lost (0), subnormal, whole, over.

    ``half`` is half of the smallest number above zero: what is no larger rounds to zero, and what is as little below the
    smallest normal number rounds up to that, since from the middle it goes to the even one.
    """
    if size <= half:
        return LOST
    if size < 2.0**lowest - half:
        return SMALL
    return OVER if size > largest and nearest(size, m, lowest) > largest else WHOLE


@program(lost=OCTAVES, small=OCTAVES, whole=OCTAVES, over=OCTAVES, shares=4, highest=(), top=(), best=(), best_scale=(),
         lost_at_best=())
def scaled(median_octave, spread, scale, exponent_bits, m, largest, seed):
    """Gradients whose sizes are log-normal (median and standard deviation in powers of two), times the scale, rounded.

    For each octave the share of them there and what becomes of it; ``shares`` of the four fates. ``top`` is the exponent of
    the largest gradient to expect of VALUES, times the scale; ``best`` the largest power of two in fp32 that keeps it in range,
    ``lost_at_best`` the share that is lost then: no scale loses less. ``highest`` is the fullest octave's share.
    """
    lowest = 2 - 2.0 ** (exponent_bits - 1)
    half = 2.0 ** (lowest - m - 1)
    bins = [zeros(OCTAVES), zeros(OCTAVES), zeros(OCTAVES), zeros(OCTAVES)]
    shares, highest, state, lost_at_best = zeros(4), zeros(OCTAVES), first_state(seed), 0
    top = median_octave + spread * upper_quantile(1 / VALUES)
    best = min(math.floor(math.log2(largest) - top), HIGHEST_SCALE)
    best_scale = 2.0**best
    for _ in range(SAMPLES):
        following = next_state(state)
        size = 2.0 ** (median_octave + spread * normal_draw(state, following))
        state = next_state(following)
        seen = size * scale
        octave = min(max(exponent_of(seen) - FIRST_OCTAVE, 0), OCTAVES - 1)
        bins[fate(seen, half, m, lowest, largest)][octave] += 1 / SAMPLES
        if size * best_scale <= half:
            lost_at_best += 1 / SAMPLES
    for met in range(4):
        for octave in range(OCTAVES):
            highest[octave] += bins[met][octave]
            shares[met] += bins[met][octave]
    return {"lost": bins[0], "small": bins[1], "whole": bins[2], "over": bins[3], "shares": shares,
            "highest": max(highest), "top": top + math.log2(scale), "best": best, "best_scale": best_scale,
            "lost_at_best": lost_at_best}


@program(step=MOST_CORNERS, octave=MOST_CORNERS, skipped=(), last=(), last_scale=())
def dynamic_scale(median_octave, spread, largest, first, interval, seed):
    """torch.amp.GradScaler's own loop for 20,000 steps: halve and skip on an infinity, double after ``interval`` good steps.

    Of each step only its largest gradient matters, which is drawn from its own distribution: of VALUES draws the largest
    exceeds z with probability 1 - (1 - p(z))^VALUES. It grows with the state that it is drawn from, so that at one scale most
    states need no draw: all up to ``fits`` are known to fit, all from ``over`` on to overflow. ``step`` and ``octave`` are the
    corners of the scale's path.
    """
    steps, octaves = [0], [math.log2(first)]
    octave, good, skipped, state = math.log2(first), 0, 0, first_state(seed)
    fits, over = 0, MOST
    for i in range(SCALER_STEPS):
        state = next_state(state)
        if fits < state < over:
            top = median_octave + spread * upper_quantile(-math.log(state / MOST) / VALUES)
            if top + octave >= math.log2(largest):
                over = state
            else:
                fits = state
        good = good + 1
        if state < over and good < interval:
            continue
        before = octave
        if state >= over:
            octave, skipped, over = octave - 1, skipped + 1, MOST
        else:
            octave, fits = min(octave + 1, HIGHEST_SCALE), 0
        good = 0
        if octave != before:
            steps.append(i + 1)
            octaves.append(before)
            steps.append(i + 1)
            octaves.append(octave)
    steps.append(SCALER_STEPS)
    octaves.append(octave)
    return {"step": steps, "octave": octaves, "skipped": skipped, "last": octave, "last_scale": 2.0**octave}


# -- scales of fp8 ---------------------------------------------------------------------------------------------------------------
def with_scales(values, number_format, block, power_of_two=False):
    """Values through a narrow format, each block with a scale that takes its largest to the format's largest number.

    ``power_of_two``: the scale is rounded up to one, so that nothing exceeds the range (OCP MX keeps scales of that kind, E8M0).
    Returns the values as they are read again. All-zero blocks stay zero.
    """
    values = np.asarray(values, dtype=float)
    check.whole(block=block)
    blocks = values.reshape(-1, int(block))
    scale = np.abs(blocks).max(axis=1, keepdims=True) / number_format.largest
    scale = np.where(scale > 0, scale, 1.0)
    scale = 2.0 ** np.ceil(np.log2(scale)) if power_of_two else scale
    return (np.vectorize(number_format.round)(blocks / scale) * scale).reshape(values.shape)


def outlier_test(size, block, power_of_two=False, count=4096):
    """(root mean square error over that of the values, share lost) of E4M3 with scales, for normal draws with one outlier of so
    many standard deviations. Neither counts the outlier."""
    check.positive(size=size)
    values = np.random.default_rng(1).standard_normal(count)
    values[0] = size
    read = with_scales(values, precision.E4M3, block, power_of_two)
    error = np.sqrt(np.mean((read - values)[1:] ** 2) / np.mean(values[1:] ** 2))
    return float(error), float(np.mean(read[1:] == 0))
