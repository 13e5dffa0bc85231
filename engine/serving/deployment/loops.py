"""The closed forms of deployments as plain loops, one deployment after the other, for the page: what
``forms._judge`` computes with arrays, in which the reasons are told. A test holds one against the
other."""

from __future__ import annotations

import math
from bisect import bisect_left

LEAST = 1e-12
GUESSES = 10  # of the answers that a replica writes at once: each is nearer by some digits, the eighth by all
NEAR = 1e-15  # of them: a guess so near is found
GRID = 2.0**-26  # of a full batch: rounded up to it, so that a last digit does not decide between equals


def step_s(at: float, rows: list[float], rows_s: list[float], table: int) -> float:
    """Seconds of a step over so many tokens; ``rows_s`` has all tables, one after the other."""
    count = len(rows)
    begin = table * count
    if at >= rows[count - 1]:
        return rows_s[begin + count - 1] * at / rows[count - 1]
    i = max(1, bisect_left(rows, at))
    share = max(0.0, (at - rows[i - 1]) / (rows[i] - rows[i - 1]))
    low = rows_s[begin + i - 1]
    return low + (rows_s[begin + i] - low) * share


def come_together(come: float) -> float:
    """1 − e^−come, also where that is small."""
    if come < 0.01:
        return come * (1 - come / 2 * (1 - come / 3 * (1 - come / 4 * (1 - come / 5))))
    return 1 - math.exp(-come)


def prompt_s(
    running: float,
    writing_s: float,
    steps: float,
    budget: float,
    width: float,
    fresh: float,
    pairs_s: float,
    rows: list[float],
    rows_s: list[float],
    table: int,
) -> float:
    """What a prompt adds to the steps that it is part of; ``writing_s``: such a step without it."""
    come = max(running / steps, 1e-9)
    chunk = min(max(1.0, budget - running * width), fresh * come / come_together(come))
    with_chunk = step_s(running * width + chunk, rows, rows_s, table)
    return fresh / chunk * (with_chunk - writing_s) + pairs_s


def token_s(
    running: float,
    apart: bool,
    steps: float,
    budget: float,
    width: float,
    fresh: float,
    pairs_s: float,
    cached_s: float,
    draft_s: float,
    rows: list[float],
    rows_s: list[float],
    table: int,
) -> float:
    """From one token of an answer to the next, with the prompts that are part of its steps."""
    writing_s = step_s(running * width, rows, rows_s, table)
    alone_s = writing_s + running * cached_s + draft_s
    if apart:
        return alone_s
    adds_s = prompt_s(running, writing_s, steps, budget, width, fresh, pairs_s, rows, rows_s, table)
    return alone_s + running / steps * adds_s


