"""The engine's accuracy on rows that were not used for fitting: our goals and the results, and the errors of
a training step along each axis of its layout.

The results are read from the two files that ``make calibrate`` writes; nothing is recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import catalog
from engine.base import printing
from engine.calibration import bands, known


@dataclass(frozen=True)
class Goal:
    """One line of the table: what is judged, the error allowed, and the error found."""

    what: str
    measure: str  # how the error is measured
    rows: int
    allowed: float
    found: float

    @property
    def met(self) -> bool:
        """Whether the error found is no larger than the goal allows."""
        return self.found <= self.allowed

    def as_dict(self) -> dict:
        """The line for --json."""
        return {
            "what": self.what,
            "measure": self.measure,
            "rows": self.rows,
            "allowed_error": self.allowed,
            "found_error": self.found,
            "met": self.met,
        }


@dataclass(frozen=True)
class Covered:
    """How often an 80 % band held on rows that were not used to set it."""

    what: str
    rows: int
    share: float

    @property
    def met(self) -> bool:
        """Whether the share of readings inside the band is close enough to what the band promises."""
        return COVERS[0] <= self.share <= COVERS[1]

    def as_dict(self) -> dict:
        """The line for --json."""
        return {"what": self.what, "rows": self.rows, "covered_share": self.share, "met": self.met}


# group of bands.toml -> allowed mean error
RUNS = (
    ("training steps, Hopper and A100, dense", "hopper and ampere dense", 0.07),
    ("training steps, Hopper and A100, experts", "hopper and ampere moe", 0.12),
    ("training steps, Blackwell", "blackwell", 0.12),
    ("training steps, TPU", "tpu", 0.15),
    ("peak memory of training", "memory", 0.08),
    ("collectives in the estimate, from 1 MB", "collective from 1 MB", 0.10),
    ("collectives in the estimate, below 1 MB", "collective below 1 MB", 0.25),
    ("serving: latency of prefill and decode", "latency", 0.12),
    ("serving: first token", "first token", 0.15),
    ("serving: throughput", "throughput", 0.15),
)
# kind of residuals.toml, one operation at a time -> its name
OPERATIONS = (
    ("gemm", "matrix products"),
    ("prefill", "attention of a prefill"),
    ("decode", "attention of a decode step"),
    ("latent", "latent attention"),
    ("experts", "experts"),
)
OPERATION_ALLOWED = 0.12
COVERS = (0.75, 0.90)


def goals() -> tuple[Goal, ...]:
    """Every goal, in the order of the table."""
    groups = bands.runs()["goal"]
    single = known.residuals()["total"]["held_out"]
    return tuple(
        Goal(what, "mean", groups[key]["runs"], allowed, groups[key]["mean_error"])
        for what, key, allowed in RUNS
    ) + tuple(
        Goal(
            f"{what}, above the launch",
            "median",
            single[key]["rows"],
            OPERATION_ALLOWED,
            single[key]["above_floor"],
        )
        for key, what in OPERATIONS
    )


def coverage() -> tuple[Covered, ...]:
    """Every band, and how often it held."""
    said = [
        Covered(f"{what}: {kind}", entry["runs"], entry["covers"])
        for what, kinds in bands.runs()["band"].items()
        for kind, entry in kinds.items()
        if kind != "all" or len(kinds) == 1
    ]
    single = known.residuals()["total"]["held_out"]
    return tuple(said) + tuple(
        Covered(f"operation: {what}", single[key]["rows"], single[key]["coverage"])
        for key, what in OPERATIONS
    )


# class of bands.toml, kind and name -> its name
KINDS = (
    ("step", "hopper dense", "a training step, dense, H100 and H200"),
    ("step", "hopper moe", "a training step, experts, H100 and H200"),
    ("step", "ampere dense", "a training step, dense, A100"),
    ("step", "blackwell dense", "a training step, dense, B200 to GB300"),
    ("step", "blackwell moe", "a training step, experts, B200 to GB300"),
    ("step", "tpu dense", "a training step, dense, TPU"),
    ("memory", "all", "memory of training"),
    ("collective", "all", "a collective"),
    ("latency", "vllm-0.11, dense", "a token of vLLM 0.11, dense"),
    ("latency", "vllm-0.11, experts", "a token of vLLM 0.11, experts"),
    ("latency", bands.FIRST, "a first token"),
    ("throughput", "all", "throughput of a full server"),
)
# family of bands.toml -> why its run is among those that are missed most, as far as that is known
UNKNOWN = "unknown"
WHY = {
    "ML.ENERGY qwen3-8b": "the card waited, by its power: 294 W, with short answers 646; for what is unknown",
    "ML.ENERGY llama3.1-8b": "the card waited, by its power: 449 W, with 64 users 617; for what is unknown",
    "Bridge gpt-oss-120b": "in part: its source calls the attention of this release slow",
    "Bridge qwen3-30b-a3b": "its source calls this release a regression (Megatron-Bridge, issue 1998)",
    "NVIDIA on GB200, experts": "in part: the first recipe for a new chip, whose attention was not fused",
    "latency of one user, vLLM": "in part: kernels for 4 bits that are no faster on an H100 than on an A100",
    "throughput, TensorRT-LLM 0.6": "in part: decode kernels that were faster than vLLM's, which fitted ours",
    "torchtitan": "unknown: long sequences over four and eight context ranks, under PyTorch's own loop",
    "latency of decode and prefill": "perhaps no fp8: its build asks for products in fp16",
}


@dataclass(frozen=True)
class KindError:
    """One kind of question: how many runs and families judge it, the errors, and how often the band held for
    families that it was not made from."""

    what: str
    families: int
    runs: int
    median: float
    mean: float
    signed: float
    covers: float

    def as_dict(self) -> dict:
        """The line for --json."""
        return {
            "what": self.what,
            "families": self.families,
            "runs": self.runs,
            "median_error": self.median,
            "mean_error": self.mean,
            "signed_error": self.signed,
            "covered_share": self.covers,
        }


def kinds() -> tuple[KindError, ...]:
    """Every kind of question, on runs that fitted nothing."""
    names = ("families", "runs", "median", "mean_error", "mean_signed", "covers")
    table = bands.runs()["band"]
    return tuple(KindError(name, *(table[what][kind][each] for each in names)) for what, kind, name in KINDS)


@dataclass(frozen=True)
class FarRun:
    """A run that the engine misses more than all others of its family."""

    what: str
    family: str
    run: str
    ratio: float  # measured over predicted

    @property
    def why(self) -> str:
        """What is known of the cause."""
        return WHY.get(self.family, UNKNOWN)

    def as_dict(self) -> dict:
        """The line for --json."""
        return {
            "what": self.what,
            "family": self.family,
            "run": self.run,
            "measured_over_ours": self.ratio,
            "why": self.why,
        }


def worst() -> tuple[FarRun, ...]:
    """The ten runs that are missed most, one of each family, farthest first."""
    return tuple(FarRun(**entry) for entry in bands.runs()["worst"].values())


@dataclass(frozen=True)
class AxisError:
    """The error of the runs with one value on one axis."""

    kind: str
    axis: str
    runs: int
    mean: float
    signed: float
    covers: float | None = None  # the share of these runs for which the kind's band holds

    def as_dict(self) -> dict:
        """The line for --json."""
        said = {
            "runs_of": self.kind,
            "axis": self.axis,
            "runs": self.runs,
            "mean_error": self.mean,
            "signed_error": self.signed,
        }
        return said if self.covers is None else said | {"covered_share": self.covers}


def by_axis(fewest: int = 1) -> tuple[AxisError, ...]:
    """Runs by class and by axis, so that errors that cancel in a mean become visible, and how often the bands
    hold on runs of families that had no part in them."""
    return tuple(
        AxisError(kind, axis, entry["runs"], entry["mean_error"], entry["mean_signed"], entry["covers"])
        for kind, axes in bands.runs()["axis"].items()
        for axis, entry in axes.items()
        if entry["runs"] >= fewest and not axis.startswith("gpus ")
    )


@dataclass(frozen=True)
class Regret:
    """What the engine's choice of a layout would have cost, over the jobs of one source that were timed in
    several layouts."""

    family: str
    jobs: int
    layouts: int
    mean: float  # measured time of the layout predicted fastest, over that of the fastest measured, minus 1
    worst: float
    spread: float  # the regret of the worst choice, on average over the jobs
    chance: float  # the regret of a layout drawn by lot
    tied: int  # jobs whose fastest layout the engine calls a tie with its own choice

    def as_dict(self) -> dict:
        """The line for --json."""
        return {
            "family": self.family,
            "jobs": self.jobs,
            "layouts": self.layouts,
            "mean_regret_share": self.mean,
            "worst_regret_share": self.worst,
            "mean_spread_share": self.spread,
            "by_chance_share": self.chance,
            "best_in_tie": self.tied,
        }


def regret() -> tuple[Regret, ...]:
    """The regret over all sources together, then for each source."""
    return tuple(Regret(family, **entry) for family, entry in bands.runs()["regret"].items())


@dataclass(frozen=True)
class Ran:
    """For how many runs that did run, and therefore fitted, the engine says that they fit."""

    family: str
    runs: int
    fit: int
    worst: float  # the largest ratio of predicted memory to the GPU's, over all of these runs

    def as_dict(self) -> dict:
        """The line for --json."""
        return {
            "family": self.family,
            "runs": self.runs,
            "judged_to_fit": self.fit,
            "most_memory_share": self.worst,
        }


def ran() -> tuple[Ran, ...]:
    """The count for all sources together, then for each source."""
    return tuple(Ran(family, **entry) for family, entry in bands.runs()["ran"].items())


@dataclass(frozen=True)
class OfServers:
    """The engine's errors for one kind of servers under load."""

    name: str  # family, GPU and scenario
    runs: int
    mean_error: float
    mean_signed: float
    rested_signed: float  # the mean signed error if no power limit slowed a product

    @property
    def family(self) -> str:
        """Who measured, and which workload."""
        return self.name.split(", ")[0]

    @property
    def gpu(self) -> str:
        """The GPU by its usual name."""
        return catalog.gpu(self.key).name

    @property
    def key(self) -> str:
        """The GPU's key in the catalogue."""
        return self.name.split(", ")[1]

    @property
    def scenario(self) -> str:
        """How requests arrive."""
        return self.name.split(", ")[2]


