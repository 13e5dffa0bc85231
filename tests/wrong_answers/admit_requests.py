"""Wrong answers to the puzzle *admit requests to the batch*, each with some of the words that it gets."""

from engine.puzzles.admit_requests import SOLUTION, START

WRONG = {
    "it overtakes": (START, "nobody overtakes"),
    "the whole cache": (SOLUTION.replace("0.99 * capacity", "capacity"), "must leave"),
    "never the last token": (
        SOLUTION.replace("capacity if inside == 0 else 0.99 * capacity", "0.99 * capacity"),
        "empty batch",
    ),
    "no seats": (SOLUTION.replace("inside >= seats or ", ""), "seats"),
    "one seat too many": (SOLUTION.replace("inside >= seats", "inside > seats"), "seats"),
    "seats for the new ones alone": (SOLUTION.replace("inside >= seats", "count >= seats"), "seats"),
    "what is held is forgotten": (
        SOLUTION.replace("    count = 0\n", "    count = held = 0\n"),
        "must leave",
    ),
    "what has joined is forgotten": (SOLUTION.replace("        held += asks\n", ""), "must leave"),
    "one at a time": (
        SOLUTION.replace("        count += 1\n", "        return 1\n"),
        "There is room for more",
    ),
    "the shortest first": (SOLUTION.replace("in waiting:", "in sorted(waiting):"), "nobody overtakes"),
    "the limit for everybody": (SOLUTION.replace("inside == 0", "count == 0"), "must leave"),
    "the requests themselves": (SOLUTION.replace("return count", "return waiting[:count]"), "a whole number"),
    "as many as there are": (SOLUTION.replace("return count", "return len(waiting)"), "must join"),
    "nothing": (SOLUTION.replace("return count", "count"), "Does it end with a return?"),
    "nobody": (SOLUTION.replace("    return count", "    return 0"), "There is room for more"),
    "half the cache": (SOLUTION.replace("0.99 * capacity", "0.5 * capacity"), "There is room for more"),
    "the seats of those that wait": (
        SOLUTION.replace("inside >= seats", "count >= len(waiting) - 1"),
        "There is room for more",
    ),
    "as many as free seats": (
        SOLUTION.replace("    return count", "    return max(0, min(len(waiting), seats - running))"),
        "nobody overtakes",
    ),
    "one more than fits": (
        SOLUTION.replace("    return count", "    return min(len(waiting), count + 1)"),
        "nobody overtakes",
    ),
    "the tokens": (
        SOLUTION.replace("    return count", "    return held"),
        " whole number from 0 to 3, and gave 900",
    ),
    "a truth": (
        SOLUTION.replace("    return count", "    return count > 0"),
        "whole number from 0 to 3, and gave True",
    ),
}
