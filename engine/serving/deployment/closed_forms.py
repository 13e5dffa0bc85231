"""The closed forms of deployments: whether a deployment keeps up with its load, and for what share of the
requests it meets each limit. Everything is computed for arrays of deployments at once, or for the numbers of
a single one, as a page does (``engine.base.program.elementwise``).

``ask`` is the load with its limits, and ``unit`` describes one unit of a deployment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.base.program import elementwise, for_each, in_page, mean
from engine.base.types import Real, Truth
from engine.serving.deployment.columns import LEAST, Asked, Judged, Plans, Tables, Tried, squared

FULLEST = 3.0  # standard deviations above the mean, of the prompts in the fullest step that an answer sees
LONGER = 3  # steps in a row, each of which reads what came during the one before
GUESSES = 10  # guesses of the answers at once: each has more right digits, the eighth usually all
GRID = 2.0**-26  # share of a full batch to which answers are rounded up, so that no last digit decides a tie


class Unit(NamedTuple):
    """One unit of a deployment, and its costs."""

    table: Real  # index of the replica's costs
    front: Real  # … and of the costs of replicas that only prefill
    apart: Truth  # whether there are such replicas
    budget: Real
    lines: Real  # replicas that read prompts, in all units together
    to_decode: Real  # requests a second for each replica that writes …
    to_prefill: Real  # … and for each that reads
    fresh: Real  # tokens of a prompt that are read, on average
    pair_s: Real
    pairs_s: Real  # attention of a prompt, on average
    cached_s: Real  # reading an answer's cache, on average
    width: Real  # tokens of an answer that a step computes
    draft_s: Real
    gain: Real  # … and that it yields
    steps: Real  # decode steps of an answer, on average


class Prefilling(NamedTuple):
    """How a replica reads prompts, while it may also be writing."""

    room: Real  # tokens of prompts in a step
    beside: Real  # tokens of answers in it
    read_s: Real  # reading their caches, and drafts
    full_s: Real  # a step that is full of prompts
    others: Real  # tokens of further prompts in a step


# -- the time of a step --------------------------------------------------------------------------------------
@elementwise
def step_s(at: Real, table: Real, tables: Tables) -> Real:
    """Seconds of a step over ``at`` tokens, without attention (``step_costs.interpolated``)."""
    rows, rows_s, last = tables.rows, tables.rows_s, len(tables.rows) - 1
    begin, i = table * len(rows), np.minimum(last, np.maximum(1, np.searchsorted(rows, at)))
    share = np.maximum(0.0, (at - rows[i - 1]) / (rows[i] - rows[i - 1]))
    low, high = rows_s[begin + i - 1], rows_s[begin + i]
    beyond = rows_s[begin + last] * at / rows[last]
    return np.where(at >= rows[last], beyond, low + (high - low) * share)


@elementwise
def writing_s(running: Real, unit: Unit, tables: Tables) -> Real:
    """Seconds of a step that reads no prompt, without attention and drafts."""
    return step_s(running * unit.width, unit.table, tables)


@elementwise
def prompt_s(running: Real, without_s: Real, unit: Unit, tables: Tables) -> Real:
    """Seconds that a prompt adds to the steps that it is part of; ``without_s`` is such a step without the
    prompt."""
    come, rows = np.maximum(running / unit.steps, 1e-9), running * unit.width
    chunk = np.minimum(np.maximum(1.0, unit.budget - rows), unit.fresh * come / -np.expm1(-come))
    with_chunk = step_s(rows + chunk, unit.table, tables)
    return unit.fresh / chunk * (with_chunk - without_s) + unit.pairs_s


@elementwise
def alone_s(running: Real, unit: Unit, tables: Tables) -> Real:
    """Seconds from one token of an answer to the next while no prompt is read."""
    return writing_s(running, unit, tables) + running * unit.cached_s + unit.draft_s


@elementwise
def token_s(running: Real, unit: Unit, tables: Tables) -> Real:
    """Seconds from one token of an answer to the next, including the prompts that are part of its steps."""
    without_s = writing_s(running, unit, tables)
    adds_s = np.where(unit.apart, 0.0, running / unit.steps * prompt_s(running, without_s, unit, tables))
    return without_s + running * unit.cached_s + unit.draft_s + adds_s


# -- what a deployment does ----------------------------------------------------------------------------------
@elementwise
def settled(batch: Real, unit: Unit, tables: Tables) -> tuple[Real, Truth]:
    """(answers that a replica writes at once, whether it keeps up with its load). In the balance as many
    answers arrive as are finished; it is found by the Illinois form of false position. A replica that does
    not keep up writes a full batch."""
    come = unit.to_decode * unit.steps  # how many answers run for each second that a token takes
    less = token_s(batch, unit, tables) * come - batch
    keeps_up = less < 0
    low, high, running, moved = 0.0 * batch, batch, batch, 0.0 * batch
    more = token_s(low, unit, tables) * come
    for _ in range(GUESSES):
        running = np.where(keeps_up, (low * less - high * more) / (less - more), batch)
        behind = token_s(running, unit, tables) * come - running
        late = behind > 0
        less = np.where(late, np.where(moved > 0, less / 2, less), behind)
        more = np.where(late, behind, np.where(moved < 0, more / 2, more))
        low, high = np.where(late, running, low), np.where(late, high, running)
        moved = np.where(late, 1.0, -1.0)
    return np.where(keeps_up, batch * GRID * np.ceil(running / (batch * GRID)), batch), keeps_up


@elementwise
def own_s(new: Real, pairs: Real, reading: Prefilling, unit: Unit, tables: Tables) -> Real:
    """Seconds of a prompt's own steps, if it has ``new`` tokens to read."""
    tokens = np.where(unit.apart, new, reading.beside + np.minimum(reading.room, new + reading.others))
    in_one_s = step_s(tokens, unit.front, tables) + reading.read_s
    in_pieces = (new > reading.room) & ~unit.apart
    return (
        np.where(in_pieces, new / reading.room * reading.full_s, in_one_s) + pairs * tables.pair_s[unit.front]
    )


