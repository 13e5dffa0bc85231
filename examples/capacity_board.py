"""A team's board: how long a run takes, what it costs and what failures eat of it."""

import panel as pn

from widgets.composition.budget_guard import BudgetGuard
from widgets.composition.goodput import Goodput
from widgets.foundations.training_step import TrainingStep

step, bill, kept = TrainingStep(gpus=512), BudgetGuard(), Goodput()


def follow(event) -> None:
    """The GPUs of the run are those of the bill and of the failures, as far as their controls go."""
    for figure in (bill, kept):
        figure.gpus = figure.param.gpus.crop_to_bounds(event.new)


step.param.watch(follow, "gpus")
step.param.trigger("gpus")  # from the start


def headlines(*said: str) -> str:
    return "\n".join(f"- {each}" for each in said)


pn.Column(
    "# What the run takes",
    pn.pane.Markdown(pn.bind(headlines, *(each.live.param.headline for each in (step, bill, kept)))),
    pn.Tabs(("One step", step), ("The bill", bill), ("Failures", kept)),
    sizing_mode="stretch_width",
).servable(title="What the run takes")
