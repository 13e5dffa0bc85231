"""A rank's coordinates on the axes of a mesh."""

from engine.mechanism.placement import coordinate
from engine.puzzles.judging import Slip, box, picture, rows, shown, whole

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

MESHES = ((2, 2, 4), (8, 1, 16, 4), (4,), (3, 5), (8, 2, 2, 2, 3))


def run(function):
    """Run the reader's function for the first mesh; returns the result in words, and the figure."""
    sizes = MESHES[0]
    found = of_all(function, sizes)
    listed = ", ".join([f"{rank}: {tuple(found[rank])}" for rank in (0, 1, 2, 5, 15)])
    return f"Axes of {', '.join([str(size) for size in sizes])} ranks, the innermost first. {listed}.", drawn(
        found, sizes
    )


def check(function):
    """Check the reader's function for all meshes; a Slip at the first wrong answer."""
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
            beyond = whole(found[axis]) and found[axis] >= sizes[axis]
            more = (
                " It is counted from 0, and what is beyond an axis belongs to the next one." if beyond else ""
            )
            raise Slip(
                f"{call} has {shown(found[axis])} on axis {axis}; it must be a whole number from 0 to {sizes[axis] - 1}.{more}"
            )
    return found


def require_mesh(found, sizes):
    """Raise a Slip unless the coordinates of all ranks differ and are those of the engine's mesh."""
    seen = {}
    for rank in range(len(found)):
        other = seen.setdefault(tuple(found[rank]), rank)
        if other != rank:
            apart = [at for at in range(len(sizes)) if wanted(other, sizes)[at] != wanted(rank, sizes)[at]][0]
            raise Slip(
                f"With sizes {list(sizes)}, ranks {other} and {rank} get the same coordinates, {tuple(found[rank])}. Each rank has a place of its own: "
                f"on axis {apart}, where neighbours are {stride_of(sizes, apart)} apart, they are at {wanted(other, sizes)[apart]} and {wanted(rank, sizes)[apart]}.",
                drawn(found, sizes, (other, rank)),
            )
    for rank in range(len(found)):
        right = wanted(rank, sizes)
        for axis in range(len(sizes)):
            if found[rank][axis] != right[axis]:
                turned = list(found[rank]) == right[::-1]
                raise Slip(
                    f"With sizes {list(sizes)}, rank {rank} is at {right[axis]} on axis {axis}, where neighbours are {stride_of(sizes, axis)} apart; "
                    f"here it is at {found[rank][axis]}. {'The innermost axis comes first.' if turned else 'Ranks and places are counted from 0.'}",
                    drawn(found, sizes, (rank,)),
                )


def wanted(rank, sizes):
    """A rank's coordinates by the engine's mesh."""
    found, stride = [], 1
    for size in sizes:
        found.append(int(coordinate(rank, size, stride)))
        stride *= size
    return found


def stride_of(sizes, axis):
    """How far apart neighbours on an axis are, in words."""
    stride = 1
    for size in sizes[:axis]:
        stride *= size
    return "one rank" if stride == 1 else f"{stride} ranks"


MOST_DRAWN = 16  # ranks


def drawn(found, sizes, wrong=()):
    """The picture of the first ranks from left to right, with a line for each axis that shows the
    coordinate."""
    ranks = min(MOST_DRAWN, len(found))
    lines = [("rank", [box(r, r + 1, r, "wrong" if r in wrong else "plain") for r in range(ranks)])]
    for axis in range(len(sizes)):
        looks = ["link", "compute", "hbm", "network"]
        lines.append(
            (f"axis {axis}", [box(r, r + 1, found[r][axis], looks[found[r][axis] % 4]) for r in range(ranks)])
        )
    key = {"wrong": "ranks that are not where they belong"} if wrong else {}
    return picture(lines, key, f"The coordinates of ranks 0 to {ranks - 1}, a line for each axis.")
