"""Wrong answers to the puzzle *a dynamic loss scale*, each with some of the words that it gets."""

from engine.puzzles.loss_scale import SOLUTION, START

WRONG = {
    "it never grows": (
        START.replace("clean\n    return scale", "0\n    return scale"),
        "the scale must be 2048",
    ),
    "the count goes on": (
        SOLUTION.replace("scale / 2), 0", "scale / 2), clean"),
        "the count of clean steps must be 0",
    ),
    "the count goes on after growing": (
        SOLUTION.replace("scale * 2, 0", "scale * 2, clean + 1"),
        "the count of clean steps must be 0",
    ),
    "doubled at an overflow": (SOLUTION.replace("scale / 2", "scale * 2"), "the scale must be 512"),
    "one step late": (
        SOLUTION.replace("clean + 1 == interval", "clean == interval"),
        "the scale must be 2048",
    ),
    "one step early": (
        SOLUTION.replace("clean + 1 == interval", "clean + 2 == interval"),
        "the scale must be 1024",
    ),
    "down to nothing": (SOLUTION.replace("max(1, scale / 2)", "scale / 2"), "at least 1"),
    "set back at once": (SOLUTION.replace("max(1, scale / 2)", "1"), "the scale must be 512"),
    "only the scale": (
        SOLUTION.replace("return scale, clean + 1", "return scale"),
        "must give (scale, clean)",
    ),
    "it only shrinks": (
        SOLUTION.replace("    if clean + 1 == interval:\n        return scale * 2, 0\n", ""),
        "This step is the last of 3 clean ones, so it is doubled",
    ),
    "doubled at every clean step": (
        SOLUTION.replace(
            "    if clean + 1 == interval:\n        return scale * 2, 0\n    return scale, clean + 1",
            "    return scale * 2, clean + 1",
        ),
        "It stays as it is until 3 steps in a row are clean",
    ),
    "nothing on an overflow": (
        SOLUTION.replace("max(1, scale / 2), 0", "scale, 0"),
        "An overflow skips the step and halves the scale",
    ),
    "overflows count as clean": (
        SOLUTION.replace("max(1, scale / 2), 0", "max(1, scale / 2), 1"),
        "it begins anew whenever the scale changes",
    ),
    "a quarter": (SOLUTION.replace("scale / 2", "scale / 4"), "It is halved, no more and no less"),
    "one less": (SOLUTION.replace("scale / 2", "scale - 1"), "It is halved, no more and no less"),
    "the square": (
        SOLUTION.replace("scale * 2", "scale ** 2"),
        "is the last of 3 clean ones, so it is doubled, no more and no less",
    ),
    "doubled once and for all": (
        SOLUTION.replace("clean + 1 == interval", "clean + 1 == interval and scale < 2048"),
        "This step is the last of 1 clean ones, so it is doubled",
    ),
    "the interval grows": (
        SOLUTION.replace("clean + 1 == interval", "(clean + 1) % interval == 0").replace(
            "scale * 2, 0", "scale * 2, clean + 1"
        ),
        "it begins anew whenever the scale changes",
    ),
    "a count from 1": (
        SOLUTION.replace("scale * 2, 0", "scale * 2, 1"),
        "it begins anew whenever the scale changes",
    ),
    "clean steps are not counted": (
        SOLUTION.replace("return scale, clean + 1", "return scale, clean"),
        "every other step counts",
    ),
    "counted down": (
        SOLUTION.replace("return scale, clean + 1", "return scale, clean - 1"),
        "every other step counts",
    ),
    "the other way round": (
        SOLUTION.replace("if overflow", "if not overflow"),
        "An overflow skips the step and halves the scale",
    ),
    "swapped": (
        SOLUTION.replace("return scale, clean + 1", "return clean + 1, scale"),
        "the scale comes first",
    ),
    "a least of 2": (SOLUTION.replace("max(1, ", "max(2, "), "It is at least 1"),
    "down to 0": (SOLUTION.replace("max(1, scale / 2)", "scale // 2"), "It is at least 1"),
    "no state": (SOLUTION.replace("    return scale, clean + 1\n", ""), "Does it end with a return?"),
    "a text": (
        SOLUTION.replace("return scale, clean + 1", "return str(scale), clean + 1"),
        "gave ['1024.0', 1]",
    ),
}
