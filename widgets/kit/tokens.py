"""The colours of the course, read from site/tokens.json: one source for the page's CSS and for the figures.

A resource has one hue everywhere (compute, hbm, link, network); `over` marks what is past a limit and nothing else;
`idle` is time in which nothing happens. `accent` means "you can act on this"; `accent-ink` is text on an accent fill.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

PATH = Path(__file__).resolve().parents[2] / "site" / "tokens.json"
SCHEMES = {"light": "default", "dark": "slate"}  # our word for a theme -> Material's word for it


@cache
def _colours() -> dict[str, dict[str, str]]:
    return json.loads(PATH.read_text(encoding="utf-8"))


def palette(theme: str) -> dict[str, str]:
    """Name -> hex colour of one theme, 'light' or 'dark'."""
    if theme not in SCHEMES:
        raise ValueError(f"theme must be one of {', '.join(SCHEMES)}; got {theme!r}")
    return {name: by_theme[theme] for name, by_theme in _colours().items()}


def css() -> str:
    """The palettes as CSS custom properties (--c-compute …). Paper is light: the dark scheme holds on screens alone."""
    def block(theme: str, selector: str) -> str:
        lines = [f"  --c-{name}: {colour};" for name, colour in palette(theme).items()]
        return "\n".join([f"{selector} {{", f"  color-scheme: {theme};", *lines, "}"])

    light, dark = (f'[data-md-color-scheme="{scheme}"]' for scheme in SCHEMES.values())
    return f"{block('light', f':root, {light}')}\n@media screen {{\n{block('dark', dark)}\n}}\n"


if __name__ == "__main__":  # python -m widgets.kit.tokens > site/theme/assets/css/tokens.css
    print(css(), end="")
