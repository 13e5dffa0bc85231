"""A pipeline's timeline beside the map of its bubbles; both are moved by one pair of sliders.

Deploy it: ``panel serve pipeline_bench.py --port 5007``. Each move computes the schedule anew, which takes
some milliseconds of one core, so ``--num-procs 2`` is enough for a class of thirty.
"""

import panel as pn

from widgets.kit.board import board
from widgets.training.bubble_map import BubbleMap
from widgets.training.pipeline_timeline import PipelineTimeline

timeline, bubbles = PipelineTimeline(), BubbleMap()


def follow(*events) -> None:
    """What changes at once, as with a preset, is set at once."""
    bubbles.param.update(**{event.name: event.new for event in events})


timeline.param.watch(follow, ["stages", "micro_batches"])
timeline.param.trigger("stages", "micro_batches")  # from the start


def table(_changes: int) -> pn.viewable.Viewable:
    """The first blocks of the schedule, as numbers."""
    return pn.pane.DataFrame(timeline.live.frame("blocks").head(12), index=False)


board(
    "A pipeline on the bench",
    "One pair of sliders moves both figures: the stages and the micro-batches of the timeline are those of "
    "the map.",
    [(timeline, "bubble"), (timeline, "step"), (timeline, "held"), (bubbles, "needed")],
    ("The timeline", timeline),
    ("The map of bubbles", bubbles),
    (
        "The first blocks, in numbers",
        pn.Column(pn.bind(table, timeline.live.param.changes), scroll=True, sizing_mode="stretch_width"),
    ),
).servable()
