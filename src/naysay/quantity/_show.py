"""An estimate on a terminal: k and why, the curve, where it is flat, what makes it less sure, and the next line."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from naysay.quantity._terminal import BLOCK, PLAIN, draw
from naysay.quantity.estimate import Estimate
from naysay.quantity.separation import auc


def print_estimate(name: str, found: Estimate, console: Console) -> None:
    """All that the command says about one run; `name` says where it comes from."""
    marks = BLOCK if console.encoding.startswith("utf") else PLAIN
    safe = name.encode(console.encoding, "replace").decode(console.encoding)  # a file name may hold what it cannot show
    console.print(Text(f"k = {found.k}", style="bold"), Text(f"negatives per positive, for {safe}"))
    console.print()
    console.print(Text(why(found)))
    console.print()
    points = f"{len(found.reached)} validation point{'s' if len(found.reached) > 1 else ''}"
    console.print(Text(f"v over k, weight {found.weight:g}, the mean of {points}:"))
    for line in draw(found, console.width - 1, marks=marks):
        console.print(Text(line, no_wrap=True, overflow="ignore", end=""), crop=False)
    low, high = found.flat
    console.print(Text(f"{marks.best} best k = {found.k}   {marks.flat} within 1 % of it: k = {low} to {high}"))
    console.print()
    for note in found.notes:
        console.print(Text(f"Note: {note}"))
    if found.notes:
        console.print()
    console.print(Text("Next:"))
    console.print(Text(f"  k_at = naysay.quantity.adaptive(peak={found.k}, steps=STEPS)"), soft_wrap=True)


def why(found: Estimate) -> str:
    """Two sentences: what v is at the best k and at 1, and what more negatives do to it."""
    best, one, many = found.curve[found.k - 1], found.curve[0], 1 - found.weight
    labels = f"The labels have a training AUC of {auc(found.separation):.4g} (separation {found.separation:.3g})"
    at_best = f"v is largest at k = {found.k}: {best:.4g}, against {one:.4g} at k = 1"
    if found.separation == float("inf"):
        return f"{labels} and are never wrong, so no negative is one too many: {at_best}."
    return (
        f"{labels}. Fewer negatives teach less, more make the labels unreliable: {at_best}, "
        f"and {many:.4g} (1 - weight) for very many."
    )
