"""Fully sharded: when a layer's weights are gathered, used and freed, and when its gradient is scattered."""

from engine.executed.fully_sharded import BACKWARD, FORWARD, GATHER, SCATTER, issued, needed
from engine.mechanism.timeline import schedule
from engine.puzzles.judging import Slip, rows, shown, whole

TITLE = "gather ahead, and scatter"
LESSON = "05-fsdp-and-zero"
STATEMENT = """
A rank owns a part of each layer's weights. Write what it does in a step, in order: `("gather", i)` makes layer `i` whole, `("forward", i)` and
`("backward", i)` use it and then free it again, and `("scatter", i)` sends a layer's gradient to the ranks that own its parts. Layers count from 0.
Gathers and scatters share one wire, passes run beside it. A gather starts when the wire is free and the pass that stands before it in
your list is done. Each pass uses up one gather, and never more than
`ahead + 1` layers may be whole; a gradient is scattered before the next one is made. Below, nothing is gathered ahead. Make the step as short as the memory allows.
"""
FUNCTION = "step"
START = '''def step(layers, ahead):
    """What a rank does in a step, in order."""
    work = []
    for i in range(layers):
        work.append(("gather", i))
        work.append(("forward", i))
    for i in reversed(range(layers)):
        work.append(("gather", i))
        work.append(("backward", i))
        work.append(("scatter", i))
    return work
'''
HINTS = (
    "Write down the passes first: forward 0, 1, …, and then backward …, 1, 0. Each of them needs a gather of its own layer, so the gathers "
    "have the same order.",
    "Before the first pass, gather for this pass and the next ahead ones. After that, one more gather goes before each pass: the one for the "
    "pass that comes ahead places later.",
    "Keep a counter of the gathers made. Before pass number p: while the counter is at most p + ahead and there are passes left, gather for "
    "pass number counter. The turn from forward to backward needs no care of its own.",
)
SOLUTION = '''def step(layers, ahead):
    """What a rank does in a step, in order."""
    passes = [("forward", i) for i in range(layers)] + [("backward", i) for i in reversed(range(layers))]
    work, gathered = [], 0
    for p in range(len(passes)):
        while gathered < len(passes) and gathered <= p + ahead:
            work.append(("gather", passes[gathered][1]))
            gathered += 1
        work.append(passes[p])
        if passes[p][0] == "backward":
            work.append(("scatter", passes[p][1]))
    return work
'''
OPEN = (
    "The last layer is freed and gathered again at once. Keep it from its forward to its backward pass: how much shorter does the step get, and "
    "what does it cost? PyTorch's reshard_after_forward is this choice."
)

KINDS = {"gather": GATHER, "forward": FORWARD, "backward": BACKWARD, "scatter": SCATTER}
LASTS_MS = {"gather": 3.0, "forward": 4.0, "backward": 8.0, "scatter": 3.0}
SIZES = ((4, 1), (1, 0), (6, 2), (5, 0), (3, 5))  # layers, and how many may be gathered ahead
NETWORK, COMPUTE = 0, 1  # streams


def run(function):
    """Run the reader's function for the first size; returns the result in words, and the figure."""
    layers, ahead = SIZES[0]
    work = work_of(function, layers, ahead)
    total = ended(work)
    passes = layers * (LASTS_MS["forward"] + LASTS_MS["backward"])
    return (
        f"{layers} layers, {ahead} gathered ahead: the step takes {total:g} ms, in {total - passes:g} of which the arithmetic waits. A gather or a scatter "
        f"takes {LASTS_MS['gather']:g} ms, a forward {LASTS_MS['forward']:g}, a backward {LASTS_MS['backward']:g}.",
        drawn(work, layers, ahead),
    )


def check(function):
    """Check the reader's function for all sizes; a Slip at the first wrong answer."""
    for layers, ahead in SIZES:
        work = work_of(function, layers, ahead)
        require_short(work, layers, ahead)
    words, picture = run(function)
    return f"Right, for {len(SIZES)} sizes. {words}", picture


