"""One HTML file that holds everything and loads nothing from outside: `page.html.jinja`, filled with `Contents`.

Every text of a user is displayed as text, never interpreted: the template escapes it, characters without a glyph are
replaced, and long texts are cut.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import lru_cache
from html import escape
from importlib.resources import files
from math import isnan
from typing import TYPE_CHECKING, Any

from naysay.checks import check_kind, public, raise_invalid
from naysay.errors import MissingExtraError
from naysay.places import Place, as_place, check_page, write_whole
from naysay.plots import need_vl_convert
from naysay.report.charts import score_distribution
from naysay.report.contents import Cell, Chart, Contents, Example, ReviewPair, Table
from naysay.report.trade import trade_data
from naysay.report.trade_chart import trade_chart
from naysay.text import number, spreadsheet_cell

if TYPE_CHECKING:
    from jinja2 import Template

MAX_BYTES = 2_000_000
_TEXT_LENGTH = 400  # characters of a text that are shown
_TEXT_BYTES = 1200  # of such a text once escaped, so that a page stays small whatever it shows
# Control characters but tab and newline, halves of surrogate pairs, and code points that no text has.
_NO_GLYPH = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# A number written out, such as "12 %", "0.41 ± 0.02" or "1,200 (2 of 3)".
_FIGURE = re.compile(r"[+-]?[\d,.]{1,20} ?%?( ± [\d.]{1,20})?( \(\d{1,9} of \d{1,9}\))?")
_NO_CHARTS = (
    "This file has no charts, because vl-convert-python was not installed when it was written. The tables hold the "
    "same figures. For charts run in a clone of naysay: pip install '.[report]'"
)


@public
def write_report(path: str | Place, contents: Contents) -> Place:
    """Write a report as one HTML file of less than 2 MB that opens without a network.

    The page's Content-Security-Policy lets nothing be fetched and only its two scripts run, which are named by their
    hashes. Vega evaluates expressions with its interpreter, so not even `eval` is allowed. All texts are displayed as
    text, whatever they contain.

    Charts need vl-convert-python, the extra `report`, which contains Vega's JavaScript. Without it the file has tables
    instead of charts and a note that names the pip command: a long job should not lose its report to a missing
    package. The same contents give the same bytes.

    Args:
        path: The file, ending in .html. It is written whole or not at all.
        contents: What the page holds.

    Raises:
        NaysayError: If `contents` is not Contents, the page would be 2 MB or more, or the file cannot be written.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(Path(folder) / "report.html", Contents("Test", ("Train on it.",))).name
        'report.html'
    """
    check_kind("contents", contents, Contents, "Contents")
    return write_page("path", as_place("path", path), contents)


def write_page(parameter: str, target: Place, contents: Contents) -> Place:
    """Write a report; errors about the file name `parameter`."""
    check_page(parameter, target)
    page = as_html(contents).encode()
    if len(page) > MAX_BYTES:
        advice = "Give charts fewer points, or leave some tables out."
        raise_invalid("contents", f"of at most {MAX_BYTES:,} bytes as a page", f"{len(page):,}", advice)
    write_whole(parameter, target, page)
    return target


def as_html(contents: Contents) -> str:
    """Return the whole page."""
    library = _library()
    charts = _charts(contents)
    if charts and library is None:
        contents = replace(contents, notes=(*contents.notes, _NO_CHARTS))
    # Vega labels its drawing by the description in the specification.
    specs = {name: {**chart.spec, "description": chart.description} for name, chart in charts.items()}
    trade = trade_data(contents.trade) if contents.trade else None
    review = [_review_cells(pair) for pair in contents.review]
    origin = tuple(contents.provenance.items())
    scripts = [code for code in (library, _resource("page.js")) if code is not None]
    page = _template().render(
        contents=contents,
        charts=charts,
        provenance=Table("Provenance", ("what", "value"), origin, "Inputs, settings and versions."),
        trade=trade,
        data={"charts": {} if library is None else specs, "trade": trade, "review": review},
        drawn=library is not None,
        style=_resource("style.css"),
        scripts=scripts,
        policy=_policy(scripts),
    )
    return page.lstrip()  # the macros at the start of the template leave blank lines


def _charts(contents: Contents) -> dict[str, Chart]:
    """Return the charts of the page by the id of their section."""
    charts = {}
    if contents.trade:
        charts["trade"] = trade_chart(contents.trade)
    if contents.scores:
        charts["scores"] = score_distribution(contents.scores)
    return charts | {f"chart{place}": chart for place, chart in enumerate(contents.charts)}


def _policy(scripts: list[str]) -> str:
    """Return the Content-Security-Policy: these scripts may run, named by their hashes, and nothing may be fetched."""
    digests = [hashlib.sha256(code.encode()).digest() for code in scripts]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _review_cells(pair: ReviewPair) -> list[str]:
    """Return the row of a pair in labels.csv, without its label; texts are cut as in the page, ids are whole."""
    query_text = _cleaned(pair.query_text[:_TEXT_LENGTH])
    document_text = _cleaned(pair.document_text[:_TEXT_LENGTH])
    texts = [pair.query_id, query_text, pair.document_id, document_text]
    posterior = "" if isnan(pair.posterior) else f"{pair.posterior:.4g}"
    return [*map(spreadsheet_cell, texts), f"{pair.score:.6g}", posterior]


# ---- the template, and what it calls ---------------------------------------------------------------------


@lru_cache(maxsize=1)
def _template() -> Template:
    """Return the template of the page. Jinja is loaded here, by the first report of a process."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"cut": _cut, "plain": _plain, "number": number, "measures": _measures}
    environment.tests["figure"] = _is_figure
    environment.policies["json.dumps_function"] = _as_json
    return environment.from_string(_resource("page.html.jinja"))


