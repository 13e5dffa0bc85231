"""DDP and ZeRO executed: the same weights as one rank, the bytes of the formulas, and the memory of the
table."""

import numpy as np
import pytest

from engine import catalog
from engine.executed import executed_training as executed
from engine.mechanism import memory
from tests.cases import in_one_test

STEPS = 4
TASK = executed.problem()  # 6·8 + 8·4 = 80 parameters, 16 samples
ALONE = executed.train_alone(TASK, STEPS)
CASES = [(ranks, stage) for ranks in (1, 2, 4, 8) for stage in executed.STAGES]
RUNS = {case: executed.train(TASK, *case, STEPS) for case in CASES}


@in_one_test("case", CASES, ids=str)
def test_many_ranks_end_in_the_weights_of_one(case):
    assert np.abs(RUNS[case].weights - ALONE).max() < 1e-13
    assert np.abs(ALONE - np.concatenate([layer.ravel() for layer in TASK.layers])).max() > 1e-2, (
        "nothing was learnt"
    )


@in_one_test("case", CASES, ids=str)
def test_elements_sent_equal_the_formula(case):
    """2P, 2P, 2P and 3P, each times (N−1)/N, on every rank and step: 80 parameters divide by all of these
    ranks."""
    ranks, stage = case
    expected = STEPS * (3 if stage == 3 else 2) * (ranks - 1) / ranks * 80
    assert RUNS[case].sent_elements == pytest.approx(np.full(ranks, expected))


@in_one_test("case", CASES, ids=str)
def test_bytes_held_equal_the_table(case):
    """P = 80 with 16-byte Adam: what the ranks' arrays count up to, against memory.sharded_state_bytes."""
    ranks, stage = case
    recipe = catalog.recipe("bf16-adam")
    expected = memory.sharded_state_bytes(80, recipe, ranks, stage)
    assert RUNS[case].held_bytes(recipe) == pytest.approx(np.full(ranks, expected))


def test_four_ranks_by_hand():
    """1,280 bytes alone; 4·80 + 12·20 = 560, 2·80 + 14·20 = 440, 16·20 = 320."""
    recipe = catalog.recipe("bf16-adam")
    assert [RUNS[4, stage].held_bytes(recipe)[0] for stage in executed.STAGES] == [1280, 560, 440, 320]


def test_stage_three_gathers_one_layer_at_a_time():
    """48 of 80 parameters at once: the first layer; the calls are two gathers forward, two backward, two
    scatters."""
    assert RUNS[4, 3].peak_gathered == 48 and RUNS[4, 2].peak_gathered == 0
    assert [call for call, _ in RUNS[4, 3].calls[:6]] == [
        "all_gather",
        "all_gather",
        "all_gather",
        "reduce_scatter",
        "all_gather",
        "reduce_scatter",
    ]
    assert [size for _, size in RUNS[4, 3].calls[:6]] == [48, 32, 32, 32, 48, 48]


def test_parameters_that_do_not_divide_are_cut_unevenly():
    task = executed.problem(samples=6, features=5, hidden=7, outputs=3)
    alone = executed.train_alone(task, 2)
    for stage in executed.STAGES:
        run = executed.train(task, 3, stage, 2)
        assert np.abs(run.weights - alone).max() < 1e-13
        factor = 3 if stage == 3 else 2
        assert run.sent_elements.sum() == pytest.approx(
            2 * factor * 2 * task.parameters
        )  # N·(N−1)/N = 2 ranks'


def test_the_gradient_by_differences():
    """The backward pass against finite differences of the loss."""

    def loss(weights):
        _, outputs = executed.forward(TASK.inputs, *executed._layers(weights, [w.shape for w in TASK.layers]))
        return 0.5 * np.sum((outputs - TASK.targets) ** 2) / len(TASK.targets)

    start = np.concatenate([layer.ravel() for layer in TASK.layers])
    exact = np.concatenate([g.ravel() for g in executed._gradients(TASK.layers, TASK.inputs, TASK.targets)])
    for place in range(0, 80, 7):
        nudge = np.eye(80)[place] * 1e-6
        assert (loss(start + nudge) - loss(start - nudge)) / 2e-6 == pytest.approx(exact[place], abs=1e-7)


def test_adams_first_step_by_hand():
    """The first step is the learning rate in the direction of the gradient's sign."""
    assert executed.Adam(2).updated(np.zeros(2), np.array([3.0, -0.1])) == pytest.approx(
        [-0.01, 0.01], rel=1e-6
    )


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (dict(ranks=3), "divide"),
        (dict(ranks=0), "ranks"),
        (dict(stage=4), "stage"),
        (dict(steps=0), "steps"),
        (dict(ranks=2.5), "ranks"),
    ],
)
def test_bad_input_is_refused(bad, said):
    with pytest.raises(ValueError, match=said):
        executed.train(TASK, **bad)
