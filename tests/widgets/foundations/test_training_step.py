"""training_step: the lanes are the engine's run of the last sequence, the sentence says what binds, and the
GPUs are powers of two."""

import numpy as np
import pytest

from engine.executed import fully_sharded
from engine.step import home
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.training_step import COMPUTE, HBM, LAYERS, STOPS, WIRES, TrainingStep
from widgets.kit.controls import BadValue

READER = Reader(TrainingStep)
part, met, text, widget = READER.part, READER.met, READER.text, READER.widget


def said(**texts) -> str:
    return READER.shown(**texts)["summary"]


def test_what_binds_is_said_and_by_how_much():
    assert not lacks(said(), "Compute binds", "8 GPUs", "92.4 s", "99 %", "256 sequences")
    assert not lacks(said(gpus=1), "Memory binds", "1 GPU", "155 GB", "84.8 GB")
    assert not lacks(said(gpus=16384), "network binds", "16,384 GPUs", "0.308 s", "79.9 %")


def test_the_target_is_where_the_wires_are_busier_than_compute_and_neither_default_nor_preset():
    found = {gpus: met(gpus=int(gpus)) for gpus in STOPS}
    assert [gpus for gpus in STOPS if found[gpus] == {"memory_binds"}] == [1, 2]
    assert [gpus for gpus in STOPS if found[gpus] == {"network_binds"}] == [4096, 8192, 16384]
    for state in TrainingStep.presets.values():
        assert "network_binds" not in met(**state)


@pytest.mark.parametrize("gpus", [1, 8, 16384])
def test_the_lanes_are_the_engines_run(gpus):
    step = home.on(gpus)
    run, tasks = fully_sharded.run(step.layer, LAYERS, 1), part("tasks", gpus=gpus)
    works = np.isin(run["kind"], [fully_sharded.FORWARD, fully_sharded.BACKWARD])
    seen = np.array(run["last_s"]) > 0
    assert len(tasks["left"]) == 5 * LAYERS
    assert (tasks["left"][seen] == np.array(run["start_s"])[seen]).all()
    assert (tasks["right"][~seen] < 0).all() and seen.all() == (gpus > 1)
    assert set(tasks["top"][works]) == {COMPUTE[1]} and set(tasks["top"][~works]) == {WIRES[1]}
    assert set(np.array(tasks["on"])[works]) == {"compute"}
    assert set(np.array(tasks["on"])[~works]) == {"link" if gpus <= 8 else "network"}
    ends = part("lanes", gpus=gpus)["right"]
    assert ends == pytest.approx(np.full(3, run["total_s"] + step.optimizer_s))
    assert part("optimizer", gpus=gpus)["right"] == pytest.approx(ends[0])


@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 2048])
def test_memory_is_as_high_as_it_is_full_and_past_its_lane_where_it_does_not_fit(gpus):
    step, memory = home.on(gpus), part("memory", gpus=gpus)
    capacity = widget(gpus=gpus).hbm_bytes()
    assert memory["held_bytes"].max() == pytest.approx(step.total_bytes)
    assert memory["inside"].max() <= HBM[1] <= memory["top"].min()
    assert (memory["top"].max() > HBM[1]) == (step.total_bytes > capacity)
    drawn = (memory["inside"] - memory["bottom"]) + (memory["top"] - HBM[1])
    assert drawn == pytest.approx(memory["held_bytes"] / capacity * (HBM[1] - HBM[0]))
    assert (memory["left"][1:] == memory["right"][:-1]).all() and memory["left"][0] == 0
    assert memory["right"][-1] == part("lanes", gpus=gpus)["right"][0]


def test_a_b200_holds_on_one_gpu_what_two_h100s_do_not():
    assert met(gpus=2) == {"memory_binds"} and met(gpus=1, gpu="b200") == set()


def test_how_many_sequences_a_gpu_has():
    assert text("sequences") == "256, in turn" and text("sequences", gpus=16384) == "1, shared by 8"
    assert text("step_time") == "92.4 s" and text("step_time", gpus=2048) == "0.367 s"


@in_one_test("gpus", ["100", "3", "0", "32768", "1.5", "eight"])
def test_what_is_no_power_of_two_is_refused(gpus):
    with pytest.raises(BadValue) as refused:
        widget(gpus=gpus)
    assert not lacks(str(refused.value), "gpus", "power of two", 1, 16384, f"'{gpus}'")


def test_every_mark_says_what_it_is():
    hints = widget().hints()
    assert not lacks(hints["tasks"][0], "Gather", "layer 1") and not lacks(
        hints["tasks"][2], "Forward pass", "layer 1"
    )
    assert not lacks(hints["optimizer"][0], "Optimizer", "13 ms")
    held = hints["memory"][: len(part("memory")["left"])]
    assert held and not any(lacks(each, "84.8 GB") for each in held)
