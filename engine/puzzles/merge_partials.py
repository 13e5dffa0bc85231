"""Merge two partial softmaxes, as each rank of a ring does with the keys that arrive."""

import math

from engine.mechanism.online_softmax import rescaled
from engine.puzzles.judging import Slip, box, number, picture, rows, shown

TITLE = "merge two partial softmaxes"
LESSON = "08-sequence-and-context"
STATEMENT = """
Attention over some of the keys is kept as three numbers: the largest score `maximum`, the sum `total` of $e^{score - maximum}$, and
the sum `weighted` of $e^{score - maximum}$ times the value. Merge two of these, which come from different keys, into one over all the
keys. Before its first key, a part is `(-inf, 0, 0)`. Scores may be as large as 10,000.
"""
FUNCTION = "merged"
START = '''import math

def merged(one, other):
    """Both parts as one: (maximum, total, weighted)."""
    m1, t1, w1 = one
    m2, t2, w2 = other
    return max(m1, m2), t1 + t2, w1 + w2
'''
HINTS = (
    "The two totals are measured against different maxima. Bring both to the same one before you add them.",
    "A total against m1 becomes one against m by the factor exp(m1 - m). With m the larger of the two, no factor is above 1.",
    "Where both parts are empty, m is -inf, and -inf - (-inf) is no number: return the empty part then.",
)
SOLUTION = '''import math

def merged(one, other):
    """Both parts as one: (maximum, total, weighted)."""
    m1, t1, w1 = one
    m2, t2, w2 = other
    m = max(m1, m2)
    if m == -math.inf:
        return one
    a, b = math.exp(m1 - m), math.exp(m2 - m)
    return m, a * t1 + b * t2, a * w1 + b * w2
'''
OPEN = "The order of the merges does not matter, but for rounding. In which order would you merge eight parts, and what would you gain?"

EMPTY = (-math.inf, 0.0, 0.0)
KEYS = (  # scores and values of the keys of one part, and of another
    (((1.0, 2.0), (3.0, 4.0)), ((2.0, -1.0),)),
    (((3.0, 1.0),), ((1.0, 5.0), (0.5, 2.0))),
    (((9000.0, 1.0), (9001.0, 2.0)), ((10000.0, 3.0),)),
    (((-9000.0, 1.0),), ((-9003.0, 2.0),)),
    ((), ((2.0, 7.0),)),
    (((2.0, 7.0),), ()),
    ((), ()),
)


def run(function):
    """Run the reader's function for the first pair; returns the result in words, and the figure."""
    one, other = [part(keys) for keys in KEYS[0]]
    maximum, total, weighted = asked(function, one, other)
    mean = weighted / total if total else math.nan
    return (
        f"maximum {maximum:g}, total {total:.4g}, weighted {weighted:.4g}: the mean of the values is {mean:.4g}, and softmax over all keys gives {softmax(KEYS[0]):.4g}.",
        drawn((maximum, total, weighted), part(KEYS[0][0] + KEYS[0][1])),
    )


def check(function):
    """Check the reader's function for all pairs; a Slip at the first wrong answer."""
    for keys in KEYS:
        require_merged(asked(function, *[part(each) for each in keys]), keys)
    words, picture = run(function)
    return f"Right, for {len(KEYS)} pairs, scores of 10,000 and empty parts among them. {words}", picture


def part(keys):
    """The partial softmax (maximum, total, weighted) of these keys, made by the engine's merge of one key
    after the other."""
    found = EMPTY
    for score, value in keys:
        found = together(found, (score, 1.0, value))
    return found


def together(one, other):
    """Two partial softmaxes merged into one, with the engine's rescaling."""
    maximum, a, b = rescaled(one[0], other[0])
    return float(maximum), float(a * one[1] + b * other[1]), float(a * one[2] + b * other[2])


def worded(one):
    """A partial softmax in words, with few digits."""
    return shown(tuple([round(each, 4) for each in one]))


