"""Balancing without an auxiliary loss: how the experts' biases change after a batch."""

from engine.executed.routing import BATCH, BIAS_RATE, push
from engine.puzzles.judging import Slip, box, number, one_for_each, picture, shown
from engine.puzzles.route_tokens import chosen_by, scores_of

TITLE = "balance by bias"
LESSON = "09-expert-parallel"
STATEMENT = """
After each batch the router knows `load[e]`, how many tokens have chosen expert `e`. Return the experts' biases for the next batch by the rule of DeepSeek-V3: the
bias of an expert with **more** than the mean load goes down by `rate`, that of one with **less** goes up by `rate`, and one at the mean keeps its own. It does not matter
how far from the mean an expert is.
"""
FUNCTION = "next_bias"
START = '''def next_bias(bias, load, rate):
    """The biases for the next batch."""
    mean = sum(load) / len(load)
    return [bias[e] + rate * (mean - load[e]) / mean for e in range(len(bias))]
'''
HINTS = (
    "The start moves a bias in proportion to what its expert is off by. The rule takes only the direction.",
    "There are three cases for an expert: above the mean, below it, and at it.",
    "For each expert append bias[e] - rate, bias[e] + rate or bias[e].",
)
SOLUTION = '''def next_bias(bias, load, rate):
    """The biases for the next batch."""
    mean = sum(load) / len(load)
    found = []
    for e in range(len(bias)):
        if load[e] > mean:
            found.append(bias[e] - rate)
        elif load[e] < mean:
            found.append(bias[e] + rate)
        else:
            found.append(bias[e])
    return found
'''
OPEN = (
    "Let the rate fall from batch to batch, or move by what an expert is off by as the start does. Which one balances sooner, and which one settles down? *Run* "
    "says how full the fullest expert is after each."
)

LOADS = (  # the experts' biases after some batches, and a load that adds up to BATCH times two choices
    ((0.0,) * 8, (40, 24, 16, 16, 16, 8, 4, 4)),
    ((-0.2, 0.08, 0.04, 0.0, -0.04, 0.12, 0.0, 0.2), (17, 15, 16, 16, 30, 2, 16, 16)),
    ((0.3, -0.3, 0.1, -0.1), (32, 32, 60, 4)),
    ((0.0, 0.04), (65, 63)),
)
EXPERTS, TOP_K = 8, 2
BATCHES = 12  # in a run
SPREAD = 5  # of the scores, in steps of BIAS_RATE


def run(function):
    """Balance some batches of new tokens by the reader's rule; returns the result in words, and the
    figure."""
    bias, fullest = [0.0] * EXPERTS, []
    first = []
    for batch in range(BATCHES):
        load = load_of(bias, batch)
        first = first or load
        fullest.append(max(load) * EXPERTS / (BATCH * TOP_K))
        bias = bias_of(function, bias, load)
    return (
        f"{EXPERTS} experts, {BATCH} tokens a batch: the fullest expert has {fullest[0]:.2f} times the mean in the first batch and {fullest[-1]:.2f} times in batch {BATCHES}.",
        drawn(first, load_of(bias, BATCHES)),
    )


def check(function):
    """Check the reader's function for all loads, expert by expert; a Slip at the first wrong bias."""
    for bias, load in LOADS:
        found, wanted = bias_of(function, list(bias), list(load)), list(bias)
        push(wanted, list(load), len(load), TOP_K)
        for e in range(len(load)):
            if abs(found[e] - wanted[e]) > 1e-9:
                raise Slip(explained(e, bias, load, found, wanted), drawn_at(e, load))
    words, seen = run(function)
    return f"Right, for {len(LOADS)} batches. {words}", seen


def load_of(bias, batch):
    """How many of a batch's new tokens choose each expert by the engine's rule."""
    load = [0] * EXPERTS
    for score in scores_of((BATCH, EXPERTS, TOP_K, 0, 0, batch + 1)):
        for e in chosen_by([SPREAD * each for each in score], bias, TOP_K):
            load[e] += 1
    return load


def bias_of(function, bias, load):
    """The biases that the reader's function returns."""
    call = f"{FUNCTION}({shown([round(each, 2) for each in bias])}, {shown(load)}, {BIAS_RATE})"
    given = one_for_each(
        function(list(bias), list(load), BIAS_RATE),
        call,
        "a list with a bias for each expert",
        len(load),
        "experts",
    )
    for each in given:
        if not number(each) or each != each:
            raise Slip(f"{call} has {shown(each)}; each bias is a number.")
    return given


def explained(e, bias, load, found, wanted):
    """The words that explain why another bias is right."""
    mean = sum(load) / len(load)
    where = f"With a load of {shown(list(load))}, the mean is {mean:g}, and expert {e} has {load[e]}"
    which = (
        "has more than the mean"
        if load[e] > mean
        else "has less than the mean"
        if load[e] < mean
        else "is at the mean"
    )
    must = f"it {which}, so its bias must go from {bias[e]:g} to {wanted[e]:g}, and is {found[e]:g}"
    if bias[e] and abs(found[e] - (wanted[e] - bias[e])) < 1e-9:
        return f"{where}: {must}. It goes on from its bias so far."
    way = (
        "It stays as it is."
        if wanted[e] == bias[e]
        else f"It goes {'down' if load[e] > mean else 'up'} by rate, however far it is from the mean."
    )
    return f"{where}: {must}. {way}"


def drawn(before, after):
    """The picture of each expert's load in the first and in the last batch."""
    mean, lines = BATCH * TOP_K / EXPERTS, []
    for e in range(EXPERTS):
        for name, load in ((f"expert {e}", before[e]), ("later", after[e])):
            boxes = [box(0, min(load, mean), load, "compute" if name == "later" else "hbm")]
            if load > mean:
                boxes.append(box(mean, load, "", "network"))
            lines.append((name, boxes))
    key = {"hbm": "tokens in the first batch", "compute": "in the last one", "network": "above the mean"}
    return picture(lines, key, f"The tokens of each expert, before and after {BATCHES} batches.", "tokens")


def drawn_at(expert, load):
    """The picture of each expert's load beside the mean, with the expert whose bias is wrong."""
    mean, lines = sum(load) / len(load), []
    for e in range(len(load)):
        boxes = [box(0, min(load[e], mean), load[e], "wrong" if e == expert else "hbm")]
        if load[e] > mean:
            boxes.append(box(mean, load[e], "", "network"))
        lines.append((f"expert {e}", boxes))
    key = {"wrong": "its bias is wrong", "hbm": "tokens", "network": "above the mean"}
    return picture(lines, key, "The tokens that have chosen each expert.", "tokens")
