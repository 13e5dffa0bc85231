"""The closing examination: a training job drawn from a number, with the software that runs it, a layout and
estimates for it, and the points they earn.

A spec is drawn by an ``engine.base.program``, so that a page draws the same one. Layouts are costed and
searched by the planner's own model of a step. Everything works on numbers and on symbols.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from engine import catalog
from engine.base import check, ops
from engine.base.program import program
from engine.base.types import Real, Truth
from engine.base.units import DAY
from engine.calibration import bands
from engine.catalog.models import described
from engine.exam import missions
from engine.exam.missions import NO_CEILING, PLAIN_SCHEDULE, Spec
from engine.frameworks.registry import abilities
from engine.mechanism import flops
from engine.mechanism.memory import FULL
from engine.step import cases, page_search, planner
from engine.step.cases import Case, Layouts
from engine.step.constraints import AxisLimits, shards, spreads_experts
from engine.step.layout import machine
from engine.step.legality import leaves_gpus_over

WARM_UPS = 100  # specs below this number are small and dense
MOST_SPECS = 9999

# -- the choices ---------------------------------------------------------------------------------------------
# chips of generations for which training runs are published, so that an estimate can be held against them
GPUS = ("a100-40", "a100-80", "h100-sxm", "h800", "h200", "b200")
SIDES = (0, 1, 2, 3, 4, 5, 2)  # the sides of the die that chooses a chip
SOFTWARE = ("megatron", "torchtitan", "megatron")  # keys of ``abilities``, as the sides of another die
HBM_BYTES = tuple(catalog.gpu(key).hbm_bytes for key in GPUS)
PEAKS = tuple(catalog.gpu(key).peak_flops_per_s("bf16") for key in GPUS)
MOST_MFU = tuple(
    tuple((bands.seen(key, moe) or bands.seen(key, False))["most_mfu"]["bf16"] for key in GPUS)
    for moe in (False, True)
)  # the highest MFU of a published run of the chip's generation, dense and with experts (else dense)
# hidden width, fewest and most layers, as in published families from Llama 3.2 1B to Llama 3.1 405B
DENSE = (
    (2048, 16, 28),
    (3072, 24, 36),
    (4096, 28, 40),
    (5120, 40, 64),
    (6144, 40, 60),
    (8192, 60, 88),
    (12288, 80, 100),
    (16384, 96, 128),
)
SMALL_WIDTHS = 3
FFN_SHARES = (2.75, 3.0, 3.25, 3.5, 4.0)  # relative to the hidden width
# experts, experts per token, width of one relative to the hidden width: Mixtral, DBRX, DeepSeek-V2, Qwen3,
# DeepSeek-V3
MOE = ((8, 2, 3.5), (16, 4, 1.75), (64, 6, 0.375), (128, 8, 0.375), (256, 8, 0.25))
MOE_WIDTHS = ((2048, 24, 48), (4096, 32, 64), (5120, 40, 60), (6144, 40, 60), (7168, 56, 64))
VOCABULARIES = (32000, 50304, 65536, 100352, 128256, 151936, 202048)
HEAD_DIM = 128
SEQUENCES = (2048, 4096, 4096, 8192, 8192, 8192, 16384, 32768, 131072)
STATE_BYTES, ROOM = 16, 1.4  # per parameter; the smallest cluster's HBM over the state
DOUBLINGS = (
    0,
    0,
    1,
    2,
    3,
    4,
    5,
    6,
)  # cluster sizes over the smallest one: on small clusters HBM is scarce, on large ones bandwidth is
MOST_GPUS = 16384
TOKENS = (0.1e12, 0.2e12, 0.5e12, 1e12, 2e12, 3e12, 5e12, 8e12, 12e12, 15e12)
SHARES_ALL = SOFTWARE.index("torchtitan")
FEW = 8  # a step with fewer sequences than this cannot use many replicas
KEYS = tuple(float(list(abilities()).index(key)) for key in SOFTWARE)
LEHMER, PRIME = 48271, 2147483647  # constants of the random generator; its products are exact in doubles


def roll(dice: list[float], sides: int) -> int:
    """A whole number from 0 to sides − 1; ``dice`` holds the state of the Lehmer generator."""
    dice[0] = dice[0] * LEHMER % PRIME
    return math.floor(dice[0] * sides / PRIME)


def between(dice: list[float], low: int, high: int, step: int) -> int:
    """A random number among low, low + step, …, high."""
    return low + step * roll(dice, math.floor((high - low) / step) + 1)


def next_power_of_two(value: float) -> int:
    """The smallest power of two that is not below a value."""
    power = 1
    while power < value:
        power *= 2
    return power


@program(
    software=(),
    layers=(),
    hidden=(),
    heads=(),
    kv_heads=(),
    ffn=(),
    vocab=(),
    experts=(),
    top_k=(),
    expert_ffn=(),
    gpu=(),
    gpus=(),
    batch=(),
    seq=(),
    tokens=(),
)
def drawn(seed: float) -> dict[str, Any]:
    """A spec's sizes. Numbers of GPUs, experts and sequences are powers of two, so that every axis can be
    halved."""
    dice = [(seed * LEHMER + 12345) % PRIME]
    roll(dice, 2)  # discarded, because neighbouring seeds begin with similar numbers
    roll(dice, 2)
    small = seed < WARM_UPS
    moe = not small and roll(dice, 2)
    if moe:
        width = MOE_WIDTHS[roll(dice, len(MOE_WIDTHS))]
        kind = MOE[roll(dice, len(MOE))]
        experts, top_k, expert_ffn, ffn = kind[0], kind[1], float(kind[2]) * width[0], 0
    else:
        width = DENSE[
            roll(dice, SMALL_WIDTHS) if small else max(roll(dice, len(DENSE)), roll(dice, len(DENSE)))
        ]
        experts, top_k, expert_ffn = 0, 0, 0.0
        ffn = FFN_SHARES[roll(dice, len(FFN_SHARES))] * width[0]
    hidden, layers = width[0], between(dice, width[1], width[2], 4)
    heads = hidden / HEAD_DIM
    kv_heads = 8 if roll(dice, 4) else heads
    vocab = VOCABULARIES[roll(dice, len(VOCABULARIES))]
    matrices = 2 * hidden * (heads + kv_heads) * HEAD_DIM
    params = layers * (matrices + 3.0 * hidden * (ffn + experts * expert_ffn)) + 2 * vocab * hidden
    active = layers * (matrices + 3.0 * hidden * (ffn + top_k * expert_ffn)) + 2 * vocab * hidden

    side = roll(dice, len(SIDES) + 1)
    gpu = SIDES[side if side < len(SIDES) else roll(dice, len(SIDES))]
    least = next_power_of_two(STATE_BYTES * params * ROOM / HBM_BYTES[int(gpu)])
    if small:
        gpus = max(8, least * 2 ** between(dice, 0, 2, 1))
    else:
        gpus = min(max(64, least * 2 ** DOUBLINGS[roll(dice, len(DOUBLINGS))]), max(MOST_GPUS, least))
    seq = SEQUENCES[roll(dice, 6 if small else len(SEQUENCES))]
    batch_tokens = min(max(gpus * 2 ** between(dice, 8, 13, 1), 2**19), 2**26)
    batch = max(batch_tokens / seq, 4)
    days = between(dice, 10, 90, 10)  # about the duration of the run at 40 % of the peak
    place = 0
    while (
        place + 1 < len(TOKENS) and 6 * active * TOKENS[place + 1] < 0.4 * gpus * PEAKS[int(gpu)] * days * DAY
    ):
        place += 1
    software = KEYS[roll(dice, len(KEYS))]
    if batch < FEW:  # long sequences on a small cluster: ZeRO 1 has too few replicas to share the state
        software = KEYS[SHARES_ALL]
    return {
        "software": 1.0 + software,
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "ffn": ffn,
        "vocab": vocab,
        "experts": experts,
        "top_k": top_k,
        "expert_ffn": expert_ffn,
        "gpu": gpu,
        "gpus": gpus,
        "batch": batch,
        "seq": seq,
        "tokens": TOKENS[int(place)],
    }


MACHINES = tuple(machine(catalog.gpu(key)) for key in GPUS)


def spec(seed: Real) -> Spec:
    """The spec with this number."""
    d = drawn(seed)
    sizes = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "experts", "top_k", "expert_ffn")
    model = described("drawn", "drawn", head_dim=HEAD_DIM, **{name: d[name] for name in sizes})
    return Spec(
        model,
        ops.select(d["gpu"], MACHINES),
        catalog.recipe("bf16-adam"),
        d["gpus"],
        d["batch"],
        d["seq"],
        d["tokens"],
        d["software"],
        ops.where(d["experts"] > 0, *(cases.entry(MOST_MFU[moe], d["gpu"]) for moe in (True, False))),
    )


def case(job: Spec) -> Case:
    """The spec's job for the planner, within what its software can run."""
    return missions.case(job)._replace(within=AxisLimits(job.software, able=tuple(abilities().values())))


