"""Controls that several figures of serving have: whose requests are served, over which wire, within which
targets, in which formats and for which price."""

from engine import catalog
from engine.serving.deployment import choice
from widgets.kit.controls import Number

MODELS = [
    catalog.model(key) for key in ("llama3-8b", "qwen3-32b", "llama3-70b", "gpt-oss-120b", "deepseek-v3")
]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
WIDTHS = {"bf16": ("bf16", 2.0), "fp8": ("fp8", 1.0), "int4": ("4 bits", 0.5)}
WEIGHTS = {one.key: (WIDTHS[one.key][0], one) for one in choice.FORMATS}


def spread() -> Number:
    """How much lengths differ."""
    help = "Standard deviation of the logarithm; with 0 all are equal"
    return Number("Spread of the lengths", 0.6, 0.0, 1.5, stops=31, log=False, more=True, help=help)


def price() -> Number:
    """Of a GPU for an hour."""
    listed = catalog.price("h100-sxm").dollars_per_hour
    return Number("Price of a GPU-hour", listed, 0.1, 30.0, family="dollars", stops=48, more=True)


def wire(help: str) -> Number:
    """The bandwidth over which caches move."""
    marks = (1.25e9, 12.5e9, 400e9)
    return Number(
        "Wire between the pools",
        50e9,
        0.1e9,
        450e9,
        family="bytes_per_s",
        stops=61,
        marks=marks,
        more=True,
        help=help,
    )


def first_token(label: str, most: float, help: str = "") -> Number:
    """The target for a first token."""
    marks = (0.2, 0.5, 2.0)
    return Number(label, 1.0, 0.05, most, family="seconds", stops=49, marks=marks, more=True, help=help)


def each_token(seconds: float) -> Number:
    """The target for each other token."""
    marks = (0.02, seconds, 0.1)
    return Number(
        "Each token, at most", seconds, 0.005, 1.0, family="seconds", stops=49, marks=marks, more=True
    )
