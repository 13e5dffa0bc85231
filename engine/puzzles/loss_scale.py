"""A dynamic loss scale: how it changes after an overflow, and after a long run without one."""

import math

from engine.executed.rounded_training import good_after, octave_after
from engine.puzzles.judging import Slip, box, number, picture, rows, shown, whole

TITLE = "a dynamic loss scale"
LESSON = "14-mixed-precision"
STATEMENT = """
After each step of fp16 training you know whether a gradient has overflowed. Return the next `(scale, clean)`, where `clean` counts the
steps since the scale was last changed. After an overflow the step is skipped and the scale is halved. After `interval` steps in a
row without one, the scale is doubled. Either way the count begins anew. The scale is at least 1 (a floor that `GradScaler` itself does not have).
"""
FUNCTION = "next_scale"
START = '''def next_scale(scale, clean, overflow, interval):
    """The scale and the count of clean steps, after a step."""
    if overflow:
        return scale / 2, clean
    return scale, clean + 1
'''
HINTS = (
    "Two events change the scale, and both of them reset the count. Which one is missing?",
    "Count this step first. If the count has then reached interval, double the scale and return a count of 0.",
    "max(1, scale / 2) keeps a run of overflows from ending at a scale of zero.",
)
SOLUTION = '''def next_scale(scale, clean, overflow, interval):
    """The scale and the count of clean steps, after a step."""
    if overflow:
        return max(1, scale / 2), 0
    if clean + 1 == interval:
        return scale * 2, 0
    return scale, clean + 1
'''
OPEN = (
    "With an interval of 2,000, at most one step in 2,001 is skipped in the long run. Let the scale grow by a smaller factor and more "
    "often: does it skip fewer steps, and is it closer to the largest scale that fits?"
)

RUNS = (  # scale, interval, and for each step whether it overflows
    (1024.0, 3, "x"),
    (1024.0, 3, "..."),
    (1024.0, 3, "..x...x......"),
    (4.0, 5, "xxxxx....."),
    (65536.0, 1, "...x.."),
    (65536.0, 4, "xx...x....xx........x"),
)


def run(function):
    """Run the reader's function for the third run; returns the result in words, and the figure."""
    scale, interval, steps = RUNS[2]
    path = [f"{each[0]:g}" for each in states(function, scale, interval, steps)]
    return (
        f"Overflows at the steps marked x in “{steps}”, interval {interval}: the scale goes {scale:g}, {', '.join(path)}.",
        drawn(states(function, scale, interval, steps), scale, steps),
    )


def check(function):
    """Check the reader's function for all runs; a Slip at the first wrong answer."""
    for scale, interval, steps in RUNS:
        found, wanted = states(function, scale, interval, steps), expected(scale, interval, steps)
        for at in range(len(steps)):
            compare(found, wanted, at, scale, interval, steps)
    words, picture = run(function)
    return f"Right, for {len(RUNS)} runs. {words}", picture


def states(function, scale, interval, steps):
    """The scale and the count after each step of a run, by the reader's function."""
    clean, found = 0, []
    for step in steps:
        call = f"{FUNCTION}({scale!r}, {clean}, {step == 'x'}, {interval})"
        given = rows(function(scale, clean, step == "x", interval), call, "(scale, clean)", 10)
        if len(given) == 2 and whole(given[0]) and given[1] == scale and scale != given[0]:
            raise Slip(f"{call} must give (scale, clean), and gave {shown(given)}: the scale comes first.")
        if len(given) != 2 or not number(given[0]) or not whole(given[1]):
            raise Slip(
                f"{call} must give (scale, clean), a number and a whole number, and gave {shown(given)}."
            )
        scale, clean = given
        found.append((scale, clean))
    return found


def expected(scale, interval, steps):
    """The scale and the count after each step, by the engine's rule. The smallest allowed scale is added
    here, because the engine's rule has none."""
    octave, clean, found = math.log2(scale), 0, []
    for step in steps:
        overflow = step == "x"
        octave = max(0.0, octave_after(octave, clean, overflow, interval))
        clean = good_after(clean, overflow, interval)
        found.append((2.0**octave, clean))
    return found


def compare(found, wanted, at, scale, interval, steps):
    """Raise a Slip if the reader's and the right state differ at a step."""
    before, clean = wanted[at - 1] if at else (scale, 0)
    why = "an overflow" if steps[at] == "x" else f"clean step {clean + 1} of {interval}"
    where = f"At step {at} of “{steps}” (x overflows), with a scale of {before:g} and after {why},"
    if found[at][0] != wanted[at][0]:
        least = (
            " It is at least 1."
            if wanted[at][0] == 1
            else instead(before, clean, found[at][0], steps[at] == "x", interval)
        )
        raise Slip(
            f"{where} the scale must be {wanted[at][0]:g} and is {found[at][0]:g}.{least}",
            drawn(found, scale, steps, at),
        )
    if found[at][1] != wanted[at][1]:
        raise Slip(
            f"{where} the count of clean steps must be {wanted[at][1]} and is {found[at][1]}: it begins anew whenever the scale changes{', and every other step counts' if wanted[at][1] else ''}."
        )


def instead(before, clean, found, overflow, interval):
    """The words for what the reader's function did with the scale instead."""
    if overflow:
        return (
            " An overflow skips the step and halves the scale."
            if found >= before
            else " It is halved, no more and no less."
        )
    if clean + 1 < interval:
        return f" It stays as it is until {interval} steps in a row are clean."
    return f" This step is the last of {interval} clean ones, so it is doubled{'' if found <= before else ', no more and no less'}."


def drawn(found, scale, steps, wrong=-1):
    """The picture of the steps from left to right: whether each overflows, and the scale and the count after
    it."""
    lines = [
        (
            "step",
            [
                box(
                    at,
                    at + 1,
                    steps[at] if steps[at] == "x" else "",
                    "network" if steps[at] == "x" else "plain",
                )
                for at in range(len(steps))
            ],
        )
    ]
    boxes, before = [], scale
    for at in range(len(found)):
        now = found[at][0]
        arrow = "" if now == before else "×2" if now == 2 * before else "½" if now == before / 2 else "?"
        look = "wrong" if at == wrong else "compute" if now > before else "hbm" if now < before else "plain"
        boxes.append(box(at, at + 1, arrow, look))
        before = now
    lines.append(("scale", boxes))
    lines.append(("clean", [box(at, at + 1, found[at][1]) for at in range(len(found))]))
    key = {"network": "x an overflow", "compute": "×2 doubled", "hbm": "½ halved"}
    if wrong >= 0:
        key["wrong"] = "the scale is wrong after this step"
    return picture(lines, key, "What happens to the scale and to the count of clean steps, step by step.")
