"""One HTML file that holds everything and loads nothing from outside."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from naysay._urls import Place
from naysay.checks import check_kind, public, raise_invalid
from naysay.errors import MissingExtraError
from naysay.locations import as_place, check_page, write_whole
from naysay.plots import need_vl_convert
from naysay.report import _html_parts as parts
from naysay.report._html_parts import attribute, boxed, script_data
from naysay.report.charts import score_distribution
from naysay.report.contents import Chart, Contents, Table
from naysay.report.trade import trade_data
from naysay.report.trade_chart import trade_chart

MAX_BYTES = 2_000_000
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
    drawn = library is not None
    charts = [] if contents.trade is None else [trade_chart(contents.trade)]
    charts += [] if contents.scores is None else [score_distribution(contents.scores)]
    charts += contents.charts
    data = script_data(
        {
            # Vega labels its drawing by the description in the specification.
            "charts": [{"spec": {**chart.spec, "description": chart.description}} for chart in charts] if drawn else [],
            "trade": None if contents.trade is None else trade_data(contents.trade),
            "review": parts.review_data(contents.review),
        }
    )
    script = _resource("page.js")
    scripts = [code for code in (library, script) if code is not None]
    digests = (hashlib.sha256(code.encode()).digest() for code in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    sections = _sections(contents, charts, drawn=drawn)
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in sections)
    body = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{inner}</section>'
        for name, title, inner in sections
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{attribute(contents.title, 120)}</title>\n<style>\n{_resource('style.css')}</style>\n"
        "</head>\n<body>\n"
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f"<header><h1>{boxed(contents.title, 200)}</h1></header>\n"
        f'<main id="content" tabindex="-1">{parts.sentences(contents.advice)}{parts.figures(contents.numbers)}\n'
        f'<nav aria-label="On this page"><ul>{links}</ul></nav>\n{body}</main>\n'
        f'<script type="application/json" id="data">{data}</script>\n'
        + "".join(f"<script>{code}</script>\n" for code in scripts)
        + "</body>\n</html>\n"
    )


def _sections(contents: Contents, charts: list[Chart], *, drawn: bool) -> list[tuple[str, str, str]]:
    """Return (id, title, HTML) of each section."""
    sections: list[tuple[str, str, str]] = []
    drawings = iter([(chart, parts.chart(chart, place, drawn=drawn)) for place, chart in enumerate(charts)])
    if contents.result is not None:
        sections.append(("result", boxed(contents.result.title, 200), parts.table(contents.result)))
    if contents.trade is not None:
        chart, drawing = next(drawings)
        sections.append(("trade", chart.title, drawing + parts.slider(contents.trade)))
    if contents.examples:
        kinds = [given.kind for given in contents.examples]
        shelves = "".join(parts.examples(given) for given in contents.examples)
        sections.append(("examples", "Examples", parts.search(kinds) + shelves))
    if contents.review:
        sections.append(("review", "Review", parts.review(contents.review)))
    if contents.scores is not None:
        sections.append(("scores", "Scores", next(drawings)[1]))
    for place, (chart, drawing) in enumerate(drawings):
        sections.append((f"chart{place}", boxed(chart.title, 200), drawing))
    if contents.tables:
        sections.append(("tables", "Tables", "".join(map(parts.folded, contents.tables))))
    notes = contents.notes if drawn or not charts else (*contents.notes, _NO_CHARTS)
    if notes:
        sections.append(("notes", "Notes", parts.listed(notes)))
    if contents.provenance:
        rows = tuple(contents.provenance.items())
        origin = Table("Provenance", ("what", "value"), rows, "Inputs, settings and versions.")
        sections.append(("provenance", "Provenance", parts.folded(origin)))
    return sections


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
