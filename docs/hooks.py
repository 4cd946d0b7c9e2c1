"""Hooks of mkdocs: `llms.txt`, and a copy of each page in Markdown beside its HTML, for agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

SETTINGS = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)
SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
OBJECT = re.compile(r"^::: naysay\.([\w.]+)$", re.MULTILINE)


def on_post_build(config: Any) -> None:
    """Write the copies and `llms.txt` into the built site."""
    root, site = Path(config.config_file_path).parent, Path(config.site_dir)
    package = griffe.load("naysay", search_paths=[root / "src"])
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for title, path in _pages(config.nav):
        if path is None:
            lines += ["", f"## {title}", ""]
            continue
        page = SETTINGS.sub("", (Path(config.docs_dir) / path).read_text())
        page = SNIPPET.sub(lambda match: (root / match[1]).read_text(), page)
        page = OBJECT.sub(lambda match: _described(package[match[1]], "##"), page)
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(page)
        lines.append(f"- [{title}]({path})")
    (site / "llms.txt").write_text("\n".join([*lines, ""]))


def _pages(entries: Any) -> Iterator[tuple[str, str | None]]:
    """(title, path) of each page of the menu, and (title, None) of each section."""
    for entry in entries:
        for title, inside in entry.items():
            if isinstance(inside, str):
                yield title, inside
            else:
                yield title, None
                yield from _pages(inside)


def _described(part: Any, mark: str) -> str:
    """A module, class or function and what is public in it: names, signatures and docstrings."""
    part = part.final_target if part.is_alias else part
    said = part.docstring.value if part.docstring else ""
    if part.is_module:
        texts = [f"`{part.path}`\n\n{said}"]
    else:
        taken = [
            f"{one.name}={one.default}" if one.default else one.name for one in part.parameters if one.name != "self"
        ]
        texts = [f"{mark} {part.name}\n\n    {part.name}({', '.join(taken)})\n\n{said}"]
    if not part.is_function:
        inside = (part.members[name] for name in (part.exports or part.members) if name in part.members)
        public = [one for one in inside if one.name[0] != "_" and (part.exports or not one.is_alias)]
        texts += [
            _described(one, f"{mark}#" if part.is_class else mark) for one in public if one.is_class or one.is_function
        ]
    return "\n\n".join(texts)
