"""The fence for traces: lanes of recorded and executed profiles, their names and times, and where they come
from."""

import itertools
import re

import pytest
from markdown import Markdown

from course import lessons
from course.drawing import lanes, looks, text
from course.drawing.picture import NARROW, WIDE
from course.fences import trace as fence
from engine.base import units
from engine.executed import pipeline_schedules, profile
from engine.executed.profile import Event, Lane, Profile
from engine.one_gpu import profiles, recordings

PIPELINE = "executed: 1f1b\nstages: 4\nmicro_batches: 8\nforward_ms: 10\nbackward_ms: 20\nmessage_ms: 2"
WHOLE = [f"recorded: {name}" for name in profiles.recorded_names()] + [PIPELINE]
SHOWN = [
    re.sub(r"^(title|caption): .*?(?=^\w|\Z)", "", fenced.source, flags=re.MULTILINE | re.DOTALL).strip()
    for page in lessons.numbered()
    for fenced in page.fences
    if fenced.kind == "trace"
]
FORMS = list(itertools.product(sorted({*WHOLE, *SHOWN}), (WIDE, NARROW)))


def asked(lines: str):
    source = f"{lines}\ntitle: A title\ncaption: A caption."
    options = fence.base.options(source, fence.FIELDS)
    return fence.excerpt(fence.read(options, source), options, source)


@pytest.mark.parametrize(("lines", "width"), FORMS)
def test_a_trace_can_be_read(lines, width):
    shown, window = asked(lines)
    picture = lanes.draw(shown, window, "A title", width)
    for one, other in itertools.combinations(picture.labels, 2):
        assert not one.meets(other), f"{one.words!r} lies on {other.words!r}"
    assert all(label.left >= -0.5 and label.right <= width + 0.5 for label in picture.labels)
    assert all(mark.left >= -0.01 and mark.right <= width + 0.8 for mark in picture.marks)
    told = " ".join(picture.told)
    for label in picture.labels:
        beginning = re.sub(r"^\d+ ", "", label.words).rstrip("…")
        assert beginning in told or re.fullmatch(r"[\d.,]+( \S?s)?|0", label.words), label.words


@pytest.mark.parametrize(("lines", "width"), FORMS)
def test_each_event_is_drawn_at_its_time(lines, width):
    shown, (first_s, last_s) = asked(lines)
    picture = lanes.draw(shown, (first_s, last_s), "A title", width)
    events = [event for lane in shown.lanes for event in lane.events]
    assert len(picture.marks) == len(events) > 0
    scale = width / (last_s - first_s)
    for mark, event in zip(picture.marks, events, strict=True):
        assert mark.left == pytest.approx((max(event.start_s, first_s) - first_s) * scale)
        assert mark.about["name"] == event.name
        if mark.right - mark.left > 0.76:
            assert mark.right == pytest.approx((min(event.end_s, last_s) - first_s) * scale)


@pytest.mark.parametrize("lines", sorted({*WHOLE, *SHOWN}))
def test_a_number_in_a_box_is_that_of_its_name(lines):
    shown, window = asked(lines)
    numbers = lanes.numbered(shown, window)
    assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))
    for width in (WIDE, NARROW):
        picture = lanes.draw(shown, window, "A title", width)
        for label in picture.labels:
            if label.on and (number := re.match(r"\d+(?= |$)", label.words)):
                mark = next(
                    mark
                    for mark in picture.marks
                    if mark.left <= label.left
                    and label.right <= mark.right
                    and mark.top < label.y < mark.bottom
                )
                assert numbers[mark.about["name"]] == int(number[0])


def test_totals_are_sums_of_the_events():
    shown = Profile((Lane("a", (Event("x", 0, 2.0), Event("y", 2, 3.0), Event("x", 4, 5.0))),), "made up")
    assert lanes.totals(shown, {"x": 1, "y": 2}) == [(1, "x", 2, "3 s"), (2, "y", 1, "1 s")]


def test_a_long_name_is_cut_as_a_profiler_cuts_it():
    assert text.shortened("aten::mm", 100) == "aten::mm"
    cut = text.shortened("autograd::engine::evaluate_function: MmBackward0", 80)
    assert cut.endswith("…") and text.width(cut) <= 80
    assert text.shortened("autograd::engine", 20) == ""


def test_looks_of_a_trace_are_looks():
    names = ("ncclDevKernel_X", "c10d::allreduce_", "cudaLaunchKernel", "backward-compute", "aten::mm")
    assert {lanes.look(Event(name, 0, 1), works) for name in names for works in (True, False)} <= set(
        looks.LOOKS
    )


