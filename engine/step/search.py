"""The whole space of layouts at once: ``plan`` finds the fastest that fits, and says what the others lose by.

All legal combinations of tp × pp × cp × ep are listed (dp takes the rest), each with every micro-batch;
recomputation, ZeRO stage and schedule with interleaving are further dimensions. One call of ``step`` then
evaluates many of them by broadcasting, so that what does not depend on a dimension is computed once along it.
The estimates equal ``estimate``'s to the last digit.

Of all layouts only memory and the first terms of the step's sum are worked out. Those terms are a lower
bound, and it shows that most layouts can neither win, nor be the best of one of the best splits, nor tie with
the winner. Only for the remaining layouts are the seconds worked out, block by block.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check, printing, units
from engine.base.types import Real, Truth
from engine.calibration import bands
from engine.catalog import models
from engine.mechanism import memory
from engine.mechanism.interconnect import ranks_per_node
from engine.mechanism.memory import RECOMPUTE
from engine.mechanism.pipeline import SCHEDULES, TURNS
from engine.mechanism.shape import shape
from engine.step import near
from engine.step.constraints import FREE, Constraints
from engine.step.layout import Estimate, Job, Layout, Machine, estimate, layout_dict, recipe_of, usual_layout
from engine.step.legality import (
    cuts_a_micro_batch,
    cuts_copies_of_experts,
    cuts_matrices,
    idle_stages,
    leaves_a_chunk_empty,
    modules_of,
    require_matrices,
    require_trainable,
)
from engine.step.splits import LEAST_TOKENS as LEAST_TOKENS
from engine.step.splits import MICRO_BATCHES as MICRO_BATCHES
from engine.step.splits import legal_splits
from engine.step.step import Axes, MicroBatch, micro_batch, sizes, step, total_bytes, worked

if TYPE_CHECKING:
    from engine.catalog.models import Model

INTERLEAVES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24)
ZERO_STAGES = (0, 1, 2, 3)
# every (schedule, chunks of layers a stage)
EVERY_SCHEDULE = [
    *((key, 1) for key, plan in SCHEDULES.items() if not (plan.interleaved or plan.folded)),
    *(("interleaved", chunks) for chunks in INTERLEAVES),
    *((key, TURNS) for key, plan in SCHEDULES.items() if plan.folded),
]
MOST_GPUS = 10_000_000  # that a plan may be asked for
AT_ONCE = 100_000  # layouts in one call: more would not fit the processor's caches
SPARED = 32  # splits of which fewer recomputed layers are tried
FIRST = 64  # rows whose seconds are worked out first


class Degrees(NamedTuple):
    """How the GPUs are divided among the axes."""

    tp: int
    pp: int
    cp: int
    ep: int
    expert_tp: int
    dp: int


# the columns of a search's rows: those of ``Degrees``, the GPUs that share one copy of the state (HSDP; 0 for
# all), and the micro-batch
TP, PP, CP, EP, EXPERT_TP, DP = range(len(Degrees._fields))
SHARD = len(Degrees._fields)
WITHIN_A_STAGE = [TP, CP, EP, EXPERT_TP, -1]


class Schedules(NamedTuple):
    """The coefficients of several schedules as arrays; ``Schedule`` is for one."""

    weight_gradients: Real
    flight_ahead: Real
    flight_more: Real
    flight_stages: Real
    flight_group: Real
    weights_late: Real
    stages_share: Real
    forwards: Real
    backwards: Real
    weight_copies: Real
    hides_experts: Real
    folded: Real
    least_per_stage: Real
    least_more: Real


@dataclass(frozen=True)
class Plan(printing.Printed):
    """The winner, the best layouts of other splits in order, and the size of the search. Where nothing fits,
    these are the layouts with the smallest memory, and none counts as tied."""

    best: Estimate
    runners_up: tuple[Estimate, ...]
    layouts: int  # legal layouts, all of which were evaluated
    fitting: int
    seconds: float
    free_s: float = math.nan  # the fastest step of all, whether it fits or not
    simplest: Estimate | None = None  # of those that the estimate cannot tell from the fastest
    tied: int = 1  # splits whose bands overlap that of the fastest; 0 where nothing fits
    near: tuple[near.Near, ...] = ()  # numbers near the job's that more layouts can divide

    @property
    def fits(self) -> bool:
        """Whether anything fits, with what is to be left free."""
        return self.fitting > 0

    @property
    def counted(self) -> str:
        """The state and the program that the bytes and seconds are those of."""
        recipe = recipe_of(self.best.job)
        each = units.human(recipe.bytes_per_param, "count")
        return f"{recipe.name} ({each} bytes a parameter), {self.best.job.software.name}"

    def as_dict(self) -> dict:
        """The plan as the command line prints it with --json."""
        return {
            "counted": self.counted,
            "layouts": self.layouts,
            "fitting": self.fitting,
            "search_s": self.seconds,
            "layouts_per_s": self.layouts / self.seconds,
            "tied_splits": self.tied,
            "simplest": (self.simplest or self.best).as_dict(),
            "best": self.best.as_dict(),
            "near": [each._asdict() for each in self.near],
            "runners_up": [{**other.as_dict(), **lost_by(self.best, other)} for other in self.runners_up],
        }

    def rows(self) -> list[dict]:
        """A row for the fastest layout, and one for the best of each other split."""
        first = {"slower_by": 0.0, "lost_by": "-", "lost_s": 0.0}
        return [
            each.rows()[0] | (lost_by(self.best, each) if each is not self.best else first)
            for each in (self.best, *self.runners_up)
        ]


@printing.parts.register
def _parts(found: Plan) -> list[printing.Part]:
    """The search in figures, the simplest of the layouts that could be the fastest, and the best of all
    splits; of those that the estimate cannot tell from the fastest no order is meant."""
    best, simplest = found.best, found.simplest or found.best
    above, above_simplest = headings(found.fits, found.tied)
    plainly = simplest.rows()[0] | {"slower_by": simplest.step_s / best.step_s - 1.0}
    figures = found.as_dict()
    told = {key: figures["best"][key] for key in ("band_s", "memory_band_bytes", "extrapolates")}
    return [
        {
            key: figures[key]
            for key in ("counted", "layouts", "fitting", "search_s", "layouts_per_s", "tied_splits")
        },
        above_simplest,
        layouts_table([plainly]),
        above,
        layouts_table([with_ties(row, found.tied) for row in found.rows()]),
        told,
        *near.lines(found.near),
    ]


def with_ties(row: dict, tied: int) -> dict:
    """A row that says so where the estimate cannot tell it from the fastest."""
    slower = row["slower_by"]
    tie = tied > 1 and slower is not None and 1.0 + slower <= bands.tie()
    return row | ({"lost_by": "tie"} if tie else {})


def layouts_table(rows: list[dict]) -> printing.Table:
    """Layouts beside each other: their choices, and what comes of them."""
    totals = [{**row, "total_bytes": row["memory_bytes.total"]} for row in rows]
    choices = layout_dict(Layout(1))
    columns = [*choices, "step_s", "mfu", "total_bytes", "fits", "slower_by", "lost_by"]
    return printing.Table(totals, columns, {**usual_layout(), "fits": True, "lost_by": ""})


def cuts(split: Degrees | Layout) -> tuple[int, int]:
    """Along how many axes the model is cut, and into how many parts: a measure of how much there is to set
    up."""
    degrees = split.tp, split.pp, split.cp, split.ep, split.expert_tp
    return sum(degree > 1 for degree in degrees), math.prod(degrees)


def effort(e: Estimate) -> tuple:
    """The sort key of how hard a layout is to run: cuts, a schedule beyond 1F1B, recomputation, a ZeRO stage
    above 1, several copies of the state; among equals the faster first."""
    a = e.layout
    harder = a.schedule != "1f1b", a.interleave, a.recompute != "none", a.zero > 1, a.shard > 0
    return *cuts(a), *harder, e.step_s


def plainer(e: Estimate) -> list[Estimate]:
    """The layout; and, if it has another schedule than 1F1B or several copies of the state, also the same
    split under 1F1B with one copy."""
    if e.layout.schedule == "1f1b" and not e.layout.shard:
        return [e]
    plain = replace(e.layout, schedule="1f1b", interleave=1, shard=0)
    return [e, estimate(e.model, e.at, e.job, plain)]


def lost_by(best: Estimate, other: Estimate) -> dict:
    """The term on which the other layout loses most, and by how much; memory if it does not fit. Where not
    even the best layout fits, a comparison of times says nothing, and ``slower_by`` is None."""
    more = by_cause(best, other)
    term = max(more, key=lambda name: more[name])
    if not other.fits:
        term = "memory"
    return {
        "slower_by": other.step_s / best.step_s - 1.0 if best.fits else None,
        "lost_by": term,
        "lost_s": max(0.0, more.get(term, 0.0)),
    }


def by_cause(ours: Estimate, theirs: Estimate) -> dict[str, float]:
    """How many seconds longer each term of their step is than of ours; below zero where it is shorter. They
    add up to the difference of the steps."""
    return {name: theirs.time_s[name] - seconds for name, seconds in ours.time_s.items()}


def headings(fits: bool, tied: int) -> tuple[str, str]:
    """What stands above the table of a plan, and above its simplest layout."""
    if not fits:
        return "Nothing fits. What comes closest, split by split:", "The closest:"
    if tied > 1:
        simplest = f"The estimate cannot tell {tied} splits apart. The simplest of their layouts:"
        return "The best of each split by the estimate. Where it says tie, no order is meant:", simplest
    alone = "No other split is within the estimate's error of the fastest. Its simplest layout:"
    return "The fastest, and the best of the other splits:", alone


def splits(model: Model, job: Job, gpus: int) -> list[Degrees]:
    """Every legal split of this many GPUs, in ascending order."""
    heads = [kind.heads for _, kind in models.attentions(model) if not models.is_mixer(kind) or kind.matrices]
    seq = 1 if models.has_mixers(model) else job.seq  # no sequence is cut that a state runs through
    found = legal_splits(gpus, job.global_batch, seq, heads, model.depth, model.experts, math.inf)
    splits = [Degrees(*each) for each in zip(*found.values())]
    if job.pictures:  # each GPU has the whole tower
        splits = [each for each in splits if each.tp * each.pp * each.cp == 1]
    return splits


def schedules(model: Model, stages: set[int]) -> list[tuple[str, int]]:
    """Every (schedule, chunks) that a pipeline with one of these numbers of stages can run."""
    if stages == {1}:
        return [("1f1b", 1)]
    fewest = min(stages - {1})
    return [pair for pair in EVERY_SCHEDULE if pair[1] == 1 or fewest * pair[1] <= model.depth]


def _along(values, axis: int):
    """A vector along one of the four dimensions."""
    return np.asarray(values, dtype=float).reshape([-1 if i == axis else 1 for i in range(4)])


def legal(a: Axes, layers: Real, is_1f1b: Real) -> tuple[Truth, Truth, Truth]:
    """What the rules require beyond a legal split: (the micro-batch divides, the schedule is possible, there
    are replicas for ZeRO). A schedule or a ZeRO stage that would change nothing, because there is no pipeline
    or no replica, counts as illegal, so that no layout is listed twice."""
    schedule = np.where(a.pp > 1.0, ~leaves_a_chunk_empty(layers, a.pp, a.chunks), is_1f1b > 0.0)
    whole = ~cuts_a_micro_batch(a.global_batch / a.dp, a.micro_batch)
    return whole, schedule & ~idle_stages(a), (a.zero == 0.0) | (a.dp * a.cp > 1.0)


def rows(
    model: Model, job: Job, gpus: int, within: Constraints = FREE, hsdp_gpus_per_node: Real = 0
) -> np.ndarray:
    """Every split with every micro-batch that it can have, a row each: the columns of ``Degrees``, the GPUs
    that share one copy of the state, and the micro-batch. Similar rows are neighbours, and the rows of one
    split follow each other. If a size of nodes is given, the rows with several copies of the state come last
    (``hybrid``)."""
    each = np.array(splits(model, job, gpus))
    if not len(each):
        raise ValueError(
            f"global_batch must be a multiple of a data-parallel degree that {gpus} GPUs can have, "
            f"got {job.global_batch}"
        )
    each = each[np.lexsort((*each.T[::-1], each[:, DP], each[:, PP]))]
    micro_batches = np.array(MICRO_BATCHES)
    sequences = job.global_batch // each[:, DP, np.newaxis]
    split, micro_batch = np.nonzero(~cuts_a_micro_batch(sequences, micro_batches))
    every = np.column_stack([each[split], 0 * micro_batch, micro_batches[micro_batch]])
    if hsdp_gpus_per_node:
        every = np.concatenate([every, hybrid(model, every, hsdp_gpus_per_node)])
    kept = within.rows(model, every)
    if not len(kept):
        raise ValueError(f"constraints must leave a layout of {model.key} on {gpus} GPUs, got {within}")
    return kept


def hybrid(model: Model, every: np.ndarray, gpus_per_node: Real) -> np.ndarray:
    """Rows with several copies of the state (HSDP): the data-parallel ranks that share a copy are those on
    one node, or on two nodes, four, and so on."""
    ranks = every[:, DP] * every[:, CP]
    near = ranks_per_node(ranks.astype(float), every[:, TP].astype(float), gpus_per_node).astype(int)
    one_set = every[:, EP] * every[:, EXPERT_TP]  # how many GPUs hold all experts once
    found, shard = [every[:0]], near
    while np.any(shard < ranks):
        kept = (shard > 1) & (shard < ranks) & (ranks % shard == 0)
        if model.experts:
            kept = kept & ~cuts_copies_of_experts(every[:, TP] * shard, one_set)
        some = every[kept]
        found.append(np.column_stack([some[:, :SHARD], shard[kept], some[:, SHARD + 1 :]]))
        shard = 2 * shard
    several = np.concatenate(found)
    return several[np.lexsort((several[:, SHARD],))]


class Grid:
    """Some rows of a search, and for each of them a grid of cells: every recomputation, ZeRO stage and
    schedule that any of the rows can have. In all rows of a block the same number of GPUs shares one copy of
    the state.

    Rows are the last dimension of the grid, so that numpy goes through many of them at a stretch.
    """

    def __init__(
        self, model: Model, job: Job, gpus: int, some: np.ndarray, within: Constraints = FREE
    ) -> None:
        self.model, self.job, self.gpus, self.rows, self.within = model, job, gpus, some, within
        # with fused attention, selective recomputation drops nothing, so it would be the same layout as none
        self.every_recompute = [r for r in RECOMPUTE if not (job.software.flash and r == "selective")]
        self.recompute = within.recomputed(self.every_recompute)
        self.schedules = schedules(model, set(some[:, PP].tolist()))
        self.shard = int(some[0, SHARD])
        self.zero = ZERO_STAGES[1:] if self.shard else ZERO_STAGES  # without ZeRO all GPUs have a copy
        self.whole = recipe_of(job).matrices is not None  # matrices, for the optimizer

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of the grid along each dimension: recomputation, ZeRO stage, schedule, row."""
        return len(self.recompute), len(self.zero), len(self.schedules), len(self.rows)

    def axes(self) -> Axes:
        """The values of each axis along its own dimension of an array."""
        tp, pp, cp, ep, expert_tp, dp, _, micro_batch = (_along(column, 3) for column in self.rows.T)
        coefficients = [SCHEDULES[key] for key, _ in self.schedules]
        return Axes(
            float(self.job.seq),
            float(self.job.global_batch),
            tp,
            pp,
            cp,
            dp,
            ep,
            expert_tp,
            _along(self.zero, 1),
            float(self.shard),
            micro_batch,
            _along([RECOMPUTE[r] for r in self.recompute], 0),
            Schedules(*(_along([getattr(c, name) for c in coefficients], 2) for name in Schedules._fields)),
            _along([chunks for _, chunks in self.schedules], 2),
        )

    def legal(self, a: Axes) -> np.ndarray:
        """Which cells of the grid are legal layouts, for any recomputation."""
        _, schedule, replicas = legal(
            a, self.model.depth, _along([key == "1f1b" for key, _ in self.schedules], 2)
        )
        found = schedule & replicas & self.within.cells(self.model, a, self.schedules)
        if self.whole:
            found = found & ~cuts_matrices(self.job.software, a.zero, a.shard, a.tp)
        return found

    def numbers(self) -> np.ndarray:
        """For each cell and row, the index of the layout's cell in the largest grid that any split can
        have."""
        among = [
            np.array([self.every_recompute.index(each) for each in self.recompute]),
            np.array([ZERO_STAGES.index(stage) for stage in self.zero]),
            np.array([EVERY_SCHEDULE.index(pair) for pair in self.schedules]),
        ]
        sizes = len(self.every_recompute), len(ZERO_STAGES), len(EVERY_SCHEDULE)
        inside = np.ravel_multi_index(np.meshgrid(*among, indexing="ij"), sizes).ravel()
        return np.searchsorted(MICRO_BATCHES, self.rows[:, -1]) * math.prod(sizes) + inside[:, np.newaxis]

    def split(self, row: int) -> Degrees:
        """The split of a row."""
        return Degrees(*self.rows[row, :SHARD].tolist())

    def layout(self, row: int, cell: int) -> Layout:
        """The layout in one cell of a row."""
        recompute, zero, schedule = np.unravel_index(cell, self.shape[:-1])
        s, (key, chunks) = self.split(row), self.schedules[schedule]
        return Layout(
            self.gpus,
            s.tp,
            s.pp,
            s.cp,
            s.ep,
            self.zero[zero],
            int(self.rows[row, -1]),
            self.recompute[recompute],
            key,
            chunks,
            s.expert_tp,
            self.shard,
        )


