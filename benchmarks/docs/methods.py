"""The tables of docs/methods.md, made from the catalogue."""

from __future__ import annotations

from naysay import catalog


def blocks() -> dict[str, str]:
    """{name of the block: its table}."""
    return {
        "methods": _methods(),
        "compositions": _compositions(),
        "names": _names(),
        "losses": _losses(),
        "detectors": _detectors(),
    }


def _methods() -> str:
    rows = [
        (f"**{one.name}**", ", ".join(one.names[1:]), one.kind, one.pool, one.formula, one.paper)
        for one in catalog.methods()
    ]
    return _table(("name", "other names", "kind", "pool", "formula", "paper"), rows)


def _compositions() -> str:
    rows = [(f"**{one.name}**", one.summary, f"`{one.parts}`", one.cost) for one in catalog.methods()]
    return _table(("name", "draws", "parts", "cost"), rows)


def _names() -> str:
    rows = []
    for method in catalog.methods():
        rows += [(also, method.name, "Another name of the method.", method.paper) for also in method.also]
        rows += [
            (alias.name, method.name, alias.note + (f" `{alias.parts}`" if alias.parts else ""), alias.paper)
            for alias in method.aliases
        ]
    return _table(("name", "method", "terms", "paper"), rows)


def _losses() -> str:
    rows = [
        (f"**{one.name}**", ", ".join(one.also), one.summary, one.over, f"`{one.formula}`", one.cost, one.paper)
        for one in catalog.losses()
    ]
    return _table(("name", "other names", "minimises", "over", "formula", "cost", "paper"), rows)


def _detectors() -> str:
    rows = [
        (
            f"**{one.name}**",
            ", ".join(one.also),
            one.kind,
            one.summary,
            f"`{one.formula.replace('`', '')}`",
            f"`{one.parts}`",
            one.cost,
            one.paper,
        )
        for one in catalog.detectors()
    ]
    return _table(("name", "other names", "kind", "flags", "suspicion", "parts", "cost", "paper"), rows)


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
