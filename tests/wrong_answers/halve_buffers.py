"""Wrong answers to the puzzle *halving, for any number of ranks*, each with some of the words that it gets."""

from engine.puzzles.halve_buffers import SOLUTION, START

WRONG = {
    "powers of two only": (START, "the largest power of two"),
    "nobody is folded": (
        SOLUTION.replace(
            "        steps.append((rank - 1, 0, chunks) if folded else None)\n",
            "        steps.append(None)\n",
        ),
        "each odd one sends its whole buffer",
    ),
    "the even ones are folded": (
        SOLUTION.replace("[2 * i for", "[2 * i + 1 for").replace(
            "(rank - 1, 0, chunks)", "(rank + 1, 0, chunks)"
        ),
        "each odd one sends its whole buffer",
    ),
    "the last ones are folded": (
        SOLUTION.replace(
            "[2 * i for i in range(extra)] + list(range(2 * extra, ranks))", "list(range(chunks))"
        ).replace("(rank - 1, 0, chunks)", "(rank - chunks, 0, chunks)"),
        "each odd one sends its whole buffer",
    ),
    "places for ranks": (
        SOLUTION.replace("(members[partner], first", "(partner, first"),
        "is folded and has nothing to add",
    ),
    "the half that it keeps": (
        SOLUTION.replace("first = partner // reach * reach", "first = members.index(rank) // reach * reach"),
        "has no complete",
    ),
    "the lowest bit first": (
        "def sends(rank, ranks):\n    chunks = 1\n    while 2 * chunks <= ranks:\n        chunks *= 2\n    extra = ranks - chunks\n"
        "    members = [2 * i for i in range(extra)] + list(range(2 * extra, ranks))\n    folded = rank not in members\n    steps = []\n"
        "    if extra:\n        steps.append((rank - 1, 0, chunks) if folded else None)\n    reach = 1\n    while reach < chunks:\n"
        "        if folded:\n            steps.append(None)\n        else:\n            partner = members.index(rank) ^ reach\n"
        "            first = partner // reach * reach\n            steps.append((members[partner], first, first + reach))\n        reach *= 2\n    return steps\n",
        "has no complete",
    ),
    "the whole buffer each time": (
        SOLUTION.replace("(members[partner], first, first + reach)", "(members[partner], 0, chunks)"),
        "more than the",
    ),
    "one step short": (SOLUTION.replace("while reach:", "while reach > 1:"), "has no complete"),
    "the folded are forgotten": (
        SOLUTION.replace("            steps.append(None)\n        else", "            pass\n        else"),
        "as many entries",
    ),
    "only the partners": (
        SOLUTION.replace("(members[partner], first, first + reach)", "members[partner]"),
        "must be (to, first, end) or None",
    ),
    "to itself": (SOLUTION.replace("members.index(rank) ^ reach", "members.index(rank)"), "sends to itself"),
    "nothing": (SOLUTION.replace("return steps", "steps"), "Does it end with a return?"),
    "twice the chunks": (
        SOLUTION.replace("while 2 * chunks <= ranks", "while chunks < ranks"),
        "there are ranks 0 to 5",
    ),
    "the higher bit never": (
        SOLUTION.replace("reach = chunks // 2", "reach = chunks // 4"),
        "keeps the other",
    ),
    "the partner of the neighbour": (
        SOLUTION.replace(
            "partner = members.index(rank) ^ reach", "partner = (members.index(rank) + reach) % chunks"
        ),
        "keeps the other",
    ),
    "half of what it should be": (
        SOLUTION.replace(
            "(members[partner], first, first + reach)",
            "(members[partner], first, first + max(1, reach // 2))",
        ),
        "keeps the other",
    ),
    "the first half always": (
        SOLUTION.replace("first = partner // reach * reach", "first = 0"),
        "keeps the other",
    ),
    "folded to the next": (
        SOLUTION.replace("(rank - 1, 0, chunks)", "(rank + 1, 0, chunks)"),
        " (0, 0, 4) in step 0, and has (2, 0, 4)",
    ),
    "half a buffer for folding": (
        SOLUTION.replace("(rank - 1, 0, chunks)", "(rank - 1, 0, chunks // 2)"),
        " (0, 0, 4) in step 0, and has (0, 0, 2)",
    ),
    "a length for an end": (
        SOLUTION.replace("first, first + reach))", "first, reach))"),
        "0 to 3, because 4 is the largest power of two that is at most 6",
    ),
    "no pause for the others": (
        SOLUTION.replace(
            "steps.append((rank - 1, 0, chunks) if folded else None)",
            "steps.extend([(rank - 1, 0, chunks)] if folded else [])",
        ),
        "every rank needs as many entries, None where it sends nothing",
    ),
    "printed": (SOLUTION.replace("    return steps", "    print(steps)"), "Does it end with a return?"),
}
