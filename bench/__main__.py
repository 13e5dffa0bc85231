"""make bench: the budgets of the project as figures and ratios of one run. Machines are noisy: read the ratios.

    python -m bench            all of it
    python -m bench --quick    without the 200 visits of the memory figure
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from bench import cost_model
from bench.servers import ROOT


def build() -> None:
    for name, arguments in (("cold", ["--fresh"]), ("again", [])):
        began = time.perf_counter()
        subprocess.run([sys.executable, "site/build.py", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        print(f"Build of the static course, {name}: {time.perf_counter() - began:.1f} s")


def parts() -> None:
    """The slowest part, readout or summary of any widget, computed in Python; and the size of each module."""
    import gzip

    from engine import check
    from widgets.kit import export
    from widgets.kit.widget import all_widgets
    print("\nWidget            slowest part, ms   everything, ms   module, kB gzip")
    for slug, cls in all_widgets().items():
        widget = cls()
        widget.shown()
        slowest = 0.0
        with check.trusted():
            for name in cls.methods("part_of"):
                began = time.perf_counter()
                for _ in range(20):
                    getattr(widget, name)()
                slowest = max(slowest, (time.perf_counter() - began) / 20)
        began = time.perf_counter()
        for _ in range(20):
            widget.shown()
        whole = (time.perf_counter() - began) / 20
        size = len(gzip.compress(export.module(cls).encode()))
        print(f"  {slug:16s} {1e3 * slowest:14.2f} {1e3 * whole:16.2f} {size / 1e3:17.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the project's budgets as figures and ratios.")
    parser.add_argument("--quick", action="store_true", help="leave out the 200 visits of the memory figure")
    options = parser.parse_args()
    build()
    parts()
    from bench import pages
    pages.report(0 if options.quick else 200)
    cost_model.main()


if __name__ == "__main__":
    main()
