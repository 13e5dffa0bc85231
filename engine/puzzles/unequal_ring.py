"""Lay a ring through wires of unlike rates, so that its slowest wire is as fast as it can be."""

from engine.puzzles.judging import Slip, box, picture, rows, shown, whole

TITLE = "a ring through unequal wires"
LESSON = "02-collectives"
STATEMENT = """
The wires between your ranks are not alike: `rates[a][b]` is what rank `a` can send to rank `b`, in GB/s, and it is the same in both directions. A
ring visits every rank once and returns to the first. All its wires carry the same bytes, so **its slowest wire sets the time**. Return the
ranks in the order of a ring, beginning with rank 0, whose slowest wire is as fast as possible. If several rings are equally good, any of them is right.
There are at most seven ranks.
"""
FUNCTION = "ring_order"
START = '''def ring_order(rates):
    """The ranks in the order of the best ring, from rank 0 on."""
    return list(range(len(rates)))
'''
HINTS = (
    "It does not help to go on over the fastest wire each time: in the end you may have to return over a slow one. Do not forget that last wire when you compare.",
    "Write a function that gives the slowest wire of an order. The wires of an order join each rank to the next one, and the last rank to rank 0.",
    "Seven ranks have only 720 rings. Build all of them: from a beginning, go on to each rank that is not in it yet, and from there on in the same way.",
)
SOLUTION = '''def ring_order(rates):
    """The ranks in the order of the best ring, from rank 0 on."""
    return max(rings([0], len(rates)), key=lambda order: slowest(order, rates))


def slowest(order, rates):
    """The rate of the slowest wire of a ring."""
    return min([rates[a][b] for a, b in zip(order, order[1:] + order[:1])])


def rings(begun, count):
    """All rings that begin like this."""
    if len(begun) == count:
        return [begun]
    return [each for rank in range(count) if rank not in begun for each in rings(begun + [rank], count)]
'''
OPEN = (
    "With many ranks you cannot build all rings. But you can ask, for one rate, whether a ring exists that uses only wires of at least that rate. How would you "
    "search for one, and which rates do you have to ask about?"
)

JOBS = (  # ranks, the rate of most wires, and the pairs with another one
    (5, 50, {(1, 2): 25, (2, 3): 25, (0, 4): 25}),
    (4, 50, {(0, 1): 10, (1, 2): 100, (2, 3): 100, (0, 3): 100}),
    (6, 25, {(a, b): 100 for a in range(3) for b in range(3, 6)}),
    (3, 50, {(0, 2): 25}),
    (2, 50, {}),
    (
        7,
        20,
        {
            (0, 4): 80,
            (1, 4): 80,
            (1, 5): 80,
            (2, 5): 80,
            (2, 6): 80,
            (3, 6): 80,
            (0, 3): 80,
            (0, 1): 100,
            (2, 3): 100,
        },
    ),
)


def run(function):
    """Run the reader's function for five ranks; returns the result in words, and the figure."""
    rates = wired(*JOBS[0])
    order = order_of(function, rates)
    return (
        f"{len(rates)} ranks: the slowest wire of the ring {ring_in_words(order)} has {slowest_of(order, rates)} GB/s.",
        drawn(order, rates),
    )


def check(function):
    """Check the reader's function for all jobs; a Slip at the first ring that could be faster."""
    for job in JOBS:
        rates = wired(*job)
        order = order_of(function, rates)
        found, best = slowest_of(order, rates), fastest_of(rates)
        if found < best:
            a, b = slow_pair(order, rates)
            raise Slip(
                f"{len(rates)} ranks: your ring {ring_in_words(order)} goes over the wire between {a} and {b}, which has {found} GB/s. There is a ring whose slowest wire has {best}.",
                drawn(order, rates),
            )
    words, seen = run(function)
    return f"Right, for {len(JOBS)} machines. {words}", seen


def wired(ranks, usual, others):
    """The table of rates; a rank has no wire to itself."""
    return [
        [0 if a == b else others.get((min(a, b), max(a, b)), usual) for b in range(ranks)]
        for a in range(ranks)
    ]


def order_of(function, rates):
    """The reader's ring; a Slip unless it begins with rank 0 and has each rank once."""
    call = f"{FUNCTION}({shown(rates)})"
    order = rows(function([list(row) for row in rates]), call, "a list of ranks", 100)
    if not all(whole(rank) for rank in order) or sorted(order) != list(range(len(rates))):
        raise Slip(f"{call} must give each of the ranks 0 to {len(rates) - 1} once, and gave {shown(order)}.")
    if order[0] != 0:
        raise Slip(f"{call} must begin with rank 0, and gave {shown(order)}.")
    return order


def pairs(order):
    """The wires of a ring."""
    return [(order[at], order[(at + 1) % len(order)]) for at in range(len(order))]


def slow_pair(order, rates):
    """The slowest wire of a ring."""
    return min(pairs(order), key=lambda pair: rates[pair[0]][pair[1]])


def slowest_of(order, rates):
    """Its rate."""
    a, b = slow_pair(order, rates)
    return rates[a][b]


def fastest_of(rates):
    """The largest rate for which there is a ring of wires with at least this rate."""
    for rate in sorted({each for row in rates for each in row}, reverse=True):
        if closes([0], rates, rate):
            return rate
    return 0


def closes(begun, rates, rate):
    """Whether a ring can begin like this and use only wires of at least this rate."""
    last = begun[-1]
    if len(begun) == len(rates):
        return rates[last][begun[0]] >= rate
    return any(
        closes([*begun, rank], rates, rate)
        for rank in range(len(rates))
        if rank not in begun and rates[last][rank] >= rate
    )


def ring_in_words(order):
    """A ring in words."""
    return "–".join([str(rank) for rank in [*order, order[0]]])


def drawn(order, rates):
    """The picture of a ring: a line for each of its wires, as long as its rate, the slowest marked."""
    slow = slow_pair(order, rates)
    lines = [
        (f"{a} to {b}", [box(0, rates[a][b], f"{rates[a][b]} GB/s", "network" if (a, b) == slow else "link")])
        for a, b in pairs(order)
    ]
    return picture(
        lines,
        {"link": "a wire of the ring", "network": "its slowest wire, which sets the time"},
        "The wires of the ring in order, each as long as its rate.",
        "GB/s",
    )
