"""The AllReduce on two levels: sums of the executed collective, bytes and times of the formula."""

import numpy as np
import pytest

from engine import catalog
from engine.executed import ranks, ranks_operations
from engine.mechanism import collectives, start_ups
from tests.cases import in_one_test
from tests.widgets.reading import Reader
from widgets.foundations.two_levels import CUTS, MOST, TwoLevels

shown = Reader(TwoLevels).shown
KEYS = [f"{nodes:.0f}x{gpus:.0f}" for nodes, gpus in CUTS]


def executed(cut):
    nodes, gpus = map(int, cut.split("x"))
    count = nodes * gpus
    run = ranks_operations.all_reduce(ranks.example(count, count), "two_level", gpus_per_node=gpus)
    return run, nodes, gpus


def grid(part, column, count):
    """The column of the cells as [GPU, chunk], of those that there are."""
    return np.reshape(part[column], (MOST, MOST))[:count, :count]


def test_the_default_by_hand():
    """1 GB on two nodes of four, halfway through the second of three steps inside: 1.5 quarters have come."""
    found = shown()
    assert found["readouts"]["inside"]["text"] == "1.5 GB"  # 2 · 3/4 of the buffer
    assert found["readouts"]["card"]["text"] == "250 MB"  # 2 · 1/2 of a quarter
    assert found["readouts"]["hops"]["text"] == "8, a ring takes 14"  # 3 + 2 + 3, 2 · 7
    assert found["readouts"]["takes"]["text"] == "8.34 ms"  # 1.5/450 + 0.25/50 s, 6 · 0.757 + 2 · 2.7 µs
    assert found["parts"]["line"]["text"] == "ReduceScatter in each node, step 2 of 8"
    assert found["parts"]["heads"]["text"] == ["NVLink 375 MB", "card 0 B"]
    assert found["ends"]["play"] == 8
    assert not any(regime["met"] for regime in found["regimes"].values())


@in_one_test("cut", KEYS)
def test_cells_and_bytes_are_those_of_the_executed_run(cut):
    run, nodes, gpus = executed(cut)
    count, steps = nodes * gpus, len(run.steps)
    for state in range(steps + 1):
        found = shown(cut=cut, play=state)["parts"]
        assert (grid(found["cells"], "value", count) == run.values[state]).all()
        assert np.allclose(grid(found["cells"], "sums", count), run.contributions[state])
        assert not found["messages"]["seen"].any(), "between two steps nothing is on its way"
    inside, outside = ranks.bytes_by_wire(run, gpus)
    ends = TwoLevels(cut=cut, play=steps)
    arrived = [column[:count] for column in ends.arrived_bytes()]
    for come, sent in zip(arrived, (inside, outside)):  # rings: as much has come as was sent
        assert come == pytest.approx(sent * 1e9 / (count * run.cell_bytes))
    assert arrived[0] == pytest.approx(ends.inside_bytes()) and arrived[1] == pytest.approx(ends.card_bytes())
    assert ends.steps() == steps and "AllReduce done" in ends.shown()["parts"]["line"]["text"]


@in_one_test("cut", KEYS)
def test_a_message_is_between_its_sender_and_its_receiver(cut):
    run, _, gpus = executed(cut)
    for step in range(len(run.steps)):
        at = TwoLevels(cut=cut, play=step + 0.5)
        messages = at.shown()["parts"]["messages"]
        for move in (move for move in run.log if move.step == step):
            rows = [np.mean(at.row(np.array(float(gpu)))) for gpu in (move.source, move.destination)]
            to = move.destination
            assert (messages["bottom"][to] + messages["top"][to]) / 2 == pytest.approx(np.mean(rows))
            assert (messages["left"][to], messages["right"][to]) == pytest.approx(
                at.chunk(move.start, move.stop - move.start)
            )
            assert messages["kind"][to] == (2 if move.source // gpus != move.destination // gpus else 1)


def test_colours_follow_the_three_parts():
    """Own numbers, then a quarter of its node's sum, then the sum of all."""
    for state, kind, of in ((0, 0, 8), (3, 1, 2), (5, 2, 2), (8, 2, 8)):
        cells = grid(shown(play=state)["parts"]["cells"], "kind", 8)
        assert ((cells == kind).sum(axis=1) == of).all()


@in_one_test("cut", KEYS)
@pytest.mark.parametrize("size", [1e3, 1e9])
def test_times_are_those_of_the_closed_forms(cut, size):
    node = catalog.node("dgx-h100")
    at = TwoLevels(cut=cut, size=size)
    wires = [of for wire in (node.link, node.nic) for of in (wire.bytes_per_s, start_ups.hop_s(wire))]
    both = collectives.two_level_all_reduce_s(size, at.count(), at.cut.gpus, *wires)
    assert at.inside_s() + at.across_s() == pytest.approx(both)
    assert at.ring_s() == collectives.ring_through_nodes_s(size, at.count(), at.cut.gpus, *wires)


def test_eight_cards_carry_their_part_sooner_than_nvlink_its_own():
    assert shown(cut="2x8")["regimes"]["inside_longer"]["met"]
    assert not shown(cut="4x4")["regimes"]["inside_longer"]["met"]
    assert shown(size=64e3)["regimes"]["latency"]["met"]
