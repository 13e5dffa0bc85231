"""Halving for any number of ranks: fold the ranks beyond a power of two into others, then exchange halves."""

from engine.puzzles.judging import Slip, rows, shown, whole
from engine.puzzles.ring_step import drawn

TITLE = "halving, for any number of ranks"
LESSON = "02-collectives"
STATEMENT = """
Recursive halving needs a power of two. Let `chunks` be the largest one that is at most `ranks`; each rank's buffer is cut into that many
chunks, and `ranks - chunks` ranks are too many. So **fold** first: of the first `2 * (ranks - chunks)` ranks, each odd one sends its whole buffer to
the even one before it, and is done. The others get places 0 to `chunks - 1`, in order. Then **halve**: in each step, partners whose places differ in one bit, the
highest bit first, exchange halves of what they still work on. Each keeps the half with the chunk of its own place, and adds what it receives.
Return what `rank` sends in each step: `(to, first, end)` for chunks `first` to `end - 1`, or `None`. A power of two needs no fold.
"""
FUNCTION = "sends"
START = '''def sends(rank, ranks):
    """What this rank sends in each step: (to, first, end) or None."""
    steps, reach = [], ranks // 2
    while reach:
        partner = rank ^ reach  # differs in one bit
        first = partner // reach * reach
        steps.append((partner, first, first + reach))
        reach //= 2
    return steps
'''
HINTS = (
    "The start is right for powers of two. Otherwise it has two jobs more: a first step for the fold, and places that are not ranks.",
    "With extra = ranks - chunks, the ranks that stay are 0, 2, 4, … below 2 * extra, and all from 2 * extra on. Put them into a list: a rank's "
    "place is its index there, and a place's rank its entry.",
    "Let the places go through the start's loop, with reach = chunks // 2 at first, and send to members[partner]. A folded rank sends (rank - 1, 0, chunks) "
    "and then None in every step; the others send None while there is a fold.",
)
SOLUTION = '''def sends(rank, ranks):
    """What this rank sends in each step: (to, first, end) or None."""
    chunks = 1
    while 2 * chunks <= ranks:
        chunks *= 2
    extra = ranks - chunks
    members = [2 * i for i in range(extra)] + list(range(2 * extra, ranks))
    folded = rank not in members
    steps = []
    if extra:
        steps.append((rank - 1, 0, chunks) if folded else None)
    reach = chunks // 2
    while reach:
        if folded:
            steps.append(None)
        else:
            partner = members.index(rank) ^ reach
            first = partner // reach * reach
            steps.append((members[partner], first, first + reach))
        reach //= 2
    return steps
'''
OPEN = (
    "Doubling is the way back, and at the end the folded ranks get the whole sum. How many bytes does the busiest rank send in all with 6 ranks, and how "
    "many in a ring? That is a reason why NCCL has no such algorithm for AllReduce."
)

COUNTS = (6, 4, 3, 2, 5, 8, 12)


def run(function):
    """Run the reader's function for six ranks; returns the result in words, and the figure."""
    ranks = COUNTS[0]
    parts, sent = summed(function, ranks)
    return (
        f"{ranks} ranks, {len(parts[0])} chunks: the busiest rank sends {max(sent)} of them, and every place holds its own complete.",
        drawn(parts),
    )


def check(function):
    """Check the reader's function for all numbers of ranks; a Slip at the first wrong answer."""
    for ranks in COUNTS:
        summed(function, ranks)
    words, seen = run(function)
    return f"Right, for {', '.join([str(each) for each in COUNTS])} ranks. {words}", seen


def power_below(ranks):
    """The largest power of two that is at most ``ranks``."""
    power = 1
    while 2 * power <= ranks:
        power *= 2
    return power


