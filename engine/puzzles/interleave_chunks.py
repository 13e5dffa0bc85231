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

SHAPES = ((4, 8, 2), (2, 4, 2), (2, 6, 3), (4, 4, 2), (3, 6, 4))  # stages, micro-batches and chunks


def run(function):
    """Run the reader's function for the first shape; returns the result in words, and the figure."""
    found = played(orders_of(function, *SHAPES[0]), *SHAPES[0])
    require_moving(found)
    stages, batches, chunks = SHAPES[0]
    return (
        f"{stages} stages, {batches} micro-batches, {chunks} chunks a stage: a stage idles {percent(found)} of the step, and stage 0 holds the activations "
        f"of {counted(found['held'][0])}.",
        drawn(found),
    )


def check(function):
    """Check the reader's function for all shapes; a Slip at the first wrong answer."""
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
    """The engine's order for each stage."""
    found = []
    for stage in range(stages):
        work = []
        interleaved(work, stage, stages, batches, chunks)
        found.append(work)
    return found


def require_as_good(found, wanted):
    """Raise a Slip if the step is longer than the engine's, or a stage holds more activations."""
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
