"""Copies of favourites in spare places, by hand and against what no balancer can beat."""

import pytest

from engine.executed import spare_experts


def test_four_experts_on_two_gpus():
    """Loads 4, 2, 1, 1. In order, one GPU has 6 of 8. Two spare places both go to the first expert, whose
    copies have 4/3; packed with the largest first, the GPUs get 2 + 4/3 + 1 and 4/3 + 4/3 + 1."""
    rows = [4.0, 2.0, 1.0, 1.0]
    assert spare_experts.fullest(rows, 2, 0) == 1.5
    assert spare_experts.copies(rows, 2) == [3, 1, 1, 1]
    assert spare_experts.on_gpus(rows, 2, 2) == pytest.approx([2 + 4 / 3 + 1, 4 / 3 + 4 / 3 + 1])


@pytest.mark.parametrize(("experts", "gpus", "spare"), [(64, 8, 8), (256, 64, 64), (256, 256, 256)])
def test_nothing_is_lost_and_no_gpu_has_more_than_its_places(experts, gpus, spare):
    rows = spare_experts.liked(experts, 0.8)
    found = spare_experts.on_gpus(rows, gpus, spare)
    assert sum(found) == pytest.approx(sum(rows)) == pytest.approx(experts)
    assert 1 <= spare_experts.fullest(rows, gpus, spare) < 1.05 < spare_experts.fullest(rows, gpus, 0)


def test_equal_experts_need_no_copies():
    assert spare_experts.fullest(spare_experts.liked(64, 0.0), 8, 0) == 1


@pytest.mark.parametrize(("gpus", "spare"), [(0, 8), (2.5, 8), (8, -1)])
def test_what_cannot_be_is_refused(gpus, spare):
    with pytest.raises(ValueError, match="must be"):
        spare_experts.on_gpus([1.0] * 8, gpus, spare)
