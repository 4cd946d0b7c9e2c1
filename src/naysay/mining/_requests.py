"""What `mine` is asked, checked before anything is searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_number, check_one_of, check_range, check_whole, raise_invalid, shown, whole_numbers
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.duplicates import Duplicates
from naysay.mining._auto import ALPHA
from naysay.mining._counts import read_counts
from naysay.mining._known import pairs_of
from naysay.mining.judge import check_detector, combined
from naysay.mining.rescore import check_score_pairs
from naysay.mining.select import HOW, check_options, check_quotas, check_temperature
from naysay.positives import POSITIVE, Positives
from naysay.search._pair_scores import METRICS
from naysay.search._resources import thread_count
from naysay.search._survey import survey_both
from naysay.search.vectors import Vectors

SEARCH, LEAST_DEPTH, DEPTH_FACTOR = "search", 100, 4


def check_vectors(queries: Vectors, corpus: Vectors, metric: str) -> None:
    """Refuse vectors of different widths, an empty corpus, and a misspelt metric."""
    if queries.width != corpus.width:
        raise_invalid("queries", f"of width {corpus.width}, like `corpus`", queries.width)
    if corpus.n == 0:
        raise_invalid("corpus", "of at least one vector", "none")
    check_one_of("metric", metric, tuple(METRICS))


def check_numbers(queries: Vectors, corpus: Vectors, metric: str, threads: int | None) -> None:
    """Look at all vectors: what is not finite, has no cosine, or has scores too large for float32 is refused."""
    survey_both(queries, corpus, METRICS[metric], thread_count(threads))


def read_k(k: Any, n: int, most: int) -> NDArray[np.int64] | None:
    """(n,) how many negatives each anchor is to have; None for "auto"."""
    check_whole("most", most, 1)
    if isinstance(k, str):
        check_one_of("k", k, ("auto",))
        return None
    return read_counts(k, n)


def check_judge(judge: Any, duplicates: Any, rescore: Any, known: Positives, *, auto_k: bool) -> None:
    """Refuse a judge that cannot be asked, or that a rescored job could not calibrate."""
    if judge is None:
        if auto_k:
            raise_invalid("k", "a number without a judge", "'auto'", "Without a line there is no ceiling.")
        if duplicates is not None:
            advice = "judge=Duplicates(...) drops duplicates and nothing else."
            raise_invalid("duplicates", "left out without a judge", type(duplicates).__name__, advice)
        return
    labelled = len(np.unique(pairs_of(known, POSITIVE)[0]))
    if isinstance(judge, str):
        check_one_of("judge", judge, ("auto",))
        if rescore is not None and labelled < least_positives(ALPHA):
            rule = f"a detector where fewer than {least_positives(ALPHA)} anchors have a positive to rescore"
            raise_invalid("judge", rule, f"'auto' with {labelled}", "Shares of rescored pairs would need all of them.")
        return
    combined(judge, "judge")
    if isinstance(judge, Calibrated) and judge.n == 0:
        if judge.standardise:
            raise_invalid("judge", "fitted, where it is standardised", "none", "Call fit(scores, anchors, background).")
        if labelled < least_positives(judge.alpha):
            rule = f"fitted, or {least_positives(judge.alpha)} anchors must have a positive"
            raise_invalid("judge", rule, f"{labelled} that have")


def check_selection(
    select: str,
    options: Mapping[str, Any],
    quotas: Any,
    counts: NDArray[np.int64] | None,
    names: tuple[str, ...],
    n_items: int,
) -> None:
    """Refuse options of the selection that are missing, cannot act, or do not fit the corpus."""
    check_one_of("select", select, HOW)
    check_options(select, options)
    if options["temperature"] is not None:
        check_temperature(options["temperature"])
    if options["groups"] is not None:
        size = len(whole_numbers("groups", to_numpy(options["groups"])))
        if size != n_items:
            raise_invalid("groups", f"({n_items},), the group of each corpus row", f"({size},)")
    if quotas is not None:
        if counts is None:
            raise_invalid("quotas", "left out where `k` is auto", shown(quotas))
        check_quotas(quotas, names, counts)


def check_stages(ranks: Any, floor: Any, rescore: Any, budget: Any, batch: Any, n_positives: int) -> None:
    """Refuse a window that is none, a floor that is no number, and options of a rescore that is not asked for."""
    if ranks is not None:
        if not isinstance(ranks, tuple) or len(ranks) != 2:
            raise_invalid("ranks", "(first, last), last may be None", shown(ranks))
        first = check_whole("ranks", ranks[0], 1)
        if ranks[1] is not None:
            check_whole("ranks", ranks[1], first)
    if floor is not None:
        check_number("floor", floor)
    check_whole("rescore_batch", batch, 1)
    if rescore is not None:
        check_score_pairs("rescore", rescore)
        if budget is not None and check_whole("rescore_budget", budget, 0) < n_positives:
            raise_invalid("rescore_budget", f"at least {n_positives}, one positive of each anchor", budget)
    elif budget is not None:
        raise_invalid("rescore_budget", "left out without `rescore`", shown(budget))


def read_depth(depth: Any, widest: int, n_items: int, ranks: tuple[int, int | None] | None) -> int:
    """How many candidates are searched: max(4 k, 100) beyond the ranks that are skipped, at most the corpus."""
    first, last = (1, None) if ranks is None else ranks
    if depth is not None:
        return min(check_whole("depth", depth, max(1, first)), n_items)
    deep = first - 1 + max(DEPTH_FACTOR * widest, LEAST_DEPTH)
    return min(deep if last is None else min(deep, last), n_items)


def read_sources(sources: Any, n: int, n_items: int) -> dict[str, NDArray[np.int64]]:
    """{name: (n, m) ids} of other retrievers."""
    if sources is None:
        return {}
    if not isinstance(sources, Mapping) or not all(isinstance(name, str) for name in sources):
        raise_invalid("sources", "a dictionary {name: ids}", shown(sources))
    found = {}
    for name, given in sources.items():
        if name in (SEARCH, "random"):
            raise_invalid("sources", "named other than 'search' and 'random'", repr(name))
        ids = whole_numbers("sources", to_numpy(getattr(given, "ids", given)), "(n, m)").astype(np.int64)
        if len(ids) != n:
            raise_invalid("sources", f"of {n} rows, like queries", f"{len(ids)} of {name!r}")
        check_range("sources", ids, n_items, "corpus rows", least=-1)
        found[name] = ids
    return found


def read_duplicates(duplicates: Any, known: Positives, *, same_ids: bool) -> Any:
    """A detector of duplicates, or None: as given, or by the texts of the corpus, and of the queries."""
    if duplicates is None:
        return None
    if hasattr(duplicates, "suspicion"):
        check_detector("duplicates", duplicates)
        return duplicates
    texts, others = duplicates, None
    if (
        isinstance(duplicates, tuple)
        and len(duplicates) == 2
        and not any(isinstance(part, str | bytes) for part in duplicates)
    ):
        texts, others = duplicates
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__"):
        rule = "a detector, the texts of the corpus, or (corpus texts, query texts)"
        raise_invalid("duplicates", rule, shown(duplicates))
    for what, given, size in (("corpus", texts, known.n_items), ("query", others, known.n_anchors)):
        if given is not None and len(given) != size:
            raise_invalid("duplicates", f"{size} {what} texts", len(given))
    positives = Positives.from_pairs(*pairs_of(known, POSITIVE), known.n_anchors, known.n_items)
    return Duplicates(item_texts=texts, anchor_texts=others, positives=positives, shared_ids=bool(same_ids))
