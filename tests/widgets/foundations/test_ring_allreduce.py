"""The ring AllReduce's picture: numbers of the executed collective, bytes of the formula, two ways to break
it."""

import numpy as np
import pytest

from engine.executed import ranks, ranks_operations
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.ring_allreduce import BARS, MOST, PHASES, RingAllreduce

shown = Reader(RingAllreduce).shown


def grid(part, column, count):
    """The column of the cells as [rank, chunk], of those that there are."""
    return np.reshape(part[column], (MOST, MOST))[:count, :count]


def texts(part, column="text"):
    return [str(text) for text in part[column] if str(text)]


def test_the_default_by_hand():
    """4 ranks, 1 GB, halfway through the second step: each link has carried a chunk and a half of 250 MB."""
    found = shown()
    assert found["readouts"]["busiest"]["text"] == found["readouts"]["idlest"]["text"] == "375 MB"
    assert found["readouts"]["least"]["text"] == "1.5 GB"
    assert found["readouts"]["takes"]["text"] == "3.34 ms"  # 1.5 GB over 450 GB/s, and 6 · 0.757 µs
    assert found["readouts"]["starting"]["text"] == "0.136 %"  # 4.54 µs of 3.338 ms
    assert found["ends"]["play"] == 6
    assert not any(regime["met"] for regime in found["regimes"].values())
    hub = found["parts"]["hub"]
    assert hub["total"] == "1.5 GB" and hub["line"] == hub["short"] == ""
    assert not lacks(hub["of"], "1 GB") and not lacks(hub["of_short"], "6 steps")
    assert not lacks(hub["takes"], "6 steps", "3.34 ms") and not lacks(hub["now"], "step 2 of 6")
    assert not lacks(hub["so_far"], "375 MB")
    assert not lacks(hub["below"], "ReduceScatter", "step 2 of 6", "375 MB")


def test_the_numbers_are_those_of_the_executed_run():
    run = ranks_operations.all_reduce(ranks.example(5, 5), "ring", 5)
    for state in range(9):
        cells = shown(ranks=5, play=state)["parts"]["cells"]
        assert (grid(cells, "value", 5) == run.values[state]).all()
        assert np.allclose(grid(cells, "share", 5) * 5, run.contributions[state])


def test_what_travels_is_on_its_way_from_rank_to_rank():
    """In the second step of four ranks, rank 1 sends to rank 2 the sum of its own number and rank 0's."""
    mine = ranks.example(4, 4)
    messages = shown(play=1.5)["parts"]["messages"]
    assert messages["seen"].tolist() == [1] * 4 + [0] * 12
    assert sorted(texts(messages)) == sorted(
        f"+{mine[(rank - 1) % 4, (rank - 3) % 4] + mine[(rank - 2) % 4, (rank - 3) % 4]}" for rank in range(4)
    )
    middle = (messages["start"] + messages["end"]) / 2
    assert np.allclose(middle[:4], np.pi / 2 - (np.arange(4) - 0.5) * np.pi / 2), "halfway between two ranks"


def test_nothing_travels_between_two_steps_and_what_came_last_is_marked():
    found = shown(play=2)["parts"]
    assert not found["messages"]["seen"].any() and not texts(found["messages"])
    assert grid(found["cells"], "fresh", 4).sum() == 4


def test_messages_are_added_in_the_first_phase_and_copied_in_the_second():
    assert all(text.startswith("+") for text in texts(shown(play=2.5)["parts"]["messages"]))
    assert not any(text.startswith("+") for text in texts(shown(play=3.5)["parts"]["messages"]))


def test_the_phases_are_named():
    below = [shown(play=at)["parts"]["hub"]["below"] for at in (0, 0.1, 3, 3.1, 5.9, 6, 30)]
    found = [text.partition(",")[0] for text in below]
    assert found == [PHASES[i] for i in (0, 1, 1, 2, 2, 3, 3)]


@in_one_test("count", range(2, 17))
def test_at_the_end_each_link_has_carried_what_the_formula_says_and_each_rank_has_all(count):
    found = shown(ranks=count, play=30)
    links = found["parts"]["links"]
    assert np.allclose(links["carried_bytes"][:count], 2 * (count - 1) / count * 1e9)
    assert found["readouts"]["busiest"] == found["readouts"]["idlest"] == found["readouts"]["least"]
    cells = found["parts"]["cells"]
    assert (grid(cells, "share", count) == 1).all() and (grid(cells, "width", count) == 2.5).all()
    assert (grid(cells, "value", count) == ranks.example(count, count).sum(axis=0)).all()
    assert found["ends"]["play"] == 2 * (count - 1)


def test_bytes_count_up_in_proportion_to_the_step():
    carried = [shown(play=at)["parts"]["links"]["carried_bytes"][0] for at in (0, 0.5, 1, 6)]
    assert np.allclose(carried, [0, 125e6, 250e6, 1.5e9])


def test_a_gauge_is_full_at_the_end_and_never_past_it():
    links = shown(play=6)["parts"]["links"]
    assert np.allclose(links["start"][:4], links["whole_start"][:4])
    links = shown(ranks=8, cut="one", play=14)["parts"]["links"]
    assert links["carried_bytes"].max() == 2e9 and (links["start"] >= links["whole_start"] - 1e-12).all()
    assert (
        links["reached"].max() == pytest.approx(BARS[1])
        and links["reached"][1:8].min() < links["reached"].max()
    )


