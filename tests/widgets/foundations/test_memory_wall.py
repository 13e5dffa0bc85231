"""memory_wall by hand: the parts, the one that passes the HBM, the slider to blame and the cheapest way
back."""

import numpy as np
import pytest

from tests import states
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.memory_wall import CHANGES, ROWS, MemoryWall

HOME = {"size": 3e9, "seq": 8192, "batch": 2}
VOCAB = 128256


READER = Reader(MemoryWall)
shown, readouts, met = READER.shown, READER.readouts, READER.met


def parts(**texts):
    """Bytes of each row by name, from the lengths of the bars."""
    bars = shown(**texts)["parts"]["parts"]
    return dict(zip(ROWS, bars["end"] - bars["start"]))


def typical(params):
    layers = (params / (12 * 128**2)) ** (1 / 3)
    return layers, 128 * layers


def test_the_default_by_hand():
    """2 + 2 + 12 bytes a parameter; 34·s·b·h·L; ten bytes for each logit; 2 GB for the framework."""
    layers, hidden = typical(3e9)
    tokens = 8192 * 2
    expected = {
        "framework": 2e9,
        "weights": 6e9,
        "gradients": 6e9,
        "optimizer": 36e9,
        "activations": 34 * tokens * hidden * layers,
        "transient": 10 * tokens * VOCAB,
    }
    found = parts()
    assert found.pop("total") == pytest.approx(sum(expected.values()))
    assert found == pytest.approx(expected)


def test_what_the_default_says():
    assert readouts() == {
        "total": "115 GB",
        "against": "1.44×",
        "slider": "sequence",
        "way_back": "checkpointing",
        "ranks": "4",
    }  # 48 of state over 4, and 2 + 44 + 21 that stay whole
    assert met() == {"over_the_wall"}
    assert not lacks(shown()["regimes"]["over_the_wall"]["text"], "the activations")
    notes = dict(zip(ROWS, shown()["parts"]["parts"]["note"]))
    assert (
        notes["activations"] == "passes the HBM"
        and notes["transient"] == "logits"
        and notes["optimizer"] == ""
    )


def test_full_checkpointing_keeps_the_layers_inputs():
    layers, hidden = typical(3e9)
    assert parts(recompute="full")["activations"] == pytest.approx(2 * 8192 * 2 * hidden * layers)


def test_without_flash_attention_the_scores_are_kept_unless_selectively_recomputed():
    layers, _ = typical(3e9)
    scores = 5 * layers * 8192**2 * 2 * layers  # heads = layers for heads of 128
    assert parts(flash="off")["activations"] - parts()["activations"] == pytest.approx(scores)
    assert parts(flash="off", recompute="selective")["activations"] == pytest.approx(parts()["activations"])


def test_the_transient_part_is_the_logits_or_the_rebuilt_layer():
    """Full checkpointing without FlashAttention rebuilds a layer with its scores, which outweighs the
    logits."""
    layers, hidden = typical(1e9)
    texts = {"size": 1e9, "batch": 1, "seq": 32768, "flash": "off", "recompute": "full"}
    assert parts(**texts)["transient"] == pytest.approx(32768 * hidden * 34 + 5 * layers * 32768**2)
    roomy = shown(**texts, gpu="b300")["parts"]["parts"]["note"]
    assert dict(zip(ROWS, roomy))["transient"] == "rebuilt in a layer"


@in_one_test(
    "precision, optimizer, per_param, per_logit",
    [
        ("bf16-adam", "bf16-adam", (2, 2, 12), 10),
        ("bf16-adam-fp32-grads", "bf16-adam", (2, 4, 12), 10),
        ("fp32-adam", "bf16-adam", (4, 4, 8), 8),
        ("fp32-adam", "sgd-momentum", (4, 4, 4), 8),
        ("bf16-adam", "adam-8bit", (2, 2, 6.004), 10),
        ("bf16-adam", "adafactor", (2, 2, 4.002), 10),
        ("fp8-te", "bf16-adam", (4, 4, 8), 10),
    ],
)
def test_precision_and_optimizer_are_set_apart(precision, optimizer, per_param, per_logit):
    found = parts(precision=precision, optimizer=optimizer)
    assert [found[name] / 3e9 for name in ("weights", "gradients", "optimizer")] == pytest.approx(per_param)
    assert found["transient"] == pytest.approx(per_logit * 8192 * 2 * VOCAB)


def test_fp32_doubles_the_values_kept_and_not_the_masks():
    """34 = 32 bytes of values and 2 of masks; in fp32 66."""
    assert parts(precision="fp32-adam")["activations"] / parts()["activations"] == pytest.approx(66 / 34)


def test_the_bars_stand_end_to_end():
    for state in states.scattered(MemoryWall, 40):
        widget = MemoryWall()
        widget.set_raw(state)
        bars = widget.shown()["parts"]["parts"]
        assert bars["start"][0] == bars["start"][6] == 0
        assert bars["start"][1:6] == pytest.approx(bars["end"][:5], rel=1e-9)
        assert bars["end"][6] == pytest.approx(bars["end"][5])


