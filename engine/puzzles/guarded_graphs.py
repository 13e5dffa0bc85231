"""A cache of compiled graphs, each behind its guards: which graph runs which call."""

from engine.one_gpu.guards import SMALLEST_OPEN, call_graph
from engine.puzzles.judging import Slip, box, one_for_each, picture, shown, whole

TITLE = "guards, and a cache of graphs"
LESSON = "18-torch-compile"
STATEMENT = """
A function is called with tensors; `calls` lists the `(dtype, size)` of each. Return for each call the number of the graph that runs it: graphs
are numbered from 0 in the order in which they are compiled, and `None` is a call that runs eagerly. A graph has two guards: one dtype, and
either one size or any size above 1. Of the graphs whose guards hold, the **newest** runs. If none holds, compile one
for this dtype. It takes this size alone if all graphs so far were compiled for calls of this very size; else it is open to any size above 1.
Sizes 0 and 1 always get a graph of their own. After `limit` graphs nothing is compiled any more.
"""
FUNCTION = "graphs_that_run"
START = '''def graphs_that_run(calls, limit):
    """For each call the number of the graph that runs it, or None."""
    graphs = []  # (dtype, size) of each
    ran = []
    for dtype, size in calls:
        if (dtype, size) not in graphs:
            graphs.append((dtype, size))
        ran.append(graphs.index((dtype, size)))
    return ran
'''
HINTS = (
    "Write down a graph's guards as (dtype, size), with None for any size. When do they hold for a call?",
    "Keep the sizes of the calls that were compiled, too. A new graph is open if one of these is another than this call's size, and this size "
    "is above 1.",
    "For each call go through the numbers of the graphs from the last to the first, and stop at the first whose guards hold. Only if there is none, "
    "and there are fewer than limit graphs, compile.",
)
SOLUTION = '''def graphs_that_run(calls, limit):
    """For each call the number of the graph that runs it, or None."""
    graphs = []  # (dtype, size) of each, with None for any size above 1
    compiled = []  # the size of the call that each was compiled for
    ran = []
    for dtype, size in calls:
        found = None
        for number in range(len(graphs)):
            if graphs[number] == (dtype, size) or (graphs[number] == (dtype, None) and size > 1):
                found = number
        if found is None and len(graphs) < limit:
            differs = any([each != size for each in compiled])
            graphs.append((dtype, None if differs and size > 1 else size))
            compiled.append(size)
            found = len(graphs) - 1
        ran.append(found)
    return ran
'''
OPEN = (
    "Each check of a guard takes time, in every call. With eight graphs in the cache, how many guards does a call try at most, and how many if "
    "the graph that ran last were tried first?"
)

CASES = (  # limit, and the calls: f and h are dtypes
    (8, "f4 f4 f4"),
    (8, "f100 f37 f61 f100 f37"),
    (8, "f64 h64 f64 h64"),
    (8, "f16 f1 f8 f1 f0 f9 f16"),
    (8, "f32 h64 h16 f32 f8 h2"),
    (2, "f0 f1 f5 f1 f0 h5"),
    (1, "f7 f8 f7"),
    (3, "f1 f6 h6 h9 f2 h1 f1 f0"),
)
DTYPES = {"f": "float32", "h": "float16"}


def run(function):
    """Run the reader's function for the second row of calls; returns the result in words, and the figure."""
    limit, text = CASES[1]
    calls = parsed(text)
    ran = ran_of(function, calls, limit)
    said = ", ".join([f"{calls[at][1]} by {named(ran[at])}" for at in range(len(calls))])
    return f"Calls of {calls[0][0]}, by size: {said}.", drawn(ran, calls)


def check(function):
    """Check the reader's function for all rows of calls; a Slip at the first wrong answer."""
    for limit, text in CASES:
        calls = parsed(text)
        compare(ran_of(function, calls, limit), calls, limit)
    words, picture = run(function)
    return f"Right, for {len(CASES)} rows of calls. {words}", picture


def parsed(text):
    """(dtype, size) of each word."""
    return [(DTYPES[word[0]], int(word[1:])) for word in text.split()]


def named(number):
    """A graph in words."""
    return "no graph" if number is None else f"graph {number}"


def ran_of(function, calls, limit):
    """The reader's answers, one for each call."""
    call = f"{FUNCTION}({shown(calls)}, {limit})"
    given = one_for_each(
        function(list(calls), limit), call, "a list with an entry for each call", len(calls), "calls"
    )
    for each in given:
        if each is not None and not whole(each):
            raise Slip(f"Each entry must be the number of a graph, or None; {shown(each)} is neither.")
    return given


def compare(given, calls, limit):
    """Raise a Slip at the first call that another graph must run."""
    graphs, compiled = [], []
    for at in range(len(calls)):
        before = list(graphs)
        wanted, why = ran_by(calls[at], graphs, compiled, limit)
        if given[at] != wanted:
            here = ", ".join([f"{n} for {guards(before[n])}" for n in range(len(before))]) or "none yet"
            raise Slip(
                f"At call {at} of {', '.join([f'{dtype} {size}' for dtype, size in calls])}: {named(wanted)} must run, and you gave {named(given[at])}. "
                f"Graphs: {here}. {why}",
                drawn(given, calls, at),
            )


def ran_by(call, graphs, compiled, limit):
    """The number of the graph that runs a call by the engine's rule, and the reason in words."""
    others = [graph for graph in graphs if graph[0] != call[0]]
    also = " There is a guard on the dtype." if others and len(others) == len(graphs) else ""
    number, held, new, differs = call_graph(call, graphs, compiled, limit)
    if held:
        return number, f"Its guards hold{', and the newest runs' if held > 1 else ''}: nothing is compiled."
    if not new:
        return None, f"No more than {limit} may be compiled, and no graph's guards hold."
    why = "for this size alone"
    if differs is not None:
        why = f"size {differs} came before, so the size is left open"
    elif call[1] < SMALLEST_OPEN:
        why = "sizes 0 and 1 get a graph of their own"
    return number, f"No guards hold, and a graph can still be compiled: {why}.{also}"


def drawn(given, calls, wrong=None):
    """The picture of the calls from left to right, with a row for each graph that shows the calls it runs."""
    lines = [
        ("calls", [box(at, at + 1, f"{calls[at][0][0]}{calls[at][1]}", "plain") for at in range(len(calls))])
    ]
    for graph in sorted({each for each in given if each is not None}):
        here = [at for at in range(len(given)) if given[at] == graph]
        lines.append(
            (
                f"graph {graph}",
                [
                    box(at, at + 1, "✗" if at == wrong else "", "wrong" if at == wrong else "compute")
                    for at in here
                ],
            )
        )
    eager = [at for at in range(len(given)) if given[at] is None]
    if eager:
        lines.append(
            (
                "eager",
                [
                    box(at, at + 1, "✗" if at == wrong else "", "wrong" if at == wrong else "idle")
                    for at in eager
                ],
            )
        )
    return picture(
        lines,
        {"wrong": "✗ another one must run it"} if wrong is not None else {},
        "The graph that runs each call.",
    )


def guards(graph):
    """A graph's guards in words."""
    return f"{graph[0]} {'of any size above 1' if graph[1] is None else graph[1]}"
