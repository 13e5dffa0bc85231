"""Where the course lies: in a clone, and where a wheel was installed."""

import runpy
import shutil
from pathlib import Path

from engine.base import built

ROOT = Path(__file__).resolve().parents[3]


def test_a_clone_has_what_was_built_in_it():
    assert (built.SITE, built.LIVE) == (ROOT / "build" / "static", ROOT / "site" / "live.py")
    assert built.LIVE.is_file()


def test_an_installed_wheel_has_it_packed(tmp_path):
    """hatch_build.py puts it into the folder ``course/packed`` of the package, which no clone has."""
    package = tmp_path / "site-packages" / "system_ml"
    (package / "engine" / "base").mkdir(parents=True)
    (package / "course" / "packed").mkdir(parents=True)
    module = shutil.copy(built.__file__, package / "engine" / "base" / "built.py")
    found = runpy.run_path(module)
    assert found["SITE"] == package / "course" / "packed" / "static"
    assert found["LIVE"] == package / "course" / "packed" / "live.py"
