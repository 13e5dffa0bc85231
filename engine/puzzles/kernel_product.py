"""A kernel for a product of matrices: a tile of the result for each program, with masks at the edges."""

from engine.puzzles.block_language import NAMES as NAMES
from engine.puzzles.block_language import NamedArray
from engine.puzzles.kernel_judging import drawn, numbers, ran, require

TITLE = "a product in tiles"
LESSON = "17-triton"
STATEMENT = """
$C = AB$, with $A$ of `m` × `k`, $B$ of `k` × `n`, rows one after the other in memory. Each program computes one tile of $C$, `BLOCK` × `BLOCK`, and goes along `k` in steps
of `BLOCK`. Programs are numbered row by row: with `tiles_n` tiles in a row, number 0 has the first tile and number `tiles_n` the one below it.
`rows[:, None] * k + inner[None, :]` is a column plus a row, which makes a block of `BLOCK` × `BLOCK` offsets. The kernel below is right as long as
`m`, `n` and `k` are multiples of `BLOCK`. Make it right for every size.
"""
FUNCTION = "matmul_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    tiles_n = tl.cdiv(n, BLOCK)
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)
    columns = tile_n * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total)
"""
HINTS = (
    "There are three edges: rows < m, columns < n, inner < k. Each load and the store needs those of its two dimensions.",
    "A mask has the shape of its pointers: (rows < m)[:, None] & (inner < k)[None, :] for A.",
    "Beyond the end of k both factors must be such that they add nothing: other=0.0 in both loads.",
)
SOLUTION = """import triton
import triton.language as tl

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    tiles_n = tl.cdiv(n, BLOCK)
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)
    columns = tile_n * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a_inside = (rows < m)[:, None] & (inner < k)[None, :]
        b_inside = (inner < k)[:, None] & (columns < n)[None, :]
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=a_inside, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=b_inside, other=0.0)
        total = tl.dot(a, b, total)
    c_inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total, mask=c_inside)
"""
OPEN = "One of the two masks along k is not needed for the sum, only for the addresses. Which load could read anything there, and why?"

BLOCK = 8
CASES = ((12, 20, 10), (8, 8, 16), (5, 9, 3))  # m, n, k


def run(function):
    """Run the reader's kernel for the first product; returns the result in words, and the picture."""
    arrays, programs = asked(function, CASES[0])
    m, n, k = CASES[0]
    return (
        f"{m} × {k} times {k} × {n} in tiles of {BLOCK} × {BLOCK}: {programs} programs ran, and all of C is right.",
        drawn(arrays, programs),
    )


def check(function):
    """Check the reader's kernel for all products; a Slip at the first wrong element."""
    words, picture = run(function)
    for case in CASES[1:]:
        asked(function, case)
    return f"Right, for {len(CASES)} products. {words}", picture


def multiplied(a, b, m, n, k):
    """The product of two matrices that are lists, row by row."""
    return [sum([a[i * k + p] * b[p * n + j] for p in range(k)]) for i in range(m) for j in range(n)]


def asked(function, case):
    """The arrays after a launch, and the number of programs; a Slip if an element is wrong."""
    m, n, k = case
    a, b = NamedArray("a", numbers(m * k, 2), row=k), NamedArray("b", numbers(k * n, 4), row=n)
    c, programs = NamedArray("c", [0.0] * (m * n), row=n), -(-m // BLOCK) * -(-n // BLOCK)
    ran(function, programs, [a, b, c], [m, n, k], {"BLOCK": BLOCK})
    wanted = multiplied(a.numbers, b.numbers, m, n, k)

    def why(found, at):
        """Words for a wrong element."""
        if found is None:
            return "Does every program have a tile of its own?"
        first = sum([a.numbers[at // n * k + p] * b.numbers[p * n + at % n] for p in range(min(k, BLOCK))])
        if abs(found - first) < 1e-4 and k > BLOCK:
            return f"This is the sum of the first {BLOCK} along k alone."
        return f"For rows of A of {k} and of B of {n}, is every row multiplied by its length?"

    require(c, wanted, [a, b, c], programs, 1e-5, why)
    return [a, b, c], programs
