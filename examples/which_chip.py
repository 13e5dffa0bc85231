"""Which chip for this model? One choice drives the roofline, the planner beside it and the KV cache.

Deploy it: ``panel serve which_chip.py --port 5007 --warm``, which imports the engine before the first visitor
comes. The planner takes some 50 ms of one core for a move, so ``--num-procs`` is for how many drag at once.
"""

from widgets.composition.layout_planner import LayoutPlanner
from widgets.foundations.roofline import Roofline
from widgets.kit.board import board
from widgets.serving.kv_cache import KvCache

roofline, planner, cache = Roofline(), LayoutPlanner(), KvCache()


def follow(event) -> None:
    """The chip chosen in the roofline is the chip of the others, where they know it."""
    for figure in (planner, cache):
        if event.new in figure.param.gpu.objects:
            figure.gpu = event.new


roofline.param.watch(follow, "gpu")

board(
    "Which chip for this model?",
    "The GPU that you choose in the first figure is that of the others, too.",
    [(roofline, "decode"), (roofline, "training"), (planner, "step"), (planner, "mfu"), (cache, "user")],
    ("The roofline", roofline),
    ("Training: the best layouts", planner),
    ("Serving: the cache", cache),
).servable()
