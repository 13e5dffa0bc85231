"""Write 1F1B: the order in which each stage of a pipeline runs its passes."""

from engine.mechanism.pipeline_orders import BACKWARD, kind_of, one_path
from engine.puzzles.judging import Slip
from engine.puzzles.pipelines import counted, drawn, percent, played, require_moving, stage_order

TITLE = "1F1B, one forward, one backward"
LESSON = "07-pipeline-parallel"
STATEMENT = """
Write the order in which a stage makes its passes: a list of `("F", i)` and `("B", i)`, the forward and the backward of
micro-batch `i`. Stages and micro-batches are counted from 0. A pass starts as soon as its stage is free and its input has
arrived; a backward takes twice as long as a forward. The function below is GPipe: correct, but stage 0 ends up holding the
activations of every micro-batch. Turn it into 1F1B.
"""
FUNCTION = "one_forward_one_backward"
START = '''def one_forward_one_backward(stage, stages, micro_batches):
    """What a stage does, in order."""
    work = []
    for i in range(micro_batches):
        work.append(("F", i))
    for i in range(micro_batches):
        work.append(("B", i))
    return work
'''
HINTS = (
    "How many forwards can stage s make before the first backward reaches it? Count the stages behind it that a "
    "micro-batch still has to pass, and the stage itself.",
    "Warm up with min(stages - stage, micro_batches) forwards. After that, each backward frees the room for one more "
    "forward.",
    'For each i in turn append ("B", i), and then ("F", i + ahead) if there is such a micro-batch; ahead is the number of '
    "forwards in the warm-up.",
)
SOLUTION = '''def one_forward_one_backward(stage, stages, micro_batches):
    """What a stage does, in order."""
    ahead = min(stages - stage, micro_batches)
    work = [("F", i) for i in range(ahead)]
    for i in range(micro_batches):
        work.append(("B", i))
        if i + ahead < micro_batches:
            work.append(("F", i + ahead))
    return work
'''
OPEN = (
    "Can a stage hold fewer activations than under 1F1B without a longer step? Try fewer forwards in the warm-up of stage 0, "
    "*run* it, and read off the figure what the saved memory costs."
)

SIZES = ((4, 8), (2, 3), (8, 2), (1, 5), (8, 20))  # stages and micro-batches
PASSES = ("F", "B")


def run(function):
    """Run the reader's function for the first size; returns the result in words, and the figure."""
    stages, batches = SIZES[0]
    found = played(orders_of(function, stages, batches), stages, batches)
    require_moving(found)
    return (
        f"{stages} stages and {batches} micro-batches: a stage idles {percent(found)} of the step, and stage 0 holds the "
        f"activations of {counted(found['held'][0])}.",
        drawn(found),
    )


def check(function):
    """Check that the reader's order is 1F1B for all sizes; a Slip at the first at which it is not."""
    for stages, batches in SIZES:
        found = played(orders_of(function, stages, batches), stages, batches)
        require_moving(found)
        require_equal(found, played(orders_1f1b(stages, batches), stages, batches))
    words, picture = run(function)
    return (
        f"Right, for {len(SIZES)} sizes of pipeline. {words} GPipe would hold {counted(SIZES[0][1])}.",
        picture,
    )


def orders_of(function, stages, batches):
    """The blocks of each stage, in the reader's order."""
    found = []
    for stage in range(stages):
        call = f"{FUNCTION}(stage={stage}, stages={stages}, micro_batches={batches})"
        found.append(stage_order(function(stage, stages, batches), call, PASSES, stage, stages, batches))
    return found


def orders_1f1b(stages, batches):
    """The engine's 1F1B: the blocks of each stage in order."""
    found = []
    for stage in range(stages):
        work = []
        one_path(work, stage, batches, stages - stage, 0, False)
        found.append(work)
    return found


def require_equal(found, wanted):
    """Raise a Slip unless the step is as short as 1F1B's, and no stage holds more activations."""
    sizes = f"With {found['stages']} stages and {found['batches']} micro-batches"
    for stage in range(found["stages"]):
        held, most = found["held"][stage], wanted["held"][stage]
        if held > most:
            raise Slip(
                f"{sizes}, stage {stage} holds the activations of {counted(held)} at once; under 1F1B it holds {most:g}. Let the "
                "first backward come earlier: each backward frees what a forward took.",
                drawn(found),
            )
    longer = max(found["end"]) - max(wanted["end"])
    if longer > 1e-9:
        first = [kind_of(number) for number in found["work"][: found["begins"][1]]].index(BACKWARD)
        ahead = min(found["stages"], found["batches"])
        raise Slip(
            f"{sizes}, the step is longer than under 1F1B, by the time of {longer:g} forwards. There are {first} forwards in the warm-up of "
            f"stage 0, and the first backward cannot reach it before the time of {ahead}: it idles where it could work ahead.",
            drawn(found),
        )
