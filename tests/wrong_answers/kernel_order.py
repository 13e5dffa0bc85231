"""Wrong answers to the puzzle *the same product in groups of rows*, each with some of the words that it gets."""

from engine.puzzles.kernel_order import SOLUTION, START
from tests.wrong_answers.kernels import of_any

WRONG = of_any(SOLUTION) | {
    "row by row": (START, "the order is not"),
    "column by column": (
        START.replace("program // tiles_n", "program % tiles_m").replace(
            "program % tiles_n", "program // tiles_m"
        ),
        "the order is not",
    ),
    "the last group as high as the others": (
        SOLUTION.replace("min(tiles_m - first_m, GROUP)", "GROUP"),
        "No mask stops these lanes",
    ),
    "row by row inside": (
        SOLUTION.replace("place % height", "place // tiles_n").replace("place // height", "place % tiles_n"),
        "the order is not",
    ),
    "one group": (
        SOLUTION.replace("place = program % in_group", "place = program"),
        "No mask stops these lanes",
    ),
    "divided as floats": (SOLUTION.replace("place // height", "place / height"), "Is // meant"),
}
