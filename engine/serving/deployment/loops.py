"""The closed forms of deployments as plain loops, one deployment after the other, for the page. ``arrays.py``
computes the same for all deployments at once, and explains it. A test compares the two.

``load`` is the load with its limits, ``costs`` has the tables of all replicas, and ``unit`` is a unit of the
deployment that is judged, with its own row of those tables.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

LEAST = 1e-12
GUESSES = 10  # guesses of the answers at once: each has more right digits, the eighth usually all
NEAR = 1e-15  # share of a guess: one that moves by less is taken as found
GRID = 2.0**-26  # share of a full batch to which answers are rounded up, so that no last digit decides a tie


# -- the time of a step --------------------------------------------------------------------------------------
def step_s(at: float, table: int, costs: dict[str, Any]) -> float:
    """Seconds of a step over ``at`` tokens, without attention; ``rows_s`` has all tables, one after the
    other."""
    rows, rows_s = costs["rows"], costs["rows_s"]
    count = len(rows)
    begin = table * count
    if at >= rows[count - 1]:
        return rows_s[begin + count - 1] * at / rows[count - 1]
    i = max(1, bisect_left(rows, at))
    share = max(0.0, (at - rows[i - 1]) / (rows[i] - rows[i - 1]))
    low = rows_s[begin + i - 1]
    return low + (rows_s[begin + i] - low) * share


def come_together(come: float) -> float:
    """1 − e^−come, with full precision where the result is small."""
    if come < 0.01:
        return come * (1 - come / 2 * (1 - come / 3 * (1 - come / 4 * (1 - come / 5))))
    return 1 - math.exp(-come)


def writing_s(running: float, unit: dict[str, Any], costs: dict[str, Any]) -> float:
    """Seconds of a step that reads no prompt, without attention and drafts."""
    return step_s(running * unit["width"], unit["table"], costs)


def prompt_s(running: float, without_s: float, unit: dict[str, Any], costs: dict[str, Any]) -> float:
    """Seconds that a prompt adds to the steps that it is part of; ``without_s`` is such a step without the
    prompt."""
    fresh, rows = unit["fresh"], running * unit["width"]
    come = max(running / unit["steps"], 1e-9)
    chunk = min(max(1.0, unit["budget"] - rows), fresh * come / come_together(come))
    return fresh / chunk * (step_s(rows + chunk, unit["table"], costs) - without_s) + unit["pairs_s"]


def alone_s(running: float, unit: dict[str, Any], costs: dict[str, Any]) -> float:
    """Seconds from one token of an answer to the next while no prompt is read."""
    return writing_s(running, unit, costs) + running * unit["cached_s"] + unit["draft_s"]


def token_s(running: float, unit: dict[str, Any], costs: dict[str, Any]) -> float:
    """Seconds from one token of an answer to the next, including the prompts that are part of its steps."""
    without_s = writing_s(running, unit, costs)
    found = without_s + running * unit["cached_s"] + unit["draft_s"]
    if unit["apart"]:
        return found
    return found + running / unit["steps"] * prompt_s(running, without_s, unit, costs)


# -- one deployment ------------------------------------------------------------------------------------------
def settled(batch: float, unit: dict[str, Any], costs: dict[str, Any]) -> tuple[float, bool]:
    """(answers that a replica writes at once, whether it keeps up with its load). In the balance as many
    answers arrive as are finished; it is found by the Illinois form of false position. A replica that does
    not keep up writes a full batch."""
    come = unit["to_decode"] * unit["steps"]  # how many answers run for each second that a token takes
    less = token_s(batch, unit, costs) * come - batch
    if less >= 0:
        return batch, False
    low, more, high, moved, running = 0.0, token_s(0.0, unit, costs) * come, batch, 0.0, batch
    for _ in range(GUESSES):
        running = (low * less - high * more) / (less - more)
        behind = token_s(running, unit, costs) * come - running
        if abs(behind) <= NEAR * running:
            break
        if behind > 0:
            low, more = running, behind
            less = less / 2 if moved > 0 else less
            moved = 1.0
        else:
            high, less = running, behind
            more = more / 2 if moved < 0 else more
            moved = -1.0
    return batch * GRID * math.ceil(running / (batch * GRID)), True


def first_tokens(
    running: float, unit: dict[str, Any], load: dict[str, Any], costs: dict[str, Any]
) -> tuple[float, float, float]:
    """(share of prompts whose first token comes too late, because of the prompts before them and of their own
    steps; seconds that a prompt keeps a replica busy, on average; share of the time in which prefill is
    busy)."""
    apart, budget, steps, table = unit["apart"], unit["budget"], unit["steps"], unit["table"]
    room = budget if apart else max(1.0, budget - running * unit["width"])
    beside = 0.0 if apart else running * unit["width"]
    read_s = 0.0 if apart else running * unit["cached_s"] + unit["draft_s"]
    full_s = step_s(beside + room, table, costs) + read_s
    others = 0.0 if apart else running / steps * unit["fresh"]
    quantiles, own_s, mean_s, mean_squared = len(load["fresh"]), [], 0.0, 0.0
    for q in range(quantiles):
        new = load["fresh"][q]
        if new > room and not apart:
            own = new / room * full_s
        else:
            own = step_s(new if apart else beside + min(room, new + others), unit["front"], costs) + read_s
        own = own + load["pairs"][q] * costs["pair_s"][unit["front"]]
        own_s.append(own)
        takes = own if apart else new / room * full_s + load["pairs"][q] * costs["pair_s"][table]
        mean_s = mean_s + takes / quantiles
        mean_squared = mean_squared + takes * takes / quantiles
    busy = unit["to_prefill"] * mean_s
    waits = busy ** (math.sqrt(2.0 * (min(unit["lines"], 8.0) + 1.0)) - 1.0)
    wait_s = mean_squared / (2.0 * mean_s) / max(LEAST, 1.0 - busy)
    before_s, late = 0.0 if apart else alone_s(running, unit, costs) / 2, 0.0
    for q in range(quantiles):
        left_s = load["ttft_s"] - own_s[q] - before_s
        late = late + (1.0 if left_s < 0 else waits * math.exp(-left_s / wait_s)) / quantiles
    return late, mean_s, busy


def no_room(batch: float, running: float, each_s: float, patience_s: float, steps: float) -> float:
    """The share of answers that wait longer than ``patience_s`` for room in the batch."""
    filled = min(1.0 - 1e-9, running / max(1.0, batch))
    crowded = filled ** (math.sqrt(2.0 * (batch + 1.0)) - 1.0)
    leaves_s = each_s * steps / (max(1.0, batch) * (1.0 - filled))
    return crowded * math.exp(-max(0.0, patience_s) / max(LEAST, leaves_s))


def above(value: float) -> float:
    """The share of a normal distribution above ``value`` standard deviations."""
    x = abs(value)
    root = 1 + x * (0.196854 + x * (0.115194 + x * (0.000344 + x * 0.019527)))
    tail = 0.5 / (root * root * root * root)
    return tail if value >= 0 else 1 - tail


def too_slow(
    running: float,
    each_s: float,
    sent_s: float,
    unit: dict[str, Any],
    load: dict[str, Any],
    costs: dict[str, Any],
) -> float:
    """The share of answers whose tokens come too slowly, because prompts are read meanwhile, or because more
    answers than usual happen to run. ``sent_s`` are the seconds that a cache spends on its wire."""
    gain, apart, quantiles = unit["gain"], unit["apart"], len(load["answers"])
    adds_s = 0.0 if apart else prompt_s(running, writing_s(running, unit, costs), unit, costs)
    extra_s = adds_s * math.sqrt(load["squared"]) / unit["fresh"]
    slope_s = alone_s(running + 1.0, unit, costs) - alone_s(running, unit, costs)
    slow = 0.0
    for q in range(quantiles):
        many = max(1.0, (load["answers"][q] - 1.0) / gain)
        chance = unit["to_decode"] * each_s * extra_s * extra_s / many
        spread_s = math.sqrt(chance + slope_s * slope_s * running + LEAST * LEAST)
        slow = slow + above((load["tpot_s"] * gain - sent_s / many - each_s) / spread_s) / quantiles
    return slow


# -- all deployments -----------------------------------------------------------------------------------------
def mean(values: list[float]) -> float:
    """The mean of the values, which are added in their order."""
    found = 0.0
    for value in values:
        found = found + value / len(values)
    return found


def mean_square(values: list[float]) -> float:
    """The mean of the squares of the values, which are added in their order."""
    found = 0.0
    for value in values:
        found = found + value * value / len(values)
    return found


def judge(
    per_s: float,
    ttft_s: float,
    tpot_s: float,
    most_running: float,
    of_prompt: float,
    of_context: float,
    of_answer: float,
    fresh_of: list[float],
    pairs_of: list[float],
    answers_of: list[float],
    widths: list[float],
    drafts_s: list[float],
    gains: list[float],
    rows: list[float],
    rows_s: list[float],
    pair_s_of: list[float],
    cached_s_of: list[float],
    capacity_of: list[float],
    sent_s_of: list[float],
    tables: list[float],
    fronts: list[float],
    budgets: list[float],
    prefillers_of: list[float],
    decoders_of: list[float],
    drafts_of: list[float],
    units_of: list[float],
) -> dict[str, list[float]]:
    """Judge every deployment; returns the columns of ``forms.Judged``."""
    costs = {"rows": rows, "rows_s": rows_s, "pair_s": pair_s_of}
    load = {
        "ttft_s": ttft_s,
        "tpot_s": tpot_s,
        "fresh": fresh_of,
        "pairs": pairs_of,
        "answers": answers_of,
        "squared": mean_square(fresh_of),
    }
    fresh, pairs = mean(fresh_of), mean(pairs_of)
    found_steady, found_prompts, found_tokens = [], [], []
    found_running, found_token_s, found_batch = [], [], []
    for p in range(len(units_of)):
        table, front, draft = int(tables[p]), int(fronts[p]), int(drafts_of[p])
        apart, capacity = prefillers_of[p] > 0, capacity_of[table]
        per_unit = per_s / units_of[p]
        reading = prefillers_of[p] if apart else decoders_of[p]
        steps = max(LEAST, (of_answer - 1.0) / gains[draft])
        unit = {
            "table": table,
            "front": front,
            "apart": apart,
            "budget": budgets[p],
            "lines": reading * units_of[p],
            "to_decode": per_unit / decoders_of[p],
            "to_prefill": per_unit / reading,
            "fresh": fresh,
            "pairs_s": pairs * pair_s_of[table],
            "cached_s": of_context * cached_s_of[table],
            "width": widths[draft],
            "draft_s": drafts_s[draft],
            "gain": gains[draft],
            "steps": steps,
        }
        batch = min(most_running, capacity / of_context)
        if not apart:
            batch = min(batch, budgets[p] * steps / (fresh + widths[draft] * steps))
        running, keeps_up = settled(batch, unit, costs)
        each_s = token_s(running, unit, costs)
        late, mean_s, busy = first_tokens(running, unit, load, costs)
        wire_s = (of_prompt + 1.0) * max(sent_s_of[table], sent_s_of[front])
        on_wire = per_unit / reading * wire_s if apart else 0.0
        sent_s = wire_s / max(LEAST, 1.0 - on_wire) if apart else 0.0
        blocked = no_room(batch, running, each_s, ttft_s - mean_s, steps)
        slow = too_slow(running, each_s, sent_s, unit, load, costs)

        steady = keeps_up and capacity > of_prompt + of_answer and busy < 1.0 and on_wire < 1.0
        met = 1.0 - slow - (blocked if apart else 0.0) if of_answer > 1.0 else 1.0
        found_steady.append(1.0 if steady else 0.0)
        found_prompts.append(1.0 - late - (0.0 if apart else blocked) if steady else 0.0)
        found_tokens.append(met if steady else 0.0)
        found_running.append(running)
        found_token_s.append(max(0.0, each_s / gains[draft]))
        found_batch.append(batch)
    return {
        "steady": found_steady,
        "prompts_met": found_prompts,
        "tokens_met": found_tokens,
        "running": found_running,
        "token_s": found_token_s,
        "batch": found_batch,
    }
