"""Arithmetic in a number format, executed step by step: a weight trained in it, and a sum accumulated in it.

Every result is rounded as the format rounds it (``engine.mechanism.precision``). The functions stay within
the subset of Python that ``engine.base.program`` translates for the page. Those whose names begin with an
underscore do not: they compute the same over arrays, for Python.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.base import check
from engine.base.program import program, zeros
from engine.base.types import Real
from engine.executed.routing import first_state, next_state, next_states
from engine.mechanism import precision
from engine.mechanism.precision import exponent_of, gap_at, nearest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SHOWN, MOST_STEPS = 161, 4000  # points of a curve, and the most steps it may represent
START, TARGET, NEARLY = 1.0, 2.0, 1.98
ALIKE = 5e-4  # share of a weight: values that differ by less look the same in the figure's digits
MASTER_BYTES = 4.0  # bytes of an fp32 copy of a weight
MOST = 2147483647  # largest state of the generator


def either_side(x: float, m: float, lowest: float, draw: float) -> float:
    """Stochastic rounding: up or down with probabilities given by the distances, so that the mean is x.
    ``draw`` is uniform in [0, 1)."""
    gap = gap_at(x, m, lowest)
    return math.floor(x / gap + draw) * gap


@program(step=SHOWN, exact=SHOWN, plain=SHOWN, stochastic=SHOWN, compensated=SHOWN, master=SHOWN, landed=())
def trained(exponent_bits: float, m: float, rate: float, steps: float, seed: float) -> dict[str, Any]:
    """w ← w - rate·(w - 2) from w = 1, ``steps`` times: gradient descent on (w - 2)²/2.

    ``exact``: in doubles. ``plain``: weight and update rounded to nearest. ``stochastic``: the sum rounded up
    or down at random. ``compensated``: a second number in the same format accumulates what each sum lost
    (Kahan, CACM 8:1, 1965). ``master``: the sum in fp32, with the gradient taken at its rounded copy, which
    is what is shown. ``landed`` counts the steps that changed the plain weight.
    """
    lowest = 2 - 2.0 ** (exponent_bits - 1)
    exact, plain, stochastic, compensated, kept, master, copy = START, START, START, START, 0.0, START, START
    plain_was, compensated_was, kept_was, master_was = TARGET, TARGET, 0.0, TARGET  # before the last step
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
            # the other variants are deterministic: if one step did not move them, no later one will
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
        curves[0][i], curves[1][i], curves[2][i], curves[3][i], curves[4][i] = (
            exact,
            plain,
            stochastic,
            compensated,
            copy,
        )
    return {
        "step": step,
        "exact": curves[0],
        "plain": curves[1],
        "stochastic": curves[2],
        "compensated": curves[3],
        "master": curves[4],
        "landed": landed,
    }


def stall_level(half_gap: Real, rate: Real) -> Real:
    """The weight at which the training of ``trained`` stalls, on its way from 1 up to 2; 1 if the weight
    never moves."""
    return np.maximum(TARGET - stall_distance(2 * half_gap, rate), START)


def share_lost(rate: float, deviation: float, number_format: precision.Format) -> float:
    """The share of normally distributed weights that an update of size ``rate`` does not change, because half
    the gap to their neighbour is larger.

    These are the weights with |w| above 2^e, the first octave whose half gap 2^(e - m - 1) exceeds the rate.
    Adam's updates are about as large as the rate, whatever the gradient. Leaves out that updates add up where
    they are accumulated.
    """
    check.positive(rate=rate, deviation=deviation)
    octave = math.floor(math.log2(rate)) + number_format.mantissa_bits + 2
    return math.erfc(2.0**octave / deviation / math.sqrt(2))


def stall_distance(gap: Real, rate: Real) -> Real:
    """How far from its target a weight stops: at this distance the update, rate · distance, is half a gap and
    rounds to no change."""
    check.positive(gap=gap, rate=rate)
    return gap / 2 / rate


@program(total=(), exact=())
def gathered(count: float, product_m: float, sum_m: float, block: float, seed: float) -> dict[str, Any]:
    """The sum of ``count`` products of numbers uniform in [0, 1), in order, into an accumulator with
    ``sum_m`` mantissa bits, which every ``block`` products is added to an fp32 accumulator and reset.
    ``exact`` is the same sum in doubles, of the same rounded factors."""
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


# -- a loss scale --------------------------------------------------------------------------------------------
SAMPLES = 2048  # gradients that are rounded individually
VALUES = 1e8  # gradients in a model, the largest of which decides whether a step is skipped
FIRST_OCTAVE, LAST_OCTAVE = -60, 50  # of the histogram
OCTAVES = LAST_OCTAVE - FIRST_OCTAVE
OCTAVE_STARTS = np.arange(FIRST_OCTAVE, LAST_OCTAVE, dtype=float)
OCTAVE_ENDS = OCTAVE_STARTS + 1.0
MULTIBOX_MEDIAN, MULTIBOX_SPREAD = -28.8, 3.6  # fitted: see tests/engine/executed/test_rounded_training.py
# NVIDIA's mixed-precision guide: the shares of all activation gradients that become zero in fp16, and that do
# not; the others are zero in any format
MULTIBOX_VANISHING, MULTIBOX_STAYING = 0.31, 0.053
MULTIBOX_LOST = MULTIBOX_VANISHING / (MULTIBOX_VANISHING + MULTIBOX_STAYING)  # share of nonzero gradients
FIRST_SCALE = 65536.0  # torch.amp.GradScaler's init_scale
SCALER_STEPS, MOST_CORNERS = 20_000, 1700
HIGHEST_SCALE = 127  # a scale is an fp32 number: 2^127 is the largest power of two, and torch stops there
LOST, SMALL, WHOLE, OVER = range(4)


def normal_draw(state: int, following: int) -> float:
    """A standard normal draw by the Box-Muller method, from two states of the generator."""
    return math.sqrt(-2 * math.log(state / MOST)) * math.cos(2 * math.pi * following / MOST)


def upper_quantile(share: float) -> float:
    """The z that a standard normal exceeds with this small probability: Abramowitz and Stegun 26.2.23,
    accurate to 4.5e-4."""
    t = math.sqrt(-2 * math.log(share))
    return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (
        1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t
    )


def fate(size: float, half: float, m: float, lowest: float, largest: float) -> int:
    """What happens to a gradient of this size: lost (0), subnormal, normal, or overflow.

    ``half`` is half of the smallest number above zero: sizes up to it round to zero. A size at most that much
    below the smallest normal number rounds up to that number, because a tie goes to the even one.
    """
    if size <= half:
        return LOST
    if size < 2.0**lowest - half:
        return SMALL
    return OVER if size > largest and nearest(size, m, lowest) > largest else WHOLE


def _scaled(
    median_octave: float,
    spread: float,
    scale: float,
    exponent_bits: float,
    m: float,
    largest: float,
    seed: float,
) -> dict[str, Any]:
    """``scaled`` over arrays."""
    lowest = 2 - 2.0 ** (exponent_bits - 1)
    half = 2.0 ** (lowest - m - 1)
    top = median_octave + spread * upper_quantile(1 / VALUES)
    best = min(math.floor(math.log2(largest) - top), HIGHEST_SCALE)
    first = first_state(seed)
    drawn = np.append(first, next_states(first, 2 * SAMPLES - 1)) / MOST
    normal = np.sqrt(-2 * np.log(drawn[::2])) * np.cos(2 * math.pi * drawn[1::2])
    size = 2.0 ** (median_octave + spread * normal)
    seen = size * scale
    exponent = np.frexp(seen)[1] - 1
    gap = 2.0 ** (np.maximum(exponent, lowest) - m)
    too_large = (seen > largest) & (np.rint(seen / gap) * gap > largest)
    met = np.where(seen < 2.0**lowest - half, SMALL, np.where(too_large, OVER, WHOLE))
    met = np.where(seen <= half, LOST, met)
    octave = np.clip(exponent - FIRST_OCTAVE, 0, OCTAVES - 1)
    bins = np.bincount(met * OCTAVES + octave, minlength=4 * OCTAVES).reshape(4, OCTAVES) / SAMPLES
    return {
        **dict(zip(("lost", "small", "whole", "over"), bins)),
        "shares": bins.sum(axis=1),
        "highest": bins.sum(axis=0).max(),
        "top": top + math.log2(scale),
        "best": best,
        "best_scale": 2.0**best,
        "lost_at_best": np.count_nonzero(size * 2.0**best <= half) / SAMPLES,
    }


@program(
    _scaled,
    lost=OCTAVES,
    small=OCTAVES,
    whole=OCTAVES,
    over=OCTAVES,
    shares=4,
    highest=(),
    top=(),
    best=(),
    best_scale=(),
    lost_at_best=(),
)
def scaled(
    median_octave: float,
    spread: float,
    scale: float,
    exponent_bits: float,
    m: float,
    largest: float,
    seed: float,
) -> dict[str, Any]:
    """Gradients whose sizes are log-normal (median and standard deviation in powers of two), times the scale,
    rounded.

    For each octave: the share of gradients in it and what happens to them; ``shares`` of the four outcomes.
    ``top`` is the exponent of the largest of VALUES gradients to be expected, times the scale; ``best`` the
    largest fp32 power of two that keeps it in range, ``lost_at_best`` the share that is lost at that scale:
    no scale loses less. ``highest`` is the fullest octave's share.
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
    return {
        "lost": bins[0],
        "small": bins[1],
        "whole": bins[2],
        "over": bins[3],
        "shares": shares,
        "highest": max(highest),
        "top": top + math.log2(scale),
        "best": best,
        "best_scale": best_scale,
        "lost_at_best": lost_at_best,
    }


