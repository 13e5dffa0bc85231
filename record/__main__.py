"""python -m record [NAME ...]: records anew what the lessons on one GPU's software show, all of it or the named files.

A recorder is a module of this package with `RUNS_ON`, the libraries whose versions matter, and `record() -> dict`; what
that gives is written to engine/recordings/NAME.json beside those versions. What recorders share stands in a module whose
name begins with an underscore. Nothing that differs from run to run
(a time, an address) belongs into it: a test records again and compares.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import platform
from importlib import metadata
from pathlib import Path

import record

SHIPPED = Path(__file__).resolve().parents[1] / "engine" / "recordings"


def recorders() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(record.__path__) if not module.name.startswith("_"))


def versions(names: tuple[str, ...]) -> dict[str, str]:
    """The release of each library, without what a build appends to it."""
    return {name: metadata.version(name).split("+")[0] for name in names}


def python() -> str:
    """Python's own release: Dynamo reads its bytecode, which changes from one to the next."""
    return ".".join(platform.python_version_tuple()[:2])


def recording(name: str) -> dict:
    module = importlib.import_module(f"record.{name}")
    made_by = {"made_by": f"record/{name}.py", "versions": versions(module.RUNS_ON), "python": python()}
    return made_by | module.record()


def write(name: str) -> Path:
    path = SHIPPED / f"{name}.json"
    path.write_text(json.dumps(recording(name), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m record", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="recorders to run; all of them when none is named")
    for each in parser.parse_args().names or recorders():
        print(f"{write(each).relative_to(SHIPPED.parents[1])} written")
