"""How far a launch could go as it stands: the longest sequence, the most requests, the smallest card.

Each is tried by the verdict itself, so that what is said here is what it would say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from engine import catalog
from engine.frameworks.described import Launch
from engine.mechanism import memory

if TYPE_CHECKING:
    from collections.abc import Callable

STEP = 256  # tokens between the lengths that are tried
MOST_TOKENS = 2**24


class Extent(NamedTuple):
    """What fits at most, with everything else as it stands; 0 and "" where nothing does, or nothing is
    said."""

    longest: int = 0  # tokens of a sequence, or of one request of a server
    users: int = 0  # requests of the greatest length at once, on one replica
    card: str = ""  # key of the GPU with the least memory on which it fits

    def as_dict(self) -> dict:
        """All of it in plain values."""
        return {"longest": self.longest, "users": self.users, "smallest_card": self.card}


def of(launch: Launch | None, gpu: str, room: Any, fits: Callable[[Launch, str], bool]) -> Extent:
    """The limits of a launch that can start; ``room`` is what a server leaves to its caches, and ``fits``
    the verdict on a launch and a GPU's key."""
    if launch is None or launch.refused or launch.unmodelled or gpu not in catalog.all_gpus():
        return Extent()
    card = smallest(launch, gpu, fits)
    if launch.server and room:
        users = int(room.cache_bytes // room.needed_bytes) if room.needed_bytes > 0 else 0
        return Extent(room.longest, max(0, users), card)
    return Extent(longest(launch, gpu, fits), 0, card)


def longest(launch: Launch, gpu: str, fits: Callable[[Launch, str], bool]) -> int:
    """The longest sequence with which a training launch fits, in whole steps of ``STEP`` tokens that its
    layout can cut; 0 where not even the shortest fits."""
    assert launch.job is not None and launch.layout is not None
    given, each = launch.job, STEP
    cuts = 2 * launch.layout.cp * launch.layout.tp
    while each % cuts:
        each += STEP

    def fit(steps: int) -> bool:
        return fits(replace(launch, job=replace(given, seq=steps * each)), gpu)

    low, high = 0, max(1, launch.job.seq // each)
    while high * each < MOST_TOKENS and fit(high):
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low * each


def smallest(launch: Launch, gpu: str, fits: Callable[[Launch, str], bool]) -> str:
    """The GPU of the same vendor with the least memory on which as many as there are hold it; of several with
    as much memory the slowest, which is the cheapest to have."""
    gpus = catalog.all_gpus()
    vendor = gpus[gpu].vendor
    alike = [one for one in gpus.values() if one.vendor == vendor and not one.unified]
    for one in sorted(alike, key=lambda g: (memory.capacity_bytes(g), g.hbm_bytes_per_s, g.key)):
        if fits(launch, one.key):
            return one.key
    return ""
