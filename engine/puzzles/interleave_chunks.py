"""Interleaved 1F1B: a stage holds several chunks of layers, and its passes are shorter."""

from engine.mechanism.pipeline_orders import interleaved
from engine.puzzles.judging import Slip
from engine.puzzles.pipelines import counted, drawn, percent, played, require_moving, stage_order

TITLE = "interleave the chunks"
LESSON = "07-pipeline-parallel"
STATEMENT = """
Now each stage holds `chunks` chunks of layers: chunk `c` of stage `s` is number `c * stages + s` on a micro-batch's way. Its passes are
`("F", i, c)` and `("B", i, c)`. Return the order in which a stage makes them, so that the line fills sooner: a group of `stages` micro-batches through
chunk 0, the same group through chunk 1, and so on, then the next group; backwards likewise, from the last chunk to the first. First come
`2 * (stages - stage - 1) + (chunks - 1) * stages` forwards, or all there are, and from then on one forward and one backward in turn. `stages` divides `micro_batches`.
"""
FUNCTION = "interleaved_order"
START = '''def interleaved_order(stage, stages, micro_batches, chunks):
    """What a stage does, in order."""
    work = []
    for c in range(chunks):
        for i in range(micro_batches):
            work.append(("F", i, c))
    for c in reversed(range(chunks)):
        for i in range(micro_batches):
            work.append(("B", i, c))
    return work
'''
HINTS = (
    "Write down two lists first: all forwards of the stage in their order, and all backwards in theirs.",
    "The forwards: for each group of stages micro-batches, for each chunk, for each micro-batch of the group. The backwards are the same with the "
    "chunks reversed.",
    "Take the first ahead forwards. Then, for each k, append forward number ahead + k, if there is one, and backward number k.",
)
SOLUTION = '''def interleaved_order(stage, stages, micro_batches, chunks):
    """What a stage does, in order."""
    forwards, backwards = [], []
    for first in range(0, micro_batches, stages):
        for c in range(chunks):
            for i in range(first, first + stages):
                forwards.append(("F", i, c))
                backwards.append(("B", i, chunks - 1 - c))
    ahead = min(len(forwards), 2 * (stages - stage - 1) + (chunks - 1) * stages)
    work = forwards[:ahead]
    for k in range(len(backwards)):
        work.extend(forwards[ahead + k : ahead + k + 1])
        work.append(backwards[k])
    return work
'''
OPEN = (
    "Interleaving shortens the bubble and lengthens the list of messages. How many does a micro-batch send with two chunks, and with four? And what "
    "does one forward fewer in the warm-up do to the step and to the memory?"
)
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

SHAPES = ((4, 8, 2), (2, 4, 2), (2, 6, 3), (4, 4, 2), (3, 6, 4))  # stages, micro-batches and chunks


def run(function):
    """What the reader's order comes to for the first of the shapes."""
    found = played(orders_of(function, *SHAPES[0]), *SHAPES[0])
    require_moving(found)
    stages, batches, chunks = SHAPES[0]
    return (
        f"{stages} stages, {batches} micro-batches, {chunks} chunks a stage: a stage idles {percent(found)} of the step, and stage 0 holds the activations "
        f"of {counted(found['held'][0])}.",
        drawn(found),
    )


def check(function):
    """All shapes, against the engine's order."""
    for shape in SHAPES:
        found = played(orders_of(function, *shape), *shape)
        require_moving(found)
        require_as_good(found, played(engines(*shape), *shape))
    words, seen = run(function)
    return f"Right, for {len(SHAPES)} shapes of pipeline. {words}", seen


def orders_of(function, stages, batches, chunks):
    """The blocks of each stage, in the reader's order."""
    found = []
    for stage in range(stages):
        call = f"{FUNCTION}({stage}, {stages}, {batches}, {chunks})"
        given = function(stage, stages, batches, chunks)
        found.append(stage_order(given, call, ("F", "B"), stage, stages, batches, chunks))
    return found


def engines(stages, batches, chunks):
    """The engine's own."""
    found = []
    for stage in range(stages):
        work = []
        interleaved(work, stage, stages, batches, chunks)
        found.append(work)
    return found


def require_as_good(found, wanted):
    """A Slip if the step is longer than the engine's, or a stage holds more."""
    stages, batches, chunks = found["stages"], found["batches"], found["chunks"]
    sizes = f"With {stages} stages, {batches} micro-batches and {chunks} chunks"
    longer = max(found["end"]) - max(wanted["end"])
    if longer > 1e-9:
        raise Slip(
            f"{sizes}, the step is longer than the rule's by the time of {longer:g} forwards of a whole stage. Only a group of {stages} micro-batches goes through "
            "a chunk before the next chunk gets it, and the warm-up is as long as stated.",
            drawn(found),
        )
    for stage in range(stages):
        held, most = found["held"][stage], wanted["held"][stage]
        if held > most + 1e-9:
            raise Slip(
                f"{sizes}, stage {stage} holds the activations of {counted(held)} at once, and by the rule {round(most, 2):g}. Let the first backward come "
                f"earlier. Only a group of {stages} micro-batches goes through a chunk before the next chunk gets it.",
                drawn(found),
            )
