"""A layer of experts executed on ranks: rows move to their experts and back, forward and backward, and every
row is counted.

Each rank has its tokens and its experts. Dispatch sends one row per choice to the rank that holds the expert,
combine sends the results back, and the token adds them up with its gate weights. Backward, the gradient of
combine is a dispatch and that of dispatch a combine. The result equals that of a single machine that holds
every expert (``dense``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.base import check
from engine.executed.ranks import same_node

NOWHERE = -1  # the expert of a choice that was dropped


@dataclass(frozen=True, eq=False)
class Experts:
    """Two matrices for each expert, with a ReLU between."""

    up: np.ndarray  # [expert, hidden, width]
    down: np.ndarray  # [expert, width, hidden]

    def __len__(self) -> int:
        return len(self.up)

    def forward(self, expert: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(output, the values that the backward pass needs)."""
        inner = np.maximum(rows @ self.up[expert], 0.0)
        return inner @ self.down[expert], inner

    def backward(
        self, expert: int, rows: np.ndarray, inner: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(gradient of the rows, of up, of down)."""
        inside = (gradient @ self.down[expert].T) * (inner > 0)
        return inside @ self.up[expert].T, rows.T @ inside, inner.T @ gradient


@dataclass(frozen=True, eq=False)
class ExecutedLayer:
    """The result of a run: outputs, gradients, and the rows that each AllToAll moved, [source,
    destination]."""

    output: np.ndarray  # [token, hidden]
    input_gradient: np.ndarray
    up_gradient: np.ndarray  # [expert, hidden, width]
    down_gradient: np.ndarray
    moved_rows: tuple[np.ndarray, ...]  # dispatch, combine, and the two backward

    def moved_bytes(self, row_bytes: float) -> np.ndarray:
        """[source, destination] summed over all four, without rows that stay on their rank."""
        total = sum(self.moved_rows)
        return (total - np.diag(np.diag(total))) * row_bytes


# -- which token goes where ----------------------------------------------------------------------------------
def top_choices(scores: np.ndarray, top_k: int) -> np.ndarray:
    """[token, k]: each token's experts, the best first."""
    check.whole(top_k=top_k)
    return np.argsort(-np.asarray(scores), axis=1, kind="stable")[:, :top_k]


def limited_choices(scores: np.ndarray, top_k: int, nodes: int, node_limit: int) -> np.ndarray:
    """``top_choices`` from at most ``node_limit`` nodes: the nodes whose top_k/node_limit best experts have
    the highest sum of scores (arXiv:2412.19437, section 2.1.2). Experts are placed on the nodes in order."""
    scores = np.asarray(scores, dtype=float)
    check.whole(top_k=top_k, nodes=nodes)
    check.between(1, nodes, node_limit=node_limit)
    by_node = scores.reshape(len(scores), nodes, -1)
    best = np.sort(by_node, axis=2)[:, :, -max(1, top_k // node_limit) :].sum(axis=2)
    allowed = top_choices(best, node_limit)
    open_ = np.zeros((len(scores), nodes), dtype=bool)
    np.put_along_axis(open_, allowed, True, axis=1)
    return top_choices(np.where(open_[:, :, None], by_node, -np.inf).reshape(scores.shape), top_k)


def within_capacity(choices: np.ndarray, experts: int, capacity_rows: int) -> np.ndarray:
    """The choices, where NOWHERE replaces each choice that finds its expert's queue full. Tokens queue in
    their order."""
    check.whole(capacity_rows=capacity_rows)
    taken, kept = np.zeros(experts, dtype=int), np.array(choices)
    for place in np.ndindex(kept.shape):
        expert = kept[place]
        if taken[expert] >= capacity_rows:
            kept[place] = NOWHERE
        else:
            taken[expert] += 1
    return kept


# -- the layer -----------------------------------------------------------------------------------------------
def execute(
    tokens: np.ndarray,
    gradient: np.ndarray,
    choices: np.ndarray,
    gates: np.ndarray,
    experts: Experts,
    ranks: int,
) -> ExecutedLayer:
    """Forward and backward on ``ranks``, each with an equal part of the tokens and of the experts, in order.

    A rank reads only its own tokens and experts and what was sent to it. ``gates`` [token, k] weight the
    results; dropped choices add nothing. Leaves out the gradient of the gates.
    """
    check.whole(ranks=ranks)
    for name, count in (("tokens", len(tokens)), ("experts", len(experts))):
        if count % ranks:
            raise ValueError(f"ranks must divide the {count} {name}, got {ranks}")
    local = len(experts) // ranks
    own = [np.split(np.asarray(each), ranks) for each in (tokens, gradient, choices, gates)]
    senders = [_Sender(x, dy, _sent(chosen, local, ranks), gate) for x, dy, chosen, gate in zip(*own)]
    weights = zip(np.split(experts.up, ranks), np.split(experts.down, ranks))
    keepers = [_Keeper(Experts(up, down)) for up, down in weights]
    which, _ = exchange([[expert for _, _, expert in sender.sent] for sender in senders])
    arrived, dispatched = exchange([sender.rows() for sender in senders])
    results, combined = exchange([keeper.answer(*each) for keeper, *each in zip(keepers, arrived, which)])
    slopes, dispatched_back = exchange([sender.slopes() for sender in senders])
    returned, combined_back = exchange([keeper.learn(each) for keeper, each in zip(keepers, slopes)])
    return ExecutedLayer(
        np.concatenate([sender.add_up(each, weigh=True) for sender, each in zip(senders, results)]),
        np.concatenate([sender.add_up(each, weigh=False) for sender, each in zip(senders, returned)]),
        np.concatenate([keeper.up_gradient for keeper in keepers]),
        np.concatenate([keeper.down_gradient for keeper in keepers]),
        (dispatched, combined, dispatched_back, combined_back),
    )


def exchange(outboxes: list[list[np.ndarray]]) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """An AllToAll of unequal parts: what rank s holds for rank d, [s][d], arrives as [d][s]. Returns what
    arrived, and the number of rows sent, [s, d]."""
    return (
        [[outbox[rank] for outbox in outboxes] for rank in range(len(outboxes))],
        np.array([[len(part) for part in outbox] for outbox in outboxes]),
    )


def _sent(chosen, local, ranks):
    """What is sent to each rank: (tokens, choices, experts by that rank's numbering), in order of the
    experts."""
    found = []
    for rank in range(ranks):
        token, choice = np.nonzero((chosen >= rank * local) & (chosen < (rank + 1) * local))
        order = np.argsort(chosen[token, choice], kind="stable")
        found.append((token[order], choice[order], chosen[token, choice][order] - rank * local))
    return found


@dataclass(frozen=True, eq=False)
class _Sender:
    """A rank in its role as owner of tokens."""

    tokens: np.ndarray
    gradient: np.ndarray
    sent: list
    gates: np.ndarray

    def rows(self) -> list[np.ndarray]:
        return [self.tokens[token] for token, _, _ in self.sent]

    def slopes(self) -> list[np.ndarray]:
        """The gradients of the results, after the gates."""
        return [self.gates[token, choice, None] * self.gradient[token] for token, choice, _ in self.sent]

    def add_up(self, came: list[np.ndarray], weigh: bool) -> np.ndarray:
        total = np.zeros(self.tokens.shape)
        for (token, choice, _), rows in zip(self.sent, came):
            np.add.at(total, token, self.gates[token, choice, None] * rows if weigh else rows)
        return total


class _Keeper:
    """A rank in its role as owner of experts. It keeps its inputs and intermediate values until the gradients
    come."""

    def __init__(self, experts: Experts) -> None:
        self.experts, self.kept = experts, []
        self.up_gradient, self.down_gradient = np.zeros_like(experts.up), np.zeros_like(experts.down)

    def answer(self, arrived: list[np.ndarray], which: list[np.ndarray]) -> list[np.ndarray]:
        """Each source's rows, passed through their experts."""
        answers = [np.zeros_like(rows, dtype=float) for rows in arrived]
        for e in range(len(self.experts)):
            for source, (rows, expert) in enumerate(zip(arrived, which)):
                at = np.flatnonzero(expert == e)
                answers[source][at], inner = self.experts.forward(e, rows[at])
                self.kept.append((e, source, at, rows[at], inner))
        return answers

    def learn(self, slopes: list[np.ndarray]) -> list[np.ndarray]:
        """The gradients of the rows, to be sent back. The gradients of the weights stay on this rank."""
        back = [np.zeros_like(rows, dtype=float) for rows in slopes]
        for e, source, at, rows, inner in self.kept:
            back[source][at], up, down = self.experts.backward(e, rows, inner, slopes[source][at])
            self.up_gradient[e] += up
            self.down_gradient[e] += down
        return back


def dense(tokens: np.ndarray, choices: np.ndarray, gates: np.ndarray, experts: Experts) -> np.ndarray:
    """The output of a single machine that computes every expert for every token and weights most of them by
    0."""
    weight = np.zeros((len(tokens), len(experts)))
    for token, choice in np.ndindex(np.shape(choices)):
        if choices[token][choice] != NOWHERE:
            weight[token, choices[token][choice]] += gates[token][choice]
    values = np.asarray(tokens, dtype=float)
    return np.sum([weight[:, [e]] * experts.forward(e, values)[0] for e in range(len(experts))], axis=0)


# -- copies on the wires -------------------------------------------------------------------------------------
def counted_copies(
    choices: np.ndarray,
    tokens_per_rank: int,
    experts_per_rank: int,
    ranks: int,
    gpus_per_node: int,
    once: bool,
) -> tuple[float, float]:
    """(over NVLink, through NICs) per token, on average: a count of what ``experts.copies`` predicts.

    Without ``once`` every choice is a message. With ``once``, a single message goes to each node with an
    expert of the token: it reaches the GPU with the sender's index there, which forwards it to each GPU that
    holds such an expert.
    """
    inside = same_node(ranks, gpus_per_node)
    link = nic = 0
    for token, chosen in enumerate(np.asarray(choices)):
        source = token // tokens_per_rank
        targets = [int(expert) // experts_per_rank for expert in chosen if expert != NOWHERE]
        if once:
            landing = {
                target: target // gpus_per_node * gpus_per_node + source % gpus_per_node for target in targets
            }
            nic += len({at for at in landing.values() if not inside[source, at]})
            link += sum(target != at for target, at in landing.items())
        else:
            nic += sum(not inside[source, target] for target in targets)
            link += sum(inside[source, target] and target != source for target in targets)
    return link / len(choices), nic / len(choices)