def above(value: float) -> float:
    """The share of a normal distribution above so many standard deviations."""
    x = abs(value)
    root = 1 + x * (0.196854 + x * (0.115194 + x * (0.000344 + x * 0.019527)))
    tail = 0.5 / (root * root * root * root)
    return tail if value >= 0 else 1 - tail


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
    """Every deployment: the columns of ``forms.Judged``."""
    found_steady = []
    found_prompts = []
    found_tokens = []
    found_running = []
    found_token_s = []
    found_batch = []
    quantiles = len(fresh_of)
    fresh, pairs, squared = 0.0, 0.0, 0.0
    for q in range(quantiles):
        fresh = fresh + fresh_of[q] / quantiles
        pairs = pairs + pairs_of[q] / quantiles
        squared = squared + fresh_of[q] * fresh_of[q] / quantiles
    for p in range(len(units_of)):
        table, front, draft = int(tables[p]), int(fronts[p]), int(drafts_of[p])
        apart = prefillers_of[p] > 0
        units, budget = units_of[p], budgets[p]
        to_decode = per_s / units / decoders_of[p]
        to_prefill = per_s / units / (prefillers_of[p] if apart else decoders_of[p])
        width, draft_s, gain = widths[draft], drafts_s[draft], gains[draft]
        pair_s, capacity = pair_s_of[table], capacity_of[table]
        steps = max(LEAST, (of_answer - 1.0) / gain)
        cached_s = of_context * cached_s_of[table]
        pairs_s = pairs * pair_s

        batch = min(most_running, capacity / of_context)
        if not apart:
            batch = min(batch, budget * steps / (fresh + width * steps))
        come = to_decode * steps  # answers that run for each second that a token takes
        running = batch
        each_s = token_s(
            running, apart, steps, budget, width, fresh, pairs_s, cached_s, draft_s, rows, rows_s, table
        )
        behind = each_s * come - running
        steady = behind < 0 and capacity > of_prompt + of_answer
        if behind < 0:
            low, more, high, less, moved = (
                0.0,
                token_s(
                    0.0, apart, steps, budget, width, fresh, pairs_s, cached_s, draft_s, rows, rows_s, table
                )
                * come,
                batch,
                behind,
                0.0,
            )
            for _ in range(GUESSES):
                running = (low * less - high * more) / (less - more)
                each_s = token_s(
                    running,
                    apart,
                    steps,
                    budget,
                    width,
                    fresh,
                    pairs_s,
                    cached_s,
                    draft_s,
                    rows,
                    rows_s,
                    table,
                )
                behind = each_s * come - running
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
            running = batch * GRID * math.ceil(running / (batch * GRID))
            each_s = token_s(
                running, apart, steps, budget, width, fresh, pairs_s, cached_s, draft_s, rows, rows_s, table
            )
        writing_s = step_s(running * width, rows, rows_s, table)
        alone_s = writing_s + running * cached_s + draft_s

        room = budget if apart else max(1.0, budget - running * width)
        beside = 0.0 if apart else running * width
        read_s = 0.0 if apart else running * cached_s + draft_s
        full_s = step_s(beside + room, rows, rows_s, table) + read_s
        others = 0.0 if apart else running / steps * fresh
        own_s = []
        mean_s, mean_squared = 0.0, 0.0
        for q in range(quantiles):
            new = fresh_of[q]
            if new > room and not apart:
                own = new / room * full_s
            else:
                own = step_s(new if apart else beside + min(room, new + others), rows, rows_s, front) + read_s
            own = own + pairs_of[q] * pair_s_of[front]
            own_s.append(own)
            takes = own if apart else new / room * full_s + pairs_of[q] * pair_s
            mean_s = mean_s + takes / quantiles
            mean_squared = mean_squared + takes * takes / quantiles
        busy = to_prefill * mean_s
        wire_s = (of_prompt + 1.0) * max(sent_s_of[table], sent_s_of[front])
        on_wire = to_prefill * wire_s if apart else 0.0
        steady = steady and busy < 1.0 and on_wire < 1.0
        lines = (prefillers_of[p] if apart else decoders_of[p]) * units
        waits = busy ** (math.sqrt(2.0 * (min(lines, 8.0) + 1.0)) - 1.0)
        wait_s = mean_squared / (2.0 * mean_s) / max(LEAST, 1.0 - busy)
        late = 0.0
        for q in range(quantiles):
            left_s = ttft_s - own_s[q] - (0.0 if apart else alone_s / 2)
            late = late + (1.0 if left_s < 0 else waits * math.exp(-left_s / wait_s)) / quantiles

        filled = min(1.0 - 1e-9, running / max(1.0, batch))
        crowded = filled ** (math.sqrt(2.0 * (batch + 1.0)) - 1.0)
        leaves_s = each_s * steps / (max(1.0, batch) * (1.0 - filled))
        blocked = crowded * math.exp(-max(0.0, ttft_s - mean_s) / max(LEAST, leaves_s))

        extra_s = 0.0
        if not apart:
            adds_s = prompt_s(running, writing_s, steps, budget, width, fresh, pairs_s, rows, rows_s, table)
            extra_s = adds_s * math.sqrt(squared) / fresh
        one_more_s = (
            step_s((running + 1.0) * width, rows, rows_s, table) + (running + 1.0) * cached_s + draft_s
        )
        slope_s = one_more_s - alone_s
        slow = 0.0
        for q in range(quantiles):
            many = max(1.0, (answers_of[q] - 1.0) / gain)
            chance = to_decode * each_s * extra_s * extra_s / many
            spread_s = math.sqrt(chance + slope_s * slope_s * running + LEAST * LEAST)
            sent_s = wire_s / max(LEAST, 1.0 - on_wire) / many if apart else 0.0
            slow = slow + above((tpot_s * gain - sent_s - each_s) / spread_s) / quantiles
        met = 1.0 - slow - (blocked if apart else 0.0) if of_answer > 1.0 else 1.0
        found_steady.append(1.0 if steady else 0.0)
        found_prompts.append(1.0 - late - (0.0 if apart else blocked) if steady else 0.0)
        found_tokens.append(met if steady else 0.0)
        found_running.append(running)
        found_token_s.append(max(0.0, each_s / gain))
        found_batch.append(batch)
    return {
        "steady": found_steady,
        "prompts_met": found_prompts,
        "tokens_met": found_tokens,
        "running": found_running,
        "token_s": found_token_s,
        "batch": found_batch,
    }
