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

    A rank reads its own tokens and experts and what was sent to it, nothing else. ``gates`` [token, k] weigh the
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
    return Layer(np.concatenate([sender.add_up(each, weigh=True) for sender, each in zip(senders, results)]),
                 np.concatenate([sender.add_up(each, weigh=False) for sender, each in zip(senders, returned)]),
                 np.concatenate([keeper.up_gradient for keeper in keepers]),
                 np.concatenate([keeper.down_gradient for keeper in keepers]),
                 (dispatched, combined, dispatched_back, combined_back))


def exchange(outboxes):
    """An AllToAll of unequal parts: what rank s has for rank d, [s][d], arrives as [d][s]; and how many rows, [s, d]."""
    return ([[outbox[rank] for outbox in outboxes] for rank in range(len(outboxes))],
            np.array([[len(part) for part in outbox] for outbox in outboxes]))


def _sent(chosen, local, ranks):
    """For each rank what is sent there: (tokens, choices, experts by that rank's numbers), in order of the experts."""
    found = []
    for rank in range(ranks):
        token, choice = np.nonzero((chosen >= rank * local) & (chosen < (rank + 1) * local))
        order = np.argsort(chosen[token, choice], kind="stable")
        found.append((token[order], choice[order], chosen[token, choice][order] - rank * local))
    return found


@dataclass(frozen=True, eq=False)
class _Sender:
    """A rank as the home of its tokens."""

    tokens: np.ndarray
    gradient: np.ndarray
    sent: list
    gates: np.ndarray

    def rows(self):
        return [self.tokens[token] for token, _, _ in self.sent]

    def slopes(self):
        """What the results' gradients are, behind the gates."""
        return [self.gates[token, choice, None] * self.gradient[token] for token, choice, _ in self.sent]

    def add_up(self, came, weigh):
        total = np.zeros(self.tokens.shape)
        for (token, choice, _), rows in zip(self.sent, came):
            np.add.at(total, token, self.gates[token, choice, None] * rows if weigh else rows)
        return total


class _Keeper:
    """A rank as the home of its experts. It keeps what came and what it computed until the gradients come."""

    def __init__(self, experts: Experts):
        self.experts, self.kept = experts, []
        self.up_gradient, self.down_gradient = np.zeros_like(experts.up), np.zeros_like(experts.down)

    def answer(self, arrived, which):
        """Each source's rows through their experts."""
        answers = [np.zeros_like(rows, dtype=float) for rows in arrived]
        for e in range(len(self.experts)):
            for source, (rows, expert) in enumerate(zip(arrived, which)):
                at = np.flatnonzero(expert == e)
                answers[source][at], inner = self.experts.forward(e, rows[at])
                self.kept.append((e, source, at, rows[at], inner))
        return answers

    def learn(self, slopes):
        """The gradients of the rows, to be sent home; those of the weights stay."""
        back = [np.zeros_like(rows, dtype=float) for rows in slopes]
        for e, source, at, rows, inner in self.kept:
            back[source][at], up, down = self.experts.backward(e, rows, inner, slopes[source][at])
            self.up_gradient[e] += up
            self.down_gradient[e] += down
        return back


def dense(tokens, choices, gates, experts: Experts):
    """The output of one machine that computes every expert for every token, and weighs most of it by 0."""
    weight = np.zeros((len(tokens), len(experts)))
    for token, choice in np.ndindex(np.shape(choices)):
        if choices[token][choice] != NOWHERE:
            weight[token, choices[token][choice]] += gates[token][choice]
    return sum(weight[:, [e]] * experts.forward(e, np.asarray(tokens, dtype=float))[0] for e in range(len(experts)))


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
