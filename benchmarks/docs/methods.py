"""The tables of docs/methods.md, made from the catalogue."""

from __future__ import annotations

from html import escape
from itertools import combinations

from naysay import catalog
from naysay.catalog._filter import DATA, NEEDS, STEPS

# The rules of `naysay.catalog.matching`, for the table whose headings are data, needs and step.
SCRIPT = """\
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("filter");
  const words = (row, place) => row.cells[place].textContent.split(",").map((word) => word.trim());
  const headings = (table) => Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent.trim());
  const table = Array.from(document.querySelectorAll("table")).find((one) => headings(one).includes("needs"));
  const [data, needs, step] = ["data", "needs", "step"].map((name) => headings(table).indexOf(name));
  const steps = ["low", "medium", "high"];
  const show = () => {
    const [of, given, cost] = Array.from(form.querySelectorAll("select"), (one) => one.value);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const met = (need) => need === "none" || given.split(",").includes(need);
      const fits = (!of || words(row, data).includes(of)) && (!given || words(row, needs).every(met)) &&
        (!cost || steps.slice(0, steps.indexOf(cost) + 1).includes(words(row, step)[0]));
      row.hidden = !fits;
      shown += fits;
    }
    form.querySelector("output").textContent = ` ${shown} of ${table.tBodies[0].rows.length}`;
  };
  form.addEventListener("change", show);
  form.hidden = false;
  show();
});"""


def blocks() -> dict[str, str]:
    """{name of the block: its table}."""
    return {
        "filter": _filter(),
        "methods": _methods(),
        "compositions": _compositions(),
        "names": _names(),
        "losses": _losses(),
        "detectors": _detectors(),
        "others": _others(),
    }


def _methods() -> str:
    rows = [
        (
            f"**{one.name}**",
            ", ".join(one.names[1:]),
            ", ".join(one.data),
            ", ".join(one.needs) or "none",
            one.step,
            one.kind,
            one.pool,
            one.formula,
            one.cited,
        )
        for one in catalog.methods()
    ]
    return _table(("name", "other names", "data", "needs", "step", "kind", "pool", "formula", "paper"), rows)


def _filter() -> str:
    """Three lists of choices and the script that hides rows; without scripts the lists stay hidden."""
    some = (",".join(given) for size in range(1, len(NEEDS)) for given in combinations(NEEDS, size))
    choices = {"data": DATA, "needs": ("none", *some), "cost": STEPS[:-1]}
    words = {"data": "any data", "needs": "may need anything", "cost": "any cost"}
    lists = [
        f'<select data-filter="{name}"><option value="">{words[name]}</option>'
        + "".join(f"<option>{escape(value)}</option>" for value in values)
        + "</select>"
        for name, values in choices.items()
    ]
    return "\n".join(
        ['<form id="filter" hidden>', *lists, "<output></output>", "</form>", "<script>", SCRIPT, "</script>"]
    )


def _compositions() -> str:
    rows = [(f"**{one.name}**", one.summary, f"`{one.parts}`", one.cost) for one in catalog.methods()]
    return _table(("name", "draws", "parts", "cost"), rows)


def _names() -> str:
    rows = []
    for method in catalog.methods():
        rows += [(also, method.name, "Another name of the method.", method.cited) for also in method.also]
        rows += [
            (alias.name, method.name, alias.note + (f" `{alias.parts}`" if alias.parts else ""), alias.cited)
            for alias in method.aliases
        ]
    return _table(("name", "method", "terms", "paper"), rows)


def _losses() -> str:
    rows = [
        (f"**{one.name}**", ", ".join(one.also), one.summary, one.over, f"`{one.formula}`", one.cost, one.cited)
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
            one.cited,
        )
        for one in catalog.detectors()
    ]
    return _table(("name", "other names", "kind", "flags", "suspicion", "parts", "cost", "paper"), rows)


def _others() -> str:
    rows = [
        (f"**{one.name}**", ", ".join(one.also), one.status, one.note, f"`{one.parts}`" if one.parts else "", one.cited)
        for one in catalog.others()
    ]
    return _table(("name", "other names", "status", "what it is", "parts, or what is nearest", "paper"), rows)


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
