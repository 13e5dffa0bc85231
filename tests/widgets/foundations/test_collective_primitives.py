"""The seven primitives: what they leave on each rank, whose data is in it, and what crossed wires for it."""

import numpy as np

from engine.executed import ranks
from tests.cases import in_one_test
from tests.widgets.reading import Reader
from widgets.foundations.collective_primitives import MOST, PRIMITIVES, CollectivePrimitives, done

KEYS = [primitive.key for primitive in PRIMITIVES]
MINE = ranks.example(4, 4)


shown = Reader(CollectivePrimitives).shown


def block(found, name, count=4):
    """The numbers of a block as they are written, "" where a cell is empty."""
    texts = np.reshape([str(text) for text in found["parts"][name]["text"]], (MOST, MOST))
    assert not any(texts[count:].ravel()) and not any(texts[:, count:].ravel())
    return texts[:count, :count].tolist()


def written(rows):
    return [["" if value is None else str(value) for value in row] for row in rows]


def on_diagonal(values):
    return [[values[i] if i == j else None for j in range(4)] for i in range(4)]


NONE, SUM = [None] * 4, MINE.sum(axis=0)
EXPECTED = {
    "broadcast": ([MINE[0], NONE, NONE, NONE], [MINE[0]] * 4),
    "reduce": (MINE, [SUM, NONE, NONE, NONE]),
    "all_reduce": (MINE, [SUM] * 4),
    "all_gather": (on_diagonal(MINE.diagonal()), [MINE.diagonal()] * 4),
    "reduce_scatter": (MINE, on_diagonal(SUM)),
    "all_to_all": (MINE, MINE.T),
    "send_recv": ([MINE[0], NONE, NONE, NONE], [NONE, MINE[0], NONE, NONE]),
}


@in_one_test("key", KEYS)
def test_before_and_after(key):
    found = shown(primitive=key)
    before, after = EXPECTED[key]
    assert block(found, "before") == written(before) and block(found, "after") == written(after)


def whose(found, name, count=4):
    """What is written under each number: whose data is in it."""
    return np.reshape([str(text) for text in found["parts"][name]["sources"]], (MOST, MOST))[
        :count, :count
    ].tolist()


def test_each_cell_says_whose_data_it_holds():
    each = [[f"r{rank}"] * 4 for rank in range(4)]
    found = shown(primitive="reduce_scatter")
    assert whose(found, "before") == each
    assert whose(found, "after") == [["r0–3" if i == j else "" for j in range(4)] for i in range(4)]
    assert whose(shown(primitive="all_to_all"), "after") == [list(row) for row in zip(*each)]
    assert whose(shown(primitive="all_reduce", ranks=5), "after", 5) == [["r0–4"] * 5] * 5
    assert whose(shown(primitive="send_recv"), "after") == [[""] * 4, ["r0"] * 4, [""] * 4, [""] * 4]


def test_a_sum_is_filled_more_strongly_than_one_ranks_data_and_an_empty_cell_not_at_all():
    parts = shown(primitive="reduce_scatter")["parts"]
    (one,) = set(np.reshape(parts["before"]["tint"], (MOST, MOST))[:4, :4].ravel())
    after = np.reshape(parts["after"]["tint"], (MOST, MOST))[:4, :4]
    assert (after[~np.eye(4, dtype=bool)] == 0).all() and (after.diagonal() > 2 * one).all() and one > 0


def test_a_run_leaves_in_a_cell_one_ranks_data_or_that_of_neighbours():
    """Otherwise r0–3 would name a rank whose data is not in the sum."""
    for key in KEYS:
        for count in range(2, MOST + 1):
            for holds in (done(key, count).holds_before, done(key, count).holds_after):
                for owned in np.reshape(holds, (-1, MOST)) > 0:
                    ranks_in = np.flatnonzero(owned)
                    assert ranks_in.size == 0 or np.ptp(ranks_in) == ranks_in.size - 1


SENT = {
    "broadcast": [1000, 1000, 1000, 0],
    "reduce": [0, 1000, 1000, 1000],
    "all_reduce": [1500] * 4,
    "all_gather": [750] * 4,
    "reduce_scatter": [750] * 4,
    "all_to_all": [750] * 4,
    "send_recv": [1000, 0, 0, 0],
}


@in_one_test("key", KEYS)
def test_bytes_of_each_rank(key):
    """A gigabyte on four ranks, by hand, in megabytes; along the chain the last rank sends nothing."""
    wires = shown(primitive=key)["parts"]["wires"]
    assert np.allclose(wires["sent_bytes"][:4] / 1e6, SENT[key])
    assert wires["sent_bytes"].sum() == wires["received_bytes"].sum() and not wires["sent_bytes"][4:].any()
    words = {0: "sends 0 B", 750: "sends 750 MB", 1000: "sends 1 GB", 1500: "sends 1.5 GB"}
    assert str(wires["sends"][0]) == words[SENT[key][0]]


@in_one_test("key", KEYS)
@in_one_test("count", [2, 5, 8])
def test_none_of_them_wastes_a_byte(key, count):
    readouts = shown(primitive=key, ranks=count)["readouts"]
    assert readouts["total"] == readouts["least"]


def test_only_an_all_reduce_of_three_and_more_sends_more_than_its_buffer():
    found = {
        (key, count): bool(shown(primitive=key, ranks=count)["regimes"]["more_than_its_buffer"]["met"])
        for key in KEYS
        for count in range(2, 9)
    }
    assert {state for state, met in found.items() if met} == {("all_reduce", count) for count in range(3, 9)}


def test_the_steps_of_a_chain_are_explained():
    """Seven links for the first of eight pieces, and seven pieces behind it: 14 steps."""
    said = shown(primitive="broadcast", ranks=8)["readouts"]["steps"]["text"]
    assert said == "14: 7 links + 7 pieces"
    assert shown(primitive="all_reduce", ranks=8)["readouts"]["steps"]["text"] == "14"


@in_one_test("key", KEYS)
@in_one_test("count", [2, 5, 8])
def test_the_explained_steps_are_those_of_the_run(key, count):
    said, _, how = shown(primitive=key, ranks=count)["readouts"]["steps"]["text"].partition(":")
    assert bool(how) == (key in ("broadcast", "reduce"))
    if how:
        assert int(said) == 2 * (count - 1)


def test_the_data_reads_as_rows_of_ranks():
    rows = shown(primitive="reduce_scatter")["parts"]["buffers_and_bytes"]
    assert str(rows["before"][0]).split() == [str(value) for value in MINE[0]]
    assert str(rows["after"][1]).split() == ["·", str(SUM[1]), "·", "·"]
    assert [str(rank) for rank in rows["rank"]] == ["r0", "r1", "r2", "r3", "", "", "", ""]


def test_presets_are_what_they_say():
    for name, state in CollectivePrimitives.presets.items():
        widget = CollectivePrimitives()
        widget.set_state(state)
        assert name.startswith(widget.primitive.name)
        assert name in ("Broadcast to 8", "AllReduce of 2", widget.primitive.name)
        assert widget.ranks == {"8": 8, "2": 2}.get(name[-1], 4)
