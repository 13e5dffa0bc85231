"""Speculative decoding in a server: how many steps an answer takes, if each step checks some drafted tokens.

The acceptance model is that of Leviathan et al. (arXiv:2211.17192): each drafted token is kept with the same
probability, whatever became of the others; the first that is not ends the step, which adds a token of the
large model in its place. ``serving.tokens_per_verification`` is the mean that this draws from.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.base import check
from engine.serving.serving_events import draw


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