@elementwise
def keeps_busy_s(own: Real, new: Real, pairs: Real, reading: Prefilling, unit: Unit) -> Real:
    """Seconds that a prompt keeps a replica busy; ``own`` are those of its own steps."""
    return np.where(unit.apart, own, new / reading.room * reading.full_s + pairs * unit.pair_s)


@elementwise
def comes_late(own: Real, before_s: Real, waits: Real, wait_s: Real, ttft_s: float) -> Real:
    """The chance that a prompt's first token comes too late. It may have to wait with the chance ``waits``,
    then ``wait_s`` on average, and always ``before_s`` and its own steps."""
    left_s = ttft_s - own - before_s
    return np.where(left_s < 0, 1.0, waits * np.exp(-left_s / wait_s))


@elementwise
def first_tokens(running: Real, unit: Unit, ask: Asked, tables: Tables) -> tuple[Real, Real, Real]:
    """(share of prompts whose first token comes too late, because of the prompts before them and of their own
    steps; seconds that a prompt keeps a replica busy, on average; share of the time in which prefill is
    busy).

    The wait is that of several servers with one line (M/G/k, as in ``queues.wait_within_s``)."""
    apart = unit.apart
    room = np.where(apart, unit.budget, np.maximum(1.0, unit.budget - running * unit.width))
    beside = np.where(apart, 0.0, running * unit.width)
    read_s = np.where(apart, 0.0, running * unit.cached_s + unit.draft_s)
    reading = Prefilling(
        room=room,
        beside=beside,
        read_s=read_s,
        full_s=step_s(beside + room, unit.table, tables) + read_s,
        others=running / unit.steps * unit.fresh,
    )
    own = for_each(own_s, (ask.fresh, ask.pairs), reading, unit, tables)
    takes_s = for_each(keeps_busy_s, (own, ask.fresh, ask.pairs), reading, unit)
    mean_s = mean(takes_s)
    busy = unit.to_prefill * mean_s
    waits = busy ** (np.sqrt(2.0 * (np.minimum(unit.lines, 8.0) + 1.0)) - 1.0)
    wait_s = mean(for_each(squared, (takes_s,))) / (2.0 * mean_s) / np.maximum(LEAST, 1.0 - busy)
    before_s = np.where(apart, 0.0, alone_s(running, unit, tables) / 2)
    return mean(for_each(comes_late, (own,), before_s, waits, wait_s, ask.ttft_s)), mean_s, busy