def test_what_is_past_the_wall_is_marked():
    bars = shown()["parts"]["parts"]
    assert bars["past"].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert bars["over_start"][4:].tolist() == [80e9, bars["start"][5], 80e9]
    assert not any(shown(recompute="full")["parts"]["parts"]["past"])


@in_one_test(
    "texts, slider, way_back",
    [
        ({"size": 7e9, "seq": 512, "batch": 1}, "model size", "8-bit moments"),
        ({"size": 70e9}, "model size", "none alone"),
        ({"batch": 4, "seq": 4096}, "micro-batch", "micro-batch 1"),
        ({"flash": "off", "batch": 1, "seq": 4096}, "sequence", "FlashAttention"),
        ({"size": 1e9, "batch": 1, "seq": 2**17}, "sequence", "1,024 tokens"),
        ({"size": 1e9}, "nothing", "none needed"),
    ],
)
def test_the_slider_to_blame_and_the_way_back(texts, slider, way_back):
    found = readouts(**texts)
    assert (found["slider"], found["way_back"]) == (slider, way_back)


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ("FlashAttention", {"flash": "on"}),
        ("micro-batch 1", {"batch": 1}),
        ("checkpointing", {"recompute": "full"}),
        ("8-bit moments", {"optimizer": "adam-8bit"}),
        ("1,024 tokens", {"seq": 1024}),
    ],
)
def test_a_change_gives_the_total_that_its_control_would(change, texts):
    before = shown(**HOME, flash="off")["parts"]["changes"]["end"]
    after = parts(**{**HOME, "flash": "off", **texts})["total"]
    assert dict(zip(CHANGES, before))[change] == pytest.approx(after)


def test_no_way_back_makes_it_worse():
    for state in states.scattered(MemoryWall, 60):
        widget = MemoryWall()
        widget.set_raw(state)
        out = widget.shown()["parts"]
        assert (out["changes"]["end"] <= out["parts"]["end"][6] * (1 + 1e-12)).all()


def test_the_target_is_found_by_choosing_full_checkpointing_and_lost_without_it():
    assert met(recompute="full") == {"checkpointing_saves_it"}
    assert "checkpointing_saves_it" not in met()
    assert "checkpointing_saves_it" not in met(size=1e9, recompute="full"), (
        "it fits without checkpointing too"
    )
    assert "checkpointing_saves_it" not in met(size=70e9, recompute="full"), "it fits in no way"
    assert "115 GB" in shown(recompute="full")["regimes"]["checkpointing_saves_it"]["text"]


def test_the_ranks_hold_the_state_beside_the_rest_and_one_less_does_not():
    texts = {"size": 70e9, "batch": 1, "recompute": "full"}
    found, ranks = parts(**texts), int(readouts(**texts)["ranks"])
    state = found["weights"] + found["gradients"] + found["optimizer"]
    room = 80e9 - found["framework"] - found["activations"] - found["transient"]
    assert state / ranks <= room < state / (ranks - 1)
    assert f"at least {ranks} GPUs" in shown(**texts)["regimes"]["over_the_wall"]["text"]


def test_no_number_of_ranks_helps_what_is_not_state():
    """70B with two sequences and nothing thrown away: the activations alone pass 80 GB, and each rank has its
    own."""
    out = shown(size=70e9)
    assert parts(size=70e9)["activations"] > 80e9
    assert not lacks(out["readouts"]["ranks"]["text"], "none") and out["readouts"]["ranks"]["alarm"]
    assert "combine them" in out["regimes"]["over_the_wall"]["text"]


def test_presets_say_what_they_are():
    found = dict(zip(MemoryWall.presets, states.presets(MemoryWall)))
    out = {name: shown(**texts) for name, texts in MemoryWall.presets.items()}
    assert found["3B, nothing thrown away"] == states.default(MemoryWall)
    assert "the logits" in out["3B at 16k, full checkpointing"]["summary"]
    assert out["7B: the state alone"]["readouts"]["slider"]["text"] == "model size"
    state_alone = out["7B: the state alone"]["parts"]["parts"]
    assert state_alone["end"][3] > 80e9, "framework, weights, gradients and optimizer pass 80 GB"
    long = found["1B at 32k without FlashAttention"]
    assert long["size"] == 1e9 and long["seq"] == 32768 and not long["flash"]
    card = out["1B on a 24 GB card"]
    assert card["parts"]["wall"]["hbm"] == 24e9 and not any(
        regime["met"] for regime in card["regimes"].values()
    )
    assert out["70B on one H100"]["readouts"]["ranks"]["text"] == "20"  # 1,120 / (80 − 2 − 10.5 − 10.5)


def test_the_picture_holds_every_bar_and_the_wall():
    for state in [states.default(MemoryWall), *states.presets(MemoryWall), *states.scattered(MemoryWall, 60)]:
        widget = MemoryWall()
        widget.set_raw(state)
        out = widget.shown()
        assert (
            max(np.max(out["parts"]["parts"]["end"]), out["parts"]["wall"]["hbm"]) * 1.35
            <= out["ranges"]["x"][1]
        )
