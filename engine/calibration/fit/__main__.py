"""``python -m engine.calibration.fit FOLDER``: fits all constants on tables of measurements, judges them on
rows that were held out, and writes both down."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.calibration import known
from engine.calibration.fit import judge, report


def main(arguments: list[str] | None = None) -> int:
    """Read, fit, judge, write; print how well each kind predicts rows that it was not fitted on."""
    parser = argparse.ArgumentParser(prog="python -m engine.calibration.fit", description=__doc__)
    parser.add_argument("folder", type=Path, help="with gemm.csv, attention_decode.csv and the other tables")
    parser.add_argument("--into", type=Path, default=known.PLACE, help="where the TOML files are written")
    options = parser.parse_args(arguments)
    try:
        found = judge.all_kinds(options.folder)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    said = report.write(found, options.into)
    print(f"{'':20} {'held out':>9} {'median':>8} {'above floor':>12} {'band covers':>12}")
    for kind, s in said["total"]["held_out"].items():
        errors = f"{s['median_error']:8.1%} {s['above_floor']:12.1%} {s.get('coverage', 0.0):12.1%}"
        print(f"{kind:20} {s['rows']:9} {errors}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