def servers() -> tuple[OfServers, ...]:
    """The errors for each kind of server that ``served_runs`` distinguishes."""
    names = ("runs", "mean_error", "mean_signed", "rested_signed")
    return tuple(
        OfServers(name, *(entry[each] for each in names)) for name, entry in bands.runs()["served"].items()
    )


@dataclass(frozen=True)
class Traced:
    """One quantity of a run whose requests were logged one by one: measured and simulated, in seconds."""

    name: str  # the run's name and its GPU's key
    what: str
    measured_s: tuple[float, ...]  # the median, the 90th and the 99th percentile
    ours_s: tuple[float, ...]
    alike: float  # the correlation of measured and simulated times over the requests

    @property
    def error(self) -> float:
        """The relative error of the median."""
        return self.ours_s[0] / self.measured_s[0] - 1.0


TRACED = {"ttft": "first token", "tpot": "a token", "latency": "last token"}


def traced() -> tuple[Traced, ...]:
    """Each quantity of each run that ``traced_runs`` simulates."""
    return tuple(
        Traced(
            name,
            what,
            tuple(entry[f"{key}_measured_s"]),
            tuple(entry[f"{key}_ours_s"]),
            entry[f"{key}_alike"],
        )
        for name, entry in bands.runs().get("traced", {}).items()
        for key, what in TRACED.items()
    )