def test_who_works_itself_is_told_from_who_calls():
    lane = Lane("a", (Event("f", 0, 10), Event("g", 1, 9, 1), Event("h", 2, 3, 2), Event("i", 11, 12)))
    assert [works for _, works in lanes.workers(lane)] == [False, True, True, True]


# -- the executed pipeline -----------------------------------------------------------------------------------
@pytest.mark.parametrize("key", profile.SCHEDULES)
def test_an_executed_trace_has_the_schedules_passes(key):
    shown = profile.pipeline(key, 4, 8, 1.0, 2.0, 0.25)
    run = pipeline_schedules.by_key(key, 4, 8, message_s=0.25)
    assert [lane.name for lane in shown.lanes[:2]] == ["stage 1, compute stream", "stage 1, NCCL stream"]
    for stage in range(4):
        mine = run["stage"] == stage
        drawn = [(event.start_s, event.end_s) for event in shown.lanes[2 * stage].events]
        assert drawn == sorted(zip(run["start_s"][mine], run["end_s"][mine], strict=True))
    assert shown.end_s == pytest.approx(run["total_s"], abs=0.25)


def test_a_stage_never_computes_before_its_message_is_there():
    shown = profile.pipeline("1f1b", 4, 8, 1.0, 2.0, 0.25)
    for stage in range(4):
        passes, messages = shown.lanes[2 * stage].events, shown.lanes[2 * stage + 1].events
        assert all(before.end_s <= after.start_s for before, after in itertools.pairwise(messages))
        assert all(after.start_s >= before.end_s - 1e-9 for before, after in itertools.pairwise(passes))
        waits = (
            sum(after.start_s - before.end_s for before, after in itertools.pairwise(passes))
            + passes[0].start_s
        )
        covered = sum(
            max(0.0, min(one.end_s, after_s) - max(one.start_s, before_s))
            for one in messages
            for before_s, after_s in [(0.0, passes[0].start_s)]
            + [(before.end_s, after.start_s) for before, after in itertools.pairwise(passes)]
        )
        assert covered == pytest.approx(waits), "what a stage waits for is a kernel on its NCCL stream"


# -- the recorded ones ---------------------------------------------------------------------------------------
def test_recorded_traces_say_that_they_were_recorded():
    assert profiles.recorded_names() == ["ddp_step", "linear_step"]
    for name in profiles.recorded_names():
        shown = profiles.recorded(name)
        assert shown.source.startswith(f"recorded with {recordings.made_with(name)} on ")
        assert shown.source.endswith(f"(record/{name}.py)")


def test_nesting_is_read_off_the_times():
    rows = [["a", 0, 10], ["b", 1, 4], ["c", 2, 1], ["d", 6, 2], ["e", 12, 1]]
    assert [event.depth for event in profiles.nested(rows)] == [0, 1, 2, 1, 0]


def test_what_a_recorded_step_shows_is_in_it():
    """The lesson's claims: the first AllReduce runs beside the backward pass, the optimizer begins after the
    last."""
    cpu, gloo = profiles.recorded("ddp_step").lanes
    assert (cpu.name, gloo.name) == ("CPU thread", "gloo thread")
    backward = [event for event in cpu.events if "Backward0" in event.name]
    first, *_, last = gloo.events
    assert any(first.start_s < event.start_s < first.end_s for event in backward)
    update = next(event for event in cpu.events if event.name.startswith("Optimizer.step"))
    assert last.start_s > backward[-1].end_s and update.start_s > last.end_s


def test_composite_calls_of_a_linear_layer_are_nested():
    (cpu,) = profiles.recorded("linear_step").lanes
    assert [event.name for event in cpu.events[:2]] == ["aten::linear", "aten::t"]
    named = {event.name: event for event in reversed(cpu.events)}
    assert named["aten::addmm"].depth == named["aten::t"].depth == named["aten::linear"].depth + 1


def test_executed_data_parallel_steps_are_those_that_the_figure_simulates():
    """Each in two lanes: the passes leave no gap, and the last AllReduce ends the step."""
    shown = profile.data_parallel_steps([16384, 8192])
    for at, tokens in enumerate((16384, 8192)):
        passes, sums = shown.lanes[2 * at].events, shown.lanes[2 * at + 1].events
        assert all(before.end_s == after.start_s for before, after in itertools.pairwise(passes))
        assert all(before.end_s <= after.start_s for before, after in itertools.pairwise(sums))
        work_s = 6 * 8.03e9 * tokens / 643.9e12
        assert passes[-1].end_s == pytest.approx(work_s, rel=0.01)
        wire_s = 2 * 255 / 256 * 16.06e9 / 50e9 + len(sums) * 2 * 255 * 2.7e-6
        assert sum(each.end_s - each.start_s for each in sums) == pytest.approx(wire_s, rel=0.01)


