"""A layout found by rules of thumb, as one would on paper, and the search with the same tools, for
comparison. Both take only what one of ``engine.frameworks`` can run, as the planner does.

The rules, in order of what they rule out:

1.  Tensor parallelism stays in the node, and a sequence is not cut into pieces of under
    ``search.LEAST_TOKENS`` tokens.
2.  A pipeline is allowed where its bubble, (p − 1)/(v·m), is small; the state is sharded only as far as
    needed to fit; and the traffic of data and context ranks must be hidden behind arithmetic.
3.  Of what remains, the smallest tp²·pp that fits, because tensor ranks cost most, a pipeline less and
    context ranks little. Among equals, fewer tensor ranks. Experts: as many ranks as experts or as the node
    has GPUs, whichever is less.
4.  Where nothing fits, allow a larger bubble; then recomputation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine import catalog
from engine.base import check
from engine.catalog.models import divisors
from engine.frameworks import run_by_some
from engine.mechanism.memory import FULL, NO_RECOMPUTE, RECOMPUTE
from engine.step import search
from engine.step.constraints import Constraints
from engine.step.layout import Estimate, Job, Layout, Machine, estimate, machine, require_legal
from engine.step.layout import written as written
from engine.step.legality import cuts_a_head, cuts_tokens_unevenly, leaves_a_chunk_empty

if TYPE_CHECKING:
    from engine.catalog.models import Model

BUBBLES = (
    0.04,
    0.15,
    0.3,
    float("inf"),
)  # share of the arithmetic: allowed at first, and once nothing fits with so little
EXPOSED = 0.03  # share of the step that exposed network traffic may take
SCHEDULES = ("1f1b", "interleaved")
NAMES = {value: name for name, value in RECOMPUTE.items()}


@dataclass(frozen=True)
class Tools:
    """What the training software of a given time supports."""

    key: str
    name: str
    stages: tuple[int, ...]  # supported ZeRO stages
    context: bool  # context parallelism


TOOLS = {
    tools.key: tools
    for tools in (
        Tools("3d", "whole replicas", (0,), False),
        Tools("zero1", "the optimizer sharded (ZeRO-1)", (0, 1), False),
        Tools("fsdp", "all state sharded (up to ZeRO-3)", (0, 1, 2, 3), False),
        Tools("context", "and context parallelism", (0, 1, 2, 3), True),
    )
}


class SequenceSplit(NamedTuple):
    """How many GPUs work on one sequence, and by which kind of parallelism."""

    tp: int
    pp: int
    cp: int
    ep: int = 1

    @property
    def cost(self) -> tuple:
        """The key by which the rules sort."""
        return self.tp**2 * self.pp, self.tp, self.cp


def split_of(layout: Layout) -> SequenceSplit:
    """The split of a layout, which is what the rules choose."""
    return SequenceSplit(layout.tp, layout.pp, layout.cp, layout.ep)


def _powers_of_two(number: int) -> list[int]:
    return [d for d in divisors(number) if d & (d - 1) == 0]


def splits(model: Model, at: Machine, job: Job, gpus: int, tools: Tools) -> list[SequenceSplit]:
    """Every split that rule 1 allows, in the order of rule 3."""
    node = int(at.wires.gpus_per_node)
    found = []
    for tp in _powers_of_two(gpus):
        for pp in _powers_of_two(gpus // tp):
            for cp in _powers_of_two(gpus // (tp * pp)) if tools.context else [1]:
                long = job.seq // cp >= search.LEAST_TOKENS
                whole = cp == 1 or (long and not cuts_tokens_unevenly(job.seq, cp))
                built = not cuts_a_head(model.heads, tp) and not leaves_a_chunk_empty(model.depth, pp, 1)
                if tp <= node and built and whole:
                    found.append(SequenceSplit(tp, pp, cp, max(1, min(model.experts, node, gpus // pp))))
    return sorted(found, key=lambda split: split.cost)


def chunks(model: Model, pp: int) -> list[int]:
    """The possible numbers of chunks of layers per stage, the largest first."""
    return [
        v
        for v in reversed((1, *search.INTERLEAVES))
        if not leaves_a_chunk_empty(model.depth, pp, v) and (v == 1 or pp > 1)
    ]


def advise(model: Model, at: Machine, job: Job, gpus: int, tools: Tools = TOOLS["context"]) -> Estimate:
    """The layout that the rules lead to, with one sequence per micro-batch; ValueError if not even the last
    attempt fits."""
    check.whole(gpus=gpus)
    candidates = splits(model, at, job, gpus, tools)
    for recompute in (NO_RECOMPUTE, FULL):
        for bubble in BUBBLES:
            for split in candidates:
                found = _fitting(model, at, job, gpus, tools, split, NAMES[recompute], bubble)
                if found:
                    return found
    raise ValueError(f"gpus must be enough for {model.key} with {tools.name}, got {gpus}")


def _fitting(model, at, job, gpus, tools, split, recompute, bubble) -> Estimate | None:
    """Rule 2 for one split: the layout with the lowest ZeRO stage, and of those with the most chunks, that
    fits and hides its traffic; None if there is none."""
    dp = gpus // (split.tp * split.pp * split.cp)
    for stage in tools.stages:
        for v in chunks(model, split.pp):
            if (split.pp - 1) * dp > bubble * v * job.global_batch:
                continue
            layout = Layout(
                gpus,
                split.tp,
                split.pp,
                split.cp,
                split.ep,
                stage,
                1,
                recompute,
                "interleaved" if v > 1 else "1f1b",
                v,
            )
            if not _built(model, job, tools, layout):
                continue
            found = estimate(model, at, job, layout)
            if found.fits and _hidden(found):
                return found
    return None


def _built(model: Model, job: Job, tools: Tools, layout: Layout) -> bool:
    """Whether the layout is legal, and one of the frameworks can run it with these tools."""
    try:
        require_legal(model, job, layout)
    except ValueError:
        return False
    return _within(tools, None).allows(model, layout, job)


def _hidden(found: Estimate) -> bool:
    """Whether the exposed traffic of data and context ranks is at most EXPOSED of the step."""
    return max(found.time_s["data_exposed"], found.time_s["context"]) <= EXPOSED * found.step_s


def fastest(
    model: Model,
    at: Machine,
    job: Job,
    gpus: int,
    tools: Tools = TOOLS["context"],
    only: SequenceSplit | None = None,
) -> Estimate:
    """The search's winner among all layouts that the tools support and a framework can run, or among those of
    one split."""
    check.whole(gpus=gpus)
    found = search.plan(model, at, job, gpus, top=1, within=_within(tools, only)).best
    if not found.fits:
        raise ValueError(f"gpus must be enough for {model.key} with {tools.name}, got {gpus}")
    return found


def _within(tools: Tools, only: SequenceSplit | None) -> Constraints:
    """The constraints that leave what the tools support, of all splits or of one."""
    free = replace(
        run_by_some(), zero=tools.stages, schedules=SCHEDULES, cp=None if tools.context else (1, 1)
    )
    if only is None:
        return free
    return replace(
        free, **{name: (size, size) for name, size in only._asdict().items() if tools.context or name != "cp"}
    )


@dataclass(frozen=True)
class AdviceVerdict:
    """The rules' layout and the search's, both tuned in micro-batch, stage, chunks and recomputation."""

    tools: Tools
    rules: Estimate
    search: Estimate

    @property
    def agree(self) -> bool:
        """Whether the rules and the search choose the same split."""
        return split_of(self.rules.layout) == split_of(self.search.layout)

    @property
    def slower_by(self) -> float:
        """How much slower the rules' layout is."""
        return self.rules.step_s / self.search.step_s - 1.0

    @property
    def lost_by(self) -> str:
        """The term on which the rules' layout loses most."""
        return search.lost_by(self.search, self.rules)["lost_by"] if not self.agree else "nothing"


def verdict(model: Model, at: Machine, job: Job, gpus: int, tools: Tools = TOOLS["context"]) -> AdviceVerdict:
    """Which layout is faster, the rules' or the search's, and by how much."""
    advised = advise(model, at, job, gpus, tools)
    return AdviceVerdict(
        tools,
        fastest(model, at, job, gpus, tools, split_of(advised.layout)),
        fastest(model, at, job, gpus, tools),
    )


def tuned(
    model: str,
    gpus: int,
    global_batch: int,
    seq: int,
    tools: str = "context",
    only: SequenceSplit | None = None,
    gpu: str = "h100-sxm",
) -> Estimate:
    """``fastest`` by names, for a lesson's tables."""
    return fastest(
        catalog.model(model), machine(catalog.gpu(gpu)), Job(global_batch, seq), gpus, TOOLS[tools], only
    )


@lru_cache(64)
def judged(
    model: str, gpus: int, global_batch: int, seq: int, tools: str = "context", gpu: str = "h100-sxm"
) -> AdviceVerdict:
    """``verdict`` by names."""
    return verdict(
        catalog.model(model), machine(catalog.gpu(gpu)), Job(global_batch, seq), gpus, TOOLS[tools]
    )
