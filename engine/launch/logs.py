"""What a run's own log says of its speed and its memory: lines of Megatron, torchtitan, the Trainer of
transformers (and of what builds on it), vLLM and SGLang, and the closing tables of their benchmarks.

A log is read and nothing else: no line of it is run, and a line that is not known is skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from engine.base.units import GIB, MIB

LONGEST = 20_000_000  # characters
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NUMBER = r"(\d[\d,]*(?:\.\d*)?(?:[eE][+-]?\d+)?)"
LEAST, MOST = 1e-9, 1e15  # of a number that can be meant
WARM = 0.2  # of a log's steps, the first share: compilation, first touches of memory, NCCL's set-up


class LogLine(NamedTuple):
    """One kind of line: who writes it, what a number in it is, and in which unit."""

    program: str
    what: str
    pattern: str
    unit: float = 1.0


# what is read, in the words of each program; a line may say several things
LINES = (
    LogLine("Megatron", "step_s", rf"elapsed time per iteration \(ms\):\s*{NUMBER}", 1e-3),
    LogLine("Megatron", "global_batch", rf"global batch size:\s*{NUMBER}"),
    LogLine("Megatron", "memory_bytes", rf"max reserved:\s*{NUMBER}", MIB),
    LogLine("torchtitan", "tokens_per_s_per_gpu", rf"\btps:\s*{NUMBER}\s+tflops"),
    LogLine("torchtitan", "memory_bytes", rf"\bmemory:\s*{NUMBER}GiB\(", GIB),
    # a progress bar that has done its steps: 500/500 [10:21<00:00, 1.24s/it]
    LogLine("Trainer", "step_s", rf"\d+/\d+ \[[\d:]+<[\d:?]+,\s*{NUMBER}s/it"),
    LogLine("Trainer", "steps_per_s", rf"\d+/\d+ \[[\d:]+<[\d:?]+,\s*{NUMBER}it/s"),
    LogLine("Trainer", "tokens_per_s", rf"'train_tokens_per_second':\s*'?{NUMBER}"),
    LogLine(
        "vLLM", "rate_and_requests", rf"Avg generation throughput: {NUMBER} tokens/s, Running: {NUMBER} reqs"
    ),
    LogLine("vLLM", "cache_tokens", rf"GPU KV cache size: {NUMBER} tokens"),
    LogLine("SGLang", "requests_and_rate", rf"#running-req: {NUMBER},.*gen throughput \(token/s\): {NUMBER}"),
    LogLine("SGLang", "requests_and_held", rf"#running-req: {NUMBER}, #token: {NUMBER}"),
    LogLine("SGLang", "cache_tokens", rf"max_total_num_tokens={NUMBER}"),
    LogLine("a benchmark", "token_s", rf"(?:Median|P50) TPOT \(ms\):\s*{NUMBER}", 1e-3),
    LogLine("a benchmark", "requests", rf"(?:Maximum request|Max request) concurrency:\s*{NUMBER}"),
)
# stands before a rate, and shows whether a server was reading prompts meanwhile
READING = re.compile(r"Avg prompt throughput: ([\d.]+) tokens/s")
KNOWN = [(line, re.compile(line.pattern)) for line in LINES]


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
        for line, pattern in KNOWN:
            found = pattern.search(text)
            if found is None or (line.what == "rate_and_requests" and _reads(text)):
                continue
            numbers = tuple(float(number.replace(",", "")) * line.unit for number in found.groups())
            if not all(LEAST <= number <= MOST or number == 0.0 for number in numbers):
                continue
            seen.setdefault(line.what, []).append(numbers)
            programs[line.program] = programs.get(line.program, 0) + 1
    if not programs:
        who = ", ".join(dict.fromkeys(line.program for line in LINES))
        raise NothingKnown(f"log must have lines that are known, of {who}; none was found")
    return _measured(max(programs, key=lambda name: programs[name]), seen)


def _reads(text: str) -> bool:
    """Whether a server's line counts prompts, too."""
    found = READING.search(text)
    return found is not None and float(found[1]) > 0.0


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
