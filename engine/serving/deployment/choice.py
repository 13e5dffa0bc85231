"""The choice among deployments, for a figure: one model on one kind of GPU in one format. Every tensor degree
of a node is tried, in one pool with every chunk size, and in two pools with every ratio of replicas.

``search`` and ``frontier`` do this over arrays, and also for pipelines, spread experts, drafts and several
formats. Here plain loops ask the same functions of ``closed_forms`` and ``columns`` about one deployment
after the other, so that a page can judge all of them anew whenever a slider moves. Python asks them about
arrays instead, and a test compares the two. Nothing is simulated here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from engine.base.program import full, program
from engine.base.types import Real
from engine.catalog.hardware import Gpu
from engine.mechanism.memory import BYTES_PER_VALUE
from engine.serving import equilibrium, step_costs
from engine.serving.deployment import finder
from engine.serving.deployment.closed_forms import judged
from engine.serving.deployment.columns import CAPACITY as CAPACITY
from engine.serving.deployment.columns import (
    LEAST,
    QUANTILES,
    SMALLEST,
    Asked,
    Halved,
    Judged,
    Plans,
    Tables,
    Tried,
    asked,
    bound_by,
    filled_units,
    idle_units,
    keeps,
    may_exist,
    misses,
    nearest,
    one_less,
    sureness,
    units_to_try,
)
from engine.serving.deployment.columns import TPOT as TPOT
from engine.serving.deployment.finder import LONG, MOST_RUNNING, ReplicaCosts, plans_of
from engine.serving.deployment.forms import Forms
from engine.serving.deployment.frontier import ANY
from engine.serving.deployment.load import Limits, Load
from engine.serving.replica import Replica
from engine.serving.step_costs import Costs
from engine.step import layout

DEGREES = (1, 2, 4, 8)
KINDS = 2 * len(DEGREES)  # a kind for each degree that writes: first those in one pool, then those in two
SPARE = (1.0, 1.25, 1.6, 2.5, 4.0)  # factors on the fewest units that keep up
PER_USER = [float(each) for each in np.geomspace(1.0, 1000.0, 145)]  # tokens per second, for the frontier
ACCEPTED = 256  # a server is told a length in whole multiples of it
LONGEST_Z = NormalDist().inv_cdf(LONG)
FOUND, NO_ROOM, LATE, SLOW, APART = 0, 1, 2, 3, 4  # why a kind has none; APART: each limit, but not both
NONE = -1.0  # no such kind
HALVINGS = 8  # of a limit, to find within which time a deployment would still keep it

_NOTHING = Costs(np.zeros(0), np.zeros(0), 0.0, 0.0, 0.0, 0.0)
PLANS = plans_of([ReplicaCosts(Replica(tp), "", "", _NOTHING, 0.0) for tp in DEGREES], pools=True, drafts=1)
COUNT = len(PLANS.table)
MOST = COUNT * len(SPARE)
TABLE, FRONT, BUDGET, PREFILLERS, DECODERS = (tuple(float(each) for each in column) for column in PLANS[:5])
EACH = tuple(
    p * DEGREES[int(front)] + d * DEGREES[int(table)]
    for table, front, p, d in zip(TABLE, FRONT, PREFILLERS, DECODERS)
)  # GPUs of a unit


class Choice(NamedTuple):
    """What ``choice`` finds: the cheapest deployment of each kind, and a dot for every deployment that keeps
    up."""

    gpus: Real  # GPUs of the cheapest deployment of each kind; 0 where there is none
    prefill: Real  # its replicas that only prefill
    decode: Real  # … and its replicas that write
    front: Real  # GPUs of each replica that prefills
    chunk: Real  # most tokens of its steps
    bound: Real  # what a smaller deployment misses (``bound_of``)
    why: Real  # why there is no deployment of the kind
    first_s: Real  # within how many seconds the promised share of requests has its first token …
    token_s: Real  # … and each of its tokens; both after HALVINGS halvings of their limits
    kind_pause: Real  # the longest pause of an answer, about
    kind_user: Real  # tokens per second of the cheapest, for each user …
    kind_gpu: Real  # … and for each GPU
    best: Real  # the cheapest kind …
    second: Real  # … and the next; NONE where there is none
    user: Real  # of each dot: tokens a second for each user …
    per_gpu: Real  # … and for each GPU
    within: Real  # whether it keeps both limits
    frontier: Real  # for each speed of PER_USER, the most tokens per second and GPU within the limits


@dataclass(frozen=True)
class ServedFormat:
    """How weights are stored, and in which format the products run (``finder.FORMATS``)."""

    key: str
    precision: str
    bytes: float  # of a weight


def served_on(gpu: Gpu, weights: ServedFormat) -> layout.Machine:
    """A GPU that serves weights in this format. Products are in fp8 if the weights are and the GPU has units
    for it (W8A8); otherwise weights are widened for products in bf16."""
    return layout.machine(
        gpu, weights.precision if getattr(gpu, f"{weights.precision}_flops_per_s") else "bf16"
    )


FORMATS = [
    ServedFormat(key, precision, BYTES_PER_VALUE[stored or precision])
    for key, (precision, stored) in finder.FORMATS.items()
]


def costs(model: Any, at: Any, weight_bytes: Real, *lengths: Real) -> tuple[Real, ...]:
    """What a step costs with each of DEGREES: the last columns that ``choice`` takes. ``lengths`` are median
    and spread of prompts, then of answers."""
    context = equilibrium.context(*lengths)["tokens"]
    tp = np.array(DEGREES, dtype=float)[:, None]
    found = step_costs.costs(model, at, tp, lengths[0], "bf16", weight_bytes, context=context)
    tokens = accepted(*lengths)["tokens"]
    starts = finder.spare_to_start(model, at, Replica(tp), "bf16", weight_bytes, tokens)  # type: ignore[arg-type]
    sent_s = found.kv_bytes / (tp * at.wires.nic_bytes_per_s)
    columns = (found.rows_s, found.pair_s, found.cached_s, found.capacity, starts, sent_s)
    return (found.rows, *(np.ravel(column + 0.0 * tp) for column in columns))


# -- in loops ------------------------------------------------------------------------------------------------
@program(tokens=())
def accepted(prompt: float, prompt_spread: float, output: float, output_spread: float) -> dict[str, Any]:
    """The length that a server is told to accept (``finder.accepted``), whatever the model knows."""
    longest = longest_of(prompt, prompt_spread) + longest_of(output, output_spread)
    return {"tokens": ACCEPTED * math.ceil(math.ceil(longest) / ACCEPTED)}


def longest_of(median: float, spread: float) -> float:
    """The length below which all but a thousandth of the lengths are (``finder.longest_of``)."""
    return min(equilibrium.LONGEST * median, median * math.exp(spread * LONGEST_Z))


def plan_of(p: int) -> Plans:
    """A deployment, by its place in PLANS."""
    return Plans(int(TABLE[p]), int(FRONT[p]), BUDGET[p], PREFILLERS[p], DECODERS[p], 0)


def of_units(ask: Asked, tables: Tables, p: int, units: float) -> Judged:
    """What a deployment of so many units does, without drafts."""
    return judged(ask, Tried([1.0], [0.0], [1.0]), tables, plan_of(p), units)


def fewest_of(ask: Asked, tables: Tables, p: int, share: float, below: float, most: float) -> float:
    """The fewest units that serve the load within its limits, if they are more than ``below`` and at most
    ``most``; 0 if no such number does (``Forms.fewest``)."""
    high = most
    if not keeps(of_units(ask, tables, p, high), share):
        return 0.0
    low, stride = min(high - 1.0, below), 1.0
    while high - low > 1:
        units = units_to_try(low, high, stride)
        if keeps(of_units(ask, tables, p, units), share):
            high, stride = units, 0.0
        else:
            low, stride = units, 2 * stride
    return high


def missed(ask: Asked, tables: Tables, plan: Plans, apart: bool, share: float) -> int:
    """What one of the deployments of ``one_less`` misses."""
    if not may_exist(plan, apart):
        return SMALLEST
    return misses(judged(ask, Tried([1.0], [0.0], [1.0]), tables, nearest(plan, apart), 1.0), share)


def halved(able: list[bool], table: int) -> Halved:
    """A replica and the one with half its GPUs, if that can serve the model."""
    half = -1
    if table > 0 and able[table - 1]:
        half = table - 1
    return Halved(1.0, half, 1.0)


def bound_of(ask: Asked, tables: Tables, able: list[bool], p: int, share: float, units: float) -> int:
    """What a deployment with one replica less misses (``Forms.bounds``)."""
    plan, apart = plan_of(p), PREFILLERS[p] > 0
    less = one_less(plan, units, halved(able, plan.table), halved(able, plan.front))
    return bound_by(
        missed(ask, tables, less[0], apart, share),
        missed(ask, tables, less[1], apart, share),
        missed(ask, tables, less[2], apart, share),
        apart,
    )


def felt_of(ask: Asked, tables: Tables, p: int, share: float, units: float, is_first: bool) -> float:
    """Within how many seconds this share of the requests has its first token (``is_first``) or its other
    tokens, in a deployment that keeps the limit of that: the tightest limit that it would still keep."""
    low, high = 0.0, ask.ttft_s if is_first else ask.tpot_s
    for _ in range(HALVINGS):
        tried = (low + high) / 2
        ttft_s, tpot_s = tried if is_first else ask.ttft_s, ask.tpot_s if is_first else tried
        found = of_units(limited(ask, ttft_s, tpot_s), tables, p, units)
        if (found.prompts_met if is_first else found.tokens_met) >= share:
            high = tried
        else:
            low = tried
    return high


def limited(ask: Asked, ttft_s: float, tpot_s: float) -> Asked:
    """The same load with other limits."""
    return Asked(
        ask.per_s,
        ttft_s,
        tpot_s,
        ask.pause_s,
        ask.most_running,
        ask.prompt,
        ask.context,
        ask.answer,
        ask.fresh,
        ask.pairs,
        ask.answers,
        ask.fresh_mean,
        ask.fresh_square,
        ask.pairs_mean,
    )


def cheapest_of(plans: list[int], units: list[float], sure: list[float]) -> list[int]:
    """The cheapest plan of each kind, by its place in the lists; −1 where there is none."""
    at = [-1 for i in range(KINDS)]
    for i in range(len(plans)):
        kind = kind_of(plans[i])
        if units[i] > 0 and (at[kind] < 0 or is_better(plans, units, sure, i, at[kind])):
            at[kind] = i
    return at


def arranged(
    plans: list[int],
    units: list[float],
    sure: list[float],
    at: list[int],
    bound: list[int],
    first_s: list[float],
    token_s: list[float],
    kind_pause: list[float],
    kind_user: list[float],
    idle_prompts: list[float],
    idle_tokens: list[float],
    share: float,
    written: float,
    user: list[float],
    per_gpu: list[float],
    within: list[float],
) -> dict[str, Any]:
    """The outputs of ``choice``, made from what is known about each plan that has room, about the cheapest of
    each kind (``at``, what it is bound by, and how soon its tokens come), and about each dot."""
    why = [NO_ROOM for i in range(KINDS)]
    prompts, tokens = full(KINDS, 0.0), full(KINDS, 0.0)
    for i in range(len(plans)):
        p = plans[i]
        kind = kind_of(p)
        prompts[kind], tokens[kind] = max(prompts[kind], idle_prompts[i]), max(tokens[kind], idle_tokens[i])
        if prompts[kind] < share:
            why[kind] = LATE
        else:
            why[kind] = SLOW if tokens[kind] < share else APART
    best, second = -1, -1
    for kind in range(KINDS):
        if at[kind] >= 0:
            if best < 0 or is_better(plans, units, sure, at[kind], at[best]):
                best, second = kind, best
            elif second < 0 or is_better(plans, units, sure, at[kind], at[second]):
                second = kind
    gpus, prefill, decode, front, chunk = [], [], [], [], []
    bounds, whys, pauses, users, each = [], [], [], [], []
    for kind in range(KINDS):
        i = at[kind]
        p = plans[i] if i >= 0 else 0
        gpus.append(units[i] * EACH[p] if i >= 0 else 0.0)
        prefill.append(units[i] * PREFILLERS[p] if i >= 0 else 0.0)
        decode.append(units[i] * DECODERS[p] if i >= 0 else 0.0)
        front.append(DEGREES[int(FRONT[p])] if i >= 0 else 1.0)
        chunk.append(BUDGET[p] if i >= 0 else 1.0)
        bounds.append(bound[kind] if i >= 0 else SMALLEST)
        whys.append(FOUND if i >= 0 else why[kind])
        pauses.append(kind_pause[i] if i >= 0 else 1.0)
        users.append(kind_user[i] if i >= 0 else 1.0)
        each.append(written / (units[i] * EACH[p]) if i >= 0 else 1.0)
    return {
        "gpus": gpus,
        "prefill": prefill,
        "decode": decode,
        "front": front,
        "chunk": chunk,
        "bound": bounds,
        "why": whys,
        "first_s": first_s,
        "token_s": token_s,
        "kind_pause": pauses,
        "kind_user": users,
        "kind_gpu": each,
        "best": best,
        "second": second,
        "user": user,
        "per_gpu": per_gpu,
        "within": within,
        "frontier": frontier_of(user, per_gpu, within),
    }


def kind_of(p: int) -> int:
    """The kind of a plan."""
    return int(TABLE[p]) + (len(DEGREES) if PREFILLERS[p] > 0 else 0)


def is_better(plans: list[int], units: list[float], sure: list[float], i: int, j: int) -> bool:
    """Whether plan i comes before plan j: because it is cheaper; among equally cheap ones because it has one
    pool, then because it has one degree, then because it is surer (``finder.Search.entry``)."""
    p, q = plans[i], plans[j]
    if units[i] * EACH[p] != units[j] * EACH[q]:
        return units[i] * EACH[p] < units[j] * EACH[q]
    if kind_of(p) // len(DEGREES) != kind_of(q) // len(DEGREES):
        return PREFILLERS[p] == 0
    if (TABLE[p] == FRONT[p]) != (TABLE[q] == FRONT[q]):
        return TABLE[p] == FRONT[p]
    return sure[i] > sure[j] + 1e-6


def frontier_of(user: list[float], per_gpu: list[float], within: list[float]) -> list[float]:
    """For each speed of PER_USER, the highest throughput per GPU of the dots within the limits that are at
    least as fast."""
    most = full(len(PER_USER), 0.0)
    for i in range(len(user)):
        if within[i] > 0:
            reached = bisect_left(PER_USER, user[i])  # how many speeds are below the dot's
            if reached > 0:
                most[reached - 1] = max(most[reached - 1], per_gpu[i])
    for k in range(len(PER_USER) - 1):
        i = len(PER_USER) - 2 - k
        most[i] = max(most[i], most[i + 1])
    return most


# -- the same over arrays ------------------------------------------------------------------------------------
def _choice(
    per_s: float,
    prompt: float,
    prompt_spread: float,
    output: float,
    output_spread: float,
    prefix_share: float,
    ttft_s: float,
    tpot_s: float,
    pause_s: float,
    share: float,
    rows: list[float],
    rows_s: list[float],
    pair_s: list[float],
    cached_s: list[float],
    capacity: list[float],
    starts: list[float],
    sent_s: list[float],
) -> dict[str, Any]:
    load = Load(per_s, int(prompt), int(output), prompt_spread, output_spread, prefix_share)
    tables = Tables(*map(np.array, (rows, rows_s, pair_s, cached_s, capacity, sent_s)))
    forms = Forms(load, Limits(ttft_s, tpot_s, share, pause_s), tables, (None,), MOST_RUNNING)
    needs = ACCEPTED * math.ceil(finder.longest_of(load) / ACCEPTED)
    able = (np.array(capacity) > needs) & (np.array(starts) >= 0)
    halves = np.array([i - 1 if i > 0 and able[i - 1] else -1 for i in range(len(able))])
    [places] = np.nonzero(able[PLANS.table] & able[PLANS.front])
    if not len(places):
        none = [-1] * KINDS
        never = [1.0] * KINDS
        return arranged([], [], [], none, none, never, never, [], [], [], [], share, 1.0, [], [], [])  # type: ignore[misc]
    plans = Plans(*(column[places] for column in PLANS))
    each = np.array(EACH)[places]
    twice = Plans(*(np.concatenate([column, column]) for column in plans))
    counts = forms.fewest(twice, np.repeat([share, ANY], len(places)))
    fewest, least = counts[: len(places)], counts[len(places) :]
    [ups] = np.nonzero(least > 0)
    kind = np.repeat(ups, len(SPARE))
    units = np.ceil(least[ups][:, None] * np.array(SPARE)).ravel()
    fresh = np.array([i % len(SPARE) == 0 or units[i] > units[i - 1] for i in range(len(units))], dtype=bool)
    kind, units = kind[fresh], units[fresh]
    at_fewest, idle, dots = forms.judge_all(
        [
            (plans, np.maximum(1.0, fewest)),
            (plans, np.full(len(places), load.per_s / LEAST)),
            (Plans(*(column[kind] for column in plans)), units),
        ]
    )
    known = (places.tolist(), fewest.tolist(), sureness(at_fewest, tpot_s).tolist())
    best = cheapest_of(*known)
    these = np.array(best)
    chosen = Plans(*(column[these] for column in plans))  # unused where a kind has no plan
    of_each = np.maximum(1.0, fewest[these])
    return arranged(
        *known,
        best,
        forms.bounds(chosen, of_each, halves, np.ones(len(DEGREES))).tolist(),
        np.where(these >= 0, felt(forms, chosen, of_each, True), 1.0).tolist(),
        np.where(these >= 0, felt(forms, chosen, of_each, False), 1.0).tolist(),
        at_fewest.pause_s.tolist(),
        (1.0 / at_fewest.token_s).tolist(),
        idle.prompts_met.tolist(),
        idle.tokens_met.tolist(),
        share,
        load.per_s * forms.ask.answer,
        (1.0 / dots.token_s).tolist(),
        (load.per_s * forms.ask.answer / (units * each[kind])).tolist(),
        np.where(dots.within(share), 1.0, 0.0).tolist(),
    )


def felt(forms: Forms, plans: Plans, units: np.ndarray, is_first: bool) -> np.ndarray:
    """``felt_of`` for several deployments at once."""
    limits = forms.limits
    high = np.full(len(units), limits.ttft_s if is_first else limits.tpot_s)
    low = np.zeros(len(units))
    for _ in range(HALVINGS):
        tried = (low + high) / 2
        found = forms.judge(plans, units, **{"ttft_s" if is_first else "tpot_s": tried})
        met = (found.prompts_met if is_first else found.tokens_met) >= limits.share
        low, high = np.where(met, low, tried), np.where(met, tried, high)
    return high


@program(
    _choice,
    gpus=KINDS,
    prefill=KINDS,
    decode=KINDS,
    front=KINDS,
    chunk=KINDS,
    bound=KINDS,
    why=KINDS,
    first_s=KINDS,
    token_s=KINDS,
    kind_pause=KINDS,
    kind_user=KINDS,
    kind_gpu=KINDS,
    best=(),
    second=(),
    user=MOST,
    per_gpu=MOST,
    within=MOST,
    frontier=len(PER_USER),
)
def choice(
    per_s: float,
    prompt: float,
    prompt_spread: float,
    output: float,
    output_spread: float,
    prefix_share: float,
    ttft_s: float,
    tpot_s: float,
    pause_s: float,
    share: float,
    rows: list[float],
    rows_s: list[float],
    pair_s: list[float],
    cached_s: list[float],
    capacity: list[float],
    starts: list[float],
    sent_s: list[float],
) -> dict[str, Any]:
    """The cheapest deployment of each kind that meets all limits for ``share`` of the requests; and as dots
    all deployments that keep up."""
    ask = asked(
        per_s,
        prompt,
        prompt_spread,
        output,
        output_spread,
        prefix_share,
        ttft_s,
        tpot_s,
        pause_s,
        MOST_RUNNING,
        QUANTILES,
    )
    longest = longest_of(prompt, prompt_spread) + longest_of(output, output_spread)
    needs = ACCEPTED * math.ceil(math.ceil(longest) / ACCEPTED)
    tables = Tables(rows, rows_s, pair_s, cached_s, capacity, sent_s)
    able = [capacity[i] > needs and starts[i] >= 0 for i in range(len(DEGREES))]
    plans, fewest, sure, kind_user, idle_prompts, idle_tokens = [], [], [], [], [], []
    kind_pause = []
    user, per_gpu, within = [], [], []
    for p in range(COUNT):
        if not (able[int(TABLE[p])] and able[int(FRONT[p])]):
            continue
        idle, crowded = of_units(ask, tables, p, per_s / LEAST), of_units(ask, tables, p, LEAST)
        below = float(math.floor(filled_units(ask, DECODERS[p], 1.0, crowded)))
        most = idle_units(ask, idle)
        least = fewest_of(ask, tables, p, ANY, below, most)
        count = fewest_of(ask, tables, p, share, max(below, least - 1.0), most) if least > 0 else 0.0
        found = of_units(ask, tables, p, max(1.0, count))
        plans.append(p)
        fewest.append(count)
        sure.append(sureness(found, tpot_s))
        kind_pause.append(found.pause_s)
        kind_user.append(1.0 / found.token_s)
        idle_prompts.append(idle.prompts_met)
        idle_tokens.append(idle.tokens_met)
        before = 0.0
        for spare in SPARE:
            units = float(math.ceil(least * spare))
            if units > before:
                dot = of_units(ask, tables, p, units)
                user.append(1.0 / dot.token_s)
                per_gpu.append(per_s * ask.answer / (units * EACH[p]))
                within.append(1.0 if keeps(dot, share) else 0.0)
                before = units
    firsts, bound, first_s, token_s = cheapest_of(plans, fewest, sure), [], [], []
    for i in firsts:
        bound.append(bound_of(ask, tables, able, plans[i], share, fewest[i]) if i >= 0 else SMALLEST)
        first_s.append(felt_of(ask, tables, plans[i], share, fewest[i], True) if i >= 0 else 1.0)
        token_s.append(felt_of(ask, tables, plans[i], share, fewest[i], False) if i >= 0 else 1.0)
    return arranged(
        plans,
        fewest,
        sure,
        firsts,
        bound,
        first_s,
        token_s,
        kind_pause,
        kind_user,
        idle_prompts,
        idle_tokens,
        share,
        per_s * ask.answer,
        user,
        per_gpu,
        within,
    )


def found(*asked: Any) -> Choice:
    """``choice`` by names."""
    return Choice(**choice(*asked))
