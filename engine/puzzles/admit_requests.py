"""Continuous batching: how many of the waiting requests join the batch now."""

from engine.puzzles.judging import Slip, box, picture, shown, something, whole
from engine.serving.server import WATERMARK, has_no_room

TITLE = "admit requests to the batch"
LESSON = "11b-the-server"
STATEMENT = """
Between two steps a server lets waiting requests join its batch. `waiting` has the tokens of cache that each of them asks for, in order of arrival; `running` requests are in the
batch and hold `held` tokens of a cache of `capacity`. Return how many join now. At most `seats` requests may be in the batch, and nobody overtakes: the first one that
must wait ends it. This server keeps one hundredth of its cache free for answers that grow (its *watermark*), so that joining must leave `held` at no more than 0.99 of the capacity. In an empty
batch, though, the first request may fill the cache to the last token.
"""
FUNCTION = "joining"
START = '''def joining(waiting, running, held, capacity, seats):
    """How many of the waiting requests join the batch."""
    count = 0
    for asks in waiting:
        if held + asks <= capacity:
            held += asks
            count += 1
    return count
'''
HINTS = (
    "Three things can keep a request out: the seats, the cache, and somebody before it who has to wait. Which of these does the start forget?",
    "With count requests joined so far there are running + count in the batch. Stop, with break, at the first request that does not fit.",
    "The limit is capacity if running + count is 0, and 0.99 * capacity otherwise.",
)
SOLUTION = '''def joining(waiting, running, held, capacity, seats):
    """How many of the waiting requests join the batch."""
    count = 0
    for asks in waiting:
        inside = running + count
        limit = capacity if inside == 0 else 0.99 * capacity
        if inside >= seats or held + asks > limit:
            break
        held += asks
        count += 1
    return count
'''
OPEN = (
    "Answers grow, and a batch that was full at the start has to put somebody out later. Count what each request may need at most instead of what it asks for now: how many "
    "fewer join, and who gains?"
)

MOMENTS = (  # the waiting requests; then running requests, tokens held, capacity and seats
    ((200, 300, 100), 2, 300, 1000, 8),
    ((200, 700, 50), 2, 300, 1000, 8),
    ((150, 545), 3, 300, 1000, 8),
    ((1000, 10), 0, 0, 1000, 8),
    ((995,), 1, 0, 1000, 8),
    ((10, 10, 10), 6, 100, 1000, 8),
    ((10, 10), 8, 100, 1000, 8),
    ((600, 300, 95), 0, 0, 1000, 8),
    ((), 3, 500, 1000, 8),
    ((1200, 10), 0, 0, 1000, 8),
)


def run(function):
    """Run the reader's function for the first moment; returns the result in words, and the figure."""
    moment = MOMENTS[0]
    count = asked(function, moment)
    return f"{told(moment)}: {count} of {len(moment[0])} join.", drawn(count, moment)


def check(function):
    """Check the reader's function for all moments; a Slip at the first wrong answer."""
    for moment in MOMENTS:
        count, (wanted, why) = asked(function, moment), admitted(moment)
        if count != wanted:
            if count < wanted:
                why = (
                    "In an empty batch the first may fill the cache to the last token."
                    if moment[1] + count == 0
                    and sum(moment[0][count : count + 1]) > (1 - WATERMARK) * moment[3]
                    else "There is room for more."
                )
            raise Slip(
                f"{told(moment)}: {wanted} must join, and you have {count}. {why}",
                drawn(count, moment, wanted),
            )
    words, seen = run(function)
    return f"Right, for {len(MOMENTS)} moments. {words}", seen


def told(moment):
    """The description of a moment in words."""
    waiting, running, held, capacity, seats = moment
    return f"{running} requests hold {held} of {capacity} tokens, there are {seats} seats, and {shown(list(waiting))} wait"


def asked(function, moment):
    """The reader's answer: how many requests join."""
    waiting, running, held, capacity, seats = moment
    call = f"{FUNCTION}({shown(list(waiting))}, {running}, {held}, {capacity}, {seats})"
    found = function(list(waiting), running, held, capacity, seats)
    something(found, call)
    if not whole(found) or not 0 <= found <= len(waiting):
        raise Slip(
            f"{call} must give how many join, a whole number from 0 to {len(waiting)}, and gave {shown(found)}."
        )
    return found


def admitted(moment):
    """How many join by the engine's rule, and why the next one does not."""
    waiting, running, held, capacity, seats = moment
    count = 0
    while count < len(waiting):
        asks, inside = waiting[count], running + count
        if has_no_room(asks, held, inside, seats, capacity):
            after = "" if count + 1 == len(waiting) else " Those behind it wait with it: nobody overtakes."
            if inside >= seats:
                return count, f"All {seats} seats are taken."
            return (
                count,
                f"The next one asks for {asks} tokens, and joining must leave {(1 - WATERMARK) * capacity:g} held at most, not {held + asks}.{after}",
            )
        held += asks
        count += 1
    return count, ""


def drawn(count, moment, wanted=-1):
    """The picture of the cache: the tokens held, the requests that join, and the limit."""
    waiting, _, held, capacity, _ = moment
    boxes, at = [box(0, held, held, "hbm")] if held else [], held
    for i in range(count):
        wrong = wanted >= 0 and i >= wanted
        boxes.append(box(at, at + waiting[i], waiting[i], "wrong" if wrong else "compute"))
        at += waiting[i]
    lines = [
        ("the batch", boxes),
        (
            "the cache",
            [
                box(0, (1 - WATERMARK) * capacity, "", "plain"),
                box((1 - WATERMARK) * capacity, capacity, "", "idle"),
            ],
        ),
    ]
    rest, first = [], 0
    for i in range(count, len(waiting)):
        rest.append(box(first, first + waiting[i], waiting[i], "wrong" if i < wanted else "link"))
        first += waiting[i]
    if rest:
        lines.append(("still waiting", rest))
    key = {"hbm": "held", "compute": "joins", "link": "waits", "idle": "stays free"}
    if wanted >= 0:
        key["wrong"] = "must not join" if count > wanted else "must join"
    return picture(
        lines,
        key,
        "The tokens that are held, those of the requests that join, and those that wait.",
        "tokens",
    )
