"""bubble_map: the shares and bytes of its cells, where it breaks, and that the schedules, run, agree with its cells."""

import numpy as np
import pytest

from engine import pipeline
from engine.pipeline_schedules import MICRO_BATCHES as MOST_BATCHES
from engine.pipeline_schedules import STAGES as MOST_STAGES
from engine.pipeline_schedules import run
from widgets.bubble_map import SCHEDULES, BubbleMap


def widget(**state):
    made = BubbleMap()
    made.set_state({name: str(value) for name, value in state.items()})
    return made


def cell(parts, stages, micro_batches):
    return int(np.flatnonzero((parts["stages"] == stages) & (parts["micro_batches"] == micro_batches))[0])


def test_the_textbook_cells():
    """(p − 1)/(m + p − 1), and one whole micro-batch's activations wherever there are as many of them as stages."""
    now = widget().shown()["parts"]
    assert now["bubbles"]["text"][cell(now["bubbles"], 16, 16)] == "48 %"
    assert now["bubbles"]["share"][cell(now["bubbles"], 16, 64)] == pytest.approx(15 / 79)
    held = now["memories"]["held_bytes"]
    assert held[cell(now["memories"], 4, 64)] == held[cell(now["memories"], 64, 64)] == widget().activation_bytes
    assert held[cell(now["memories"], 64, 8)] == widget().activation_bytes / 8


@pytest.mark.parametrize("key", list(SCHEDULES))
def test_every_cell_that_is_filled_is_what_the_schedule_does(key):
    shown = widget(schedule=key, ratio=2, weight_share=0.5).shown()["parts"]["bubbles"]
    for p, m, share, text in zip(shown["stages"], shown["micro_batches"], shown["share"], shown["text"]):
        if p <= MOST_STAGES and m <= MOST_BATCHES and text != "–":
            ran = run(pipeline.SCHEDULES[key].order, p, m, 4, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0, 9.0, 9.0)
            assert ran["bubble"] == pytest.approx(share, abs=1e-9), (p, m)


def test_what_breaks_it_is_within_reach():
    burst = {key for key in SCHEDULES if widget(schedule=key, micro_batches=512).shown()["regimes"]["burst"]["met"]}
    assert burst == {"gpipe", "interleaved", "zb-h2"}       # 16 stages; 1F1B, ZB-H1 and DualPipe stay below 80 GB
    assert not widget().shown()["regimes"]["burst"]["met"]


def test_the_micro_batches_for_five_per_cent():
    assert widget().shown()["readouts"]["needed"]["text"] == "285"
    assert float(widget().bubble(16, 285)) == pytest.approx(0.05)
