"""Which version this is."""

import tomllib
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def version() -> str:
    """What pyproject.toml says, or where there is none, what was installed (which was packed from it)."""
    if PROJECT.is_file():
        return tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
    return metadata.version("system-ml")
