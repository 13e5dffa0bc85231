"""Orders of somebody's own: which blocks a stage has, and for what it waits where they cannot go on."""

from engine.mechanism.pipeline_orders import BACKWARD, FORWARD, Stuck, block, own_order
from tests.cases import in_one_test


@in_one_test(
    "kind, stage, source",
    [
        (FORWARD, 1, 0),  # a forward waits for the stage before
        (FORWARD, 2, 1),
        (BACKWARD, 1, 2),  # a backward for the stage behind …
        (BACKWARD, 2, 2),  # … and at the loss for the stage's own forward
    ],
)
def test_a_block_that_never_runs_waits_for_the_stage_that_does_not_send(kind, stage, source):
    """Of three stages; a block that runs stands in the order, another as −1 − its number."""
    ran, waits = block(FORWARD, stage, 0), block(kind, stage, 1)
    work, stuck = [], Stuck([], [], [], [], [])
    own_order(work, [1.0, float(ran), float(-1 - waits)], stage, 3, stuck)
    assert work == [ran]
    assert (stuck.stage, stuck.kind, stuck.batch, stuck.source) == ([stage], [kind], [1], [source])
