"""A cache of compiled graphs, executed call by call: which graph's guards hold, and what is compiled if none
do.

``compilation`` counts graphs in closed form. This module runs torch.compile's automatic rule on any calls;
tests compare it with those counts, and with a recording of a real Dynamo (recordings/graph_breaks.json).
"""

from __future__ import annotations

SMALLEST_OPEN = 2  # sizes 0 and 1 always get a graph of their own


def holds(graph: tuple[str, int | None], call: tuple[str, int]) -> bool:
    """Whether a graph's guards hold for a call: its dtype, and its size or, with None, any size above 1."""
    return graph == call or (graph == (call[0], None) and call[1] >= SMALLEST_OPEN)


def call_graph(
    call: tuple[str, int], graphs: list[tuple[str, int | None]], compiled: list[int], limit: int
) -> tuple[int | None, int, bool, int | None]:
    """Run a call of (dtype, size). Returns (the number of the graph that runs, None if the call runs eagerly;
    how many graphs' guards held; whether a graph was compiled; if the new graph takes any size, another size
    that was compiled before, which is the reason). ``graphs`` are the guards of all graphs so far, and
    ``compiled`` the sizes of the calls for which they were compiled; a graph that is compiled now is added to
    both.

    The newest graph whose guards hold runs. A new graph takes its own size alone as long as all compiled
    calls had this very size; later ones take any size. Beyond ``limit`` graphs a call runs eagerly.
    """
    dtype, size = call
    holding = [number for number in range(len(graphs)) if holds(graphs[number], call)]
    if holding:
        return (holding[-1], len(holding), False, None)
    if len(graphs) >= limit:
        return (None, 0, False, None)
    others = [each for each in compiled if each != size]
    opened = len(others) > 0 and size >= SMALLEST_OPEN
    graphs.append((dtype, None if opened else size))
    compiled.append(size)
    return (len(graphs) - 1, 0, True, others[0] if opened else None)
