"""The order of a product's tiles that reuses the most blocks in L2."""

from engine.one_gpu.tile_order import L2, read_wave
from engine.puzzles.judging import Slip, rows, shown, whole

TITLE = "an order of tiles for the L2"
LESSON = "17-triton"
STATEMENT = """
A product $C = AB$ has `tall` rows and `wide` columns of tiles. Return them as a list of `(row, column)`, in the order in which their programs
start. `wave` of them run at a time, and all have `wave` tiles before the next ones start. The tile in row `r` and column `c` reads strip
`r` of $A$ and strip `c` of $B$; what a wave shares is read once, and the L2 keeps the blocks that were read last. Choose an order that
needs no more blocks from HBM than groups of rows in which each wave is a square.
"""
FUNCTION = "order"
START = '''def order(tall, wide, wave):
    """The tiles (row, column), in the order of their starts."""
    return [(row, column) for row in range(tall) for column in range(wide)]
'''
HINTS = (
    "A wave reads as many strips of A as it has rows, and as many of B as it has columns. Of nine tiles, three by three need six strips; nine in "
    "a row need ten.",
    "Cut C into groups of neighbouring rows, about the square root of wave, and go through each group column by column.",
    "For first in range(0, tall, height): for each column: for each row from first up to min(first + height, tall). The last group may be lower.",
)
SOLUTION = '''def order(tall, wide, wave):
    """The tiles (row, column), in the order of their starts."""
    height = round(wave ** 0.5)
    tiles = []
    for first in range(0, tall, height):
        for column in range(wide):
            for row in range(first, min(first + height, tall)):
                tiles.append((row, column))
    return tiles
'''
OPEN = (
    "Turn round at the end of each group, so that the next one begins with the strips of B that were read last. How many blocks does that save, "
    "and how many would an L2 of twice the size?"
)

CASES = (  # rows and columns of tiles, blocks along k, tiles of a wave, and blocks for which the L2 has room
    (9, 9, 3, 9, 20),
    (8, 6, 2, 4, 8),
    (7, 8, 2, 9, 14),
    (4, 12, 2, 16, 18),
    (5, 5, 1, 1, 4),
)


def run(function):
    """Run the reader's function for the first product; returns the result in words, and the figure."""
    tiles = order_of(function, CASES[0])
    read, asked = read_by(tiles, CASES[0])
    tall, wide, steps, wave, room = CASES[0]
    return (
        f"{tall} × {wide} tiles, {steps} blocks along k, {wave} tiles at a time, an L2 of {room} blocks: {read} of {asked} blocks come from HBM.",
        drawn(tiles, CASES[0]),
    )


def check(function):
    """Check the reader's function for all products; a Slip at the first wrong answer."""
    for case in CASES:
        require_few(order_of(function, case), case)
    words, picture = run(function)
    return f"Right, for {len(CASES)} products. {words}", picture


def order_of(function, case):
    """The reader's order of the tiles; a Slip unless it contains each tile once."""
    tall, wide, _, wave, _ = case
    call = f"{FUNCTION}({tall}, {wide}, {wave})"
    tiles = []
    for tile in rows(function(tall, wide, wave), call, "a list of (row, column)", 1000):
        if not isinstance(tile, (list, tuple)) or len(tile) != 2 or not whole(tile[0]) or not whole(tile[1]):
            raise Slip(f"{call}: each tile must be (row, column), and {shown(tile)} is not.")
        if not 0 <= tile[0] < tall or not 0 <= tile[1] < wide:
            raise Slip(
                f"{call} has the tile {shown(tile)}; there are rows 0 to {tall - 1} and columns 0 to {wide - 1}."
            )
        if tuple(tile) in tiles:
            raise Slip(f"{call} has the tile {shown(tile)} twice.")
        tiles.append(tuple(tile))
    for number in range(tall * wide):
        if divmod(number, wide) not in tiles:
            raise Slip(f"{call} has {len(tiles)} tiles: {divmod(number, wide)} is missing.")
    return tiles


def read_by(tiles, case):
    """The number of blocks read from HBM, and of blocks read in all, by the engine's model of L2."""
    tall, wide, steps, wave, room = case
    row, column = [tile[0] for tile in tiles], [tile[1] for tile in tiles]
    blocks = 1 + (tall + wide) * steps
    l2 = L2([0] * blocks, [0] * blocks, [0] * blocks, 0, 0, 0)
    for start in range(0, len(tiles), wave):
        end = min(start + wave, len(tiles))
        read_wave(l2, start, end, row, column, tall, wide, steps, room)
    return l2.read, l2.asked


def grouped(case, height):
    """The tiles in groups of ``height`` rows; inside a group the order is column by column."""
    tall, wide, _, _, _ = case
    return [
        (row, column)
        for first in range(0, tall, height)
        for column in range(wide)
        for row in range(first, min(first + height, tall))
    ]


def require_few(tiles, case):
    """Raise a Slip if more blocks are read from HBM than with groups that make a wave of tiles a square."""
    tall, wide, _, wave, room = case
    read, _ = read_by(tiles, case)
    fewest, _ = read_by(grouped(case, round(wave**0.5)), case)
    if read > fewest:
        first = tiles[:wave]
        down, across = len({row for row, _ in first}), len({column for _, column in first})
        raise Slip(
            f"{tall} × {wide} tiles, {wave} at a time, an L2 of {room} blocks: {read} blocks come from HBM, and {fewest} would do. Your first wave covers {down} "
            f"× {across} tiles, and reads a strip for each row and each column; make it nearer to a square.",
            drawn(tiles, case),
        )


BLOCK = 128  # rows and columns of a tile in the figure


def drawn(tiles, case):
    """The state of the figure ``program_blocks``, whose C is a square: the first wave of the reader's order."""
    tall, wide, steps, wave, room = case
    if tall != wide or tall < 2:
        return None
    side = {"side": str(tall * BLOCK), "inner": str(steps * BLOCK), "block": str(BLOCK)}
    return {
        "set": side | {"at_a_time": str(wave), "room": str(room), "play": str(wave)},
        "give": {"own": [1] + [row * wide + column for row, column in tiles]},
    }
