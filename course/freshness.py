"""Checks whether the built course is up to date. Needs only the standard library, because a wheel is made
without any other."""

from __future__ import annotations

from engine.base.built import BUILT, ROOT

DONE = BUILT.with_suffix(".done")  # touched by a build that has finished
SOURCES = ("engine", "widgets", "course", "lessons", "examples", "site", "mkdocs.yml")


def stale() -> bool:
    """True if a source has changed since the last finished build, or if there has been none."""
    if not DONE.exists() or not (BUILT / "index.html").exists():
        return True
    files = [
        path
        for name in SOURCES
        for path in ((ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name])
    ]
    read = (path for path in files if path.is_file() and path.name != "README.md")
    newest = max(path.stat().st_mtime for path in read if "__pycache__" not in path.parts)
    return newest > DONE.stat().st_mtime
