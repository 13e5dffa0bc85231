"""The numbers of the page Validation."""

from engine.calibration import bands
from engine.validation import launch_cases
from engine.validation.accuracy import KindError

of_strangers = launch_cases.tally_of_strangers()  # launches of strangers, counted


def leaning(kind: KindError) -> str:
    """To which side a kind of answer errs, in words."""
    side = (
        ("too long", "too short")
        if "step" in kind.what or "token" in kind.what
        else ("too much", "too little")
    )
    if kind.what.startswith("throughput"):
        side = ("too many", "too few")
    if abs(kind.signed) < 0.01:
        return "neither side"
    return f"{abs(kind.signed):.0%} {side[kind.signed < 0]}".replace("%", " %")


def worded(what: str) -> str:
    """What a run of the bands measured."""
    return {
        "step": "time of a step",
        "latency": "time of a token or an answer",
        "throughput": "tokens a second",
        "memory": "memory",
        "collective": "time of the collective",
    }[what]


def own_step(known: str, what: str) -> float:
    """The error of the other steps of a cluster, of which some runs are known."""
    return bands.runs()["own"]["step"][known][what]
