"""What will be launched, in the engine's terms: a model, a job and a layout, or a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.catalog.models import Model
from engine.frameworks.settings import Assumed, Fault, Ignored, Refused, Setting
from engine.step.layout import Job, Layout


@dataclass(frozen=True)
class Drafters:
    """What drafts tokens beside a model: another model, or modules of its own that predict further tokens."""

    model: Model | None = None
    modules: int = 0


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
    chunk: int | None = None  # tokens of a step at most, where the texts say
    dp: int = 1  # groups of ``tp`` GPUs that share the experts and have requests of their own
    adapters: int = 0  # slots for adapters beside the base, unmerged …
    adapter_rank: int = 1  # … each of this rank
    formats: str = ""  # in which the checkpoint's parts are stored (``catalog.stored``), where it is known
    loaded_whole: bool = False  # in 16 bits first, and shrunk on the GPU afterwards
    on_host_bytes: float = 0.0  # weights of a GPU that stay in the host's memory
    eager: bool = False  # without graphs
    release: tuple[int, int] = (0, 0)  # of the program, where its memory depends on that …
    second: bool = False  # … and whether its second engine runs
    requests_said: bool = True  # whether the texts say how many at once …
    share_said: bool = True  # … and which share
    drafts: Drafters | None = None  # what drafts tokens beside the model
    cache_bytes: float = 0.0  # of the cache, where the texts say
    pictures: bool = True  # whether it takes some, if its model reads them
    videos: bool = True  # … and videos
    crosses: str = ""  # why only what is too large is sure, where layers attend to pictures
    text_only: bool = False  # the tower that reads pictures is not loaded
    pixels: float = 0.0  # of the largest, where the texts say
    tower_whole: bool = False  # each rank has the whole tower, and some of the pictures
    fullest: float = 0.0  # share of the layers on the fullest stage, where they are not even
    bytes_each: float = 0.0  # of every weight on average, as a file stores them; 0 where parts are told apart
    cached_bytes: float = 0.0  # of a cached value, where ``kv_precision`` does not say it
    cache_away: bool = False  # the cache is in the host's memory
    on_gpu: float = 1.0  # share of the layers that are on the GPUs
    experts_away: float = 0.0  # … and of those whose routed experts are not
    yields: bool = False  # takes layers away from the GPUs until the rest fits
    shortens: bool = False  # lowers the longest request until it fits
    flash: bool = True  # attention that keeps no scores

    @property
    def cut(self) -> float:
        """In how many parts the layers are, as the fullest stage has it."""
        return 1.0 / self.fullest if self.fullest else float(self.pp)


REFERENCE, CRITIC, ROLLOUT = "reference", "critic", "rollout"  # models beside the one that is trained


@dataclass(frozen=True)
class Role:
    """A model beside the one that is trained, on the same GPUs: a reference or a reward model, which only
    reads; a critic, which is trained, too; or the engine that writes the answers (a rollout)."""

    name: str  # REFERENCE, CRITIC or ROLLOUT
    model: Model
    ranks: int  # GPUs that hold a copy of its weights together
    weight_bytes: float = 2.0  # of a parameter
    share: float = 0.0  # of the GPU's memory, that a rollout takes
    leaves: bool = False  # gives its memory back, or moves to the host, while the others train
    layout: Layout | None = None  # of a critic, where the launch has one for it


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
    roles: tuple[Role, ...] = ()
    leaves: bool = False  # whether what is trained moves to the host while answers are written
    handed: float = 0.0  # share of its weights that each GPU gathers at once to hand them to the engine
    settings: tuple[Setting, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    unmodelled: tuple[Ignored, ...] = ()
    refused: tuple[Refused, ...] = ()
    faults: tuple[Fault, ...] = field(default=())
