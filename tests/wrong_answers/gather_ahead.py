"""Wrong answers to the puzzle *gather ahead, and scatter*, each with some of the words that it gets."""

from engine.puzzles.gather_ahead import SOLUTION, START

WRONG = {
    "gathered when it is needed": (START, "Gather earlier"),
    "everything at the start": (
        SOLUTION.replace("gathered <= p + ahead", "gathered <= p + layers"),
        "layers whole at once",
    ),
    "one too many": (
        SOLUTION.replace("gathered <= p + ahead", "gathered <= p + ahead + 1"),
        "layers whole at once",
    ),
    "always one ahead": (
        SOLUTION.replace("gathered <= p + ahead", "gathered <= p + 1"),
        "layers whole at once",
    ),
    "not ahead across the turn": (
        SOLUTION.replace(
            "gathered <= p + ahead:", "gathered <= p + ahead and (gathered < layers or p >= layers):"
        ),
        "Gather earlier",
    ),
    "gathered once": (
        START.replace(
            'reversed(range(layers)):\n        work.append(("gather", i))', "reversed(range(layers)):"
        ),
        "has been freed",
    ),
    "the same way back": (START.replace("reversed(range(layers))", "range(layers)"), "needs what"),
    "gradients are forgotten": (
        START.replace('        work.append(("scatter", i))\n', ""),
        "has not been scattered",
    ),
    "the last gradient is forgotten": (
        SOLUTION.replace(
            'if passes[p][0] == "backward":', 'if passes[p][0] == "backward" and passes[p][1] > 0:'
        ),
        'never makes ("scatter", 0)',
    ),
    "scattered before it is there": (
        START.replace(
            'work.append(("backward", i))\n        work.append(("scatter", i))',
            'work.append(("scatter", i))\n        work.append(("backward", i))',
        ),
        "has made the gradient",
    ),
    "scattered at the end": (
        SOLUTION.replace(
            '        if passes[p][0] == "backward":\n            work.append(("scatter", passes[p][1]))\n', ""
        ).replace("    return work", '    return work + [("scatter", i) for i in reversed(range(layers))]'),
        "has not been scattered",
    ),
    "a pass before its gather": (
        START.replace(
            'work.append(("gather", i))\n        work.append(("forward", i))',
            'work.append(("forward", i))\n        work.append(("gather", i))',
        ),
        "is not whole",
    ),
    "counted from one": (
        SOLUTION.replace("return work", "return [(what, i + 1) for what, i in work]"),
        "numbered 0 to 3",
    ),
    "words for nothing": (SOLUTION.replace('"gather"', '"fetch"'), 'must be ("gather", i)'),
    "nothing": (SOLUTION.replace("    return work\n", ""), "Does it end with a return?"),
    "one too few": (
        SOLUTION.replace("gathered <= p + ahead", "gathered < p + ahead"),
        "while one layer computes, the wire can fetch the next",
    ),
    "all ahead": (
        SOLUTION.replace("gathered <= p + ahead", "gathered <= p + 2 * ahead"),
        "there is room for 2",
    ),
    "forward only": (
        SOLUTION.replace(' + [("backward", i) for i in reversed(range(layers))]', ""),
        'step(layers=4, ahead=1) never makes ("backward", 0)',
    ),
    "scattered twice": (
        SOLUTION.replace(
            '            work.append(("scatter", passes[p][1]))',
            '            work += 2 * [("scatter", passes[p][1])]',
        ),
        'entry 12, ("scatter", 3), is made twice',
    ),
    "scattered in the forward pass": (
        SOLUTION.replace('if passes[p][0] == "backward":', "if True:"),
        '3, ("scatter", 0), comes before ("backward", 0) has made the gradient',
    ),
    "another word": (
        SOLUTION.replace('("gather", passes[gathered][1])', '("all_gather", passes[gathered][1])'),
        "step(layers=4, ahead=1) has ('all_gather', 0)",
    ),
    "a layer that is not there": (
        SOLUTION.replace('("gather", passes[gathered][1])', '("gather", passes[gathered][1] + 1)'),
        'ahead=1) has ("gather", 4), but the layers are numbered 0 to 3',
    ),
    "the first layer is forgotten": (
        SOLUTION.replace("range(layers)] +", "range(1, layers)] +"),
        "that comes later or never",
    ),
}
