"""A chart on two logarithmic scales as a part of a larger picture, whose own axes run from 0 to 1 and are not
drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from bokeh.core.properties import value

from engine.base import units
from engine.base.types import Real
from widgets.kit.drawing import figure as fig

if TYPE_CHECKING:
    from bokeh.plotting import figure


class LogFrame(NamedTuple):
    """The position of the chart, ``across`` and ``up``, and the ranges of its scales."""

    x: tuple[float, float]
    y: tuple[float, float]
    across: tuple[float, float]
    up: tuple[float, float]

    def right(self, values: Real) -> Real:
        """Horizontal positions of values, clipped at the ends. Accepts symbols."""
        return _placed(values, self.x, self.across)

    def height(self, values: Real) -> Real:
        """Vertical positions of values, likewise."""
        return _placed(values, self.y, self.up)

    def draw(
        self,
        p: figure,
        x_ticks: np.ndarray,
        y_ticks: np.ndarray,
        x_family: str,
        y_family: str,
        x_title: str,
        phone_y_ticks: np.ndarray | None = None,
    ) -> None:
        """Draw its grid, its ticks with the engine's labels, and its titles. On a phone the labels stand
        within the chart: ``phone_y_ticks`` are those that no curve crosses there."""
        ink: dict[str, Any] = {"line_color": fig.COLOR["grid"]}
        p.segment(self.right(x_ticks), self.up[0], self.right(x_ticks), self.up[1], **ink)
        p.segment(self.across[0], self.height(y_ticks), self.across[1], self.height(y_ticks), **ink)
        last = len(x_ticks) - 1
        for i, x in enumerate(x_ticks):  # the outer two are aligned inwards, so that none is cut off
            p.text(
                self.right(x),
                self.up[0],
                text=value(units.human(float(x), x_family)),
                y_offset=11,
                text_align="left" if i == 0 else "right" if i == last else "center",
                **fig.LABEL,
            )
        names = [units.human(float(y), y_family) for y in y_ticks]
        fig.only(
            "wide",
            p.text(
                self.across[0], self.height(y_ticks), text=names, x_offset=-6, text_align="right", **fig.LABEL
            ),
        )
        on_phone = y_ticks if phone_y_ticks is None else phone_y_ticks
        fig.only(
            "narrow",
            p.text(
                self.across[0],
                self.height(on_phone),
                text=[units.human(float(y), y_family) for y in on_phone],
                x_offset=3,
                y_offset=-8,
                level="annotation",  # within the chart, where a curve may pass
                **fig.LABEL | fig.ON_PANEL,
            ),
        )
        p.text(
            fig.midpoint(*self.across),
            self.up[0],
            text=value(x_title),
            y_offset=29,
            text_align="center",
            **fig.LABEL,
        )


def _placed(values, scale, place):
    low, high = np.log10(scale)
    share = (np.log10(np.clip(values, *scale)) - low) / (high - low)
    start, end = place
    return fig.between(start, end, share)
