"""A team's board: how long a run takes, what it costs and what failures eat of it.

Deploy it: ``panel serve capacity_board.py --address 127.0.0.1 --port 5007`` behind your own sign-in, and
``--allow-websocket-origin board.example.org`` with the name under which it is reached. It keeps nothing, so
it may be restarted at any time.
"""

from widgets.composition.budget_guard import BudgetGuard
from widgets.composition.goodput import Goodput
from widgets.foundations.training_step import TrainingStep
from widgets.kit.board import board

step, bill, kept = TrainingStep(gpus=512), BudgetGuard(), Goodput()


def follow(event) -> None:
    """The GPUs of the run are those of the bill and of the failures, as far as their controls go."""
    for figure in (bill, kept):
        figure.gpus = figure.param.gpus.crop_to_bounds(event.new)


step.param.watch(follow, "gpus")
step.param.trigger("gpus")  # from the start

board(
    "What the run takes",
    "A training run from its step to its bill. The number of GPUs that you choose for the step is that of "
    "the bill and of the failures, too.",
    [(step, "step_time"), (step, "pace"), (bill, "hours"), (bill, "a_day"), (kept, "useful_now")],
    ("One step", step),
    ("The bill", bill),
    ("Failures", kept),
).servable()
