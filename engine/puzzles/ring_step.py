"""One step of a ring: the chunk that a rank passes on, so that every sum is complete after n − 1 steps."""

from engine.puzzles.judging import Slip, box, picture, shown, something, whole

TITLE = "one step of a ring"
LESSON = "02-collectives"
STATEMENT = """
`ranks` ranks stand in a ring, each with a buffer of as many chunks as there are ranks. In each step every rank sends one chunk, as
it is by now, to the next rank, which adds it to its own. Return the number of the chunk that `rank` sends in `step`; steps are
counted from 0, and there are `ranks - 1` of them. Afterwards each rank must hold one chunk that is complete: the sum of everybody's.
"""
FUNCTION = "chunk_to_send"
START = '''def chunk_to_send(rank, ranks, step):
    """The chunk that a rank passes to the next one in this step."""
    return rank
'''
HINTS = (
    "A chunk that you have just received has grown by your own part. That is the one that is worth passing on.",
    "In each step a rank receives the chunk that the rank before it sends. So what it sends in the next step is one less.",
    "Start anywhere, with your own number say, and go down by one in each step, around the ring: the remainder by ranks.",
)
SOLUTION = '''def chunk_to_send(rank, ranks, step):
    """The chunk that a rank passes to the next one in this step."""
    return (rank - step) % ranks
'''
OPEN = (
    "This was the first half of an AllReduce. In the second half, AllGather, complete chunks go round. Which chunk does a rank send "
    "first then, and which ones after it?"
)

SIZES = (4, 2, 3, 5, 8)


def run(function):
    """Run the reader's function for four ranks; returns the result in words, and the figure."""
    ranks = SIZES[0]
    parts = reduced(function, ranks)
    owners = complete(parts, ranks)
    held = ", ".join([f"rank {rank} chunk {owners[rank]}" for rank in range(ranks)])
    return f"{ranks} ranks, {ranks - 1} steps: complete are {held}.", drawn(parts)


def check(function):
    """Check the reader's function for all numbers of ranks; a Slip at the first wrong answer."""
    for ranks in SIZES:
        reduced(function, ranks)
    words, picture = run(function)
    return f"Right, for rings of {', '.join([str(each) for each in SIZES])} ranks. {words}", picture


def reduced(function, ranks):
    """For each rank and chunk, the list of the ranks whose parts are in that rank's sum in the end."""
    parts = [[[rank] for _ in range(ranks)] for rank in range(ranks)]
    sent, came = {}, []
    for step in range(ranks - 1):
        chunks = [chunk_of(function, rank, ranks, step) for rank in range(ranks)]
        passed = [list(parts[rank][chunks[rank]]) for rank in range(ranks)]
        for rank in range(ranks):
            following, chunk = (rank + 1) % ranks, chunks[rank]
            before = sent.setdefault((rank, chunk), step)
            twice = [part for part in passed[rank] if part in parts[following][chunk]]
            if before != step and twice:
                raise Slip(
                    f"With {ranks} ranks, rank {rank} sends chunk {chunk} to rank {following} in step {before} and again in step {step}: "
                    f"the part of rank {twice[0]} would be counted twice.{better(came, rank, step)}",
                    drawn(parts, (following, chunk)),
                )
            if twice:
                raise Slip(
                    f"With {ranks} ranks, in step {step} rank {rank} sends chunk {chunk} to rank {following}, which has the part of rank "
                    f"{twice[0]} in it already: it would be counted twice.{better(came, rank, step)}",
                    drawn(parts, (following, chunk)),
                )
        for rank in range(ranks):
            parts[(rank + 1) % ranks][chunks[rank]] += passed[rank]
        came = [chunks[rank - 1] for rank in range(ranks)]
    complete(parts, ranks)
    return parts


def better(came, rank, step):
    """The words for what a rank should have passed on: the chunk that it received in the step before."""
    return (
        f" In step {step - 1} it received chunk {came[rank]}, which has grown: pass that on." if came else ""
    )


def drawn(parts, at=()):
    """The picture of each rank's chunks, with the number of ranks whose parts are in them; the rank and
    chunk ``at`` which a sum goes wrong are marked."""
    lines, count, chunks = [], len(parts), len(parts[0])
    for r in range(count):
        boxes = []
        for c in range(chunks):
            held, wrong = len(parts[r][c]), at == (r, c)
            look = "wrong" if wrong else "compute" if held == count else "link" if held > 1 else "plain"
            boxes.append(box(c, c + 1, f"✗ {held}" if wrong else held, look))
        lines.append((f"rank {r}", boxes))
    key = {"compute": "complete", "link": "a part of the sum", "plain": "only its own"}
    if at:
        key["wrong"] = "✗ where a part would be counted twice"
    return picture(lines, key, f"The {chunks} chunks of each rank, and how many ranks' parts are in each.")


def chunk_of(function, rank, ranks, step):
    """The chunk that the reader's function has a rank send."""
    call = f"{FUNCTION}(rank={rank}, ranks={ranks}, step={step})"
    chunk = function(rank, ranks, step)
    something(chunk, call)
    if not whole(chunk):
        raise Slip(f"{call} must give the number of a chunk, a whole number, and gave {shown(chunk)}.")
    if chunk >= ranks:
        raise Slip(
            f"{call} gave {chunk}, but the chunks are numbered 0 to {ranks - 1}: there are as many as ranks, counted from 0."
        )
    if chunk < 0:
        raise Slip(
            f"{call} gave {chunk}, but the chunks are numbered 0 to {ranks - 1}. A ring goes round: what comes before 0?"
        )
    return chunk


def complete(parts, ranks):
    """For each rank the chunk that contains all ranks' parts; a Slip if a rank has no such chunk."""
    owners = []
    for rank in range(ranks):
        full = [chunk for chunk in range(ranks) if len(parts[rank][chunk]) == ranks]
        if not full:
            most = max([len(parts[rank][chunk]) for chunk in range(ranks)])
            raise Slip(
                f"With {ranks} ranks, rank {rank} ends up with no complete chunk: the fullest has the parts of {most} of {ranks} ranks. "
                "Pass on what you have just received.",
                drawn(parts),
            )
        owners.append(full[0])
    return owners
