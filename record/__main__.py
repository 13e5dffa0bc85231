"""python -m record [NAME ...]: repeats the recordings that the lessons on one GPU's software show, all of
them or the named ones, and says what changed in each.

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
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import record
from engine.one_gpu import recordings

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = recordings.PLACE
SHORT = 60  # characters of a value


def recorders() -> list[str]:
    """The modules of this package, each of which makes one recording."""
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
    """A recording with the versions of the libraries that it was made with."""
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


def changes(before, after, at: str = "") -> Iterator[str]:
    """What differs, a line for each place: a key that came or went, a value that is another."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            place = f"{at}.{key}" if at else str(key)
            if key not in after:
                yield f"{place} is gone"
            elif key not in before:
                yield f"{place} is new"
            else:
                yield from changes(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, pair in enumerate(zip(before, after)):
            yield from changes(*pair, f"{at}[{i}]")
    elif isinstance(before, list) and isinstance(after, list):
        yield f"{at} has {len(after)} entries, had {len(before)}"
    else:
        yield f"{at} is {_short(after)}, was {_short(before)}"


def _short(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def repeat(name: str, write: bool) -> list[str]:
    """Records once more, and says what a reader of the recording would see change."""
    fresh = json.loads(json.dumps(recording(name)))
    path = SHIPPED / f"{name}.json"
    shipped = recordings.load(name) if path.exists() else {}
    if write:
        path.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return list(changes(shape(name, shipped) if shipped else {}, shape(name, fresh)))


def main(arguments: list[str] | None = None) -> None:
    """Make the recordings that the command line names, and say what has changed."""
    parser = argparse.ArgumentParser(prog="python -m record", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="recorders to run; all when none is named")
    parser.add_argument("--dry", action="store_true", help="only say what would change; write nothing")
    asked = parser.parse_args(arguments)
    for name in asked.names or recorders():
        told = repeat(name, write=not asked.dry)
        print(f"{name}: {'nothing changed' if not told else f'{len(told)} changes'}")
        for line in told:
            print(f"  {line}")


if __name__ == "__main__":
    main()
