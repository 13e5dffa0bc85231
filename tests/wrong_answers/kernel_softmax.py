"""Wrong answers to the puzzle *a softmax that reads each row once*, each with some of the words that it gets."""

from engine.puzzles.kernel_softmax import SOLUTION, START
from tests.wrong_answers.kernels import of_any

WRONG = of_any(SOLUTION) | {
    "a copy of the first row": (START, "this is a race"),
    "a copy": (START.replace("row = 0", "row = tl.program_id(0)"), "This is x itself"),
    "no other": (SOLUTION.replace(', other=-float("inf")', ""), "lanes that no load has filled"),
    "zeros beside the row": (SOLUTION.replace('-float("inf")', "0.0"), "of this row alone"),
    "no maximum": (SOLUTION.replace("x - tl.max(x, axis=0)", "x"), "Take the row's maximum off first"),
    "no sum": (SOLUTION.replace(" / tl.sum(weights, axis=0)", ""), "divide by the sum"),
    "divided by the maximum": (SOLUTION.replace("tl.sum(weights", "tl.max(weights"), "divide by the sum"),
    "the block's length as the row's": (
        SOLUTION.replace("row * columns", "row * BLOCK"),
        "lets these lanes through",
    ),
    "no mask in the load": (
        SOLUTION.replace(', mask=inside, other=-float("inf")', ""),
        "Program 4 loads elements 65 to 67 of x",
    ),
    "no mask in the store": (SOLUTION.replace("y, mask=inside", "y"), "this is a race"),
    "another axis": (SOLUTION.replace("axis=0", "axis=1", 1), "has axis 0 alone"),
}
