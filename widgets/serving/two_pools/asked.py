"""The controls of both figures: whose requests are served, over which wire, within which targets."""

from engine import catalog
from widgets.kit.controls import Number

MODELS = [
    catalog.model(key) for key in ("llama3-8b", "qwen3-32b", "llama3-70b", "gpt-oss-120b", "deepseek-v3")
]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]


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
