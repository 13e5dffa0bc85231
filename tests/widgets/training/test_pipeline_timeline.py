"""pipeline_timeline: what the picture shows is what the schedule gives, in every preset and at the
corners."""

import numpy as np
import pytest

from engine.mechanism import pipeline, pipeline_orders
from engine.mechanism.pipeline_orders import BACKWARD, FORWARD, block
from tests.said import lacks
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.passes import HAIR, ONE_FIGURE, OUTLINED
from widgets.training.pipeline_timeline import LOOK, SCHEDULES, PipelineTimeline


def shown(**state):
    widget = PipelineTimeline()
    widget.set_state({name: str(value) for name, value in state.items()})
    return widget.shown(), widget.hints()


def test_the_textbook_picture():
    """p = 4, m = 8: every fourth of the chart is a lane; 3/11 of the step is idle, by the run and by the
    formula."""
    now, hints = shown()
    assert now["readouts"]["bubble"]["text"] == now["readouts"]["by_formula"]["text"] == "27.3 %"
    blocks = now["parts"]["blocks"]
    assert len(blocks["left"]) == 2 * 4 * 8 and np.max(blocks["right"]) == pytest.approx(1.0 - HAIR)
    assert np.min(blocks["bottom"]) > 0 and np.max(blocks["top"]) < 1
    drawn = np.sum(blocks["right"] - blocks["left"] + HAIR)  # each block leaves a hair to the next one
    assert drawn / 4 == pytest.approx(8 / 11)
    assert not lacks(hints["blocks"][0], "Forward", "micro-batch 1", "stage 1", "0 s to 20 ms")
    assert not lacks(hints["idle"][0], "Stage 1", "120 ms", "stage 2’s backward", "micro-batch 1")
    assert any(
        not lacks(text, "Stage 2", "20 ms", "stage 1’s forward", "micro-batch 1") for text in hints["idle"]
    )
    assert any(not lacks(text, "Stage 4", "120 ms", "done") for text in hints["idle"])


def test_a_wait_says_that_its_message_is_on_the_way():
    _, hints = shown(message_s=5e-3)
    assert any(text.endswith(", 5 ms of it for the message") for text in hints["idle"])
    assert not any("message" in text for text in shown()[1]["idle"])


@pytest.mark.parametrize("key", list(SCHEDULES))
def test_run_and_formula_agree_where_the_formula_holds(key):
    now, _ = shown(schedule=key, stages=8, micro_batches=32)
    assert now["readouts"]["bubble"]["text"] == now["readouts"]["by_formula"]["text"]
    assert pipeline.SCHEDULES[key].name in now["summary"]


def test_what_breaks_it_is_within_reach():
    for stages, micro_batches in ((16, 16), (4, 3), (8, 4)):
        now, _ = shown(stages=stages, micro_batches=micro_batches)
        assert now["regimes"]["starved"]["met"], (stages, micro_batches)
    assert shown(stages=16, micro_batches=16)[0]["readouts"]["bubble"]["text"] == "48.4 %"
    assert not shown()[0]["regimes"]["starved"]["met"]


def test_gpipe_has_the_same_bubble_and_more_memory():
    gpipe, ours = shown(schedule="gpipe")[0], shown()[0]
    assert gpipe["readouts"]["bubble"] == ours["readouts"]["bubble"] and gpipe["regimes"]["heavy"]["met"]
    assert (gpipe["readouts"]["held"]["text"], ours["readouts"]["held"]["text"]) == ("8", "4")


def test_dualpipe_says_with_what_it_is_drawn():
    now, _ = shown(schedule="dualpipe", stages=7, micro_batches=5)
    paired = now["regimes"]["paired"]
    assert paired["met"] and not lacks(paired["text"], "8 stages", "16 micro-batches")
    assert not lacks(now["summary"], "8 stages", "11.1 %", "16 micro-batches")


@pytest.mark.parametrize("key", list(SCHEDULES))
def test_the_largest_pipelines_fit_their_columns(key):
    now, _ = shown(
        schedule=key, stages=16, micro_batches=64, chunks=4, message_s=0.1, ratio=1, weight_share=0.6
    )
    passes = 3 if key.startswith("zb") else 2 * (4 if key == "interleaved" else 1)
    assert len(now["parts"]["blocks"]["left"]) >= passes * 16 * 64
    assert all(
        np.isfinite(column).all()
        for part in now["parts"].values()
        for column in part.values()
        if np.asarray(column).dtype.kind == "f"
    )


def enclosed(outline):
    """The area within an outline, by the shoelace formula, and its size."""
    x, y = np.asarray(outline["x"]), np.asarray(outline["y"])
    return -np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2 if x.size else 0.0, x.size