def softmax(keys):
    """The weighted mean over the keys of both parts."""
    _, total, weighted = part(keys[0] + keys[1])
    return weighted / total


def asked(function, one, other):
    """The three numbers into which the reader's function merges two parts."""
    call = f"{FUNCTION}({worded(one)}, {worded(other)})"
    found = rows(function(one, other), call, "(maximum, total, weighted)", 100)
    if len(found) != 3:
        raise Slip(f"{call} must give (maximum, total, weighted), and gave {len(found)} entries.")
    for each in found:
        if each != -math.inf and not (number(each) and each == each):
            raise Slip(
                f"{call} gave {shown(found)}, where {each!r} is no number to go on with. What if a part is empty?"
            )
    return found


def require_merged(found, keys):
    """Raise a Slip unless these three numbers are those of all the keys together."""
    wanted = part(keys[0] + keys[1])
    call = f"Merging {worded(part(keys[0]))} and {worded(part(keys[1]))}"
    order = ""
    if not keys[0] or not keys[1]:
        order = " A part without keys is (-inf, 0, 0), and changes nothing."
    elif found[0] in (wanted[1], wanted[2]):
        order = " The order is (maximum, total, weighted)."
    if found[0] != wanted[0]:
        raise Slip(
            f"{call}, the maximum must be the larger of both, {wanted[0]:g}; it is {found[0]:g}.{order}"
        )
    for place, name in ((1, "total"), (2, "weighted")):
        if abs(found[place] - wanted[place]) > 1e-9 * max(1.0, abs(wanted[place])):
            raise Slip(
                f"{call}, {name} must be {wanted[place]:.6g} and is {found[place]:.6g}. {why(found, keys, place)}",
                drawn(found, wanted),
            )


def why(found, keys, place):
    """The words for the reader's likely mistake with the totals, or the weighted sums, of the two parts."""
    one, other, right = part(keys[0]), part(keys[1]), part(keys[0] + keys[1])
    _, a, b = rescaled(one[0], other[0])
    x, y = one[place], other[place]
    own = "Each part is measured against its own maximum: rescale both to the new one before you add them."
    for value, words in (
        (x + y, f"{own} Here they are added as they are."),
        (b * x + a * y, f"{own} Here each has the other's factor."),
        (x, f"{own} Here one part is lost."),
        (y, f"{own} Here one part is lost."),
        (x + b * y, f"{own} Here the first is not rescaled."),
        (a * x + y, f"{own} Here the second is not rescaled."),
        (
            a * x * b * y,
            "The parts have different keys, so that their sums add up; here they are multiplied.",
        ),
        (
            right[2] / right[1] if right[1] else 0.0,
            "This is the mean already: keep the sum, which the next merge needs.",
        ),
        (
            a * one[1] * one[2] + b * other[1] * other[2],
            "It holds the weights already: it is rescaled, and not weighted again by the total.",
        ),
    ):
        if abs(found[place] - value) <= 1e-9 * max(1.0, abs(value)):
            return words
    if abs(found[place]) > 1.001 * (abs(x) + abs(y)):
        return f"{own} A factor is exp(its maximum - the new one), which is never above 1."
    return f"{own} A factor is exp(its maximum - the new one)."


def drawn(found, wanted):
    """The picture of the reader's total and weighted sum as bars, above the right ones."""
    lines = []
    for place, name in ((1, "total"), (2, "weighted")):
        right = abs(found[place] - wanted[place]) <= 1e-9 * max(1.0, abs(wanted[place]))
        for whose, value, look in (
            ("yours", found[place], "compute" if right else "wrong"),
            ("all keys", wanted[place], "hbm"),
        ):
            bar = max(0.0, min(100.0, value))  # a bar cannot show negative or huge values
            lines.append((f"{name}, {whose}", [box(0, bar, f"{value:.4g}", look)]))
    return picture(lines, {}, "The total and the weighted sum of your merge, and of all the keys at once.")