# -- the layouts ---------------------------------------------------------------------------------------------
class ChosenLayout(NamedTuple):
    """The reader's choices: one layout, or several as columns. The schedule, and whether tensor ranks also
    split experts, are chosen by the program."""

    tp: Real
    pp: Real
    cp: Real
    ep: Real
    zero: Real
    micro_batch: Real
    recompute: Real


def crosses(job: Spec, *axes: Real) -> list[Truth]:
    """How the pipeline, data, context and tensor groups of a mesh (tp, pp, cp) communicate, in the form of
    ``cases.crosses``."""
    tp, pp, cp, dp = (np.stack([axis]) for axis in (*axes, missions.data_ranks(job, *axes)))
    nothing = Layouts(*[None] * len(Layouts._fields))
    return cases.crosses(case(job), nothing._replace(tp=tp, pp=pp, cp=cp, dp=dp))


FAULTS = (*missions.FAULTS, "the software must be able to run it")


def faults(job: Spec, a: ChosenLayout) -> Truth:
    """Which of ``missions.FAULTS`` choices have under the simplest schedule, which makes the fewest
    demands."""
    return missions.faults(
        job,
        Layouts(a.tp, a.pp, a.cp, a.ep, 1.0, 1.0, a.zero, a.micro_batch, a.recompute, PLAIN_SCHEDULE, 1.0),
    )


