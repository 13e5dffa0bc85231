"""An MLP on several ranks: the columns of A and the rows of B that each rank holds."""

import numpy as np

from engine.executed.tensor import EXAMPLE, column_row_parts, relu
from engine.puzzles.judging import Slip, box, picture, rows, shown

TITLE = "an MLP, column then row"
LESSON = "06-tensor-parallel"
STATEMENT = """
`ranks` ranks compute $Y = f(XA)\\,B$ together. Each has all of $X$ and its pieces of $A$ and $B$: it multiplies $X$ by its piece of $A$,
applies $f$ to what it gets, and multiplies that by its piece of $B$. One AllReduce then adds what the ranks have. Return the two pieces
of `rank`, each a list of rows. The ranks must hold equally much, nothing twice, and their sum must be $Y$. `ranks` divides the columns of $A$.
"""
FUNCTION = "pieces"
START = '''def pieces(a, b, rank, ranks):
    """This rank's piece of A, and its piece of B."""
    return a, b
'''
HINTS = (
    "The function f must see finished numbers, not parts of a sum. Which cut of A gives each rank some finished columns of XA?",
    "A rank that has columns 4 to 7 of f(XA) can multiply them by rows 4 to 7 of B, and by no others.",
    "With width = len(b) // ranks, the rank's columns begin at rank * width. A piece of a row is row[first:first + width].",
)
SOLUTION = '''def pieces(a, b, rank, ranks):
    """This rank's piece of A, and its piece of B."""
    width = len(b) // ranks
    first, end = rank * width, (rank + 1) * width
    return [row[first:end] for row in a], b[first:end]
'''
OPEN = (
    "Llama's MLP has a gate: f(XA) times XC, number by number, and then B. How must C be cut? And how would you cut the heads of "
    "attention?"
)

SIZES = ((4, 4, 2), (3, 12, 4), (5, 6, 3), (4, 6, 1), (3, 8, 8))  # rows and columns of A, and ranks


def run(function):
    """Run the reader's split of the lesson's matrices on two ranks; returns the result in words, and the
    figure."""
    ranks = SIZES[0][2]
    held, share = split(function, SIZES[0]), SIZES[0][1] // ranks
    _, a, b = matrices(SIZES[0])
    return f"{ranks} ranks, each with {share} columns of A and {share} rows of B: their sum is Y.", drawn(
        held, a, b
    )


def check(function):
    """Check the reader's split for all sizes; a Slip at the first wrong one."""
    for size in SIZES:
        split(function, size)
    words, picture = run(function)
    return f"Right, for {len(SIZES)} sizes. {words}", picture


def split(function, size):
    """The reader's pieces; a Slip unless the products of the pieces add up to Y."""
    x, a, b = matrices(size)
    columns, ranks = size[1], size[2]
    held = [pieces_of(function, a, b, rank, ranks) for rank in range(ranks)]
    for column in range(columns):
        mine = [row[column] for row in a]
        if not any(mine in turned(piece) for piece, _ in held):
            raise Slip(
                f"With {ranks} ranks, column {column} of A is missing, because no rank has it. Does the piece depend on rank?",
                drawn(held, a, b),
            )
    partial = parts_of_y(x, [mine for mine, _ in held], [others for _, others in held])
    summed = [[sum([part[i][j] for part in partial]) for j in range(len(b[0]))] for i in range(len(x))]
    if summed != parts_of_y(x, [a], [b])[0]:
        raise Slip(
            f"With {ranks} ranks, the sum is not Y. A rank that has some columns of f(XA) needs the rows of B with the same numbers, in the same "
            f"order; rank 0 has the columns {numbers(turned(held[0][0]), turned(a))} and the rows {numbers(held[0][1], b)}.",
            drawn(held, a, b),
        )
    return held


