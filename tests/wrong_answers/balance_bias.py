"""Wrong answers to the puzzle *balance by bias*, each with some of the words that it gets."""

from engine.puzzles.balance_bias import SOLUTION, START

WRONG = {
    "in proportion": (START, "by rate, however far"),
    "the other way": (
        SOLUTION.replace("bias[e] - rate", "bias[e] + rate", 1).replace(
            "            found.append(bias[e] + rate)\n        else",
            "            found.append(bias[e] - rate)\n        else",
        ),
        "has more than the mean",
    ),
    "only the fullest": (
        "def next_bias(bias, load, rate):\n    return [b - rate if n == max(load) else b for b, n in zip(bias, load)]\n",
        "the mean",
    ),
    "only the full ones": (
        SOLUTION.replace("found.append(bias[e] + rate)", "found.append(bias[e])"),
        "has less than the mean",
    ),
    "the mean goes up too": (SOLUTION.replace("elif load[e] < mean:", "elif True:"), "is at the mean"),
    "the median for the mean": (
        SOLUTION.replace("sum(load) / len(load)", "sorted(load)[len(load) // 2]"),
        "the mean",
    ),
    "from zero each time": (
        SOLUTION.replace("bias[e] - rate", "-rate")
        .replace("bias[e] + rate", "rate")
        .replace("append(bias[e])", "append(0)"),
        "goes on from its bias",
    ),
    "times the rate": (
        SOLUTION.replace("bias[e] - rate", "bias[e] * (1 - rate)").replace(
            "bias[e] + rate", "bias[e] * (1 + rate)"
        ),
        "the mean",
    ),
    "twice the rate": (SOLUTION.replace("bias[e] - rate", "bias[e] - 2 * rate"), "by rate, however far"),
    "the changes alone": (
        SOLUTION.replace("    return found", "    return [found[e] - bias[e] for e in range(len(bias))]"),
        "goes on from its bias",
    ),
    "one is left out": (
        SOLUTION.replace("range(len(bias))", "range(len(bias) - 1)"),
        "7 entries for 8 experts",
    ),
    "words": (SOLUTION.replace("bias[e] - rate", "'down'"), "a number"),
    "nothing": (SOLUTION.replace("return found", "found"), "Does it end with a return?"),
    "half the rate": (
        SOLUTION.replace("bias[e] - rate", "bias[e] - rate / 2"),
        "It goes down by rate, however far it is from the mean",
    ),
    "the mean of the biases": (
        SOLUTION.replace("sum(load) / len(load)", "sum(bias) / len(bias)"),
        "It stays as it is",
    ),
    "the load of a single choice": (
        SOLUTION.replace("sum(load) / len(load)", "sum(load) / len(load) / 2"),
        "It stays as it is",
    ),
    "the sum for the mean": (
        SOLUTION.replace("sum(load) / len(load)", "sum(load)"),
        "It goes down by rate, however far it is from the mean",
    ),
    "at the mean counts as above": (
        SOLUTION.replace("load[e] > mean", "load[e] >= mean"),
        "It stays as it is",
    ),
    "only down to nothing": (
        SOLUTION.replace("found.append(bias[e] - rate)", "found.append(max(0, bias[e] - rate))"),
        "It goes down by rate, however far it is from the mean",
    ),
    "the emptiest alone": (
        SOLUTION.replace("elif load[e] < mean:", "elif load[e] == min(load):"),
        "It goes up by rate, however far it is from the mean",
    ),
    "one expert for all": (
        SOLUTION.replace("    return found", "    return found[0]"),
        " a bias for each expert, and gave -0.04",
    ),
    "names for numbers": (
        SOLUTION.replace("    return found", "    return dict(enumerate(found))"),
        "0.0, 4: 0.0, 5: 0.04, 6: 0.04, 7: 0.04}",
    ),
}