def refused(job: Spec, a: ChosenLayout) -> Real:
    """The reason why the software cannot run a choice, by number: 0 its ZeRO stages, 1 the heads of keys and
    values, 2 the split of the layers, 3 the ranks of the experts, whether or not tensor ranks split them."""
    dp = missions.data_ranks(job, a.tp, a.pp, a.cp)
    axes = SimpleNamespace(dp=dp, cp=a.cp, pp=a.pp, zero=a.zero, tp=a.tp, ep=a.ep)
    stages, heads, experts = 0.0 > 1.0, 0.0 > 1.0, 0.0 > 1.0
    for place, able in enumerate(abilities().values(), start=1):
        named = job.software == float(place)
        stages = stages | (named & ~shards(able, axes))
        whole, cut = (
            spreads_experts(able, job.model.experts, SimpleNamespace(**vars(axes), expert_tp=ways))
            for ways in (1.0 + 0.0 * a.tp, a.tp)
        )
        experts = experts | (named & ~(whole | cut))
        if able.cuts_models:
            heads = heads | (named & (job.model.kv_heads % a.tp != 0))
    return ops.where(stages, 0.0, ops.where(heads, 1.0, ops.where(experts, 3.0, 2.0)))


class Completed(NamedTuple):
    """Choices with the settings that make them fastest among those that fit, or smallest in memory if none
    does. All are columns."""

    layouts: Layouts
    runs: Truth  # whether the software can run it under some schedule
    step_s: Real  # the step of the fastest setting that fits; NO_CEILING where none does


