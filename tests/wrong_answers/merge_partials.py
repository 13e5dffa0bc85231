"""Wrong answers to the puzzle *merge two partial softmaxes*, each with some of the words that it gets."""

from engine.puzzles.merge_partials import SOLUTION, START

WRONG = {
    "added without rescaling": (START, "measured against its own maximum"),
    "no maximum": (
        SOLUTION.replace("m = max(m1, m2)", "m = 0").replace(
            "    if m == -math.inf:\n        return one\n", ""
        ),
        "the larger of both",
    ),
    "the smaller maximum": (SOLUTION.replace("max(m1, m2)", "min(m1, m2)"), "the larger of both"),
    "the factors swapped": (SOLUTION.replace("a, b = ", "b, a = "), "measured against its own maximum"),
    "the values are forgotten": (SOLUTION.replace("a * w1 + b * w2", "w1 + w2"), "weighted"),
    "both are empty": (SOLUTION.replace("    if m == -math.inf:\n        return one\n", ""), "no number"),
    "already divided": (
        SOLUTION.replace("a * w1 + b * w2", "(a * w1 + b * w2) / (a * t1 + b * t2)"),
        "weighted",
    ),
    "a mean": (
        SOLUTION.replace("return m, a * t1 + b * t2, a * w1 + b * w2", "return (w1 + w2) / (t1 + t2)"),
        "must give (maximum, total, weighted)",
    ),
    "nothing": (SOLUTION.replace("    return m, ", "    found = m, "), "Does it end with a return?"),
    "the first maximum": (
        SOLUTION.replace("max(m1, m2)", "m1"),
        "a number became too large, as exp of anything above 709 is",
    ),
    "maxima added": (SOLUTION.replace("max(m1, m2)", "m1 + m2"), " must be the larger of both, 3; it is 5"),
    "maxima averaged": (
        SOLUTION.replace("max(m1, m2)", "(m1 + m2) / 2"),
        "ust be the larger of both, 3; it is 2.5",
    ),
    "the sign turned": (
        SOLUTION.replace("math.exp(m1 - m), math.exp(m2 - m)", "math.exp(m - m1), math.exp(m - m2)"),
        "is never above 1",
    ),
    "a power of two": (
        SOLUTION.replace("math.exp(m1 - m), math.exp(m2 - m)", "2 ** (m1 - m), 2 ** (m2 - m)"),
        "A factor is exp(its maximum - the new one)",
    ),
    "differences for factors": (
        SOLUTION.replace("math.exp(m1 - m), math.exp(m2 - m)", "m1 - m, m2 - m"),
        "A factor is exp(its maximum - the new one)",
    ),
    "only the sum is rescaled": (
        SOLUTION.replace("a * t1 + b * t2", "t1 + t2"),
        "Here they are added as they are",
    ),
    "only one is rescaled": (
        SOLUTION.replace("a * t1 + b * t2, a * w1 + b * w2", "t1 + b * t2, w1 + b * w2"),
        "Here they are added as they are",
    ),
    "multiplied": (SOLUTION.replace("a * t1 + b * t2", "a * t1 * b * t2"), "here they are multiplied"),
    "the larger part alone": (
        SOLUTION.replace("a * t1 + b * t2, a * w1 + b * w2", "max(t1, t2), max(w1, w2)"),
        "Here one part is lost",
    ),
    "the later part wins": (
        SOLUTION.replace("return m, a * t1 + b * t2, a * w1 + b * w2", "return other"),
        " must be the larger of both, 3; it is 2",
    ),
    "weighted by the totals": (
        SOLUTION.replace("a * t1 + b * t2, a * w1 + b * w2", "a * t1 + b * t2, a * t1 * w1 + b * t2 * w2"),
        "not weighted again by the total",
    ),
    "in another order": (
        SOLUTION.replace(
            "return m, a * t1 + b * t2, a * w1 + b * w2", "return a * t1 + b * t2, m, a * w1 + b * w2"
        ),
        "The order is (maximum, total, weighted)",
    ),
    "empty as zero": (
        SOLUTION.replace("        return one\n", "        return 0.0, 0.0, 0.0\n"),
        "changes nothing",
    ),
    "an empty part is not looked for": (
        SOLUTION.replace(
            "    if m == -math.inf:\n        return one\n", "    if m1 == -math.inf:\n        return one\n"
        ),
        "changes nothing",
    ),
    "two of three": (
        SOLUTION.replace(
            "return m, a * t1 + b * t2, a * w1 + b * w2", "return a * t1 + b * t2, a * w1 + b * w2"
        ),
        "gave 2 entries",
    ),
    "without a largest": (
        SOLUTION.replace("math.exp(m1 - m), math.exp(m2 - m)", "math.exp(m1), math.exp(m2)"),
        "is never above 1",
    ),
}
