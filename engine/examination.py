"""The closing examination: a training job drawn from a number, a layout and estimates for it, and the points they earn.

A spec is drawn by an ``engine.program``, so that a page draws the same one. Layouts are costed and searched by the
planner's own model of a step. Everything works on numbers and on symbols.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from engine import catalog, check, flops, missions, models, ops, planner
from engine.layout import Machine, machine
from engine.memory import FULL
from engine.missions import NO_CEILING, PLAIN_SCHEDULE
from engine.models import Model
from engine.planner import Layouts
from engine.program import program
from engine.units import DAY

WARM_UPS = 100              # specs below this number are small and dense
MOST_SPECS = 9999

# -- what is drawn from ------------------------------------------------------------------------------------------------
GPUS = ("a100-40", "a100-80", "h100-sxm", "h800", "h200", "b200", "mi300x", "l40s")
HBM_BYTES = tuple(catalog.gpu(key).hbm_bytes for key in GPUS)
PEAKS = tuple(catalog.gpu(key).peak_flops_per_s("bf16") for key in GPUS)
SLOW_WIRES = GPUS.index("l40s")
# hidden width, fewest layers and most, as published families have them: from Llama 3.2 1B to Llama 3.1 405B
DENSE = ((2048, 16, 28), (3072, 24, 36), (4096, 28, 40), (5120, 40, 64), (6144, 40, 60), (8192, 60, 88), (12288, 80, 100),
         (16384, 96, 128))
SMALL_WIDTHS = 3
FFN_SHARES = (2.75, 3.0, 3.25, 3.5, 4.0)        # of the hidden width
# experts, of which a token meets, the width of one as a share of the hidden width: Mixtral, DBRX, DeepSeek-V2, Qwen3, DeepSeek-V3
MOE = ((8, 2, 3.5), (16, 4, 1.75), (64, 6, 0.375), (128, 8, 0.375), (256, 8, 0.25))
MOE_WIDTHS = ((2048, 24, 48), (4096, 32, 64), (5120, 40, 60), (6144, 40, 60), (7168, 56, 64))
VOCABULARIES = (32000, 50304, 65536, 100352, 128256, 151936, 202048)
HEAD_DIM = 128
SEQUENCES = (2048, 4096, 4096, 8192, 8192, 8192, 16384, 32768, 131072)
STATE_BYTES, ROOM = 16, 1.4                      # of a parameter; times the state that the least cluster holds
DOUBLINGS = (0, 0, 1, 2, 3, 4, 5, 6)            # of the least cluster: tight ones show what the HBM costs, wide ones the wires
MOST_GPUS = 16384
TOKENS = (0.1e12, 0.2e12, 0.5e12, 1e12, 2e12, 3e12, 5e12, 8e12, 12e12, 15e12)
LEHMER, PRIME = 48271, 2147483647               # exact in doubles


def roll(dice, sides):
    """A whole number from 0 to sides − 1; ``dice`` holds the state of the Lehmer generator."""
    dice[0] = dice[0] * LEHMER % PRIME
    return math.floor(dice[0] * sides / PRIME)


def between(dice, low, high, step):
    """One of low, low + step, … high."""
    return low + step * roll(dice, math.floor((high - low) / step) + 1)


def next_power_of_two(value):
    """The least that is not below a value."""
    power = 1
    while power < value:
        power *= 2
    return power


@program(layers=(), hidden=(), heads=(), kv_heads=(), ffn=(), vocab=(), experts=(), top_k=(), expert_ffn=(), gpu=(),
         gpus=(), batch=(), seq=(), tokens=())
def drawn(seed):
    """A spec's sizes. Numbers of GPUs, experts and sequences are powers of two, so that every axis can be cut in halves."""
    dice = [(seed * LEHMER + 12345) % PRIME]
    roll(dice, 2)                               # neighbouring seeds begin alike
    roll(dice, 2)
    small = seed < WARM_UPS
    moe = not small and roll(dice, 2)
    if moe:
        width = MOE_WIDTHS[roll(dice, len(MOE_WIDTHS))]
        kind = MOE[roll(dice, len(MOE))]
        experts, top_k, expert_ffn, ffn = kind[0], kind[1], kind[2] * width[0], 0
    else:
        width = DENSE[roll(dice, SMALL_WIDTHS) if small else max(roll(dice, len(DENSE)), roll(dice, len(DENSE)))]
        experts, top_k, expert_ffn = 0, 0, 0
        ffn = FFN_SHARES[roll(dice, len(FFN_SHARES))] * width[0]
    hidden, layers = width[0], between(dice, width[1], width[2], 4)
    heads = hidden / HEAD_DIM
    kv_heads = 8 if roll(dice, 4) else heads
    vocab = VOCABULARIES[roll(dice, len(VOCABULARIES))]
    matrices = 2 * hidden * (heads + kv_heads) * HEAD_DIM
    params = layers * (matrices + 3 * hidden * (ffn + experts * expert_ffn)) + 2 * vocab * hidden
    active = layers * (matrices + 3 * hidden * (ffn + top_k * expert_ffn)) + 2 * vocab * hidden

    gpu = roll(dice, len(PEAKS))
    if gpu == SLOW_WIRES and params > 15e9:     # nobody takes cards without NVLink for more
        gpu = roll(dice, len(PEAKS) - 1)
    least = next_power_of_two(STATE_BYTES * params * ROOM / HBM_BYTES[int(gpu)])
    if small:
        gpus = max(8, least * 2 ** between(dice, 0, 2, 1))
    else:
        gpus = min(max(64, least * 2 ** DOUBLINGS[roll(dice, len(DOUBLINGS))]), max(MOST_GPUS, least))
    seq = SEQUENCES[roll(dice, 6 if small else len(SEQUENCES))]
    batch_tokens = min(max(gpus * 2 ** between(dice, 8, 13, 1), 2 ** 19), 2 ** 26)
    batch = max(batch_tokens / seq, 4)
    days = between(dice, 10, 90, 10)            # about what the run may take, at 40 % of the peak
    place = 0
    while place + 1 < len(TOKENS) and 6 * active * TOKENS[place + 1] < 0.4 * gpus * PEAKS[int(gpu)] * days * DAY:
        place += 1
    return {"layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "vocab": vocab,
            "experts": experts, "top_k": top_k, "expert_ffn": expert_ffn, "gpu": gpu, "gpus": gpus, "batch": batch,
            "seq": seq, "tokens": TOKENS[int(place)]}


