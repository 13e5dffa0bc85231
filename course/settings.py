"""The settings in mkdocs.yml, read without the program that builds the pages: two programs can
(docs/builder.md), and what else needs a setting asks here."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).resolve().parents[1] / "mkdocs.yml"
BUILT_IN = ("toc", "tables", "fenced_code")  # extensions that mkdocs puts before all others


class _Loader(yaml.Loader):  # it also names Python's functions, and mkdocs.yml is ours
    pass


def _from_environment(loader: _Loader, node: yaml.SequenceNode) -> str:
    """``!ENV [NAME, default]``: a variable of the environment, as both programs read it."""
    name, default = loader.construct_sequence(node)
    return os.environ.get(name, str(default))


_Loader.add_constructor("!ENV", _from_environment)


@cache
def _all() -> dict[str, Any]:
    found = yaml.load(FILE.read_text(encoding="utf-8"), _Loader)
    return found | {"site_url": f"{found['site_url'].rstrip('/')}/"}


def of(name: str) -> Any:
    """A setting, by its name in mkdocs.yml."""
    return _all()[name]


def extensions() -> tuple[list[str], dict[str, dict]]:
    """The Markdown extensions in their order, and the options of those that have any."""
    listed = [{each: {}} if isinstance(each, str) else each for each in of("markdown_extensions")]
    options = {name: given for each in listed for name, given in each.items()}
    return [*BUILT_IN, *(name for name in options if name not in BUILT_IN)], options


def public_home() -> str:
    """The address where the course is published, if the build was given one (SITE_URL)."""
    address = of("site_url")
    return "" if address.startswith("http://localhost") else address
