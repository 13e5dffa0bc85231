"""Data parallelism and ZeRO 1 to 3, executed: a small network and Adam on numpy ranks, with every transfer of
a collective carried out.

The network is tanh(X·W1)·W2 with a squared error. Every rank has its part of the batch. Stage 0 sums
gradients by an AllReduce and keeps everything on every rank. Stages 1 and 2 ReduceScatter the gradients,
update a part of the weights on each rank and gather the weights; stage 2 does so layer by layer and drops
what it has sent. Stage 3 also keeps only a part of each layer's weights, and gathers a layer for each use
(Rajbhandari et al., arXiv:1910.02054 sections 5 and 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine.base import check
from engine.executed import ranks_operations as operations
from engine.executed.ranks_schedules import cut

if TYPE_CHECKING:
    from engine.catalog.recipes import Recipe

LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-2, 0.9, 0.999, 1e-8
STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Problem:
    """The data and the two weight matrices that training starts from."""

    inputs: np.ndarray  # [sample, feature]
    targets: np.ndarray  # [sample, output]
    layers: tuple[np.ndarray, ...]

    @property
    def sizes(self) -> list[int]:
        """Parameters of each layer."""
        return [layer.size for layer in self.layers]

    @property
    def parameters(self) -> int:
        """Parameters of both layers together."""
        return sum(self.sizes)


def problem(
    samples: int = 16, features: int = 6, hidden: int = 8, outputs: int = 4, seed: int = 0
) -> Problem:
    """Random data and weights, the same for one seed."""
    check.whole(samples=samples, features=features, hidden=hidden, outputs=outputs)
    draw = np.random.default_rng(seed).standard_normal
    layers = draw((features, hidden)) / features**0.5, draw((hidden, outputs)) / hidden**0.5
    return Problem(draw((samples, features)), draw((samples, outputs)), layers)


# -- the network and its optimizer ---------------------------------------------------------------------------
def forward(inputs: np.ndarray, w1: np.ndarray, w2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(inner values, outputs) of tanh(X·W1)·W2."""
    inner = np.tanh(inputs @ w1)
    return inner, inner @ w2


