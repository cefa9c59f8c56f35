"""SVG from a plotting library made fit for a page with a strict content policy: no style attributes, no metadata,
classes in place of colours."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

Palette = Mapping[str, str]
"""Colour (lower-case `#rrggbb`) → name; a stroke becomes class `s-NAME`, a fill class `f-NAME`."""
_DROPPED = ("metadata", "style", "title")
_KEPT = (
    "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray", "stroke-dashoffset",
    "stroke-opacity", "fill-opacity", "opacity", "text-anchor",
)  # fmt: skip


def restyle(svg: str, palette: Palette, name: str) -> str:
    """The same drawing as markup that can stand inside HTML. `name` makes its ids unique on the page."""
    root = ET.fromstring(svg)
    _clean(root)
    for element in root.iter():
        _strip(element, palette)
    _ids(root, name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("class", "chart")
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _clean(parent: ET.Element) -> None:
    for child in list(parent):
        if not isinstance(child.tag, str) or _local(child.tag) in _DROPPED:
            parent.remove(child)
        else:
            _clean(child)


def _strip(element: ET.Element, palette: Palette) -> None:
    element.tag = _local(element.tag)
    for key in list(element.attrib):
        if "}" in key:
            element.set(_local(key), element.attrib.pop(key))
    style = element.attrib.pop("style", "")
    classes = []
    for part in style.split(";"):
        key, _, value = (word.strip() for word in part.partition(":"))
        colour = palette.get(value.lower()) if key in ("fill", "stroke") else None
        if colour:
            classes.append(f"{key[0]}-{colour}")
        elif key in _KEPT:
            element.set(key, value)
        elif key == "font":
            element.set("font-size", next((w for w in value.split() if w.endswith("px")), "9px"))
    if classes:
        element.set("class", " ".join(classes))


def _ids(root: ET.Element, name: str) -> None:
    """Only ids that something refers to stay, with the figure's name in front."""
    used = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "href" and value.startswith("#"):
                used.add(value[1:])
                element.set(key, f"#{name}-{value[1:]}")
            elif value.startswith("url(#"):
                used.add(value[5:-1])
                element.set(key, f"url(#{name}-{value[5:]}")
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in used:
            element.set("id", f"{name}-{own}")


def _local(name: str) -> str:
    return name.rpartition("}")[2]
