"""What the parts beside the engine need beyond numpy, and what to install where that is missing."""

from __future__ import annotations

from importlib.util import find_spec

from engine.base.edition import DISTRIBUTION

# extra of the package (pyproject.toml) -> the modules that its libraries, and those that they build on, bring
WIDGETS = ("panel", "bokeh", "param")
MKDOCS = ("mkdocs", "material", "markdown", "markupsafe", "jinja2", "pygments", "pymdownx", "yaml")
NEEDED = {
    "widgets": WIDGETS,
    "build": (*WIDGETS, *MKDOCS, "latex2mathml", "nbformat", "hatchling", "brython"),
}


class Missing(ImportError):
    """Something that an extra of the package brings is not installed."""


def lacks(extra: str) -> list[str]:
    """The modules of this extra that are not installed."""
    return [name for name in NEEDED[extra] if find_spec(name) is None]


def need(extra: str) -> None:
    """Do nothing if this extra is installed; otherwise raise an ImportError that says how to install it."""
    if missing := lacks(extra):
        words = f'this part of System ML needs {", ".join(missing)}: pip install "{DISTRIBUTION}[{extra}]"'
        raise Missing(words, name=missing[0])
