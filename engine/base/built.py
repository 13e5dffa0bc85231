"""Where the built course lies, and the script that ``panel serve`` runs beside it: in a clone, or packed into
an installed wheel (hatch_build.py). Needs only the standard library."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the clone, or the installed package
BUILT = ROOT / "build" / "static"
SCRIPT = ROOT / "site" / "live.py"
PACKED = ROOT / "course" / "packed"  # only a wheel has it
IN_WHEEL = PACKED.is_dir()
SITE = PACKED / BUILT.name if IN_WHEEL else BUILT
LIVE = PACKED / SCRIPT.name if IN_WHEEL else SCRIPT
