"""Wrong answers to the puzzle *one step of a ring*, each with some of the words that it gets."""

from engine.puzzles.ring_step import SOLUTION, START

WRONG = {
    "the same chunk always": (START, "sends chunk 0 to rank 1 in step 0 and again in step 1"),
    "always the first": ("def chunk_to_send(rank, ranks, step):\n    return step\n", "ends up with"),
    "up instead of down": (SOLUTION.replace("rank - step", "rank + step"), "no complete chunk"),
    "not around the ring": (
        SOLUTION.replace("(rank - step) % ranks", "rank - step"),
        "chunks are numbered 0 to",
    ),
    "a rank for a chunk": (
        SOLUTION.replace("return (rank - step) % ranks", "return [rank, step]"),
        "must give the number of a chunk",
    ),
    "a fraction": (
        SOLUTION.replace("return (rank - step) % ranks", "return (rank - step) % ranks / 1"),
        "a whole number",
    ),
    "one step behind": (SOLUTION.replace("rank - step", "rank - max(0, step - 1)"), "again in step 1"),
    "numbered from 1": (
        SOLUTION.replace("% ranks", "% ranks + 1"),
        "there are as many as ranks, counted from 0",
    ),
    "a ring of one less": (
        SOLUTION.replace("% ranks", "% (ranks - 1)"),
        "Pass on what you have just received",
    ),
    "the neighbour's, always": (
        SOLUTION.replace("(rank - step)", "(rank + 1)"),
        " chunk 0, which has grown: pass that on",
    ),
    "two down in each step": (
        SOLUTION.replace("rank - step", "rank - 2 * step"),
        " chunk 1, which has grown: pass that on",
    ),
    "down in every other step": (
        SOLUTION.replace("rank - step", "rank - step // 2"),
        " chunk 3, which has grown: pass that on",
    ),
    "multiplied": (SOLUTION.replace("rank - step", "rank * step"), " chunk 0, which has grown: pass that on"),
    "down once": (
        SOLUTION.replace("rank - step", "rank - min(step, 1)"),
        " chunk 2, which has grown: pass that on",
    ),
    "the distance": (
        SOLUTION.replace("(rank - step) % ranks", "abs(rank - step)"),
        " chunk 1, which has grown: pass that on",
    ),
    "stops at 0": (
        SOLUTION.replace("(rank - step) % ranks", "max(0, rank - step)"),
        " chunk 3, which has grown: pass that on",
    ),
    "four ranks for all": (SOLUTION.replace("% ranks", "% 4"), "there are as many as ranks, counted from 0"),
    "the last step goes back": (
        SOLUTION.replace("rank - step", "rank - step % max(1, ranks - 2)"),
        " chunk 2, which has grown: pass that on",
    ),
    "printed": (
        SOLUTION.replace("return (rank - step) % ranks", "print((rank - step) % ranks)"),
        "Does it end with a return?",
    ),
    "all of them": (SOLUTION.replace("(rank - step) % ranks", "list(range(ranks))"), "gave [0, 1, 2, 3]"),
    "a comparison": (
        SOLUTION.replace("(rank - step) % ranks", "rank == step"),
        " a chunk, a whole number, and gave True",
    ),
    "bits flipped": (
        SOLUTION.replace("(rank - step)", "(rank ^ step)"),
        "Pass on what you have just received",
    ),
    "only odd ranks move": (
        SOLUTION.replace("rank - step", "rank - step * (rank % 2)"),
        " chunk 3, which has grown: pass that on",
    ),
}
