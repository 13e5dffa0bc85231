"""Wrong answers to the puzzle *an MLP, column then row*, each with some of the words that it gets."""

from engine.puzzles.split_mlp import SOLUTION, START

CUT_A, CUT_B = "[row[first:end] for row in a]", "b[first:end]"
WRONG = {
    "nothing is cut": (START, "nothing has been cut"),
    "A by rows": (
        SOLUTION.replace(f"{CUT_A}, {CUT_B}", "a[first:end], [row[first:end] for row in b]"),
        "f of a part of a sum",
    ),
    "B by columns too": (SOLUTION.replace(CUT_B, "[row[first:end] for row in b]"), "must meet as many rows"),
    "all of B": (SOLUTION.replace(CUT_B, "b"), "must meet as many rows"),
    "only B is cut": (SOLUTION.replace(CUT_A, "a"), "nothing has been cut"),
    "every rank the same": (SOLUTION.replace("rank * width, (rank + 1) * width", "0, width"), "no rank has"),
    "columns dealt out like cards": (
        SOLUTION.replace(CUT_A, "[row[rank::ranks] for row in a]"),
        "needs the rows of B with the same numbers",
    ),
    "rows in reverse": (
        SOLUTION.replace(CUT_B, "b[first:end][::-1]"),
        "needs the rows of B with the same numbers",
    ),
    "ranks counted from one": (
        SOLUTION.replace("rank * width, (rank + 1) * width", "(rank - 1) * width, rank * width"),
        "holds no columns",
    ),
    "A on its side": (
        SOLUTION.replace(CUT_A, "[list(column) for column in zip(*a)][first:end]"),
        "f of a part of a sum",
    ),
    "A alone": (SOLUTION.replace(f"{CUT_A}, {CUT_B}", CUT_A), "must give (piece of A, piece of B)"),
    "nothing": (SOLUTION.replace("    return", "    found ="), "Does it end with a return?"),
    "one column short": (
        SOLUTION.replace(
            "first, end = rank * width, (rank + 1) * width",
            "first, end = rank * width, (rank + 1) * width - 1",
        ),
        "an equal share is 2",
    ),
    "one column more": (
        SOLUTION.replace(
            "first, end = rank * width, (rank + 1) * width",
            "first, end = rank * width, (rank + 1) * width + 1",
        ),
        "an equal share is 2",
    ),
    "B of the next rank": (
        SOLUTION.replace("b[first:end]", "b[end:] + b[:width] if end >= len(b) else b[end:end + width]"),
        "rank 0 has the columns 0, 1 and the rows 2, 3",
    ),
    "the width of the input": (
        SOLUTION.replace("len(b) // ranks", "len(a) // ranks"),
        "Ranks are counted from 0",
    ),
    "halves for all": (SOLUTION.replace("len(b) // ranks", "len(b) // 2"), "an equal share is 3"),
    "the other way round": (
        SOLUTION.replace(
            "return [row[first:end] for row in a], b[first:end]",
            "return b[first:end], [row[first:end] for row in a]",
        ),
        "is no part of f of the sum",
    ),
    "only B": (
        SOLUTION.replace("return [row[first:end] for row in a], b[first:end]", "return b[first:end]"),
        "gave [[0, -1, 2, 2], [-1, 0, 1, 1]]",
    ),
    "the places": (
        SOLUTION.replace(
            "return [row[first:end] for row in a], b[first:end]", "return (first, end), (first, end)"
        ),
        "gave [(0, 2), (0, 2)]",
    ),
    "zeros elsewhere": (
        SOLUTION.replace(
            "return [row[first:end] for row in a], b[first:end]",
            "return [[x if first <= j < end else 0 for j, x in enumerate(row)] for row in a], b[first:end]",
        ),
        "A rank's share is 2",
    ),
    "B divided by the ranks": (
        SOLUTION.replace("b[first:end]", "[[x / ranks for x in row] for row in b[first:end]]"),
        "rank 0 has the columns 0, 1 and the rows of none",
    ),
}
