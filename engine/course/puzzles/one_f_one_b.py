"""Write 1F1B: the order in which each stage of a pipeline makes its passes."""

import math

from engine.course.puzzles.judging import Slip, rows, shown, whole
from engine.executed.pipeline_schedules import NOTHING, find_needs, most_held
from engine.mechanism.pipeline_orders import BACKWARD, FORWARD, batch_of, block, kind_of, one_path
from engine.mechanism.timeline import schedule as timetable

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
WRONG = {  # answers that people give, each with some of the words that it gets
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
}

SIZES = ((4, 8), (2, 3), (8, 2), (1, 5), (8, 20))  # stages and micro-batches
FORWARD_S, BACKWARD_S = 1.0, 2.0
LETTERS = {"F": FORWARD, "B": BACKWARD}


def run(function):
    """What the reader's order comes to for the first of the sizes."""
    stages, batches = SIZES[0]
    found = played(orders_of(function, stages, batches), stages, batches)
    require_moving(found)
    return (
        f"{stages} stages and {batches} micro-batches: a stage idles {percent(found)} of the step, and stage 0 holds the "
        f"activations of {counted(found['held'][0])}.",
        drawn(found),
    )


def check(function):
    """Whether it is 1F1B, in all sizes."""
    for stages, batches in SIZES:
        found = played(orders_of(function, stages, batches), stages, batches)
        require_moving(found)
        require_equal(found, played(orders_1f1b(stages, batches), stages, batches))
    words, picture = run(function)
    return (
        f"Right, for {len(SIZES)} sizes of pipeline. {words} GPipe would hold {counted(SIZES[0][1])}.",
        picture,
    )


# -- what the reader's function gave --------------------------------------------------------------------------
def orders_of(function, stages, batches):
    """The blocks of each stage, in the reader's order; a Slip where a pass is unknown, made twice, or missing."""
    return [stage_order(function, stage, stages, batches) for stage in range(stages)]


def stage_order(function, stage, stages, batches):
    """The blocks of one stage."""
    call = f"{FUNCTION}(stage={stage}, stages={stages}, micro_batches={batches})"
    given = rows(function(stage, stages, batches), call, 'a list of ("F", i) and ("B", i)', 100 * batches)
    work = []
    for entry in given:
        number = as_block(entry, stage, batches, call)
        if number in work:
            raise Slip(f"{call} makes {named(number)} twice.")
        if kind_of(number) == BACKWARD and block(FORWARD, stage, batch_of(number)) not in work:
            before = block(FORWARD, stage, batch_of(number))
            raise Slip(
                f"{call} puts {named(number)} before its own {named(before)}: a backward needs the activations that the "
                "forward left behind."
            )
        work.append(number)
    for letter in LETTERS:
        for batch in range(batches):
            if block(LETTERS[letter], stage, batch) not in work:
                raise Slip(f'{call} never makes ("{letter}", {batch}).')
    return work


def as_block(entry, stage, batches, call):
    """A block's number of ("F", i) or ("B", i)."""
    if (
        not isinstance(entry, (list, tuple))
        or len(entry) != 2
        or entry[0] not in ("F", "B")
        or not whole(entry[1])
    ):
        raise Slip(f'Each entry must be ("F", i) or ("B", i); {call} has {shown(entry)}.')
    if not 0 <= entry[1] < batches:
        raise Slip(
            f'{call} has ("{entry[0]}", {entry[1]}), but the micro-batches are numbered 0 to {batches - 1}.'
        )
    return block(LETTERS[entry[0]], stage, entry[1])


def orders_1f1b(stages, batches):
    """The engine's own."""
    found = []
    for stage in range(stages):
        work = []
        one_path(work, stage, batches, stages - stage, 0, False)
        found.append(work)
    return found


def named(number):
    """A block as the reader writes it."""
    return f'("{"F" if kind_of(number) == FORWARD else "B"}", {batch_of(number)})'


# -- the engine's timetable -----------------------------------------------------------------------------------
def played(orders, stages, batches):
    """When each pass starts and ends, and what each stage holds; NaN for passes that never come."""
    work, begins = [], [0]
    for order in orders:
        work.extend(order)
        begins.append(len(work))
    kind = [kind_of(number) for number in work]
    stage_of, needs = [0] * len(work), [[] for _ in work]
    batch = [batch_of(number) for number in work]
    place = [stage for stage in range(stages) for _ in orders[stage]]
    find_needs(kind, place, batch, begins, stages, batches, stage_of, needs)
    needs = [[at if need == NOTHING else need for need in needs[at]] for at in range(len(work))]
    lasts = [FORWARD_S if each == FORWARD else BACKWARD_S for each in kind]
    start, end, _ = timetable(stages, stage_of, lasts, [0.0] * len(work), needs)
    return {
        "stages": stages,
        "batches": batches,
        "work": work,
        "begins": begins,
        "needs": needs,
        "stage_of": stage_of,
        "start": start,
        "end": end,
        "held": [most_held(kind, begins[s], begins[s + 1] - 1, 1) for s in range(stages)],
    }


def heads(found):
    """Stage -> the first of its passes that never starts, where there is one."""
    stuck = {}
    for at in range(len(found["work"])):
        if math.isnan(found["start"][at]):
            stuck.setdefault(found["stage_of"][at], at)
    return stuck


def require_moving(found):
    """A Slip if stages wait for each other without end, with the first pass of such a circle."""
    stuck = heads(found)
    if not stuck:
        return
    at = stuck[min(stuck)]
    need = found["needs"][at][0]
    here, there = found["stage_of"][at], found["stage_of"][need]
    other = stuck[there]
    raise Slip(
        f"With {found['stages']} stages, stage {here} waits at {named(found['work'][at])} for stage {there} to make "
        f"{named(found['work'][need])}; but stage {there} waits at {named(found['work'][other])} itself, and neither can go on.",
        drawn(found),
    )


def require_equal(found, wanted):
    """A Slip unless the step is as short as 1F1B's, and no stage holds more."""
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


# -- the words and the picture --------------------------------------------------------------------------------
def counted(batches):
    """So many micro-batches, in words."""
    return f"{batches:g} micro-batch{'' if batches == 1 else 'es'}"


def percent(found):
    """The idle share of a step."""
    busy = found["batches"] * (FORWARD_S + BACKWARD_S)
    return f"{100 * (1 - busy / max(found['end'])):.1f} %"


def drawn(found):
    """The state of the figure ``pipeline_timeline``: the passes that start, and −1 − that of a pass for which a stage
    waits without end."""
    stuck, column = heads(found), [1]
    for at in range(len(found["work"])):
        if not math.isnan(found["start"][at]):
            column.append(found["work"][at])
        elif at in stuck.values():
            column.append(-1 - found["work"][at])
    if found["stages"] < 2 or all(number < 0 for number in column[1:]):
        return None
    return {
        "set": {"schedule": "1f1b", "stages": str(found["stages"]), "micro_batches": str(found["batches"])},
        "give": {"own": column},
    }
