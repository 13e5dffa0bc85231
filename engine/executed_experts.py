"""A layer of experts executed on ranks: rows move to their experts and back, forward and backward, and are counted.

Each rank has its tokens and its experts. Dispatch sends a row for each choice to the rank that holds the expert,
combine sends the results back, and the token adds them up by its gate weights. Backward, the gradient of combine is a
dispatch and that of dispatch a combine. The result is the one of a single machine that holds every expert (``dense``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine import check
from engine.ranks import same_node

NOWHERE = -1                        # the expert of a choice that was dropped


@dataclass(frozen=True, eq=False)
class Experts:
    """Two matrices for each expert, with a ReLU between."""

    up: np.ndarray                  # [expert, hidden, width]
    down: np.ndarray                # [expert, width, hidden]

    def __len__(self):
        return len(self.up)

    def forward(self, expert, rows):
        """(output, what the backward pass needs again)."""
        inner = np.maximum(rows @ self.up[expert], 0.0)
        return inner @ self.down[expert], inner

    def backward(self, expert, rows, inner, gradient):
        """(of the rows, of up, of down)."""
        inside = (gradient @ self.down[expert].T) * (inner > 0)
        return inside @ self.up[expert].T, rows.T @ inside, inner.T @ gradient


@dataclass(frozen=True, eq=False)
class Layer:
    """What a run gave: outputs, gradients, and the rows that each AllToAll moved, [source, destination]."""

    output: np.ndarray              # [token, hidden]
    input_gradient: np.ndarray
    up_gradient: np.ndarray         # [expert, hidden, width]
    down_gradient: np.ndarray
    moved_rows: tuple[np.ndarray, ...]      # dispatch, combine, and the two backward

    def moved_bytes(self, row_bytes) -> np.ndarray:
        """[source, destination] over all four, without what stays on its rank."""
        total = sum(self.moved_rows)
        return (total - np.diag(np.diag(total))) * row_bytes


# -- who goes where --------------------------------------------------------------------------------------------------
def top_choices(scores, top_k):
    """[token, k]: each token's experts, the best first."""
    check.whole(top_k=top_k)
    return np.argsort(-np.asarray(scores), axis=1, kind="stable")[:, :top_k]


def limited_choices(scores, top_k, nodes, node_limit):
    """The same, from ``node_limit`` nodes alone: those whose top_k/node_limit best experts have the highest sum
    (arXiv:2412.19437, section 2.1.2). Experts stand on the nodes in their order."""
    scores = np.asarray(scores, dtype=float)
    check.whole(top_k=top_k, nodes=nodes)
    check.between(1, nodes, node_limit=node_limit)
    by_node = scores.reshape(len(scores), nodes, -1)
    best = np.sort(by_node, axis=2)[:, :, -max(1, top_k // node_limit):].sum(axis=2)
    allowed = top_choices(best, node_limit)
    open_ = np.zeros((len(scores), nodes), dtype=bool)
    np.put_along_axis(open_, allowed, True, axis=1)
    return top_choices(np.where(open_[:, :, None], by_node, -np.inf).reshape(scores.shape), top_k)


def within_capacity(choices, experts, capacity_rows):
    """The choices with NOWHERE for those that came when their expert's queue was full, in order of the tokens."""
    check.whole(capacity_rows=capacity_rows)
    taken, kept = np.zeros(experts, dtype=int), np.array(choices)
    for place in np.ndindex(kept.shape):
        expert = kept[place]
        if taken[expert] >= capacity_rows:
            kept[place] = NOWHERE
        else:
            taken[expert] += 1
    return kept


# -- the layer -------------------------------------------------------------------------------------------------------
def execute(tokens, gradient, choices, gates, experts: Experts, ranks) -> Layer:
    """Forward and backward on ``ranks``, each with an equal part of the tokens and of the experts, in order.

    ``gates`` [token, k] weigh the results; dropped choices add nothing. Leaves out the gradient of the gates.
    """
    tokens, gradient = np.asarray(tokens, dtype=float), np.asarray(gradient, dtype=float)
    for name, count in (("tokens", len(tokens)), ("experts", len(experts))):
        check.whole(ranks=ranks)
        if count % ranks:
            raise ValueError(f"ranks must divide the {count} {name}, got {ranks}")
    rows = _sent_rows(choices, len(tokens) // ranks, len(experts) // ranks)
    moved = np.zeros((ranks, ranks), dtype=int)
    for row in rows:
        moved[row.source, row.destination] += 1
    output, input_gradient = np.zeros_like(tokens), np.zeros_like(tokens)
    up, down = np.zeros_like(experts.up), np.zeros_like(experts.down)
    for expert in range(len(experts)):
        queue = [row for row in rows if row.expert == expert]
        if not queue:
            continue
        at, gate = [row.token for row in queue], np.array([[gates[row.token][row.choice]] for row in queue])
        arrived = tokens[at]                                    # dispatch
        result, inner = experts.forward(expert, arrived)
        np.add.at(output, at, gate * result)                    # combine
        back, up[expert], down[expert] = experts.backward(expert, arrived, inner, gate * gradient[at])
        np.add.at(input_gradient, at, back)
    return Layer(output, input_gradient, up, down, (moved, moved.T, moved, moved.T))


def dense(tokens, choices, gates, experts: Experts):
    """The output of one machine that computes every expert for every token, and weighs most of it by 0."""
    weight = np.zeros((len(tokens), len(experts)))
    for token, choice in np.ndindex(np.shape(choices)):
        if choices[token][choice] != NOWHERE:
            weight[token, choices[token][choice]] += gates[token][choice]
    return sum(weight[:, [e]] * experts.forward(e, np.asarray(tokens, dtype=float))[0] for e in range(len(experts)))


@dataclass(frozen=True)
class _Row:
    token: int
    choice: int
    expert: int
    source: int
    destination: int


def _sent_rows(choices, tokens_per_rank, experts_per_rank) -> list[_Row]:
    return [_Row(token, choice, int(expert), token // tokens_per_rank, int(expert) // experts_per_rank)
            for (token, choice), expert in np.ndenumerate(choices) if expert != NOWHERE]


# -- copies on the wires ---------------------------------------------------------------------------------------------
def counted_copies(choices, tokens_per_rank, experts_per_rank, ranks, gpus_per_node, once):
    """(over NVLink, through NICs) for each token, on average: what ``experts.copies`` expects, counted.

    Plainly every choice is a message. ``once``: one for each node, to the GPU of the sender's number there, and from it
    one for each GPU that holds an expert of the token.
    """
    inside = same_node(ranks, gpus_per_node)
    link = nic = 0
    for token, chosen in enumerate(np.asarray(choices)):
        source = token // tokens_per_rank
        targets = [int(expert) // experts_per_rank for expert in chosen if expert != NOWHERE]
        if once:
            landing = {target: target // gpus_per_node * gpus_per_node + source % gpus_per_node for target in targets}
            nic += len({at for at in landing.values() if not inside[source, at]})
            link += sum(target != at for target, at in landing.items())
        else:
            nic += sum(not inside[source, target] for target in targets)
            link += sum(inside[source, target] and target != source for target in targets)
    return link / len(choices), nic / len(choices)
