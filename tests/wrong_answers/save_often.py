"""Wrong answers to the puzzle *the checkpoint interval*, each with some of the words that it gets."""

from engine.puzzles.save_often import SOLUTION, START

ROOT = "(2 * checkpoint_s * mtbf_s) ** 0.5"
WRONG = {
    "every hour": (START, "most of the loss"),
    "as often as it fails": (SOLUTION.replace(ROOT, "mtbf_s"), "is work that is repeated"),
    "half of that": (SOLUTION.replace(ROOT, "mtbf_s / 2"), "is work that is repeated"),
    "without the square root": (
        SOLUTION.replace(ROOT, "2 * checkpoint_s * mtbf_s"),
        "is work that is repeated",
    ),
    "ten times the writing": (SOLUTION.replace(ROOT, "10 * checkpoint_s"), "is writing"),
    "always ten minutes": (SOLUTION.replace(ROOT, "600"), "would leave"),
    "half under the root": (SOLUTION.replace(ROOT, "(checkpoint_s * mtbf_s / 2) ** 0.5"), "is writing"),
    "in nanoseconds": (SOLUTION.replace(ROOT, "10**9 * checkpoint_s"), "more than a year"),
    "in hours": (SOLUTION.replace(ROOT, ROOT + " / 3600"), "is writing"),
    "the square of the sum": (SOLUTION.replace(ROOT, "(2 * (checkpoint_s + mtbf_s)) ** 0.5"), "is writing"),
    "all the time": (SOLUTION.replace(ROOT, "0"), "above 0"),
    "two numbers": (SOLUTION.replace(ROOT, f"checkpoint_s, {ROOT}"), "a number of seconds"),
    "nothing": (SOLUTION.replace("return", "found ="), "Does it end with a return?"),
    "the writing is forgotten": (
        SOLUTION.replace("2 * checkpoint_s * mtbf_s", "2 * mtbf_s"),
        "More than that between two checkpoints would leave 89.82 %",
    ),
    "a cube root": (
        SOLUTION.replace("** 0.5", "** (1 / 3)"),
        "More than that between two checkpoints would leave 89.82 %",
    ),
    "twice as often": (
        SOLUTION.replace("(2 * checkpoint_s * mtbf_s) ** 0.5", "(2 * checkpoint_s * mtbf_s) ** 0.5 / 2"),
        "More than that between two checkpoints would leave 89.82 %",
    ),
    "divided for multiplied": (
        SOLUTION.replace("2 * checkpoint_s * mtbf_s", "2 * mtbf_s / checkpoint_s"),
        "More than that between two checkpoints would leave 89.82 %",
    ),
    "the mean of both": (
        SOLUTION.replace("(2 * checkpoint_s * mtbf_s) ** 0.5", "(checkpoint_s + mtbf_s) / 2"),
        "Less than that between two checkpoints would leave 89.82 %",
    ),
    "in minutes": (
        SOLUTION.replace("(2 * checkpoint_s * mtbf_s) ** 0.5", "(2 * checkpoint_s * mtbf_s) ** 0.5 / 60"),
        "More than that between two checkpoints would leave 89.82 %",
    ),
    "below zero": (
        SOLUTION.replace("(2 * checkpoint_s * mtbf_s) ** 0.5", "-((2 * checkpoint_s * mtbf_s) ** 0.5)"),
        "an interval is above 0, or nothing would be trained",
    ),
    "a text": (
        SOLUTION.replace(
            "return (2 * checkpoint_s * mtbf_s) ** 0.5",
            "return str((2 * checkpoint_s * mtbf_s) ** 0.5) + ' s'",
        ),
        "gave '1138.4199576606165 s'",
    ),
}
