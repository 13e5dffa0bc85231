"""What the parts beside the engine need beyond numpy, and what to install where that is missing."""

from __future__ import annotations

from importlib.util import find_spec

# extra of the package (pyproject.toml) -> the modules that its libraries, and those that they build on, bring
WIDGETS = ("panel", "bokeh", "param")
MKDOCS = ("mkdocs", "material", "markdown", "markupsafe", "jinja2", "pygments", "pymdownx", "yaml")
NEEDED = {"widgets": WIDGETS, "build": (*WIDGETS, *MKDOCS, "latex2mathml", "nbformat", "brython")}


class Missing(ImportError):
    """Something that an extra of the package brings is not installed."""


def need(extra: str) -> None:
    """Do nothing if this extra is installed; otherwise raise an ImportError that says how to install it."""
    missing = [name for name in NEEDED[extra] if find_spec(name) is None]
    if missing:
        words = f'this part of System ML needs {", ".join(missing)}: pip install "system_ml[{extra}]"'
        raise Missing(words, name=missing[0])
