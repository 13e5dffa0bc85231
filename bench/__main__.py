"""make bench: the budgets of the project as figures and ratios of one run. Machines are noisy: read the
ratios.

    python -m bench            all of it, 17 minutes on a quiet machine with two cores
    python -m bench --write    the same, into RESULTS.md (make bench)
    python -m bench --quick    without the 200 visits of the memory figure
    python -m bench parts      one section alone: engine, build, parts, components, pages
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time

from bench import tally
from bench.servers import ROOT


def build() -> None:
    """Time the build from scratch, and again with the compiled widgets kept, as after a change of one
    lesson."""
    shutil.rmtree(ROOT / "build" / "compiled", ignore_errors=True)
    rows = []
    for name, arguments, most in (("cold", ["--fresh"], 120), ("one lesson changed", [], 10)):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "course.build", *arguments],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        rows.append([name, tally.against(f"build, {name}", time.perf_counter() - began, most, "s")])
    tally.table("Build of the static course, s", ["build", "seconds"], rows)


def main() -> None:
    """Print the sections that are asked for, or write them down."""
    parser = argparse.ArgumentParser(description="Print the project's budgets as figures and ratios.")
    parser.add_argument("sections", nargs="*", help="engine, build, parts, components, pages; none: all")
    parser.add_argument("--quick", action="store_true", help="leave out the 200 visits of the memory figure")
    parser.add_argument("--write", action="store_true", help="write the figures to bench/RESULTS.md")
    options = parser.parse_args()
    from bench import components, computing, cost_model, pages

    sections = {
        "engine": cost_model.main,  # first, in a process that has done nothing else: its microseconds count
        "build": build,
        "parts": computing.report,
        "components": components.report,
        "pages": lambda: pages.report(20 if options.quick else 200),
    }
    unknown = set(options.sections) - set(sections)
    if unknown:
        parser.error(f"no section is called {', '.join(unknown)}; there are {', '.join(sections)}")
    began = time.perf_counter()
    for name in options.sections or sections:
        tally.look_at_the_clock()
        sections[name]()
    tally.missed()
    tally.say(f"\n{time.perf_counter() - began:.0f} s in all.")
    if options.write:
        tally.write(
            "Budgets",
            f"`make bench`, {tally.circumstances()}. In bold what is over its budget; the list stands at "
            "the end.\n" + "\n".join(tally.SAID),
        )


if __name__ == "__main__":
    main()
