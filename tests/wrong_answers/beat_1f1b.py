"""Wrong answers to the puzzle *beat 1F1B*, each with some of the words that it gets."""

from engine.puzzles.beat_1f1b import SOLUTION, START

LAST = ' + [("W", i) for i in range(max(0, micro_batches - stage), micro_batches)]'
WRONG = {
    "1F1B as it was": (START, "the step takes 30 times"),
    "all weights at the end": (
        START.replace('        work.append(("W", i))\n', "").replace(
            "return work", 'return work + [("W", i) for i in range(micro_batches)]'
        ),
        "stage 0 of 1F1B holds 4",
    ),
    "one W late everywhere": (
        SOLUTION.replace("i >= stage", "i >= 1")
        .replace("i - stage", "i - 1")
        .replace("micro_batches - stage", "micro_batches - 1"),
        "stage 0 holds",
    ),
    "a longer warm-up": (
        SOLUTION.replace("min(stages - stage,", "min(2 * (stages - stage) - 1,"),
        "stage 0 of 1F1B holds 4",
    ),
    "a W before its I": (
        SOLUTION.replace(
            '        work.append(("I", i))\n        if i >= stage:\n            work.append(("W", i - stage))\n',
            '        if i >= stage:\n            work.append(("W", i - stage))\n        work.append(("I", i))\n',
        ),
        'before its own ("I", 0)',
    ),
    "the last weights are forgotten": (SOLUTION.replace(LAST, ""), 'never makes ("W", '),
    "the weights are made twice": (
        SOLUTION.replace("range(max(0, micro_batches - stage), micro_batches)", "range(micro_batches)"),
        "twice",
    ),
    "GPipe": (
        'def own_schedule(stage, stages, micro_batches):\n    every = range(micro_batches)\n    work = [("F", i) for i in every]\n'
        '    for i in every:\n        work += [("I", i), ("W", i)]\n    return work\n',
        "stage 0 of 1F1B holds 4",
    ),
    "whole backwards": (
        START.replace(
            '        work.append(("I", i))\n        work.append(("W", i))\n',
            '        work.append(("B", i))\n',
        ),
        'must be ("F", i) or ("I", i) or ("W", i)',
    ),
    "one forward too few": (
        SOLUTION.replace("min(stages - stage,", "min(max(1, stages - stage - 1),"),
        "the step takes",
    ),
    "mirrored": (SOLUTION.replace("min(stages - stage,", "min(stage + 1,"), "neither can go on"),
    "counted from one": (
        SOLUTION.replace("return work" + LAST, "return [(what, i + 1) for what, i in work" + LAST + "]"),
        "numbered 0 to 7",
    ),
    "nothing": (SOLUTION.replace("return work", "work"), "Does it end with a return?"),
    "W at once on all stages": (
        SOLUTION.replace(
            'return work + [("W", i) for i in range(max(0, micro_batches - stage), micro_batches)]',
            "return work",
        ).replace(
            'if i >= stage:\n            work.append(("W", i - stage))',
            'if True:\n            work.append(("W", i))',
        ),
        "where does one hold up an I?",
    ),
    "a forward first": (
        SOLUTION.replace("ahead = min(stages - stage, micro_batches)", "ahead = min(1, micro_batches)"),
        "where does one hold up an I?",
    ),
    "one more everywhere": (
        SOLUTION.replace(
            "ahead = min(stages - stage, micro_batches)", "ahead = min(stages - stage + 1, micro_batches)"
        ),
        "A W that is put off holds its activation",
    ),
    "as many as stages": (
        SOLUTION.replace("ahead = min(stages - stage, micro_batches)", "ahead = min(stages, micro_batches)"),
        "A W that is put off holds its activation",
    ),
    "the last forward is forgotten": (
        SOLUTION.replace("if i + ahead < micro_batches:", "if i + ahead < micro_batches - 1:"),
        "a backward needs the activations that the forward left behind",
    ),
    "backwards from the last": (
        SOLUTION.replace('work.append(("I", i))', 'work.append(("I", micro_batches - 1 - i))'),
        "a backward needs the activations that the forward left behind",
    ),
    "an unknown letter": (
        SOLUTION.replace('work.append(("I", i))', 'work.append(("D", i))'),
        "own_schedule(stage=0, stages=4, micro_batches=8) has ('D', 0)",
    ),
    "without numbers": (
        SOLUTION.replace('work.append(("I", i))', 'work.append("I")'),
        "own_schedule(stage=0, stages=4, micro_batches=8) has 'I'",
    ),
}
