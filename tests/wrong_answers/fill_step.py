"""Wrong answers to the puzzle *fill a step under two limits*, each with some of the words that it gets."""

from engine.puzzles.fill_step import SOLUTION, START

WRONG = {
    "whole prompts": (START, "a step computes at most 100"),
    "the answers are forgotten": (
        SOLUTION.replace("max(0, budget - writing)", "budget"),
        "with those of 3 answers",
    ),
    "whole prompts that fit": (
        SOLUTION.replace("min(left, room) if free > 0 else 0", "left if left <= room and free > 0 else 0"),
        "in pieces where they must be",
    ),
    "one prompt a step": (
        SOLUTION.replace("        free -= 1\n", "        free = 0\n"),
        "There is room for more",
    ),
    "in equal parts": (
        SOLUTION.replace(
            "    for left in waiting:", "    share = room // max(1, len(waiting))\n    for left in waiting:"
        ).replace("min(left, room)", "min(left, share)"),
        "in order of arrival",
    ),
    "the shortest first": (
        "def read_now(writing, waiting, budget, seats):\n    room, reads = max(0, budget - writing), [0] * len(waiting)\n"
        "    for i in sorted(range(len(waiting)), key=lambda i: waiting[i])[:max(0, seats - writing)]:\n"
        "        reads[i] = min(waiting[i], room)\n        room -= reads[i]\n    return reads\n",
        "in order of arrival",
    ),
    "no seats": (SOLUTION.replace(" if free > 0 else 0", ""), "users take part"),
    "seats for prompts alone": (SOLUTION.replace("seats - writing", "seats"), "users take part"),
    "less than nothing": (SOLUTION.replace("max(0, budget - writing)", "budget - writing"), "at least 0"),
    "more than there is": (SOLUTION.replace("min(left, room)", "room"), "only"),
    "only those that are read": (
        SOLUTION.replace("return reads", "return [piece for piece in reads if piece]"),
        "one number for each",
    ),
    "the sum": (SOLUTION.replace("return reads", "return sum(reads)"), "must give a list"),
    "nothing": (SOLUTION.replace("    return reads\n", ""), "Does it end with a return?"),
    "one seat too many": (SOLUTION.replace("if free > 0", "if free >= 0"), "there are 3 seats"),
    "one token is kept back": (
        SOLUTION.replace("max(0, budget - writing)", "max(0, budget - writing - 1)"),
        "as much as the limits allow",
    ),
    "a seat for every prompt, read or not": (
        SOLUTION.replace("        free -= 1\n", "        free -= 2\n"),
        "There is room for more",
    ),
    "one token each": (
        SOLUTION.replace("min(left, room) if", "min(1, left, room) if"),
        "as much as the limits allow",
    ),
    "the last come first": (
        SOLUTION.replace("for left in waiting:", "for left in reversed(waiting):"),
        "has only 10 left",
    ),
    "nothing while somebody writes": (
        SOLUTION.replace(
            "        piece = min",
            "        if writing:\n            reads.append(0)\n            continue\n        piece = min",
        ),
        "as much as the limits allow",
    ),
    "what is left over": (
        SOLUTION.replace("        reads.append(piece)", "        reads.append(left - piece)"),
        "a step computes at most 100",
    ),
    "the budget for each": (SOLUTION.replace("        room -= piece\n", ""), "a step computes at most 100"),
    "halves": (
        SOLUTION.replace("min(left, room) if", "min(left, room) / 2 if"),
        "each entry is a whole number of tokens, at least 0",
    ),
}
