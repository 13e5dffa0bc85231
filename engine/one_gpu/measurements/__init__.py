"""Timings on real GPUs by `make measure`: one JSON file per device. There may be none; then lessons cite
published figures."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

PLACE = Path(__file__).parent
# a word of a device's name as its driver gives it -> the catalogue's key
KEYS = {"H100 80GB HBM3": "h100-sxm", "H200": "h200", "A100-SXM4-80GB": "a100-80", "B200": "b200"}


@cache
def devices() -> dict[str, dict]:
    """Device name -> everything measured on it: `date`, `versions` and one entry per subject (a module of
    measure/)."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(PLACE.glob("*.json"))]
    return {each["device"]: each for each in files}


def of(subject: str) -> dict[str, dict]:
    """Device name -> the measurements of one subject, for the devices that have them."""
    return {device: found[subject] for device, found in devices().items() if subject in found}


def key(device: str) -> str:
    """The catalogue's key of a device, by its driver's name; "" for one that nobody has added above."""
    return next((key for word, key in KEYS.items() if word in device), "")


def on_known(subject: str) -> list[tuple[str, dict]]:
    """The same as ``of``, by the catalogue's keys, of the devices that have one."""
    return [(key(device), found) for device, found in of(subject).items() if key(device)]
