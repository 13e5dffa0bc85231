"""Wrong answers to the puzzle *interleave the chunks*, each with some of the words that it gets."""

from engine.puzzles.interleave_chunks import SOLUTION, START

AHEAD = "2 * (stages - stage - 1) + (chunks - 1) * stages"
WRONG = {
    "chunk by chunk": (START, "Only a group of 4 micro-batches"),
    "the warm-up of plain 1F1B": (
        SOLUTION.replace(AHEAD, "stages - stage"),
        "the activations that the forward left behind",
    ),
    "no warm-up": (SOLUTION.replace(AHEAD, "0"), "the activations that the forward left behind"),
    "everything is warm-up": (SOLUTION.replace(AHEAD, "len(forwards)"), "holds the activations of"),
    "a group for each chunk": (
        SOLUTION.replace(
            "    for first in range(0, micro_batches, stages):\n        for c in range(chunks):\n",
            "    for c in range(chunks):\n        for first in range(0, micro_batches, stages):\n",
        ),
        'puts ("B", 0, 1) before its own ("F", 0, 1)',
    ),
    "micro-batch by micro-batch": (
        SOLUTION.replace(
            "        for c in range(chunks):\n            for i in range(first, first + stages):\n",
            "        for i in range(first, first + stages):\n            for c in range(chunks):\n",
        ),
        "neither can go on",
    ),
    "backwards from the first chunk": (SOLUTION.replace("chunks - 1 - c", "c"), "neither can go on"),
    "one forward too many": (SOLUTION.replace(AHEAD, AHEAD + " + 1"), "holds the activations of"),
    "the last forwards are forgotten": (
        SOLUTION.replace("        work.extend(forwards[ahead + k : ahead + k + 1])\n", ""),
        'before its own ("F", 4, 1)',
    ),
    "without the chunk": (SOLUTION.replace('("F", i, c)', '("F", i)'), 'must be ("F", i, c) or ("B", i, c)'),
    "chunks counted through": (
        SOLUTION.replace('("F", i, c)', '("F", i, c * stages + stage)'),
        "a stage's chunks are numbered 0 to 1",
    ),
    "nothing": (SOLUTION.replace("return work", "work"), "Does it end with a return?"),
    "the last warm-up is one short": (
        SOLUTION.replace("(chunks - 1) * stages)", "(chunks - 1) * stages - 1)"),
        "a backward needs the activations that the forward left behind",
    ),
    "mirrored": (SOLUTION.replace("2 * (stages - stage - 1)", "2 * stage"), "neither can go on"),
    "the same on all stages": (
        SOLUTION.replace("2 * (stages - stage - 1)", "2 * (stages - 1)"),
        "the warm-up is as long as stated",
    ),
    "a backward before its forward": (
        SOLUTION.replace(
            "        work.extend(forwards[ahead + k : ahead + k + 1])\n        work.append(backwards[k])",
            "        work.append(backwards[k])\n        work.extend(forwards[ahead + k : ahead + k + 1])",
        ),
        "a backward needs the activations that the forward left behind",
    ),
    "the last backwards are forgotten": (
        SOLUTION.replace("for k in range(len(backwards)):", "for k in range(len(backwards) - 1):"),
        'interleaved_order(0, 4, 8, 2) never makes ("B", 7, 0)',
    ),
    "a micro-batch too many": (
        SOLUTION.replace("range(0, micro_batches, stages)", "range(0, micro_batches + stages, stages)"),
        '4, 8, 2) has ("F", 8, 0), but the micro-batches are numbered 0 to 7',
    ),
    "counted from one": (
        SOLUTION.replace('("F", i, c)', '("F", i + 1, c)'),
        "a backward needs the activations that the forward left behind",
    ),
    "small letters": (
        SOLUTION.replace('("F", i, c)', '("f", i, c)'),
        "interleaved_order(0, 4, 8, 2) has ('f', 0, 0)",
    ),
    "texts": (SOLUTION.replace('("F", i, c)', 'f"F{i}"'), "interleaved_order(0, 4, 8, 2) has 'F0'"),
}
