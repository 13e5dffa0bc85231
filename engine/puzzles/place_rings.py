"""Choose which rings of ranks stay inside a node, so that the fewest bytes cross between nodes."""

from engine.mechanism.interconnect import ranks_per_node
from engine.mechanism.placement import leaving
from engine.puzzles.judging import Slip, box, picture, rows, shown

TITLE = "place the rings on the nodes"
LESSON = "03-interconnect"
STATEMENT = """
Every GPU of a job belongs to several rings, one of each kind. `kinds` has, for each kind, the members of a ring and the gigabytes that each
of them sends to the next one in a step: `{"tensor": (8, 40), "data": (4, 3)}`. (The names are ways to divide a model's work, which other lessons
explain; here only sizes and gigabytes count.) GPUs are numbered along the nodes, `per_node` in each. Return
the names of the kinds, innermost first: a ring of the first kind joins neighbours; one of the second, GPUs as far apart as the first kind's ring
is long; and so on outwards. Choose the order in which the **fewest gigabytes cross between nodes**. All sizes are powers of two.
"""
FUNCTION = "innermost_first"
START = '''def innermost_first(kinds, per_node):
    """The names of the kinds of rings, innermost first."""
    return sorted(kinds, key=lambda name: kinds[name][0], reverse=True)
'''
HINTS = (
    "A ring inside a node crosses nowhere. Of a ring with m of its members in each node, one hop in m crosses: each of its GPUs sends its "
    "gigabytes divided by m across, on average.",
    "Go through an order from the inside. With a kind's ring you know how far apart its members are (the product of the sizes before it), so "
    "m is per_node divided by that: at least 1, and at most the size of the ring.",
    "There are few kinds. Write the cost of an order as a function, make all orders (each name first, followed by all orders of the others), "
    "and take the cheapest.",
)
SOLUTION = '''def innermost_first(kinds, per_node):
    """The names of the kinds of rings, innermost first."""
    return min(orders(list(kinds)), key=lambda order: crossing(order, kinds, per_node))


def crossing(order, kinds, per_node):
    """Gigabytes that a GPU sends to other nodes, on average."""
    apart, sum_of_all = 1, 0
    for name in order:
        size, sent = kinds[name]
        together = min(size, max(1, per_node // apart))
        if together < size:
            sum_of_all += sent / together
        apart *= size
    return sum_of_all


def orders(names):
    """All orders of these names."""
    if not names:
        return [[]]
    return [[name] + rest for name in names for rest in orders([each for each in names if each != name])]
'''
OPEN = (
    "With leaf switches above the nodes, some crossings are dearer than others. Which order would you choose if a gigabyte up to the spine "
    "cost four times as much as one between neighbours?"
)

CASES = (  # members and gigabytes of each kind of ring, and GPUs of a node
    ({"data": (4, 3), "tensor": (8, 40)}, 8),
    ({"long": (8, 10), "short": (4, 9)}, 4),
    ({"pair": (2, 10), "eight": (8, 9)}, 8),
    ({"data": (4, 2), "sequence": (2, 6), "tensor": (4, 12)}, 4),
    ({"data": (8, 5), "pair": (2, 4)}, 4),
    ({"a": (2, 5), "b": (2, 12), "c": (4, 6)}, 8),
)


def run(function):
    """Run the reader's function for the first job; returns the result in words, and the figure."""
    kinds, per_node = CASES[0]
    order = order_of(function, kinds, per_node)
    return (
        f"{told(kinds)}, {per_node} GPUs in a node: with {named(order)}, {crossed(order, kinds, per_node):g} GB cross between nodes.",
        drawn(order, kinds, per_node),
    )


def check(function):
    """Check the reader's function for all jobs; a Slip at the first wrong answer."""
    for kinds, per_node in CASES:
        order = order_of(function, kinds, per_node)
        found, best = crossed(order, kinds, per_node), best_order(kinds, per_node)
        fewest = crossed(best, kinds, per_node)
        if found > fewest:
            leaves = [name for name in order if crossed_by(name, order, kinds, per_node)]
            raise Slip(
                f"{told(kinds)}, {per_node} GPUs in a node: with {named(order)} the rings {named(leaves)} leave their nodes, and {found:g} GB cross. "
                f"The fewest are {fewest:g}, with {named(best)}.",
                drawn(order, kinds, per_node),
            )
    words, picture = run(function)
    return f"Right, for {len(CASES)} jobs. {words}", picture


def order_of(function, kinds, per_node):
    """The reader's order of the kinds of rings; a Slip unless it contains each kind once."""
    call = f"{FUNCTION}({shown(kinds)}, {per_node})"
    order = rows(function(dict(kinds), per_node), call, "a list of names, innermost first", 100)
    if not all(isinstance(name, str) for name in order) or sorted(order) != sorted(kinds):
        raise Slip(f"{call} must give each of the names once, and gave {shown(order)}.")
    return order


def crossed(order, kinds, per_node):
    """Gigabytes that all GPUs together send to other nodes."""
    return sum([crossed_by(name, order, kinds, per_node) for name in order])


def crossed_by(name, order, kinds, per_node):
    """Gigabytes that the rings of one kind send to other nodes, by the engine's count."""
    size, sent = kinds[name]
    gpus = 1
    for each in order:
        gpus *= kinds[each][0]
    return gpus * leaving(sent, size, ranks_per_node(size, stride(name, order, kinds), per_node))


def stride(name, order, kinds):
    """How far apart the members of a ring of this kind are."""
    apart = 1
    for each in order[: order.index(name)]:
        apart *= kinds[each][0]
    return apart


def drawn(order, kinds, per_node):
    """The picture of GPU 0's ring of each kind: its members in the row of all GPUs, marked where the ring
    leaves a node."""
    gpus, lines = 1, []
    for name in order:
        gpus *= kinds[name][0]
    for name in order:
        size, apart, boxes = kinds[name][0], stride(name, order, kinds), []
        for place in range(size):
            gpu = place * apart
            following = gpu + ((place + 1) % size - place) * apart
            leaves = gpu // per_node != following // per_node
            boxes.append(box(gpu, gpu + 1, "→" if leaves else "", "network" if leaves else "link"))
        lines.append((name, boxes))
    nodes = [
        box(first, min(first + per_node, gpus), f"node {first // per_node}", "plain")
        for first in range(0, gpus, per_node)
    ]
    return picture(
        [("nodes", nodes)] + lines,
        {"link": "a member whose next one is in its node", "network": "→ a member whose next one is not"},
        "The ring of each kind that GPU 0 is in, innermost first, on the row of all GPUs.",
    )


def best_order(kinds, per_node):
    """The order in which the fewest gigabytes cross."""
    return min(all_orders(list(kinds)), key=lambda order: crossed(order, kinds, per_node))


def all_orders(names):
    """Every order of these names."""
    if not names:
        return [[]]
    return [[name, *rest] for name in names for rest in all_orders([each for each in names if each != name])]


def told(kinds):
    """The kinds of rings in words."""
    return ", ".join([f"“{name}” of {kinds[name][0]} with {kinds[name][1]} GB" for name in kinds])


def named(names):
    """Some names in words."""
    return ", ".join([f"“{name}”" for name in names])
