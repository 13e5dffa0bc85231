"""Shared by the puzzles about pipelines: reading a reader's blocks, the engine's timetable, words, and the
figure."""

import math

from engine.executed.pipeline_schedules import NOTHING, find_needs, most_held
from engine.mechanism.pipeline_orders import (
    BACKWARD,
    FORWARD,
    INPUT,
    WEIGHT,
    batch_of,
    block,
    kind_of,
    place_of,
)
from engine.mechanism.timeline import schedule as timetable
from engine.puzzles.judging import Slip, rows, shown, whole

LETTERS = {"F": FORWARD, "B": BACKWARD, "I": INPUT, "W": WEIGHT}
BEFORE = {
    BACKWARD: FORWARD,
    INPUT: FORWARD,
    WEIGHT: INPUT,
}  # the pass of the same micro-batch that a stage must have run before
WHY = {
    BACKWARD: "a backward needs the activations that the forward left behind",
    INPUT: "a backward needs the activations that the forward left behind",
    WEIGHT: "the gradient of the weights needs that of the outputs, which comes with the input gradient",
}
LASTS_S = {FORWARD: 1.0, BACKWARD: 2.0, INPUT: 1.0, WEIGHT: 1.0}


# -- what a reader's function gave ----------------------------------------------------------------------------
def stage_order(given, call, letters, stage, stages, batches, chunks=1):
    """The blocks of one stage; a Slip if a pass is unknown, repeated, too early, or missing."""
    form = '("F", i, c)' if chunks > 1 else '("F", i)'
    work = []
    for entry in rows(given, call, f"a list of {form} and the like", 100 * batches * chunks):
        number = as_block(entry, letters, stage, stages, batches, chunks, call)
        if number in work:
            raise Slip(f"{call} makes {named(number, stages, chunks)} twice.")
        kind = kind_of(number)
        own = block(BEFORE[kind], place_of(number), batch_of(number)) if kind in BEFORE else number
        if own != number and own not in work:
            raise Slip(
                f"{call} puts {named(number, stages, chunks)} before its own {named(own, stages, chunks)}: {WHY[kind]}."
            )
        work.append(number)
    for letter in letters:
        for chunk in range(chunks):
            for batch in range(batches):
                number = block(LETTERS[letter], chunk * stages + stage, batch)
                if number not in work:
                    raise Slip(f"{call} never makes {named(number, stages, chunks)}.")
    return work


def as_block(entry, letters, stage, stages, batches, chunks, call):
    """The block number for an entry such as ("F", i), or ("F", i, c) if a stage has chunks."""
    width = 3 if chunks > 1 else 2
    if (
        not isinstance(entry, (list, tuple))
        or len(entry) != width
        or str(entry[0]) not in letters
        or not all(whole(each) for each in entry[1:])
    ):
        forms = [f'("{letter}", i{", c" if chunks > 1 else ""})' for letter in letters]
        raise Slip(f"Each entry must be {' or '.join(forms)}; {call} has {shown(entry)}.")
    if not 0 <= entry[1] < batches:
        raise Slip(f"{call} has {written(entry)}, but the micro-batches are numbered 0 to {batches - 1}.")
    if chunks > 1 and not 0 <= entry[2] < chunks:
        raise Slip(f"{call} has {written(entry)}, but a stage's chunks are numbered 0 to {chunks - 1}.")
    chunk = entry[2] if chunks > 1 else 0
    return block(LETTERS[entry[0]], chunk * stages + stage, entry[1])


def written(entry):
    """An entry as the reader writes it."""
    return "(" + ", ".join([f'"{entry[0]}"'] + [str(each) for each in entry[1:]]) + ")"


def named(number, stages, chunks=1):
    """A block as the reader writes it."""
    letter = [each for each in LETTERS if LETTERS[each] == kind_of(number)][0]
    chunk = f", {place_of(number) // stages}" if chunks > 1 else ""
    return f'("{letter}", {batch_of(number)}{chunk})'


# -- the engine's timetable -----------------------------------------------------------------------------------
def played(orders, stages, batches, chunks=1):
    """The start and end of each pass (NaN if it never starts), and the most that each stage holds."""
    work, begins = [], [0]
    for order in orders:
        work.extend(order)
        begins.append(len(work))
    kind, batch = [kind_of(number) for number in work], [batch_of(number) for number in work]
    place = [place_of(number) for number in work]
    stage_of, needs = [0] * len(work), [[] for _ in work]
    find_needs(kind, place, batch, begins, stages * chunks, batches, stage_of, needs)
    needs = [[at if need == NOTHING else need for need in needs[at]] for at in range(len(work))]
    lasts = [LASTS_S[each] / chunks for each in kind]
    start, end, _ = timetable(stages, stage_of, lasts, [0.0] * len(work), needs)
    return {
        "stages": stages,
        "batches": batches,
        "chunks": chunks,
        "work": work,
        "begins": begins,
        "needs": needs,
        "stage_of": stage_of,
        "start": start,
        "end": end,
        "held": [most_held(kind, begins[s], begins[s + 1] - 1, chunks) for s in range(stages)],
    }


def heads(found):
    """Stage -> its first pass that never starts, for stages that have such a pass."""
    stuck = {}
    for at in range(len(found["work"])):
        if math.isnan(found["start"][at]):
            stuck.setdefault(found["stage_of"][at], at)
    return stuck


def require_moving(found):
    """Raise a Slip if stages wait for each other for ever; it names the first pass of such a circle."""
    stuck = heads(found)
    if not stuck:
        return
    stages, chunks = found["stages"], found["chunks"]
    at = stuck[min(stuck)]
    need = found["needs"][at][0]
    here, there = found["stage_of"][at], found["stage_of"][need]
    other = stuck[there]
    raise Slip(
        f"With {stages} stages, stage {here} waits at {named(found['work'][at], stages, chunks)} for stage {there} to make "
        f"{named(found['work'][need], stages, chunks)}; but stage {there} waits at {named(found['work'][other], stages, chunks)} itself, and "
        "neither can go on.",
        drawn(found),
    )


# -- the words and the picture --------------------------------------------------------------------------------
def counted(batches):
    """A number of micro-batches in words."""
    return f"{round(batches, 2):g} micro-batch{'' if batches == 1 else 'es'}"


def percent(found):
    """The idle share of a step in words."""
    busy = found["batches"] * (LASTS_S[FORWARD] + LASTS_S[BACKWARD])
    return f"{100 * (1 - busy / max(found['end'])):.1f} %"


def drawn(found):
    """The state of the figure ``pipeline_timeline``: the number n of each pass that starts, and −1 − n for a
    pass at which a stage waits for ever."""
    stuck, column = heads(found), [1]
    for at in range(len(found["work"])):
        if not math.isnan(found["start"][at]):
            column.append(found["work"][at])
        elif at in stuck.values():
            column.append(-1 - found["work"][at])
    nothing = found["stages"] < 2 or all(number < 0 for number in column[1:])
    if nothing or (found["chunks"] > 1 and stuck):
        return None
    shape = {"stages": str(found["stages"]), "micro_batches": str(found["batches"])}
    if found["chunks"] > 1:
        shape = shape | {"schedule": "interleaved", "chunks": str(found["chunks"])}
    else:
        shape = shape | {"schedule": "1f1b"}
    return {"set": shape, "give": {"own": column}}
