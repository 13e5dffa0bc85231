"""layout_exam: nothing is given away before the examination is handed in, and each lost point has its reason
and a lesson."""

import re

import numpy as np
import pytest

from course import widget_html
from engine.base.units import DAY
from engine.step import planner
from tests.cases import in_one_test
from tests.lessons.reading import LESSONS
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.kit.widget import all_widgets

READ = Reader(all_widgets()["layout_exam"])
GIVEN = {name for name, method in READ.cls.methods("readout_label").items() if method.readout_given}
ASKED = {"points", "built", "pace", "memory_points", "binding_points", "days_points", "mfu", "published"}
ANSWERS = {
    "seed": "1917",
    "tp": "4",
    "pp": "2",
    "ep": "8",
    "memory": "60e9",
    "binds": "network",
    "run_s": str(80 * DAY),
}


def preset(name: str) -> dict:
    return {control: str(text) for control, text in READ.cls.presets[name].items()}


def test_before_it_is_handed_in_nothing_is_searched_and_nothing_given_away(monkeypatch):
    searched = []
    found = planner.found
    monkeypatch.setattr(planner, "found", lambda case: searched.append(case.gpus) or found(case))
    shown = READ.shown(**ANSWERS)
    assert set(searched) == {0.0}
    assert {shown["readouts"][name]["text"] for name in ASKED} == {"–"} and not any(
        shown["readouts"][name]["alarm"] for name in ASKED
    )
    assert not any(regime["met"] for regime in shown["regimes"].values())
    assert not shown["parts"]["memories"]["bytes"].any() and not shown["parts"]["times"]["seconds"].any()
    assert set(shown["parts"]["rows"]["label"]) == {""} and shown["documents"]["result"] == "Hand in first."
    assert not lacks(shown["summary"], "TP 4 × PP 2 × CP 1 × EP 8", "ZeRO 1")


def test_the_spec_is_a_table():
    card = {name: text for name, text in READ.readouts(seed="1917").items() if name in GIVEN}
    says = {
        "model": ("137B", "37.5B", "experts"),
        "layers": ("60", "5,120"),
        "attention": ("40", "128", "8"),
        "mlp": ("8", "17,920", "2"),
        "vocabulary": ("65,536",),
        "cluster": ("1,024 × H100 SXM", "8"),
        "one_gpu": ("84.8 GB", "80 GB", "989 TFLOP/s", "bf16"),
        "wires": ("450 GB/s", "50 GB/s"),
        "a_step": ("512", "4,096", "2,097,152"),
        "software": ("Megatron Core 0.15", "ZeRO 0", "1"),
        "the_run": ("12T", "bf16", "Adam"),
    }
    assert set(card) == set(says)
    assert {name: lacks(card[name], *parts) for name, parts in says.items()} == {key: [] for key in says}


def test_what_is_good_enough_for_all_points():
    found = READ.readouts(**preset("Worked below: 1917"))
    assert found["points"] == "30 of 30" and READ.met(**preset("Worked below: 1917")) == {"full_marks"}


def test_each_lost_point_has_its_reason_and_a_lesson_that_exists():
    shown = READ.shown(**preset("Tensor 8 by reflex: 1917"))
    met = {name: regime["text"] for name, regime in shown["regimes"].items() if regime["met"]}
    assert set(met) == {"slower", "memory_missed", "binding_missed", "days_missed"}
    of_pace = ("7 of 10", "1.29×", "2 tensor ranks", "8", "06", "1.2 s", "1.41 s", "122 ms", "arithmetic")
    assert not lacks(met["slower"], *of_pace)
    assert (
        shown["readouts"]["points"]["text"] == "15 of 30"
    )  # 5 + 7 + 3, for a bubble that costs nearly as much
    texts = " ".join(regime["text"] for regime in shown["regimes"].values())
    assert {number[:2] for number in re.findall(r"\b\d\d\b(?=[),;]| and \d\d)", texts)} <= {
        path.name[:2] for path in LESSONS.glob("[0-9]*.md")
    }


@in_one_test(
    "state, lost, words",
    [
        ({"tp": "64"}, "never_starts", ("0 of 5", "tensor", "64", "40 heads")),
        ({"tp": "8", "pp": "32", "cp": "32"}, "never_starts", ("8,192", "1,024 GPUs")),
        ({"tp": "1"}, "never_starts", ("1,024 data ranks", "512 sequences")),
        (
            {"tp": "4", "micro_batch": "8"},
            "never_starts",
            ("micro-batches of 8", "512 sequences", "256 data ranks"),
        ),
        ({"tp": "4", "ep": "16"}, "never_starts", ("16 expert ranks", "8 experts")),
        ({"tp": "1", "pp": "2", "ep": "8"}, "never_starts", ("2 of 5", "87.7 GB", "84.8 GB", "tensor ranks")),
        ({"tp": "8", "ep": "8"}, "slower", ("4 of 10", "1.52×", "2 tensor ranks", "2 stages")),
    ],
)
def test_a_layout_loses_by_one_thing(state, lost, words):
    """On 1917: 40 heads are not to be cut in 64; two stages with ZeRO 1 hold too much; eight tensor ranks
    cost seven points."""
    met = {
        name: regime["text"]
        for name, regime in READ.shown(seed="1917", handed_in="on", **state)["regimes"].items()
        if regime["met"]
    }
    assert set(met) & {"never_starts", "slower", "leaves_the_node"} == {lost} and not lacks(met[lost], *words)


