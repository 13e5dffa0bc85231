"""What the engine asks of a framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from engine.frameworks import host_memory
from engine.frameworks.known_models import named
from engine.frameworks.settings import Draft, Entry, Field, Setting
from engine.frameworks.writing import Words
from engine.mechanism import memory

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.models import Model
    from engine.frameworks.described import Launch, Role, Server
    from engine.step.constraints import Ability
    from engine.step.layout import Job, Layout

# our names of what says which model is meant, which a config.json overrules
OF_THE_MODEL = ("model", "model_name", "flavor", "assets", "recipe")


class LogLine(NamedTuple):
    """A kind of line in a program's log: a regular expression in which {number} stands for what is read, what
    that is (``engine.launch.logs``), and in which unit."""

    what: str
    pattern: str
    unit: float = 1.0


class Sure:
    """How sure a framework may be that a command or a file is its own: the surest takes it."""

    NOT = 0
    ONE_FLAG = 1
    FLAGS = 2
    OWN_KEYS = 3
    OWN_SECTIONS = 4
    NAMED = 5


class Where:
    """Where a key goes that no text has yet."""

    FLAG = "before the last flag"
    BEHIND = "as a flag behind the first value"
    OVERRIDE = "behind another override"
    SECTION = "in its section of a TOML file"
    ARGUMENT = "among the arguments of a YAML file"


class Command(NamedTuple):
    """A command, as a framework looks at it to see whether it is its own."""

    words: list[str]
    flags: set[str]  # its arguments, with underscores
    script: int  # the place of the first argument behind the Python file that it runs


class Claim(NamedTuple):
    """How sure a framework is that a command starts it, and the place of its first argument."""

    sure: int
    start: int = 0


class Meant(NamedTuple):
    """What the settings of a launch come to: a job and a layout, or a server."""

    gpus: int
    precision: str
    job: Job | None = None
    layout: Layout | None = None
    server: Server | None = None
    roles: tuple[Role, ...] = ()  # models beside the one that is trained
    leaves: bool = False  # whether that one moves to the host while answers are written
    handed: float = 0.0  # share of its weights that each GPU gathers at once to hand them to the engine


def of_config(d: Draft, config: Callable[[], Model]) -> Model:
    """The model of a config.json; what else names one is overruled."""
    for name in OF_THE_MODEL:
        d.given(name)
    return config()


class Holds(NamedTuple):
    """What a server's program holds on a GPU beside weights and cache, by part."""

    inside: dict[str, float]  # bytes of what it counts to the memory that it may take
    graphs_outside: float = 0.0  # bytes of graphs that are captured when the cache is there already
    spare: float = 0.0  # … and what is counted inside, but is free by then
    less: float = 0.0  # bytes by which what is inside may be less …
    more: float = 0.0  # … and more than is counted
    beyond: float = 0.0  # weights on each GPU beside those of the layers
    in_blocks: bool = False  # whether states of a fixed size lie in the same blocks as the cache
    doubt: str = ""  # why it may be less or more


