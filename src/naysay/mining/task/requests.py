"""What `mine` is asked, checked before anything is searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_one_of, check_range, check_whole, refuse, shown, whole_numbers
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.twins import Twins
from naysay.kernels.threads import threads as usual_threads
from naysay.mining.auto import ALPHA
from naysay.mining.counts import read_counts
from naysay.mining.files.vectors import Vectors
from naysay.mining.judge import check_detector, combined
from naysay.mining.known import pairs_of
from naysay.mining.rescore import check_score_pairs
from naysay.mining.searching.bounds import fits_float32, largest_score
from naysay.mining.searching.search import METRICS
from naysay.mining.searching.survey import survey
from naysay.mining.searching.workers import Workers
from naysay.mining.select import HOW, check_options, check_quotas, check_temperature
from naysay.positives import POSITIVE, Positives
from naysay.quantity.numbers import one_number

SEARCH, LEAST_DEPTH, DEPTH_FACTOR = "search", 100, 4


def check_vectors(owner: str, queries: Vectors, corpus: Vectors, metric: str) -> None:
    """Refuse vectors of different widths, an empty corpus, and a misspelt metric."""
    if queries.width != corpus.width:
        refuse(owner, "queries", f"of width {corpus.width}, like corpus", queries.width)
    if corpus.n == 0:
        refuse(owner, "corpus", "of at least one vector", "none")
    check_one_of(owner, "metric", metric, tuple(METRICS))


def check_numbers(owner: str, queries: Vectors, corpus: Vectors, metric: str, threads: int | None) -> None:
    """Look at all vectors: what is not finite, has no cosine, or has scores too large for float32 is refused."""
    kind, count = METRICS[metric], usual_threads() if threads is None else check_whole(owner, "threads", threads, 1)
    with Workers(count, torch=False) as workers:
        sides = (("queries", queries), ("corpus", corpus))
        norms = [survey(owner, name, vectors, kind, workers).largest for name, vectors in sides]
    most = largest_score(kind, norms[0], norms[1])
    if not fits_float32(most):
        advice = "Scale the vectors down."
        refuse(owner, "queries", "of norms whose scores float32 holds", f"scores up to {most:.3g}", advice)


def read_k(owner: str, k: Any, n: int, most: int) -> NDArray[np.int64] | None:
    """(n,) how many negatives each anchor is to have; None for "auto"."""
    check_whole(owner, "most", most, 1)
    if isinstance(k, str):
        check_one_of(owner, "k", k, ("auto",))
        return None
    return read_counts(owner, k, n)


def check_judge(owner: str, judge: Any, twins: Any, rescore: Any, known: Positives, *, auto_k: bool) -> None:
    """Refuse a judge that cannot be asked, or that a rescored job could not calibrate."""
    if judge is None:
        if auto_k:
            refuse(owner, "k", "a number without a judge", "'auto'", "Without a line there is no ceiling.")
        if twins is not None:
            advice = "judge=Twins(...) drops twins and nothing else."
            refuse(owner, "twins", "None without a judge", type(twins).__name__, advice)
        return
    labelled = len(np.unique(pairs_of(known, POSITIVE)[0]))
    if isinstance(judge, str):
        check_one_of(owner, "judge", judge, ("auto",))
        if rescore is not None and labelled < least_positives(ALPHA):
            rule = f"a detector where fewer than {least_positives(ALPHA)} anchors have a positive to rescore"
            refuse(owner, "judge", rule, f"'auto' with {labelled}", "Shares of rescored pairs would need all of them.")
        return
    combined(owner, judge, "judge")
    if isinstance(judge, Calibrated) and judge.n == 0:
        if judge.standardise:
            refuse(owner, "judge", "fitted, where it is standardised", "none", "Call fit(scores, anchors, background).")
        if labelled < least_positives(judge.alpha):
            rule = f"fitted, or {least_positives(judge.alpha)} anchors must have a positive"
            refuse(owner, "judge", rule, f"{labelled} that have")


def check_selection(
    owner: str,
    select: str,
    options: Mapping[str, Any],
    quotas: Any,
    counts: NDArray[np.int64] | None,
    names: tuple[str, ...],
    n_items: int,
) -> None:
    """Refuse options of the selection that are missing, cannot act, or do not fit the corpus."""
    check_one_of(owner, "select", select, HOW)
    check_options(owner, select, options)
    if options["temperature"] is not None:
        check_temperature(owner, options["temperature"])
    if options["groups"] is not None:
        size = len(whole_numbers(owner, "groups", to_numpy(options["groups"])))
        if size != n_items:
            refuse(owner, "groups", f"({n_items},), the group of each corpus row", f"({size},)")
    if quotas is not None:
        if counts is None:
            refuse(owner, "quotas", "None with k='auto'", shown(quotas))
        check_quotas(owner, quotas, names, counts)


def check_stages(owner: str, ranks: Any, floor: Any, rescore: Any, budget: Any, batch: Any, n_positives: int) -> None:
    """Refuse a window that is none, a floor that is no number, and options of a rescore that is not asked for."""
    if ranks is not None:
        if not isinstance(ranks, tuple) or len(ranks) != 2:
            refuse(owner, "ranks", "(first, last), last may be None", shown(ranks))
        first = check_whole(owner, "ranks", ranks[0], 1)
        if ranks[1] is not None:
            check_whole(owner, "ranks", ranks[1], first)
    if floor is not None:
        one_number(owner, "floor", floor)
    check_whole(owner, "rescore_batch", batch, 1)
    if rescore is not None:
        check_score_pairs(owner, "rescore", rescore)
        if budget is not None and check_whole(owner, "rescore_budget", budget, 0) < n_positives:
            refuse(owner, "rescore_budget", f"at least {n_positives}, one positive of each anchor", budget)
    elif budget is not None:
        refuse(owner, "rescore_budget", "None without rescore", shown(budget))


def read_depth(owner: str, depth: Any, widest: int, n_items: int, ranks: tuple[int, int | None] | None) -> int:
    """How many candidates are searched: max(4 k, 100) beyond the ranks that are skipped, at most the corpus."""
    first, last = (1, None) if ranks is None else ranks
    if depth is not None:
        return min(check_whole(owner, "depth", depth, max(1, first)), n_items)
    deep = first - 1 + max(DEPTH_FACTOR * widest, LEAST_DEPTH)
    return min(deep if last is None else min(deep, last), n_items)


def read_sources(owner: str, sources: Any, n: int, n_items: int) -> dict[str, NDArray[np.int64]]:
    """{name: (n, m) ids} of other retrievers."""
    if sources is None:
        return {}
    if not isinstance(sources, Mapping) or not all(isinstance(name, str) for name in sources):
        refuse(owner, "sources", "a dictionary {name: ids}", shown(sources))
    found = {}
    for name, given in sources.items():
        if name in (SEARCH, "random"):
            refuse(owner, "sources", "named other than 'search' and 'random'", repr(name))
        ids = whole_numbers(owner, "sources", to_numpy(getattr(given, "ids", given)), "(n, m)").astype(np.int64)
        if len(ids) != n:
            refuse(owner, "sources", f"of {n} rows, like queries", f"{len(ids)} of {name!r}")
        check_range(owner, "sources", ids, n_items, "corpus rows", least=-1)
        found[name] = ids
    return found


def read_twins(owner: str, twins: Any, known: Positives, *, same_ids: bool) -> Any:
    """A detector of twins, or None: as given, or by the texts of the corpus, and of the queries."""
    if twins is None:
        return None
    if hasattr(twins, "suspicion"):
        check_detector(owner, "twins", twins)
        return twins
    texts, others = twins, None
    if isinstance(twins, tuple) and len(twins) == 2 and not any(isinstance(part, str | bytes) for part in twins):
        texts, others = twins
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__"):
        rule = "a detector, the texts of the corpus, or (corpus texts, query texts)"
        refuse(owner, "twins", rule, shown(twins))
    for what, given, size in (("corpus", texts, known.n_items), ("query", others, known.n_anchors)):
        if given is not None and len(given) != size:
            refuse(owner, "twins", f"{size} {what} texts", len(given))
    positives = Positives.from_pairs(*pairs_of(known, POSITIVE), known.n_anchors, known.n_items)
    return Twins(item_texts=texts, anchor_texts=others, positives=positives, shared_ids=bool(same_ids))