def summed(function, ranks):
    """The parts of each chunk that each rank holds in the end, and the number of chunks that each rank has
    sent; a Slip unless every rank that takes part in the halving has its own chunk complete."""
    chunks = power_below(ranks)
    extra = ranks - chunks
    plans = [plan_of(function, rank, ranks, chunks) for rank in range(ranks)]
    for rank in range(ranks):
        if len(plans[rank]) != len(plans[0]):
            raise Slip(
                f"With {ranks} ranks, rank 0 has {len(plans[0])} steps and rank {rank} has {len(plans[rank])}: every rank needs as many entries, None "
                "where it sends nothing."
            )
    parts = [[[rank] for _ in range(chunks)] for rank in range(ranks)]
    folded = [2 * i + 1 for i in range(extra)]
    for step in range(len(plans[0])):
        require_fold(plans, step, folded, ranks, chunks)
        moved = [(rank, plans[rank][step]) for rank in range(ranks) if plans[rank][step]]
        passed = [
            [list(parts[rank][chunk]) for chunk in range(first, end)] for rank, (_, first, end) in moved
        ]
        for at in range(len(moved)):
            rank, (to, first, end) = moved[at]
            for chunk in range(first, end):
                twice = [part for part in passed[at][chunk - first] if part in parts[to][chunk]]
                if twice:
                    raise Slip(
                        f"With {ranks} ranks, in step {step} rank {rank} sends chunk {chunk} to rank {to}, which has the part of rank {twice[0]} in it "
                        "already: it would be counted twice.",
                        drawn(parts, (to, chunk)),
                    )
                parts[to][chunk] += passed[at][chunk - first]
    sent = [sum([each[2] - each[1] for each in plan if each]) for plan in plans]
    require_complete(parts, sent, folded, ranks)
    return parts, sent


def require_fold(plans, step, folded, ranks, chunks):
    """Raise a Slip unless the ranks beyond the power of two send their whole buffer in the first step, and
    neither send nor receive later."""
    for rank in range(ranks):
        move = plans[rank][step]
        if rank in folded and step == 0 and move != (rank - 1, 0, chunks):
            raise Slip(
                f"With {ranks} ranks, {len(folded)} are too many, so each odd one sends its whole buffer to the even one before it: rank {rank} must "
                f"send {shown((rank - 1, 0, chunks))} in step 0, and has {shown(move)}."
            )
    for rank in range(ranks):
        move = plans[rank][step]
        if move and move[0] in folded:
            raise Slip(
                f"With {ranks} ranks, rank {rank} sends to rank {move[0]} in step {step}, which is folded and has nothing to add it to."
            )
        if move and step and rank in folded:
            raise Slip(
                f"With {ranks} ranks, rank {rank} is folded in step 0, and sends again in step {step}."
            )


def plan_of(function, rank, ranks, chunks):
    """The reader's plan for a rank: what it sends in each step."""
    call = f"{FUNCTION}(rank={rank}, ranks={ranks})"
    plan = []
    for move in rows(function(rank, ranks), call, "a list of (to, first, end) or None", 100):
        if move is None:
            plan.append(None)
            continue
        if not isinstance(move, (list, tuple)) or len(move) != 3 or not all(whole(each) for each in move):
            raise Slip(f"{call}: each entry must be (to, first, end) or None, and {shown(move)} is neither.")
        to, first, end = move
        if not 0 <= to < ranks:
            raise Slip(f"{call} sends to rank {to}; there are ranks 0 to {ranks - 1}.")
        if to == rank:
            raise Slip(f"{call} sends to itself. A partner's place differs in one bit.")
        if not 0 <= first < end <= chunks:
            raise Slip(
                f"{call} has {shown(tuple(move))}; there are {chunks} chunks, 0 to {chunks - 1}, because {chunks} is the largest power of two that is at most {ranks}."
            )
        plan.append((to, first, end))
    return plan


def require_complete(parts, sent, folded, ranks):
    """Raise a Slip unless each rank that takes part has its own chunk complete, and no rank has sent too
    much."""
    members = [rank for rank in range(ranks) if rank not in folded]
    for place in range(len(members)):
        held = len(parts[members[place]][place])
        if held != ranks:
            raise Slip(
                f"With {ranks} ranks, rank {members[place]} has place {place} and has no complete chunk {place} in the end: the parts of {held} of {ranks} ranks "
                "are in it. In each step it sends the half without its own chunk, and keeps the other.",
                drawn(parts, (members[place], place)),
            )
        if sent[members[place]] > len(members) - 1:
            raise Slip(
                f"With {ranks} ranks, rank {members[place]} sends {sent[members[place]]} chunks, more than the {len(members) - 1} that halving needs: a half, a "
                "quarter, an eighth …"
            )