class Framework(Protocol):
    """One framework, with what is so unless its module says otherwise.

    Responsibilities:

    - know its own commands and files (``claims``, ``owns``), and what a command's words set (``entries``);
    - say once with which keys it sets what (``fields``), and which keys nobody here models (``unmodelled``);
    - say what it can run (``can``), of which a search is told;
    - read settings as a model (``model_of``) and as a job with a layout, or a server (``read``), and note
      what the framework itself would refuse;
    - edit: the settings that set one of our names (``edit``), what may be tried otherwise (``moves``), and
      where a key goes that no text has (``new_keys``);
    - write a layout, or a deployment, in its own words (``write``).
    """

    key: str  # its name in our files and commands
    name: str  # and for people
    place: int = 100  # in a list that people choose from
    serves: bool = False  # or it trains
    deploys: bool = True  # whether a deployment is written for it, if it serves
    fields: dict[str, Field] = {}  # its keys -> our names, for reading and for writing
    environment: dict[str, Field] = {}  # variables of the shell that it reads -> our names
    package: str = ""  # its name where packages are installed, if its memory depends on the release
    unmodelled: dict[str, str] = {}  # keys that change memory or time -> what is not modelled of that
    lightens: tuple[str, ...] = ()  # of what is not modelled, what may make the weights on a GPU less
    can: Ability | None = None  # what it runs of the layouts that the search lists, if any
    program: str = ""  # the catalogue's entry that its launches start from, where a plan is made for it …
    switches: dict[str, Any] = {}  # … what is written for it sets otherwise
    switches_in_fp8: dict[str, Any] = {}
    recipe_key: str = "bf16-adam"  # … and the state that this trains in 16 bits with
    calls: dict[str, str] = {}  # what a program calls -> what its arguments' keys have before them here
    separator: str = "_"  # between the words of a key in a command
    images: tuple[str, ...] = ()  # images whose own program starts it, by name or ``name:tag`` …
    image_runs: tuple[str, ...] = ()  # … and the words that this program stands for
    beside: tuple[str, ...] = ()  # frameworks whose files may lie beside its own in one launch
    names_model: str = "give its config.json"  # what to do where no model is named
    degrees: tuple[str, ...] = ("tp", "pp", "cp")  # that need GPUs, where no text says how many there are
    new_keys: tuple[str, ...] = (Where.FLAG,)  # where a key goes that no text has: the first place there is
    tried: dict[str, tuple] = {}  # our names that may be set otherwise -> to what, where not by steps
    keeps_gradients: bool = False  # in buffers that are made once
    expands: bool = False  # its own launcher makes the allocator's segments expandable
    takes_all: bool = False  # runs on all GPUs that there are
    timed: bool = True  # whether the engine's times are those of its kernels
    in_parts: bool = False  # whether several commands or lines are one launch
    pads: bool = False  # its batches are as long as their longest sequence
    log_lines: tuple[LogLine, ...] = ()  # that tell how a run goes

    def timed_as(self, release: tuple[int, int]) -> str:
        """The key of the software that a server's times are those of; "" for its kernels alone."""
        return ""

    def claims(self, command: Command) -> Claim:
        """How sure it is that a command starts it."""
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """How sure it is that a configuration file is its own."""
        return Sure.NOT

    def commands(self, notation: str, entries: list[Entry]) -> list[list[Entry]]:
        """The commands that a file of its own stands for, word by word as values of entries, such as a
        chart's; none where its entries are settings themselves."""
        return []

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """What a command sets, of its flags, the words that belong to none, and all words."""
        return found

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """Take what it needs of a file of one of ``beside``."""

    def known_as(self, name: str) -> str:
        """The catalogue's name for what the settings call a model; nothing where they mean none."""
        return name

    def named_model(self, d: Draft) -> Model:
        """The model that the settings name."""
        told = d.given("model")
        name = self.known_as(str(told)) if told else ""
        if not name:
            raise ValueError(f"no model is named: {self.names_model}")
        return named(name)

    def model_of(self, d: Draft, config: Callable[[], Model] | None) -> Model:
        """The model: of a config.json if there is one, else the one that is named."""
        return self.named_model(d) if config is None else of_config(d, config)

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """What the settings come to; what the framework refuses is noted. A server counts its GPUs itself."""
        raise ValueError("nothing here reads what this framework is started with")

    def moves(self, launch: Launch) -> dict[str, tuple]:
        """What may be tried of a launch."""
        return self.tried

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The settings that set one of our names to a value; None takes a key away."""
        return []

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """A layout (as a ``Run``) or a deployment in its own words; ``said`` is what the launch at hand has
        set, ``name`` a checkpoint's."""
        raise ValueError("nothing here writes what this framework is started with")

    def passing_bytes(self, launch: Launch, optimizer_bytes: float) -> float:
        """What the optimizer's step takes and gives back on each GPU, beside its state."""
        return 0.0

    def buckets_bytes(self, launch: Launch, gradients_bytes: float) -> float:
        """What gradients are copied into to be summed over ranks, and stays, on each GPU."""
        return 0.0

    def hosted_bytes(self, launch: Launch) -> float:
        """What training keeps in the host's memory for each GPU. Leaves out the programs themselves."""
        return host_memory.plain_bytes(launch)

    def settled(self, server: Server, gpu: Gpu) -> Server:
        """A server with what its program makes of the GPU where nobody says otherwise."""
        return server

    def holds(self, server: Server, model: Model, gpu: Gpu) -> Holds:
        """What a server holds on each GPU beside weights and cache."""
        return Holds({"framework": memory.FRAMEWORK_BYTES})

    def too_many(self, server: Server, blocks: int) -> str:
        """The error with which a server ends whose cache has fewer blocks than it may have requests."""
        return ""

    def too_small(self, server: Server, longest: int, needed_bytes: float, cache_bytes: float) -> str:
        """The error with which a server ends that has too little room; nothing if it starts."""
        return "" if cache_bytes > 0 else "torch.OutOfMemoryError: CUDA out of memory."