@pytest.mark.parametrize("key", list(SCHEDULES))
@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), [(4, 8, 2), (16, 64, 4), (8, 20, 3)])
def test_the_outlines_are_the_passes(key, stages, micro_batches, chunks):
    """Each encloses just what the passes of its kind and chunk cover, and no rectangle is filled twice."""
    now = PipelineTimeline()
    now.set_state(
        {"schedule": key, "stages": str(stages), "micro_batches": str(micro_batches), "chunks": str(chunks)}
    )
    parts, found = now.shown()["parts"], now.found()
    sides = [np.asarray(parts["blocks"][side]) for side in ("left", "right", "bottom", "top")]
    kind = np.array(parts["blocks"]["pass"])
    later = found["place"][: kind.size] >= found["stages"]
    is_weight, is_forward = kind == "weight gradient", kind == "forward"
    mine = {
        "forward": is_forward & ~later,
        "later_forward": is_forward & later,
        "backward": ~is_forward & ~is_weight & ~later,
        "later_backward": ~is_forward & ~is_weight & later,
        "weight": is_weight,
    }
    for look in LOOK:
        left, right, bottom, top = (side[mine[look]] for side in sides)
        area, points = enclosed(parts[f"{look}s"])
        assert area == pytest.approx(np.sum((right - left) * (top - bottom)), rel=1e-9), look
        assert points <= 6 * left.size + 2 * stages
        for axis, ends in (("x", (left, right)), ("y", (bottom, top))):
            drawn = np.unique(np.asarray(parts[f"{look}s"][axis]))
            assert np.isin(drawn, np.concatenate([*ends, [0.0], sides[2]])).all(), look


def test_what_is_wide_enough_gets_its_number_and_what_is_pale_its_edge():
    parts = shown(schedule="zb-h1")[0]["parts"]
    blocks, numbers = parts["blocks"], parts["numbers"]
    wide = np.asarray(blocks["right"]) - np.asarray(blocks["left"]) + HAIR >= ONE_FIGURE
    assert [str(int(n)) for n in np.asarray(blocks["micro_batch"])[wide]] == list(numbers["text"])
    assert np.sum(np.array(blocks["pass"]) == "weight gradient") == len(parts["edges"]["left"]) == 32
    narrow = shown(schedule="zb-h1", stages=16, micro_batches=64)[0]["parts"]
    assert not len(narrow["numbers"]["x"]) and not len(narrow["edges"]["left"])
    assert np.max(np.asarray(narrow["blocks"]["right"]) - np.asarray(narrow["blocks"]["left"])) < OUTLINED


def test_few_shapes_are_painted_where_there_are_many_passes():
    """What made a drag slow: a mark for each of up to 8,192 passes."""
    many = shown(schedule="gpipe", stages=16, micro_batches=64)[0]["parts"]
    assert enclosed(many["forwards"])[1] == 16 * (4 + 2)  # a run of forwards is one rectangle
    widget = PipelineTimeline()
    drawn = {each.data_source.name for each in widget.figure(fig.sources(widget)).renderers}
    assert "blocks" not in drawn and "idle" not in drawn


def test_the_preset_of_llama_takes_about_its_published_step():
    """arXiv:2407.21783 Table 4: 16M tokens a step at 400 TFLOP/s on each of 16,384 GPUs, some 6.4 s."""
    widget = PipelineTimeline()
    widget.set_state(
        {name: str(value) for name, value in PipelineTimeline.presets["Llama 3 405B, v = 4"].items()}
    )
    assert widget.found()["step_s"] == pytest.approx(6.4, rel=0.03)  # attention counted or not makes 3 % here


def given(column):
    widget = PipelineTimeline()
    widget.own = tuple(map(float, column))
    return widget


def test_a_readers_own_schedule_is_drawn_as_any_other():
    column = [1]
    for stage in range(4):
        pipeline_orders.order(column, pipeline_orders.ONE_F_ONE_B, stage, 4, 8, 1)
    mine, engines = given(column).shown(), PipelineTimeline().shown()
    assert mine["readouts"] == engines["readouts"] and "under your schedule" in mine["summary"]
    for name in ("forwards", "backwards", "idle", "stage_rows"):
        for side, values in engines["parts"][name].items():
            np.testing.assert_array_equal(mine["parts"][name][side], values)
    assert not len(engines["parts"]["stuck"]["text"])


def test_a_schedule_that_cannot_go_on_shows_at_which_pass():
    """Both stages wait: the first for a backward that the second makes after a second forward alone."""
    column = [
        1,
        block(FORWARD, 0, 0),
        -1 - block(BACKWARD, 0, 0),
        block(FORWARD, 1, 0),
        -1 - block(FORWARD, 1, 1),
    ]
    widget = given(column)
    widget.set_state({"stages": "2", "micro_batches": "2"})
    shown = widget.shown()
    assert "cannot go on" in shown["summary"]
    assert shown["parts"]["stuck"]["text"] == ["1?", "2?"]
    hints = widget.hints()
    assert not lacks(hints["stuck"][0], "Stage 1", "backward of micro-batch 1", "stage 2", "without end")
    waits = ("Stage 1", "20 ms", "stage 2’s backward", "micro-batch 1")
    assert any(not lacks(text, *waits) for text in hints["idle"])


def test_a_stage_that_never_starts_is_drawn_too():
    widget = given([1, block(FORWARD, 0, 0), block(FORWARD, 0, 1), -1 - block(BACKWARD, 1, 0)])
    widget.set_state({"stages": "2", "micro_batches": "2"})
    shown = widget.shown()
    assert list(shown["parts"]["stage_rows"]["held"]) == [2, 0]
    assert list(shown["parts"]["stage_rows"]["number"]) == ["1", "2"]