def output_error(outputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Gradient of the mean squared error, halved, over these samples."""
    return (outputs - targets) / len(targets)


def backward_second(inner: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Gradient of W2."""
    return inner.T @ error


def backward_first(inputs: np.ndarray, inner: np.ndarray, error: np.ndarray, w2: np.ndarray) -> np.ndarray:
    """Gradient of W1: the error goes back through W2 and tanh."""
    return inputs.T @ ((error @ w2.T) * (1.0 - inner * inner))


class Adam:
    """Adam (Kingma and Ba, arXiv:1412.6980 algorithm 1) on whatever part of the weights it is given."""

    def __init__(self, size: int) -> None:
        self.momentum, self.variance, self.steps = np.zeros(size), np.zeros(size), 0

    def updated(self, weights: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The weights after one step."""
        self.steps += 1
        self.momentum = BETA1 * self.momentum + (1 - BETA1) * gradient
        self.variance = BETA2 * self.variance + (1 - BETA2) * gradient * gradient
        mean, spread = self.momentum / (1 - BETA1**self.steps), self.variance / (1 - BETA2**self.steps)
        return weights - LEARNING_RATE * mean / (np.sqrt(spread) + EPSILON)


# -- one rank with the whole batch ---------------------------------------------------------------------------
def train_alone(task: Problem, steps: int = 5) -> np.ndarray:
    """The concatenated weights after this many steps of one rank on the whole batch."""
    check.whole(steps=steps)
    shapes = [layer.shape for layer in task.layers]
    weights, optimizer = _flat(task.layers), Adam(task.parameters)
    for _ in range(steps):
        weights = optimizer.updated(
            weights, _flat(_gradients(_layers(weights, shapes), task.inputs, task.targets))
        )
    return weights


# -- many ranks ----------------------------------------------------------------------------------------------
@dataclass
class Training:
    """The result of training on many ranks: the weights, what was sent, and what each rank had to hold."""

    stage: int
    ranks: int
    parameters: int
    weights: np.ndarray  # concatenated, as every rank can gather them
    sent_elements: np.ndarray  # [rank], over all steps
    held: dict[str, np.ndarray] = field(default_factory=dict)  # values kept between uses, by kind: [rank]
    peak_gathered: int = 0  # the most weights gathered at once, beside a rank's own part
    calls: list[tuple[str, int]] = field(
        default_factory=list
    )  # each collective and the elements of its buffer

    def held_bytes(self, recipe: Recipe) -> np.ndarray:
        """[rank]: bytes of training state, each value in the precision that the recipe stores it in."""
        return (
            self.held["weights"] * recipe.weight_bytes
            + self.held["gradients"] * recipe.gradient_bytes
            + self.held["optimizer"] * recipe.optimizer_bytes
        )


def train(task: Problem, ranks: int = 4, stage: int = 0, steps: int = 5) -> Training:
    """Train for ``steps`` steps on ``ranks`` numpy ranks. The samples must divide evenly, or the mean of the
    ranks would not be the mean of the batch."""
    check.whole(ranks=ranks, steps=steps)
    check.one_of(STAGES, stage=stage)
    if len(task.inputs) % ranks:
        raise ValueError(f"ranks must divide the {len(task.inputs)} samples, got {ranks}")
    cluster = _Cluster(task, ranks, stage)
    for _ in range(steps):
        (cluster.whole_step, cluster.sharded_update_step, cluster.layered_update_step, cluster.sharded_step)[
            stage
        ]()
    return cluster.done()


class _Cluster:
    """The ranks' memories, with one method for a step of each stage."""

    def __init__(self, task: Problem, ranks: int, stage: int) -> None:
        self.ranks, self.stage, self.shapes = ranks, stage, [layer.shape for layer in task.layers]
        self.inputs, self.targets = np.split(task.inputs, ranks), np.split(task.targets, ranks)
        # the groups of layers that are scattered and gathered at once: all layers in stage 1, one layer in
        # stages 2 and 3
        self.groups = [task.parameters] if stage < 2 else task.sizes
        self.parts = [cut(size, ranks) for size in self.groups]
        starts = _flat(task.layers)
        self.weights = [starts.copy() for _ in range(ranks)]  # stage 0 to 2: whole on each rank
        self.shards = [
            [values[start:stop].copy() for start, stop in part]  # stage 3: [layer][rank]
            for values, part in zip(np.split(starts, np.cumsum(self.groups)[:-1]), self.parts)
        ]
        share = [self.groups[0]] * ranks if stage == 0 else None
        self.adams = [
            [Adam(share[rank] if share else stop - start) for rank, (start, stop) in enumerate(part)]
            for part in self.parts
        ]
        self.sent, self.calls, self.peak_gathered = np.zeros(ranks), [], 0
        self.gradients_held = np.zeros(ranks)

    # -- collectives, all counted in elements
    def _count(self, run):
        self.sent += run.sent_bytes
        self.calls.append((run.name, run.values.shape[-1]))
        return run.each_result

    def _sum(self, rows):
        return self._count(operations.all_reduce(rows, "ring", cell_bytes=1.0))

    def _scatter(self, rows):
        return self._count(operations.reduce_scatter(rows, cell_bytes=1.0))

    def _gather(self, pieces):
        return self._count(operations.all_gather(pieces, cell_bytes=1.0))

    # -- a step of each stage
    def _local_gradients(self):
        """Each rank's own gradients of each layer: the mean over its samples."""
        return [
            _gradients(_layers(self.weights[rank], self.shapes), self.inputs[rank], self.targets[rank])
            for rank in range(self.ranks)
        ]

    def whole_step(self) -> None:
        """Stage 0: AllReduce of the gradients; every rank makes the same update."""
        sums = self._sum([_flat(gradients) for gradients in self._local_gradients()])
        for rank, total in enumerate(sums):
            self.weights[rank] = self.adams[0][rank].updated(self.weights[rank], total / self.ranks)
        self.gradients_held[:] = [len(total) for total in sums]

    def sharded_update_step(self) -> None:
        """Stage 1: each rank holds the whole gradient; the summed gradient is scattered, and the updated
        parts of the weights are gathered."""
        rows = [_flat(gradients) for gradients in self._local_gradients()]
        self._update_parts(0, slice(0, self.groups[0]), self._scatter(rows))
        self.gradients_held[:] = [len(row) for row in rows]

    def layered_update_step(self) -> None:
        """Stage 2: like stage 1, but layer by layer from the last; each rank keeps only its part of the
        gradient."""
        local = self._local_gradients()
        kept = [self._scatter([gradients[layer].ravel() for gradients in local]) for layer in (1, 0)][::-1]
        self.gradients_held[:] = [sum(len(parts[rank]) for parts in kept) for rank in range(self.ranks)]
        edges = np.cumsum([0, *self.groups])
        for layer, parts in enumerate(kept):
            self._update_parts(layer, slice(edges[layer], edges[layer + 1]), parts)

    def _update_parts(self, group, where, sums):
        """Each rank updates its part of a group of weights; everyone gathers all parts."""
        fresh = [
            self.adams[group][rank].updated(self.weights[rank][where][slice(*part)], sums[rank] / self.ranks)
            for rank, part in enumerate(self.parts[group])
        ]
        for rank, values in enumerate(self._gather(fresh)):
            self.weights[rank][where] = values

    def _gathered(self, layer):
        """A layer's whole weights on each rank, for one use."""
        values = self._gather(self.shards[layer])
        self.peak_gathered = max(self.peak_gathered, len(values[0]))
        return [row.reshape(self.shapes[layer]) for row in values]

    def sharded_step(self) -> None:
        """Stage 3: each layer is gathered before its forward and again before its backward pass, then
        dropped; its gradient is scattered at once."""
        ranks = range(self.ranks)
        inner = [np.tanh(x @ w) for x, w in zip(self.inputs, self._gathered(0))]
        outputs = [values @ w for values, w in zip(inner, self._gathered(1))]
        errors = [output_error(out, target) for out, target in zip(outputs, self.targets)]
        second = self._gathered(1)
        behind = [error @ w.T * (1.0 - values * values) for error, w, values in zip(errors, second, inner)]
        sums = {1: self._scatter([backward_second(inner[rank], errors[rank]).ravel() for rank in ranks])}
        self._gathered(0)  # FSDP gathers each layer for its backward pass, even where it needs no weights
        sums[0] = self._scatter([(self.inputs[rank].T @ behind[rank]).ravel() for rank in ranks])
        for layer, parts in sums.items():
            self.shards[layer] = [
                self.adams[layer][rank].updated(self.shards[layer][rank], parts[rank] / self.ranks)
                for rank in ranks
            ]
        self.gradients_held[:] = [sum(len(parts[rank]) for parts in sums.values()) for rank in ranks]

    def done(self) -> Training:
        """The result of the run."""
        ranks = range(self.ranks)
        sharded = self.stage == 3
        weights = (
            np.concatenate([np.concatenate(parts) for parts in self.shards]) if sharded else self.weights[0]
        )
        if not sharded and any(not np.array_equal(weights, others) for others in self.weights):
            raise ValueError("weights must be equal on all ranks after a step, got ranks that differ")
        held = dict(
            weights=np.array(
                [
                    sum(len(parts[rank]) for parts in self.shards) if sharded else len(self.weights[rank])
                    for rank in ranks
                ]
            ),
            gradients=self.gradients_held.astype(int),
            optimizer=np.array([sum(len(adams[rank].momentum) for adams in self.adams) for rank in ranks]),
        )
        return Training(
            self.stage, self.ranks, sum(self.groups), weights, self.sent, held, self.peak_gathered, self.calls
        )


def _gradients(layers, inputs, targets):
    w1, w2 = layers
    inner, outputs = forward(inputs, w1, w2)
    error = output_error(outputs, targets)
    return [backward_first(inputs, inner, error, w2), backward_second(inner, error)]


def _flat(layers):
    return np.concatenate([layer.ravel() for layer in layers])


def _layers(weights, shapes):
    first = shapes[0][0] * shapes[0][1]
    return weights[:first].reshape(shapes[0]), weights[first:].reshape(shapes[1])