def completed(job: Spec, choices: ChosenLayout, legal: Truth) -> Completed:
    """Several choices, completed; pure data parallelism for those that are not legal."""
    ones = 1.0 + 0.0 * choices.tp
    tp, pp, cp, ep = (ops.where(legal, axis, ones) for axis in choices[:4])
    dp = missions.data_ranks(job, tp, pp, cp)
    cut = ops.where((job.model.experts > 0) & ~leaves_gpus_over(job.gpus / pp, ep * tp), tp, ones)
    # without replicas there is nothing that a ZeRO stage would shard
    fixed = choices._asdict() | {"zero": ops.where(dp * cp > 1.0, choices.zero, 0.0 * ones)}
    cuts = {"tp": tp, "pp": pp, "cp": cp, "ep": ep, "expert_tp": ones, "dp": dp}
    cuts |= {f"only_{name}": fixed[name] for name in page_search.FIXABLE}
    twice = {name: np.append(column, column) for name, column in cuts.items()}
    found = page_search.contests(case(job), twice | {"expert_tp": np.append(ones, cut)})
    halves = [slice(None, len(ones)), slice(len(ones), None)]
    fits = found["fastest"].count > 0
    fits_either = fits[halves[0]] | fits[halves[1]]
    of_both = np.append(fits_either, fits_either)
    cost = ops.where(of_both, found["fastest"].cost, found["leanest"].cost)
    cost = ops.where(np.isfinite(cost), cost, NO_CEILING)
    cell = ops.where(of_both, found["fastest"].cell, found["leanest"].cell)
    whole, in_parts = (cost[half] for half in halves)
    second = in_parts < whole
    schedule = np.remainder(ops.where(second, *(cell[half] for half in halves[::-1])), len(cases.CHUNKS))
    schedule = ops.where(np.isfinite(schedule), schedule, PLAIN_SCHEDULE)
    runs = found["leanest"].count > 0
    return Completed(
        Layouts(
            tp,
            pp,
            cp,
            ep,
            ops.where(second, cut, ones),
            dp,
            choices.zero,
            choices.micro_batch,
            choices.recompute,
            schedule,
            cases.chunks_of(schedule),
        ),
        runs[halves[0]] | runs[halves[1]],
        ops.where(fits_either, np.minimum(whole, in_parts), NO_CEILING),
    )


def best(job: Spec, asked: Truth) -> Layouts:
    """The planner's winner if ``asked``; otherwise pure data parallelism, without a search."""
    found = planner.found(case(job)._replace(gpus=job.gpus * asked)).layouts
    plain = Layouts(1.0, 1.0, 1.0, 1.0, 1.0, job.gpus, 0.0, 1.0, 0.0, PLAIN_SCHEDULE, 1.0)
    return Layouts(
        *(ops.where(np.isfinite(column[0]), column[0], value) for column, value in zip(found, plain))
    )


# -- their costs ---------------------------------------------------------------------------------------------
RESOURCES = ("arithmetic", "HBM", "in-node link", "network", "pipeline bubble")
LEAST_SHARE = 0.05  # arithmetic counts as this share: another resource binds only if it costs more


class Paper(NamedTuple):
    """The result of an examination that a reader has handed in: the costs of the reader's and of the
    planner's layout, and further results for the planner's."""

    legal: Truth
    fault: Real  # index into FAULTS
    fits: Truth
    layouts: Layouts  # columns: the reader's and the planner's
    step_s: Real  # of both layouts, and of the planner's without recomputation
    times_s: Real  # by layout and ``cases.TERMS``
    parts_bytes: Real  # by layout and ``cases.PARTS``
    ratio: Real  # the reader's step over ``asked_s``
    lost_by: Real  # the term of ``cases.TERMS`` on which the reader's step loses most …
    lost_s: Real  # … and how much
    blamed: Real  # index into CHANGES of the choice that costs most by itself; len(CHANGES) if none does
    instead: Real  # the planner's value of a single choice …
    instead_s: Real  # … and the step that the reader's layout would take with it
    losses: Real  # the share of the planner's step that each of RESOURCES[1:] costs
    binding: Real  # index into RESOURCES
    asked_s: Real  # the step to reach: the planner's, or a slower one so that no run beats the published MFU
    days: Real  # duration of the run with steps of ``asked_s``
    mfu: Real  # of both layouts, and at ``asked_s``