def matrices(size):
    """Matrices X, A and B of small whole numbers: the figure's own, or others in which all columns of A
    differ."""
    hidden, columns, _ = size
    if size == SIZES[0]:
        return [[list(row) for row in matrix] for matrix in EXAMPLE]
    x = [[(3 * i + 2 * j) % 5 - 2 for j in range(hidden)] for i in range(2)]
    a = [[(i * j * j + 3 * j + i) % 13 - 6 for j in range(columns)] for i in range(hidden)]
    b = [[(2 * i * i + i * j + 5 * j) % 11 - 5 for j in range(hidden)] for i in range(columns)]
    return x, a, b


def pieces_of(function, a, b, rank, ranks):
    """A rank's two pieces; a Slip unless they can be multiplied and have the size of the rank's share."""
    call = f"{FUNCTION}(a, b, rank={rank}, ranks={ranks})"
    found = rows(
        function([list(row) for row in a], [list(row) for row in b], rank, ranks),
        call,
        "(piece of A, piece of B)",
        100,
    )
    if len(found) != 2 or not matrix(found[0]) or not matrix(found[1]):
        raise Slip(
            f"{call} must give (piece of A, piece of B), each a list of rows as long as one another, and gave {shown(found)}."
        )
    mine, others = found
    if not mine or not mine[0]:
        raise Slip(f"{call}: this rank holds no columns of A. Ranks are counted from 0.")
    if len(mine) != len(a):
        raise Slip(
            f"{call}: X has {len(a)} columns, so a piece of A needs all {len(a)} rows, and has {len(mine)}. Cut by rows, each rank would apply "
            "f of a part of a sum, which is no part of f of the sum."
        )
    share = len(b) // ranks
    if len(mine[0]) == len(b) and ranks > 1:
        raise Slip(f"{call} has all {len(b)} columns of A: nothing has been cut. A rank's share is {share}.")
    if len(others) != len(mine[0]) or len(others[0]) != len(b[0]):
        raise Slip(
            f"{call}: the {len(mine[0])} columns of A must meet as many rows of B, whole ones of {len(b[0])} numbers; the piece has {len(others)} rows "
            f"of {len(others[0]) if others else 0}."
        )
    if len(mine[0]) != share:
        raise Slip(f"{call} has {len(mine[0])} columns of A; an equal share is {share}.")
    return mine, others


def matrix(value):
    """Whether this is a list of equally long rows of numbers."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(row, (list, tuple)) for row in value):
        return False
    return all(
        len(row) == len(value[0]) and all(isinstance(each, (int, float)) for each in row) for row in value
    )


def numbers(some, all_of_them):
    """The indices of these rows among all rows, in words."""
    places = [all_of_them.index(list(row)) for row in some if list(row) in all_of_them]
    return ", ".join([str(place) for place in places]) or "of none"


# -- the engine's product ------------------------------------------------------------------------------------
def parts_of_y(x, a_pieces, b_pieces):
    """The partial result of each rank, before the AllReduce."""
    matrices = [[np.asarray(piece) for piece in pieces] for pieces in (a_pieces, b_pieces)]
    _, _, partial = column_row_parts(np.asarray(x), matrices[0], matrices[1], relu)
    return [[[float(each) for each in row] for row in part] for part in partial]


def turned(values):
    """The transpose of a matrix: the columns of a list of rows."""
    return [[row[j] for row in values] for j in range(len(values[0]))]


def drawn(held, a, b):
    """The picture of which rank holds each column of A and each row of B."""
    ranks = range(len(held))
    of_a = [[rank for rank in ranks if column in turned(held[rank][0])] for column in turned(a)]
    of_b = [[rank for rank in ranks if row in held[rank][1]] for row in b]
    lines = []
    for name, owners in (("columns of A", of_a), ("rows of B", of_b)):
        boxes = []
        for at in range(len(owners)):
            whose = ", ".join([str(rank) for rank in owners[at]]) or "?"
            look = (
                "wrong"
                if len(owners[at]) != 1 or of_a[at] != of_b[at]
                else "compute"
                if owners[at][0] % 2
                else "hbm"
            )
            boxes.append(box(at, at + 1, whose, look))
        lines.append((name, boxes))
    return picture(
        lines,
        {"wrong": "with nobody, with several, or not with its partner"},
        "The ranks that hold each column of A and each row of B.",
    )
