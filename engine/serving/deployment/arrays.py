"""The closed forms of deployments over arrays: whether each deployment keeps up with its load, and for what
share of the requests it meets each limit. ``forms.py`` calls this module. A page runs ``loops.py`` instead,
which has a loop under each name of this module.

``load`` is the load with its limits; ``unit`` has one row for each deployment, which describes its unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base import ops
from engine.base.program import in_page
from engine.serving import step_costs
from engine.serving.deployment import loops
from engine.serving.deployment.loops import GRID, GUESSES, LEAST
from engine.serving.step_costs import Costs


class Tables(NamedTuple):
    """The costs of several replicas, side by side (``step_costs.Costs``)."""

    rows_s: np.ndarray
    pair_s: np.ndarray
    cached_s: np.ndarray
    capacity: np.ndarray
    sent_s: np.ndarray  # seconds for sending a cached token

    @classmethod
    def of(cls, costs: list[Costs], wires: list[float]) -> Tables:
        """``wires`` are the bytes per second between replicas, for each of the costs."""
        return cls(
            np.array([one.rows_s for one in costs]),
            np.array([float(one.pair_s) for one in costs]),
            np.array([float(one.cached_s) for one in costs]),
            np.array([float(one.capacity) for one in costs]),
            np.array([float(one.kv_bytes) / wire for one, wire in zip(costs, wires)]),
        )

    def step_s(self, table: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Seconds of a step over ``rows`` tokens, without attention (``step_costs.interpolated``)."""
        known = step_costs.ROWS
        table = np.reshape(table, table.shape + (1,) * (rows.ndim - table.ndim))
        i = 1 + np.searchsorted(known[1:-1], rows)
        share = np.maximum(0.0, (rows - known[i - 1]) / (known[i] - known[i - 1]))
        low, high = self.rows_s[table, i - 1], self.rows_s[table, i]
        beyond = self.rows_s[table, -1] * rows / known[-1]
        return np.where(rows >= known[-1], beyond, low + (high - low) * share)


class Asked(NamedTuple):
    """The load and its limits; lengths by equally likely quantiles, a column each."""

    ttft_s: float
    tpot_s: float
    fresh: np.ndarray  # tokens of each prompt that no prefix cache holds
    pairs: np.ndarray  # pairs of a fresh token and a token that it attends to
    answers: np.ndarray


class Units(NamedTuple):
    """One unit of each deployment, and its costs."""

    tables: Tables
    table: np.ndarray  # index of the replica's costs
    front: np.ndarray  # … and of the costs of replicas that only prefill
    apart: np.ndarray  # whether there are such replicas
    budget: np.ndarray
    lines: np.ndarray  # replicas that read prompts, in all units together
    to_decode: np.ndarray  # requests a second for each replica that writes …
    to_prefill: np.ndarray  # … and for each that reads
    fresh: float  # tokens of a prompt that are read, on average
    pair_s: np.ndarray
    pairs_s: np.ndarray  # attention of a prompt, on average
    cached_s: np.ndarray  # reading an answer's cache, on average
    width: np.ndarray  # tokens of an answer that a step computes
    draft_s: np.ndarray
    gain: np.ndarray  # … and that it yields
    steps: np.ndarray  # decode steps of an answer, on average


# -- the time of a step --------------------------------------------------------------------------------------
def writing_s(running: np.ndarray, unit: Units) -> np.ndarray:
    """Seconds of a step that reads no prompt, without attention and drafts."""
    return unit.tables.step_s(unit.table, running * unit.width)


def prompt_s(running: np.ndarray, without_s: np.ndarray, unit: Units) -> np.ndarray:
    """Seconds that a prompt adds to the steps that it is part of; ``without_s`` is such a step without the
    prompt."""
    come, rows = np.maximum(running / unit.steps, 1e-9), running * unit.width
    chunk = np.minimum(np.maximum(1.0, unit.budget - rows), unit.fresh * come / -np.expm1(-come))
    with_chunk = unit.tables.step_s(unit.table, rows + chunk)
    return unit.fresh / chunk * (with_chunk - without_s) + unit.pairs_s


def alone_s(running: np.ndarray, unit: Units) -> np.ndarray:
    """Seconds from one token of an answer to the next while no prompt is read."""
    return writing_s(running, unit) + running * unit.cached_s + unit.draft_s


def token_s(running: np.ndarray, unit: Units) -> np.ndarray:
    """Seconds from one token of an answer to the next, including the prompts that are part of its steps."""
    without_s = writing_s(running, unit)
    adds_s = np.where(unit.apart, 0.0, running / unit.steps * prompt_s(running, without_s, unit))
    return without_s + running * unit.cached_s + unit.draft_s + adds_s


