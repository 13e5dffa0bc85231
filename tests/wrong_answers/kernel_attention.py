"""Wrong answers to the puzzle *attention in one pass*, each with some of the words that it gets."""

from engine.puzzles.kernel_attention import SOLUTION, START
from tests.wrong_answers.kernels import of_any

WRONG = of_any(SOLUTION) | {
    "as it starts": (START, "must be"),
    "keys that do not exist": (
        SOLUTION.replace('        scores = tl.where((keys < tokens)[None, :], scores, -float("inf"))\n', ""),
        "4 keys that do not exist are counted",
    ),
    "weights not rescaled": (SOLUTION.replace("weight * kept +", "weight +"), "both sums rescaled"),
    "total not rescaled": (SOLUTION.replace("total * kept[:, None]", "total"), "both sums rescaled"),
    "the factor turned over": (SOLUTION.replace("largest - new)", "new - largest)"), "must be"),
    "keys not turned": (SOLUTION.replace("tl.trans(k)", "k"), "must be"),
    "not divided": (SOLUTION.replace("total / weight[:, None]", "total"), "must be"),
}