def _cut(text: str, max_length: int) -> tuple[str, int]:
    """Return the beginning of a text, which is shown, and how many characters follow."""
    head = _cleaned(text[:max_length])
    while len(escape(head).encode()) > max(_TEXT_BYTES, 3 * max_length):
        head = head[: len(head) * 3 // 4]
    return head, len(text) - len(head)


def _plain(text: str, max_length: int = _TEXT_LENGTH) -> str:
    """Return what is shown of a text where there can be no markup: in an attribute or a title."""
    return _cleaned(text[:max_length]) + ("…" if len(text) > max_length else "")


def _cleaned(text: str) -> str:
    return _NO_GLYPH.sub("\ufffd", text)


def _is_figure(cell: Cell) -> bool:
    """Whether a cell is a number, written out or not: figures are aligned to the right."""
    return not isinstance(cell, str) or _FIGURE.fullmatch(cell) is not None


def _measures(shown: Example | ReviewPair) -> str:
    """Return what is known of a candidate in figures, such as "score 0.5 · suspicion 0.25 · rank 3"."""
    measures = [] if isnan(shown.score) else [f"score {number(shown.score)}"]
    if isinstance(shown, ReviewPair):
        measures += [] if isnan(shown.posterior) else [f"probability {shown.posterior:.2f}"]
    else:
        measures += [] if isnan(shown.suspicion) else [f"suspicion {shown.suspicion:.2f}"]
        measures += [f"rank {shown.rank:,}"] if shown.rank else []
    return " · ".join(measures)


def _as_json(data: Any, **_: Any) -> str:
    """Return JSON that can be encoded: half of a surrogate pair is written as its escape sequence."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode()


# ---- files ------------------------------------------------------------------------------------------------


def _library() -> str | None:
    """Return Vega, Vega-Lite and Vega-Embed as one script, from the extra `report`; None without it."""
    try:
        return _bundle(need_vl_convert())
    except MissingExtraError:
        return None


@lru_cache(maxsize=1)
def _bundle(convert: Any) -> str:
    """Return the script, cached: it takes longer to make than the rest of a report."""
    code = str(convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r", "")


def _resource(name: str) -> str:
    """Return a file that is packaged beside this one."""
    return files("naysay.report").joinpath(name).read_text(encoding="utf-8")
