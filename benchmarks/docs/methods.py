"""The tables of docs/methods.md, made from the catalogue: samplers, with a filter, and the other questions."""

from __future__ import annotations

import ast
from html import escape
from itertools import combinations

from naysay import catalog
from naysay.catalog._filter import DATA, NEEDS, STEPS
from naysay.catalog._table import QUESTIONS

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
    """{name of the block: its content}."""
    samplers = [one for question in ("where", "which") for one in catalog.methods(question)]
    others = [question for question in QUESTIONS if question not in ("where", "which")]
    return {
        "filter": _filter(),
        "methods": _samplers(samplers),
        **{question: _others(catalog.methods(question)) for question in others},
    }


def _samplers(methods: list[catalog.Method]) -> str:
    rows = [
        (
            *_named(one),
            one.question,
            ", ".join(one.data),
            ", ".join(one.needs) or "none",
            one.step,
            *_made(one),
        )
        for one in methods
    ]
    headings = ("name", "other names", "what", "question", "data", "needs", "step", "parts", "leaves out", "paper")
    return _table(headings, rows)


def _others(methods: tuple[catalog.Method, ...]) -> str:
    return _table(
        ("name", "other names", "what", "parts", "leaves out", "paper"),
        [(*_named(one), *_made(one)) for one in methods],
    )


def _named(one: catalog.Method) -> tuple[str, str, str]:
    """Name, other names, and what it does."""
    formula = f"`{one.formula.replace('`', '')}`" if one.formula else ""
    script = f"Script: `{one.example}`." if one.example else ""
    said = (one.note or one.summary, formula, one.cost, script)
    return f"**{one.name}**", ", ".join(one.also), " ".join(part for part in said if part)


def _made(one: catalog.Method) -> tuple[str, str, str]:
    """Parts, what they leave out, and the paper."""
    codes = [f"`{ast.unparse(ast.parse(code, mode='eval'))}`" for code in (one.parts, one.loss, one.batch_loss) if code]
    k = f"k = `{one.k}`" if one.question in ("where", "which", "how_many") and one.parts and not one.over else ""
    see = f"see {one.see}" if one.see else ""
    return ", ".join(part for part in (*codes, k, see) if part), one.leaves_out, one.cited


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


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
