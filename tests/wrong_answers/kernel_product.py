"""Wrong answers to the puzzle *a product in tiles*, each with some of the words that it gets."""

from engine.puzzles.kernel_product import SOLUTION, START
from tests.wrong_answers.kernels import of_any

WRONG = of_any(SOLUTION) | {
    "no masks": (START, "No mask stops these lanes"),
    "no other": (SOLUTION.replace(", other=0.0", ""), "never loaded"),
    "no mask in the store": (SOLUTION.replace("total, mask=c_inside", "total"), "this is a race"),
    "no accumulator": (SOLUTION.replace("tl.dot(a, b, total)", "tl.dot(a, b)"), "must be"),
    "rows of the other matrix": (SOLUTION.replace("rows[:, None] * k", "rows[:, None] * n"), "The mask lets"),
    "no columns and rows": (
        SOLUTION.replace("rows[:, None] * k + inner[None, :]", "rows * k + inner"),
        "and the pointers are",
    ),
    "tiles counted by column": (
        SOLUTION.replace("// tiles_n", "% tiles_n").replace(
            "tl.program_id(0) % tiles_n\n    rows", "tl.program_id(0) // tiles_n\n    rows"
        ),
        "No program stores",
    ),
    "one step": (SOLUTION.replace("range(0, k, BLOCK)", "range(0, BLOCK, BLOCK)"), "first 8 along k alone"),
    "a column for the mask": (
        SOLUTION.replace(
            "(rows < m)[:, None] & (inner < k)[None, :]", "(rows < m)[None, :] & (inner < k)[:, None]"
        ),
        "lets these lanes through",
    ),
}
