"""The ring of context parallelism, by hand: who has whose keys when. test_ring_attention.py runs it."""

import pytest

from engine.mechanism import context_parallel


@pytest.mark.parametrize(("moment", "share"), [(0.0, 0.0), (2.0, 0.0), (2.25, 0.25), (3.0, 1.0), (3.5, 1.0)])
def test_a_block_is_used_in_one_step_of_the_ring(moment, share):
    """Of four ranks, rank 1 has its own keys first, then those of rank 0, and from step 2 to 3 those of 3."""
    assert context_parallel.step_of(1, 3, 4) == 2
    assert context_parallel.used_share(moment, 1, 3, 4) == share
