"""python -m measure [SUBJECT ...]: times on this machine's NVIDIA GPU what the lessons say about GPUs.

A subject is a module of this package with `measure(device, quick) -> dict`, whose figures are in SI units
named in their keys; modules whose name begins with an underscore are shared. All results go into one file of
engine/one_gpu/measurements, named after the GPU, with the date and the versions. Without a GPU it stops with
a message; `--device cpu` runs the same code on the CPU, prints the results and writes nothing, so that a test
can check that the code runs.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import pkgutil
import re
import sys
from pathlib import Path

import measure
from engine.one_gpu import measurements

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = measurements.PLACE


def subjects() -> list[str]:
    """The modules of this package, each of which measures one subject."""
    return sorted(
        module.name for module in pkgutil.iter_modules(measure.__path__) if not module.name.startswith("_")
    )


def measured(names: list[str], device: str, quick: bool) -> dict:
    """The measurements of some subjects on a device, by name."""
    return {name: importlib.import_module(f"measure.{name}").measure(device, quick) for name in names}


def written(record: dict) -> str:
    """As JSON, each list of numbers on one line."""
    text = json.dumps(record, indent=1)
    return re.sub(r"\[[\d\s.,e+-]+\]", lambda found: " ".join(found[0].split()), text) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Measure the subjects that the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m measure", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="SUBJECT", help="what to measure; everything when none is named"
    )
    parser.add_argument(
        "--device", default="cuda", choices=["cuda", "cpu"], help="cpu: a rehearsal that writes nothing"
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs")
    given = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("measuring needs PyTorch: make measure installs it", file=sys.stderr)
        return 1
    if given.device == "cuda" and not torch.cuda.is_available():
        print("PyTorch sees no NVIDIA GPU on this machine: nothing was measured", file=sys.stderr)
        return 1
    found = measured(given.names or subjects(), given.device, given.quick)
    if given.device == "cpu":
        print(json.dumps(found, indent=1))
        return 0
    device = torch.cuda.get_device_name()
    path = SHIPPED / (re.sub(r"[^a-z0-9]+", "_", device.lower()).strip("_") + ".json")
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda}
    record = (
        before | {"device": device, "date": datetime.date.today().isoformat(), "versions": versions} | found
    )
    path.write_text(written(record), encoding="utf-8")
    print(f"{path.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