class Spec(NamedTuple):
    """A job to lay out, with the names that ``missions`` reads."""

    model: Model
    at: Machine
    recipe: object
    gpus: float
    batch: float                    # sequences of a step
    seq: float
    tokens: float                   # of the run

    @property
    def hbm_bytes(self):
        """Of one GPU."""
        return self.at.gpu.hbm_bytes

    @property
    def step_tokens(self):
        """Tokens of a step."""
        return self.batch * self.seq

    @property
    def params(self):
        """Of the whole model."""
        return models.parameters(self.model)

    @property
    def active_params(self):
        """That a token meets."""
        return models.active_parameters(self.model)


MACHINES = tuple(machine(catalog.gpu(key)) for key in GPUS)


def spec(seed) -> Spec:
    """The spec of a number."""
    d = drawn(seed)
    sizes = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "experts", "top_k", "expert_ffn")
    model = Model("drawn", "drawn", head_dim=HEAD_DIM, **{name: d[name] for name in sizes})
    return Spec(model, ops.pick(d["gpu"], MACHINES), catalog.recipe("bf16-adam"), d["gpus"], d["batch"], d["seq"], d["tokens"])


# -- the layouts -------------------------------------------------------------------------------------------------------
class Choice(NamedTuple):
    """What a reader chooses; the schedule, and whether experts are cut by tensor ranks too, are chosen for them."""

    tp: float
    pp: float
    cp: float
    ep: float
    zero: float
    micro_batch: float
    recompute: float


def mesh_ranks(tp, pp, cp):
    """GPUs of one replica."""
    return tp * pp * cp


def data_ranks(job: Spec, tp, pp, cp):
    """What the other axes leave of the GPUs; below one where they ask for more than there are."""
    return job.gpus / mesh_ranks(tp, pp, cp)


def crosses(job: Spec, *axes) -> list:
    """How pipeline, data, context and tensor groups of a mesh (tp, pp, cp) send, as ``planner.crosses`` has it."""
    tp, pp, cp, dp = (np.stack([axis]) for axis in (*axes, data_ranks(job, *axes)))
    return planner.crosses(missions.case(job), Layouts(tp, pp, cp, *[None] * 2, dp, *[None] * 5))


def faults(job: Spec, a: Choice):
    """Which of ``missions.FAULTS`` a choice has under the plainest schedule, which the others ask more than."""
    return missions.faults(job, Layouts(a.tp, a.pp, a.cp, a.ep, 1.0, 1.0, a.zero, a.micro_batch, a.recompute, PLAIN_SCHEDULE, 1.0))


