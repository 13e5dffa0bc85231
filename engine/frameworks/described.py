"""What will be launched, in the engine's terms: a model, a job and a layout, or a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.catalog.models import Model
from engine.frameworks.settings import Assumed, Fault, Ignored, Refused, Setting
from engine.step.layout import Job, Layout


@dataclass(frozen=True)
class Server:
    """A server of one model: how it is cut, what its memory may hold, and what it is asked to hold."""

    tp: int
    pp: int
    replicas: int
    share: float  # of the memory, that the server may take; of what is left beside the weights if ``of_rest``
    of_rest: bool
    longest: int  # tokens of one request, prompt and output
    requests: int  # at once
    weight_precision: str | float | None  # the format of the weights, or bytes of one on average
    kv_precision: str
    chunk: int | None  # tokens of a step at most, where the texts say
    dp: int  # groups of ``tp`` GPUs that share the experts and have requests of their own
    adapters: int  # slots for adapters beside the base, unmerged …
    adapter_rank: int  # … each of this rank


@dataclass(frozen=True)
class Launch:
    """One launch, with everything that was read, assumed and ignored on the way to it."""

    framework: str  # a key of ``registry.frameworks``
    model: Model
    gpus: int
    precision: str
    job: Job | None = None
    layout: Layout | None = None
    server: Server | None = None
    settings: tuple[Setting, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    unmodelled: tuple[Ignored, ...] = ()
    refused: tuple[Refused, ...] = ()
    faults: tuple[Fault, ...] = field(default=())
