"""Wrong answers to the puzzle *add two vectors in Triton*, each with some of the words that it gets."""

from engine.puzzles.kernel_add import SOLUTION, START
from tests.wrong_answers.kernels import of_any

WRONG = of_any(SOLUTION) | {
    "every program the same block": (START, "this is a race"),
    "no masks": (SOLUTION.replace(", mask=inside", ""), "No mask stops these lanes"),
    "no mask in the store": (
        SOLUTION.replace("x + y, mask=inside", "x + y"),
        "Program 3 stores elements 50 to 63 of z",
    ),
    "a mask one too wide": (SOLUTION.replace("offsets < n", "offsets <= n"), "The mask lets these lanes"),
    "a mask one too narrow": (SOLUTION.replace("offsets < n", "offsets < n - 1"), "No program stores z[49]"),
    "blocks that overlap": (SOLUTION.replace("* BLOCK +", "* (BLOCK // 2) +"), "this is a race"),
    "pointers added": (SOLUTION.replace("x + y,", "x_ptr + y_ptr,"), "Two pointers cannot be combined"),
    "a difference": (SOLUTION.replace("x + y,", "x - y,"), "must be"),
    "an argument for the length": (
        SOLUTION.replace("tl.arange(0, BLOCK)", "tl.arange(0, n)"),
        "must be known when the kernel is compiled",
    ),
    "lanes that were masked": (
        SOLUTION.replace("y_ptr + offsets, mask=inside", "y_ptr + offsets, mask=offsets < n - 1"),
        "never loaded",
    ),
    "into the input": (SOLUTION.replace("z_ptr + offsets", "x_ptr + offsets"), "No program stores z[0]"),
}