def paper(job: Spec, choice: ChosenLayout, asked: Truth) -> Paper:
    """The costs and results of both layouts."""
    planners = best(job, asked)
    choices = exchanged(choice, planners)
    broken = faults(job, choices)
    can_be_built = ~np.any(broken, axis=0)
    found = completed(job, choices, can_be_built)
    runs = can_be_built & found.runs
    legal = runs[0]
    mine = Layouts(*(column[0] for column in found.layouts))
    three = Layouts(*(np.stack([a, b, b]) for a, b in zip(mine, planners)))
    three = three._replace(recompute=np.stack([mine.recompute, planners.recompute, 0.0 * planners.recompute]))
    cost = cases.costs(case(job), three)
    losses, slower_s = losses_of(job, planners, cost), cost.times_s[0] - cost.times_s[1]
    run_flops = cases.model_flops_per_token(case(job)) * job.step_tokens
    peaks = job.gpus * job.at.peak_flops_per_s
    asked_s = np.maximum(cost.step_s[1], run_flops / (peaks * job.most_mfu))
    changed_s = np.where(runs, found.step_s, NO_CEILING)[1:]
    alone, pairs = (changed_s[part] for part in (slice(None, ALONE), slice(ALONE, None)))
    limit_s = cost.step_s[0] * (1.0 - planner.A_TIE)
    mine_s = cost.step_s[0]
    is_one = (np.min(alone) < limit_s) & (mine_s - np.min(alone) > MOST_OF_IT * (mine_s - np.min(pairs)))
    pair = ops.where(np.min(pairs) < limit_s, ALONE + np.argmin(pairs), float(len(CHANGES)))
    blamed = ops.where(is_one, np.argmin(alone), pair)
    values = np.stack([getattr(planners, name) for name in ChosenLayout._fields])
    return Paper(
        legal,
        ops.where(can_be_built[0], float(len(missions.FAULTS)), np.argmax(broken[:, 0])),
        legal & (cost.total_bytes[0] <= job.hbm_bytes),
        Layouts(*(column[:2] for column in three)),
        cost.step_s,
        cost.times_s,
        cost.parts_bytes,
        cost.step_s[0] / asked_s,
        np.argmax(slower_s),
        np.max(slower_s),
        blamed,
        np.sum(np.where(np.arange(len(values)) == blamed, values, 0.0)),
        ops.where(is_one, np.min(alone), np.min(pairs)),
        losses,
        ops.where(np.max(losses) < LEAST_SHARE, 0.0, 1.0 + np.argmax(losses)),
        asked_s,
        job.tokens / job.step_tokens * asked_s / DAY,
        run_flops / peaks / np.append(cost.step_s[:2], asked_s),
    )


# choices that are replaced by the planner's to see why a step is slow: each choice alone, then pairs of axes
# that can often be traded for each other
PAIRS = (("tp", "pp"), ("pp", "cp"))
CHANGES = (*((name,) for name in ChosenLayout._fields), *PAIRS)
ALONE = len(ChosenLayout._fields)
MOST_OF_IT = 0.5  # a single choice that gains this share of what the best pair gains is named by itself


def is_held_back(found: Paper) -> Truth:
    """True if the planner's step is faster than any published run, so that a slower step is asked for."""
    return found.asked_s > found.step_s[1] * (1.0 + 1e-9)


def exchanged(choice: ChosenLayout, planners: Layouts) -> ChosenLayout:
    """The reader's choice, followed by that choice with each of CHANGES set to the planner's value, as
    columns."""
    return ChosenLayout(
        *(
            np.stack([getattr(planners if name in some else choice, name) for some in ((), *CHANGES)])
            for name in ChosenLayout._fields
        )
    )


def beyond_the_node(job: Spec, found: Paper) -> Truth:
    """For each layout and each of ``cases.TERMS``, whether its traffic leaves the node."""
    return cases.beyond_the_node(case(job), found.layouts)


def losses_of(job: Spec, a: Layouts, cost: cases.LayoutCosts) -> Real:
    """The share of the planner's step that each of RESOURCES[1:] costs. The HBM's cost is recomputation for
    lack of memory, and the optimizer's reads and writes; traffic counts as the network's if a group spans
    several nodes."""
    term = {name: cost.times_s[1][i] for i, name in enumerate(cases.TERMS)}
    again_s = ops.where(a.recompute == FULL, cost.times_s[1][0] - cost.times_s[2][0], 0.0)
    leaves = cases.beyond_the_node(case(job), a)
    sent_s = sum(term[name] for name in cases.SENT)
    network_s = np.sum(ops.where(leaves, cost.times_s[1], 0.0))
    link_s = sent_s - network_s
    return (
        np.stack([again_s + term["optimizer_s"], link_s, network_s, term["pipeline_bubble_s"]])
        / cost.step_s[1]
    )


