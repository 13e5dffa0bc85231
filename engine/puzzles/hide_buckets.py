"""Group gradients into buckets, so that the wait after the backward pass is as short as possible."""

from engine.executed.data_parallel import behind
from engine.puzzles.judging import Slip, rows, shown, whole

TITLE = "hide the AllReduce"
LESSON = "04-data-parallel"
STATEMENT = """
The backward pass finishes one gradient after the other: `ready[i]` is when, in ms, and `sizes[i]` how large it is, in MB. Put them into
buckets in this order. The AllReduce of a bucket starts when its last gradient is ready and the wire is free, and takes `start_up` ms plus
`per_mb` ms for each MB. Return how many gradients each bucket holds, such as `[3, 2, 1]`, so that the last AllReduce ends as early as possible.
"""
FUNCTION = "buckets"
START = '''def buckets(ready, sizes, start_up, per_mb):
    """How many gradients go into each bucket, in order."""
    return [1] * len(sizes)
'''
HINTS = (
    "Many buckets pay many start-ups, and few let the wire wait. What counts at the end is only when the last one is through.",
    "Suppose the last bucket begins with gradient i. It starts when the backward pass is over or when all that comes before i is through, "
    "whichever is later. So what comes before should be through as early as possible: the same question, with fewer gradients.",
    "Keep ends[j], the earliest time at which the first j gradients can be through: the least over i < j of max(ends[i], ready[j - 1]) + start_up "
    "+ per_mb * sum(sizes[i:j]). Remember each i to walk back.",
)
SOLUTION = '''def buckets(ready, sizes, start_up, per_mb):
    """How many gradients go into each bucket, in order."""
    ends, begins = [0], [0]
    for j in range(1, len(sizes) + 1):
        options = []
        for i in range(j):
            start = max(ends[i], ready[j - 1])
            options.append((start + start_up + per_mb * sum(sizes[i:j]), i))
        end, i = min(options)
        ends.append(end)
        begins.append(i)
    counts, j = [], len(sizes)
    while j > 0:
        counts.append(j - begins[j])
        j = begins[j]
    return counts[::-1]
'''
OPEN = (
    "DDP knows none of these times. It fills buckets up to one cap, with a smaller one for the first. Print what your buckets hold: how far "
    "does one cap get you, and why should the last bucket be small?"
)

CASES = (  # when each gradient is ready, its megabytes, a start-up, and the time of a megabyte
    ((2, 4, 6, 8, 10, 12, 14, 16), (10, 10, 10, 10, 10, 10, 10, 10), 1.0, 0.125),
    ((2, 4, 6, 8, 10, 12), (10, 10, 10, 10, 10, 40), 0.5, 0.25),
    ((1, 2, 3, 4, 5, 6, 7, 8, 9), (4, 4, 4, 4, 4, 4, 4, 4, 4), 3.0, 0.125),
    ((5, 6, 7, 8, 20, 21), (16, 8, 8, 8, 8, 32), 2.0, 0.25),
    ((3,), (8,), 1.0, 0.5),
    ((1, 3, 4, 8, 9, 10, 14), (40, 2, 2, 16, 2, 2, 6), 1.5, 0.125),
)


def run(function):
    """Run the reader's function for the first pass; returns the result in words, and the figure."""
    ready, sizes, start_up, per_mb = CASES[0]
    counts = counts_of(function, CASES[0])
    _, end = sent(counts, CASES[0])
    return (
        f"Gradients of {sizes[0]} MB every {ready[0]} ms, start-up {start_up:g} ms, {per_mb:g} ms for a MB: with buckets of {shown(counts)} the last "
        f"AllReduce ends at {end[-1]:g} ms, {end[-1] - ready[-1]:g} ms after the backward pass.",
        drawn(counts, CASES[0]),
    )


def check(function):
    """Check the reader's function for all passes; a Slip at the first wrong answer."""
    for case in CASES:
        require_earliest(counts_of(function, case), case)
    words, picture = run(function)
    return f"Right, for {len(CASES)} backward passes. {words}", picture


def counts_of(function, case):
    """The number of gradients in each of the reader's buckets; a Slip unless all gradients are in one."""
    ready, sizes, start_up, per_mb = case
    call = f"{FUNCTION}(ready, sizes={list(sizes)}, …)"
    counts = rows(function(list(ready), list(sizes), start_up, per_mb), call, "a list of counts", 1000)
    for each in counts:
        if not whole(each) or each < 1:
            raise Slip(
                f"{call} has {shown(each)}; each entry is how many gradients a bucket holds, a whole number and at least 1."
            )
    if sum(counts) != len(sizes):
        raise Slip(
            f"{call} gave {shown(counts)}, which puts {sum(counts)} gradients into buckets; there are {len(sizes)}."
        )
    return counts


def sent(counts, case):
    """The times at which each bucket's AllReduce starts and ends, by the engine's step of two streams."""
    ready, sizes, start_up, per_mb = case
    lasts, ends, last = [0.0], [], -1  # the forward pass takes no time here
    for i in range(len(ready)):
        lasts.append(ready[i] - (ready[i - 1] if i else 0))
    for count in counts:
        last += count
        ends.append(last)
    _, _, start, end = behind(lasts, sizes, ends, start_up, per_mb)
    return start[len(lasts) :], end[len(lasts) :]


def earliest(case):
    """The earliest time at which all gradients can have been sent."""
    ready, sizes, start_up, per_mb = case
    ends = [0]
    for j in range(1, len(sizes) + 1):
        options = [max(ends[i], ready[j - 1]) + start_up + per_mb * sum(sizes[i:j]) for i in range(j)]
        ends.append(min(options))
    return ends[-1]


def require_earliest(counts, case):
    """Raise a Slip if the last AllReduce could end earlier; it says where the wire loses time."""
    ready, sizes, start_up, per_mb = case
    start, end = sent(counts, case)
    best = earliest(case)
    if end[-1] > best + 1e-9:
        idle = sum([start[i] - end[i - 1] for i in range(1, len(start))])
        raise Slip(
            f"Gradients of {list(sizes)} MB are ready at {list(ready)} ms: with buckets of {shown(counts)} the last AllReduce ends at {end[-1]:g} ms, and all "
            f"could be through at {best:g}. The wire idles {start[0]:g} ms before its first AllReduce and {idle:g} ms later on, and takes "
            f"{start_up * len(counts):g} ms for start-ups.",
            drawn(counts, case),
        )


def drawn(counts, case):
    """The state of the figure ``ddp_overlap``, as data_parallel.own_step reads it."""
    ready, sizes, start_up, per_mb = case
    return {
        "set": {},
        "give": {"own": [1, len(sizes), start_up, per_mb] + list(ready) + list(sizes) + list(counts)},
    }
