"""Speculative decoding in a server: how many steps an answer takes, if each step checks some drafted tokens.

The acceptance model is that of Leviathan et al. (arXiv:2211.17192): each drafted token is kept with the same
probability, independently of the others. The first token that is not kept ends the step, and a token of the
large model takes its place. ``tokens_per_verification`` is the mean of these random draws.

Real drafts get worse the further they look ahead, because each builds on the guesses before it. So a
probability may fall by the same factor from each drafted token to the next (``tokens_of_a_round``); then more
drafts bring less and less, and the length saturates.
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
    accepted: float  # the first of them …
    step_s: float
    falls: float = 1.0  # … and by which factor less often each further one, if those before it were kept

    def rounds(self, outputs: list[int], seed: int) -> list[int]:
        """The steps that each answer takes after its first token, drawn one by one."""
        check.whole(drafted=self.drafted)
        check.between(0, 1, accepted=self.accepted)
        check.non_negative(step_s=self.step_s)
        check.between(0, 1, falls=self.falls)
        state, found = 15485863 * (seed + 1), []
        for output in outputs:
            made, steps = 1, 0
            while made < output:
                kept, chance = 0, self.accepted
                while kept < self.drafted:
                    state = draw(state)
                    if state / 2147483647 >= chance:
                        break
                    kept += 1
                    chance *= self.falls
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


def tokens_of_a_round(accepted: float, drafted: int, falls: float = 1.0) -> float:
    """Expected tokens per speculative step, 1 + Σ aʲ·fʲ⁽ʲ⁻¹⁾ᐟ² for j = 1 to k: of k drafted tokens the first
    is kept with probability a, and each further one f times as often as the one before it. With f = 1 this
    is ``tokens_per_verification``.

    Of seven models' published lengths (SPEED-Bench, InferenceX golden_al_distribution at 843c6254), those
    with one and two drafts give a and f. What follows for 3 to 8 drafts is within 18 %, in the mean 5.3 %,
    where one probability for all is up to 112 % too long, in the mean 24 % (test_drafts.py).
    """
    check.between(0, 1, accepted=accepted, falls=falls)
    check.whole(at_least=0, drafted=drafted)
    tokens, chance, reached = 1.0, accepted, 1.0
    for _ in range(int(drafted)):
        reached *= chance
        tokens += reached
        chance *= falls
    return tokens


def fitted(one: float, two: float) -> tuple[float, float]:
    """The probability and the factor of ``tokens_of_a_round`` for which steps with one and with two drafts
    have these mean lengths."""
    accepted = one - 1.0
    return accepted, min(1.0, (two - one) / accepted**2)


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