def blocks(
    model: Model, job: Job, gpus: int, some: np.ndarray | None = None, within: Constraints = FREE
) -> list[Grid]:
    """All rows, or some, in blocks of similar ones, so that few cells of a block's grid are illegal."""
    every = rows(model, job, gpus, within) if some is None else some
    found = []
    for shard in np.unique(every[:, SHARD]):
        alike = every[every[:, SHARD] == shard]
        most = max(1, AT_ONCE // math.prod(Grid(model, job, gpus, alike, within).shape[:-1]))
        alone = int(np.count_nonzero(alike[:, PP] == 1)) if len(alike) > most else 0
        bounds = sorted({0, alone, *range(alone, len(alike), most), len(alike)})
        found += [
            Grid(model, job, gpus, alike[start:stop], within) for start, stop in itertools.pairwise(bounds)
        ]
    return found


class FoundLayout(NamedTuple):
    """One layout of a block: its seconds (or bytes, if nothing fits), and its row and cell in the grid."""

    cost: float
    block: Grid
    row: int
    cell: int

    @property
    def split(self) -> Degrees:
        """The layout's split."""
        return self.block.split(self.row)

    @property
    def rank(self) -> tuple[float, int, int]:
        """The sort key among layouts of a split."""
        return self.cost, self.block.shard, int(self.block.rows[self.row, -1])

    @property
    def layout(self) -> Layout:
        """The layout itself."""
        return self.block.layout(self.row, self.cell)


class Kinds:
    """The seconds of one micro-batch in each of some rows, worked out only once for rows that cut a stage
    alike."""

    def __init__(self, model: Model, at: Machine, job: Job, gpus: int, some: np.ndarray) -> None:
        most = some[:, WITHIN_A_STAGE].max(axis=0) + 1
        self.scale = np.cumprod([1, *most[:-1]])
        self.codes, first = np.unique(self._codes(some), return_index=True)
        a, size = Grid(model, job, gpus, some[first]).axes(), shape(model)
        with check.trusted():
            self.found = micro_batch(size, job, at.chip, at.wires, a, sizes(size, a)[0])

    def _codes(self, some: np.ndarray) -> np.ndarray:
        return some[:, WITHIN_A_STAGE] @ self.scale

    def of(self, block: Grid) -> MicroBatch:
        """The seconds of one micro-batch in each row of a block."""
        place = np.searchsorted(self.codes, self._codes(block.rows))
        found = [getattr(self.found, each.name) for each in fields(MicroBatch)]
        return MicroBatch(*(np.take(s, place, axis=-1) if np.ndim(s) else s for s in found))


def evaluate(block: Grid, at: Machine, own: MicroBatch | None = None) -> tuple[Real, np.ndarray, np.ndarray]:
    """Seconds and bytes of every layout of a block, and which layouts are legal; ``own`` are the seconds of
    one micro-batch in each row, if they are known."""
    a = block.axes()
    with check.trusted():
        terms = step(shape(block.model), block.job, recipe_of(block.job), at.chip, at.wires, a, own)
    return (
        terms.step_s,
        np.broadcast_to(terms.total_bytes, block.shape),
        np.broadcast_to(block.legal(a), block.shape),
    )


def least_of_each_split(block: Grid, costs: np.ndarray, allowed: np.ndarray) -> list[FoundLayout]:
    """For every split with an allowed layout, the one with the lowest cost; among equals the first."""
    costs = np.where(allowed, costs, np.inf).reshape(-1, len(block.rows))
    cells = costs.argmin(axis=0)
    least = costs[cells, np.arange(len(cells))]
    begins = np.append(True, np.any(block.rows[1:, :-1] != block.rows[:-1, :-1], axis=1))
    best = np.lexsort((least, np.cumsum(begins)))[begins]
    return [
        FoundLayout(float(least[row]), block, row, int(cells[row]))
        for row in best.tolist()
        if least[row] < np.inf
    ]


class Contest:
    """The fastest layout that fits of each split that the search has met so far."""

    def __init__(self, at: Machine, kinds: Kinds, top: int, capacity_bytes: float) -> None:
        self.at, self.kinds, self.top, self.free_s = at, kinds, top, math.inf
        self.capacity_bytes = capacity_bytes
        self.best: dict[Degrees, FoundLayout] = {}

    def enter(self, block: Grid) -> tuple[Real, np.ndarray, np.ndarray]:
        """Let all layouts of a block take part; returns what ``evaluate`` says of them."""
        seconds, total_bytes, legal = found = evaluate(block, self.at, self.kinds.of(block))
        seconds = np.where(legal, seconds, np.inf)
        self.free_s = min(self.free_s, float(seconds.min()))
        fits = total_bytes <= self.capacity_bytes
        add(self.best, least_of_each_split(block, seconds, fits))
        return found

    def limit_s(self) -> float:
        """A layout that takes longer than this can no longer be the best of one of the ``top`` splits, nor
        tie with the fastest."""
        if len(self.best) < self.top:
            return math.inf
        fastest = heapq.nsmallest(self.top, (f.cost for f in self.best.values()))
        return max(fastest[-1], fastest[0] * bands.tie())


def add(best: dict[Degrees, FoundLayout], some: list[FoundLayout]) -> None:
    """Keep the best layout of each split; of equally good ones the one with a single copy of the state, then
    the one with the smaller micro-batch."""
    for found in some:
        before = best.get(found.split)
        if before is None or found.rank < before.rank:
            best[found.split] = found


class Tally:
    """How many layouts are legal, and how many of them fit; as long as none fits, also the leanest of each
    split."""

    def __init__(self, capacity_bytes: float) -> None:
        self.capacity_bytes = capacity_bytes
        self.layouts = self.fitting = 0
        self.leanest: dict[Degrees, FoundLayout] = {}

    def count(self, block: Grid, held_bytes: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """Count a block's layouts; returns which of them are legal and fit."""
        fits = (held_bytes <= self.capacity_bytes) & legal
        self.layouts += int(np.count_nonzero(legal[:1])) * len(block.recompute)
        self.fitting += int(np.count_nonzero(fits))
        if not self.fitting:
            add(self.leanest, least_of_each_split(block, held_bytes, legal))
        return fits


def bounds(every: list[Grid], at: Machine, kinds: Kinds, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
    """Two lower bounds for each row, from the terms that do not depend on what ZeRO sends: seconds that no
    layout of the row that fits is faster than (infinite where none fits), and seconds that no legal layout is
    faster than. Counts the layouts in passing."""
    fits_s, free_s = [], []
    for block in every:
        a, size = block.axes(), shape(block.model)
        with check.trusted():
            sized = sizes(size, a)
            held_bytes = total_bytes(size, block.job, recipe_of(block.job), a, *sized)
            least_s = worked(size, block.job, at.chip, a, *sized, kinds.of(block)).total_s
        legal = block.legal(a)
        fits = tally.count(block, held_bytes, legal)
        fits_s.append(np.where(fits.any(axis=1, keepdims=True), least_s, np.inf).min(axis=(0, 1, 2)))
        free_s.append(np.where(legal.any(axis=1, keepdims=True), least_s, np.inf).min(axis=(0, 1, 2)))
    return np.concatenate(fits_s), np.concatenate(free_s)


# parts of a layer in the order in which a search gives them up, each with those before it
GIVEN_UP = ("moe_act", "layernorm", "mla_up_proj", "shared_experts", "mlp", "moe")
INSIDE = {"moe": ("moe_act", "shared_experts")}  # parts that are recomputed with another


def sparing(e: Estimate, within: Constraints, room_bytes: float) -> Estimate:
    """The same layout with no more recomputed than it takes to fit: as few layers as do, or parts of every
    layer, whichever is faster. Itself where all has to be, or where no framework recomputes less."""
    if e.layout.recompute != "full" or e.layout.recompute_layers:
        return e
    fitting = [each for each in by_module(e, within) if each.terms.total_bytes <= room_bytes]
    return min([_with_fewest(e, within, room_bytes), *fitting], key=lambda each: each.step_s)


def _with_fewest(e: Estimate, within: Constraints, room_bytes: float) -> Estimate:
    """As few layers recomputed as fit; the same estimate where that is all."""
    able = [each for each in within.able if each.some_layers]
    runs = not within.able or (replace(within, able=tuple(able)).allows(e.model, e.layout, e.job) and able)
    if not runs:
        return e
    a = e.layout
    fewer = range(a.interleave, math.ceil(e.model.depth / a.pp), a.interleave)  # as many in every chunk
    fitting = bisect.bisect_left(
        fewer, True, key=lambda some: _with_layers(e, some).terms.total_bytes <= room_bytes
    )
    return _with_layers(e, fewer[fitting]) if fitting < len(fewer) else e


def by_module(e: Estimate, within: Constraints) -> list[Estimate]:
    """The layout with parts of a layer recomputed in place of layers, ever more of them."""
    if within.recompute:
        return []
    has = set(modules_of(e.model))
    if not (e.model.attention.latent and e.model.experts):
        # elsewhere a kernel does a norm with the product after it and keeps what it hands over (Megatron
        # Core at d98e8a64, models/gpt/gpt_layer_specs.py: IdentityOp in place of a norm of its own)
        has.discard("layernorm")
    fp8 = e.at.precision == "fp8"
    able = [each for each in within.able if (each.modules_in_fp8 if fp8 else each.modules)]
    able = [each for each in able if replace(within, able=(each,)).allows(e.model, e.layout, e.job)]
    if within.able and not able:
        return []
    if able:
        has &= set(able[0].modules_in_fp8 if fp8 else able[0].modules)
    order = [name for name in GIVEN_UP if name in has]
    found = []
    for many in range(1, len(order) + 1):
        taken = order[:many]
        inside = [part for name in taken for part in INSIDE.get(name, ())]
        named = "+".join(name for name in taken if name not in inside)
        found.append(estimate(e.model, e.at, e.job, replace(e.layout, recompute=named)))
    return found


def _with_layers(e: Estimate, some: int) -> Estimate:
    return estimate(e.model, e.at, e.job, replace(e.layout, recompute_layers=some))


def plan(
    model: Model,
    at: Machine,
    job: Job,
    gpus: int,
    top: int = 5,
    seen: Callable[[Grid, np.ndarray, np.ndarray, np.ndarray], None] | None = None,
    within: Constraints = FREE,
    hsdp: bool = False,
    partial: bool = False,
) -> Plan:
    """The fastest layout that fits ``gpus`` GPUs, and the best of the other splits. If nothing fits, the
    layout with the smallest memory. ``seen`` is told the seconds and bytes of every layout, block by block,
    and which of them are legal; without it, the seconds of layouts that cannot matter are not worked out.
    Only layouts ``within`` the constraints take part; with ``hsdp`` also those with several copies of the
    state (``hybrid``). With ``partial``, the best layouts recompute no more than they have to, by
    layer or by part of a layer (``sparing``)."""
    check.whole(gpus=gpus, top=top)
    check.between(1, MOST_GPUS, gpus=gpus)
    require_trainable(at.precision, recipe_of(job))
    require_matrices(recipe_of(job), job.software, at.precision, "none", job.adapter)
    started, gpus = time.perf_counter(), int(gpus)
    every = rows(model, job, gpus, within, at.wires.gpus_per_node if hsdp else 0)
    kinds = Kinds(model, at, job, gpus, every)
    room = memory.capacity_bytes(at.gpu) * (1.0 - within.leave)
    all_blocks, tally = blocks(model, job, gpus, every, within), Tally(room)
    contest = Contest(at, kinds, top, room)
    if seen:
        for block in all_blocks:
            seconds, held_bytes, legal = contest.enter(block)
            tally.count(block, held_bytes, legal)
            seen(block, seconds, held_bytes, legal)
    else:  # first rows with the lowest bounds, then all rows whose bound is not above what these reached
        fits_s, free_s = bounds(all_blocks, at, kinds, tally)
        order = np.lexsort((free_s, fits_s))
        for some in (order[:FIRST], order[FIRST:]):
            fitting = np.isfinite(fits_s[some]) & (fits_s[some] <= contest.limit_s())
            able = some[fitting | (free_s[some] < contest.free_s)]
            for block in blocks(model, job, gpus, every[np.sort(able)], within):
                contest.enter(block)
    most = max(top, SPARED) if partial else top
    found = sorted((contest.best or tally.leanest).values(), key=lambda f: (f.cost, f.split))[:most]
    if not found:
        limits = "" if within == FREE else f" within {within}"
        raise ValueError(
            f"gpus must leave some layout legal for {model.key} with global_batch {job.global_batch}"
            f"{limits}, got {gpus}"
        )
    elapsed_s = time.perf_counter() - started
    each = [estimate(model, at, job, f.layout) for f in found]
    if partial and contest.best:
        each = sorted((sparing(e, within, room) for e in each), key=lambda e: e.step_s)
    first, *others = each[:top]
    close = [f for f in contest.best.values() if f.cost <= found[0].cost * bands.tie()]
    fewest = min((cuts(f.split) for f in close), default=())
    tied = [
        e
        for f in sorted(close, key=lambda f: (f.split.pp, f.split.dp, f.split))
        if cuts(f.split) == fewest
        for e in plainer(estimate(model, at, job, f.layout))
        if e.terms.total_bytes <= room
        and within.allows(model, e.layout, job)
        and e.step_s <= first.step_s * bands.tie()
    ]
    simplest = min(tied, key=effort, default=first)
    return Plan(
        first, tuple(others), tally.layouts, tally.fitting, elapsed_s, contest.free_s, simplest, len(close)
    )
