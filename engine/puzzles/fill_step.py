"""One step of a server: which requests write a token, and which pieces of waiting prompts are read with
them."""

from engine.puzzles.judging import Slip, box, one_for_each, picture, shown, whole
from engine.serving.server import has_no_room, piece

TITLE = "fill a step under two limits"
LESSON = "12-disaggregated-serving"
STATEMENT = """
A server plans its next step. `writing` users are in the middle of their answers, and each of them gets one token in any case. `waiting` has
how many tokens are left to read of each prompt, in order of arrival. Return how many tokens of each prompt the step reads, one number for each.
Two limits hold: a step computes at most `budget` tokens, those of the answers among them, and at most `seats` users take part in it, writing
or read. Prompts are read in order of arrival, in pieces where they must be, and as much as the limits allow.
"""
FUNCTION = "read_now"
START = '''def read_now(writing, waiting, budget, seats):
    """How many tokens of each waiting prompt the step reads."""
    return [left for left in waiting]
'''
HINTS = (
    "The users that write come first: they take one token of the budget and one seat each. What is left of both?",
    "Go through the prompts in order and give each the smaller of what it has left and what is left of the budget.",
    "A prompt takes a seat once it gets a token. Where the budget or the seats have run out, the rest of the list is zeros; and what is left "
    "of the budget is never below 0.",
)
SOLUTION = '''def read_now(writing, waiting, budget, seats):
    """How many tokens of each waiting prompt the step reads."""
    room, free = max(0, budget - writing), seats - writing
    reads = []
    for left in waiting:
        piece = min(left, room) if free > 0 else 0
        reads.append(piece)
        room -= piece
        free -= 1
    return reads
'''
OPEN = (
    "A long prompt makes all the short ones behind it wait. Let each prompt have at most half of what is left of the budget: whose first token comes "
    "sooner, whose later, and does a long prompt ever come to its end?"
)

STEPS = (  # the number of writing users, the tokens left of each prompt, budget, seats
    (3, (250, 40, 10), 100, 8),
    (3, (60, 30, 20), 100, 8),
    (0, (20, 20, 20, 20), 100, 3),
    (4, (30, 30), 100, 5),
    (6, (50, 5), 6, 16),
    (9, (50, 5), 6, 16),
    (8, (50,), 100, 8),
    (2, (), 50, 4),
    (0, (98, 1, 7), 100, 16),
)
BEGIN_MS, TOKEN_MS = 10.0, 0.1  # a step takes BEGIN_MS, and TOKEN_MS for each token in it
DAY = (  # each request's arrival (ms), tokens of prompt and answer; then budget and seats
    ((0, 40, 30), (5, 60, 30), (100, 900, 10), (110, 50, 20), (600, 300, 5)),
    128,
    4,
)


def run(function):
    """Run a server's day by the reader's plan; returns its waits and pauses in words, and the figure."""
    requests, budget, seats = DAY
    plans = []
    first, pause = day(function, requests, budget, seats, plans)
    waits = ", ".join([f"{first[at] - requests[at][0]:.0f}" for at in range(len(requests))])
    return (
        f"Prompts of {', '.join([str(each[1]) for each in requests])} tokens, a budget of {budget}, {seats} seats: the first tokens come after {waits} ms, and "
        f"nobody waits longer than {pause:.0f} ms for the next one.",
        drawn(plans),
    )


def check(function):
    """Check the reader's plan for single steps, then for a day; a Slip at the first wrong step."""
    for writing, waiting, budget, seats in STEPS:
        compare(pieces_of(function, writing, waiting, budget, seats), writing, waiting, budget, seats)
    words, picture = run(function)
    return f"Right, for {len(STEPS)} steps. {words}", picture


def pieces_of(function, writing, waiting, budget, seats):
    """The reader's plan for a step: how many tokens of each prompt to read; a Slip if it is impossible."""
    call = f"{FUNCTION}({writing}, {shown(list(waiting))}, budget={budget}, seats={seats})"
    reads = one_for_each(
        function(writing, list(waiting), budget, seats),
        call,
        "a list of how many tokens of each prompt are read",
        len(waiting),
        "prompts: one number for each, 0 where nothing is read",
    )
    for at in range(len(reads)):
        if not whole(reads[at]) or reads[at] < 0:
            raise Slip(f"{call} has {shown(reads[at])}; each entry is a whole number of tokens, at least 0.")
        if reads[at] > waiting[at]:
            raise Slip(f"{call} reads {reads[at]} tokens of prompt {at}, which has only {waiting[at]} left.")
    users, tokens = writing + len([each for each in reads if each]), sum(reads)
    if tokens and tokens + writing > budget:
        raise Slip(
            f"{call} reads {tokens} tokens, with those of {writing} answers {tokens + writing}; a step computes at most {budget}."
        )
    if users > max(seats, writing):
        raise Slip(
            f"{call} gave {shown(reads)}, so that {users} users take part, {writing} of them writing; there are {seats} seats."
        )
    return reads


