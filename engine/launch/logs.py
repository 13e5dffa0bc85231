"""What a run's own log says of its speed and its memory: lines that the frameworks' modules know
(``Framework.log_lines``), and the closing tables of servers' benchmarks.

A log is read and nothing else: no line of it is run, and a line that is not known is skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import NamedTuple

from engine.frameworks.framework import LogLine
from engine.frameworks.registry import frameworks

LONGEST = 20_000_000  # characters
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NUMBER = r"(\d[\d,]*(?:\.\d*)?(?:[eE][+-]?\d+)?)"
LEAST, MOST = 1e-9, 1e15  # of a number that can be meant
WARM = 0.2  # of a log's steps, the first share: compilation, first touches of memory, NCCL's set-up


# what the benchmarks of several servers close with
OF_BENCHMARKS = (
    LogLine("token_s", r"(?:Median|P50) TPOT \(ms\):\s*{number}", 1e-3),
    LogLine("requests", r"(?:Maximum request|Max request) concurrency:\s*{number}"),
)


class Known(NamedTuple):
    """A kind of line, ready to be looked for: whose it is, what it says and in which unit."""

    program: str
    what: str
    pattern: re.Pattern[str]
    unit: float


@cache
def known() -> tuple[Known, ...]:
    """Every kind of line that is known, those of each framework as its own module says them."""
    of = [
        (each.name, line) for each in frameworks().values() for line in vars(type(each)).get("log_lines", ())
    ]
    of += [("a benchmark", line) for line in OF_BENCHMARKS]
    ready = lambda pattern: re.compile(pattern.replace("{number}", NUMBER))
    return tuple(Known(name, line.what, ready(line.pattern), line.unit) for name, line in of)


class NothingKnown(ValueError):
    """A log has no line that is known."""


@dataclass(frozen=True)
class FromLog:
    """What was measured, as far as a log or a reader says it; 0 where neither does. Speeds are medians of the
    steady part of a run, memory is the most that PyTorch reserved on a GPU."""

    program: str = ""
    lines: int = 0  # that said it
    step_s: float = 0.0
    tokens_per_s: float = 0.0  # of all GPUs
    tokens_per_s_per_gpu: float = 0.0
    memory_bytes: float = 0.0
    global_batch: int = 0  # as the program states it
    token_s: float = 0.0  # from one token of a request to the next, in a server
    requests: float = 0.0  # that were running meanwhile
    held: float = 0.0  # tokens of each of them in the cache, where that is said
    cache_tokens: int = 0

    def step_of(self, tokens: float, gpus: int) -> float:
        """Seconds of a step of so many tokens, by whichever was measured; 0 for none."""
        per_s = self.tokens_per_s or self.tokens_per_s_per_gpu * gpus
        return self.step_s or (tokens / per_s if per_s else 0.0)


def read(log: str) -> FromLog:
    """What the log says; NothingKnown where it says nothing that is known."""
    if len(log) > LONGEST:
        raise ValueError(f"log must have at most {LONGEST:,} characters, got {len(log):,}")
    seen: dict[str, list[tuple[float, ...]]] = {}
    programs: dict[str, int] = {}
    for text in re.split(r"[\r\n]+", COLOUR.sub("", log)):
        for line in known():
            found = line.pattern.search(text)
            if found is None:
                continue
            numbers = tuple(float(number.replace(",", "")) * line.unit for number in found.groups())
            if not all(LEAST <= number <= MOST or number == 0.0 for number in numbers):
                continue
            seen.setdefault(line.what, []).append(numbers)
            programs[line.program] = programs.get(line.program, 0) + 1
    if not programs:
        who = ", ".join(dict.fromkeys(line.program for line in known()))
        raise NothingKnown(f"log must have lines that are known, of {who}; none was found")
    return _measured(max(programs, key=lambda name: programs[name]), seen)


def _measured(program: str, seen: dict[str, list[tuple[float, ...]]]) -> FromLog:
    """The steady values of what was seen."""
    steps = [one for (one,) in seen.get("step_s", ()) if one > 0]
    steps += [1.0 / one for (one,) in seen.get("steps_per_s", ()) if one > 0]
    rates = [one for (one,) in seen.get("tokens_per_s_per_gpu", ()) if one > 0]
    pairs = [(requests, rate) for rate, requests in seen.get("rate_and_requests", ())]
    pairs += [(requests, rate) for requests, rate in seen.get("requests_and_rate", ())]
    pairs = [pair for pair in pairs if min(pair) > 0]
    held = [tokens / requests for requests, tokens in seen.get("requests_and_held", ()) if requests > 0]
    token_s, requests = _steady([one for (one,) in seen.get("token_s", ())]), _last(seen, "requests")
    if not token_s and pairs:
        # requests come and go; the usual batch is what an estimate can be held against
        requests = _steady([each[0] for each in pairs])
        near = [each for each in pairs if abs(each[0] - requests) <= 0.1 * requests]
        token_s = _steady([running / rate for running, rate in near])
    return FromLog(
        program,
        max(
            len(steps),
            len(rates),
            len(pairs),
            len(seen.get("token_s", ())),
            len(seen.get("tokens_per_s", ())),
        ),
        _steady(steps),
        _last(seen, "tokens_per_s"),
        _steady(rates),
        max((one for (one,) in seen.get("memory_bytes", ())), default=0.0),
        int(_last(seen, "global_batch")),
        token_s,
        requests,
        _steady(held),
        int(_last(seen, "cache_tokens")),
    )


def _steady(values: list[float]) -> float:
    """The median without the first of them, which are slower; 0 for none."""
    return median(values[int(WARM * len(values) + 0.5) :]) if values else 0.0


def _last(seen: dict[str, list[tuple[float, ...]]], what: str) -> float:
    """What the last such line says; 0 where there is none."""
    return seen[what][-1][0] if what in seen else 0.0