def test_before_it_is_handed_in_a_reader_sees_why_a_layout_cannot_be_built():
    def unsaid(*parts, **state):
        return lacks(READ.shown(**state)["summary"], "cannot be built", *parts)

    assert READ.readouts(tp="1")["schedule"] == "cannot be built"
    assert not unsaid("2,048 data ranks", "1,024 sequences", tp="1")
    assert not unsaid("4,096", "2,048 GPUs", tp="64", pp="64")
    assert not unsaid("Megatron Core 0.15", zero="3", seed="8")
    assert READ.readouts(tp="64", pp="64")["data_ranks"] == "0"
    assert not unsaid("8 expert ranks", "dense", seed="8", ep="8")


def test_the_class_opens_it_on_a_layout_that_can_be_built():
    assert READ.shown()["summary"].endswith("can be handed in.")
    assert READ.readouts()["schedule"] != "cannot be built"


def test_days_can_be_worked_out_again_from_their_reason():
    """6 × (6.42 + 0.30) billion × 200 billion over 64 × 312 TFLOP/s × 0.404 is 11.6 days."""
    words = READ.shown(seed="333", handed_in="on", run_s=str(20 * DAY))["regimes"]["days_missed"]["text"]
    assert not lacks(words, "11.6", "6", "6.42B", "302M", "200B tokens", "40.4 %", "64 peaks", "01")
    assert pytest.approx(11.6, abs=0.05) == 6 * (6.42e9 + 302e6) * 200e9 / (0.404 * 64 * 312e12) / 86400


def test_nothing_is_chosen_for_what_binds_and_nothing_earned():
    found = READ.readouts(seed="8", zero="3", handed_in="on")
    assert found["binding_points"] == "0 of 5"
    assert READ.readouts(seed="8", zero="3", handed_in="on", binds="arithmetic")["binding_points"] == "5 of 5"


def test_tensor_ranks_beyond_the_node_are_named():
    """2026 has 64 heads and nodes of eight."""
    met = READ.shown(seed="2026", handed_in="on", tp="16", pp="4", zero="1")["regimes"]["leaves_the_node"]
    assert met["met"] and not lacks(met["text"], "16 tensor ranks", "node of 8")


def test_the_result_can_be_copied():
    total, points, mine, best = READ.shown(**preset("Worked below: 1917"))["documents"]["result"].splitlines()
    assert not lacks(total, "1917", "30 of 30") and not lacks(points, "pace 10 of 10")
    assert points.count("5 of 5") == 4
    assert mine.split(maxsplit=1)[1] == best.split(maxsplit=1)[1]
    axes = "TP 2 × PP 2 × CP 1 × DP 256 × EP 8"
    assert not lacks(best, axes, "ZeRO 1", "micro-batch 1", "interleaved × 16")


@pytest.mark.parametrize("name", READ.cls.presets)
def test_no_bar_is_longer_than_its_scale_and_longer_is_more(name):
    shown = READ.shown(**preset(name))["parts"]
    for part, size in (("memories", "bytes"), ("times", "seconds")):
        columns = shown[part]
        there = columns[size] > 0
        lengths = (columns["right"] - columns["left"])[there]
        assert not there.any() or columns["right"][there].max() <= 1 + 1e-9
        np.testing.assert_allclose(
            lengths / lengths[:1], columns[size][there] / columns[size][there][:1], rtol=1e-6
        )


def test_before_it_is_handed_in_the_picture_has_the_reader_s_own_words_alone():
    """The mesh, the HBM that the spec gives and the estimate; every bar is empty, and says why."""
    shown = READ.shown(**ANSWERS)["parts"]
    assert shown["mesh"]["axis"] == ["PP 2", "DP 128", "CP 1", "TP 4"]
    assert (shown["memories"]["right"] < -1).all() and (shown["times"]["right"] < -1).all()
    assert shown["estimate"]["share"] == pytest.approx(60 / 84.8, rel=1e-3)
    assert shown["estimate"]["x"] / shown["estimate"]["limit"] == pytest.approx(shown["estimate"]["share"])
    assert shown["blanks"]["text"] == ["?"] * 4 and shown["standing"]["step"].startswith("3. Hand in")
    assert shown["rows"]["title"] == ["yours", "the planner’s"] * 2
    assert (shown["blanks"]["right"] == 1).all()
    assert (READ.shown(**ANSWERS, handed_in="on")["parts"]["blanks"]["right"] < -1).all()


def test_memory_beyond_the_hbm_is_drawn_beyond_its_tick():
    shown = READ.shown(seed="1917", tp="1", pp="2", ep="8", handed_in="on")["parts"]
    total, hbm = shown["memories"]["bytes"][:5].sum(), shown["memories"]["right"][:5].max()
    tick = shown["estimate"]["limit"]
    assert shown["over"]["red"].tolist() == [1, 0] and hbm > tick
    assert hbm / tick == pytest.approx(total / 84.8e9, rel=1e-3)


def test_the_number_of_a_spec_is_typed_and_not_slid_to():
    html = widget_html.figure(READ.cls(), "w-exam")
    field = re.search(r'data-control="seed".*?</div>', html, re.DOTALL)[0]
    assert re.search(r'<input type="range" hidden', field) and 'for="w-exam-seed-typed"' in field
    assert 'data-draw="0">Another spec' in html
