"""python -m record [NAME ...]: repeats the recordings that the lessons on one GPU's software show, all of
them or the named ones.

A recorder is a module of this package with `RUNS_ON`, the libraries whose versions matter, and `record() ->
dict`, whose result is written to engine/one_gpu/recordings/NAME.json together with those versions. Shared
code is in modules whose names begin with an underscore. A recording must contain nothing that differs from
run to run (a time, an address), because a test repeats it and compares. A profile consists of times, so its
module says `TIMED = True`, and only its `shape` is compared. A module whose recording holds what differs from
one CPU to another has a `shape` of its own, which leaves that out.
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
from engine.one_gpu import recordings

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = recordings.PLACE


def recorders() -> list[str]:
    return sorted(
        module.name for module in pkgutil.iter_modules(record.__path__) if not module.name.startswith("_")
    )


def versions(names: tuple[str, ...]) -> dict[str, str]:
    """The release of each library, without build suffixes."""
    return {name: metadata.version(name).split("+")[0] for name in names}


def python() -> str:
    """Python's own release: Dynamo reads its bytecode, which changes from one to the next."""
    return ".".join(platform.python_version_tuple()[:2])


def recording(name: str) -> dict:
    module = importlib.import_module(f"record.{name}")
    made_by = {"made_by": f"record/{name}.py", "versions": versions(module.RUNS_ON), "python": python()}
    return made_by | module.record()


def shape(name: str, found: dict) -> dict:
    """What a second run reproduces, on any machine. Of a profile, whose times it would not: for each lane the
    names of its events, in order."""
    module = importlib.import_module(f"record.{name}")
    if getattr(module, "TIMED", False):
        lanes = {lane["lane"]: [event for event, _, _ in lane["events"]] for lane in found["lanes"]}
        return found | {"lanes": lanes}
    return module.shape(found) if hasattr(module, "shape") else found


def write(name: str) -> Path:
    path = SHIPPED / f"{name}.json"
    path.write_text(json.dumps(recording(name), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m record", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="recorders to run; all of them when none is named"
    )
    for each in parser.parse_args().names or recorders():
        print(f"{write(each).relative_to(ROOT)} written")
