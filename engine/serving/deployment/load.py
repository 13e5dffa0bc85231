"""What a deployment is asked to do: a load, and the limits within which it is served."""

from __future__ import annotations

from dataclasses import dataclass

from engine.base import check

MOST_PREFIX = 0.99
ANY_S = 1e9  # a limit that everything keeps
MOST_PER_S = 1e9  # requests a second: more than anybody gets, and few enough to count GPUs exactly


@dataclass(frozen=True)
class Load:
    """Requests as they arrive: ``per_s`` a second at random times, with log-normal lengths.

    ``prompt`` and ``output`` are the medians in tokens; the spreads are standard deviations of the length's
    logarithm (0.6 is a usual chat, 0 makes all alike). ``prefix_share`` of every prompt is found in a prefix
    cache.

    >>> chat = engine.Load(per_s=20, prompt=2000, prompt_spread=0.6)
    >>> chat.prompt, chat.output
    """

    per_s: float
    prompt: int = 1024
    output: int = 128
    prompt_spread: float = 0.0
    output_spread: float = 0.0
    prefix_share: float = 0.0

    def __post_init__(self) -> None:
        check.positive(per_s=self.per_s)
        check.between(0, MOST_PER_S, per_s=self.per_s)
        check.whole(prompt=self.prompt, output=self.output)
        check.between(0, 2, prompt_spread=self.prompt_spread, output_spread=self.output_spread)
        check.between(0, MOST_PREFIX, prefix_share=self.prefix_share)


@dataclass(frozen=True)
class Limits:
    """What a deployment promises: ``share`` of the requests have their first token within ``ttft_s`` seconds,
    and as many have the others, on average over the answer, at most ``tpot_s`` seconds apart. With
    ``pause_s``, the longest that an answer may pause for its next token, they keep all three: the share is
    the goodput.

    >>> limits = engine.Limits(ttft_s=1.0, tpot_s=0.05)
    >>> limits.share
    """

    ttft_s: float
    tpot_s: float
    share: float = 0.9
    pause_s: float = ANY_S  # the longest pause of an answer; by default any

    def __post_init__(self) -> None:
        check.positive(ttft_s=self.ttft_s, tpot_s=self.tpot_s, pause_s=self.pause_s)
        check.between(0.5, 0.99, share=self.share)
