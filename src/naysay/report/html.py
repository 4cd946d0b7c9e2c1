"""One HTML file: everything is in it, and it asks for nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from naysay.checks import public, raise_invalid, shown
from naysay.errors import MissingExtraError
from naysay.files import check_page
from naysay.plots import need_vl_convert
from naysay.report import _pieces as pieces
from naysay.report import _slider as slider
from naysay.report._plain_text import attribute, boxed, script_data
from naysay.report.contents import Chart, Contents, Table
from naysay.report.distribution import score_distribution

LARGEST = 2_000_000  # bytes
_NO_CHARTS = (
    "There are no charts in this file, because vl-convert-python was not installed when it was written. The tables say "
    "the same. For charts run: pip install 'naysay[report]'"
)


@public
def write_report(path: str | Path, contents: Contents) -> Path:
    """Write the report to `path`, whole or not at all, and return its place.

    One file of less than 2 MB that opens without a network. Its policy lets nothing be fetched and no script run but
    the two that are in it, named by their hashes; Vega evaluates its expressions by an interpreter, so not even `eval`
    is allowed. All texts are shown as text, whatever is in them.

    Charts need vl-convert-python, the extra `report`, which brings Vega's JavaScript. Without it the file is written
    all the same, with tables in place of charts and a note that names the pip command: a long job should not lose its
    report to a missing picture. The same contents give the same bytes.
    """
    if not isinstance(contents, Contents):
        raise_invalid("contents", "Contents", type(contents).__name__)
    target = Path(path)
    check_page("path", target)
    page = as_html(contents).encode()
    if len(page) > LARGEST:
        advice = "Give charts fewer points, or leave some tables out."
        raise_invalid("contents", f"of at most {LARGEST:,} bytes as a page", f"{len(page):,}", advice)
    _write_whole(target, page)
    return target


def as_html(contents: Contents) -> str:
    """The whole page."""
    library = _library()
    drawn = library is not None
    charts = (
        list(contents.charts) if contents.scores is None else [score_distribution(contents.scores), *contents.charts]
    )
    sample = None if contents.scores is None else contents.scores.sample
    data = script_data(
        {
            # Vega names its drawing by the description of the specification, whatever the page calls it.
            "charts": [{"spec": {**chart.spec, "description": chart.description}} for chart in charts] if drawn else [],
            "sample": None if sample is None else slider.data(sample),
        }
    )
    script = _resource("page.js")
    scripts = [code for code in (library, script) if code is not None]
    hashes = " ".join(f"'sha256-{_hash(code)}'" for code in scripts)
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
        f'<main id="content" tabindex="-1">{pieces.sentences(contents.advice)}{pieces.figures(contents.numbers)}\n'
        f'<nav aria-label="On this page"><ul>{links}</ul></nav>\n{body}</main>\n'
        f'<script type="application/json" id="data">{data}</script>\n'
        + "".join(f"<script>{code}</script>\n" for code in scripts)
        + "</body>\n</html>\n"
    )


def _sections(contents: Contents, charts: list[Chart], *, drawn: bool) -> list[tuple[str, str, str]]:
    """(name, title, HTML) of the parts that there are."""
    found: list[tuple[str, str, str]] = []
    own = 0 if contents.scores is None else 1
    if contents.scores is not None:
        found.append(("scores", "Scores", pieces.chart(charts[0], 0, drawn=drawn)))
        if contents.scores.sample is not None:
            found.append(("move", "Move the line", slider.controls(contents.scores.sample)))
    if contents.tables:
        tables = "".join(f"<h3>{boxed(table.title, 200)}</h3>{pieces.table(table)}" for table in contents.tables)
        found.append(("tables", "Counts", tables))
    found += [
        (f"chart{place}", boxed(chart.title, 200), pieces.chart(chart, place, drawn=drawn))
        for place, chart in enumerate(charts)
        if place >= own
    ]
    if contents.examples:
        kinds = [given.kind for given in contents.examples]
        shelves = "".join(pieces.examples(given) for given in contents.examples)
        found.append(("examples", "Examples", pieces.search(kinds) + shelves))
    notes = contents.notes if drawn or not charts else (*contents.notes, _NO_CHARTS)
    if notes:
        found.append(("notes", "Notes", pieces.listed(notes)))
    if contents.provenance:
        rows = tuple(contents.provenance.items())
        origin = Table("Provenance", ("what", "value"), rows, "What this report was made of, and by what.")
        found.append(("provenance", "Provenance", pieces.table(origin)))
    return found


def _library() -> str | None:
    """Vega, Vega-Lite and Vega-Embed as one script, from the extra `report`; None where it is absent."""
    try:
        return _bundle(need_vl_convert())
    except MissingExtraError:
        return None


@lru_cache(maxsize=1)
def _bundle(convert: Any) -> str:
    """The script, made anew in each process: it takes longer than the rest of a report, and some jobs write several."""
    code = str(convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r", "")


def _resource(name: str) -> str:
    """A file that is packaged beside this one."""
    return files("naysay.report").joinpath(name).read_text(encoding="utf-8")


def _hash(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


def _write_whole(path: Path, page: bytes) -> None:
    """By way of a draft beside `path`, safe on disk before it takes its place."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with draft.open("wb") as stream:
            stream.write(page)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise_invalid("path", "a file that can be written", f"{shown(str(path))} ({error.strerror})")
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
