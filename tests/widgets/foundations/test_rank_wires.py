"""rank_wires by hand: who sits where, how thick a wire is, and what an order or a swap costs."""

import numpy as np
import pytest

from tests.widgets.reading import Reader
from widgets.foundations import rank_wires
from widgets.foundations.rank_wires import RankWires

READER = Reader(RankWires)
part, met, widget = READER.part, READER.met, READER.widget
ACROSS = {"order": "data-tensor-expert"}
SENT_BYTES = 2560 * 7 / 4 * 8192 * 8192 * 2  # by each GPU in a step: lesson 03's opening case


def filled(**texts):
    """The ranks that are drawn as one group."""
    cells = part("cells", **texts)
    return [int(rank) for rank, member in zip(cells["rank"], cells["member"]) if member]


def test_a_row_is_a_node_and_holds_its_ranks_in_order():
    cells = part("cells")
    assert cells["rank"] == [str(n) for n in range(64)] and filled() == list(range(8))
    assert cells["y"][:8].tolist() == [7] * 8 and cells["y"][-1] == 0
    assert part("cells", **ACROSS)["rank"][:8] == [str(8 * n) for n in range(8)]
    assert part("cells", **ACROSS)["y"][[0, 8, 16]].tolist() == [7, 6, 5], "the rows are the nodes still"


def test_the_group_shown_is_that_of_the_rank_which_was_taken_up():
    assert sorted(filled(**ACROSS)) == list(range(8))
    assert sorted(filled(shows="data")) == list(range(0, 64, 8)) and filled(shows="expert") == [0]
    swapped = filled(one="7", other="8")
    assert swapped[0] == 8 and swapped[1:] == list(range(9, 16)), "rank 8 stands on GPU 7"
    assert part("cells", one="7", other="8")["rim"].tolist().count(3) == 2


def test_wires_are_as_thick_as_the_time_for_which_they_are_busy():
    computes = widget().times().compute
    inside, across = part("wires", shows="tensor"), part("wires", shows="tensor", **ACROSS)
    thick = rank_wires.HAIRLINE + rank_wires.THICKEST * SENT_BYTES / 450e9 / computes
    assert np.unique(inside["link"]) == pytest.approx(thick) and set(inside["card"]) == {rank_wires.HAIRLINE}
    assert set(across["link"]) == {rank_wires.HAIRLINE}
    assert SENT_BYTES / 50e9 / computes > rank_wires.FULL, "more than is drawn"
    most = rank_wires.HAIRLINE + rank_wires.THICKEST * rank_wires.FULL
    assert np.unique(across["card"]) == pytest.approx(most)
    both, data = part("wires"), part("wires", shows="data")
    thin = rank_wires.HAIRLINE
    assert both["card"] - thin == pytest.approx(inside["card"] - thin + data["card"] - thin)


def test_a_swap_lights_the_cards_of_the_two_groups_alone():
    card = part("wires", one="7", other="8", shows="tensor")["card"]
    assert card[[7, 8]] == pytest.approx(card[7]) and card[0] == pytest.approx(card[15])
    assert card[7] - rank_wires.HAIRLINE == pytest.approx(7 * (card[0] - rank_wires.HAIRLINE))
    assert set(card[16:]) == {rank_wires.HAIRLINE}


def test_an_order_doubles_the_step_and_a_swap_nearly_does():
    assert "doubled" in met(**ACROSS) and met() == set() and met(one="7", other="8") == {"torn"}
    usual, across, swapped = (widget(**texts) for texts in ({}, ACROSS, {"one": "7", "other": "8"}))
    assert across.times().tensor == pytest.approx(13.43, rel=1e-3) and across.over_cards()[0]
    assert usual.times().tensor == pytest.approx(1.488, rel=1e-3) and not usual.over_cards()[0]
    assert 2 < across.against_usual() < 3 and 1.5 < swapped.against_usual() < 2


def test_swapping_neighbours_in_a_node_costs_nothing():
    assert met(one="3", other="5") == set() and widget(one="3", other="5").against_usual() == 1


def test_the_headline_names_the_axis_whose_groups_count():
    first = READER.shown
    assert first()["summary"].startswith("With tensor groups in one node each")
    assert first(**ACROSS)["summary"].startswith("With tensor groups on 8 nodes each")
    experts = {"model": "mixtral-8x22b", "tp": "1", "ep": "8"}
    assert first(**experts)["summary"].startswith("With expert groups in one node each")
    assert first(tp="1")["summary"].startswith("With data groups on 8 nodes each")
    assert first(one="7", other="8")["summary"].startswith("With groups torn by a swap")
    assert READER.text("binds", **experts, batch="512") == "data, on cards"
