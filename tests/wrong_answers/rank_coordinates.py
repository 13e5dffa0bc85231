"""Wrong answers to the puzzle *from a rank to its coordinates*, each with some of the words that it gets."""

from engine.puzzles.rank_coordinates import SOLUTION, START

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
    "the outermost axis is the nearest": (
        SOLUTION.replace("for size in sizes", "for size in reversed(sizes)").replace(
            "    return found", "    return found[::-1]"
        ),
        "The innermost axis comes first",
    ),
    "divided by the size": (
        SOLUTION.replace("rank // stride % size", "rank // size % size"),
        "on axis 0, where neighbours are one rank apart, they are at 0 and 1",
    ),
    "only divided": (
        SOLUTION.replace("rank // stride % size", "rank // size"),
        "what is beyond an axis belongs to the next one",
    ),
    "modulo first": (
        SOLUTION.replace("rank // stride % size", "rank % size // stride"),
        "on axis 1, where neighbours are 2 ranks apart, they are at 0 and 1",
    ),
    "the stride is the last size": (
        SOLUTION.replace("stride *= size", "stride = size"),
        "on axis 2, where neighbours are 4 ranks apart, they are at 0 and 2",
    ),
    "counted from 1": (
        SOLUTION.replace("rank // stride % size", "rank // stride % size + 1"),
        "what is beyond an axis belongs to the next one",
    ),
    "from rank 1": (
        SOLUTION.replace("rank // stride % size", "(rank + 1) // stride % size"),
        "Ranks and places are counted from 0",
    ),
    "backwards on an axis": (
        SOLUTION.replace("rank // stride % size", "size - 1 - rank // stride % size"),
        "Ranks and places are counted from 0",
    ),
    "the stride from the number of axes": (
        SOLUTION.replace("stride *= size", "stride *= len(sizes)"),
        "on axis 1, where neighbours are 2 ranks apart, they are at 0 and 1",
    ),
    "the remainder goes on": (
        SOLUTION.replace(
            "        found.append(rank // stride % size)\n        stride *= size\n",
            "        found.append(rank % size)\n        rank = rank % size\n",
        ),
        "on axis 1, where neighbours are 2 ranks apart, they are at 0 and 1",
    ),
    "the stride is never used": (
        SOLUTION.replace("rank // stride % size", "rank % size"),
        "on axis 2, where neighbours are 4 ranks apart, they are at 0 and 1",
    ),
    "one axis for all": (
        SOLUTION.replace("rank // stride % size", "rank % sizes[0]"),
        "on axis 1, where neighbours are 2 ranks apart, they are at 0 and 1",
    ),
    "the product of all for a stride": (
        SOLUTION.replace(
            "found, stride = [], 1", "found, stride = [], 1\n    for size in sizes:\n        stride *= size"
        ).replace("        stride *= size\n    return", "        stride //= size\n    return"),
        "on axis 0, where neighbours are one rank apart, they are at 0 and 1",
    ),
    "powers of two": (
        SOLUTION.replace("stride *= size", "stride *= 2"),
        "on axis 2, where neighbours are 8 ranks apart, they are at 0 and 8",
    ),
    "a name for each axis": (
        SOLUTION.replace("    return found", "    return dict(enumerate(found))"),
        "oordinates, and gave {0: 0, 1: 0, 2: 0}",
    ),
    "one coordinate too many": (
        SOLUTION.replace("    return found", "    return found + [0]"),
        "the mesh has 3 axes",
    ),
    "nothing": (SOLUTION.replace("    return found", "    found"), "Does it end with a return?"),
    "a text": (
        SOLUTION.replace("rank // stride % size", "str(rank // stride % size)"),
        "it must be a whole number from 0 to 1",
    ),
    "a range for a number": (
        SOLUTION.replace("rank // stride % size", "range(rank)"),
        "it must be a whole number from 0 to 1",
    ),
}
