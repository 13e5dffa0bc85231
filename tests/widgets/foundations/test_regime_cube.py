"""The cube of loads: loads worked by hand, what binds, the dots, and the wall that moves."""

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.mechanism import walls
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.regime_cube import KEYS, LIMIT, NAMES, RegimeCube

READER = Reader(RegimeCube)
shown, read = READER.shown, READER.widget


def text(shown, name):
    return shown["readouts"][name]["text"]


def bound(shown, task="training"):
    return text(shown, task).split(",")[0]


def asked(**texts):
    """Memory, compute and bandwidth of the model in focus, in words."""
    widget = read(**texts)
    return [widget.memory(), widget.compute(), widget.bandwidth()]


def test_training_70b_on_256_h100s_by_hand():
    """P = 70.55e9: 16·P / (256·80e9) = 0.0551; 6·P·4e6 / (256·989e12·0.4·20) = 0.836; and over the eight NICs
    of a node 2·(255/256)·2·P / (400e9·20) = 0.0351."""
    state = shown()
    assert state["parts"]["values"]["name"] == asked() == ["5.5 %", "84 %", "3.5 %"]
    assert READER.widget().chosen() == pytest.approx([0.0551, 0.836, 0.0351], rel=0.002)
    assert text(state, "training") == "compute, 84 %"
    assert not any(regime["met"] for regime in state["regimes"].values())


def test_serving_70b_on_8_h100s_by_hand():
    """141.1 GB of weights and 64·8192·327,680 = 171.8 GB of cache over 640 GB; of 8·3.35e12·0.02 = 536 GB
    read."""
    state = shown(task="serving", gpus=8)
    assert read(task="serving", gpus=8).chosen()[[0, 2]] == pytest.approx([0.489, 0.584], rel=0.002)
    assert text(state, "serving") == "HBM bandwidth, 58 %"
    assert "HBM bandwidth" in state["parts"]["titles"]["name"][2]


def test_each_row_is_the_model_of_its_name():
    rows = shown()["parts"]["models"]
    for i, key in enumerate(KEYS):
        model = catalog.model(key)
        assert rows["name"][i] == model.name
        loads = walls.training_loads(model, catalog.gpu("h100-sxm"), 256, 4e6, 20.0, mfu=0.4)
        assert np.allclose([rows[axis][i] for axis in ("memory", "compute", "bandwidth")], loads)


def test_the_cube_holds_dense_models_and_experts_of_all_sizes():
    sizes = [models.parameters(catalog.model(key)) for key in KEYS]
    assert len(KEYS) >= 8 and max(sizes) > 500 * min(sizes)
    assert sum(catalog.model(key).experts > 0 for key in KEYS) >= 3


def test_dense_models_and_experts_part_ways():
    """At the first state compute binds every dense model; memory those with far more experts than a token
    uses."""
    for key, name, resource in zip(KEYS, NAMES, shown()["parts"]["models"]["bound"]):
        model = catalog.model(key)
        sparse = models.parameters(model) > 16 * models.active_parameters(model)
        assert resource == ("memory" if sparse else "compute"), name


def test_mfu_stretches_the_arithmetic_alone():
    one, half = shown(mfu=0.8)["parts"]["models"], shown()["parts"]["models"]
    assert np.allclose(half["compute"], 2 * one["compute"])
    assert np.allclose(half["memory"], one["memory"]) and np.allclose(half["bandwidth"], one["bandwidth"])
    served = [shown(task="serving", mfu=mfu)["parts"]["models"]["compute"] for mfu in (0.4, 0.8)]
    assert np.allclose(*served)


def test_within_a_node_the_gradients_take_the_link():
    """2·(7/8)·2·P / (450e9·20) on 8 GPUs, 2·(8/9)·2·P / (400e9·20) on 9."""
    params = models.parameters(catalog.model("llama3.1-70b"))
    at = KEYS.index("llama3.1-70b")
    assert shown(gpus=8)["parts"]["models"]["bandwidth"][at] == pytest.approx(3.5 * params / 9e12)
    assert shown(gpus=9)["parts"]["models"]["bandwidth"][at] == pytest.approx(32 / 9 * params / 8e12)


def test_dots_are_the_models_from_back_to_front():
    state = shown()["parts"]
    rows, dots = state["models"], state["dots"]
    assert sorted(zip(dots["x"], dots["y"])) == sorted(zip(rows["x"], rows["y"]))
    for x, resource, rim in zip(dots["x"], dots["bound"], dots["rim"]):
        i = list(rows["x"]).index(x)
        assert resource == rows["bound"][i]
        assert rim == (
            "over" if max(rows[axis][i] for axis in ("memory", "compute", "bandwidth")) > 1 else "within"
        )


