"""The colours of the course, read from tokens.json beside this module: one source for the page's CSS and for
the figures.

A resource has one hue everywhere (compute, hbm, link, network). `compute-deep` is the same hue in a deeper
tone, for backward passes beside forward ones; `on-work` and `on-deep` are text on either. `over` marks
whatever exceeds a limit and nothing else; `idle` is idle time. `accent` means "you can interact with this";
`accent-ink` is text on an accent background.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("tokens.json")
SCHEMES = {"light": "default", "dark": "slate"}  # our name of a theme -> Material's name


@cache
def _colours() -> dict[str, dict[str, str]]:
    return json.loads(PATH.read_text(encoding="utf-8"))


def palette(theme: str) -> dict[str, str]:
    """Name -> hex colour of one theme, 'light' or 'dark'."""
    if theme not in SCHEMES:
        raise ValueError(f"theme must be one of {', '.join(SCHEMES)}; got {theme!r}")
    return {name: by_theme[theme] for name, by_theme in _colours().items()}


def of_both_themes() -> dict[str, dict[str, str]]:
    """Name -> its hex colour by theme."""
    return {name: {theme: by_theme[theme] for theme in SCHEMES} for name, by_theme in _colours().items()}


def css() -> str:
    """The palettes as CSS custom properties (--c-compute …). Paper is light: the dark scheme applies only to
    screens."""

    def block(theme: str, selector: str) -> str:
        lines = [f"  --c-{name}: {colour};" for name, colour in palette(theme).items()]
        return "\n".join([f"{selector} {{", f"  color-scheme: {theme};", *lines, "}"])

    light, dark = (f'[data-md-color-scheme="{scheme}"]' for scheme in SCHEMES.values())
    return f"{block('light', f':root, {light}')}\n@media screen {{\n{block('dark', dark)}\n}}\n"


if __name__ == "__main__":  # python -m widgets.kit.drawing.tokens > site/theme/assets/css/tokens.css
    print(css(), end="")
