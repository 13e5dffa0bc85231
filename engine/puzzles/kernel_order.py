"""A kernel for a product whose programs take the tiles in groups of rows."""

from engine.puzzles.block_language import NAMES as NAMES
from engine.puzzles.block_language import NamedArray
from engine.puzzles.judging import Slip
from engine.puzzles.kernel_judging import drawn, numbers, ran, require
from engine.puzzles.kernel_product import multiplied

TITLE = "the same product in groups of rows"
LESSON = "17-triton"
STATEMENT = """
Here is the product again, with tiles of 8 × 8 and a size that is a multiple of 8, so that no mask is needed. Its programs go through $C$ row by row. Make them go
through groups of `GROUP` rows of tiles instead, and inside a group column by column, so that those that run together form a square. With two
rows in a group, programs 0, 1, 2 have the tiles (0, 0), (1, 0), (0, 1). The last group may have fewer rows.
"""
FUNCTION = "matmul_kernel"
BODY = """    rows = tile_m * BLOCK + tl.arange(0, BLOCK)
    columns = tile_n * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total)
"""
HEAD = """import triton
import triton.language as tl

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(m, BLOCK), tl.cdiv(n, BLOCK)
    program = tl.program_id(0)
"""
START = (
    HEAD
    + """    tile_m = program // tiles_n
    tile_n = program % tiles_n
"""
    + BODY
)
SOLUTION = (
    HEAD
    + """    in_group = GROUP * tiles_n
    first_m = program // in_group * GROUP
    height = min(tiles_m - first_m, GROUP)
    place = program % in_group
    tile_m = first_m + place % height
    tile_n = place // height
"""
    + BODY
)
HINTS = (
    "A full group has GROUP * tiles_n programs. So program // (GROUP * tiles_n) is the number of the group, and the rest of that division its place in it.",
    "Inside a group, column by column: the row changes with every program, the column after as many programs as the group has rows.",
    "The last group has min(tiles_m - first_m, GROUP) rows. Divide the place by this height: the rest is the row, the quotient the column.",
)
OPEN = "Let each group go through its columns in the other direction than the one before. What does the second group then find in L2?"

BLOCK = 8
CASES = ((3, 2, 2), (2, 3, 1), (1, 2, 8))  # rows and columns of tiles, rows of a group


def run(function):
    """Run the reader's kernel for the first product; returns the result in words, and the picture."""
    arrays, programs = asked(function, CASES[0])
    tall, wide, group = CASES[0]
    return (
        f"{tall} × {wide} tiles in groups of {group} rows: {programs} programs ran, in the right order.",
        drawn(arrays[2:], programs),
    )


def check(function):
    """Check the reader's kernel for all products; a Slip at the first wrong tile."""
    words, picture = run(function)
    for case in CASES[1:]:
        asked(function, case)
    return f"Right, for {len(CASES)} products. {words}", picture


def in_groups(tall, wide, group):
    """The tiles in the order of their programs."""
    return [
        (row, column)
        for first in range(0, tall, group)
        for column in range(wide)
        for row in range(first, min(first + group, tall))
    ]


def asked(function, case):
    """The arrays after a launch, and the number of programs; a Slip if a tile is computed wrongly or by another
    program than its own."""
    tall, wide, group = case
    m, n, k, programs = tall * BLOCK, wide * BLOCK, BLOCK, tall * wide
    a, b = NamedArray("a", numbers(m * k, 2), row=k), NamedArray("b", numbers(k * n, 4), row=n)
    c = NamedArray("c", [0.0] * (m * n), row=n)
    ran(function, programs, [a, b, c], [m, n, k], {"BLOCK": BLOCK, "GROUP": group})
    wanted = multiplied(a.numbers, b.numbers, m, n, k)
    require(c, wanted, [c], programs, 1e-5, lambda found, at: "Does each tile have one program?")
    order = in_groups(tall, wide, group)
    for number, tile in enumerate(order):
        at = tile[0] * BLOCK * n + tile[1] * BLOCK
        writer = c.writer[at]
        if writer != number:
            places = [at + down * n + right for down in range(BLOCK) for right in range(BLOCK)]
            raise Slip(
                f"C is right, but the order is not: with {tall} × {wide} tiles and GROUP={group}, tile {tile} belongs to program {number}, and program {writer} computes it.",
                drawn([c], programs, c, places),
                c.line[at],
            )
    return [a, b, c], programs
