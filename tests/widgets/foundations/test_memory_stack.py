"""The stack and its cards: slabs to scale, what is past one GPU, as many cards as the state needs, and the
wall that a larger GPU does not remove."""

import numpy as np
import pytest

from engine import catalog
from engine.mechanism import memory
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.memory_stack import LARGEST_BYTES, MOST, MemoryStack

read = Reader(MemoryStack)


def cards(**state):
    """The sides of the boxes that can be seen."""
    columns = read.part("cards", **state)
    seen = columns["left"] >= 0
    return {name: column[seen] for name, column in columns.items()}


def test_the_first_state_says_what_one_gpu_holds_and_how_many_it_takes():
    assert not lacks(read.shown()["summary"], "70B", "1.12 TB", "14 × H100 SXM", "80 GB")
    assert read.met() == {"does_not_fit"}
    assert not lacks(read.part("price")["words"], "14 × H100 SXM", "13")  # one of them is yours
    two = read.part("price", size="7e9")["words"]
    assert not lacks(two, "2 × H100 SXM") and lacks(two, "1")  # "the other", not "the other 1"


def test_solid_and_hatched_pieces_meet_at_the_hbm_and_are_the_slabs():
    slabs, hbm = read.part("slabs"), 80e9
    assert np.allclose(slabs["top"] - slabs["bottom"], memory.state_slabs(70e9))
    whole = slabs["within_top"] - slabs["within_bottom"] + slabs["past_top"] - slabs["past_bottom"]
    assert np.allclose(whole, slabs["top"] - slabs["bottom"])
    assert max(slabs["within_top"]) == hbm == min(slabs["past_bottom"])
    assert (slabs["past"] > 0).all() and (slabs["past_all"] < 0).all()  # hatched, and not in red


@pytest.mark.parametrize(
    ("state", "count"),
    [({}, 14), ({"size": "405e9"}, 81), ({"size": "1e9"}, 1), ({"size": "405e9", "gpu": "b200"}, 36)],
)
def test_there_is_a_card_for_each_gpu_and_together_they_hold_the_state(state, count):
    widget, found = read.widget(**state), cards(**state)
    assert len(found["left"]) == count
    share = (found["filled"] - found["left"]) / (found["right"] - found["left"])
    held = memory.state_bytes(widget.size) / widget.gpu.hbm_bytes
    assert np.sum(share) == pytest.approx(held)
    assert np.allclose(share[:-1], 1)


def test_cards_lie_side_by_side_in_the_strip():
    found = cards(size="405e9")
    sides = np.stack([found[side] for side in ("left", "right", "bottom", "top")], axis=1)
    assert sides[:, :2].min() == 0 and sides[:, :2].max() <= 1
    for i, (left, right, bottom, top) in enumerate(sides):
        others = np.delete(sides, i, axis=0)
        apart = (
            (others[:, 0] >= right)
            | (others[:, 1] <= left)
            | (others[:, 2] >= top)
            | (others[:, 3] <= bottom)
        )
        assert apart.all()


def test_many_gpus_are_drawn_as_nodes_and_the_most_have_room():
    found = read.shown(size="2e12", gpu="a100-40")
    assert (
        found["parts"]["price"]["words"].startswith("800 × A100")
        and len(cards(size="2e12", gpu="a100-40")["left"]) == 100
    )
    assert "eight to a box" in found["parts"]["price"]["words"]
    most = max(memory.state_bytes(2e12, recipe) for recipe in catalog.uniform_recipes().values())
    least = min(gpu.hbm_bytes for gpu in catalog.all_gpus().values())
    assert most / least / 8 <= MOST


def test_a_larger_gpu_does_not_remove_the_wall():
    assert catalog.gpu("mi455x").hbm_bytes == LARGEST_BYTES
    assert read.met(gpu="mi455x") == {"memory_wall"}
    assert read.met(gpu="mi455x", size="26e9") == set() == read.met(size="4e9")
    slabs = read.part("slabs", gpu="mi455x")
    assert (slabs["past"] < 0).all() and (slabs["past_all"][2:] > 0).all()


def test_the_chosen_gpu_is_named_once_among_the_ceilings():
    for key, count in (("h100-sxm", 5), ("a100-80", 5), ("h20", 6)):
        rows = read.part("ceilings", gpu=key)
        assert sum(bool(label) for label in rows["label"]) == count
        bold = [label for label, style in zip(rows["label"], rows["style"]) if style == "bold"]
        assert len(bold) == 1 and bold[0].startswith(catalog.gpu(key).name)
        assert list(rows["hbm"]) == sorted(rows["hbm"])


def test_slab_by_slab_the_cards_fill():
    filled = [np.sum(cards(assemble=str(frame))["filled"] - cards()["left"]) for frame in range(6)]
    assert filled == sorted(filled) and filled[0] == 0