# -- the fence -----------------------------------------------------------------------------------------------
END = "\ntitle: t\ncaption: c"
WRONG = {
    "no source": ("title: t\ncaption: c", "exactly one of recorded, measured, executed", 0),
    "two sources": ("recorded: ddp_step\nexecuted: 1f1b" + END, "exactly one of", 0),
    "an unknown recording": ("recorded: nothing" + END, "recorded must be one of", 0),
    "a recording that is no trace": ("recorded: dispatch" + END, "recorded must be one of", 0),
    "a measurement that is not there": ("measured: launches" + END, "no GPU has been measured", 0),
    "an unknown schedule": (PIPELINE.replace("1f1b", "fast") + END, "key must be one of", 0),
    "a job for a recording": (
        "recorded: ddp_step\nstages: 4" + END,
        "'stages' is for an executed schedule",
        1,
    ),
    "a missing number": ("executed: 1f1b\nstages: 4" + END, "needs a line 'micro_batches: …'", 0),
    "a pipeline's size for data parallelism": (
        "executed: ddp\ntokens: [8192]\nstages: 4" + END,
        "'stages' is for an executed schedule",
        2,
    ),
    "no number": (PIPELINE.replace("10", "ten") + END, "forward_ms must be a number, got 'ten'", 3),
    "a number that is not finite": (PIPELINE.replace("10", "inf") + END, "forward_ms must be a number", 3),
    "half a stage": (PIPELINE.replace("4", "4.5") + END, "stages must be a whole number", 1),
    "too many stages": (PIPELINE.replace("4", "99") + END, "stages must be", 0),
    "an excerpt beyond the end": ("recorded: ddp_step\nto_ms: 99999" + END, "must lie in order between", 1),
    "an excerpt turned round": ("recorded: ddp_step\nfrom_ms: 30\nto_ms: 10" + END, "must lie in order", 2),
    "an unknown lane": (
        "recorded: ddp_step\nlanes: [3]" + END,
        "lanes must be a list of numbers from 1 to 2",
        1,
    ),
    "lanes that are no list": ("recorded: ddp_step\nlanes: 1" + END, "lanes must be a list", 1),
    "an unknown key": ("recorded: ddp_step\ncolour: red" + END, "unknown key 'colour'", 1),
    "no caption": ("recorded: ddp_step\ntitle: t", "needs a line 'caption: …'", 0),
}


def html(lines: str) -> str:
    return Markdown(extensions=["course.fences"]).convert(f"``` trace\n{lines}\n```\n")


@pytest.mark.parametrize("what", WRONG)
def test_a_faulty_fence_is_refused_with_its_place(what, tmp_path, monkeypatch):
    lines, words, line = WRONG[what]
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "09-x.md").write_text(f"# A page\n\n``` trace\n{lines}\n```\n", encoding="utf-8")
    monkeypatch.setattr(lessons.fault, "__defaults__", (tmp_path / "lessons",))
    with pytest.raises(lessons.LessonFault) as stopped:
        html(lines)
    place = re.match(r"lessons/09-x\.md:(\d+): ", str(stopped.value))
    assert place and words in str(stopped.value), stopped.value
    assert int(place[1]) == 4 + line, stopped.value


def test_the_caption_says_where_a_trace_comes_from():
    assert "Drawn from the executed schedule, not recorded." in html(PIPELINE + END)
    recorded = html("recorded: ddp_step" + END)
    assert f"Recorded with {recordings.made_with('ddp_step')} on one of 2 processes" in recorded


def test_names_without_room_stand_below_the_picture_in_full():
    found = html(PIPELINE + END)
    names = re.findall(r'<li value="(\d+)"><code>([^<]+)</code> <span>([^<]+)</span>', found)
    assert [name for _, name, _ in names][-1] == profile.SEND_RECV.replace("<", "&lt;").replace(">", "&gt;")
    took = {name: words for _, name, words in names}
    assert took["backward-compute"] == f"{units.human(32 * 0.02, 'seconds')}, 32 times"


def test_events_alike_that_follow_one_another_are_told_together():
    shown, window = asked("executed: ddp\ntokens: [16384, 8192]")
    told = lanes.draw(shown, window, "A title", WIDE).told
    counted = [
        lane for lane in shown.lanes if sum(event.name == "backward of a layer" for event in lane.events) > 30
    ]
    assert counted and all(len(line) < 700 for line in told[: len(shown.lanes)])
    for lane in counted:
        [line] = [line for line in told if line.startswith(lane.name)]
        times = re.findall(r"(\d+) times backward of a layer", line)
        alone = len(re.findall(r"(?<!times )backward of a layer", line))
        assert sum(map(int, times)) + alone == sum(e.name == "backward of a layer" for e in lane.events)