# -- the points ----------------------------------------------------------------------------------------------
PARTS = ("it can be built", "it fits", "pace", "memory", "what binds", "days")
MOST = (2.0, 3.0, 10.0, 5.0, 5.0, 5.0)
FULL_MARKS = sum(MOST)
PACE = 1.07  # each such factor by which a step is slower than the one asked for costs one point
TOLERANCE = 0.10  # error of an estimate that costs one point
SECOND = 3.0  # points for a resource that costs at least NEAR as much as the one that binds
NEAR = 0.5


def points(found: Paper, said_bytes: Real, said_binding: Real, said_run_s: Real) -> Real:
    """Points by PARTS."""
    return np.stack(
        [
            ops.where(found.legal, MOST[0], 0.0),
            ops.where(found.fits, MOST[1], 0.0),
            ops.where(found.fits, pace_points(found.ratio), 0.0),
            ops.where(found.legal, estimate_points(said_bytes, used_bytes(found)), 0.0),
            binding_points(found, said_binding),
            estimate_points(said_run_s, found.days * DAY),
        ]
    )


def pace_points(ratio: Real) -> Real:
    """The points for the step: one less for each factor of PACE over the step that is asked for, and none at
    twice its time."""
    return np.maximum(0.0, MOST[2] - np.floor(np.log(np.maximum(ratio, 1.0)) / math.log(PACE) + 1e-9))


def estimate_points(said: Real, true: Real) -> Real:
    """The points for an estimate: one less for each tenth by which the larger of estimate and truth exceeds
    the smaller."""
    off = np.maximum(said / true, true / said) - 1.0
    return np.maximum(0.0, MOST[3] - np.floor(off / TOLERANCE + 1e-9))


def binding_points(found: Paper, said: Real) -> Real:
    """All points for the resource that binds; some for one whose cost is at least the share NEAR of the
    binding one's, where arithmetic counts as LEAST_SHARE."""
    shares = np.append(LEAST_SHARE, found.losses)
    chosen = np.sum(np.where(np.arange(len(RESOURCES)) == said, shares, 0.0))
    near = chosen >= NEAR * np.max(shares)
    return ops.where(said == found.binding, MOST[4], ops.where(near, SECOND, 0.0))


def used_bytes(found: Paper) -> Real:
    """Bytes on the fullest GPU with the reader's layout."""
    return np.sum(found.parts_bytes[0])


def shares(found: Paper) -> np.ndarray:
    """The shares of ``cases.TERMS`` in a step with the reader's layout."""
    return np.asarray(found.times_s[0]) / found.step_s[0]


@lru_cache(64)
def by_hand(
    seed: float,
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    ep: int = 1,
    zero: int = 1,
    micro_batch: int = 1,
    recompute: int = 0,
) -> Paper:
    """The result of a layout for a spec, in plain numbers."""
    with check.trusted(), np.errstate(all="ignore"):  # an impossible layout is costed as well, but not shown
        return paper(
            spec(float(seed)), ChosenLayout(*map(float, (tp, pp, cp, ep, zero, micro_batch, recompute))), True
        )


def multiplied_params(job: Spec) -> Real:
    """Parameters that a token is multiplied by: the active ones without the input embedding, which is a
    lookup, and the norms."""
    return flops.matmul_parameters(job.model)


def attention_params(job: Spec) -> Real:
    """The number of parameters whose arithmetic per token equals causal attention's: layers × width ×
    sequence, as width is heads × HEAD_DIM."""
    return flops.attention_flops_per_token(job.model, job.seq) / 2.0


def counted_params(job: Spec) -> Real:
    """The arithmetic of a token, matrices and attention together, expressed in parameters."""
    return multiplied_params(job) + attention_params(job)


def estimate_days(job: Spec, mfu: Real) -> Real:
    """The days that a reader would estimate by hand: 6 FLOPs for each of ``counted_params`` and each token,
    at this share of the peak."""
    run_flops = 6.0 * counted_params(job) * job.tokens
    return run_flops / (job.gpus * job.at.peak_flops_per_s * mfu) / DAY
