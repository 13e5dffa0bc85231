"""Wrong answers to the puzzle *a ring through unequal wires*, each with some of the words that it gets."""

from engine.puzzles.unequal_ring import SOLUTION, START

BEST = "max(rings([0], len(rates)), key=lambda order: slowest(order, rates))"


def instead(of_best: str) -> str:
    """The solution with another choice among the rings."""
    return SOLUTION.replace(BEST, of_best)


GREEDY = """def ring_order(rates):
    order = [0]
    while len(order) < len(rates):
        left = [rank for rank in range(len(rates)) if rank not in order]
        order.append(max(left, key=lambda rank: rates[order[-1]][rank]))
    return order
"""
WRONG = {
    "as they come": (START, "goes over the wire between 1 and 2, which has 25 GB/s"),
    "backwards": (
        START.replace("list(range(len(rates)))", "[0] + list(range(len(rates) - 1, 0, -1))"),
        "There is a ring whose slowest wire has 50",
    ),
    "the fastest wire each time": (GREEDY, "There is a ring whose slowest wire has"),
    "the slowest wire each time": (
        GREEDY.replace("max(left", "min(left"),
        "There is a ring whose slowest wire has",
    ),
    "without the way back": (
        SOLUTION.replace("zip(order, order[1:] + order[:1])", "zip(order, order[1:])"),
        "There is a ring whose slowest wire has",
    ),
    "without the first wire": (
        SOLUTION.replace("zip(order, order[1:] + order[:1])", "zip(order[1:], order[2:] + order[:1])"),
        "There is a ring whose slowest wire has",
    ),
    "the largest sum": (
        SOLUTION.replace("return min([", "return sum(["),
        "There is a ring whose slowest wire has",
    ),
    "the fastest of its wires": (
        SOLUTION.replace("return min([", "return max(["),
        "There is a ring whose slowest wire has",
    ),
    "the slowest of all rings": (
        instead(BEST.replace("max(", "min(", 1)),
        "There is a ring whose slowest wire has",
    ),
    "the first ring": (instead("rings([0], len(rates))[0]"), "goes over the wire between 1 and 2"),
    "the last ring": (instead("rings([0], len(rates))[-1]"), "There is a ring whose slowest wire has"),
    "all rings": (instead("rings([0], len(rates))"), "each of the ranks 0 to 4 once"),
    "the rate": (instead("slowest(" + BEST + ", rates)"), "a list of ranks, and gave 50"),
    "from rank 1 on": (instead("(lambda best: best[1:] + best[:1])(" + BEST + ")"), "must begin with rank 0"),
    "back to rank 0 at the end": (instead(BEST + " + [0]"), "each of the ranks 0 to 4 once"),
    "without rank 0": (instead(BEST + "[1:]"), "each of the ranks 0 to 4 once"),
    "a text": (instead("str(" + BEST + ")"), "a list of ranks, and gave '"),
    "numbers as texts": (instead("[str(rank) for rank in " + BEST + "]"), "each of the ranks 0 to 4 once"),
    "counted from one": (instead("[rank + 1 for rank in " + BEST + "]"), "each of the ranks 0 to 4 once"),
    "pairs": (instead("list(zip(" + BEST + ", range(9)))"), "each of the ranks 0 to 4 once"),
    "nothing": (SOLUTION.replace("return max", "found = max"), "Does it end with a return?"),
    "a rank twice": (instead(BEST + "[:-1] + [0]"), "each of the ranks 0 to 4 once"),
    "sorted by the wire to rank 0": (
        START.replace(
            "list(range(len(rates)))", "[0] + sorted(range(1, len(rates)), key=lambda rank: -rates[0][rank])"
        ),
        "There is a ring whose slowest wire has",
    ),
}