def planned(writing, waiting, budget, seats):
    """The plan by the engine's rules, with a cache that is never full."""
    fresh, reads = 0, []
    for left in waiting:
        inside = writing + len([each for each in reads if each])
        reads.append(0 if has_no_room(0, 0, inside, seats, 0) else piece(left, budget - writing - fresh))
        fresh += reads[-1]
    return reads


def compare(reads, writing, waiting, budget, seats):
    """Raise a Slip if another plan is right."""
    wanted = planned(writing, waiting, budget, seats)
    if reads == wanted:
        return
    at = [at for at in range(len(wanted)) if reads[at] != wanted[at]][0]
    where = f"With {writing} answers, prompts of {list(waiting)} left, a budget of {budget} and {seats} seats: prompt {at} must get {wanted[at]} and gets {reads[at]}"
    if reads[at] == 0 and sum(reads[:at]) > 0:
        raise Slip(f"{where}. There is room for more.", of_a_step(reads, wanted, writing, budget))
    raise Slip(
        f"{where}. Prompts are read in order of arrival, in pieces where they must be, and as much as the limits allow.",
        of_a_step(reads, wanted, writing, budget),
    )


def day(function, requests, budget, seats, plans=None):
    """The time of each request's first token, and the longest pause between two tokens of a request, in ms.
    If given, the list ``plans`` gets an entry for each step: for each request the tokens read, or -1 if it
    writes one."""
    now, came, first, last, pause = 0.0, 0, {}, {}, 0.0
    left, to_write = [each[1] for each in requests], [each[2] for each in requests]
    waiting, writing = [], []
    while came < len(requests) or waiting or writing:
        if not waiting and not writing:
            now = max(now, requests[came][0])
        while came < len(requests) and requests[came][0] <= now:
            waiting.append(came)
            came += 1
        reads = pieces_of(function, len(writing), [left[r] for r in waiting], budget, seats)
        if not sum(reads) and not writing:
            raise Slip(
                f"{len(waiting)} prompts wait, nobody writes, and nothing is read: so it would stay for ever."
            )
        if plans is not None:
            plans.append(
                [
                    reads[waiting.index(r)] if r in waiting else -1 if r in writing else 0
                    for r in range(len(requests))
                ]
            )
        now += BEGIN_MS + TOKEN_MS * (sum(reads) + len(writing))
        for at in range(len(reads)):
            left[waiting[at]] -= reads[at]
        done = [r for r in waiting if not left[r]]
        for r in writing + done:
            pause = max(pause, now - last.get(r, now))
            first.setdefault(r, now)
            last[r] = now
            to_write[r] -= 1
        waiting = [r for r in waiting if left[r]]
        writing = [r for r in writing + done if to_write[r]]
    return [first[r] for r in range(len(requests))], pause


MOST_DRAWN = 24  # steps


def drawn(plans):
    """The picture of the day's first steps from left to right, with what each step does for each request."""
    lines = []
    for r in range(len(plans[0])):
        boxes = []
        for step in range(min(MOST_DRAWN, len(plans))):
            if plans[step][r]:
                boxes.append(
                    box(
                        step,
                        step + 1,
                        "" if plans[step][r] < 0 else plans[step][r],
                        "hbm" if plans[step][r] < 0 else "compute",
                    )
                )
        lines.append((f"request {r}", boxes))
    key = {"compute": "tokens of its prompt are read", "hbm": "a token is written"}
    return picture(
        lines,
        key,
        f"The first {min(MOST_DRAWN, len(plans))} steps, and what each does for each request.",
        "steps",
    )


def of_a_step(reads, wanted, writing, budget):
    """The picture of a step's budget: the answers' tokens and the pieces of prompts, in the reader's plan and
    by the rule."""
    lines = []
    for name, plan in (("yours", reads), ("the rule's", wanted)):
        boxes, at = [box(0, min(writing, budget), "", "hbm")], writing
        for i in range(len(plan)):
            if plan[i]:
                boxes.append(
                    box(
                        at,
                        at + plan[i],
                        i,
                        "wrong" if name == "yours" and plan[i] != wanted[i] else "compute",
                    )
                )
                at += plan[i]
        lines.append((name, boxes))
    lines.append(("budget", [box(0, budget, budget, "plain")]))
    key = {
        "hbm": "answers",
        "compute": "a piece of a prompt, by its number",
        "wrong": "not as the rule has it",
    }
    return picture(lines, key, "What fills the step, in your plan and by the rule.", "tokens")
