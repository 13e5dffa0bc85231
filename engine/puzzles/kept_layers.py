"""What a training step holds of its layers' activations, pass by pass, with recomputation and without."""

from engine.executed.layer_passes import held_bytes
from engine.puzzles.judging import Slip, box, number, one_for_each, picture, shown

TITLE = "what a step holds"
LESSON = "01-why-distributed"
STATEMENT = """
A step runs the forward passes of all layers, first to last, and then their backward passes, last to first. Layer `i` needs two things in its
backward pass: its input, `inputs[i]` gigabytes, and what was worked out inside it, `inside[i]` gigabytes. Without recomputation it keeps both
from its forward pass on. With `recompute` it keeps its input alone, and what is inside exists again only while its backward pass runs. After
its backward pass a layer keeps nothing. Return what is held **after** each forward pass, and then **during** each backward pass, in the order in
which they run: `2 * len(inputs)` numbers.
"""
FUNCTION = "held"
START = '''def held(inputs, inside, recompute):
    """Gigabytes after each forward pass, then during each backward pass."""
    amounts, now = [], 0
    for i in range(len(inputs)):
        now += inputs[i] + inside[i]
        amounts.append(now)
    return amounts + [now for i in inputs]
'''
HINTS = (
    "The forward half is right without recomputation. In the backward half the last layer comes first, and each layer frees its own "
    "when it is done.",
    "With recompute a forward pass adds inputs[i] alone. During the backward pass of layer i, inside[i] is there too, and of no other layer.",
    "Go backwards with for i in reversed(range(len(inputs))): first add inside[i] if it was not kept, note what is held, then take both away.",
)
SOLUTION = '''def held(inputs, inside, recompute):
    """Gigabytes after each forward pass, then during each backward pass."""
    amounts, now = [], 0
    for i in range(len(inputs)):
        now += inputs[i]
        if not recompute:
            now += inside[i]
        amounts.append(now)
    for i in reversed(range(len(inputs))):
        if recompute:
            now += inside[i]
        amounts.append(now)
        now -= inputs[i] + inside[i]
    return amounts
'''
OPEN = (
    "Recompute only every second layer. How much of the memory does that save, and how much of the extra arithmetic? Which layers would "
    "you choose if they were not alike?"
)

CASES = (  # inputs, inside, recompute
    ((1, 1, 1, 1), (8, 8, 8, 8), False),
    ((1, 1, 1, 1), (8, 8, 8, 8), True),
    ((2, 1, 3), (5, 9, 4), False),
    ((2, 1, 3), (5, 9, 4), True),
    ((3,), (7,), True),
    ((1, 2, 1, 2, 1, 2), (20, 4, 4, 4, 4, 4), True),
)


def run(function):
    """Run the reader's function for the second case; returns the result in words, and the picture."""
    inputs, inside, recompute = CASES[1]
    given = amounts_of(function, CASES[1])
    return f"Four layers, recomputed: {max(given)} GB at the most.", passes(given, CASES[1])


def check(function):
    """Check the reader's function for all cases; a Slip at the first wrong pass."""
    for case in CASES:
        compare(amounts_of(function, case), case)
    _, drawn_there = run(function)
    kept, rebuilt = (max(held_bytes(*CASES[at])) for at in (0, 1))
    return (
        f"Right, for {len(CASES)} models. Of the first, a step holds {kept} GB at the most, and {rebuilt} GB if it is recomputed.",
        drawn_there,
    )


def called(case):
    """The call of a case, as a reader would write it."""
    return f"{FUNCTION}({list(case[0])}, {list(case[1])}, {case[2]})"


def amounts_of(function, case):
    """The reader's numbers, one for each pass."""
    given = one_for_each(
        function(list(case[0]), list(case[1]), case[2]),
        called(case),
        "a list of numbers",
        2 * len(case[0]),
        "passes, a forward and a backward one for each layer",
    )
    for each in given:
        if not number(each):
            raise Slip(f"What is held must be a number; {shown(each)} is none.")
    return given


def pass_named(at, layers):
    """A pass in words."""
    return f"forward of layer {at}" if at < layers else f"backward of layer {2 * layers - 1 - at}"


def compare(given, case):
    """Raise a Slip at the first pass at which the reader's number differs from the engine's."""
    inputs, inside, recompute = case
    wanted, layers = held_bytes(list(inputs), list(inside), recompute), len(inputs)
    for at in range(2 * layers):
        if abs(given[at] - wanted[at]) > 1e-9:
            raise Slip(explained(given[at], wanted[at], at, case), passes(given, case, at))


def explained(given, wanted, at, case):
    """The words that explain why a pass holds something else."""
    inputs, inside, recompute = case
    layers = len(inputs)
    where = f"{called(case)}: {'after the' if at < layers else 'during the'} {pass_named(at, layers)} a step holds {wanted}, not {shown(given)}."
    if at < layers:
        if recompute and abs(given - sum(inputs[: at + 1]) - sum(inside[: at + 1])) < 1e-9:
            return f"{where} With recompute a layer keeps its input alone."
        if not recompute and abs(given - sum(inputs[: at + 1])) < 1e-9:
            return f"{where} Without recompute a layer keeps what is inside it, too."
        return (
            f"{where} Each layer so far keeps {'its input' if recompute else 'its input and what is inside'}."
        )
    layer = 2 * layers - 1 - at
    if recompute and abs(given - sum(inputs[: layer + 1])) < 1e-9:
        return f"{where} What is inside layer {layer} exists again while its backward pass runs."
    if abs(given - (wanted - inputs[layer] - inside[layer])) < 1e-9:
        return f"{where} A layer's own activations are still there during its backward pass; it frees them afterwards."
    if given > wanted and layer == layers - 1:
        return f"{where} No layer has freed anything yet, and only layer {layer} {'is rebuilt' if recompute else 'runs'} now."
    if given > wanted:
        return f"{where} The layers behind it have had their backward passes, and keep nothing any more."
    return f"{where} The layers in front of it still keep {'their inputs' if recompute else 'theirs'}."


def passes(given, case, wrong=-1):
    """The picture of what is held, a line for each pass; up to the wrong one if there is one."""
    inputs, inside, recompute = case
    layers, lines = len(inputs), []
    for at in range(wrong + 1 if wrong >= 0 else len(given)):
        long = max(0, min(1e4, given[at]))
        lines.append(
            (pass_named(at, layers), [box(0, long, shown(given[at]), "wrong" if at == wrong else "hbm")])
        )
    key = {"hbm": "activations held"}
    if wrong >= 0:
        key["wrong"] = "not what is held"
    return picture(lines, key, f"What a step of {layers} layers holds, pass by pass.", "GB")
