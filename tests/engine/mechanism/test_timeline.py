"""The event simulator: streams in order, dependencies kept, gaps explained, by hand and over random
graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.mechanism.timeline import Gap, Task, levels, schedule, simulate, uncovered
from tests.cases import in_one_test

# compute: a 0-3, b 3-5; network: x after a 3-7, y after b 7-8, so that y waits for x
SMALL = [
    Task("a", "compute", 3.0),
    Task("b", "compute", 2.0),
    Task("x", "network", 4.0, ("a",)),
    Task("y", "network", 1.0, ("b",)),
]


def test_a_small_case_by_hand():
    line = simulate(SMALL)
    assert line.start_s == (0.0, 3.0, 3.0, 7.0) and line.end_s == (3.0, 5.0, 7.0, 8.0)
    assert line.waits_for == ("", "a", "a", "x")
    assert line.total_s == 8.0 and line.busy_s("network") == 5.0
    assert line.idle("network") == [Gap(0.0, 3.0, "x", "a")] and line.idle("compute") == []
    assert line.exposed("network", "compute") == [Gap(5.0, 7.0, "x"), Gap(7.0, 8.0, "y")]
    assert line.exposed_s("network", "compute") == 3.0 and line.exposed_s("compute", "network") == 3.0


def test_a_stream_keeps_its_order_even_where_a_later_task_could_run():
    line = simulate(
        [Task("slow", "compute", 5.0), Task("late", "network", 1.0, ("slow",)), Task("free", "network", 1.0)]
    )
    assert line.starts("free") == 6.0 and line.waits_for[2] == "late"


def test_a_task_may_depend_on_one_that_is_issued_later():
    line = simulate([Task("b", "one", 1.0, ("a",)), Task("a", "two", 2.0)])
    assert line.starts("b") == 2.0


def test_what_a_task_gives_travels_to_another_stream():
    """A message of 2 s: b, on the other stream, starts at 5; c, on the same, at 3, and in place of b's wait
    nothing."""
    line = simulate(
        [Task("a", "one", 3.0, lag_s=2.0), Task("c", "one", 1.0, ("a",)), Task("b", "two", 1.0, ("a",))]
    )
    assert line.start_s == (0.0, 3.0, 5.0) and line.waits_for == ("", "a", "a")


def test_the_rule_on_plain_lists_is_the_small_case_again():
    start_s, end_s, waits_for = schedule(2, [0, 0, 1, 1], [3.0, 2.0, 4.0, 1.0], [0.0] * 4, [[], [], [0], [1]])
    assert (start_s, end_s, waits_for) == ([0, 3, 3, 7], [3, 5, 7, 8], [-1, 0, 0, 2])
    assert uncovered([0, 0, 1, 1], start_s, end_s, 1, 0) == ([5, 7], [7, 8], [2, 3])
    assert uncovered([0, 0, 1, 1], start_s, end_s, 0, 1) == ([0], [3], [0])


def test_a_stretch_between_two_covers_is_uncovered():
    """The wire works from 0 to 10; arithmetic from 1 to 3 and from 5 to 6."""
    found = uncovered([1, 0, 0], [0.0, 1.0, 5.0], [10.0, 3.0, 6.0], 1, 0)
    assert found == ([0, 3, 6], [1, 5, 10], [0, 0, 0])


def test_columns_are_of_one_length():
    columns = simulate(SMALL).columns()
    assert {len(column) for column in columns.values()} == {4} and columns["label"] == ["a", "b", "x", "y"]


@in_one_test(
    "tasks, said",
    [
        ([Task("a", "s", 1.0), Task("a", "s", 1.0)], "names of their own"),
        ([Task("a", "s", 1.0, ("z",))], "'z'"),
        ([Task("a", "s", 1.0, ("b",)), Task("b", "t", 1.0, ("a",))], "circle"),
        ([Task("a", "s", -1.0)], "duration_s"),
        ([Task("a", "s", 1.0, ("b",)), Task("b", "s", 1.0)], "circle"),
        ([Task("a", "s", float("nan"))], "duration_s"),
        ([Task("a", "s", 1.0, lag_s=-1.0)], "lag_s"),
    ],
)
def test_bad_tasks_are_refused(tasks, said):
    with pytest.raises(ValueError, match=said):
        simulate(tasks)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), count=st.integers(1, 30))
def test_every_wait_has_its_reason(data, count):
    """Nothing starts before what it needs; what it waited for ended at that very moment; order kept on each
    stream."""
    tasks = [
        Task(
            str(i),
            data.draw(st.sampled_from("abc")),
            data.draw(st.integers(0, 9)) * 1.0,
            tuple(map(str, data.draw(st.lists(st.integers(0, i - 1), max_size=3)))) if i else (),
        )
        for i in range(count)
    ]
    line, last = simulate(tasks), {}
    for task, start, end, waited in zip(tasks, line.start_s, line.end_s, line.waits_for):
        needed = [line.ends(name) for name in task.after] + [last.get(task.stream, 0.0)]
        assert start == max(needed) and end == start + task.duration_s
        assert line.ends(waited) == start if waited else start == 0.0
        last[task.stream] = end
    for stream in line.streams:
        for behind in set(line.streams) - {stream}:
            times = np.unique([*line.start_s, *line.end_s])
            works, hides = (
                np.any(
                    [(span.start_s <= times[:-1]) & (times[1:] <= span.end_s) for span in line.spans(name)],
                    axis=0,
                )
                for name in (stream, behind)
            )
            assert line.exposed_s(stream, behind) == np.sum(np.diff(times) * (works & ~hides))
        idle_s = sum(gap.end_s - gap.start_s for gap in line.idle(stream))
        assert line.busy_s(stream) + idle_s == max((s.end_s for s in line.spans(stream)), default=0.0)


def test_levels_add_up_what_changes_at_one_time():
    times, level = levels([(2.0, -3.0), (0.0, 5.0), (2.0, 1.0), (1.0, 4.0)])
    assert np.array_equal(times, [0.0, 1.0, 2.0]) and np.array_equal(level, [5.0, 9.0, 7.0])