# -- what the reader's function gave --------------------------------------------------------------------------
def work_of(function, layers, ahead):
    """The reader's list of tasks; a Slip if a task is impossible or missing."""
    call = f"{FUNCTION}(layers={layers}, ahead={ahead})"
    work = [
        entry_of(each, layers, call)
        for each in rows(function(layers, ahead), call, 'a list of ("gather", i) and the like', 1000)
    ]
    whole_now, done = [], []
    for at in range(len(work)):
        what, layer = work[at]
        where = f"{call}: entry {at}, {written(work[at])},"
        require_needed(what, layer, whole_now, done, layers, where)
        if what == "gather":
            whole_now.append(layer)
        elif what != "scatter":
            whole_now.remove(layer)
        if what != "gather":
            done.append((what, layer))
        if len(whole_now) > ahead + 1:
            raise Slip(f"{where} makes {len(whole_now)} layers whole at once; there is room for {ahead + 1}.")
    if whole_now:
        raise Slip(
            f"{call} gathers layer {whole_now[0]} more often than it uses it: each pass frees what it has used."
        )
    for what in ("forward", "backward", "scatter"):
        for layer in range(layers):
            if (what, layer) not in done:
                raise Slip(f'{call} never makes ("{what}", {layer}).')
    return work


def entry_of(entry, layers, call):
    """The kind and the layer of one entry of the reader's list; a Slip if it is no such entry."""
    if (
        not isinstance(entry, (list, tuple))
        or len(entry) != 2
        or str(entry[0]) not in KINDS
        or not whole(entry[1])
    ):
        raise Slip(
            f'Each entry must be ("gather", i), ("forward", i), ("backward", i) or ("scatter", i); {call} has {shown(entry)}.'
        )
    if not 0 <= entry[1] < layers:
        raise Slip(f"{call} has {written(entry)}, but the layers are numbered 0 to {layers - 1}.")
    return tuple(entry)


def require_needed(what, layer, whole_now, done, layers, where):
    """Raise a Slip unless everything that this entry needs comes before it."""
    if (what, layer) in done:
        raise Slip(f"{where} is made twice.")
    if what == "gather":
        return
    if what == "scatter":
        if ("backward", layer) not in done:
            raise Slip(f'{where} comes before ("backward", {layer}) has made the gradient.')
        return
    before = ("forward", layer - 1) if what == "forward" else ("backward", layer + 1)
    if what == "backward" and layer == layers - 1:
        before = ("forward", layer)
    if before[1] >= 0 and before not in done:
        raise Slip(f"{where} needs what {written(before)} makes, and that comes later or never.")
    if what == "backward" and before[0] == "backward" and ("scatter", layer + 1) not in done:
        raise Slip(
            f"{where} makes a gradient while that of layer {layer + 1} has not been scattered: two would take memory at once."
        )
    if layer not in whole_now:
        why = (
            "it has been freed after the pass before: gather it again"
            if ("forward", layer) in done
            else "gather it first"
        )
        raise Slip(f"{where} uses a layer that is not whole here; {why}.")


def written(entry):
    """An entry as the reader writes it."""
    return f'("{entry[0]}", {entry[1]})'


# -- the engine's timetable -----------------------------------------------------------------------------------
def ended(work):
    """The time in ms at which a step with this list of tasks ends."""
    kind, layer = [KINDS[what] for what, _ in work], [layer for _, layer in work]
    return total_ms(kind, needed(kind, layer))


def total_ms(kind, after):
    """The time in ms at which the last task ends, on two streams."""
    lasts = {KINDS[what]: LASTS_MS[what] for what in KINDS}
    stream = [NETWORK if each in (GATHER, SCATTER) else COMPUTE for each in kind]
    _, end, _ = schedule(2, stream, [lasts[each] for each in kind], [0.0] * len(kind), after)
    return max(end)


def require_short(work, layers, ahead):
    """Raise a Slip if the step takes longer than with the engine's order."""
    kind, _, after = issued(layers, ahead)
    total, best = ended(work), total_ms(kind, after)
    if total > best + 1e-9:
        raise Slip(
            f"With {layers} layers and {ahead} ahead, the step takes {total:g} ms; {best:g} would do. Gather earlier: while one layer computes, the wire can "
            "fetch the next.",
            drawn(work, layers, ahead) if layers > 1 else None,
        )


def drawn(work, layers, ahead):
    """The state of the figure ``fsdp_timeline``. It codes a task as 4 times the layer, counted from 1, plus
    the kind."""
    return {
        "set": {"layers": str(layers), "prefetch": str(ahead)},
        "give": {"own": [1] + [4 * (layer + 1) + KINDS[what] for what, layer in work]},
    }