@elementwise
def no_room(batch: Real, running: Real, each_s: Real, patience_s: Real, steps: Real) -> Real:
    """The share of answers that wait longer than ``patience_s`` for room in the batch."""
    filled = np.minimum(1.0 - 1e-9, running / np.maximum(1.0, batch))
    crowded = filled ** (np.sqrt(2.0 * (batch + 1.0)) - 1.0)
    leaves_s = each_s * steps / (np.maximum(1.0, batch) * (1.0 - filled))
    return crowded * np.exp(-np.maximum(0.0, patience_s) / np.maximum(LEAST, leaves_s))


@elementwise
def above(value: Real) -> Real:
    """The share of a normal distribution above ``value`` standard deviations, to within 5·10⁻⁴ (Abramowitz
    and Stegun 26.2.18)."""
    x = np.abs(value)
    tail = 0.5 / (1 + x * (0.196854 + x * (0.115194 + x * (0.000344 + x * 0.019527)))) ** 4
    return np.where(value >= 0, tail, 1 - tail)


@elementwise
def comes_slowly(
    answer: Real, each_s: Real, sent_s: Real, spread: Real, slope: Real, gain: Real, tpot_s: float
) -> Real:
    """The chance that an answer of this length comes too slowly; ``spread`` and ``slope`` are the variances
    by prompts that are read meanwhile, for one step, and by other answers."""
    many = np.maximum(1.0, (answer - 1.0) / gain)
    spread_s = np.sqrt(spread / many + slope + LEAST**2)
    return above((tpot_s * gain - sent_s / many - each_s) / spread_s)


@elementwise
def too_slow(running: Real, each_s: Real, sent_s: Real, unit: Unit, ask: Asked, tables: Tables) -> Real:
    """The share of answers whose tokens come too slowly, because prompts are read meanwhile, or because more
    answers than usual happen to run. ``sent_s`` are the seconds that a cache spends on its wire."""
    adds_s = np.where(unit.apart, 0.0, prompt_s(running, writing_s(running, unit, tables), unit, tables))
    extra_s = adds_s * np.sqrt(ask.fresh_square) / unit.fresh
    slope_s = alone_s(running + 1.0, unit, tables) - alone_s(running, unit, tables)
    spread, slope = unit.to_decode * each_s * extra_s**2, slope_s**2 * running
    return mean(for_each(comes_slowly, (ask.answers,), each_s, sent_s, spread, slope, unit.gain, ask.tpot_s))


@elementwise
def longest_pause_s(
    running: Real, each_s: Real, sent_s: Real, unit: Unit, ask: Asked, tables: Tables
) -> Real:
    """Seconds of the longest pause that most answers see, about: a step with as many tokens of prompts as may
    come together, at the end of a prompt, where each attends to most; while a long step runs, more prompts
    come for the next. Behind a pool for prompts it is the second token that is late: its cache is sent, and a
    step is under way when it arrives."""
    room = np.maximum(1.0, unit.budget - running * unit.width)
    beside_s, full_s = running * unit.cached_s + unit.draft_s, each_s
    for _ in range(LONGER):
        come = unit.to_decode * full_s
        flood = come * unit.fresh + FULLEST * np.sqrt(come * ask.fresh_square)
        tokens = np.minimum(room, np.maximum(unit.fresh, flood))
        pairs = tokens * np.maximum(ask.prompt / 2.0, ask.prompt - tokens / 2.0)
        reads_s = pairs * tables.pair_s[unit.table] + beside_s
        full_s = step_s(running * unit.width + tokens, unit.table, tables) + reads_s
    return np.where(unit.apart, sent_s + 1.5 * each_s, full_s)


