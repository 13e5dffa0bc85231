"""A dashboard of figures: a template of Panel's in the course's colours, a grid of the readouts that somebody
wants to see from across a room, and the figures below.

``system_ml/examples`` has four. Served by ``panel serve``, it asks nothing of any other host.
"""

from __future__ import annotations

from typing import Any

import panel as pn
from panel import theme

from widgets.kit.drawing import tokens
from widgets.kit.panel import TILES, tile

LARGE = "dd { font-size: 22px; line-height: 1.25; }"  # seen from across a room
# Panel's template is Microsoft's Fast, whose header would be as wide as its title on a phone.
PAGE = """
#header .title { line-height: 1.2; }
@media (max-width: 600px) {
  #header .title { font-size: 17px; white-space: normal; flex: 1; }
  #header-items { width: auto; }
  #main { padding: 0; }
}
"""


class Fast(theme.Fast):
    """Panel's design without its font, for which it would ask another host. It has the same name, because
    Panel finds the files of a design by that."""

    _resources = {kind: named for kind, named in theme.Fast._resources.items() if kind != "font"}


def grid(*shown: tuple[Any, str]) -> pn.pane.HTML:
    """Readouts in a grid that fills its width. Each is a figure and the name of one of its readouts."""

    def tiles(*_changes: int) -> str:
        return f"<dl>{''.join(tile(figure.live, name) for figure, name in shown)}</dl>"

    figures = list({id(figure): figure for figure, _ in shown}.values())
    changes = [figure.live.param.changes for figure in figures]
    return pn.pane.HTML(pn.bind(tiles, *changes), stylesheets=[TILES, LARGE], sizing_mode="stretch_width")


def board(title: str, about: str, readouts: list[tuple[Any, str]], *sections: tuple[str, Any]) -> Any:
    """A dashboard: its title, a sentence about it, the readouts to be seen at once, and sections, each with a
    heading and a figure. It is a template of Panel's, so ``.servable()`` makes a page of it."""
    parts = [pn.Column(f"## {heading}", part, sizing_mode="stretch_width") for heading, part in sections]
    return pn.template.FastListTemplate(
        title=title,
        main=[pn.Column(about, grid(*readouts), sizing_mode="stretch_width"), *parts],
        main_max_width="1200px",
        accent_base_color=tokens.palette("light")["hbm"],
        header_background=tokens.palette("light")["hbm"],
        design=Fast,
        font="system-ui, sans-serif",
        raw_css=[PAGE],
    )
