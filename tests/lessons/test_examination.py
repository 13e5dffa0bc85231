"""The page of the examination: what it says of the worked spec in words is what the engine says."""

import re

import numpy as np
import pytest

from course import lessons, numbers
from engine.course import examination
from tests.lessons.reading import LESSONS

TEXT = (LESSONS / "examination.md").read_text(encoding="utf-8")
WORKED = examination.spec(1917)


def tried(*layout):
    return examination.by_hand(1917, *layout)


@pytest.mark.parametrize(
    "claim",
    [
        lambda: (WORKED.gpus, WORKED.batch, WORKED.model.experts) == (1024, 512, 8),
        # two stages without tensor ranks are half bubble
        lambda: 0.45 < tried(1, 2, 1, 8, 2).times_s[0][2] / tried(1, 2, 1, 8, 2).step_s[0] < 0.55,
        # from two tensor ranks and two stages on, any is good
        lambda: all(
            examination.pace_points(tried(tp, pp, 1, 8).ratio) >= 8
            for tp, pp in ((2, 2), (4, 2), (8, 2), (8, 4))
        ),
        # the best is tensor 4 and two stages with DualPipe, which runs AllToAlls beside arithmetic; tensor 2
        # is as good
        lambda: (
            [float(getattr(tried().layouts, axis)[1]) for axis in ("tp", "pp", "cp", "ep")] == [4, 2, 1, 8]
            and tried(2, 2, 1, 8).ratio < 1.005
        ),
        lambda: tried(4, 2, 1, 8).times_s[0][4] == 0 < tried(2, 2, 1, 8).times_s[0][4],
        # the in-node link binds, not the network
        lambda: tried().binding == 2 and tried().losses[1] > tried().losses[2],
        # no pace is left at twice the time
        lambda: examination.pace_points(2.0) == 0 < examination.pace_points(1.9),
        # everything it draws from is named: eight kinds of GPU, warm-ups below a hundred
        lambda: len(examination.GPUS) == 8 and "of eight kinds" in TEXT and examination.MOST_GPUS == 16384,
    ],
)
def test_what_the_page_says_in_words_holds(claim):
    assert claim()


def test_the_prediction_s_answer_is_the_engine_s():
    [fence] = lessons.read("examination.md").options("widget")
    right = eval(fence["right"], numbers.namespace())
    assert fence["answers"][right] == "about a fifth longer"
    assert tried(8, 4, 1, 8).ratio == pytest.approx(1.224, abs=0.005)


def test_every_part_has_its_row_in_the_table_of_points():
    section = TEXT.split("## How points are given")[1].split("\n## ")[0]
    points = [
        float(numbers.evaluate(f"examination.MOST[{i}]"))
        for i in map(int, re.findall(r"#!n examination\.MOST\[(\d)\]", section))
    ]
    assert points == list(examination.MOST) and np.sum(points) == examination.FULL_MARKS
