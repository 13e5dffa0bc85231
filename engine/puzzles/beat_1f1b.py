"""Write a schedule that is shorter than 1F1B in no more memory, by splitting the backward in two halves."""

from engine.mechanism.pipeline_orders import one_path
from engine.puzzles.judging import Slip
from engine.puzzles.pipelines import counted, drawn, percent, played, require_moving, stage_order

TITLE = "beat 1F1B"
LESSON = "07-pipeline-parallel"
STATEMENT = """
A backward is two products: `("I", i)` makes the gradient that the stage before waits for, and `("W", i)` the gradient of the weights, for which nobody
waits. `("F", i)` is the forward; each of the three takes as long as the others. Write a schedule of your own. It is scored by its **bubble** and by its **memory**:
an activation is held from the start of a forward to its `I`, and nearly all of it (32 parts of 34) until its `W`. It counts as solved when the step is as
short as that of ZB-H1, the published schedule, and no stage holds more than stage 0 of 1F1B. The start is 1F1B, with each `W` right after its `I`.
"""
FUNCTION = "own_schedule"
START = '''def own_schedule(stage, stages, micro_batches):
    """What a stage does, in order."""
    ahead = min(stages - stage, micro_batches)
    work = [("F", i) for i in range(ahead)]
    for i in range(micro_batches):
        work.append(("I", i))
        work.append(("W", i))
        if i + ahead < micro_batches:
            work.append(("F", i + ahead))
    return work
'''
# what was placed by hand (placed_by_hand.py), stage by stage, in place of ORDERS; a B is its two halves in turn
PLACED = '''def own_schedule(stage, stages, micro_batches):
    """What a stage does, in order."""
    # Placed by hand for 4 stages and 8 micro-batches. Which rule makes these lists, for any line?
    by_hand = [
ORDERS    ]
    return by_hand[stage]
'''
HINTS = (
    "Run the start and look at the figure: where does a stage wait, and which W could it do there? The stages before wait for an I, never for a W.",
    "If a stage puts its W off, its I's come sooner one after the other. A W that is put off holds its activation, and stage s has room for s of them: it "
    "keeps stages - s micro-batches in 1F1B, and stage 0 keeps stages.",
    'Let each W come stage places later: after ("I", i) append ("W", i - stage), if there is such a micro-batch. What is left comes at the end.',
)
SOLUTION = '''def own_schedule(stage, stages, micro_batches):
    """What a stage does, in order."""
    ahead = min(stages - stage, micro_batches)
    work = [("F", i) for i in range(ahead)]
    for i in range(micro_batches):
        work.append(("I", i))
        if i >= stage:
            work.append(("W", i - stage))
        if i + ahead < micro_batches:
            work.append(("F", i + ahead))
    return work + [("W", i) for i in range(max(0, micro_batches - stage), micro_batches)]
'''
OPEN = (
    "Give up the limit on memory: how long a warm-up and how late a W make the bubble vanish but for the start and the end? And with less memory than 1F1B, "
    "what is the smallest bubble that you can find? The score says both."
)

LINES = ((4, 8), (2, 6), (8, 16), (3, 5), (1, 3))  # stages and micro-batches


def run(function):
    """Run the reader's function for the first size; returns the result in words, and the figure."""
    found = played(orders_of(function, *LINES[0]), *LINES[0])
    require_moving(found)
    plain, published = [played(engines(*LINES[0], split), *LINES[0]) for split in (False, True)]
    return (
        f"{LINES[0][0]} stages and {LINES[0][1]} micro-batches: bubble {percent(found)}, and the fullest stage holds {counted(max(found['held']))}. 1F1B has "
        f"{percent(plain)} and {counted(max(plain['held']))}, ZB-H1 {percent(published)} and {counted(max(published['held']))}.",
        drawn(found),
    )


def check(function):
    """Check the reader's function for all sizes; a Slip at the first wrong answer."""
    for size in LINES:
        found = played(orders_of(function, *size), *size)
        require_moving(found)
        require_better(found, played(engines(*size, False), *size), played(engines(*size, True), *size))
    words, seen = run(function)
    return f"Right, for {len(LINES)} sizes of pipeline. {words}", seen


def orders_of(function, stages, batches):
    """The blocks of each stage, in the reader's order."""
    found = []
    for stage in range(stages):
        call = f"{FUNCTION}(stage={stage}, stages={stages}, micro_batches={batches})"
        found.append(
            stage_order(function(stage, stages, batches), call, ("F", "I", "W"), stage, stages, batches)
        )
    return found


def engines(stages, batches, split):
    """The engine's 1F1B, or its ZB-H1 with the backward split."""
    found = []
    for stage in range(stages):
        work = []
        one_path(work, stage, batches, stages - stage, stage, split)
        found.append(work)
    return found


def require_better(found, plain, published):
    """A Slip if the step is longer than ZB-H1's, or a stage holds more than one of 1F1B."""
    sizes = f"With {found['stages']} stages and {found['batches']} micro-batches"
    most = max(plain["held"])
    for stage in range(found["stages"]):
        if found["held"][stage] > most + 1e-9:
            raise Slip(
                f"{sizes}, stage {stage} holds the activations of {counted(found['held'][stage])} at once, while stage 0 of 1F1B holds {most:g}. A W that is put off "
                "holds its activation.",
                drawn(found),
            )
    takes, best = max(found["end"]), max(published["end"])
    if takes > best + 1e-9:
        raise Slip(
            f"{sizes}, the step takes {takes:g} times a forward, and {best:g} would do in the same memory; 1F1B takes {max(plain['end']):g}. Nobody waits for a W: "
            "where does one hold up an I?",
            drawn(found),
        )
