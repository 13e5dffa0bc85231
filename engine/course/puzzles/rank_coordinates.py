"""A rank's coordinates on the axes of a mesh."""

from engine.course.puzzles.judging import Slip, box, picture, rows, whole

TITLE = "from a rank to its coordinates"
LESSON = "10-nd-parallelism"
STATEMENT = """
`sizes` are the sizes of the axes, the innermost first: tensor, context, data, pipeline, say. Neighbours on the innermost axis are one
rank apart; neighbours on the next one as many ranks apart as the innermost is long, and so on outwards. Return the coordinates of
`rank`, one for each axis, in the order of `sizes`.
"""
FUNCTION = "coordinates"
START = '''def coordinates(rank, sizes):
    """One coordinate for each axis, the innermost first."""
    return [rank % size for size in sizes]
'''
HINTS = (
    "Think of an odometer: the innermost axis turns with every rank, the next one only once the innermost has gone round.",
    "An axis has a stride, the product of the sizes of all axes further in. A rank's coordinate on it is (rank // stride) % size.",
    "Go through the sizes with stride = 1; after each axis multiply it by the axis's size.",
)
SOLUTION = '''def coordinates(rank, sizes):
    """One coordinate for each axis, the innermost first."""
    found, stride = [], 1
    for size in sizes:
        found.append(rank // stride % size)
        stride *= size
    return found
'''
OPEN = (
    "Turn it round: which ranks share all coordinates with this one but that on the data axis? These are the ranks of its gradient's "
    "AllReduce. And which of them are on the same node of eight?"
)
WRONG = {
    "the same remainder for all": (START, "ranks 0 and 4 get the same coordinates"),
    "the outermost first": (SOLUTION.replace("    return found", "    return found[::-1]"), "on axis 0"),
    "no remainder": (SOLUTION.replace("rank // stride % size", "rank // stride"), "from 0 to 1"),
    "a stride too many": (
        SOLUTION.replace(
            "        found.append(rank // stride % size)\n        stride *= size\n",
            "        stride *= size\n        found.append(rank // stride % size)\n",
        ),
        "get the same coordinates",
    ),
    "strides are added": (SOLUTION.replace("stride *= size", "stride += size"), "get the same coordinates"),
    "a fraction": (SOLUTION.replace("rank // stride", "rank / stride"), "whole number"),
    "one coordinate short": (
        SOLUTION.replace("for size in sizes", "for size in sizes[1:]"),
        "has 2 coordinates",
    ),
    "a number": (
        SOLUTION.replace("    return found", "    return stride"),
        "must give a list of 3 coordinates",
    ),
}

MESHES = ((2, 2, 4), (8, 1, 16, 4), (4,), (3, 5), (8, 2, 2, 2, 3))


def run(function):
    """The first mesh."""
    sizes = MESHES[0]
    found = of_all(function, sizes)
    listed = ", ".join([f"{rank}: {tuple(found[rank])}" for rank in (0, 1, 2, 5, 15)])
    return f"Axes of {', '.join([str(size) for size in sizes])} ranks, the innermost first. {listed}.", drawn(
        found, sizes
    )


def check(function):
    """All meshes."""
    for sizes in MESHES:
        require_mesh(of_all(function, sizes), sizes)
    words, picture = run(function)
    return f"Right, for {len(MESHES)} meshes. {words}", picture


def of_all(function, sizes):
    """The coordinates of every rank."""
    ranks = 1
    for size in sizes:
        ranks *= size
    return [of_rank(function, rank, sizes) for rank in range(ranks)]


def of_rank(function, rank, sizes):
    """The coordinates that the reader's function gives a rank."""
    call = f"{FUNCTION}({rank}, {list(sizes)})"
    found = rows(function(rank, list(sizes)), call, f"a list of {len(sizes)} coordinates", 100)
    if len(found) != len(sizes):
        raise Slip(f"{call} has {len(found)} coordinates; the mesh has {len(sizes)} axes.")
    for axis in range(len(sizes)):
        if not whole(found[axis]) or not 0 <= found[axis] < sizes[axis]:
            raise Slip(
                f"{call} has {found[axis]} on axis {axis}; it must be a whole number from 0 to {sizes[axis] - 1}."
            )
    return found


def require_mesh(found, sizes):
    """A Slip unless each rank has its own place, and neighbours on an axis are its stride apart."""
    seen = {}
    for rank in range(len(found)):
        other = seen.setdefault(tuple(found[rank]), rank)
        if other != rank:
            raise Slip(
                f"With sizes {list(sizes)}, ranks {other} and {rank} get the same coordinates, {tuple(found[rank])}. Each rank has a place of its own.",
                drawn(found, sizes, (other, rank)),
            )
    stride = 1
    for axis in range(len(sizes)):
        there = [0] * len(sizes)
        there[axis] = 1
        if sizes[axis] > 1 and seen[tuple(there)] != stride:
            what = (
                "neighbours on the innermost axis are one rank apart"
                if axis == 0
                else f"neighbours on axis {axis} are {stride} ranks apart"
            )
            raise Slip(
                f"With sizes {list(sizes)}, {what}, so {tuple(there)} belongs to rank {stride}; here rank {seen[tuple(there)]} has it.",
                drawn(found, sizes, (stride, seen[tuple(there)])),
            )
        stride *= sizes[axis]


MOST_DRAWN = 16  # ranks


def drawn(found, sizes, wrong=()):
    """The first ranks from left to right, with a line for each axis: where the coordinate is."""
    ranks = min(MOST_DRAWN, len(found))
    lines = [("rank", [box(r, r + 1, r, "wrong" if r in wrong else "plain") for r in range(ranks)])]
    for axis in range(len(sizes)):
        looks = ["link", "compute", "hbm", "network"]
        lines.append(
            (f"axis {axis}", [box(r, r + 1, found[r][axis], looks[found[r][axis] % 4]) for r in range(ranks)])
        )
    key = {"wrong": "ranks that are not where they belong"} if wrong else {}
    return picture(lines, key, f"The coordinates of ranks 0 to {ranks - 1}, a line for each axis.")
