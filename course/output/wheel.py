"""The package beside the site, ``wheel/system_ml_course-….whl``: a notebook's first cell installs it from
there, and so can a page that runs Python in the browser. It lacks nothing but the built course."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from course import in_wheel, settings
from engine.base import edition
from engine.base.built import ROOT
from widgets.kit.page.cache import digest, kept

MADE_BY = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "LICENSE-CONTENT")


def address() -> str:
    """Where the package lies, from the site's root."""
    return f"wheel/{edition.DISTRIBUTION.replace('-', '_')}-{edition.version()}-py3-none-any.whl"


def requirement(extra: str, repository: str) -> str:
    """What pip is told in order to install the package with an extra: from where the course is served, or
    from its public repository if nothing but that is public."""
    beside = f"{settings.of('site_url')}{address()}"
    is_there = settings.public_home() or not repository
    return (
        f"{edition.DISTRIBUTION}[{extra}] @ {beside if is_there else f'git+https://github.com/{repository}'}"
    )


def made() -> bytes:
    """The package, taken from the cache unless a file of which it is made has changed."""
    files = [*(ROOT / name for name in MADE_BY), *(path for _, path, _ in in_wheel.sources())]
    made_of = digest(
        *(f"{path.relative_to(ROOT)} {path.read_bytes().hex()}" for path in files if path.is_file())
    )
    return kept(f"wheel.{made_of}", _make, (__name__,))


def _make() -> bytes:
    from hatchling.builders.wheel import WheelBuilder  # noqa: PLC0415  takes a second, and only a change needs it

    os.environ["WITHOUT_COURSE"] = "1"  # read by hatch_build.py
    try:
        with TemporaryDirectory() as folder:
            [path] = WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
            return Path(path).read_bytes()
    finally:
        del os.environ["WITHOUT_COURSE"]