@elementwise
def judged(ask: Asked, tried: Tried, tables: Tables, plan: Plans, units: Real) -> Judged:
    """What a deployment of so many units does with the load."""
    apart, per_unit, capacity = plan.prefillers > 0, ask.per_s / units, tables.capacity[plan.table]
    reading = np.where(apart, plan.prefillers, plan.decoders)
    width, gain = tried.width[plan.drafts], tried.gain[plan.drafts]
    steps = np.maximum(LEAST, (ask.answer - 1.0) / gain)
    unit = Unit(
        table=plan.table,
        front=plan.front,
        apart=apart,
        budget=plan.budget,
        lines=reading * units,
        to_decode=per_unit / plan.decoders,
        to_prefill=per_unit / reading,
        fresh=ask.fresh_mean,
        pair_s=tables.pair_s[plan.table],
        pairs_s=ask.pairs_mean * tables.pair_s[plan.table],
        cached_s=ask.context * tables.cached_s[plan.table],
        width=width,
        draft_s=tried.draft_s[plan.drafts],
        gain=gain,
        steps=steps,
    )
    batch = np.minimum(ask.most_running, capacity / ask.context)
    mixed = np.minimum(batch, plan.budget * steps / (ask.fresh_mean + width * steps))
    batch = np.where(apart, batch, mixed)
    running, keeps_up = settled(batch, unit, tables)
    each_s = token_s(running, unit, tables)
    late, mean_s, busy = first_tokens(running, unit, ask, tables)
    wire_s = (ask.prompt + 1.0) * np.maximum(tables.sent_s[plan.table], tables.sent_s[plan.front])
    on_wire = np.where(apart, unit.to_prefill * wire_s, 0.0)
    sent_s = np.where(apart, wire_s / np.maximum(LEAST, 1.0 - on_wire), 0.0)
    blocked = no_room(batch, running, each_s, ask.ttft_s - mean_s, steps)
    slow = too_slow(running, each_s, sent_s, unit, ask, tables)
    pause_s = longest_pause_s(running, each_s, sent_s, unit, ask, tables)
    even = (pause_s <= ask.pause_s) | (ask.answer <= 1.0)

    steady = keeps_up & (capacity > ask.prompt + ask.answer) & (busy < 1.0) & (on_wire < 1.0)
    tokens_met = np.where(ask.answer > 1.0, 1.0 - slow - np.where(apart, blocked, 0.0), 1.0)
    return Judged(
        steady=steady,
        prompts_met=np.where(steady, 1.0 - late - np.where(apart, 0.0, blocked), 0.0),
        tokens_met=np.where(steady, tokens_met, 0.0),
        running=running,
        token_s=np.maximum(0.0, each_s / gain),
        batch=batch,
        pause_s=pause_s,
        pauses_met=np.where(steady & even, 1.0, 0.0),
    )


# -- all deployments -----------------------------------------------------------------------------------------
def one_by_one(
    ask: Asked, tried: Tried, tables: Tables, plans: Plans, units: list[float]
) -> dict[str, list[Any]]:
    """``judge`` for a page, one deployment after the other."""
    steady, prompts_met, tokens_met, running, each_s, batch = [], [], [], [], [], []
    pause_s, pauses_met = [], []
    for p in range(len(units)):
        plan = Plans(
            int(plans.table[p]),
            int(plans.front[p]),
            plans.budget[p],
            plans.prefillers[p],
            plans.decoders[p],
            int(plans.drafts[p]),
        )
        found = judged(ask, tried, tables, plan, units[p])
        steady.append(found.steady)
        prompts_met.append(found.prompts_met)
        tokens_met.append(found.tokens_met)
        running.append(found.running)
        each_s.append(found.token_s)
        batch.append(found.batch)
        pause_s.append(found.pause_s)
        pauses_met.append(found.pauses_met)
    return {
        "steady": steady,
        "prompts_met": prompts_met,
        "tokens_met": tokens_met,
        "running": running,
        "token_s": each_s,
        "batch": batch,
        "pause_s": pause_s,
        "pauses_met": pauses_met,
    }


@in_page(one_by_one)
def judge(ask: Asked, tried: Tried, tables: Tables, plans: Plans, units: Real) -> dict[str, Any]:
    """Judge every deployment; returns the columns of ``Judged``."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return judged(ask, tried, tables, plans, units)._asdict()