def test_choosing_a_model_moves_the_drop_lines_and_readouts_alone():
    one, other = shown(), shown(focus="deepseek-v3")
    assert bound(other) == "memory" and asked(focus="deepseek-v3")[0] == "52 %"
    assert asked()[0] != asked(focus="deepseek-v3")[0]
    assert not np.allclose(one["parts"]["drops"]["x0"], other["parts"]["drops"]["x0"])
    assert np.allclose(one["parts"]["dots"]["x"], other["parts"]["dots"]["x"])
    styles = dict(zip(other["parts"]["models"]["name"], other["parts"]["models"]["style"]))
    assert [name for name, style in styles.items() if style == "bold"] == ["DeepSeek-V3"]


def test_turning_moves_the_dots_and_no_load():
    one, turned = shown(), shown(turn=8)
    assert not np.allclose(one["parts"]["dots"]["x"], turned["parts"]["dots"]["x"])
    assert one["readouts"] == turned["readouts"]


@in_one_test("key", KEYS)
def test_no_model_has_broken_its_wall_at_first(key):
    assert not shown(focus=key)["regimes"]["another_binds"]["met"]


@pytest.mark.parametrize(
    ("change", "resource"),
    [
        ({"gpus": 8192}, "network"),
        ({"gpus": 8, "tokens": 65536}, "memory"),
        ({"task": "serving"}, "HBM bandwidth"),
    ],
)
def test_the_wall_of_70b_moves_each_way(change, resource):
    state = shown(**change)
    assert bound(state, change.get("task", "training")) == resource
    assert state["regimes"]["another_binds"]["met"]
    words = state["regimes"]["another_binds"]["text"]
    assert not lacks(words, resource, "compute", "256 H100s", "First response")


def test_break_it_is_reached_on_the_slider_in_sight():
    grid = RegimeCube.controls()["gpus"].grid
    met = [shown(gpus=int(n))["regimes"]["nothing_can_be_met"]["met"] for n in grid]
    assert any(met) and not all(met)


def test_a_load_past_one_is_a_wall_with_a_first_response():
    wall = shown(focus="llama3.1-405b")["regimes"]["cannot_be_met"]
    assert wall["met"] and "4.8× what there is" in wall["text"]
    assert "The wall is compute" in wall["text"] and "more GPUs" in wall["text"]


def test_one_gpu_sends_nothing_and_stands_at_the_end_of_the_axis():
    state = shown(gpus=1)
    assert asked(gpus=1)[2] == "0 %"
    assert np.isfinite(state["parts"]["models"]["y"]).all()
    assert "one H100 SXM" in state["summary"]


def test_presets_say_what_binds():
    found = {
        name: bound(shown(**texts), texts.get("task", "training"))
        for name, texts in RegimeCube.presets.items()
    }
    assert found == {
        "Train on 256 H100s": "compute",
        "8,192 GPUs, steps of 1 s": "network",
        "8 GPUs, small steps": "memory",
        "Serve on 8": "HBM bandwidth",
        "Serve many short chats": "compute",
    }


@pytest.mark.parametrize(("key", "name"), [("llama3.1-70b", "Llama 3.1 70B"), ("kimi-k2", "Kimi K2")])
def test_the_cube_names_the_chosen_one_alone(key, name):
    """The rows beside it name all: other names would lie on the markers."""
    assert [short for short in shown(focus=key)["parts"]["models"]["short"] if short] == [name]


@pytest.mark.parametrize("preset", RegimeCube.presets)
def test_rows_stand_in_the_order_of_what_binds_and_the_larger_load_is_further_right(preset):
    parts = shown(**RegimeCube.presets[preset])["parts"]
    models, rows = parts["models"], parts["rows"]
    loads = np.stack([models[axis] for axis in ("memory", "compute", "bandwidth")], axis=1)
    assert np.array_equal(np.argsort(np.argsort(loads.max(axis=1), kind="stable")) + 0.5, rows["middle"])
    places = parts["loads_of_rows"]["x"].reshape(len(NAMES), 3)
    assert np.allclose(rows["x"], places.max(axis=1)) and rows["bound"] == models["bound"]
    order = np.argsort(loads.ravel())
    assert (np.diff(places.ravel()[order]) >= 0).all()
    past = loads.max(axis=1) > 1
    assert [x > LIMIT for x in rows["x"]] == list(past)
    assert [amount.endswith("×") for amount in rows["amount"]] == list(past)


def test_what_nobody_can_meet_is_found_and_no_preset_is_it():
    found = shown(gpus=1)
    assert found["regimes"]["nothing_can_be_met"]["met"] and found["parts"]["none_met"]["left"] == LIMIT
    assert "even GPT-2 XL asks for" in found["regimes"]["nothing_can_be_met"]["text"]
    for state in RegimeCube.presets.values():
        kept = shown(**state)
        assert not kept["regimes"]["nothing_can_be_met"]["met"] and kept["parts"]["none_met"]["left"] < 0


def test_a_job_says_what_binds_it_in_one_short_sentence():
    said = shown()["summary"]
    assert not lacks(said, "Training Llama 3.1 70B", "256 × H100 SXM", "compute", "84 %")
    assert said.count(". ") == 0 and len(said) < 100
    assert not lacks(shown(focus="llama3.1-405b")["summary"], "4.8×")