def completed(job: Spec, a: Choice, legal) -> Layouts:
    """The choice with what makes it fastest of those that fit, or leanest where none does; all on data ranks where not legal."""
    tp, pp, cp, ep = (ops.where(legal, axis, 1.0) for axis in (a.tp, a.pp, a.cp, a.ep))
    dp = data_ranks(job, tp, pp, cp)
    may_cut = (job.model.experts > 0) & ((job.gpus / pp) % (ep * tp) == 0)
    expert_tps = np.stack([1.0 + 0.0 * tp, ops.where(may_cut, tp, 1.0)])
    same = {"tp": tp, "pp": pp, "cp": cp, "ep": ep, "dp": dp, "zero": a.zero, "micro_batch": a.micro_batch, "recompute": a.recompute}
    rows = {name: np.stack([value, value]) for name, value in same.items()} | {"expert_tp": expert_tps}
    found = planner.contests(missions.case(job), rows, [planner.EVERY_SCHEDULE])
    fits = np.sum(found["fastest"].count) > 0
    cost = ops.where(fits, found["fastest"].cost, found["leanest"].cost)
    cost = ops.where(np.isfinite(cost), cost, NO_CEILING)
    cell = ops.where(fits, found["fastest"].cell, found["leanest"].cell)
    second = cost[1] < cost[0]
    schedule = ops.where(second, cell[1], cell[0])
    schedule = ops.where(np.isfinite(schedule), schedule, PLAIN_SCHEDULE)
    return Layouts(tp, pp, cp, ep, ops.where(second, expert_tps[1], expert_tps[0]), dp, a.zero, a.micro_batch, a.recompute,
                   schedule, planner.chunks_of(schedule))


def best(job: Spec, asked) -> Layouts:
    """The planner's winner where it is asked for; else nothing is searched, and all GPUs are data ranks."""
    found = planner.found(missions.case(job)._replace(gpus=job.gpus * asked)).layouts
    plain = Layouts(1.0, 1.0, 1.0, 1.0, 1.0, job.gpus, 0.0, 1.0, 0.0, PLAIN_SCHEDULE, 1.0)
    return Layouts(*(ops.where(np.isfinite(column[0]), column[0], value) for column, value in zip(found, plain)))


# -- what they cost ----------------------------------------------------------------------------------------------------
RESOURCES = ("arithmetic", "HBM", "in-node link", "network", "pipeline bubble")
LEAST_SHARE = 0.05              # of a step that a resource must cost to bind it before arithmetic, which counts as that much


class Paper(NamedTuple):
    """A handed-in examination with the planner's answer: what both layouts cost, and what holds for the better one."""

    legal: object
    fault: object               # index into ``missions.FAULTS``
    fits: object
    layouts: Layouts            # columns: the reader's, the planner's
    step_s: object              # of both, and of the planner's if nothing were computed again
    times_s: object             # by layout and ``planner.TERMS``
    parts_bytes: object         # by layout and ``planner.PARTS``
    ratio: object               # the reader's step over the planner's
    lost_by: object             # the term of ``planner.TERMS`` on which the reader's step loses most …
    lost_s: object              # … and how much
    losses: object              # of the planner's step by RESOURCES[1:], as shares
    binding: object             # index into RESOURCES
    days: object                # of the run under the planner's layout
    mfu: object                 # of both


def paper(job: Spec, choice: Choice, asked) -> Paper:
    """Both layouts, side by side."""
    broken = faults(job, choice)
    legal = ~np.any(broken)
    mine, planners = completed(job, choice, legal), best(job, asked)
    three = Layouts(*(np.stack([a, b, b]) for a, b in zip(mine, planners)))
    three = three._replace(recompute=np.stack([mine.recompute, planners.recompute, 0.0 * planners.recompute]))
    cost = planner.costs(missions.case(job), three)
    losses, slower_s = losses_of(job, planners, cost), cost.times_s[0] - cost.times_s[1]
    flops_per_s = planner.model_flops_per_token(missions.case(job)) * job.step_tokens / cost.step_s[:2]
    return Paper(
        legal, np.argmax(broken), legal & (cost.total_bytes[0] <= job.hbm_bytes),
        Layouts(*(column[:2] for column in three)), cost.step_s, cost.times_s, cost.parts_bytes, cost.step_s[0] / cost.step_s[1],
        np.argmax(slower_s), np.max(slower_s), losses,
        ops.where(np.max(losses) < LEAST_SHARE, 0.0, 1.0 + np.argmax(losses)),
        job.tokens / job.step_tokens * cost.step_s[1] / DAY, flops_per_s / (job.gpus * job.at.peak_flops_per_s))


