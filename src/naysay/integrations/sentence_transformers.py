"""mine_hard_negatives: the function of sentence-transformers, with our mining behind it."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, check_whole, public
from naysay.encode.texts import encode_texts, pool_of
from naysay.formats._whole_files import need_datasets
from naysay.integrations import _hard_negative_checks as checks
from naysay.integrations._hard_negative_statistics import statistics
from naysay.integrations._hard_negative_tables import FORMATS, Rows, fingerprint, names_of
from naysay.integrations._hard_negatives import Rules, pick
from naysay.integrations._text_pairs import TextPairs, own_texts, pair_up, read_columns, twin_texts
from naysay.mining._known import pairs_of
from naysay.mining.rescore import ScorePairs
from naysay.positives import IGNORE, Positives
from naysay.search.vectors import as_vectors


@public
def mine_hard_negatives(
    dataset: Any,
    model: Any,
    anchor_column_name: str | None = None,
    positive_column_name: str | None = None,
    corpus: list[str] | None = None,
    cross_encoder: Any = None,
    range_min: int = 0,
    range_max: int | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = None,
    num_negatives: int = 3,
    sampling_strategy: str = "top",
    query_prompt_name: str | None = None,
    query_prompt: str | None = None,
    corpus_prompt_name: str | None = None,
    corpus_prompt: str | None = None,
    include_positives: bool = False,  # noqa: FBT001
    output_format: str = "triplet",
    output_scores: bool = False,  # noqa: FBT001
    batch_size: int = 32,
    faiss_batch_size: int = 16384,
    use_faiss: bool = False,  # noqa: FBT001
    use_multi_process: list[str] | bool = False,  # noqa: FBT001
    verbose: bool = True,  # noqa: FBT001
    cache_folder: str | None = None,
    as_triplets: bool | None = None,  # noqa: FBT001
    margin: float | None = None,
    *,
    metric: str | None = None,
    duplicates: bool = True,
    judge: Any = None,
    temperature: float | None = None,
    seed: int = 0,
) -> Any:
    """Mine hard negatives for pairs of texts: the arguments, defaults and columns of `sentence_transformers.util`.

    sampling_strategy "top" or "random", and of ours "softmax", which needs a temperature, and "spread" over the ranks
    include_positives whether positives are ranked among the negatives, for data that a reranker is measured on: n-tuple

    What is ours comes last, by name only:

    **The answer equals theirs** (6.2.0), row by row, except where theirs is wrong, and there is a test of each:

    0.  vectors of another model came out of the cache: theirs goes by the name of the base model, which a local
        checkpoint does not have; ours by the weights
    1.  an anchor that is a document as well was mined as its own negative
    2.  there was no seed
    3.  candidates that one rule had dropped were counted again for the next
    4.  models that compare by dot product or distance were mined by cosine; pass metric="cosine" to have that back
    5.  verbose=True failed on more than 16.7 million scores, after the mining
    6.  range_min counted what the margins had left, and skipped good negatives; here it counts ranks
    7.  the positive in other letters was the hardest negative
    8.  the cross-encoder was called once for each query, also about padding, and not used without a margin or a bound
    9.  one anchor with many positives widened the search for all
    10. "random" was the only way but "top"
    11. with a margin or a bound, candidates beyond range_max were taken: as many as the anchor with the most positives
        has
    12. a misspelt column name mined the first two columns; here it is refused

    Cost: encoding; an exact search of O(n_anchors n_documents d), in bounded memory; a sort of each row.

    Args:
        dataset: A `datasets.Dataset`, and so is the answer; or an Arrow table or a dictionary of lists, and the
            answer is an Arrow table. Equal anchors are one, with several positives.
        model: A SentenceTransformer, or any object with `encode` (see `encode_texts`).
        corpus: More documents that may become negatives, besides the positives.
        cross_encoder: An object with predict(pairs): its scores take the place of the model's.
        range_min: Ranks that are looked at, from range_min + 1 to range_max; see `window` for the default.
        range_max: Ranks that are looked at, from range_min + 1 to range_max; see `window` for the default.
        max_score: What a negative may score; with several positives the margins are to the lowest of them.
        min_score: What a negative may score; with several positives the margins are to the lowest of them.
        absolute_margin: What a negative may score; with several positives the margins are to the lowest of them.
        relative_margin: What a negative may score; with several positives the margins are to the lowest of them.
        output_format: "triplet", "n-tuple" (an anchor with fewer than num_negatives has no row), "labeled-pair" or
            "labeled-list".
        output_scores: Adds `scores` [positive, negatives], or puts `score` or `scores` in the place of labels.
        use_faiss: Are accepted and change nothing: the search is exact and in blocks, anyway.
        faiss_batch_size: Are accepted and change nothing: the search is exact and in blocks, anyway.
        cache_folder: Where vectors are kept, by a hash of the model's weights and of the texts.
        metric: "cosine", "dot" or "l2"; by default that which the model compares by.
        duplicates: Whether a document that reads like the anchor or a positive in other letters ("Paris." for
            "paris") stays out.
        judge: A detector that drops what it suspects, or "auto": `Calibrated(0.05)` on the positives, so that no
            margin has to be guessed.
        seed: Of everything that is drawn.

    Example:
        >>> from types import SimpleNamespace
        >>> places = {"cat": 0, "a cat": 10, "a dog": 30, "a car": 80, "dog": 35}
        >>> def encode(texts, **options):
        ...     angles = np.deg2rad([places[text] for text in texts])
        ...     return np.stack([np.cos(angles), np.sin(angles)], axis=1)
        >>> pairs = {"query": ["cat", "dog", "a dog"], "answer": ["a cat", "a dog", "a car"]}
        >>> mined = mine_hard_negatives(pairs, SimpleNamespace(encode=encode), num_negatives=1, verbose=False)
        >>> mined.column_names, mined["negative"].to_pylist()
        (['query', 'answer', 'negative'], ['a dog', 'a cat', 'a cat'])
    """
    if as_triplets is not None:
        output_format = "triplet" if as_triplets else "n-tuple"
        text = f"as_triplets is deprecated: pass output_format={output_format!r}."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    if margin is not None:
        warnings.warn("margin is deprecated: pass absolute_margin.", DeprecationWarning, stacklevel=2)
        absolute_margin = margin
    if output_format == "n-tuple-scores":
        text = "output_format='n-tuple-scores' is deprecated: pass 'n-tuple' and output_scores=True."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        output_format, output_scores = "n-tuple", True
    check_one_of("output_format", output_format, FORMATS)
    for name, value in (("batch_size", batch_size), ("faiss_batch_size", faiss_batch_size)):
        check_whole(name, value, 1)
    check_whole("seed", seed, 0)
    bounds: dict[str, float | None] = {
        "absolute_margin": absolute_margin,
        "relative_margin": relative_margin,
        "max_score": max_score,
        "min_score": min_score,
    }
    checks.check_bounds(bounds)
    checks.check_strategy(sampling_strategy, temperature)
    checks.check_model(model, cross_encoder)
    how = checks.metric_of(model, metric)
    columns = read_columns(dataset, anchor_column_name, positive_column_name)
    plain = isinstance(dataset, Mapping) or not hasattr(dataset, "select_columns")
    package = None if plain else need_datasets()
    pairs = pair_up(columns, corpus)
    checks.check_judge(judge, len(pairs.queries))
    # What scores below min_score is not replaced by what lies deeper, so it alone needs no more candidates.
    reasons = (absolute_margin, relative_margin, max_score, cross_encoder, judge)
    more = any(value is not None for value in reasons) or sampling_strategy in ("softmax", "spread")
    first, last = checks.window(range_min, range_max, num_negatives, pairs.largest, more=more)
    if include_positives and output_format != "n-tuple":
        _say("include_positives: the format is n-tuple, so that the ranking keeps its order.", show=verbose)
        output_format = "n-tuple"
    checks.check_names(columns.names, names_of(output_format, num_negatives, with_scores=output_scores))
    _say(_opening(pairs, first, last), show=verbose)
    rules = Rules(
        first=first + 1,
        last=last,
        absolute_margin=absolute_margin,
        relative_margin=relative_margin,
        max_score=max_score,
        min_score=min_score,
        count=num_negatives,
        how=sampling_strategy,
        temperature=temperature,
        seed=seed,
    )
    never = pairs.known().with_ignored(*own_texts(pairs))
    if duplicates:
        never = never.with_ignored(*twin_texts(pairs))
    if include_positives:
        never = Positives.from_pairs(*pairs_of(never, IGNORE), never.n_anchors, never.n_items)
    with ExitStack() as stack:
        folder = cache_folder
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="naysay-"))
        vectors = []
        for side, texts, prompt, prompt_name in (
            ("document", pairs.corpus, corpus_prompt, corpus_prompt_name),
            ("query", pairs.queries, query_prompt, query_prompt_name),
        ):
            file = encode_texts(
                model,
                texts,
                folder=folder,
                batch_size=batch_size,
                prompt=prompt,
                prompt_name=None if prompt is not None else prompt_name,
                side=side,
                processes=use_multi_process,
                cache=cache_folder is not None,
                show=verbose,
            )
            vectors.append(as_vectors(side, file))
        score = None
        if cross_encoder is not None:
            pool = stack.enter_context(pool_of(cross_encoder, use_multi_process))
            score = _pairs_scored(cross_encoder, pairs, batch_size, pool)
        picked = pick(vectors[1], vectors[0], pairs, never, how, rules, rescore=score, judge=judge)
    rows = Rows(columns.names, pairs, picked)
    table = rows.table(output_format, with_scores=output_scores)
    if verbose:
        _say(statistics(rows, bounds, num_negatives), show=True)
    return table if package is None else package.Dataset(table, fingerprint=fingerprint(table))


def _say(text: str, *, show: bool) -> None:
    if show:
        sys.stdout.write(f"{text}\n")


def _opening(pairs: TextPairs, first: int, last: int) -> str:
    """What there is, and where it is looked."""
    n, several = len(pairs.queries), len(pairs.anchors) / len(pairs.queries)
    return (
        f"{n:,} anchors with {several:.3f} positives on average, in {pairs.rows:,} rows; "
        f"{len(pairs.corpus):,} documents. Ranks {first + 1} to {last} are looked at."
    )


def _pairs_scored(cross_encoder: Any, pairs: TextPairs, batch_size: int, pool: dict[str, Any]) -> ScorePairs:
    """The scores of a cross-encoder, for pairs of rows."""
    import pyarrow as pa

    def score(anchors: NDArray[np.int64], ids: NDArray[np.int64]) -> Any:
        left, right = pairs.queries.take(pa.array(anchors)), pairs.corpus.take(pa.array(ids))
        both = list(zip(left.to_pylist(), right.to_pylist(), strict=True))
        return cross_encoder.predict(
            both, batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False, **pool
        )

    return score
