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
    assert not lacks(
        hints["bubbles"][cell(now["bubbles"], 16, 16)], "16 stages", "16 micro-batches", "48.4 % idle"
    )
    assert now["bubbles"]["share"][cell(now["bubbles"], 16, 64)] == pytest.approx(15 / 79)


def held(made, micro_batches):
    """What the first stage holds, on the curve of the schedule and on that of its rival."""
    part = made.shown()["parts"]["memories"]
    return part["held_bytes"][part["micro_batches"] == micro_batches]


def test_what_is_held_beside_what_its_rival_holds():
    """1F1B holds one whole micro-batch's activations wherever there are as many of them as stages; GPipe one
    stage's share of each."""
    whole = widget().activation_bytes
    assert held(widget(stages=4), 64)[0] == held(widget(stages=64), 64)[0] == whole
    assert held(widget(stages=64), 8) == pytest.approx([whole / 8, whole / 8])
    assert held(widget(), 64)[1] == pytest.approx(64 * whole / 16)
    assert held(widget(schedule="gpipe"), 64) == pytest.approx([64 * whole / 16, whole])
    assert held(widget(schedule="interleaved"), 64)[1] == whole
    assert "1F1B, 16 stages, 16 micro-batches: 67.1 GB" in "".join(widget().hints()["memories"])
    assert "GPipe, 16 stages, 16 micro-batches: 67.1 GB" in "".join(widget().hints()["memories"])


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
    parts = widget(schedule=key).shown()["parts"]
    for p, x, y in zip(STAGES, parts["names"]["x"], parts["names"]["y"]):
        share = parts["curves"][f"p{p}_y"]
        assert np.min(share) >= 0 and np.max(share) <= 1
        assert parts["curves"][f"p{p}_x"][0] == x and abs(share[0] - y) < 0.16


@pytest.mark.parametrize("key", list(SCHEDULES))
@pytest.mark.parametrize("micro_batches", [1, 16, 512])
def test_the_memory_stays_in_its_panel_and_the_point_on_its_curve(key, micro_batches):
    made = widget(schedule=key, micro_batches=micro_batches)
    parts, view = made.shown()["parts"], float(made.view_bytes())
    assert parts["limit"]["y"] < view
    for name in ("load", "beside_it"):
        assert np.max(parts[name]["y"]) <= view and np.all(np.diff(parts[name]["x"]) >= 0)
    if parts["chosen"]["x"] == micro_batches:
        on_the_curve = np.interp(micro_batches, parts["load"]["x"], parts["load"]["y"])
        assert parts["chosen"]["held"] == pytest.approx(on_the_curve, rel=0.01)


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
