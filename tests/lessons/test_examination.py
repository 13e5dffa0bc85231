"""The page of the examination: what it says of the worked spec in words is what the engine says."""

import re

import numpy as np
import pytest

from course import numbers
from engine.exam import examination
from engine.frameworks.registry import abilities
from tests.cases import in_one_test
from tests.lessons.reading import LESSONS, Lesson

PAGE = Lesson("examination.md")
TEXT = (LESSONS / "examination.md").read_text(encoding="utf-8")
WORKED = examination.spec(1917)


def tried(*layout):
    return examination.by_hand(1917, *layout)


@in_one_test(
    "claim",
    [
        lambda: (WORKED.gpus, WORKED.batch, WORKED.model.experts) == (1024, 512, 8),
        # two stages without tensor ranks are half bubble
        lambda: 0.4 < tried(1, 2, 1, 8).times_s[0][2] / tried(1, 2, 1, 8).step_s[0] < 0.55,
        lambda: not tried(1, 2, 1, 8).fits,
        lambda: 0.4 < examination.shares(tried(1, 4, 1, 8))[2] < 0.65,
        # two tensor ranks without stages would be fast, and miss the HBM by a little
        lambda: not tried(2, 1, 1, 8).fits and tried(2, 1, 1, 8).ratio < 1.06,
        lambda: 1 < examination.used_bytes(tried(2, 1, 1, 8)) / WORKED.hbm_bytes < 1.05,
        # the best has two of each
        lambda: (
            [float(getattr(tried().layouts, axis)[1]) for axis in ("tp", "pp", "cp", "ep")] == [2, 2, 1, 8]
            and tried(2, 2, 1, 8).ratio == pytest.approx(1)
        ),
        # … and that only with experts cut by tensor ranks, beyond the node; no other row cuts them
        lambda: (
            [
                cut
                for cut in ((1, 2), (2, 1), (2, 2), (2, 4), (4, 2), (8, 4))
                if tried(*cut, 1, 8).layouts.expert_tp[0] > 1
            ]
            == [(2, 1)]
        ),
        lambda: tried(2, 1, 1, 8).times_s[0][4] > 3 * tried(2, 2, 1, 8).times_s[0][4],
        # tensor ranks hardly cut the weights, of which most are experts, and share out activations
        lambda: PAGE.value("experts_all / worked.params") > 0.95,
        lambda: 0.9 < PAGE.value("weights(tp=4) / weights(tp=2)") < 1,
        lambda: 0.45 < PAGE.value("activations(tp=4) / activations(tp=2)") < 0.55,
        lambda: PAGE.value("weights(tp=2, pp=4) / weights(tp=2)") < 0.55,
        # data traffic: with two stages as many more seconds as there are fewer passes to hide it
        lambda: np.all(np.diff([examination.shares(tried(t, 2, 1, 8))[5] for t in (2, 4)]) > 0.08),
        lambda: np.argmax(tried(4, 2, 1, 8).times_s[0] - tried(2, 2, 1, 8).times_s[0]) == 5,
        lambda: examination.shares(tried(8, 4, 1, 8))[5] < examination.shares(tried(4, 2, 1, 8))[5] / 2,
        # more stages have more bubble, more tensor ranks thinner matrices and more traffic
        lambda: tried(2, 4, 1, 8).times_s[0][2] > tried(2, 2, 1, 8).times_s[0][2],
        lambda: all(tried(8, 2, 1, 8).times_s[0][i] > tried(2, 2, 1, 8).times_s[0][i] for i in (0, 1)),
        # the in-node link binds, by little
        lambda: tried().binding == 2 and min(tried().losses[1:]) > examination.NEAR * tried().losses[1],
        # the software's stages of ZeRO
        lambda: [abilities()[key].stages for key in ("megatron", "torchtitan")] == [(0, 1), (2, 3)],
        lambda: abilities()["torchtitan"].stages_of_a_pipeline == (3,) and WORKED.software == 1,
        # 8 is a dense model on an H200: its generation's MFU is that of all Hopper GPUs
        lambda: (
            {
                examination.spec(seed).most_mfu
                for seed in range(1, 300)
                if examination.spec(seed).at.gpu.key in ("h100-sxm", "h800", "h200")
            }
            == {examination.spec(8).most_mfu, WORKED.most_mfu}
        ),
        # no pace is left at twice the time
        lambda: examination.pace_points(2.0) == 0 < examination.pace_points(1.9),
        # everything it draws from is named: six kinds of GPU, warm-ups below a hundred
        lambda: len(examination.GPUS) == 6 and "of six kinds" in TEXT and examination.MOST_GPUS == 16384,
    ],
)
def test_what_the_page_says_in_words_holds(claim):
    assert claim()


def test_the_prediction_s_answer_is_the_engine_s():
    [fence] = PAGE.fences
    right = PAGE.value(fence["right"])
    assert fence["answers"][right] == "about a quarter longer"
    assert tried(8, 4, 1, 8).ratio == pytest.approx(1.286, abs=0.005)


def test_every_part_has_its_row_in_the_table_of_points():
    section = TEXT.split("## How points are given")[1].split("\n## ")[0]
    points = [
        float(numbers.evaluate(f"examination.MOST[{i}]"))
        for i in map(int, re.findall(r"#!n examination\.MOST\[(\d)\]", section))
    ]
    assert points == list(examination.MOST) and np.sum(points) == examination.FULL_MARKS
