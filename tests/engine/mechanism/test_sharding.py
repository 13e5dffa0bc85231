"""What of the traffic of ZeRO shows, worked by hand."""

import pytest

from engine import catalog
from engine.mechanism import sharding


def test_stage_two_scatters_with_every_micro_batch():
    """Four micro-batches of 3 s backward, 5 s of scattering in 10 pieces each: 4 · (5 − 3) show, and 1 s of a
    gather that is 3 s long behind a forward pass of 2. Where it hides, only the last piece of all shows:
    2/10."""
    assert sharding.exposed_scattering_s(4.0, 5.0, 3.0, 0.0, 2.0, 3.0, 10.0, True) == pytest.approx(8 + 1)
    assert sharding.exposed_scattering_s(4.0, 2.0, 0.0, 0.0, 2.0, 3.0, 10.0, True) == pytest.approx(0.2)


def test_stage_two_with_one_micro_batch_is_stage_one():
    """And without overlap four scatters and a gather show whole; replicas meet in what is left of a backward
    pass."""
    shown = (5.0, 3.0, 0.0, 2.0, 3.0, 10.0, True)
    assert sharding.exposed_scattering_s(1.0, *shown) == sharding.exposed_once_s(1.0, *shown)
    assert sharding.exposed_scattering_s(4.0, 5.0, 3.0, 0.0, 2.0, 3.0, 10.0, False) == 4 * 5 + 3
    assert sharding.exposed_scattering_s(4.0, 2.0, 0.0, 4.0, 2.0, 3.0, 10.0, True) == pytest.approx(
        0.2 + (4 - 1)
    )


def test_stage_three_whose_traffic_outlasts_the_arithmetic_by_hand():
    """3 micro-batches, milliseconds: 4 to gather behind 3 of forward (1 shows), 4 + 5 behind 6 of backward (3
    show); then no room is left in the last backward pass for the replicas' 2. With 10 of backward, of 9 only
    a tenth shows, and of the replicas' 2 one finds room."""
    assert sharding.exposed_each_time_s(3.0, 5e-3, 4e-3, 2e-3, 3e-3, 6e-3, 10.0, True) == pytest.approx(
        3 * 4e-3 + 2e-3
    )
    assert sharding.exposed_each_time_s(3.0, 5e-3, 4e-3, 2e-3, 3e-3, 10e-3, 10.0, True) == pytest.approx(
        3 * (1e-3 + 0.9e-3) + 1e-3
    )


def test_weights_that_are_gathered_again_to_recompute():
    """4 ms more in the backward pass: 4 + 4 + 5 behind 6 leave 7 to see, where 3 were."""
    seen = [
        sharding.exposed_each_time_s(1.0, 5e-3, 4e-3, 0.0, 4e-3, 6e-3, 10.0, True, again)
        for again in (0.0, 1.0)
    ]
    assert seen == pytest.approx([0.4e-3 + 3e-3, 0.4e-3 + 7e-3])


def test_what_an_optimizer_moves():
    """A billion parameters at 1 TB/s, 16 bytes of state: fused 2 · 12 for master and moments, a gradient of 2
    three times and the weight, 32 bytes; by torch's loops 80 for the update, two gradients and the weight."""
    recipe = catalog.recipe("bf16-adam")
    seconds = [sharding.optimizer_s(1e9, recipe, 1e12, fused) for fused in (True, False)]
    assert seconds == pytest.approx([0.032, 0.086])
