"""Round numbers near those that layouts cannot divide: of sequences in a step, of tokens in a sequence, of
GPUs. Every degree has to divide one of them, so a large prime factor leaves a search little to choose from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import printing
from engine.base.program import program
from engine.step.splits import MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.step.training_job import Job

LARGEST_PRIME = 7  # of numbers that are left as they are
WITHIN = 0.06  # what a near number may differ by, as a share
MOST_SEQUENCES = MICRO_BATCHES[-1]  # of a micro-batch
NODE, TRIED = 8, 64  # GPUs of a node, and how many smaller numbers of GPUs are tried
TWOS = 2**20  # what a sequence's tokens are divided by


def is_awkward(number: float) -> bool:
    """Whether a number has a prime factor above LARGEST_PRIME.

    >>> is_awkward(488), is_awkward(480)
    (True, False)
    """
    for prime in range(2, LARGEST_PRIME + 1):
        while number % prime == 0 and number > 1:
            number = number / prime
    return number > 1


def common(one: float, other: float) -> float:
    """The greatest common divisor of two whole numbers."""
    while other > 0:
        rest = one % other
        one = other
        other = rest
    return one


def divisor_count(number: float) -> int:
    """How many divisors a number has."""
    found, prime, rest = 1, 2, number
    while prime * prime <= rest:
        times = 1
        while rest % prime == 0:
            rest = rest // prime
            times += 1
        found *= times
        prime += 1
    return found * 2 if rest > 1 else found


def nearest(number: float, divided_by: float, most: float) -> float:
    """The whole number up to ``most``, within WITHIN of this one, that has the most divisors in common with
    what divides it, which are the degrees that a layout may have; of several the nearest, of two the larger.

    >>> nearest(488, 256 * 64, 1000)
    512
    """
    best, most_divisors = number, divisor_count(common(number, divided_by))
    for step in range(1, int(number * WITHIN) + 1):
        for other in (number + step, number - step):
            if 1 <= other <= most:
                these = divisor_count(common(other, divided_by))
                if these > most_divisors:
                    best, most_divisors = other, these
    return best


def near_batch(global_batch: float, gpus: float) -> float:
    """The number of sequences near an awkward one that these GPUs can share out in more ways."""
    if not is_awkward(global_batch):
        return global_batch
    return nearest(global_batch, gpus * MOST_SEQUENCES, global_batch * (1.0 + WITHIN))


@program(sequences=())
def snapped(global_batch: float, gpus: float) -> dict[str, Any]:
    """``near_batch``, for a page."""
    return {"sequences": near_batch(global_batch, gpus)}


class Near(NamedTuple):
    """What a search finds with a near number instead of the one that was asked for."""

    what: str  # SEQUENCES, TOKENS or GPUS
    asked: int
    near: int
    choice: float  # how many times as many layouts
    mfu: float  # of the fastest that fits …
    asked_mfu: float  # … and of the fastest with the number that was asked for

    def __str__(self) -> str:
        more, before, after = (100.0 * each for each in (self.choice - 1.0, self.asked_mfu, self.mfu))
        numbers = f"{self.asked:,} → {self.near:,} {self.what}"
        return f"{numbers}: {more:+.0f} % choice, MFU {before:.1f} → {after:.1f} %"


SEQUENCES, TOKENS, GPUS = "sequences", "tokens a sequence", "GPUs"
FIELDS = {SEQUENCES: "global_batch", TOKENS: "seq"}  # of a job


def numbers(
    job: Job, gpus: int, ways_to_cut: Callable[[int], int], stuck: bool = False
) -> list[tuple[str, int, int]]:
    """(what, the number, the near one) for each awkward number of a job; for any number of GPUs where a
    search is stuck."""
    batch, seq = job.global_batch, job.seq
    found = [
        (SEQUENCES, batch, near_batch(batch, gpus)),
        (TOKENS, seq, nearest(seq, TWOS, seq * (1.0 + WITHIN)) if is_awkward(seq) else seq),
        (GPUS, gpus, fewer(gpus, ways_to_cut) if stuck or is_awkward(gpus) else gpus),
    ]
    return [(what, asked, int(near)) for what, asked, near in found if near != asked]


def fewer(gpus: int, ways_to_cut: Callable[[int], int]) -> int:
    """The next smaller number of GPUs, in whole nodes of eight, that can be cut in half as many ways as the
    best of all down to a half of them, and in more than all GPUs: nobody has more than there are. Of very
    many only every so many are tried."""
    step = NODE * max(1, gpus // (NODE * TRIED))
    ways_of = {gpus: ways_to_cut(gpus)}
    ways_of |= {other: ways_to_cut(other) for other in range(gpus // step * step, gpus // 2, -step)}
    enough = max(max(ways_of.values()) / 2.0, ways_of[gpus] + 1.0)
    return next((other for other, many in ways_of.items() if many >= enough), gpus)


def lines(found: tuple[Near, ...]) -> list[printing.Part]:
    """The near numbers with which there is more to choose from, in words."""
    above = ["", "Near numbers that more layouts can divide:"]
    return [*above, *(f"  {each}" for each in found)] if found else []


def with_near(
    search: Callable[[Job, int], Any], job: Job, gpus: int, ways_to_cut: Callable[[int], int]
) -> Any:
    """The plan that a search finds, with what it finds for near numbers where the job's are awkward. Where it
    finds nothing, the message names those near numbers for which it does. ``ways_to_cut`` counts the splits
    of so many GPUs."""
    try:
        found = search(job, gpus)
    except ValueError as error:
        told = ", ".join(
            f"{asked:,} → {each:,} {what}"
            for what, asked, each in numbers(job, gpus, ways_to_cut, stuck=True)
            if _tried(search, job, gpus, what, each)
        )
        if not told:
            raise
        raise ValueError(f"{error}; near: {told}") from None
    beside = []
    for what, asked, each in numbers(job, gpus, ways_to_cut) if found.fits else []:
        other = _tried(search, job, gpus, what, each)
        if other is None or not other.fits or other.layouts <= found.layouts:
            continue
        if what != GPUS or other.best.step_s < found.best.step_s:  # fewer GPUs have to be faster
            more = other.layouts / found.layouts
            beside.append(Near(what, asked, each, more, other.best.mfu(), found.best.mfu()))
    return replace(found, near=tuple(beside))


def _tried(search: Callable[[Job, int], Any], job: Job, gpus: int, what: str, near: int) -> Any:
    """The search with one number changed; None where that finds nothing either."""
    one = replace(job, **{FIELDS[what]: near}) if what in FIELDS else job
    try:
        return search(one, near if what == GPUS else gpus)
    except ValueError:
        return None
