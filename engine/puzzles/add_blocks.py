"""The first Triton kernel: two vectors are added, a block of elements for each program."""

from engine.puzzles.judging import Slip
from engine.puzzles.tl_blocks import Tensor
from engine.puzzles.tl_cases import by_element, compared, empty, launched, some
from engine.puzzles.tl_language import cdiv, given

TITLE = "z = x + y, a block for each program"
LESSON = "17-triton"
STATEMENT = """
Write the kernel. It is launched once for each block, as `add_kernel[(programs,)](x, y, z, n, BLOCK=8)`, and every program has to add the `BLOCK`
elements that are its own. `n` is rarely a multiple of `BLOCK`.

`tl.program_id(0)` is the program's number, `tl.arange(0, BLOCK)` are the numbers from 0 to BLOCK − 1, `tl.load(pointers, mask=…)` and
`tl.store(pointers, values, mask=…)` touch memory where the mask is true. A pointer plus numbers is a block of pointers.
"""
FUNCTION = "add_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(z_ptr + offsets, x + y)
"""
HINTS = (
    "Run it: all programs touch the same eight elements. Where does program 1 begin?",
    "The offsets of a program are tl.program_id(0) * BLOCK + tl.arange(0, BLOCK).",
    "The last program has lanes behind the end. Compare the offsets with n, and give the result as mask= to both loads and to the store.",
)
SOLUTION = """import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(z_ptr + offsets, x + y, mask=inside)
"""
OPEN = "Make each program add two blocks that lie BLOCK apart. What has to change in the grid, and what could be gained on a GPU?"

CASES = ((30, 8), (32, 8), (5, 8), (33, 16), (64, 16))  # elements, BLOCK


def tried_on(kernel, n, size):
    """The launch of the reader's kernel for n elements; a Slip if z is not x + y."""
    x, y = Tensor("x", some(n, 3)), Tensor("y", some(n, 7))
    z = Tensor("z", empty(n))
    draw = lambda launch, wrong: by_element(launch, ("x", "y", "z"), (n, n, n), wrong)
    launch = launched(kernel, (cdiv(n, size),), (x, y, z, n), draw, BLOCK=size)
    wanted = [a + b for a, b in zip(x.values, y.values)]
    compared(launch, z, wanted, draw, lambda place, value: why(place, value, x.values, size))
    return launch, draw(launch, ())


def why(place, value, x, size):
    """What helps with this wrong element."""
    if value != value:
        return f"With blocks of {size} it belongs to program {place // size}."
    if abs(value - x[place]) < 1e-9:
        return "That is x alone."
    return f"With blocks of {size} it is lane {place % size} of program {place // size}."


def run(kernel):
    """Run the reader's kernel for 30 elements in blocks of 8."""
    launch, drawn = tried_on(kernel, *CASES[0])
    return f"{launch.grid[0]} programs have added {CASES[0][0]} elements, {CASES[0][1]} at most each.", drawn


def check(kernel):
    """Check it for all cases."""
    for n, size in CASES:
        try:
            tried_on(kernel, n, size)
        except Slip as slip:
            slip.words = f"For {n} elements in blocks of {size}: {slip.words}"
            raise
    words, drawn = run(kernel)
    return f"Right, for {len(CASES)} lengths, whole blocks and ragged ones. {words}", drawn
