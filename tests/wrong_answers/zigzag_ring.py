"""Wrong answers to the puzzle *balance a causal ring*, each with some of the words that it gets."""

from engine.puzzles.zigzag_ring import SOLUTION, START

PAIR = "[rank, 2 * ranks - 1 - rank]"
WRONG = {
    "in order": (START, "the busiest rank"),
    "every so many": (SOLUTION.replace(PAIR, "[rank, rank + ranks]"), "the busiest rank"),
    "backwards": (
        SOLUTION.replace(PAIR, "[2 * ranks - 1 - 2 * rank, 2 * ranks - 2 - 2 * rank]"),
        "the busiest rank",
    ),
    "one too far": (SOLUTION.replace("- 1 - rank", "- rank"), "numbered 0 to 7"),
    "half a turn": (
        SOLUTION.replace(PAIR, "[rank, (rank + ranks // 2) % ranks + ranks]"),
        "the busiest rank",
    ),
    "the same for all": (SOLUTION.replace(PAIR, "[0, 2 * ranks - 1]"), "is held by rank 0 and by rank 1"),
    "zig-zag within a half": (SOLUTION.replace(PAIR, "[rank, ranks - 1 - rank]"), "is held by"),
    "one chunk": (SOLUTION.replace(PAIR, "[rank]"), "two chunks"),
    "three chunks": (SOLUTION.replace(PAIR, "[rank, rank + ranks, 2 * ranks - 1 - rank]"), "two chunks"),
    "a number": (SOLUTION.replace(PAIR, "2 * ranks - 1 - rank"), "must give a list"),
    "fractions": (SOLUTION.replace(PAIR, "[rank / 1, 2 * ranks - 1 - rank]"), "whole number"),
    "nothing": (SOLUTION.replace("return", "found ="), "Does it end with a return?"),
    "the last one for all": (
        SOLUTION.replace("2 * ranks - 1 - rank", "2 * ranks - 1"),
        "each of the 8 chunks is held once",
    ),
    "its own twice": (SOLUTION.replace("2 * ranks - 1 - rank", "rank"), "each of the 8 chunks is held once"),
    "its neighbour's": (
        SOLUTION.replace("2 * ranks - 1 - rank", "(rank + 1) % (2 * ranks)"),
        "each of the 8 chunks is held once",
    ),
    "counted from one": (
        SOLUTION.replace("[rank, 2 * ranks - 1 - rank]", "[rank + 1, 2 * ranks - rank]"),
        "they are numbered 0 to 7",
    ),
    "the second half in order": (
        SOLUTION.replace("2 * ranks - 1 - rank", "ranks + rank"),
        "132 would be enough",
    ),
    "below nothing": (SOLUTION.replace("2 * ranks - 1 - rank", "-1 - rank"), "they are numbered 0 to 7"),
    "texts": (
        SOLUTION.replace("[rank, 2 * ranks - 1 - rank]", "[str(rank), str(2 * ranks - 1 - rank)]"),
        "they are numbered 0 to 7",
    ),
    "all of them": (
        SOLUTION.replace("[rank, 2 * ranks - 1 - rank]", "list(range(2 * ranks))"),
        "each rank holds two chunks",
    ),
}
