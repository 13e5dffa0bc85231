"""Which version this is: what the project's file says, and without it what is installed."""

import runpy
import shutil

from engine.base import edition


def test_the_version_is_the_one_of_the_clone_and_not_of_what_is_installed(tmp_path):
    """In a clone whose pyproject.toml is newer than the installed package, its own is said."""
    (tmp_path / "engine" / "base").mkdir(parents=True)
    module = shutil.copy(edition.__file__, tmp_path / "engine" / "base" / "edition.py")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "12.34.56"\n', encoding="utf-8")
    assert runpy.run_path(module)["version"]() == "12.34.56"


def test_without_the_file_it_is_the_installed_one(tmp_path, monkeypatch):
    monkeypatch.setattr(edition, "PROJECT", tmp_path / "pyproject.toml")
    monkeypatch.setattr(edition.metadata, "version", lambda name: {"system-ml-course": "9.9.9"}[name])
    assert edition.version() == "9.9.9"
