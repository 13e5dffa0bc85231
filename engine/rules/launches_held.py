"""The rules of lessons 13, 16 and 19 that are held against times measured on a GPU, or against a simulated
queue of launches."""

from __future__ import annotations

from engine import catalog
from engine.one_gpu import capture, own_timings
from engine.rules.held import HeldRule

TIMED = tuple(row for kind in ("matmul", "add") for row in own_timings.launches(kind) if row.device == "H100")
GELU = tuple(each for _, apart, fused in own_timings.gelu() for each in (apart, fused))
SIDES = [row.side for row in TIMED]
ELEMENTS = [elements for elements, _, _ in own_timings.gelu()]
CASES = (
    ("llama3-8b", "h100-sxm", 1),
    ("llama3-70b", "h100-sxm", 8),
    ("llama3-70b", "b200", 8),
    ("llama3.2-1b", "b200", 1),
)


def queued(case: tuple[str, str, int], batch: int) -> tuple:
    """The arguments of a decode step whose kernels are issued one by one."""
    key, gpu, tp = case
    return "eager", catalog.model(key), catalog.gpu(gpu), tp, batch


RULES = (
    HeldRule(
        "13-pytorch-internals",
        "rule-the-slower-lane-sets-the-pace",
        lambda timed: timed.longer_s,
        lambda timed: timed.loop_s,
        {"timed": TIMED},
        f"matrices of {min(SIDES):,} to {max(SIDES):,} a side",
        f"{len(TIMED)} loops of alike operators, timed on an H100",
        0.1,
    ),
    HeldRule(
        "16-custom-kernels-and-fusion",
        "rule-what-a-kernel-takes",
        lambda timed: timed.ours,
        lambda timed: timed.measured,
        {"timed": GELU},
        f"{ELEMENTS[0]:,} to {ELEMENTS[-1]:,} elements, at the rate that memory reaches",
        "lesson 16's GeLU, timed on an H100 and an H200",
        0.45,
        because="What is far off is a small tensor in one kernel, whose launch takes less than we assume.",
    ),
    HeldRule(
        "19-cuda-graphs",
        "rule-the-slower-of-two-workers",
        lambda case, batch: capture.rule_s(*queued(case, batch)),
        lambda case, batch: capture.token_s(*queued(case, batch)),
        {"case": CASES, "batch": (1, 16, 64, 128, 256, 512)},
        "the four cases of lesson 19's table with 1 to 512 sequences",
        "the queue, run kernel by kernel",
        0.05,
    ),
)
