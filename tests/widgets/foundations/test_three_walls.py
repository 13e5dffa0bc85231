"""three_walls by hand: the four ratios, the wall that stands first, what clears it, and the picture's
axis."""

import numpy as np
import pytest

from engine import catalog
from engine.base.units import DAY
from tests import states
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.three_walls import LONGEST, ThreeWalls

PEAK = 989e12
WALLS = ["memory_wall", "step_wall", "deadline_wall", "budget_wall"]


READER = Reader(ThreeWalls)
shown, readouts, met = READER.shown, READER.readouts, READER.met


def ratios(**texts):
    return shown(**texts)["parts"]["bars"]["ratio"]


def test_the_default_by_hand():
    """70B × 15T tokens on 1,024 H100 at 40 %: 16 bytes a parameter; 6PB and 6PD over 1,024 · 989e12 · 0.4;
    the bill."""
    rate = 1024 * PEAK * 0.4
    gpu_hours = 6 * 70e9 * 15e12 / (PEAK * 0.4) / 3600
    price = catalog.price("h100-sxm").dollars_per_hour
    expected = [
        16 * 70e9 / (1024 * 80e9),
        6 * 70e9 * 4e6 / rate / 10,
        6 * 70e9 * 15e12 / rate / (90 * DAY),
        gpu_hours * price / 10e6,
    ]
    assert ratios() == pytest.approx(expected)
    assert met() == {"deadline_wall"}


def test_what_the_default_says():
    bars = shown()["parts"]["bars"]
    assert bars["label"][:3] == ["1.37 %", "41.5 %", "2×"]
    assert readouts() == {"first": "the deadline", "largest": "35B"}
    assert bars["needs"][1].startswith("4.15 s") and bars["needs"][2].startswith("180 days")
    assert not lacks(shown()["summary"], "1,024 H100 SXM", "2×")


def test_doubling_the_gpus_halves_three_ratios_and_leaves_the_bill():
    few, many = ratios(gpus=512), ratios(gpus=1024)
    assert many[:3] == pytest.approx(few[:3] / 2) and many[3] == few[3]


def test_the_number_of_gpus_that_is_named_clears_the_deadline():
    assert "2,048 GPUs" in shown()["regimes"]["deadline_wall"]["text"]
    assert ratios(gpus=2048)[2] <= 1 < ratios(gpus=1792)[2]
    assert met(gpus=2048) == {"budget_wall"}


def test_the_response_says_how_the_run_is_split():
    """70B has 1.12 TB of state, so no H100 holds a copy: its data parallel is sharded. 1B is copied whole."""
    words = shown()["regimes"]["deadline_wall"]["text"]
    assert not lacks(words, "2,048 GPUs", "sharded data parallel", "lesson 05")
    small = shown(size=1e9, tokens=1e13, gpus=8, budget_dollars=1e8)["regimes"]
    copied = small["deadline_wall"]["text"]
    assert small["deadline_wall"]["met"] and not lacks(copied, "data parallel", "lesson 04")
    assert lacks(copied, "sharded")


def test_every_wall_that_stands_gets_its_response():
    words = shown()["regimes"]["deadline_wall"]["text"]
    assert "Behind it: Bill, 1." in words and "no number of GPUs repairs it" in words
    assert "Memory" not in words and "One step" not in words
    assert "Behind it" not in shown(gpus=2048)["regimes"]["budget_wall"]["text"]
    every = shown(gpus=8)["regimes"]
    first = next(every[wall]["text"] for wall in WALLS if every[wall]["met"])
    assert (
        all(f"{row}, " in first for row in ("Memory", "One step", "Bill"))
        and "over at least 14 GPUs" in first
    )


