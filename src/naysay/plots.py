"""A Vega-Lite specification as a picture, by vl-convert, which draws without a browser and without the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from naysay.checks import raise_invalid
from naysay.errors import MissingExtraError

KINDS = (".svg", ".png")


def check_picture(parameter: str, path: Path) -> None:
    """Refuse a name that is neither SVG nor PNG, and say what to install if it cannot be drawn."""
    if path.suffix.lower() not in KINDS:
        raise_invalid(parameter, "a file that ends in .svg or .png", repr(str(path)))
    need_vl_convert()


def as_picture(spec: dict[str, Any], kind: str) -> bytes:
    """The bytes of an .svg or a .png, the latter at twice the size."""
    convert = need_vl_convert()
    if kind == ".svg":
        return str(convert.vegalite_to_svg(spec)).encode()
    return bytes(convert.vegalite_to_png(spec, scale=2))


def need_vl_convert() -> Any:
    """The vl_convert module, or a refusal that names the pip command."""
    try:
        import vl_convert
    except ImportError as error:
        message = "vl-convert-python is not installed. Run: pip install 'naysay[report]'"
        raise MissingExtraError(message) from error
    return vl_convert
