"""Makes the wheel: one package, ``system_ml``, which holds all of ours by new names (course/in_wheel.py), and
the built course, so that ``system-ml serve`` needs no clone. ``make wheel`` builds the course first; where it
is missing or older than its sources, the wheel has everything else, and says so. The wheel that lies beside
the built course (course/output/wheel.py) is asked for without it."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from course import freshness, in_wheel
from engine.base import built

WITHOUT = "the built course is missing or out of date, so this wheel has no `system-ml serve`: make wheel"


class Addresses(MetadataHookInterface):
    """The addresses of the project, if the build is told its repository (REPOSITORY=OWNER/NAME) or where
    the course is published (SITE_URL)."""

    def update(self, metadata: dict) -> None:
        repository, site = os.environ.get("REPOSITORY"), os.environ.get("SITE_URL")
        where = f"https://github.com/{repository}"
        source = {
            "Repository": where,
            "Issues": f"{where}/issues",
            "Changelog": f"{where}/blob/main/CHANGELOG.md",
        }
        metadata["urls"] = ({"Homepage": site} if site else {}) | (source if repository else {})


class Packed(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # such an installation has the folders of the clone, and what it has built
            return
        self.made = TemporaryDirectory()  # until the wheel is written
        in_wheel.write(Path(self.made.name))
        packed = {str(Path(self.made.name, in_wheel.PACKAGE)): in_wheel.PACKAGE}
        if os.environ.get("WITHOUT_COURSE"):
            pass
        elif freshness.stale():
            self.app.display_warning(WITHOUT)
        else:
            place = f"{in_wheel.PACKAGE}/{built.PACKED.relative_to(built.ROOT).as_posix()}"
            live = Path(self.made.name, place, built.SCRIPT.name)
            live.parent.mkdir(parents=True)
            live.write_text(in_wheel.of_module(built.SCRIPT.read_text(encoding="utf-8")), encoding="utf-8")
            packed[str(built.BUILT)] = f"{place}/{built.BUILT.name}"
        build_data["force_include"] |= packed
        commands = self.metadata.core.scripts
        for name, function in commands.items():
            commands[name] = f"{in_wheel.PACKAGE}.{function}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.made.cleanup()
