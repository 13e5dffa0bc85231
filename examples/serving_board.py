"""What a deployment answers: the time of a token, and the frontier of speed against throughput."""

import panel as pn

from widgets.serving.decode_latency import DecodeLatency
from widgets.serving.serving_frontier import ServingFrontier

token, frontier = DecodeLatency(), ServingFrontier()


def follow(event) -> None:
    """A model that both figures know is shown by both."""
    if event.new in frontier.param.model.objects:
        frontier.model = event.new


token.param.watch(follow, "model")

pn.Column("# What does a deployment answer?", token, frontier, sizing_mode="stretch_width").servable(
    title="What does a deployment answer?"
)
