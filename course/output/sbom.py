"""Writes a list of what a wheel is made of beside it, as CycloneDX: the wheel with its digest, and the
packages whose code is in the course that it holds, or that it is built with, in the versions and with the
digests of ``deploy/requirements.txt``.

    python -m course.output.sbom build/wheel
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from engine.base.built import ROOT

LOCKED = ROOT / "deploy" / "requirements.txt"
PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)")
DIGEST = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(locked: str) -> list[dict[str, Any]]:
    """The packages of a file of requirements, each with the digests of its files."""
    found: list[dict[str, Any]] = []
    for line in locked.splitlines():
        if pinned := PINNED.match(line):
            name, version = pinned.groups()
            at = f"pkg:pypi/{name}@{version}"
            found.append(
                {"type": "library", "name": name, "version": version, "purl": at, "bom-ref": at, "hashes": []}
            )
        elif digest := DIGEST.search(line):
            found[-1]["hashes"].append({"alg": "SHA-256", "content": digest[1]})
    return found


def of(wheel: Path, locked: str) -> dict[str, Any]:
    """The list for one wheel."""
    name, version = wheel.name.split("-")[:2]
    own = f"pkg:pypi/{name.replace('_', '-')}@{version}"
    parts = components(locked)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": name.replace("_", "-"),
                "version": version,
                "purl": own,
                "bom-ref": own,
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in parts]}],
    }


def main(folder: str) -> None:
    """Write the list of each wheel in a folder."""
    for wheel in Path(folder).glob("*.whl"):
        made = of(wheel, LOCKED.read_text(encoding="utf-8"))
        wheel.with_suffix(".cdx.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
