"""The options of mining, each declared once. `mine`, `naysay mine` and a job's record are all fed from here.

To add an option: declare it as a field of `MiningOptions`, use `problem.options.NAME` in the stage that it belongs to,
and test it. Its keyword, its option on the command line, its help, its entry in a job's record and its name in errors
follow from the declaration.
"""

# ruff: noqa: RUF009 (an option is declared by a call, like dataclasses.field)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

from naysay._options import check_options, option
from naysay.checks import check_bool, check_device, check_number, check_one_of, check_whole, raise_invalid, shown
from naysay.kernels.threads import check_threads
from naysay.mining.judge import check_judge_text
from naysay.mining.rescore import ScorePairs
from naysay.mining.take import METHODS, ON_SHORT, check_method_options
from naysay.search._products import NAMES as ENGINES
from naysay.search._scores import METRICS

INDEX_KINDS = ("auto", "ivf", "hnsw")


def read_rank_range(flag: str, text: str) -> tuple[int, int | None]:
    """10-100, or 10- for all ranks from 10 on."""
    first, dash, last = text.partition("-")
    if not dash or not first.isdecimal() or not (last.isdecimal() or not last):
        raise_invalid(flag, "two ranks such as 10-100, or 10-", shown(text))
    return int(first), int(last) if last else None


def read_quotas(flag: str, text: str) -> dict[str, int]:
    """search=4,bm25=2."""
    quotas: dict[str, int] = {}
    for part in text.split(","):
        name, sign, count = part.strip().partition("=")
        if not sign or not count.isdecimal() or not name or name in quotas:
            raise_invalid(flag, "sources and counts such as search=4,bm25=2", shown(text))
        quotas[name] = int(count)
    return quotas


def read_method(flag: str, text: str) -> str:
    """A method of `select` whose options can be written as text."""
    check_one_of(flag, text, [name for name in METHODS if name != "groups"])
    return text


def check_judge(parameter: str, judge: Any) -> None:
    """Raise if a judge that is given as text names none."""
    if isinstance(judge, str):
        check_judge_text(parameter, judge)


def check_ranks(parameter: str, ranks: Any) -> None:
    """Raise unless these are (first, last)."""
    if not isinstance(ranks, tuple) or len(ranks) != 2:
        raise_invalid(parameter, "(first, last), last may be None", shown(ranks))
    first = check_whole(parameter, ranks[0], 1)
    if ranks[1] is not None:
        check_whole(parameter, ranks[1], first)


def check_function(parameter: str, function: Any) -> None:
    """Raise unless this can be called with pairs."""
    if not callable(function):
        raise_invalid(parameter, f"a function {parameter}(anchors, ids)", type(function).__name__)


def _one_of(*names: str) -> Any:
    return partial(check_one_of, options=names)


