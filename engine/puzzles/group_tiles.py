"""The order of a product's tiles in Triton: programs that run together should read the same strips."""

from engine.puzzles.judging import Slip
from engine.puzzles.product_tiles import SIDE, product
from engine.puzzles.tl_blocks import Tensor
from engine.puzzles.tl_cases import by_tile, compared, empty, launched, some
from engine.puzzles.tl_language import cdiv, given

TITLE = "the same product, in an order that the L2 cache likes"
LESSON = "17-triton"
STATEMENT = """
Now the grid has one axis, `matmul_kernel[(tiles,)](a, b, c, m, n, k, …, GROUP=2)`, and the kernel below takes the tiles row by row. Programs with neighbouring numbers run at the same
time, and row by row they share one strip of `A` and need every strip of `B`.

Take them in groups instead: `GROUP` rows of tiles at a time, and within a group **down** each column of tiles before the next column begins. The last group may have fewer rows. Change the two lines that make
`tile_m` and `tile_n` of the program's number.
"""
FUNCTION = "matmul_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                  GROUP: tl.constexpr):
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    tile_m = program // tiles_n
    tile_n = program % tiles_n
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
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
HINTS = (
    "A whole group has GROUP * tiles_n programs. Which group is this program in, and at which row of tiles does that group begin?",
    "Inside the group, count down a column: the place modulo the group's height is the row, the place divided by it is the column.",
    "height = min(tiles_m - first, GROUP), because the last group may be lower. Then tile_m = first + place % height, tile_n = place // height.",
)
SOLUTION = START.replace(
    """    tile_m = program // tiles_n
    tile_n = program % tiles_n
""",
    """    in_group = GROUP * tiles_n
    first = program // in_group * GROUP
    height = min(tiles_m - first, GROUP)
    place = program % in_group
    tile_m = first + place % height
    tile_n = place // height
""",
)
OPEN = "How large should a group be if 132 programs run at once and all of them together should read as few strips as possible?"

CASES = ((64, 96, 16, 2), (80, 32, 16, 2), (48, 48, 16, 3), (40, 40, 20, 4))  # m, n, k, GROUP
TOGETHER = 4  # programs that run at the same time, in this puzzle


def order(tiles_m, tiles_n, group):
    """The tile of each program in grouped order."""
    found = []
    for first in range(0, tiles_m, group):
        height = min(tiles_m - first, group)
        found += [(first + row, column) for column in range(tiles_n) for row in range(height)]
    return found


def strips(tiles):
    """The strips of A and B that programs read which run at the same time, in the mean."""
    counts = []
    for at in range(0, len(tiles), TOGETHER):
        rows_and_columns = tiles[at : at + TOGETHER]
        counts.append(
            len({row for row, _ in rows_and_columns}) + len({column for _, column in rows_and_columns})
        )
    return sum(counts) / len(counts)


def tried_on(kernel, m, n, k, group):
    """The launch of the reader's kernel, and the tile of each program; a Slip if the order or C is wrong."""
    a, b, c = Tensor("a", some(m * k, 5)), Tensor("b", some(k * n, 9)), Tensor("c", empty(m * n))
    draw = lambda launch, wrong: by_tile(launch, "c", (m, n), (SIDE, SIDE), wrong)
    tiles_m, tiles_n = cdiv(m, SIDE), cdiv(n, SIDE)
    blocks = {"BLOCK_M": SIDE, "BLOCK_N": SIDE, "BLOCK_K": SIDE, "GROUP": group}
    launch = launched(kernel, (tiles_m * tiles_n,), (a, b, c, m, n, k), draw, **blocks)
    wanted = product(a.values, b.values, m, n, k)
    compared(
        launch,
        c,
        wanted,
        draw,
        lambda place, value: f"It is in tile ({place // n // SIDE}, {place % n // SIDE}).",
    )
    mine = {program: (place // n // SIDE, place % n // SIDE) for program, _, place in launch.stores}
    for program, tile in enumerate(order(tiles_m, tiles_n, group)):
        if mine[program] != tile:
            wrong = {("c", place) for by, _, place in launch.stores if by == program}
            raise Slip(
                f"Program {program} must take tile {tile}, and takes {mine[program]}: {tiles_m} rows of {tiles_n} tiles in groups of "
                f"{group} rows, down each column first.",
                draw(launch, wrong),
            )
    return [mine[program] for program in range(tiles_m * tiles_n)], draw(launch, ())


def run(kernel):
    """Run the reader's kernel for the first case."""
    m, n, k, group = CASES[0]
    tiles, drawn = tried_on(kernel, m, n, k, group)
    by_row = [(at // cdiv(n, SIDE), at % cdiv(n, SIDE)) for at in range(len(tiles))]
    return (
        f"Of every {TOGETHER} programs that run together, {strips(tiles):.1f} strips of A and B are read in the mean; row by row it is {strips(by_row):.1f}.",
        drawn,
    )


def check(kernel):
    """Check it for all cases."""
    for m, n, k, group in CASES:
        try:
            tried_on(kernel, m, n, k, group)
        except Slip as slip:
            slip.words = f"For m = {m}, n = {n}, GROUP = {group}: {slip.words}"
            raise
    words, drawn = run(kernel)
    return f"Right, for {len(CASES)} grids, with lower last groups among them. {words}", drawn