# -- what a deployment does ----------------------------------------------------------------------------------
def settled(batch: np.ndarray, unit: Units) -> tuple[np.ndarray, np.ndarray]:
    """(answers that a replica writes at once, whether it keeps up with its load). In the balance as many
    answers arrive as are finished; it is found by the Illinois form of false position. A replica that does
    not keep up writes a full batch."""
    come = unit.to_decode * unit.steps  # how many answers run for each second that a token takes
    less = token_s(batch, unit) * come - batch
    keeps_up = less < 0
    low, high, running, moved = np.zeros_like(batch), batch, batch, np.zeros_like(batch)
    more = token_s(low, unit) * come
    for _ in range(GUESSES):
        running = np.where(keeps_up, (low * less - high * more) / (less - more), batch)
        behind = token_s(running, unit) * come - running
        late = behind > 0
        less = np.where(late, np.where(moved > 0, less / 2, less), behind)
        more = np.where(late, behind, np.where(moved < 0, more / 2, more))
        low, high = np.where(late, running, low), np.where(late, high, running)
        moved = np.where(late, 1.0, -1.0)
    return np.where(keeps_up, batch * GRID * np.ceil(running / (batch * GRID)), batch), keeps_up


def first_tokens(running: np.ndarray, unit: Units, load: Asked) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(share of prompts whose first token comes too late, because of the prompts before them and of their own
    steps; seconds that a prompt keeps a replica busy, on average; share of the time in which prefill is
    busy).

    The wait is that of several servers with one line (M/G/k, as in ``queues.wait_within_s``)."""
    apart, step_s = unit.apart, unit.tables.step_s
    room = np.where(apart, unit.budget, np.maximum(1.0, unit.budget - running * unit.width))
    beside = np.where(apart, 0.0, running * unit.width)
    read_s = np.where(apart, 0.0, running * unit.cached_s + unit.draft_s)
    full_s = step_s(unit.table, beside + room) + read_s
    others = np.where(apart, 0.0, running / unit.steps * unit.fresh)

    new, alone, room = load.fresh[None, :], apart[:, None], room[:, None]
    tokens = np.where(alone, new, beside[:, None] + np.minimum(room, new + others[:, None]))
    in_pieces_s = new / room * full_s[:, None]
    in_one_s = step_s(unit.front, tokens) + read_s[:, None]
    own_s = np.where((new > room) & ~alone, in_pieces_s, in_one_s)
    own_s = own_s + load.pairs[None, :] * unit.tables.pair_s[unit.front][:, None]
    takes_s = np.where(alone, own_s, in_pieces_s + load.pairs * unit.pair_s[:, None])
    mean_s = np.mean(takes_s, axis=1)
    busy = unit.to_prefill * mean_s
    waits = busy ** (np.sqrt(2.0 * (np.minimum(unit.lines, 8.0) + 1.0)) - 1.0)
    wait_s = np.mean(takes_s**2, axis=1) / (2.0 * mean_s) / np.maximum(LEAST, 1.0 - busy)
    left_s = load.ttft_s - own_s - np.where(apart, 0.0, alone_s(running, unit) / 2)[:, None]
    late = np.where(left_s < 0, 1.0, waits[:, None] * np.exp(-left_s / wait_s[:, None]))
    return np.mean(late, axis=1), mean_s, busy


def no_room(
    batch: np.ndarray, running: np.ndarray, each_s: np.ndarray, patience_s: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    """The share of answers that wait longer than ``patience_s`` for room in the batch."""
    filled = np.minimum(1.0 - 1e-9, running / np.maximum(1.0, batch))
    crowded = filled ** (np.sqrt(2.0 * (batch + 1.0)) - 1.0)
    leaves_s = each_s * steps / (np.maximum(1.0, batch) * (1.0 - filled))
    return crowded * np.exp(-np.maximum(0.0, patience_s) / np.maximum(LEAST, leaves_s))


def above(values: np.ndarray) -> np.ndarray:
    """The share of a normal distribution above ``values`` standard deviations, to within 5·10⁻⁴ (Abramowitz
    and Stegun 26.2.18)."""
    x = np.abs(values)
    tail = 0.5 / (1 + x * (0.196854 + x * (0.115194 + x * (0.000344 + x * 0.019527)))) ** 4
    return np.where(values >= 0, tail, 1 - tail)


def too_slow(
    running: np.ndarray, each_s: np.ndarray, sent_s: np.ndarray, unit: Units, load: Asked
) -> np.ndarray:
    """The share of answers whose tokens come too slowly, because prompts are read meanwhile, or because more
    answers than usual happen to run. ``sent_s`` are the seconds that a cache spends on its wire."""
    adds_s = np.where(unit.apart, 0.0, prompt_s(running, writing_s(running, unit), unit))
    extra_s = adds_s * np.sqrt(np.mean(load.fresh**2)) / unit.fresh
    slope_s = alone_s(running + 1.0, unit) - alone_s(running, unit)
    many = np.maximum(1.0, (load.answers[None, :] - 1.0) / unit.gain[:, None])
    chance = (unit.to_decode * each_s * extra_s**2)[:, None] / many
    spread_s = np.sqrt(chance + (slope_s**2 * running)[:, None] + LEAST**2)
    allowed_s = load.tpot_s * unit.gain[:, None] - sent_s[:, None] / many
    return np.mean(above((allowed_s - each_s[:, None]) / spread_s), axis=1)


# -- all deployments -----------------------------------------------------------------------------------------
@in_page(loops.judge)
def judge(
    per_s: float,
    ttft_s: float,
    tpot_s: float,
    most_running: float,
    of_prompt: float,
    of_context: float,
    of_answer: float,
    fresh_of: np.ndarray,
    pairs_of: np.ndarray,
    answers_of: np.ndarray,
    widths: np.ndarray,
    drafts_s: np.ndarray,
    gains: np.ndarray,
    _rows: np.ndarray,
    rows_s: np.ndarray,
    pair_s_of: np.ndarray,
    cached_s_of: np.ndarray,
    capacity_of: np.ndarray,
    sent_s_of: np.ndarray,
    table: np.ndarray,
    front: np.ndarray,
    budget: np.ndarray,
    prefillers: np.ndarray,
    decoders: np.ndarray,
    drafts: np.ndarray,
    units: np.ndarray,
) -> dict[str, np.ndarray]:
    """Judge every deployment; returns the columns of ``forms.Judged``."""
    tables, load = (
        Tables(rows_s, pair_s_of, cached_s_of, capacity_of, sent_s_of),
        Asked(ttft_s, tpot_s, fresh_of, pairs_of, answers_of),
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        apart, per_unit, capacity = prefillers > 0, per_s / units, capacity_of[table]
        reading = np.where(apart, prefillers, decoders)
        fresh, width, gain = float(np.mean(fresh_of)), widths[drafts], gains[drafts]
        steps = np.maximum(LEAST, (of_answer - 1.0) / gain)
        unit = Units(
            tables=tables,
            table=table,
            front=front,
            apart=apart,
            budget=budget,
            lines=reading * units,
            to_decode=per_unit / decoders,
            to_prefill=per_unit / reading,
            fresh=fresh,
            pair_s=pair_s_of[table],
            pairs_s=float(np.mean(pairs_of)) * pair_s_of[table],
            cached_s=of_context * cached_s_of[table],
            width=width,
            draft_s=drafts_s[drafts],
            gain=gain,
            steps=steps,
        )
        batch = np.minimum(most_running, capacity / of_context)
        batch = np.where(apart, batch, np.minimum(batch, budget * steps / (fresh + width * steps)))
        running, keeps_up = settled(batch, unit)
        each_s = token_s(running, unit)
        late, mean_s, busy = first_tokens(running, unit, load)
        wire_s = (of_prompt + 1.0) * ops.maximum(sent_s_of[table], sent_s_of[front])
        on_wire = np.where(apart, unit.to_prefill * wire_s, 0.0)
        sent_s = np.where(apart, wire_s / np.maximum(LEAST, 1.0 - on_wire), 0.0)
        blocked = no_room(batch, running, each_s, ttft_s - mean_s, steps)
        slow = too_slow(running, each_s, sent_s, unit, load)

    steady = keeps_up & (capacity > of_prompt + of_answer) & (busy < 1.0) & (on_wire < 1.0)
    tokens_met = np.where(of_answer > 1.0, 1.0 - slow - np.where(apart, blocked, 0.0), 1.0)
    return {
        "steady": steady,
        "prompts_met": np.where(steady, 1.0 - late - np.where(apart, 0.0, blocked), 0.0),
        "tokens_met": np.where(steady, tokens_met, 0.0),
        "running": running,
        "token_s": ops.maximum(0.0, each_s / gain),
        "batch": batch,
    }
