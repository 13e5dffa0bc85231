"""A component in a template that is dark by itself: nothing tells pn.config so."""

import panel as pn

from widgets.foundations.roofline import Roofline

pn.template.VanillaTemplate(title="Dark", theme="dark", main=[Roofline()]).servable()
