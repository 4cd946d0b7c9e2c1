"""What a user should know about mined negatives: numbers that add up over parts, and a sentence for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from naysay.mining.candidates import Candidates
from naysay.mining.judge import SUSPICIOUS


def tally_of(candidates: Candidates, counts: NDArray[np.int64], depth: int) -> dict[str, int]:
    """Numbers of some anchors: counts (n,) is how many negatives each was to have, depth that of the first search.

    anchors, negatives   how many there are;  relaxed, random  negatives that fill rows up, the latter without a rank
    short, missing       anchors with fewer than k, and by how many in all;  none  anchors whose k is 0
    looked               how deep was searched for those that are short, 0 if nothing deeper is left
    passed               anchors that were searched past their suspects
    """
    taken, found_at = candidates.kept_by[candidates.kept], candidates.rank[candidates.kept]
    marks = {name: taken == place for place, name in enumerate(candidates.kept_names)}
    fills = {"relaxed": marks.get("relaxed", False), "random": marks.get("random", False) & (found_at == 0)}
    found = np.count_nonzero(candidates.kept, axis=1)
    missing = counts - found
    passed = candidates.outside.get(SUSPICIOUS, np.zeros(len(counts), np.int64))
    looked = 0
    if (missing > 0).any():
        looked = (depth + passed)[(missing > 0) & (candidates.ids[:, depth - 1] >= 0)].max(initial=0)
    return {
        "anchors": len(counts),
        "negatives": int(found.sum()),
        **{name: int(np.count_nonzero(chosen)) for name, chosen in fills.items()},
        "short": int((missing > 0).sum()),
        "missing": int(missing[missing > 0].sum()),
        "none": int((counts == 0).sum()),
        "looked": int(looked),
        "passed": int((passed > 0).sum()),
    }


def added(tallies: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The tally of all parts."""
    whole: dict[str, int] = {}
    for tally in tallies:
        for name, number in tally.items():
            before = whole.get(name, 0)
            whole[name] = max(before, number) if name == "looked" else before + number
    return whole


def notes_of(tally: Mapping[str, int], n_items: int, *, again: bool = False, option: str = "depth=") -> tuple[str, ...]:
    """A sentence for each thing that a user should know.

    Args:
        again: Whether the result was drawn from an earlier one.
        option: How a user writes the depth of a search.
    """
    notes = [f"{tally[name]:,} negatives are {name}." for name in ("relaxed", "random") if tally[name]]
    if tally["short"]:
        further = min(n_items, 4 * tally["looked"])
        deeper = f" Search deeper: {option}{further}." if 0 < tally["looked"] < n_items else ""
        notes.append(f"{tally['short']:,} anchors are short, by {tally['missing']:,} negatives.{deeper}")
    if tally["none"]:
        notes.append(f"k is 0 for {tally['none']:,} anchors.")
    if again and tally["passed"]:
        notes.append(f"{tally['passed']:,} anchors were searched past their suspects: these cannot come back.")
    return tuple(notes)
