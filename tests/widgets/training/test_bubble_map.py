"""bubble_map: the shares and bytes along its curves, where it breaks, and that the schedules, run, agree with
them."""

import numpy as np
import pytest

from engine.executed.pipeline_schedules import MICRO_BATCHES as MOST_BATCHES
from engine.executed.pipeline_schedules import NOT_OWN, run
from engine.executed.pipeline_schedules import STAGES as MOST_STAGES
from engine.mechanism import pipeline
from tests.said import lacks
from widgets.training.bubble_map import SCHEDULES, STAGES, BubbleMap


def widget(**state):
    made = BubbleMap()
    made.set_state({name: str(value) for name, value in state.items()})
    return made


def cell(parts, stages, micro_batches):
    return int(np.flatnonzero((parts["stages"] == stages) & (parts["micro_batches"] == micro_batches))[0])


def test_the_textbook_cells():
    """(p − 1)/(m + p − 1), and one whole micro-batch's activations wherever there are as many of them as
    stages."""
    now, hints = widget().shown()["parts"], widget().hints()
    at = cell(now["bubbles"], 16, 16)
    assert not lacks(hints["bubbles"][at], "16 stages", "16 micro-batches", "48.4 % idle")
    assert not lacks(hints["memories"][at], "16 stages", "16 micro-batches", "67.1 GB")
    assert now["bubbles"]["share"][cell(now["bubbles"], 16, 64)] == pytest.approx(15 / 79)
    held = now["memories"]["held_bytes"]
    assert (
        held[cell(now["memories"], 4, 64)] == held[cell(now["memories"], 64, 64)] == widget().activation_bytes
    )
    assert held[cell(now["memories"], 64, 8)] == widget().activation_bytes / 8


@pytest.mark.parametrize("key", list(SCHEDULES))
def test_every_stop_on_a_curve_is_what_the_schedule_does(key):
    shown = widget(schedule=key, ratio=2, weight_share=0.5).shown()["parts"]["bubbles"]
    hints = widget(schedule=key).hints()["bubbles"]
    known = [
        m >= pipeline.least_micro_batches(p, pipeline.SCHEDULES[key])
        for p, m in zip(shown["stages"], shown["micro_batches"])
    ]
    assert (
        known == [bool(hint) for hint in hints] == list(shown["x"] == shown["micro_batches"])
        and sum(known) > 20
    )
    for p, m, share, is_known in zip(shown["stages"], shown["micro_batches"], shown["share"], known):
        if p <= MOST_STAGES and m <= MOST_BATCHES and is_known:
            ran = run(pipeline.SCHEDULES[key].order, p, m, 4, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0, NOT_OWN)
            assert ran["bubble"] == pytest.approx(share, abs=1e-9), (p, m)


@pytest.mark.parametrize("key", list(SCHEDULES))
def test_every_curve_lies_in_its_panel_and_begins_at_its_name(key):
    made = widget(schedule=key)
    parts, (low, high) = made.shown()["parts"], (float(made.lowest()), float(made.highest()))
    for p, x, y in zip(STAGES, parts["names"]["x"], parts["names"]["y"]):
        share, held = parts["curves"][f"p{p}_y"], parts["loads"][f"p{p}_y"]
        assert np.min(share) >= 0 and np.max(share) <= 1 and low < np.min(held) and np.max(held) < high
        assert parts["curves"][f"p{p}_x"][0] == x and abs(share[0] - y) < 0.16


def test_what_breaks_it_is_within_reach():
    burst = {
        key for key in SCHEDULES if widget(schedule=key, micro_batches=512).shown()["regimes"]["burst"]["met"]
    }
    assert burst == {"gpipe", "zb-h2"}  # 16 stages; all others stay below the 84.8 GB that software can fill
    assert not widget().shown()["regimes"]["burst"]["met"]


def test_the_ceiling_is_what_software_can_fill():
    """19.75 sixteenths of 67.1 GB are more than the 80 GB of the data sheet, and fit all the same."""
    made = widget(schedule="interleaved", micro_batches=512)
    assert 80e9 < float(made.held_bytes(16, 512)) < float(made.usable_bytes())
    shown = made.shown()
    assert shown["parts"]["limit"]["text"] == "H100 SXM: 84.8 GB usable"
    assert not shown["regimes"]["burst"]["met"]


def test_the_micro_batches_for_five_per_cent():
    assert widget().shown()["readouts"]["needed"]["text"] == "285"
    assert float(widget().bubble(16, 285)) == pytest.approx(0.05)
