"""How often to write a checkpoint, so that most of the time is useful."""

import math

from engine.mechanism.reliability import best_interval_s, useful_share
from engine.puzzles.judging import Slip, box, number, picture, shown, something

TITLE = "the checkpoint interval"
LESSON = "10b-the-long-run"
STATEMENT = """
A job writes a checkpoint every so often, which takes `checkpoint_s` seconds in which it does not train. It fails once in `mtbf_s` seconds on average, and then repeats
what it has done since the last checkpoint. Often means much writing, and seldom means much repeating. Return the seconds of training between two checkpoints that leave
the largest **useful share** of the time; within 0.2 points of the best counts as right.
"""
FUNCTION = "interval_s"
START = '''def interval_s(checkpoint_s, mtbf_s):
    """Seconds of training between two checkpoints."""
    return 3600
'''
HINTS = (
    "In an interval of t seconds, writing costs about checkpoint_s / t of the time. A failure repeats half an interval on average, so how much of the time does "
    "that cost?",
    "Together that is checkpoint_s / t + t / (2 * mtbf_s). One part falls with t and the other one rises: their sum is smallest where they are equal.",
    "Set checkpoint_s / t equal to t / (2 * mtbf_s) and solve for t. It is a square root.",
)
SOLUTION = '''def interval_s(checkpoint_s, mtbf_s):
    """Seconds of training between two checkpoints."""
    return (2 * checkpoint_s * mtbf_s) ** 0.5
'''
OPEN = (
    "If writing takes a tenth of the time between failures, the square root is too long. By how much does it lose there? Search for the best with the exact share, "
    "x / (e**x - 1) * t / (t + checkpoint_s) with x = (t + checkpoint_s) / mtbf_s."
)

JOBS = (  # seconds to write a checkpoint, and between failures
    (60.0, 3 * 3600.0),
    (30.0, 8 * 3600.0),
    (120.0, 24 * 3600.0),
    (10.0, 1800.0),
    (300.0, 12 * 3600.0),
    (5.0, 30 * 24 * 3600.0),
)
NEAR = 0.002  # an answer may lose this share of the time against the best one
YEAR_S = 365 * 24 * 3600.0


def run(function):
    """Run the reader's function for the first job; returns the result in words, and the figure."""
    checkpoint_s, mtbf_s = JOBS[0]
    mine, best = asked(function, checkpoint_s, mtbf_s), float(best_interval_s(checkpoint_s, mtbf_s))
    return (
        f"{told(checkpoint_s, mtbf_s)}: every {seconds(mine)} leaves {percent(mine, checkpoint_s, mtbf_s)} of the time useful, and every {seconds(best)} "
        f"{percent(best, checkpoint_s, mtbf_s)}.",
        drawn(mine, best, checkpoint_s, mtbf_s),
    )


def check(function):
    """Check the reader's function for all jobs; a Slip at the first wrong answer."""
    for checkpoint_s, mtbf_s in JOBS:
        mine, best = asked(function, checkpoint_s, mtbf_s), float(best_interval_s(checkpoint_s, mtbf_s))
        if useful(mine, checkpoint_s, mtbf_s) < useful(best, checkpoint_s, mtbf_s) - NEAR:
            _, written, repeated = shares(mine, checkpoint_s, mtbf_s)
            most = "work that is repeated" if repeated > written else "writing"
            raise Slip(
                f"{told(checkpoint_s, mtbf_s)}: every {seconds(mine)} leaves {percent(mine, checkpoint_s, mtbf_s)} of the time useful, and most of the loss is {most}. "
                f"{'Less' if mine > best else 'More'} than that between two checkpoints would leave {percent(best, checkpoint_s, mtbf_s)}.",
                drawn(mine, best, checkpoint_s, mtbf_s),
            )
    words, seen = run(function)
    return f"Right, for {len(JOBS)} jobs. {words}", seen


def asked(function, checkpoint_s, mtbf_s):
    """The reader's interval."""
    call = f"{FUNCTION}({checkpoint_s:g}, {mtbf_s:g})"
    found = function(checkpoint_s, mtbf_s)
    something(found, call)
    if not number(found) or found != found:
        raise Slip(f"{call} must give a number of seconds, and gave {shown(found)}.")
    if found <= 0:
        raise Slip(f"{call} gave {found:g}; an interval is above 0, or nothing would be trained.")
    if found > YEAR_S:
        raise Slip(f"{call} gave {found:,.0f} s, which is more than a year.")
    return float(found)


def seconds(interval):
    """A time in words."""
    return f"{interval:,.0f} s" if interval >= 10 else f"{interval:.2g} s"


def told(checkpoint_s, mtbf_s):
    """A job in words."""
    return f"A checkpoint of {checkpoint_s:g} s, a failure every {mtbf_s / 3600:g} h"


def useful(interval, checkpoint_s, mtbf_s):
    """The useful share by the engine's formula, for restarts that take no time."""
    return float(useful_share(interval, checkpoint_s, mtbf_s, 0.0))


def shares(interval, checkpoint_s, mtbf_s):
    """(useful, writing, repeated) shares of the time."""
    kept = useful(interval, checkpoint_s, mtbf_s)
    written = kept * checkpoint_s / interval
    return kept, written, max(0.0, 1 - kept - written)


def percent(interval, checkpoint_s, mtbf_s):
    """The useful share in words, rounded down so that a lesser one never looks like the best."""
    return f"{math.floor(10000 * useful(interval, checkpoint_s, mtbf_s)) / 100:.2f} %"


def drawn(mine, best, checkpoint_s, mtbf_s):
    """The picture of the shares of the time, with the reader's interval and with the best one."""
    lines = []
    for name, interval in (("yours", mine), ("best", best)):
        kept, written, repeated = shares(interval, checkpoint_s, mtbf_s)
        lines.append(
            (
                name,
                [
                    box(0, 100 * kept, f"{100 * kept:.1f} %", "compute"),
                    box(100 * kept, 100 * (kept + written), "", "hbm"),
                    box(100 * (kept + written), 100 * (kept + written + repeated), "", "network"),
                ],
            )
        )
    key = {"compute": "useful", "hbm": "writing checkpoints", "network": "repeated after failures"}
    return picture(lines, key, "Where the time goes with your interval, and with the best.", "% of the time")
