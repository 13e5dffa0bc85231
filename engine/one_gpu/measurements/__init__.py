"""Timings on real GPUs by `make measure`: one JSON file per device. There may be none; then lessons cite
published figures."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from engine import catalog

PLACE = Path(__file__).parent


@cache
def devices() -> dict[str, dict]:
    """Device name -> everything measured on it: `date`, `versions` and one entry per subject (a module of
    measure/)."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(PLACE.glob("*.json"))]
    return {each["device"]: each for each in files}


def of(subject: str) -> dict[str, dict]:
    """Device name -> the measurements of one subject, for the devices that have them."""
    return {device: found[subject] for device, found in devices().items() if subject in found}


def key_of(device: str) -> str:
    """The catalogue's key of a device by its driver's name, or nothing where the catalogue has none."""
    try:
        return catalog.gpu(device).key
    except ValueError:
        return ""


def on_known(subject: str) -> list[tuple[str, dict]]:
    """The catalogue's key -> the measurements of one subject, for the devices that are in the catalogue."""
    return [(key, found) for device, found in of(subject).items() if (key := key_of(device))]


def on(key: str) -> dict:
    """Everything measured on the device with this key of the catalogue; KeyError if there is none."""
    return {key_of(device): found for device, found in devices().items()}[key]
