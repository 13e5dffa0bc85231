"""Speculative decoding in a server: how many steps an answer takes, if each step checks some drafted tokens.

The acceptance model is that of Leviathan et al. (arXiv:2211.17192): each drafted token is kept with the same
probability, independently of the others. The first token that is not kept ends the step, and a token of the
large model takes its place. ``tokens_per_verification`` is the mean of these random draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.serving import decoding
from engine.serving.events import draw

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.step.layout import Machine


class Drafts(NamedTuple):
    """Drafts of a server: their number in each step, how often one is kept, and the seconds of making
    them.

    >>> engine.Drafts(drafted=4, accepted=0.7, step_s=0.002)
    """

    drafted: int
    accepted: float
    step_s: float

    def rounds(self, outputs: list[int], seed: int) -> list[int]:
        """The steps that each answer takes after its first token, drawn one by one."""
        check.whole(drafted=self.drafted)
        check.between(0, 1, accepted=self.accepted)
        check.non_negative(step_s=self.step_s)
        state, found = 15485863 * (seed + 1), []
        for output in outputs:
            made, steps = 1, 0
            while made < output:
                kept = 0
                while kept < self.drafted:
                    state = draw(state)
                    if state / 2147483647 >= self.accepted:
                        break
                    kept += 1
                made += kept + 1
                steps += 1
            found.append(steps)
        return found


def tokens_per_verification(accepted: Real, drafted: Real) -> Real:
    """Expected tokens per speculative step: (1 − aᵏ⁺¹)/(1 − a), if each of k drafted tokens is accepted with
    probability a (Leviathan et al. 2023, arXiv:2211.17192 eq. 1). Includes the token that the large model
    itself adds."""
    check.between(0, 1, accepted=accepted)
    check.non_negative(drafted=drafted)
    rest = ops.maximum(1e-9, 1.0 - accepted)
    return ops.where(accepted > 1.0 - 1e-9, drafted + 1.0, (1.0 - accepted ** (drafted + 1.0)) / rest)


def speculative_speed_up(accepted: Real, drafted: Real, draft_cost: Real) -> Real:
    """The speed-up of speculative decoding over one token per step, if a draft token costs ``draft_cost`` of
    a step of the large model (Leviathan et al., Theorem 3.8).

    Valid while verifying k + 1 tokens takes no longer than one, as in a decode step far below the critical
    batch.
    """
    check.non_negative(draft_cost=draft_cost)
    return tokens_per_verification(accepted, drafted) / (drafted * draft_cost + 1.0)


def speculative_gain(
    model: Model,
    draft: Model,
    at: Machine,
    tp: Real,
    batch: Real,
    context: Real,
    accepted: Real,
    drafted: Real,
) -> Real:
    """The speed-up of speculative decoding for ``batch`` sequences at once, with a draft model on the same
    GPUs, computed from the times of the steps.

    A verification computes batch·(k + 1) tokens, and reads each cache once for the k + 1 tokens of its
    sequence. Drafting pays off where the result is above 1. Leaves out sampling, and that the sequences of a
    batch advance unevenly.
    """
    tokens = tokens_per_verification(accepted, drafted)
    checked = drafted + 1.0
    plain_s = decoding.split(model, at, tp, batch, context).total_s
    check_s = decoding.split(model, at, tp, batch * checked, context / checked).total_s
    return tokens * plain_s / (drafted * decoding.split(draft, at, tp, batch, context).total_s + check_s)
