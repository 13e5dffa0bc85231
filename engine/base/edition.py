"""The version of the course."""

import tomllib
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "system-ml-course"  # what pip knows the package by; it is imported as system_ml
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def version() -> str:
    """The version in pyproject.toml or, without that file, the version of the installed package, which was
    built from it."""
    if PROJECT.is_file():
        return tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
    return metadata.version(DISTRIBUTION)
