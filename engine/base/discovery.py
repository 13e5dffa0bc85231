"""The modules of a package, found and not listed: what is added as a file is known without another edit."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any


def modules_of(package: str) -> list[Any]:
    """The modules of a package, by their names. A page has those that were written into it."""
    return [
        import_module(f"{package}.{one.name}")
        for one in pkgutil.iter_modules(import_module(package).__path__)
    ]