def shares(*gpus: str) -> list[float]:
    """Predicted over measured throughput of MLPerf's servers on these GPUs: the mean of each scenario's runs,
    lowest first."""
    rows = [row for row in servers() if row.family.startswith("MLPerf") and row.key in gpus]
    return sorted(1.0 + row.mean_signed for row in rows)


def families() -> tuple[AxisError, ...]:
    """Training steps by source."""
    return tuple(
        AxisError("step", name, entry["runs"], entry["mean_error"], entry["mean_signed"])
        for name, entry in bands.runs()["family"]["step"].items()
    )


def left_out() -> dict[str, int]:
    """Each reason why the engine could not predict a run -> the number of such runs."""
    return bands.runs()["refused"]["runs"]


def short_dict() -> dict:
    """What a reader asks first, for --json."""
    return {"kinds": [each.as_dict() for each in kinds()], "worst": [each.as_dict() for each in worst()]}


def as_dict() -> dict:
    """Everything for --json."""
    return short_dict() | {
        "goals": [goal.as_dict() for goal in goals()],
        "coverage": [each.as_dict() for each in coverage()],
        "axes": [each.as_dict() for each in by_axis()],
        "families": [each.as_dict() for each in families()],
        "regret": [each.as_dict() for each in regret()],
        "ran": [each.as_dict() for each in ran()],
        "left_out": left_out(),
    }


def in_short() -> list[printing.Part]:
    """What a reader asks first, as on the page *Validation*: how far off each kind is, and the worst runs."""
    rows = [
        {
            "kind": each.what,
            "families": each.families,
            "runs": each.runs,
            "half within": f"{each.median:.1%}",
            "mean": f"{each.mean:.1%}",
            "leans": f"{each.signed:+.1%}",
            "band holds": f"{each.covers:.0%}",
        }
        for each in kinds()
    ]
    far = [
        {"run": f"{each.family}: {each.run}", "measured": f"{each.ratio:.2f} ×", "why": each.why}
        for each in worst()
    ]
    return [
        "Runs that fitted nothing. A lean below zero is too fast or too little.",
        printing.Table(rows, list(rows[0])),
        "The worst run of each of ten families, measured over ours:",
        printing.Table(far, list(far[0])),
        "More: --by group for each source, --by axis for tensor ranks and the rest, --all for every row.",
    ]


def parts() -> list[printing.Part]:
    """Everything as tables."""
    said = as_dict()
    unseen = [{"why": why, "runs": count} for why, count in said["left_out"].items()]
    return [
        printing.Table(said["goals"], ["what", "measure", "rows", "allowed_error", "found_error", "met"]),
        printing.Table(said["coverage"], ["what", "rows", "covered_share", "met"]),
        printing.Table(
            said["axes"], ["runs_of", "axis", "runs", "mean_error", "signed_error", "covered_share"]
        ),
        printing.Table(said["families"], ["axis", "runs", "mean_error", "signed_error"]),
        "Regret: by how much the layout that the engine would have chosen was slower than the best measured:",
        printing.Table(said["regret"], list(said["regret"][0])),
        "Runs that ran, and so fitted:",
        printing.Table(said["ran"], list(said["ran"][0])),
        "Runs of which the engine had nothing to say:",
        printing.Table(unseen, ["why", "runs"]),
    ]
