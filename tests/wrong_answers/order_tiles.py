"""Wrong answers to the puzzle *an order of tiles for the L2*, each with some of the words that it gets."""

from engine.puzzles.order_tiles import SOLUTION, START

WRONG = {
    "row by row": (START, "1 × 9 tiles, and reads"),
    "column by column": (
        START.replace(
            "for row in range(tall) for column in range(wide)",
            "for column in range(wide) for row in range(tall)",
        ),
        "9 × 1 tiles, and reads",
    ),
    "groups, but row by row inside": (
        SOLUTION.replace(
            "        for column in range(wide):\n            for row in range(first, min(first + height, tall)):\n",
            "        for row in range(first, min(first + height, tall)):\n            for column in range(wide):\n",
        ),
        "1 × 9 tiles, and reads",
    ),
    "groups as high as a wave": (SOLUTION.replace("round(wave ** 0.5)", "wave"), "9 × 1 tiles, and reads"),
    "always two rows": (SOLUTION.replace("round(wave ** 0.5)", "2"), "would do"),
    "along the diagonals": (
        START.replace("return [", "return sorted([").replace(
            "(wide)]", "(wide)], key=lambda tile: (tile[0] - tile[1]) % wide)"
        ),
        "9 × 9 tiles, and reads",
    ),
    "dealt out": (
        "def order(tall, wide, wave):\n    tiles = [(row, column) for row in range(tall) for column in range(wide)]\n"
        "    return [tile for k in range(wave) for tile in tiles[k::wave]]\n",
        "would do",
    ),
    "the last rows are left over": (
        SOLUTION.replace("range(0, tall, height)", "range(0, tall - height + 1, height)"),
        "is missing",
    ),
    "rows that are not there": (SOLUTION.replace("min(first + height, tall)", "first + height"), "there are"),
    "a tile twice": (SOLUTION.replace("return tiles", "return tiles + tiles[:1]"), "twice"),
    "columns for rows": (SOLUTION.replace("(row, column))", "(column, row))"), "there are"),
    "numbers of tiles": (
        START.replace("(row, column) for", "row * wide + column for"),
        "must be (row, column)",
    ),
    "nothing": (START.replace("return", "tiles ="), "Does it end with a return?"),
    "groups of one": (SOLUTION.replace("round(wave ** 0.5)", "1"), "make it nearer to a square"),
    "half as high": (
        SOLUTION.replace("round(wave ** 0.5)", "max(1, round(wave ** 0.5) // 2)"),
        "make it nearer to a square",
    ),
    "twice as high": (
        SOLUTION.replace("round(wave ** 0.5)", "2 * round(wave ** 0.5)"),
        "make it nearer to a square",
    ),
    "in snakes of rows": (
        SOLUTION.replace(
            "tiles.append((row, column))", "tiles.append((row, wide - 1 - column if row % 2 else column))"
        ),
        "make it nearer to a square",
    ),
    "the last first": (
        SOLUTION.replace(
            "    return tiles", "    return sorted(tiles, key=lambda tile: (tile[1], tile[0]))[::-1]"
        ),
        "make it nearer to a square",
    ),
    "one column short": (SOLUTION.replace("range(wide)", "range(wide - 1)"), "(0, 8) is missing"),
    "one column too many": (
        SOLUTION.replace("range(wide)", "range(wide + 1)"),
        "there are rows 0 to 8 and columns 0 to 8",
    ),
    "counted from one": (
        SOLUTION.replace("(row, column))", "(row + 1, column + 1))"),
        "there are rows 0 to 8 and columns 0 to 8",
    ),
    "triples": (SOLUTION.replace("(row, column))", "(row, column, 0))"), "(0, 0, 0) is not"),
    "texts": (
        SOLUTION.replace("tiles.append((row, column))", "tiles.append(f'{row},{column}')"),
        "must be (row, column), and '0,0' is not",
    ),
}
