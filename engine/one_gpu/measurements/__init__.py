"""Timings on real GPUs by `make measure`: one JSON file per device. There may be none; then lessons cite
published figures."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

PLACE = Path(__file__).parent
CHIPS = {"NVIDIA H100 80GB HBM3": "h100-sxm", "NVIDIA H200": "h200"}  # a driver's name: our key


@cache
def devices() -> dict[str, dict]:
    """Device name -> everything measured on it: `date`, `versions` and one entry per subject (a module of
    measure/)."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(PLACE.glob("*.json"))]
    return {each["device"]: each for each in files}


def of(subject: str) -> dict[str, dict]:
    """Device name -> the measurements of one subject, for the devices that have them."""
    return {device: found[subject] for device, found in devices().items() if subject in found}


def on_known(subject: str) -> list[tuple[str, dict]]:
    """The catalogue's key -> the measurements of one subject, for the devices that are in the catalogue."""
    return [(CHIPS[device], found) for device, found in of(subject).items() if device in CHIPS]


def on(key: str) -> dict:
    """Everything measured on the device with this key of the catalogue; KeyError if there is none."""
    return {CHIPS.get(device): found for device, found in devices().items()}[key]
