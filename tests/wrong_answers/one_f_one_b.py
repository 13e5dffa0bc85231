"""Wrong answers to the puzzle *1F1B, one forward, one backward*, each with some of the words that it gets."""

from engine.puzzles.one_f_one_b import SOLUTION, START

WRONG = {
    "GPipe": (START, "stage 0 holds the activations of 8 micro-batches"),
    "nothing comes back": (SOLUTION.replace("    return work\n", ""), "Does it end with a return?"),
    "a backward first": (
        SOLUTION.replace("min(stages - stage, micro_batches)", "0"),
        'puts ("B", 0) before its own ("F", 0)',
    ),
    "one forward too few": (
        SOLUTION.replace(
            "min(stages - stage, micro_batches)", "max(1, min(stages - stage - 1, micro_batches))"
        ),
        "forwards in the warm-up of stage 0",
    ),
    "one forward too many": (
        SOLUTION.replace("min(stages - stage, micro_batches)", "min(stages - stage + 1, micro_batches)"),
        "stage 0 holds the activations of 5 micro-batches",
    ),
    "the same on all stages": (
        SOLUTION.replace("min(stages - stage, micro_batches)", "min(stages, micro_batches)"),
        "stage 1 holds the activations of 4 micro-batches",
    ),
    "mirrored": (
        SOLUTION.replace("min(stages - stage, micro_batches)", "min(stage + 1, micro_batches)"),
        "neither can go on",
    ),
    "the last ones are forgotten": (
        SOLUTION.replace("range(micro_batches):", "range(micro_batches - ahead):"),
        'never makes ("B", 4)',
    ),
    "more forwards than there are": (
        SOLUTION.replace("        if i + ahead < micro_batches:\n            work", "        work"),
        "numbered 0 to 7",
    ),
    "counted from one": (
        SOLUTION.replace("return work", "return [(kind, i + 1) for kind, i in work]"),
        "numbered 0 to 7",
    ),
    "few micro-batches": (
        SOLUTION.replace("min(stages - stage, micro_batches)", "stages - stage"),
        "numbered 0 to 1",
    ),
    "words for passes": (SOLUTION.replace('"F"', '"forward"'), 'must be ("F", i) or ("B", i)'),
    "one warm-up for all": (
        SOLUTION.replace("min(stages - stage, micro_batches)", "min(2, micro_batches)"),
        "each backward frees what a forward took",
    ),
    "twice the warm-up": (
        SOLUTION.replace("min(stages - stage, micro_batches)", "min(2 * (stages - stage), micro_batches)"),
        "each backward frees what a forward took",
    ),
    "two forwards, one backward": (
        SOLUTION.replace(
            '            work.append(("F", i + ahead))',
            '            work.append(("F", i + ahead))\n            work.append(("F", i + ahead))',
        ),
        'stages=4, micro_batches=8) makes ("F", 4) twice',
    ),
    "the last backward first": (
        SOLUTION.replace('work.append(("B", i))', 'work.append(("B", micro_batches - 1 - i))'),
        "a backward needs the activations that the forward left behind",
    ),
    "the same forward again": (
        SOLUTION.replace('work.append(("F", i + ahead))', 'work.append(("F", i))'),
        'stages=4, micro_batches=8) makes ("F", 0) twice',
    ),
    "a text for a pair": (
        SOLUTION.replace('work.append(("B", i))', 'work.append(f"B{i}")'),
        "one_forward_one_backward(stage=0, stages=4, micro_batches=8) has 'B0'",
    ),
    "only numbers": (
        SOLUTION.replace('work.append(("B", i))', "work.append(i)"),
        "one_forward_one_backward(stage=0, stages=4, micro_batches=8) has 0",
    ),
    "only the warm-up": (
        SOLUTION.replace("    return work", "    return work[:ahead]"),
        'stages=4, micro_batches=8) never makes ("F", 4)',
    ),
    "nothing": (SOLUTION.replace("    return work", "    print(work)"), "Does it end with a return?"),
}
