"""A causal ring: the chunks of the sequence that each rank holds, so that all ranks have equal work in every
step."""

from engine.mechanism.context_parallel import ZIGZAG, block_owner, step_pairs
from engine.puzzles.judging import Slip, box, picture, rows, shown, whole

TITLE = "balance a causal ring"
LESSON = "08-sequence-and-context"
STATEMENT = """
A sequence is cut into `2 * ranks` chunks, and each rank holds two of them. In a ring, keys and values go round: in step `t`, rank `r` works on its own
queries and the keys of rank `(r - t) % ranks`. A token sees only itself and what comes before it, so a chunk's queries have nothing to do with the keys of a later chunk. Every step lasts as long
as its busiest rank. Return the numbers of the two chunks that `rank` holds, so that the ring takes as short as possible.
"""
FUNCTION = "chunks_of"
START = '''def chunks_of(rank, ranks):
    """The two chunks of the sequence that a rank holds."""
    return [2 * rank, 2 * rank + 1]
'''
HINTS = (
    "The first chunks have little to see and the last ones much. The start gives the last rank two of the last ones.",
    "What two chunks see together should be the same for every rank: pair an early one with a late one.",
    "Rank 0 takes the first and the last chunk, rank 1 the second and the last but one, and so on.",
)
SOLUTION = '''def chunks_of(rank, ranks):
    """The two chunks of the sequence that a rank holds."""
    return [rank, 2 * ranks - 1 - rank]
'''
OPEN = (
    "Striped attention deals single tokens out like cards. Is its work as even, and what does it cost a kernel that wants whole blocks? And which placement "
    "would you choose for a window of attention that is one chunk wide?"
)

RINGS = (4, 2, 3, 8, 1, 5)
TOKENS = 4  # in a chunk


def run(function):
    """Run the reader's function for four ranks; returns the result in words, and the figure."""
    ranks = RINGS[0]
    held = all_held(function, ranks)
    took = sum([max(each) for each in work_of(held)])
    return (
        f"{ranks} ranks, chunks of {TOKENS} tokens: the ring takes the time of {took:g} pairs of a query and a key, and {shortest(ranks):g} would be enough.",
        drawn(held),
    )


def check(function):
    """Check the reader's function for all numbers of ranks; a Slip at the first wrong answer."""
    for ranks in RINGS:
        held = all_held(function, ranks)
        work, best = work_of(held), shortest(ranks)
        took = sum([max(each) for each in work])
        if took > best + 1e-9:
            step = [step for step in range(ranks) if max(work[step]) > min(work[step])][0]
            most, least = max(work[step]), min(work[step])
            raise Slip(
                f"With {ranks} ranks, in step {step} the busiest rank, {work[step].index(most)}, has {most:g} pairs to compute and rank {work[step].index(least)} has {least:g}. "
                f"All wait for the busiest rank: the ring takes the time of {took:g} pairs, and {best:g} would be enough.",
                drawn(held),
            )
    words, seen = run(function)
    return f"Right, for rings of {', '.join([str(each) for each in RINGS])} ranks. {words}", seen


def all_held(function, ranks):
    """The reader's chunks for each rank; a Slip unless each chunk is held once."""
    found, holder = [], {}
    for rank in range(ranks):
        call = f"{FUNCTION}(rank={rank}, ranks={ranks})"
        chunks = rows(function(rank, ranks), call, "a list of two chunks", 100)
        for chunk in chunks:
            if not whole(chunk) or not 0 <= chunk < 2 * ranks:
                raise Slip(
                    f"{call} has {shown(chunk)}; each chunk is a whole number, and they are numbered 0 to {2 * ranks - 1}."
                )
        if len(chunks) != 2:
            raise Slip(f"{call} gave {shown(chunks)}; each rank holds two chunks.")
        for chunk in chunks:
            other = holder.setdefault(chunk, rank)
            if other != rank or chunks[0] == chunks[1]:
                raise Slip(
                    f"With {ranks} ranks, chunk {chunk} is held by rank {other} and by rank {rank}; each of the {2 * ranks} chunks is held once."
                )
        found.append(list(chunks))
    return found


def pairs(query, key):
    """The number of pairs of a query of one chunk and a key of another that the causal mask admits."""
    return TOKENS * (TOKENS + 1) // 2 if key == query else TOKENS * TOKENS if key < query else 0


def work_of(held):
    """The number of pairs that a rank computes in a step, by [step][rank]."""
    ranks = len(held)
    return [
        [
            sum(
                [
                    pairs(query, key)
                    for query in held[rank]
                    for key in held[int(block_owner(rank, step, ranks))]
                ]
            )
            for rank in range(ranks)
        ]
        for step in range(ranks)
    ]


def shortest(ranks):
    """The sum over all steps of the busiest rank's pairs, in the engine's zig-zag ring."""
    return sum([float(step_pairs(step, ranks, 2 * TOKENS, ZIGZAG)) for step in range(ranks)])


def drawn(held):
    """The picture of each rank's work, step by step, on an axis of pairs; waiting for other ranks shows as
    idle."""
    work, lines = work_of(held), []
    for rank in range(len(held)):
        boxes, at = [], 0
        for step in range(len(held)):
            lasts, mine = max(work[step]), work[step][rank]
            if mine:
                boxes.append(box(at, at + mine, mine, "compute" if step % 2 else "deep"))
            if mine < lasts:
                boxes.append(box(at + mine, at + lasts, "", "idle"))
            at += lasts
        lines.append((f"rank {rank}: {held[rank][0]}, {held[rank][1]}", boxes))
    key = {"deep": "a step", "compute": "the next one", "idle": "waits for the busiest"}
    return picture(
        lines, key, "The ranks with their chunks, and the pairs that each computes in each step.", "pairs"
    )
