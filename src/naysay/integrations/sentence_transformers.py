"""sentence-transformers: mining, a callback that mines again, batches, and a loss without false negatives.

The callback and the batches need version 5.0 or newer, the loss 5.7. `mine_hard_negatives` needs no package but this
one. Nothing is imported before it is needed.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._packages import need_datasets
from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid
from naysay.encode.texts import check_encoder, encode_texts, pool_of
from naysay.files import as_path
from naysay.integrations import _hard_negative_inputs as inputs
from naysay.integrations._hard_negative_inputs import TextPairs
from naysay.integrations._hard_negative_tables import FORMATS, fingerprint, names_of, statistics, table_of
from naysay.integrations._hard_negatives import Rules, pick
from naysay.integrations._masked_loss import mask_false_negatives
from naysay.integrations._planned_batches import batch_sampler
from naysay.integrations._refresh import RefreshNegatives
from naysay.mining.options import MiningOptions
from naysay.mining.rescore import ScorePairs
from naysay.mining.take import check_method_options
from naysay.search.vectors import Vectors, as_vectors

__all__ = ["RefreshNegatives", "batch_sampler", "mask_false_negatives", "mine_hard_negatives"]


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
    reviewer: Any = None,
    review: int = 0,
    temperature: float | None = None,
    seed: int = 0,
) -> Any:
    """Mine hard negatives for pairs of texts, with the arguments, defaults and columns of `sentence_transformers.util`.

    Arguments that sentence-transformers does not have are keyword-only.

    The result equals that of sentence-transformers 6.2.0 row by row, except for 13 defects of its function: the cache
    ignores the weights, an anchor is its own negative, duplicates of the positive are negatives, there is no seed, and
    others. docs/integrations.md lists them; each has a test.

    Cost: encoding; an exact search of O(n_anchors n_documents d), in bounded memory; a sort of each row.

    Args:
        dataset: A `datasets.Dataset`, and so is the result; or an Arrow table or a dictionary of lists, which give an
            Arrow table. Equal anchors are one anchor with several positives.
        model: A SentenceTransformer, or any object with `encode` (see `encode_texts`).
        anchor_column_name: The column of anchors; the first by default.
        positive_column_name: The column of positives; the second by default.
        corpus: More documents that may become negatives, besides the positives.
        cross_encoder: An object with predict(pairs); its scores replace those of the model.
        range_min: Skip this many of the nearest documents.
        range_max: The last rank that may become a negative. By default as many as are probably needed.
        max_score: The highest score of a negative.
        min_score: The lowest score of a negative.
        absolute_margin: A negative scores at least this much less than the lowest positive of its anchor.
        relative_margin: A negative scores at most p - |p| relative_margin, p the lowest positive of its anchor.
        num_negatives: How many negatives per anchor.
        sampling_strategy: "top" or "random"; also "softmax", which needs a temperature, and "spread" over the ranks.
        query_prompt_name: As in sentence-transformers.
        query_prompt: As in sentence-transformers.
        corpus_prompt_name: As in sentence-transformers.
        corpus_prompt: As in sentence-transformers.
        include_positives: Whether positives are ranked among the negatives, for evaluating a reranker; makes n-tuples.
        output_format: "triplet", "n-tuple" (an anchor with fewer than num_negatives has no row), "labeled-pair" or
            "labeled-list".
        output_scores: Add a column `scores`, or `score` in place of the labels.
        batch_size: Of the models.
        faiss_batch_size: Accepted for compatibility, without effect.
        use_faiss: Accepted for compatibility, without effect.
        use_multi_process: True or a list of devices: encode in several processes.
        verbose: Whether to print statistics.
        cache_folder: Where vectors are cached, by a hash of the model's weights and of the texts.
        as_triplets: Deprecated, as in sentence-transformers.
        margin: Deprecated, as in sentence-transformers.
        metric: "cosine", "dot" or "l2"; the model's own by default.
        duplicates: Whether to exclude documents that equal the anchor or a positive up to case, spaces and punctuation.
        judge: A detector that drops likely false negatives, or a text as for `mine` ("share:0.95"). "auto" is that of
            `mine`; with a cross-encoder it is `Calibrated(0.05)`, as in `mine` with `rescore`.
        reviewer: Who is asked about `review` pairs, as for `mine`; the judge is then "auto".
        review: The largest number of answers.
        temperature: Of "softmax".
        seed: Of "random" and "softmax".

    Returns:
        The negatives, in the columns of `output_format`.

    Examples:
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
    switches = {"include_positives": include_positives, "output_scores": output_scores, "use_faiss": use_faiss}
    switches |= {"verbose": verbose, "duplicates": duplicates}
    switches |= {} if as_triplets is None else {"as_triplets": as_triplets}
    inputs.check_switches(switches, use_multi_process, model)
    output_format, output_scores = _current_format(output_format, as_triplets, output_scores)
    if margin is not None:
        absolute_margin = check_number("margin", margin, finite=True)
        warnings.warn("margin is deprecated: pass absolute_margin.", DeprecationWarning, stacklevel=3)
    check_one_of("output_format", output_format, FORMATS)
    check_whole("batch_size", batch_size, 1)
    check_whole("faiss_batch_size", faiss_batch_size, 1)
    check_whole("seed", seed, 0)
    limits = zip(inputs.BOUNDS, (absolute_margin, relative_margin, max_score, min_score), strict=True)
    bounds = {name: check_number(name, limit, finite=True) for name, limit in limits if limit is not None}
    check_one_of("sampling_strategy", sampling_strategy, inputs.STRATEGIES)
    check_method_options(sampling_strategy, {"temperature": temperature})
    check_encoder(model)
    if cross_encoder is not None and not callable(getattr(cross_encoder, "predict", None)):
        raise_invalid("cross_encoder", "an object with a method predict(pairs)", type(cross_encoder).__name__)
    search_metric = inputs.metric_of(model, metric)

    columns = inputs.read_columns(dataset, anchor_column_name, positive_column_name)
    is_dataset = not isinstance(dataset, Mapping) and hasattr(dataset, "select_columns")
    datasets = need_datasets() if is_dataset else None
    pairs = inputs.pair_up(columns, corpus)
    review_options = {"reviewer": reviewer, "review": review}
    if reviewer is not None or review:
        judge = "auto" if judge is None else judge
        MiningOptions(judge=judge, rescore=None if cross_encoder is None else cross_encoder.predict, **review_options)
    judge = inputs.read_judge(judge, len(pairs.queries), rescored=cross_encoder is not None)
    # What scores below min_score is not replaced by deeper candidates, so it alone does not need more of them.
    reasons_to_drop = (absolute_margin, relative_margin, max_score, cross_encoder, judge)
    more = any(reason is not None for reason in reasons_to_drop) or sampling_strategy in ("softmax", "spread")
    first, last = inputs.window(range_min, range_max, num_negatives, pairs.largest, more=more)
    if include_positives and output_format != "n-tuple":
        _print("include_positives: the format is n-tuple, so that the ranking keeps its order.", show=verbose)
        output_format = "n-tuple"
    inputs.check_names([*columns], names_of(output_format, num_negatives, with_scores=output_scores))
    _print(_opening(pairs, first, last), show=verbose)

    rules = Rules(first + 1, last, bounds, num_negatives, sampling_strategy, temperature, seed)
    excluded = inputs.never_negative(pairs, duplicates=duplicates, include_positives=include_positives)
    with ExitStack() as stack:
        if cache_folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="naysay-")))
        else:
            folder = as_path("cache_folder", cache_folder)
        encoding: dict[str, Any] = {"folder": folder, "batch_size": batch_size, "processes": use_multi_process}
        encoding |= {"cache": cache_folder is not None, "show": verbose}
        documents = _encoded(model, pairs.corpus, "document", (corpus_prompt, corpus_prompt_name), encoding)
        queries = _encoded(model, pairs.queries, "query", (query_prompt, query_prompt_name), encoding)
        score = None
        if cross_encoder is not None:
            pool = stack.enter_context(pool_of(cross_encoder, use_multi_process))
            score = _pair_scorer(cross_encoder, pairs, batch_size, pool)
        searched = (queries, documents, pairs, excluded, search_metric, rules)
        picked = pick(*searched, rescore=score, judge=judge, review_options=review_options)
    table = table_of(output_format, [*columns], pairs, picked, with_scores=output_scores)
    if verbose:
        _print(statistics(pairs, picked, bounds, num_negatives), show=True)
        _print(picked.rule, show=bool(picked.rule))
    return table if datasets is None else datasets.Dataset(table, fingerprint=fingerprint(table))


