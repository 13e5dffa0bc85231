"""What a deployment is, which latencies its requests have, and what a search for deployments returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.base import printing
from engine.calibration import bands
from engine.serving.deployment.load import Limits, Load
from engine.serving.drafts import Drafts
from engine.serving.replica import Replica


@dataclass(frozen=True)
class Measured:
    """The latencies of a long simulated run, at the limits' percentile; each error is half the width of a 95
    % interval."""

    ttft_s: float
    ttft_error_s: float
    tpot_s: float
    tpot_error_s: float
    median_tpot_s: float
    requests: int
    pause_s: float = 0.0  # the longest between two tokens of an answer
    pause_error_s: float = 0.0
    kept: float = 1.0  # goodput: the share of requests that kept every promise
    kept_error: float = 0.0


def unfelt(token_s: float) -> Measured:
    """What is known before a simulation: only the mean time of a token, in closed form."""
    return Measured(math.nan, math.nan, math.nan, math.nan, token_s, 0)


@dataclass(frozen=True)
class Deployment(printing.Printed):
    """Equal replicas of one model that serve a load within its limits, in one pool or in two."""

    model: str
    gpu: str
    replica: Replica  # a replica that writes answers
    replicas: int
    prefill_replicas: int  # replicas only for prompts; 0 where each replica mixes prompts with answers
    weights: str  # "bf16", "fp8" (weights and products) or "int4" (weights alone)
    kv_precision: str
    chunk: int  # most tokens of a step
    largest_batch: int  # most answers at once in each of a replica's batches
    drafts: Drafts | None
    longest: int  # tokens of prompt and answer that a server is told to accept
    load: Load
    limits: Limits
    felt: Measured
    running: float  # answers that are written at once in each such batch, on average
    answer: float  # mean tokens of an answer
    dollars_per_gpu_hour: float
    binding: (
        str  # missed with a replica less: "ttft_s", "tpot_s", "pause_s", "capacity"; "smallest" if nothing is
    )
    extrapolates: tuple[str, ...]
    dearer_by: float = 0.0  # share by which it costs more than the cheapest
    front: Replica | None = None  # a replica that only prefills, if it is of another kind

    @property
    def reads(self) -> Replica:
        """The kind of replica that prefills."""
        return self.front or self.replica

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.prefill_replicas * self.reads.gpus + self.decode_replicas * self.replica.gpus

    @property
    def apart(self) -> bool:
        """Whether prompts and answers have GPUs of their own."""
        return self.prefill_replicas > 0

    @property
    def decode_replicas(self) -> int:
        """Replicas that write answers."""
        return self.replicas - self.prefill_replicas

    @property
    def tokens_per_s(self) -> float:
        """Tokens written each second, over all replicas."""
        return self.load.per_s * self.answer

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Tokens written each second, for each GPU."""
        return self.tokens_per_s / self.gpus

    @property
    def tokens_per_s_per_user(self) -> float:
        """The speed that half of the users see at least."""
        return 1.0 / self.felt.median_tpot_s if self.felt.median_tpot_s > 0 else 0.0

    @property
    def dollars_per_million(self) -> float:
        """Dollars for 10⁶ tokens that are written, with their prompts."""
        return self.dollars_per_gpu_hour * self.gpus / 3600.0 / self.tokens_per_s * 1e6

    @property
    def band_s(self) -> dict[str, tuple[float, float]]:
        """80 % bands of the two percentiles, from published latencies that were not used for fitting."""
        first, token = bands.band("latency", bands.FIRST), bands.band("latency")
        asked = {
            "ttft_s": (self.felt.ttft_s, first),
            "tpot_s": (self.felt.tpot_s, token),
            "pause_s": (self.felt.pause_s, token),
        }
        return {name: (low * value, high * value) for name, (value, (low, high)) in asked.items()}

    @property
    def band_gpus(self) -> tuple[float, float]:
        """80 % band of the GPUs that the load will really take, from published throughputs: a server that is
        faster than computed by some factor needs fewer GPUs by that factor."""
        low, high = bands.band("throughput")
        return self.gpus / high, self.gpus / low

    @property
    def band_dollars_per_million(self) -> tuple[float, float]:
        """80 % band of the dollars for 10⁶ tokens (``band_gpus``, of which nobody can rent a part)."""
        low, high = self.band_gpus
        of_one = self.dollars_per_million / self.gpus
        return of_one * math.ceil(low), of_one * math.ceil(high)

    @property
    def sure(self) -> bool:
        """Whether the limits hold even at the slow end of the band."""
        bands_s, limits = self.band_s, self.limits
        tokens = bands_s["ttft_s"][1] <= limits.ttft_s and bands_s["tpot_s"][1] <= limits.tpot_s
        return tokens and not bands_s["pause_s"][1] > limits.pause_s

    @property
    def split(self) -> str:
        """The replicas in words: "3 × TP 4", "2 + 3 × TP 4", "2 × TP 2 + 3 × TP 4" or "1 × EP 32 + 2 × EP
        64", those that prefill first."""
        return split(self.reads, self.replica, self.prefill_replicas, self.decode_replicas)

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "split": self.split,
            "gpus": self.gpus,
            "replica": self.replica.name,
            "tp": self.replica.tp,
            "pp": self.replica.pp,
            "dp": self.replica.dp,
            "prefill_replica": self.reads.name,
            "prefill_tp": self.reads.tp,
            "prefill_pp": self.reads.pp,
            "prefill_dp": self.reads.dp,
            "replicas": self.replicas,
            "prefill_replicas": self.prefill_replicas,
            "weights": self.weights,
            "kv_precision": self.kv_precision,
            "chunk": self.chunk,
            "largest_batch": self.largest_batch,
            "drafted": 0 if self.drafts is None else self.drafts.drafted,
            "longest": self.longest,
            "ttft_s": self.felt.ttft_s,
            "ttft_error_s": self.felt.ttft_error_s,
            "tpot_s": self.felt.tpot_s,
            "tpot_error_s": self.felt.tpot_error_s,
            "pause_s": self.felt.pause_s,
            "pause_error_s": self.felt.pause_error_s,
            "goodput": self.felt.kept,
            "simulated_requests": self.felt.requests,
            "ttft_band_s": list(self.band_s["ttft_s"]),
            "tpot_band_s": list(self.band_s["tpot_s"]),
            "pause_band_s": list(self.band_s["pause_s"]),
            "sure": self.sure,
            "running": self.running,
            "tokens_per_s_per_user": self.tokens_per_s_per_user,
            "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu,
            "dollars_per_gpu_hour": self.dollars_per_gpu_hour,
            "dollars_per_million": self.dollars_per_million,
            "dollars_per_million_band": list(self.band_dollars_per_million),
            "gpus_band": list(self.band_gpus),
            "binding": self.binding,
            "dearer_by": self.dearer_by,
            "extrapolates": list(self.extrapolates),
        }


