"""Which methods fit: by data, by what can be given, and by cost."""

from __future__ import annotations

from naysay.catalog._method import Method
from naysay.catalog._table import methods
from naysay.checks import check_one_of, public, raise_invalid

DATA = ("pairs", "graph", "triples", "texts", "images")
NEEDS = {"scores": "scores or vectors of the model", "extra": "data beside the known pairs", "torch": "torch"}
STEPS = ("low", "medium", "high")


@public
def matching(data: str = "", needs: str = "", cost: str = "") -> tuple[Method, ...]:
    """Return the samplers that fit, in the order of the table.

    Args:
        data: pairs, graph, triples, texts or images: what they were made for. Methods for pairs take any pairs, so
            edges, and texts with their answers, too.
        needs: What you can give: scores, extra, torch, several as "scores,torch", or none. Methods that need more are
            left out.
        cost: low, medium or high: the most that a step may cost.

    Raises:
        NaysayError: If a value is none of these.

    Examples:
        >>> from naysay import catalog
        >>> [method.name for method in catalog.matching("triples", "none")][:2]
        ['corruption', 'TransE']
    """
    if data:
        check_one_of("data", data, DATA)
    if cost:
        check_one_of("cost", cost, STEPS)
    given = _given(needs)
    return tuple(
        method
        for method in (*methods("where"), *methods("which"))
        if (not data or data in method.data)
        and (given is None or given.issuperset(method.needs))
        and (not cost or method.step in STEPS[: STEPS.index(cost) + 1])
    )


def _given(needs: str) -> set[str] | None:
    """The needs that a user can meet; None for all."""
    words = [word.strip() for word in needs.split(",") if word.strip()]
    for word in words:
        check_one_of("needs", word, (*NEEDS, "none"))
    if "none" in words and len(words) > 1:
        raise_invalid("needs", "'none' alone, or a list without it", repr(needs))
    return None if not words else set(words) - {"none"}
