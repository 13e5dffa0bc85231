"""Packs the built course into the wheel, so that ``system-ml serve`` needs no clone. ``make wheel`` builds it
first; where it is missing or older than its sources, the wheel has everything else, and says so."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from course import freshness, lesson_code
from widgets.kit.server import built

WITHOUT = "the built course is missing or out of date, so this wheel has no `system-ml serve`: make wheel"


class Packed(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # such an installation serves what the clone has built
            return
        for numbers in (built.ROOT / "lessons").glob("*.py"):  # the notebooks import them
            target = lesson_code.IN_WHEEL.relative_to(built.ROOT) / numbers.name
            build_data["force_include"][str(numbers)] = target.as_posix()
        if freshness.stale():
            self.app.display_warning(WITHOUT)
            return
        for source in (built.BUILT, built.SCRIPT):
            target = built.PACKED.relative_to(built.ROOT) / source.name
            build_data["force_include"][str(source)] = target.as_posix()