def octave_after(octave: float, good: float, overflows: bool, interval: float) -> float:
    """The scale's power of two after a step that followed ``good`` steps without an overflow: one less if the
    step overflowed, one more if it completed an interval of good steps."""
    if overflows:
        return octave - 1
    if good + 1 >= interval:
        return min(octave + 1, HIGHEST_SCALE)
    return octave


def good_after(good: float, overflows: bool, interval: float) -> float:
    """The steps without an overflow since the scale was last set, after one more step."""
    if overflows or good + 1 >= interval:
        return 0
    return good + 1


def _dynamic_scale(
    median_octave: float, spread: float, largest: float, first: float, interval: float, seed: float
) -> dict[str, Any]:
    """``dynamic_scale``, computed from one change of the scale to the next instead of step by step. At each
    scale, a step overflows if its state is at or above a certain value."""
    states, limit = next_states(first_state(seed), SCALER_STEPS), math.log2(largest)
    least: dict[float, int] = {}  # the smallest state that overflows, by the octave of the scale

    def overflows(state, octave):
        top = median_octave + spread * upper_quantile(-math.log(state / MOST) / VALUES)
        return top + octave >= limit

    def first_overflow(some, octave):
        """The place of the first overflow among some states; one past the last state if none overflows."""
        if octave not in least:
            if not overflows(int(some.max()), octave):
                return len(some)
            least[octave] = bisect_left(range(MOST), True, 1, key=lambda state: overflows(state, octave))
        found = some >= least[octave]
        place = int(found.argmax())
        return place if found[place] else len(some)

    steps, octaves = [0], [math.log2(first)]
    done, octave, skipped, patience = 0, math.log2(first), 0, math.ceil(interval)
    while done < SCALER_STEPS:
        some, before = states[done : done + patience], octave
        place = first_overflow(some, octave)
        done += min(place + 1, patience)
        if place < len(some):
            octave, skipped = octave - 1, skipped + 1
        elif len(some) == patience:
            octave = min(octave + 1, HIGHEST_SCALE)
        if octave != before:
            steps += [done, done]
            octaves += [before, octave]
    return {
        "step": [*steps, SCALER_STEPS],
        "octave": [*octaves, octave],
        "skipped": skipped,
        "last": octave,
        "last_scale": 2.0**octave,
    }