def split(front: Replica, back: Replica, prefill: int, decode: int) -> str:
    """The replicas of both kinds, and how many of each, in words."""
    if prefill and front != back:
        return f"{prefill} × {front.name} + {decode} × {back.name}"
    return f"{f'{prefill} + ' if prefill else ''}{decode} × {back.name}"


@dataclass(frozen=True)
class Deployments(printing.Printed):
    """The cheapest deployment within the limits, and the cheapest of the other kinds, in order."""

    best: Deployment
    runners_up: tuple[Deployment, ...]
    considered: int  # combinations of replicas and pools that were judged in closed form
    simulated: int  # deployments that were then run event by event
    search_s: float
    leaves_out: tuple[str, ...]

    def as_dict(self) -> dict:
        """The search as the command line prints it with --json."""
        return {
            "best": self.best.as_dict(),
            "runners_up": [other.as_dict() for other in self.runners_up],
            "considered": self.considered,
            "simulated": self.simulated,
            "search_s": self.search_s,
            "leaves_out": list(self.leaves_out),
        }

    def rows(self) -> list[dict]:
        """A row for the cheapest, and one for the cheapest of each other kind."""
        return [printing.flat(each.as_dict()) for each in (self.best, *self.runners_up)]


USUAL = {"kv_precision": "bf16", "sure": True, "drafted": 0, "dearer_by": 0.0}
COLUMNS = (
    "split",
    "weights",
    "kv_precision",
    "chunk",
    "largest_batch",
    "drafted",
    "gpus",
    "ttft_s",
    "tpot_s",
    "pause_s",
    "goodput",
    "tokens_per_s_per_user",
    "dollars_per_million",
    "dearer_by",
    "binding",
    "sure",
)


@printing.parts.register
def _parts(found: Deployments) -> list[printing.Part]:
    """The search in figures, the deployments beside each other, and how sure the cheapest is."""
    figures = found.as_dict()
    best = figures["best"]
    told = ("ttft_band_s", "tpot_band_s", "gpus_band", "dollars_per_million_band", "extrapolates")
    return [
        {key: figures[key] for key in ("considered", "simulated", "search_s")},
        "The cheapest, and the cheapest of other kinds:",
        printing.Table([best, *figures["runners_up"]], COLUMNS, USUAL),
        {key: best[key] for key in told} | {"leaves_out": figures["leaves_out"]},
    ]