def test_the_largest_model_stands_at_the_first_wall():
    assert max(ratios(size=35e9)) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        ({"size": 7e9, "tokens": 1e9, "gpus": 1, "step_tokens": 65e3}, "memory_wall"),
        ({"tokens": 1e11, "gpus": 256}, "step_wall"),
        ({}, "deadline_wall"),
        ({"gpus": 4096}, "budget_wall"),
        ({"size": 1e9, "tokens": 1e9}, None),
    ],
)
def test_each_wall_can_stand_first(texts, first):
    found = met(**texts)
    assert found & set(WALLS) == ({first} if first else set())
    assert (
        readouts(**texts)["first"]
        == {
            None: "no wall",
            "memory_wall": "memory",
            "step_wall": "the step time",
            "deadline_wall": "the deadline",
            "budget_wall": "the budget",
        }[first]
    )
    needs = shown(**texts)["parts"]["bars"]["needs"]
    assert [" · hit first" in text for text in needs] == [wall == first for wall in WALLS]


def test_all_four_walls_can_be_passed_by_dragging_the_gpus_alone():
    passed = [n for n in ThreeWalls.controls()["gpus"].grid if "every_wall" in met(gpus=n)]
    assert passed == [n for n in ThreeWalls.controls()["gpus"].grid if n < 14], "14 H100s hold 1.12 TB"
    assert "2,048 GPUs would clear" in shown(gpus=8)["regimes"]["every_wall"]["text"]


def test_presets_say_what_they_are():
    found = dict(zip(ThreeWalls.presets, states.presets(ThreeWalls)))
    run = {name: shown(**texts) for name, texts in ThreeWalls.presets.items()}
    assert found["70B, 15T tokens"] == states.default(ThreeWalls)
    assert found["Opening case: 8 nodes of 8"]["gpus"] == 64
    opening = run["Opening case: 8 nodes of 8"]["parts"]["bars"]  # a copy on each: 1,120 of 80 GB
    assert (
        opening["needs"][0].startswith("a copy on each GPU, 1.12 TB; HBM 80") and opening["label"][0] == "14×"
    )
    cut = run["… with its state cut"]["parts"]["bars"]  # a 64th on each: 17.5 of 80 GB
    assert cut["needs"][0].startswith("sharded over 64 GPUs, 17.5 GB on each") and cut["label"][0] == "21.9 %"
    other = [
        run[name]["parts"]["other_way"] for name in ("Opening case: 8 nodes of 8", "… with its state cut")
    ]
    assert [each["label"] for each in other] == ["21.9 %", "14×"], "each beside the other way"
    assert other[0]["ratio"] == cut["ratio"][0] and other[1]["ratio"] == opening["ratio"][0]
    assert found["Llama 3.1 405B"]["size"] == 405e9 and found["Llama 3.1 405B"]["gpus"] == 16384
    assert not any(regime["met"] for regime in run["Llama 3.1 405B"]["regimes"].values())
    assert run["7B fine-tune on one GPU"]["regimes"]["memory_wall"]["met"]
    assert found["Half a million parameters"]["size"] == 5e5
    assert max(run["Half a million parameters"]["parts"]["bars"]["ratio"]) < 0.001


def test_the_axis_is_linear_and_what_is_longer_is_broken_off():
    """A deadline missed by two is a bar twice as long as the time there is; 14× is broken off."""
    bars = shown()["parts"]["bars"]
    assert bars["end"] == pytest.approx(bars["ratio"]) and list(bars["torn"]) == [""] * 4
    assert bars["past"].tolist() == [0, 0, 1, 1] and bars["over_to"][2] == pytest.approx(bars["ratio"][2])
    far = shown(gpus=1)["parts"]["bars"]
    assert far["ratio"][0] == 14 and far["label"][0] == "14×" and far["past"].tolist() == [1, 1, 1, 1]
    assert [bool(sign) for sign in far["torn"]] == (far["ratio"] > LONGEST).tolist()


@in_one_test(
    "state", [states.default(ThreeWalls), *states.presets(ThreeWalls), *states.scattered(ThreeWalls, 100)]
)
def test_the_picture_holds_every_bar_and_a_larger_number_is_never_shorter(state):
    widget = ThreeWalls()
    widget.set_raw(state)
    out = widget.shown()
    bars = out["parts"]["bars"]
    assert bars["end"].max() * 1.15 <= out["ranges"]["x"][1]
    assert (np.diff(bars["end"][np.argsort(bars["ratio"])]) >= 0).all()
