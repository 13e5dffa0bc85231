"""What was timed on real GPUs by `make measure`: one JSON file a device. There may be none; then lessons cite others' figures."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

PLACE = Path(__file__).parent


@cache
def devices() -> dict[str, dict]:
    """Device name -> everything measured on it: `date`, `versions` and one entry a subject (a module of measure/)."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(PLACE.glob("*.json"))]
    return {each["device"]: each for each in files}


def of(subject: str) -> dict[str, dict]:
    """Device name -> what was measured of one subject, for the devices where it was."""
    return {device: found[subject] for device, found in devices().items() if subject in found}
