"""rank_mesh by hand: who is lit and in which colour, the table of axes, the boxes, the mistake in red."""

import numpy as np
import pytest

from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.composition.rank_mesh import LETTERS, RankMesh

READER = Reader(RankMesh)
shown, part = READER.shown, READER.part


def lit(letter, **texts):
    """Ranks that carry a letter."""
    return [rank for rank, found in enumerate(part("lit", **texts)["letter"]) if str(found) == letter]


def torn_apart(**texts):
    """Ranks drawn in red."""
    return np.flatnonzero(part("torn_apart", **texts)["left"] >= 0).tolist()


def test_the_classic_lights_its_peers():
    """TP 8 × PP 4 × DP 16: seven neighbours, fifteen replicas every eighth GPU, three stages 128 apart."""
    assert (
        lit("T") == list(range(1, 8)) and lit("P") == [128, 256, 384] and lit("D") == list(range(8, 128, 8))
    )
    columns = part("lit")
    assert np.flatnonzero(columns["link"]).tolist() == lit("T") and not torn_apart()
    assert np.flatnonzero(columns["network"]).tolist() == sorted(lit("D") + lit("P"))
    assert np.flatnonzero(columns["itself"]).tolist() == [0]


def test_another_rank_has_other_peers():
    assert lit("T", rank=300) == [rank for rank in range(296, 304) if rank != 300]
    assert lit("P", rank=300) == [44, 172, 428]


@pytest.mark.parametrize(
    "texts", [{}, {"gpus": "64", "tp": "4"}, {"tp": "1", "ep": "8"}, {"cp": "8", "pp": "1"}]
)
def test_peers_are_counted_once_each(texts):
    """The sizes less one each, without the expert ranks, which are among the data ranks."""
    tp, cp, dp, pp = (
        float(axis.split()[1]) for i, axis in enumerate(part("axes", **texts)["name"]) if i != 2
    )
    assert shown(**texts)["readouts"]["peers"]["text"] == f"{tp + cp + dp + pp - 4:.0f}"


def test_expert_peers_are_marked_among_the_data_peers():
    assert lit("E", tp="1", ep="8") == list(range(1, 8)) and len(lit("D", tp="1", ep="8")) == 128 - 8


@pytest.mark.parametrize(
    ("texts", "nodes", "at_fault"),
    [({"tp": "16"}, 2, "larger than a node"), ({"order": "dp-tp-cp-pp"}, 8, "another axis")],
)
def test_tensor_parallelism_across_nodes_is_red_and_said(texts, nodes, at_fault):
    found = shown(**texts)
    assert found["regimes"]["torn"]["met"] and not lacks(found["regimes"]["torn"]["text"], at_fault)
    assert found["readouts"]["tensor_nodes"] == {"text": f"{nodes} nodes", "alarm": True}
    assert torn_apart(**texts) == lit("T", **texts)
    assert str(found["parts"]["axes"]["wire"][0]) == "over"
    assert (
        not shown()["regimes"]["torn"]["met"] and not shown(tp="16", per_node="64")["regimes"]["torn"]["met"]
    )


def test_the_table_of_axes_by_hand():
    axes = part("axes")
    assert [str(name) for name in axes["name"]] == [
        "tensor 8",
        "context 1",
        "expert 1",
        "data 16",
        "pipeline 4",
    ]
    where = [("one node",), ("nothing",), ("nothing",), ("16 nodes", "8th"), ("4 nodes", "128th")]
    assert [lacks(str(text), *words) for text, words in zip(axes["where"], where, strict=True)] == [[]] * 5
    assert not lacks(str(part("axes", tp="2")["where"][3]), "16 nodes", "2nd")


@pytest.mark.parametrize(
    ("gpus", "per_node"), [("512", "8"), ("64", "4"), ("256", "16"), ("512", "64"), ("64", "64")]
)
def test_each_gpu_has_a_cell_in_its_node_and_none_overlap(gpus, per_node):
    parts = shown(gpus=gpus, per_node=per_node)["parts"]
    cells, boxes = parts["cells"], parts["boxes"]
    there, standing = cells["left"] >= 0, boxes["left"] >= 0
    assert there.sum() == int(gpus) and standing.sum() == int(gpus) // int(per_node)
    for rank in (0, int(per_node) - 1, int(gpus) - 1):
        box = rank // int(per_node)
        assert boxes["left"][box] <= cells["left"][rank] and cells["right"][rank] <= boxes["right"][box]
        assert boxes["bottom"][box] <= cells["bottom"][rank] and cells["top"][rank] <= boxes["top"][box]
    places = {(round(x, 6), round(y, 6)) for x, y in zip(cells["x"][there], cells["y"][there])}
    assert len(places) == int(gpus) and cells["bottom"][there].min() > -1e-9 and cells["right"].max() < 1


def test_a_rank_that_is_not_there_is_the_last_one():
    assert shown(gpus="64", rank=500)["readouts"]["coordinates"]["text"].startswith("63:")


def test_a_gpu_says_its_place_and_what_it_is_to_the_rank_shown():
    widget = RankMesh()
    said = widget.hints()["cells"]
    assert not lacks(said[8], "rank 8", "node 1", "tp 0", "cp 0", "dp 1", "pp 0", "data peer")
    assert not lacks(said[9], "rank 9", "tp 1", "not a peer")
    assert len(LETTERS) == 7


def test_shading_tells_the_places_on_an_axis_apart():
    tones = part("cells", shade="tp")["tone"]
    assert len(set(np.round(tones, 6))) == 8 and np.all(np.diff(tones[:8]) > 0) and tones[8] == tones[0]


@pytest.mark.parametrize(
    "texts", [{}, {"tp": "16"}, {"order": "dp-tp-cp-pp"}, {"per_node": "32", "rank": 77}]
)
def test_the_headline_counts_the_peers_that_are_lit(texts):
    """Tensor peers by the letters of the picture, in the node of the rank shown and elsewhere."""
    widget = RankMesh()
    widget.set_state({name: str(value) for name, value in texts.items()})
    shown = widget.shown()
    peers = [rank for rank, letter in enumerate(shown["parts"]["lit"]["letter"]) if str(letter) == "T"]
    here = [rank for rank in peers if rank // widget.per_node == widget.rank // widget.per_node]
    where = "in its node" if len(here) == len(peers) else "elsewhere"
    if here and where == "elsewhere":
        where = f"({len(peers) - len(here)} elsewhere)"
    assert f": tensor {len(peers)} {where}, " in shown["summary"]


def test_folded_experts_are_lit_over_the_tensor_peers():
    """EP 8 beside TP 8: on every eighth GPU of eight nodes, or on the seven neighbours in its own."""
    beside = {"ep": "8", "pp": "1"}
    assert lit("E", **beside) == list(range(8, 64, 8)) and lit("T", **beside) == list(range(1, 8))
    folded = beside | {"folded": "on"}
    assert lit("E", **folded) == list(range(1, 8)) and not lit("T", **folded)
    assert not lacks(str(part("axes", **beside)["where"][2]), "across 8 nodes", "every 8th GPU")
    assert not lacks(str(part("axes", **folded)["where"][2]), "in one node", "side by side")
    assert "experts 7 in its node" in shown(**folded)["summary"]


def test_a_torn_tensor_group_stays_red_where_the_experts_are_folded_over_it():
    texts = {"tp": "16", "ep": "4", "folded": "on"}
    assert torn_apart(**texts) == list(range(1, 16))
