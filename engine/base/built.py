"""Where the built course lies, and the script that ``panel serve`` runs beside it: in a clone, or packed into
an installed wheel (hatch_build.py), and of which types its files are. Needs only the standard library."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the clone, or the installed package
BUILT = ROOT / "build" / "static"
SCRIPT = ROOT / "site" / "live.py"
PACKED = ROOT / "course" / "packed"  # only a wheel has it
IN_WHEEL = PACKED.is_dir()
SITE = PACKED / BUILT.name if IN_WHEEL else BUILT
TYPES = {  # of files, fixed here, because Windows and old Pythons know other ones
    ".css": "text/css",
    ".js": "text/javascript",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
    ".table": "application/octet-stream",
    ".webp": "image/webp",
    ".whl": "application/zip",
    ".woff2": "font/woff2",
    ".xml": "text/xml",
}
LIVE = PACKED / SCRIPT.name if IN_WHEEL else SCRIPT