_NOT_NEGATIVE, _AT_LEAST_1 = partial(check_whole, least=0), partial(check_whole, least=1)
_SHARE = partial(check_number, above=0, below=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MiningOptions:
    """All options of `mine`. What can be checked without data is checked when they are made.

    Args:
        metric: "cosine", "dot" or "l2". Higher scores are closer: l2 is minus the distance.
        judge: Which candidates to drop as suspected false negatives: "auto", None (none), a detector,
            {name: detector}, or a text as on the command line: "calibrated:0.02", "margin:0.05", "share:0.95",
            "max_score:0.8", "bands:0.3,0.7".
        false_share: The largest estimated share of false negatives among those returned, with judge="auto".
        labelled_share: The share of all positives that are labelled, if it is known; with judge="auto".
        reviewed: (anchors, items, truth): candidates that a person reviewed, best about 100 drawn by
            `Mined.pairs_to_review`; truth is True for a false negative. They correct the estimate of judge="auto", and
            the false ones are left out.
        reviewer: Who can answer whether a document answers a query: a function of pairs (.anchors, .items, .queries,
            .documents) -> (n,) from 0 to 1, a reviewer such as `CrossEncoder`, `LLM` or `People`, a text such as
            "cross-encoder:PATH", or a list [cheap, trusted]: the second checks the yes answers of the first.
        review: The largest number of answers about candidates; 100 are enough for most. Beside them, a reviewer other
            than people is asked about max(15, review / 10) labelled positives, to know how many it finds.
        answers: A file that keeps the answers, so that no pair is asked about twice.
        texts: (query texts, corpus texts), for reviewers that need them.
        false_negatives: What becomes of false negatives that a reviewer finds: "drop" leaves them out, "positive" also
            writes them as positives of their anchor, "keep" keeps them.
        seed: The seed of all random choices.
        ignore: Pairs that are neither positive nor negative, in the same forms as `positives`.
        same_ids: Which queries are in the corpus, so that none is its own negative: True if query i is corpus row i, as
            for pairs of sentences or nodes of a graph; (n,) the corpus row of each query, -1 for none; or
            (query ids, corpus ids).
        keep_own_text: Whether to keep corpus rows whose vector is that of the query, number for number. By default they
            are left out like the query itself.
        duplicates: A detector such as `Duplicates`, the texts of the corpus, or (corpus texts, query texts).
        depth: Number of candidates to search for each query. By default as many as the negatives need: see above.
            Known pairs do not count: the search leaves them out.
        sources: {name: (n, m) ids, or an object with ids}: candidates of other retrievers, best first, -1 empty.
            They are scored by the vectors and keep the ranks of their own list.
        rank_range: (first, last): keep these ranks only, counted from 1 without known pairs. last may be None.
        min_score: The lowest score of a negative.
        rescore: rescore(anchors (p,), ids (p,)) -> (p,): a better score, such as a cross-encoder. One positive of
            each anchor is scored first.
        rescore_budget: The largest number of pairs to rescore.
        rescore_batch: Number of pairs in a call of `rescore`.
        select: "top", "random", "softmax" (needs `temperature`), "spread", "groups" (needs `groups`) or "mmr".
        temperature: Softmax temperature.
        groups: (N,) the group of each corpus row.
        mmr_lambda: MMR relevance weight, 0 to 1; 0.5 by default.
        quotas: {source: number of negatives}. The search is called "search". The numbers add up to k.
        max_per_item: No item is the negative of more than so many anchors. Pairs are taken greedily, the highest scores
            first; an anchor whose candidate is taken goes on to its next one.
        on_short: For an anchor with fewer than k negatives: "pad" leaves slots empty, "drop" drops the anchor,
            "relax" takes suspected candidates back, "random" adds random items, "raise" raises an error.
        max_k: The largest k of an anchor where k is "auto".
        approximate: None for an exact search; "auto", "ivf" or "hnsw" for an index. Its recall is measured on 500
            queries and stated in `Mined.notes`.
        min_recall: The smallest recall of an index. A smaller one raises an error.
        engine: Search engine: "auto", "int8", "float32" or "float64". The result is the same.
        budget: Memory of the search in bytes. The result is the same.
        device: Where torch multiplies in an exact search, such as "cuda"; None for the processor. The result is the
            same.
        threads: Number of threads. The result is the same.
    """

    metric: str = option("cosine", "Score of a pair: cosine, dot or l2.", check=_one_of(*METRICS))
    judge: Any = option(
        "auto",
        "Which candidates to drop as suspected false negatives: auto, none, calibrated:0.02, margin:0.05, share:0.95, "
        "max_score:0.8 or bands:0.3,0.7.",
        read=lambda flag, text: text,
        written="auto",
        check=check_judge,
    )
    false_share: float = option(
        0.05, "The largest estimated share of false negatives, with --judge auto.", check=_SHARE
    )
    labelled_share: float | None = option(
        None, "The share of all positives that are labelled, if it is known.", check=_SHARE
    )
    reviewed: Any = option(None)
    reviewer: Any = option(None)
    review: int = option(0, check=_NOT_NEGATIVE)
    answers: str | Path | None = option(None)
    texts: Any = option(None)
    false_negatives: str = option(
        "drop",
        "False negatives that a reviewer finds: drop, positive or keep.",
        check=_one_of("drop", "positive", "keep"),
    )
    seed: int = option(0, "Seed of all random choices.", check=_NOT_NEGATIVE)
    ignore: Any = option(None)
    same_ids: Any = option(False)
    keep_own_text: bool = option(False, "Keep documents whose text or vector is that of the anchor.", check=check_bool)
    duplicates: Any = option(None)
    depth: int | None = option(
        None, "Candidates to search for each anchor. Default: as many as the negatives need.", check=_AT_LEAST_1
    )
    sources: Mapping[str, Any] | None = option(None)
    rank_range: tuple[int, int | None] | None = option(
        None, "Keep these ranks only: 10-100, or 10-.", read=read_rank_range, check=check_ranks
    )
    min_score: float | None = option(None, "The lowest score of a negative.", check=check_number)
    rescore: ScorePairs | None = option(None, check=check_function)
    rescore_budget: int | None = option(None, check=_NOT_NEGATIVE)
    rescore_batch: int = option(256, check=_AT_LEAST_1)
    select: str = option(
        "top",
        "Which candidates become negatives: top, random, softmax, spread or mmr.",
        read=read_method,
        written="top",
        check=_one_of(*METHODS),
    )
    temperature: float | None = option(None, "Softmax temperature; only with --select softmax.")
    groups: Any = option(None)
    mmr_lambda: float | None = option(None, "MMR relevance weight, 0 to 1; only with --select mmr.")
    quotas: Mapping[str, int] | None = option(None, "Negatives from each source: search=4,bm25=2.", read=read_quotas)
    max_per_item: int | None = option(
        None, "No document is the negative of more than so many anchors.", check=_AT_LEAST_1
    )
    on_short: str = option(
        "pad",
        "For anchors with fewer than k negatives: pad, drop, relax, random or raise.",
        check=_one_of(*ON_SHORT),
    )
    max_k: int = option(32, "The largest k of an anchor; only with -k auto.", check=_AT_LEAST_1)
    approximate: str | None = option(
        None, "Use an index in place of the exact search: auto, ivf or hnsw.", check=_one_of(*INDEX_KINDS)
    )
    min_recall: float = option(
        0.9,
        "The smallest recall of an index; a smaller one is an error.",
        check=partial(check_number, at_least=0, at_most=1),
    )
    engine: str = option("auto", check=_one_of(*ENGINES))
    budget: int | None = option(None, check=_AT_LEAST_1)
    device: Any = option(None, check=check_device)
    threads: int | None = option(
        None, "Number of threads. The result does not depend on it.", record=False, check=check_threads
    )

    def __post_init__(self) -> None:
        """Check what does not need data: each option by itself, and those that depend on each other."""
        check_options(self)
        if self.judge == "none":
            object.__setattr__(self, "judge", None)
        self._check_review()
        if self.rescore is None and self.rescore_budget is not None:
            raise_invalid("rescore_budget", "left out without `rescore`", shown(self.rescore_budget))
        self._check_max_per_item()
        of_methods = {"temperature": self.temperature, "groups": self.groups, "mmr_lambda": self.mmr_lambda}
        check_method_options(self.select, of_methods)
        if self.depth is not None and self.rank_range is not None:
            check_whole("depth", self.depth, self.rank_range[0])

    @property
    def limits_candidates(self) -> bool:
        """Whether some candidates may not be taken, for their rank or score: see `within_limits`."""
        return self.rank_range is not None or self.min_score is not None

    def _check_review(self) -> None:
        if self.reviewer is None:
            given = {"review": self.review, "answers": self.answers, "texts": self.texts}
            for name, value in given.items():
                if value:
                    raise_invalid(name, "left out without `reviewer`", shown(value))
        elif self.judge != "auto" or self.rescore is not None:
            raise_invalid("reviewer", "left out unless the judge is 'auto', without `rescore`", shown(self.judge))
        elif self.reviewed is not None:
            raise_invalid("reviewed", "left out with `reviewer`", "both", "Pass reviewer=People(file).")
        else:
            check_whole("review", self.review, 1)

    def _check_max_per_item(self) -> None:
        if self.max_per_item is None:
            return
        if self.select != "top" or self.quotas is not None:
            raise_invalid("max_per_item", "left out unless the highest scores are selected", self.max_per_item)
        if self.on_short in ("relax", "random"):
            rule = f"left out with on_short={self.on_short!r}, which could exceed it"
            raise_invalid("max_per_item", rule, self.max_per_item)
