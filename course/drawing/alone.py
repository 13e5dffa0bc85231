"""A picture of a page as a separate file in the colours of paper, for places that the page's style sheets do
not reach: a notebook or an e-book."""

from __future__ import annotations

import xml.etree.ElementTree as etree

from course.drawing import looks, text
from course.html_tree import Element, classes
from widgets.kit.drawing import tokens

THEME = "light"
SVG = "http://www.w3.org/2000/svg"
FONT = "'Source Sans 3', 'Helvetica Neue', Arial, sans-serif"
MARGIN = 8.0


def attributes(kind: str) -> dict[str, str]:
    """The SVG attributes that replace a class of the page's style sheet."""
    mark, _, name = kind.partition("-")
    if mark == "m" and name in looks.LOOKS:
        dashes = {"stroke-dasharray": "3 3"} if looks.LOOKS[name].dashed else {}
        thin = {"stroke-width": "0.75"} if name == "idle" else {}
        return {"fill": looks.fill(name, THEME), "stroke": looks.line(name, THEME)} | dashes | thin
    if mark in ("on", "t"):
        return {"fill": looks.ink(name, THEME)}
    if mark == "l":
        return {"stroke": tokens.palette(THEME)[name]}
    if mark == "h":
        return {"fill": tokens.palette(THEME)[name]}
    return {"font-weight": "600"} if kind == "bold" else {}


def svg(drawn: Element) -> bytes:
    """The file of a drawing, an ``svg`` element of a page. Its texts are as long as they were laid out for,
    whatever font there is."""
    left, top, width, height = (float(number) for number in drawn.attrib["viewbox"].split())
    wide, high = width + 2 * MARGIN, height + 2 * MARGIN
    view = f"{left - MARGIN:g} {top - MARGIN:g} {wide:g} {high:g}"
    root = Element("svg", {"xmlns": SVG, "viewBox": view, "width": f"{wide:g}", "height": f"{high:g}"})
    root.attrib |= {"role": "img", "font-family": FONT, "font-size": f"{text.SIZE:g}"}
    ground = {
        "x": f"{left - MARGIN:g}",
        "y": f"{top - MARGIN:g}",
        "width": f"{wide:g}",
        "height": f"{high:g}",
    }
    for child in drawn:
        if child.tag in ("title", "desc"):
            etree.SubElement(root, child.tag).text = child.text
    etree.SubElement(root, "rect", ground | {"fill": tokens.palette(THEME)["paper"]})
    for child in drawn:
        if child.tag not in ("title", "desc"):
            root.append(_coloured(child))
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _coloured(element: Element) -> Element:
    found = Element(element.tag, {name: value for name, value in element.items() if name != "class"})
    for kind in sorted(classes(element), key=lambda kind: kind == "bold"):
        for name, value in attributes(kind).items():
            found.attrib.setdefault(name, value)
    if element.tag == "text":
        bold = "bold" in classes(element)
        found.set("textLength", f"{text.width(element.text or '', bold):.1f}")
        found.set("lengthAdjust", "spacingAndGlyphs")
    found.text = element.text
    found.extend(_coloured(child) for child in element)
    return found