def losses_of(job: Spec, a: Layouts, cost):
    """What each of RESOURCES[1:] costs the planner's step, as a share of it. The HBM costs what is computed again for want of
    room and what the optimizer reads and writes; traffic is the network's where a group has members in several nodes."""
    term = {name: cost.times_s[1][i] for i, name in enumerate(planner.TERMS)}
    again_s = ops.where(a.recompute == FULL, cost.times_s[1][0] - cost.times_s[2][0], 0.0)
    node = job.at.wires.gpus_per_node
    reach = {"tensor_s": a.tp, "context_s": a.tp * a.cp, "expert_s": a.ep * a.expert_tp, "data_exposed_s": a.tp * a.cp * a.dp,
             "other_s": a.tp * a.cp * a.dp * a.pp}
    network_s = sum(ops.where(size > node, term[name], 0.0) for name, size in reach.items())
    link_s = sum(term[name] for name in reach) - network_s
    return np.stack([again_s + term["optimizer_s"], link_s, network_s, term["pipeline_bubble_s"]]) / cost.step_s[1]


# -- the points --------------------------------------------------------------------------------------------------------
PARTS = ("it can be built", "it fits", "pace", "memory", "what binds", "days")
MOST = (2.0, 3.0, 10.0, 5.0, 5.0, 5.0)
FULL_MARKS = sum(MOST)
PACE = 1.07                     # times the planner's step that cost a point
TOLERANCE = 0.10                # of an estimate that costs a point
SECOND = 3.0                    # points for a resource that costs NEAR as much as the first; so near the edge arithmetic has some
NEAR = 0.5


def points(found: Paper, said_bytes, said_binding, said_days):
    """Points by PARTS."""
    return np.stack([
        ops.where(found.legal, MOST[0], 0.0), ops.where(found.fits, MOST[1], 0.0),
        ops.where(found.fits, pace_points(found.ratio), 0.0),
        ops.where(found.legal, estimate_points(said_bytes, used_bytes(found)), 0.0),
        binding_points(found, said_binding), estimate_points(said_days, found.days)])


def pace_points(ratio):
    """One less for each PACE times the planner's step: none is left at twice its time."""
    return np.maximum(0.0, MOST[2] - np.floor(np.log(np.maximum(ratio, 1.0)) / math.log(PACE) + 1e-9))


def estimate_points(said, true):
    """One less for each tenth that the larger of the two is more than the smaller."""
    off = np.maximum(said / true, true / said) - 1.0
    return np.maximum(0.0, MOST[3] - np.floor(off / TOLERANCE + 1e-9))


def binding_points(found: Paper, said):
    """All for the resource that binds; some for one that costs at least NEAR as much, arithmetic as if it cost LEAST_SHARE."""
    shares = np.append(LEAST_SHARE, found.losses)
    chosen = np.sum(np.where(np.arange(len(RESOURCES)) == said, shares, 0.0))
    near = chosen >= NEAR * np.max(shares)
    return ops.where(said == found.binding, MOST[4], ops.where(near, SECOND, 0.0))


def used_bytes(found: Paper):
    """On the fullest GPU of the reader's layout."""
    return np.sum(found.parts_bytes[0])


@lru_cache(64)
def by_hand(seed, tp=1, pp=1, cp=1, ep=1, zero=1, micro_batch=1, recompute=0) -> Paper:
    """The paper of a spec with a layout, in plain numbers."""
    with check.trusted(), np.errstate(all="ignore"):    # a layout that cannot be built is costed as well, and not shown
        return paper(spec(float(seed)), Choice(*map(float, (tp, pp, cp, ep, zero, micro_batch, recompute))), True)


def multiplied_params(job: Spec):
    """That a token is multiplied by: what it meets, less the input embedding, where it looks up a row, and the norms."""
    return flops.matmul_parameters(job.model)


def attention_params(job: Spec):
    """Parameters that would cost a token what causal attention does: layers × width × sequence, as width is heads × HEAD_DIM."""
    return flops.attention_flops_per_token(job.model, job.seq) / 2.0


def estimate_days(job: Spec, mfu):
    """What a reader works out: 6 FLOPs for each of those and each token, at that share of the peak."""
    run_flops = 6.0 * (multiplied_params(job) + attention_params(job)) * job.tokens
    return run_flops / (job.gpus * job.at.peak_flops_per_s * mfu) / DAY