def test_every_number_is_written_up_to_ten_ranks_and_beyond_those_of_the_followed_chunk():
    assert [len(texts(shown(ranks=n, play=0)["parts"]["numbers"])) for n in (2, 6, 7, 10, 11)] == [
        4,
        36,
        49,
        100,
        0,
    ]
    assert [len(texts(shown(ranks=n, play=0)["parts"]["numbers"], "narrow")) for n in (4, 5, 8)] == [
        16,
        5,
        64,
    ]
    for count, written in ((10, 0), (11, 11), (16, 16)):
        assert len(texts(shown(ranks=count, play=0, follow=3)["parts"]["followed_numbers"])) == written
    followed = shown(ranks=16, play=0, follow=3)["parts"]["followed_numbers"]
    assert texts(followed) == [str(value) for value in ranks.example(16, 16)[:, 3]]


def test_a_ring_up_to_six_ranks_and_a_grid_beyond():
    for count in (2, 6, 7, 16):
        parts, ring = shown(ranks=count)["parts"], count <= 6
        for part, columns in (("cells", "fill"), ("links", "seen"), ("messages", "seen")):
            assert (
                parts[part][f"ring_{columns}"].any() == ring and parts[part][f"grid_{columns}"].any() != ring
            )
        assert bool(texts(parts["columns"])) != ring and bool(texts(parts["heads"])) != ring


def test_the_followed_chunk_is_outlined():
    cells = shown(ranks=8, follow=5)["parts"]["cells"]
    assert (grid(cells, "rim", 8)[:, 5] == 2).all() and (grid(cells, "rim", 8)[:, :5] < 2).all()
    messages = shown(ranks=8, follow=5)["parts"]["messages"]
    assert (messages["rim"][:8] == 2).sum() == 1
    beyond = shown(ranks=8, cut="one", follow=5)["parts"]["cells"]
    assert (grid(beyond, "rim", 8)[:, 0] == 2).all(), "the last chunk there is"


def test_messages_of_a_grid_go_down_from_row_to_row():
    """Halfway through a step each stands on the border of the sender's row and its own."""
    parts = shown(ranks=8, play=1.5)["parts"]
    cells, messages = parts["cells"], parts["messages"]
    middle = (messages["bottom"] + messages["top"]) / 2
    bottoms, tops = (grid(cells, side, 8)[:, 0] for side in ("bottom", "top"))
    assert np.allclose(middle[1:8], (bottoms[:7] + tops[1:]) / 2)


def test_the_data_says_who_sends_what_to_whom():
    """Step 2 of 4 ranks: rank 1 hands rank 2 the sum of two numbers of chunk 3, a quarter of a gigabyte."""
    run = ranks_operations.all_reduce(ranks.example(4, 4), "ring", 4)
    for play in (1.5, 2):
        data = shown(play=play)["parts"]["messages_of_the_step"]
        assert [str(text) for text in data["step"]] == ["2"] * 4 + [""] * 12
        assert [str(text) for text in data["from_rank"][:4]] == ["3", "0", "1", "2"]
        for move in (move for move in run.log if move.step == 1):
            assert str(data["chunk"][move.destination]) == str(move.start)
            assert str(data["value"][move.destination]) == str(run.carried(move)[0])
        assert (data["message_bytes"][:4] == 250e6).all() and not data["message_bytes"][4:].any()
    assert not texts(shown(play=0)["parts"]["messages_of_the_step"], "chunk")
    assert (shown(play=2)["parts"]["messages_of_the_step"]["link_carried_bytes"][:4] == 500e6).all()


def test_with_fewer_chunks_links_carry_unlike_amounts():
    """8 ranks, 1 GB in one piece: six links carry it twice, the two next to where it starts and ends once."""
    found = shown(ranks=8, cut="one", play=14)
    carried = sorted(found["parts"]["links"]["carried_bytes"][:8] / 1e9)
    assert carried == [1, 1, 2, 2, 2, 2, 2, 2]
    assert found["readouts"]["busiest"]["text"] == "2 GB"
    assert found["readouts"]["idlest"] == {"text": "1 GB", "alarm": True}
    assert not lacks(found["regimes"]["idle_links"]["text"], "2 GB", "1 GB")


def test_fewer_chunks_than_ranks_leave_links_idle():
    for state, met in (({}, False), ({"ranks": 8}, False), ({"cut": "half"}, True), ({"cut": "one"}, True)):
        assert bool(shown(**state)["regimes"]["idle_links"]["met"]) is met, state
    found = shown(ranks=8, cut="one", play=3.5)
    assert found["readouts"]["busy"] == {"text": "1 of 8", "alarm": True}
    assert found["parts"]["messages"]["seen"].sum() == 1
    # 14 steps of a gigabyte at 450 GB/s and 0.757 µs, against 1.75 GB and 14 starts
    assert "31.1 ms instead of 3.9 ms" in found["regimes"]["idle_links"]["text"]


def test_a_small_buffer_meets_the_latency_wall():
    """At 4 ranks the start-ups are half of the time where S = 4 · 450 GB/s · 0.757 µs = 1.36 MB."""
    assert not shown(size=1.4e6)["regimes"]["latency"]["met"]
    assert shown(size=1.3e6)["regimes"]["latency"]["met"]


def test_presets_are_what_they_say():
    states = {}
    for name, state in RingAllreduce.presets.items():
        widget = RingAllreduce()
        widget.set_state(state)
        states[name] = widget
    assert [states[name].ranks for name in ("4 ranks", "8 GPUs of a node", "16 ranks")] == [4, 8, 16]
    half, small = states["After the ReduceScatter"], states["64 kB"]
    assert small.size == 64e3 and half.moment() == half.steps() / 2
    assert small.shown()["regimes"]["latency"]["met"]
