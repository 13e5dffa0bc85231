"""A matrix product in Triton: a tile of C for each program, with masks at the edges."""

from engine.puzzles.judging import Slip
from engine.puzzles.tl_blocks import Tensor
from engine.puzzles.tl_cases import by_tile, compared, empty, launched, some
from engine.puzzles.tl_language import cdiv, given

TITLE = "C = A·B, a tile for each program"
LESSON = "17-triton"
STATEMENT = """
`A` is `m × k`, `B` is `k × n`, both stored row by row, and no side is a multiple of a block. The kernel is launched over a grid of two axes,
`matmul_kernel[(tiles of rows, tiles of columns)](a, b, c, m, n, k, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)`, and every program has to compute one tile of `C`.

Two dimensions are made of one with `[:, None]` and `[None, :]`. `tl.dot(a, b, total)` multiplies two blocks and adds the product to `total`, which begins as `tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)`.
"""
FUNCTION = "matmul_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a = tl.load(a_ptr + rows[:, None] * k + inner[None, :])
    b = tl.load(b_ptr + inner[:, None] * n + columns[None, :])
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], tl.dot(a, b))
"""
HINTS = (
    "One step covers BLOCK_K of the k products. Put load and dot into `for start in range(0, k, BLOCK_K):` and add up in `total`.",
    "Three edges need a mask: rows < m, columns < n, and start + inner < k. A load's mask has two dimensions, as (rows < m)[:, None] & (inner < k)[None, :].",
    "A lane beyond k must add nothing to the sum: other=0.0 in both loads. The store has a mask of its own, of rows and columns.",
)
SOLUTION = """import triton
import triton.language as tl

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows < m)[:, None] & (inner < k)[None, :], other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :],
                    mask=(inner < k)[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total,
             mask=(rows < m)[:, None] & (columns < n)[None, :])
"""
OPEN = "Give the kernel a bias, and GELU before the store. How many bytes less does that move than a kernel of its own?"

CASES = ((20, 24, 18), (16, 16, 40), (33, 17, 16))  # m, n, k
SIDE = 16


def product(a, b, m, n, k):
    """A·B, row by row."""
    columns = [b[column::n] for column in range(n)]
    rows = [a[row * k : (row + 1) * k] for row in range(m)]
    return [sum([x * y for x, y in zip(row, column)]) for row in rows for column in columns]


def tried_on(kernel, m, n, k):
    """The launch of the reader's kernel; a Slip if C is not the product."""
    a, b, c = Tensor("a", some(m * k, 5)), Tensor("b", some(k * n, 9)), Tensor("c", empty(m * n))
    draw = lambda launch, wrong: by_tile(launch, "c", (m, n), (SIDE, SIDE), wrong)
    grid, blocks = (cdiv(m, SIDE), cdiv(n, SIDE)), {"BLOCK_M": SIDE, "BLOCK_N": SIDE, "BLOCK_K": SIDE}
    launch = launched(kernel, grid, (a, b, c, m, n, k), draw, **blocks)
    wanted = product(a.values, b.values, m, n, k)
    first = product([x if place % k < SIDE else 0.0 for place, x in enumerate(a.values)], b.values, m, n, k)
    compared(launch, c, wanted, draw, lambda place, value: why(place, value, n, first))
    return launch, draw(launch, ())


def why(place, value, n, first):
    """What helps with this wrong element."""
    if abs(value - first[place]) < 1e-9:
        return f"That is the sum of the first {SIDE} products: the loop over k is missing, or ends early."
    return (
        f"It is column {place % n} of row {place // n}, in tile ({place // n // SIDE}, {place % n // SIDE})."
    )


def run(kernel):
    """Run the reader's kernel for the first case."""
    m, n, k = CASES[0]
    launch, drawn = tried_on(kernel, m, n, k)
    loads = len(launch.loads)
    return (
        f"{launch.grid[0]} × {launch.grid[1]} programs; {loads:,} loads of the {m * k + k * n:,} elements of A and B, "
        "because every tile of C reads its own strips again.",
        drawn,
    )


def check(kernel):
    """Check it for all cases."""
    for m, n, k in CASES:
        try:
            tried_on(kernel, m, n, k)
        except Slip as slip:
            slip.words = f"For m = {m}, n = {n}, k = {k}: {slip.words}"
            raise
    words, drawn = run(kernel)
    return f"Right, for {len(CASES)} products with ragged edges. {words}", drawn
