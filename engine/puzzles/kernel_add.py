"""A first kernel of Triton: adding two vectors, a block of elements for each program."""

from engine.puzzles.block_language import NAMES as NAMES
from engine.puzzles.block_language import NamedArray
from engine.puzzles.kernel_judging import drawn, numbers, ran, require

TITLE = "add two vectors in Triton"
LESSON = "17-triton"
STATEMENT = """
`x`, `y` and `z` are arrays of `n` numbers. The page launches your kernel as
`add_kernel[(triton.cdiv(n, BLOCK),)](x, y, z, n, BLOCK=16)`: as many programs as it takes to cover `n` elements in blocks of 16. `x_ptr` is a
**pointer** to the first element of `x`, and `x_ptr + offsets` are pointers to the elements at these offsets. What stands below adds the
first block. Make each program add a block of its own, and mind the last one, because `n` need not be a multiple of 16.
"""
FUNCTION = "add_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)     # 0, 1, 2, ... 15
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(z_ptr + offsets, x + y)
"""
HINTS = (
    "All programs run these same lines. What tells them apart is tl.program_id(0): 0 in the first, 1 in the second. Program 1 begins at element BLOCK.",
    "The offsets of a program are tl.program_id(0) * BLOCK + tl.arange(0, BLOCK).",
    "In the last program some offsets are n or more. offsets < n is a block of True and False; give it to each load and store as mask=.",
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
OPEN = "Let the programs take every fourth element instead of a block of neighbours: the numbers are the same. Why would a GPU be slower?"

BLOCK = 16
CASES = (50, 16, 1, 64)  # elements


def run(function):
    """Run the reader's kernel for the first length; returns the result in words, and the picture."""
    arrays, programs = asked(function, CASES[0])
    return (
        f"{CASES[0]} elements in blocks of {BLOCK}: {programs} programs ran, and all sums are right.",
        drawn(arrays, programs),
    )


def check(function):
    """Check the reader's kernel for all lengths; a Slip at the first wrong element."""
    words, picture = run(function)
    for count in CASES[1:]:
        asked(function, count)
    return f"Right, for {len(CASES)} lengths. {words}", picture


def asked(function, count):
    """The arrays after a launch for ``count`` elements, and the number of programs; a Slip if a sum is
    wrong."""
    x, y = NamedArray("x", numbers(count, 1)), NamedArray("y", numbers(count, 6))
    z, programs = NamedArray("z", [0.0] * count), -(-count // BLOCK)
    ran(function, programs, [x, y, z], [count], {"BLOCK": BLOCK})
    wanted = [a + b for a, b in zip(x.numbers, y.numbers)]

    def why(found, at):
        """Words for a wrong sum."""
        if found is None:
            whose = f"Element {at} belongs to program {at // BLOCK}."
            return f"{whose} Do its offsets begin at program_id * BLOCK, and does its mask let them through?"
        return f"x[{at}] is {x.numbers[at]:g} and y[{at}] is {y.numbers[at]:g}."

    require(z, wanted, [x, y, z], programs, 1e-6, why)
    return [x, y, z], programs
