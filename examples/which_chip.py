"""Which chip for this model? One choice drives the roofline, the training state and the KV cache."""

import panel as pn

from widgets.foundations.memory_stack import MemoryStack
from widgets.foundations.roofline import Roofline
from widgets.serving.kv_cache import KvCache

roofline, stack, cache = Roofline(), MemoryStack(), KvCache()


def follow(event) -> None:
    """The chip chosen in the roofline is the chip of the others, where they know it."""
    for figure in (stack, cache):
        if event.new in figure.param.gpu.objects:
            figure.gpu = event.new


roofline.param.watch(follow, "gpu")

pn.Column(
    "# Which chip for this model?",
    "The GPU chosen in the first figure is that of the others, too.",
    pn.Tabs(("What limits it", roofline), ("Training", stack), ("Serving", cache)),
    sizing_mode="stretch_width",
).servable(title="Which chip?")
