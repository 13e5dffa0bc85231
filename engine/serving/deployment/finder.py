"""The search over deployments: the cheapest that serves a load within its limits, and how much more the
others cost.

Every tensor-parallel degree that a node holds, and every pipeline, is tried in every number format and with
and without drafts: in one pool with every chunk size, and in two pools with every small ratio of replicas,
where each pool may have its own degree. Experts that are spread over nodes, with data-parallel attention, are
tried in two pools. The closed forms say how many replicas each of these needs. Then the cheapest are
simulated, in order, until one holds its limits; one that does not is tried again with more replicas.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from engine import catalog
from engine.base import check, progress
from engine.base.types import Real
from engine.calibration import bands
from engine.catalog.models import Model
from engine.mechanism import memory
from engine.mechanism.shape import shape
from engine.serving import decoding, equilibrium, inference, stages, step_costs, wide
from engine.serving import replica as replicas
from engine.serving.deployment import columns, rehearsal
from engine.serving.deployment.columns import BOUNDS, Judged, Plans, Tables
from engine.serving.deployment.forms import Forms
from engine.serving.deployment.found import Deployment, Deployments, Measured, unfelt
from engine.serving.deployment.load import ANY_S, Limits, Load
from engine.serving.deployment.rehearsal import Fleet
from engine.serving.drafts import Drafts
from engine.serving.replica import Replica
from engine.serving.step_costs import Costs
from engine.step import layout as layouts
from engine.step.layout import Machine

# how weights are stored, and in which format the products run; the format that changes the model least comes
# first
FORMATS = {"bf16": ("bf16", None), "fp8": ("fp8", None), "int4": ("bf16", "int4")}
CACHES = ("bf16", "fp8")
CHUNKS = (256, 512, 1024, 2048, 4096, 8192)
PROMPTS_TOGETHER = int(decoding.TOGETHER)  # tokens of prompts that a replica for prefill reads at once
POOL = 8  # the most replicas in the unit of two pools
MIXED_POOL = 5  # … if the degrees of the two pools differ
BATCHES = tuple(2**k for k in range(3, 12))  # largest batches that a server is told
MOST_RUNNING = float(BATCHES[-1])
MOST_SIMULATED = 60
NEAR = 0.05  # share of requests: a deployment that misses so few in closed form may hold when simulated
LONG = 0.999  # share of the requests that a server's longest request has to cover
LEAVES_OUT = (
    "spread experts in one pool",
    "caches divided by position",
    "waiting for the slowest batch of a pipeline or of GPUs that share experts",
    "windows shorter than the context",
    "what a shared prefix saves in the cache's room",
)


@dataclass(frozen=True)
class ReplicaCosts:
    """One kind of replica. Its costs are those of one of its batches (``Replica.batches``), which the search
    treats as an instance. A replica whose GPUs share experts either reads prompts or writes answers; any
    other may do both."""

    replica: Replica
    weights: str
    kv_precision: str
    costs: Costs
    wire_bytes_per_s: float
    only: str = ""  # READS or WRITES

    @property
    def gpus(self) -> int:
        """GPUs for each of its batches."""
        return self.replica.tp


READS, WRITES = "prefill", "decode"


def deploy(
    model: Model,
    at: Machine,
    load: Load,
    limits: Limits,
    gpus: int | None = None,
    formats: Sequence[str] | None = None,
    caches: Sequence[str] = ("bf16",),
    pools: bool = True,
    drafts: Sequence[Drafts] = (),
    dollars_per_gpu_hour: float | None = None,
    top: int = 5,
) -> Deployments:
    """The cheapest deployments of a model for a load within its limits; see ``engine.deploy``. A question
    that was asked before is answered without a new search."""
    check.whole(top=top)
    if gpus is not None:
        check.whole(gpus=gpus)
    own = None if formats is None else tuple(formats)
    return _searched(
        model, at, load, limits, gpus, own, tuple(caches), pools, tuple(drafts), dollars_per_gpu_hour, top
    )


@lru_cache(256)
def _searched(
    model: Model,
    at: Machine,
    load: Load,
    limits: Limits,
    gpus: int | None,
    formats: tuple[str, ...] | None,
    caches: tuple[str, ...],
    pools: bool,
    drafts: tuple[Drafts, ...],
    dollars_per_gpu_hour: float | None,
    top: int,
) -> Deployments:
    began = time.perf_counter()
    search = prepared(model, at, load, limits, formats, caches, pools, drafts, dollars_per_gpu_hour)
    found, simulated = search.cheapest(top)
    first, *others = found
    if gpus is not None and first.gpus > gpus:
        raise ValueError(
            f"gpus must be at least {first.gpus} ({first.split}) for {load.per_s:g} requests a second of "
            f"{model.key} within the limits on {at.gpu.key}, got {gpus}"
        )
    others = [
        replace(one, dearer_by=one.dollars_per_million / first.dollars_per_million - 1.0)
        for one in others
        if gpus is None or one.gpus <= gpus
    ]
    return Deployments(
        first, tuple(others), len(search.plans.table), simulated, time.perf_counter() - began, LEAVES_OUT
    )


@lru_cache(4)
def prepared(
    model: Model,
    at: Machine,
    load: Load,
    limits: Limits,
    formats: tuple[str, ...] | None,
    caches: tuple[str, ...],
    pools: bool,
    drafts: tuple[Drafts, ...],
    dollars_per_gpu_hour: float | None,
) -> Search:
    """The search with all deployments that there are to try, judged in closed form, before anything is
    simulated."""
    for one in drafts:
        check.whole(drafted=one.drafted)
        check.between(0, 1, accepted=one.accepted)
        check.non_negative(step_s=one.step_s)
    _require_context(model, load)
    if dollars_per_gpu_hour is None:
        dollars_per_gpu_hour = _listed(at.gpu.key)
    check.positive(dollars_per_gpu_hour=dollars_per_gpu_hour)
    tables = kinds(model, at, load, formats, caches)
    tried = (None, *drafts)
    forms = Forms(
        load,
        limits,
        Tables.of([one.costs for one in tables], [one.wire_bytes_per_s for one in tables]),
        tried,
        MOST_RUNNING,
    )
    plans = plans_of(tables, pools, len(tried))
    fewest = forms.fewest(plans)
    if not np.any(fewest):
        _refuse(model, at, forms, plans)
    return Search(model, at, load, limits, tables, tried, forms, plans, fewest, dollars_per_gpu_hour)


def _listed(gpu_key: str) -> float:
    """The latest known price of a GPU-hour."""
    priced = sorted({price.gpu for price in catalog.all_prices().values()})
    if gpu_key not in priced:
        raise ValueError(
            f"dollars_per_gpu_hour must be given for {gpu_key}, of which no price is listed (there is one of "
            f"{', '.join(priced)})"
        )
    return catalog.price(gpu_key).dollars_per_hour


# -- what there is to try ------------------------------------------------------------------------------------
def kinds(
    model: Model, at: Machine, load: Load, formats: Sequence[str] | None, caches: Sequence[str]
) -> list[ReplicaCosts]:
    """The replicas that hold the model and at least one request of this load."""
    check.whole(caches=len(caches))
    for name in caches:
        check.one_of(CACHES, caches=name)
    for name in formats or ():
        check.one_of(FORMATS, formats=name)
    per_node = int(at.wires.gpus_per_node)
    found, needs, context = [], accepted(model, load), context_of(load)
    for weights in FORMATS if formats is None else formats:
        precision, stored = FORMATS[weights]
        if formats is None and not _has_units(at, precision):
            continue
        machine = replace(at, precision=precision, chip=layouts.machine(at.gpu, precision).chip)
        for kept in caches:
            for one, only in _ways(model, at):
                costs = _costs(model, machine, one, only, load, kept, stored, context)
                if costs.capacity > needs and starts(model, machine, one, kept, stored, needs):
                    wire = one.tp * float(at.wires.nic_bytes_per_s)
                    found.append(ReplicaCosts(one, weights, kept, costs, wire, only))
    if not found:
        raise ValueError(
            f"model must fit in {replicas.STAGES[-1]} nodes of {per_node} {at.gpu.key} with room for "
            f"{needs:,} cached tokens, got {model.key} in {', '.join(formats or FORMATS)}: fewer bytes a "
            "weight or a GPU with more memory would help"
        )
    return found


def _ways(model: Model, at: Machine) -> list[tuple[Replica, str]]:
    """Every way to divide a replica, with the one role that it is limited to, if any."""
    both = [*replicas.in_a_node(model, at), *replicas.staged(model, at)]
    return [(one, "") for one in both] + [
        (one, only) for only in (READS, WRITES) for one in replicas.spread(model, at)
    ]


def _costs(
    model: Model,
    at: Machine,
    of: Replica,
    only: str,
    load: Load,
    kv_precision: str,
    stored: str | None,
    context: float,
) -> Costs:
    if only:
        return step_costs.spread_costs(
            model, at, of.tp, of.dp, only == READS, load.prompt, kv_precision, stored, context
        )
    return step_costs.costs(model, at, of.tp, load.prompt, kv_precision, stored, context=context, pp=of.pp)


def starts(
    model: Model, at: Machine, of: Replica, kv_precision: str, weight_precision: str | None, tokens: int
) -> bool:
    """Whether a server that is started without a flag for its memory has room for a request of ``tokens``
    tokens."""
    return bool(spare_to_start(model, at, of, kv_precision, weight_precision, tokens) >= 0)


def spare_to_start(
    model: Model,
    at: Machine,
    of: Replica,
    kv_precision: str,
    weight_precision: str | Real | None,
    tokens: Real,
) -> Real:
    """The bytes that a server, started without a flag for its memory, has left on a GPU beside its weights
    and a request of ``tokens`` tokens; below 0 if it does not start."""
    size, value_bytes = shape(model), memory.BYTES_PER_VALUE[kv_precision]
    cache = inference.kept_bytes(size, tokens * 1.0, 1.0, value_bytes, of.tp * 1.0)
    held = (
        wide.weight_bytes_per_gpu(model, at, of.tp, of.dp, weight_precision)
        if of.dp > 1
        else stages.weight_bytes_per_gpu(model, at, of.tp, of.pp, weight_precision)
    )
    return memory.startable_bytes(at.gpu) - held - cache * stages.largest_share(size, of.pp)


def _has_units(at: Machine, precision: str) -> bool:
    try:
        at.gpu.peak_flops_per_s(precision)
    except ValueError:
        return False
    return True


def context_of(load: Load) -> float:
    """Cached tokens of an answer that is being written, on average."""
    return equilibrium.context_tokens(load.prompt, load.prompt_spread, load.output, load.output_spread)


def longest_of(load: Load) -> int:
    """Tokens of prompt and answer that a server has to accept: all but a thousandth of the prompts and of the
    answers are shorter."""
    z = NormalDist().inv_cdf(LONG)

    def one(median: int, spread: float) -> float:
        return min(equilibrium.LONGEST * median, median * math.exp(spread * z))

    return math.ceil(one(load.prompt, load.prompt_spread) + one(load.output, load.output_spread))


def accepted(model: Model, load: Load) -> int:
    """The length that a server is told to accept: in whole 256 tokens, and no longer than the model knows."""
    return min(256 * math.ceil(longest_of(load) / 256), model.max_context or 2**31)


def _require_context(model: Model, load: Load) -> None:
    if model.max_context and load.prompt + load.output > model.max_context:
        raise ValueError(
            f"prompt and output must be at most {model.max_context} tokens together for {model.key}, got "
            f"{load.prompt} + {load.output}"
        )


def ratios(most: int = POOL) -> list[tuple[int, int]]:
    """(replicas that prefill, replicas that decode) of a unit of two pools, without a common factor."""
    return [(p, d) for p in range(1, most) for d in range(1, most + 1 - p) if math.gcd(p, d) == 1]


def plans_of(tables: list[ReplicaCosts], pools: bool, drafts: int) -> Plans:
    """Every kind of deployment."""
    ways = [(chunk, 0, 1) for chunk in CHUNKS]
    ways += [(PROMPTS_TOGETHER, p, d) for p, d in ratios()] if pools else []
    every = [
        (i, i, chunk, p * one.replica.batches, d * one.replica.batches, draft)
        for i, one in enumerate(tables)
        if not one.only
        for chunk, p, d in ways
        for draft in range(drafts)
    ]
    if pools:
        every += [
            (i, j, PROMPTS_TOGETHER, p * tables[j].replica.batches, d * tables[i].replica.batches, draft)
            for i, j in _of_two_kinds(tables)
            for p, d in ratios(MIXED_POOL)
            for draft in range(drafts)
        ]
    table, front, chunk, prefillers, decoders, drafted = (np.array(column) for column in zip(*every))
    return Plans(table, front, chunk * 1.0, prefillers * 1.0, decoders * 1.0, drafted)


def _of_two_kinds(tables: list[ReplicaCosts]) -> list[tuple[int, int]]:
    """Pairs of (a replica that decodes, a replica that prefills) in the same formats: with different tensor
    degrees, or both with spread experts."""
    return [
        (i, j)
        for i, one in enumerate(tables)
        for j, other in enumerate(tables)
        if (one.weights, one.kv_precision) == (other.weights, other.kv_precision) and _fit(one, other)
    ]


def _halves(tables: list[ReplicaCosts]) -> list[int]:
    """For each kind of replica, the kind with half its GPUs that is otherwise the same; -1 where there is
    none."""
    found = {(one.replica, one.weights, one.kv_precision, one.only): i for i, one in enumerate(tables)}
    return [found.get((_half(one.replica), one.weights, one.kv_precision, one.only), -1) for one in tables]


def _half(of: Replica) -> Replica:
    tp, dp = (of.tp, of.dp // 2) if of.dp > 1 else (of.tp // 2, of.dp)
    return Replica(tp, of.pp, dp)


def _fit(back: ReplicaCosts, front: ReplicaCosts) -> bool:
    if back.only or front.only:
        return (back.only, front.only) == (WRITES, READS)
    return back.replica != front.replica and back.replica.pp == front.replica.pp == 1


# -- the search ----------------------------------------------------------------------------------------------
class _Waiting(NamedTuple):
    """A deployment that waits to be simulated. The cheapest sorts first."""

    gpus: int
    order: tuple  # among those that cost the same: the least changed first, then the simplest, the surest
    plan: int
    units: int


def step(units: int) -> int:
    """By how many units the search makes a deployment larger or smaller: by one, or in a large fleet by a
    32nd of it, a difference that the estimate could not tell."""
    return max(1, units // 32)


class Search:
    """Deployments in the order of their price, until enough of them hold."""

    def __init__(
        self,
        model: Model,
        at: Machine,
        load: Load,
        limits: Limits,
        tables: list[ReplicaCosts],
        drafts: tuple[Drafts | None, ...],
        forms: Forms,
        plans: Plans,
        fewest: np.ndarray,
        dollars: float,
    ) -> None:
        self.model, self.at, self.load, self.limits = model, at, load, limits
        self.tables, self.drafts, self.forms, self.plans, self.dollars = tables, drafts, forms, plans, dollars
        self.simulated = self.held = self.top = 0
        at_fewest = forms.judge(plans, np.maximum(1.0, fewest))
        self.sureness = columns.sureness(at_fewest, limits.tpot_s)
        self.halves = np.array(_halves(tables))
        self.batches = np.array([float(one.replica.batches) for one in tables])
        self.entries = [self.entry(i, int(count)) for i, count in enumerate(fewest.tolist()) if count]

    def expected(self) -> Deployment:
        """The cheapest deployment in closed form; what its requests feel is not known before a simulation."""
        first = min(self.entries)
        token_s = float(self.judged(first.plan, first.units).token_s[0])
        return self.deployment(first, self.fleet(first), unfelt(token_s), [])

    def cheapest(self, top: int) -> tuple[list[Deployment], int]:
        """The cheapest deployment that holds and the cheapest of other kinds, and how many were simulated."""
        self.simulated, self.held, self.top = 0, 0, top  # a search may be asked again
        near = self.forms.fewest(self.plans, self.limits.share - NEAR)
        waiting = [self.entry(i, int(count)) for i, count in enumerate(near.tolist()) if count]
        heapq.heapify(waiting)
        found: list[Deployment] = []
        while waiting and len(found) < top and self.simulated < MOST_SIMULATED:
            entry = heapq.heappop(waiting)
            if any(self.alike(entry, one) for one in found):
                continue
            fleet, felt, missed = self.simulate(entry)
            if missed:
                heapq.heappush(waiting, self.entry(entry.plan, entry.units + step(entry.units)))
            else:
                found.append(self.smallest(entry, fleet, felt))
                self.held = len(found)
        if not found:
            raise ValueError(
                f"limits must leave room for chance: none of {self.simulated} deployments that meet them in "
                f"closed form did so when simulated, got {self.limits}"
            )
        return sorted(found, key=lambda one: one.gpus), self.simulated

    def simulate(self, entry: _Waiting) -> tuple[Fleet, Measured, str]:
        """Simulate a deployment: (the fleet, its latencies, the limit that they miss)."""
        self.simulated += 1
        progress.tell(self.held, self.top, f"kinds, {self.simulated} simulated")
        fleet = self.fleet(entry)
        return fleet, *rehearsal.judged(fleet, self.load, self.limits)

    def smallest(self, entry: _Waiting, fleet: Fleet, felt: Measured) -> Deployment:
        """The smallest deployment that still holds when replicas are taken away step by step (``step``), with
        two pools from either of them."""
        missed: list[str] = []
        waiting = self.smaller(entry)
        while waiting:
            fewer = waiting.pop()
            late = "capacity"  # a fleet that does not keep up misses this; no simulation is needed
            if self.judged(fewer.plan, fewer.units).steady[0]:
                smaller, smaller_felt, late = self.simulate(fewer)
                if not late:
                    entry, fleet, felt = fewer, smaller, smaller_felt
                    missed, waiting = [], self.smaller(entry)
                    continue
            missed.append(late)
        return self.deployment(entry, fleet, felt, missed)

    def smaller(self, entry: _Waiting) -> list[_Waiting]:
        """The deployments to try after one that holds: with fewer replicas, with two pools in either of
        them."""
        plans, i = self.plans, entry.plan
        reads, writes = int(plans.prefillers[i]) * entry.units, int(plans.decoders[i]) * entry.units
        front, back = int(self.batches[plans.front[i]]), int(self.batches[plans.table[i]])
        fewer = [(reads, writes - back * step(writes // back))]
        if reads:
            fewer.append((reads - front * step(reads // front), writes))
        found = [
            self.with_replicas(i, *each) for each in fewer if each[1] > 0 and bool(each[0]) == bool(reads)
        ]
        return [one for one in found if one is not None]

    def with_replicas(self, plan: int, reads: int, writes: int) -> _Waiting | None:
        """The plan with the same replicas, for ``reads`` batches that read and ``writes`` that write; None if
        no plan has that ratio."""
        plans = self.plans
        same = (plans.table == plans.table[plan]) & (plans.front == plans.front[plan])
        same = same & (plans.budget == plans.budget[plan]) & (plans.drafts == plans.drafts[plan])
        for other in np.nonzero(same & (plans.prefillers * writes == plans.decoders * reads))[0].tolist():
            if writes % int(plans.decoders[other]) == 0:
                return self.entry(other, writes // int(plans.decoders[other]))
        return None

    def entry(self, plan: int, count: int) -> _Waiting:
        """A plan with ``count`` units, as an entry of the queue."""
        plans = self.plans
        table, front = self.tables[plans.table[plan]], self.tables[plans.front[plan]]
        apart = bool(plans.prefillers[plan])
        each = int(plans.prefillers[plan]) * front.gpus + int(plans.decoders[plan]) * table.gpus
        order = (
            list(FORMATS).index(table.weights),
            CACHES.index(table.kv_precision),
            int(plans.drafts[plan]),
            apart,
            front.replica != table.replica,
            table.replica.pp,
            -round(float(self.sureness[plan]), 6),
            table.replica.gpus,
        )
        return _Waiting(count * each, order, plan, count)

    def alike(self, entry: _Waiting, found: Deployment) -> bool:
        """Whether a deployment is of the same kind as one that has been found: the same pools, formats and
        drafts, and the same replicas that decode."""
        table, apart = self.tables[self.plans.table[entry.plan]], bool(self.plans.prefillers[entry.plan])
        drafts = self.drafts[self.plans.drafts[entry.plan]]
        return (table.replica, table.weights, table.kv_precision, apart, drafts) == (
            found.replica,
            found.weights,
            found.kv_precision,
            found.apart,
            found.drafts,
        )

    def binding(self, entry: _Waiting, missed: list[str]) -> str:
        """What would be missed with a replica less, by ``Forms.bounds`` and by ``missed``, the limits that
        smaller deployments missed in a simulation."""
        units = np.array([float(entry.units)])
        found = int(self.forms.bounds(self.one(entry.plan), units, self.halves, self.batches)[0])
        return BOUNDS[min([found, *[BOUNDS.index(each) for each in missed]])]

    def judged(self, plan: int, count: int) -> Judged:
        """A plan with ``count`` units, judged in closed form."""
        return self.forms.judge(self.one(plan), np.array([float(count)]))

    def one(self, plan: int) -> Plans:
        """The columns of a single plan."""
        return Plans(*(column[plan : plan + 1] for column in self.plans))

    def fleet(self, entry: _Waiting) -> Fleet:
        """The fleet to simulate, with the smallest batch size that hardly ever keeps a request waiting."""
        plan, running = self.one(entry.plan), float(self.judged(entry.plan, entry.units).running[0])
        wanted = running + 4.0 * math.sqrt(running) + 4.0
        table, front = self.tables[int(plan.table[0])], self.tables[int(plan.front[0])]
        prefillers, decoders = int(plan.prefillers[0]), int(plan.decoders[0])
        alike = math.gcd(prefillers, decoders)  # a unit consists of this many equal parts with its ratio
        return Fleet(
            table.costs,
            entry.units * alike,
            prefillers // alike,
            decoders // alike,
            float(plan.budget[0]),
            float(next((batch for batch in BATCHES if batch >= wanted), BATCHES[-1])),
            min(table.wire_bytes_per_s, front.wire_bytes_per_s),
            self.drafts[int(plan.drafts[0])],
            front.costs,
        )

    def deployment(self, entry: _Waiting, fleet: Fleet, felt: Measured, missed: list[str]) -> Deployment:
        """The deployment as the search returns it; ``missed`` are the limits that smaller ones missed."""
        table = self.tables[self.plans.table[entry.plan]]
        front = self.tables[self.plans.front[entry.plan]]
        running = float(self.judged(entry.plan, entry.units).running[0])
        degree = max(table.replica.tp, front.replica.tp)
        outside = bands.outside_serving(self.at.gpu.key, self.model.experts > 0, degree, running)
        if table.replica.pp > 1:
            outside = (*outside, "pp")
        longest = accepted(self.model, self.load)
        if longest < longest_of(self.load):
            outside = (*outside, "context")
        reading = fleet.units * fleet.prefillers // front.replica.batches
        return Deployment(
            self.model.key,
            self.at.gpu.key,
            table.replica,
            reading + fleet.units * fleet.decoders // table.replica.batches,
            reading,
            table.weights,
            table.kv_precision,
            int(fleet.budget),
            int(fleet.most_running),
            fleet.drafts,
            longest,
            self.load,
            self.limits,
            felt,
            running,
            self.forms.ask.answer,
            self.dollars,
            self.binding(entry, missed),
            outside,
            0.0,
            front.replica if front.replica != table.replica else None,
        )


# -- loads that nothing can serve ----------------------------------------------------------------------------
def _refuse(model: Model, at: Machine, forms: Forms, plans: Plans) -> None:
    """Raise a ValueError that says which limit no number of GPUs can meet, the nearest value that can be met,
    and what would help."""
    load, limits = forms.load, forms.limits
    alone = np.full(len(plans.table), load.per_s / 1e-9)
    least = {name: _least(forms, plans, alone, name) for name in HELPS}
    said = [
        f"{name} must be at least {least[name]:.3g} for {model.key} on any number of {at.gpu.key}, got "
        f"{getattr(limits, name):g}: even an idle replica is slower; {helps} would help"
        for name, helps in HELPS.items()
        if least[name] > getattr(limits, name)
    ]
    if said:
        raise ValueError("; ".join(said))
    more = ", pause_s" if limits.pause_s < ANY_S else ""
    got = f"{limits.ttft_s:g} and {limits.tpot_s:g}{f' and {limits.pause_s:g}' if more else ''}"
    raise ValueError(
        f"ttft_s and tpot_s{more} must be met together, which no number of {at.gpu.key} does for "
        f"{model.key}, got {got}: a deployment that meets one misses the other; two pools, or either limit "
        "looser, would help"
    )


HELPS = {
    "ttft_s": "shorter prompts, a larger prefix_share, or a GPU with more FLOP/s",
    "tpot_s": "fewer bytes a weight, drafts, or a GPU with more memory bandwidth",
    "pause_s": "fewer bytes a weight, a faster wire between two pools, or a GPU with more memory bandwidth",
}


def _least(forms: Forms, plans: Plans, alone: np.ndarray, name: str) -> float:
    """The tightest value of the limit ``name`` that an idle replica meets, by bisection."""

    def met(value: float) -> bool:
        loose = replace(forms.limits, **{"ttft_s": 1e9, "tpot_s": 1e9, "pause_s": ANY_S, name: value})
        forms.limits, kept = loose, forms.limits
        judged = forms.judge(plans, alone)
        forms.limits = kept
        return bool(np.any(judged.within(loose.share)))

    low, high = 1e-6, 1e6
    while high / low > 1.005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if met(middle) else (middle, high)
    return high
