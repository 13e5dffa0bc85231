"""The baseline: the same stack of training state as an idiomatic Panel app, with sliders, pn.bind and one
Bokeh figure.

The figure is kept and its source replaced on each event, the faster of the two ways in Panel's guide.
"""

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from engine import catalog
from engine.mechanism import memory

pn.extension()

size = pn.widgets.EditableFloatSlider(name="Model size", start=0.1, end=2000, value=1000, step=0.1)
gpu = pn.widgets.Select(
    name="GPU", options={g.name: g for g in catalog.all_gpus().values()}, value=catalog.gpu("h100-sxm")
)
recipe = pn.widgets.Select(
    name="Recipe",
    options={r.name: r for r in catalog.uniform_recipes().values()},
    value=catalog.recipe("bf16-adam"),
)


def columns(size, recipe):
    """The bars of the picture."""
    slabs = memory.state_slabs(size * 1e9, recipe)
    top = np.cumsum(slabs)
    return {"bottom": top - slabs, "top": top, "left": np.full(5, 1.2), "right": np.full(5, 5.4)}


source = ColumnDataSource(columns(size.value, recipe.value))
ceiling = ColumnDataSource({"y": [gpu.value.hbm_bytes]})
plot = figure(
    height=400, sizing_mode="stretch_width", x_range=(0, 10), y_range=(0, 1.4e12), toolbar_location=None
)
plot.quad(left="left", right="right", bottom="bottom", top="top", source=source, fill_alpha=0.3)
plot.segment(0.2, "y", 6.6, "y", source=ceiling, line_dash="dashed")


def update(size, gpu, recipe):
    """Follow the controls: new data for the picture, and the sentence under it."""
    source.data = columns(size, recipe)
    ceiling.data = {"y": [gpu.hbm_bytes]}
    return f"**{memory.state_bytes(size * 1e9, recipe) / 1e12:.3g} TB**"


pn.Column(
    size, gpu, recipe, pn.pane.Bokeh(plot), pn.pane.Markdown(pn.bind(update, size, gpu, recipe))
).servable()
