"""A pipeline's timeline beside the map of its bubbles; both are moved by one pair of sliders."""

import panel as pn

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


pn.Column(
    "# A pipeline on the bench",
    timeline,
    bubbles,
    pn.Card(pn.bind(table, timeline.live.param.changes), title="Its blocks, in numbers", collapsed=True),
    sizing_mode="stretch_width",
).servable(title="A pipeline on the bench")
