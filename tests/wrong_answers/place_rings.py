"""Wrong answers to the puzzle *place the rings on the nodes*, each with some of the words that it gets."""

from engine.puzzles.place_rings import SOLUTION, START

CHEAPEST = "min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node))"
WRONG = {
    "the longest ring first": (START, "The fewest are"),
    "the shortest ring first": (START.replace(", reverse=True", ""), "The fewest are"),
    "the heaviest traffic first": (START.replace("[name][0]", "[name][1]"), "The fewest are"),
    "the most of a whole ring first": (
        START.replace("kinds[name][0]", "kinds[name][0] * kinds[name][1]"),
        "The fewest are",
    ),
    "as they come": (SOLUTION.replace(CHEAPEST, "list(kinds)"), "with “data”, “tensor” the rings “tensor”"),
    "outermost first": (SOLUTION.replace(CHEAPEST, CHEAPEST + "[::-1]"), "rings “tensor” leave their nodes"),
    "as if all rings lay inside": (SOLUTION.replace("        apart *= size\n", ""), "The fewest are"),
    "a ring crosses whole": (SOLUTION.replace("sent / together", "sent"), "The fewest are"),
    "only the first": (SOLUTION.replace(CHEAPEST, CHEAPEST + "[:1]"), "each of the names once"),
    "sizes for names": (
        SOLUTION.replace(CHEAPEST, "[size for size, sent in kinds.values()]"),
        "each of the names once",
    ),
    "a name twice": (SOLUTION.replace(CHEAPEST, CHEAPEST + " + ['data']"), "each of the names once"),
    "nothing": (SOLUTION.replace("return min", "found = min"), "Does it end with a return?"),
    "the worst order": (
        SOLUTION.replace("return min(orders", "return max(orders"),
        "The fewest are 96, with “tensor”, “data”",
    ),
    "by the alphabet": (
        SOLUTION.replace(
            "    return min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node))",
            "    return sorted(kinds)",
        ),
        "The fewest are 96, with “tensor”, “data”",
    ),
    "as if a ring on one node crossed": (
        SOLUTION.replace("if together < size:", "if True:"),
        "The fewest are 320, with “short”, “long”",
    ),
    "sizes without traffic": (
        SOLUTION.replace("sum_of_all += sent / together", "sum_of_all += 1 / together"),
        "The fewest are 96, with “tensor”, “data”",
    ),
    "traffic of each hop": (
        SOLUTION.replace("sum_of_all += sent / together", "sum_of_all += sent * together"),
        "The fewest are 36, with “pair”, “eight”",
    ),
    "only the first two": (
        SOLUTION.replace(
            "    return min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node))",
            "    return min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node))[:2]",
        ),
        "gave ['sequence', 'tensor']",
    ),
    "the gigabytes": (
        SOLUTION.replace(
            "    return min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node))",
            "    return min(crossing(order, kinds, per_node) for order in orders(list(kinds)))",
        ),
        "of names, innermost first, and gave 3.0",
    ),
    "a text of names": (
        SOLUTION.replace(
            "    return min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node))",
            "    return ' '.join(min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node)))",
        ),
        "gave 'tensor data'",
    ),
}