@program(_dynamic_scale, step=MOST_CORNERS, octave=MOST_CORNERS, skipped=(), last=(), last_scale=())
def dynamic_scale(
    median_octave: float, spread: float, largest: float, first: float, interval: float, seed: float
) -> dict[str, Any]:
    """The loop of torch.amp.GradScaler for 20,000 steps: halve and skip the step on an infinity, double after
    ``interval`` good steps.

    Only the largest gradient of a step matters, so it is drawn from its own distribution: the largest of
    VALUES draws exceeds z with probability 1 - (1 - p(z))^VALUES. It grows with the generator's state, so at
    a given scale most states need no draw: all states up to ``fits`` are known to fit, and all from ``over``
    on to overflow. ``step`` and ``octave`` are the corners of the scale's path.
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
        before, overflows = octave, state >= over
        octave = octave_after(octave, good, overflows, interval)
        good = good_after(good, overflows, interval)
        if overflows:
            skipped, over = skipped + 1, MOST
        if octave > before:
            fits = 0
        if octave != before:
            steps.append(i + 1)
            octaves.append(before)
            steps.append(i + 1)
            octaves.append(octave)
    steps.append(SCALER_STEPS)
    octaves.append(octave)
    return {"step": steps, "octave": octaves, "skipped": skipped, "last": octave, "last_scale": 2.0**octave}


# -- scales of fp8 -------------------------------------------------------------------------------------------
def with_scales(
    values: ArrayLike, number_format: precision.Format, block: int, power_of_two: bool = False
) -> np.ndarray:
    """Values rounded to a narrow format, where each block has a scale that maps its largest value to the
    format's largest number.

    ``power_of_two``: the scale is rounded up to a power of two, so that nothing exceeds the range (OCP MX
    stores such scales, E8M0). Returns the values as they are read back. All-zero blocks stay zero.
    """
    values = np.asarray(values, dtype=float)
    check.whole(block=block)
    blocks = values.reshape(-1, int(block))
    scale = np.abs(blocks).max(axis=1, keepdims=True) / number_format.largest
    scale = np.where(scale > 0, scale, 1.0)
    scale = 2.0 ** np.ceil(np.log2(scale)) if power_of_two else scale
    return (np.vectorize(number_format.round)(blocks / scale) * scale).reshape(values.shape)


def unscaled_step_share(weights: Real, clipped_to: Real = 1.0, epsilon: Real = 1e-8) -> Real:
    """Adam's first step as a share of the rate where gradients were clipped while they still had the loss
    scale, and divided by it afterwards: g/(g + ε) with g = clip/(scale·√N), for N gradients of one size.

    Adam divides each gradient by its own size, which cancels any scale until ε is as large. Leaves out that
    gradients differ in size, which makes the share smaller.
    """
    check.positive(weights=weights, clipped_to=clipped_to, epsilon=epsilon)
    size = clipped_to / (FIRST_SCALE * np.sqrt(weights))
    return size / (size + epsilon)


def outlier_test(
    size: float, block: int, power_of_two: bool = False, count: int = 4096
) -> tuple[float, float]:
    """(root mean square error relative to the values', share lost) of E4M3 with scales, for normal draws with
    one outlier of this many standard deviations. Neither figure counts the outlier."""
    check.positive(size=size)
    values = np.random.default_rng(1).standard_normal(count)
    values[0] = size
    read = with_scales(values, precision.E4M3, block, power_of_two)
    error = np.sqrt(np.mean((read - values)[1:] ** 2) / np.mean(values[1:] ** 2))
    return float(error), float(np.mean(read[1:] == 0))
