"""A launch costs the same in every lesson: what the CPU takes to issue it and the GPU's gap are two
quantities, kept once, and the longer lane sets the pace."""

import html
import re

import pytest

from engine import catalog
from engine.calibration import constants, launch_costs
from engine.mechanism import fusion
from engine.mechanism.matmul import stream_s
from engine.mechanism.shape import shape
from engine.one_gpu import capture, dispatch, own_timings
from engine.serving import inference
from engine.step import layout
from tests.lessons.reading import LESSONS, Lesson
from widgets.gpu.eager_overhead import EagerOverhead
from widgets.gpu.fusion import Fusion
from widgets.gpu.launch_timeline import LaunchTimeline

THAT_COUNT_LAUNCHES = (
    "13-pytorch-internals",
    "16-custom-kernels-and-fusion",
    "18-torch-compile",
    "19-cuda-graphs",
)


def test_figures_open_on_the_same_time_to_issue():
    found = {Fusion().launch, EagerOverhead().issue_s, LaunchTimeline().issue}
    assert found == {launch_costs.ISSUE_S}


@pytest.mark.parametrize("name", THAT_COUNT_LAUNCHES)
def test_each_lesson_takes_it_from_there(name):
    text = Lesson(f"{name}.md").whole
    assert "launch_costs.ISSUE_S" in text
    assert "DEFAULT.launch_s" not in text


def test_nothing_else_hands_them_on():
    """A module that imported the constants by name would be a second place to ask for them."""
    constants_of = {name for name in vars(launch_costs) if name.endswith("_S")}
    assert {"ISSUE_S", "SHORTEST_S", "SHORT_KERNEL_S", "STREAM_GAP_S", "GRAPH_GAP_S"} < constants_of
    for room in (capture, dispatch, fusion, own_timings, inference):
        assert not constants_of & set(vars(room)), room.__name__


def test_a_step_charges_a_short_kernel_and_the_gap_behind_it():
    """2.9 µs and the stream's gap of 0.9; a graph's of 0.5 up to the largest step that a server captures."""
    charged_s = constants.DEFAULT.launch_s
    assert charged_s == launch_costs.SHORT_KERNEL_S + launch_costs.STREAM_GAP_S == 3.8e-6
    assert (
        launch_costs.served_s(charged_s, 64) == launch_costs.served_s(charged_s, 512) == pytest.approx(3.4e-6)
    )
    assert launch_costs.served_s(charged_s, 513) == 3.8e-6


def test_a_decode_step_is_charged_a_graph_s_gap_and_a_long_prompt_a_stream_s():
    """Four kernels in each of 80 layers: what one token takes beside its bytes."""
    size, chip = shape(catalog.model("llama3-70b")), layout.machine(catalog.gpu("h100-sxm")).chip
    moved_s = [80 * stream_s(inference.moved_bytes(size, rows, 8.0), chip) for rows in (1.0, 2048.0)]
    found_s = [inference.other_s(size, rows, 8.0, chip) for rows in (1.0, 2048.0)]
    assert found_s[0] - moved_s[0] == pytest.approx(4 * 80 * 3.4e-6)
    assert found_s[1] - moved_s[1] == pytest.approx(4 * 80 * 3.8e-6)


def test_it_lies_among_what_others_measured():
    """Five of eight readings of NVIDIA's log are below 13 µs; a whole pass of 1B is 12.3 µs a kernel."""
    low = [seconds for seconds in dispatch.cited()["dgxc"]["seconds"] if seconds < 13e-6]
    assert len(low) == 5 and min(low) < launch_costs.ISSUE_S < max(low)
    assert 8.1e-3 / capture.kernels_per_step("eager", 16) == pytest.approx(launch_costs.ISSUE_S, rel=0.05)


def test_issue_and_gap_are_never_added():
    """The GPU's gap is a tenth of the time to issue: 40 kernels of 8B wait 480 µs for the CPU, not 516."""
    assert launch_costs.step_s(40 * launch_costs.ISSUE_S, 40 * launch_costs.STREAM_GAP_S) == 40 * 12e-6
    assert launch_costs.step_s(1e-3, 2e-3) == 2e-3


def test_lesson_19_says_which_time_of_a_short_kernel_is_used_for_what():
    """Two constants and two checks, in a stream and in a graph; the sheet of numbers leads there."""
    lesson = Lesson("19-cuda-graphs.md")
    [table] = [html.unescape(each) for each in lesson.tables() if "A short kernel and its gap" in each]
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    ]
    by_name = {row[0].partition(",")[0].replace("’", "'"): row[1:3] for row in rows}
    assert by_name["NVIDIA's kernel"] == ["3.8", "3.4"] and by_name["assumed"] == ["2.9", "2.5"]
    in_stream, in_graph = map(float, by_name["the least addition"])
    assert in_graph < in_stream < 2.9 < float(by_name["PyTorch's norm of few rows"][0])
    sheet = (LESSONS / "numbers.md").read_text(encoding="utf-8")
    assert (
        "(19-cuda-graphs.md#four-times-of-a-short-kernel)" in sheet
        and "at least | `#!n machine.chip.launch_s" not in sheet
    )
