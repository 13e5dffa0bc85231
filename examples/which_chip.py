"""Which chip for this model? One choice drives the roofline, the planner beside it and the KV cache."""

import panel as pn

from widgets.composition.layout_planner import LayoutPlanner
from widgets.foundations.roofline import Roofline
from widgets.serving.kv_cache import KvCache

roofline, planner, cache = Roofline(), LayoutPlanner(), KvCache()


def follow(event) -> None:
    """The chip chosen in the roofline is the chip of the others, where they know it."""
    for figure in (planner, cache):
        if event.new in figure.param.gpu.objects:
            figure.gpu = event.new


roofline.param.watch(follow, "gpu")

pn.Column(
    "# Which chip for this model?",
    "The GPU chosen in the first figure is that of the others, too.",
    roofline,
    pn.Tabs(("Training: the best layouts", planner), ("Serving: the cache", cache)),
    sizing_mode="stretch_width",
).servable(title="Which chip?")
