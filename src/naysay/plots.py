"""Pictures: a Vega-Lite specification as SVG or PNG, drawn by vl-convert without a browser and without the network."""

from __future__ import annotations

from typing import Any

from naysay._packages import need_package
from naysay.checks import raise_invalid
from naysay.places import Place

Spec = dict[str, Any]
KINDS = (".svg", ".png")


def check_picture(parameter: str, path: Place) -> None:
    """Raise if the file is neither SVG nor PNG, or if vl-convert is not installed."""
    if path.suffix.lower() not in KINDS:
        raise_invalid(parameter, "a file that ends in .svg or .png", repr(str(path)))
    need_vl_convert()


def as_picture(spec: Spec, kind: str) -> bytes:
    """Return the bytes of an .svg, or of a .png at twice the size."""
    convert = need_vl_convert()
    if kind == ".svg":
        return str(convert.vegalite_to_svg(spec)).encode()
    return bytes(convert.vegalite_to_png(spec, scale=2))


def need_vl_convert() -> Any:
    """Import vl_convert; raise with the pip command if it is missing."""
    return need_package("vl-convert-python", "1.7", module="vl_convert", extra="report")


def axis(field: str, **options: Any) -> Spec:
    """Return the encoding of a quantitative field."""
    return {"field": field, "type": "quantitative", **options}


def layer(values: list[Spec], kind: str, encoding: Spec, **mark: Any) -> Spec:
    """Return the part of a Vega-Lite specification that draws some values as marks of one kind."""
    return {"data": {"values": values}, "mark": {"type": kind, **mark}, "encoding": encoding}


def stacked(rows: list[Spec], spacing: int) -> Spec:
    """Return a Vega-Lite specification of rows of panels, one below the other, in the style of all our figures."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "padding": 16,
        "vconcat": rows,
        "spacing": spacing,
        "config": {
            "font": "sans-serif",
            "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "gridColor": "#e6e6e6"},
            "title": {
                "fontSize": 14,
                "anchor": "start",
                "fontWeight": "normal",
                "subtitleFontSize": 12,
                "subtitleColor": "#555",
            },
            "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
            "view": {"stroke": "#cccccc"},
        },
    }
