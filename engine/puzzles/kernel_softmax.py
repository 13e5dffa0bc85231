"""A kernel for softmax: a row for each program, read once."""

import math

from engine.puzzles.block_language import NAMES as NAMES
from engine.puzzles.block_language import NamedArray
from engine.puzzles.kernel_judging import drawn, numbers, ran, require

TITLE = "a softmax that reads each row once"
LESSON = "17-triton"
STATEMENT = """
`x` has some rows of `columns` numbers each, one row after the other in memory, so that row `r` begins at element `r * columns`. Store the softmax of each
row in `y`: $y_i = e^{x_i - m} / \\sum_j e^{x_j - m}$, where $m$ is the row's largest number. The page starts one program for each row, and
`BLOCK` is the next power of two that holds a row. `tl.max(x, axis=0)` and `tl.sum(x, axis=0)` turn a block into one number, and `tl.exp(x)` takes each element.
What stands below copies the first row. Some rows are shorter than the block, and some have numbers near 1,000.
"""
FUNCTION = "softmax_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = 0
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside)
    y = x
    tl.store(y_ptr + row * columns + offsets, y, mask=inside)
"""
HINTS = (
    "One program has one row: row = tl.program_id(0).",
    'The maximum takes in every lane of the block, the masked ones as well. Give these a value that changes no maximum: other=-float("inf") in the load.',
    "weights = tl.exp(x - tl.max(x, axis=0)), and the result is weights / tl.sum(weights, axis=0). exp of -inf is 0, so that masked lanes add nothing.",
)
SOLUTION = """import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    y = weights / tl.sum(weights, axis=0)
    tl.store(y_ptr + row * columns + offsets, y, mask=inside)
"""
OPEN = "Give each program two rows, as a block of 2 × BLOCK with rows[:, None] and offsets[None, :]. Which axis do the maximum and the sum then take?"

CASES = ((5, 13, 0.0), (3, 16, 0.0), (4, 10, 1000.0), (2, 6, -1000.0), (1, 1, 0.0))  # rows, columns, shift


def run(function):
    """Run the reader's kernel for the first matrix; returns the result in words, and the picture."""
    arrays = asked(function, CASES[0])
    rows, columns, _ = CASES[0]
    return (
        f"{rows} rows of {columns}, a block of {power(columns)} for each: {rows} programs ran, and all rows are right.",
        drawn(arrays, rows),
    )


def check(function):
    """Check the reader's kernel for all matrices; a Slip at the first wrong element."""
    words, picture = run(function)
    for case in CASES[1:]:
        asked(function, case)
    return f"Right, for {len(CASES)} matrices. {words}", picture


def power(count):
    """The next power of two."""
    return 1 << (count - 1).bit_length()


def softmax_row(row):
    """The softmax of a list of numbers."""
    weights = [math.exp(each - max(row)) for each in row]
    return [each / sum(weights) for each in weights]


def asked(function, case):
    """The arrays after a launch; a Slip if an element is wrong."""
    rows, columns, shift = case
    x = NamedArray("x", [each + shift for each in numbers(rows * columns, 3)], row=columns)
    y = NamedArray("y", [0.0] * (rows * columns), row=columns)
    ran(function, rows, [x, y], [columns], {"BLOCK": power(columns)})
    of = [x.numbers[at * columns : (at + 1) * columns] for at in range(rows)]
    wanted = [each for row in of for each in softmax_row(row)]

    def why(found, at):
        """Words for a wrong weight."""
        if found is None:
            return f"Row {at // columns} belongs to program {at // columns}."
        row = of[at // columns]
        for value, words in (
            (x.numbers[at], "This is x itself."),
            (x.numbers[at] - max(row), "This is x less the maximum: exp and the division are missing."),
            (math.exp(x.numbers[at] - max(row)), "This is the exponential: divide by the sum of the row's."),
            (sum(softmax_row(row)), "Every weight is the row's sum."),
        ):
            if abs(found - value) < 1e-4 * max(1.0, abs(value)):
                return words
        if found != found:
            return "This is not a number: exp of a large number is inf, and inf / inf is nan. Take the row's maximum off first."
        if shift and found == 0:
            return "exp of a large negative number is 0. Take the row's maximum off first."
        return "Are maximum and sum those of this row alone, without the lanes beyond its end?"

    require(y, wanted, [x, y], rows, 1e-5, why)
    return [x, y]
