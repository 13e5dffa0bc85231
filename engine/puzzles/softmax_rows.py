"""A fused softmax in Triton: a row for each program, read once and written once."""

import math

from engine.puzzles.judging import Slip
from engine.puzzles.tl_blocks import Tensor
from engine.puzzles.tl_cases import by_tile, compared, empty, launched, some
from engine.puzzles.tl_language import given, next_power_of_2

TITLE = "the softmax of each row, fused"
LESSON = "17-triton"
STATEMENT = """
`softmax_kernel[(rows,)](x, y, columns, stride, BLOCK=…)` is launched with one program for each row. Row `i` of `x` begins `i * stride` elements behind its start, has
`columns` of them, and `BLOCK` is the next power of two. Write `y`, the softmax of each row: $e^{x_j - \\max x} / \\sum_j e^{x_j - \\max x}$. The values may be large.

`tl.max(block, axis=0)` and `tl.sum(block, axis=0)` make one value of a block, `tl.exp` takes each element, and `other=` in `tl.load` says what a masked lane holds.
"""
FUNCTION = "softmax_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets)
    weights = tl.exp(x)
    tl.store(y_ptr + row * stride + offsets, weights)
"""
HINTS = (
    "A row of 12 elements is read with a block of 16: four lanes lie behind it, in the next row or behind the end. Mask them, in the load and in the store.",
    "What should a masked lane hold, so that it changes neither the maximum nor the sum? Its exp must be zero.",
    "other=-float('inf') for the load; take tl.max(x, axis=0) off before tl.exp, and divide by tl.sum(weights, axis=0).",
)
SOLUTION = """import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=inside, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    y = weights / tl.sum(weights, axis=0)
    tl.store(y_ptr + row * stride + offsets, y, mask=inside)
"""
OPEN = "Rows of 100,000 elements do not fit a program's registers. Go through such a row twice, in blocks: what do you keep between the blocks?"

CASES = (
    (4, 12, 12, 1.0),
    (3, 16, 16, 1.0),
    (5, 7, 10, 1.0),
    (2, 20, 20, 500.0),
    (3, 9, 9, -300.0),
)  # rows, columns, stride, scale


def tried_on(kernel, rows, columns, stride, scale):
    """The launch of the reader's kernel; a Slip if y is not the softmax of each row."""
    size = (rows - 1) * stride + columns
    x = Tensor("x", [scale * value for value in some(size, 11 + columns)])
    y = Tensor("y", empty(size))
    draw = lambda launch, wrong: by_tile(launch, "y", (rows, stride), (1, 1), wrong)
    arguments = (x, y, columns, stride)
    launch = launched(kernel, (rows,), arguments, draw, BLOCK=next_power_of_2(columns))
    between = [place for program, name, place in launch.stores if place % stride >= columns]
    if between:
        raise Slip(
            f"y[{between[0]}] lies between two rows: a row has {columns} elements, and the next begins {stride} behind it. Mask by columns.",
            draw(launch, {("y", place) for place in between}),
        )
    wanted = list(y.values)
    for row in range(rows):
        values = x.values[row * stride : row * stride + columns]
        top = max(values)
        total = sum([math.exp(value - top) for value in values])
        for column in range(columns):
            wanted[row * stride + column] = math.exp(values[column] - top) / total
    compared(launch, y, wanted, draw, lambda place, value: why(place, value, wanted, stride, scale))
    return launch, draw(launch, ())


def why(place, value, wanted, stride, scale):
    """What helps with this wrong element."""
    at = f"It is column {place % stride} of row {place // stride}."
    if value != value:
        large = abs(scale) > 100.0
        return (
            f"{at} exp of a large number is infinite, and infinity over infinity is no number: take the row's maximum off first."
            if large
            else at
        )
    if value > 1.0 + 1e-9:
        return f"{at} No share is above 1: divide by the sum of the row."
    return at


def run(kernel):
    """Run the reader's kernel for the first case."""
    launch, drawn = tried_on(kernel, *CASES[0])
    rows, columns, _, _ = CASES[0]
    read = len({place for _, name, place in launch.loads if name == "x"})
    return f"{rows} programs, a row of {columns} each; {len(launch.loads)} loads of {read} elements.", drawn


def check(kernel):
    """Check it for all cases."""
    for rows, columns, stride, scale in CASES:
        try:
            launch, _ = tried_on(kernel, rows, columns, stride, scale)
        except Slip as slip:
            large = ", with values of hundreds" if abs(scale) > 100.0 else ""
            slip.words = f"For {rows} rows of {columns}{large}: {slip.words}"
            raise
        if len(launch.loads) > rows * columns:
            raise Slip(
                f"Every element is to be read once, and there are {len(launch.loads)} loads of {rows * columns} elements."
            )
    words, drawn = run(kernel)
    return (
        f"Right, for {len(CASES)} matrices, with gaps between rows and values of hundreds among them. {words}",
        drawn,
    )
