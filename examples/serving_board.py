"""What a deployment answers: the time of a token, and the frontier of speed against throughput.

Deploy it: ``panel serve serving_board.py --port 5007``, where the wheel is installed with its extra
``widgets``. It asks no database and no other host, so a machine without a way out can serve it.
"""

from widgets.kit.board import board
from widgets.serving.decode_latency import DecodeLatency
from widgets.serving.serving_frontier import ServingFrontier

token, frontier = DecodeLatency(), ServingFrontier()


def follow(event) -> None:
    """A model that both figures know is shown by both."""
    if event.new in frontier.param.model.objects:
        frontier.model = event.new


token.param.watch(follow, "model")

board(
    "What does a deployment answer?",
    "What a user waits for, what the owner gets out of a GPU, and the price of it. The model of the first "
    "figure is that of the second.",
    [(token, "time"), (token, "speed"), (frontier, "users"), (frontier, "total"), (frontier, "cost")],
    ("One token", token),
    ("Speed against throughput", frontier),
).servable()