def _current_format(output_format: str, as_triplets: bool | None, output_scores: bool) -> tuple[str, bool]:  # noqa: FBT001
    """Translate the deprecated ways to choose the format."""
    text = ""
    if as_triplets is not None:
        output_format = "triplet" if as_triplets else "n-tuple"
        text = f"as_triplets is deprecated: pass output_format={output_format!r}."
    if isinstance(output_format, str) and output_format == "n-tuple-scores":
        text = "output_format='n-tuple-scores' is deprecated: pass 'n-tuple' and output_scores=True."
        output_format, output_scores = "n-tuple", True
    if text:
        warnings.warn(text, DeprecationWarning, stacklevel=4)  # past this function and the decorator
    return output_format, output_scores


def _encoded(model: Any, texts: Any, side: str, prompts: tuple[str | None, str | None], options: Any) -> Vectors:
    """Return the vectors of the texts; a prompt goes before the name of one."""
    prompt, name = prompts
    prompt_name = None if prompt is not None else name
    return as_vectors(side, encode_texts(model, texts, side=side, prompt=prompt, prompt_name=prompt_name, **options))


def _print(text: str, *, show: bool) -> None:
    if show:
        sys.stdout.write(f"{text}\n")


def _opening(pairs: TextPairs, first: int, last: int) -> str:
    """Describe the data and the ranks."""
    n, several = len(pairs.queries), len(pairs.anchors) / len(pairs.queries)
    return (
        f"{n:,} anchors with {several:.3f} positives on average, in {pairs.rows:,} rows; "
        f"{len(pairs.corpus):,} documents. Ranks {first + 1} to {last} are considered."
    )


def _pair_scorer(cross_encoder: Any, pairs: TextPairs, batch_size: int, pool: dict[str, Any]) -> ScorePairs:
    """Return the function that scores pairs of rows by a cross-encoder."""
    import pyarrow as pa

    def score(anchors: NDArray[np.int64], ids: NDArray[np.int64]) -> Any:
        left, right = pairs.queries.take(pa.array(anchors)), pairs.corpus.take(pa.array(ids))
        both = list(zip(left.to_pylist(), right.to_pylist(), strict=True))
        return cross_encoder.predict(
            both, batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False, **pool
        )

    return score
