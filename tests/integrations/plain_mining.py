"""The rules of `mine_hard_negatives` in plain loops over texts: the oracle."""

import numpy as np


def cosine(one, other):
    """The score that a search gives: float64 in index order, rounded to float32."""
    dot = sum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    norms = [np.sqrt(sum(float(a) * float(a) for a in side)) for side in (one, other)]
    return np.float32(dot / (norms[0] * norms[1]))


def plain_negatives(
    rows,
    corpus,
    table,
    k,
    range_min,
    range_max,
    absolute_margin=None,
    relative_margin=None,
    max_score=None,
    min_score=None,
    include_positives=False,
    rescore=None,
):
    """[(anchor, [(positive, score)], [(negative, score)])], anchors and positives in the order in which they are met.

    range_max   an int: the default is the caller's
    """
    documents = list(dict.fromkeys([*(corpus or []), *(positive for _, positive in rows)]))
    found = []
    for anchor in dict.fromkeys(anchor for anchor, _ in rows):
        positives = list(dict.fromkeys(positive for other, positive in rows if other == anchor))
        scores = {text: cosine(table[anchor], table[text]) for text in documents}
        ranked = sorted(documents, key=lambda text: -scores[text])  # stable: of equal scores the earlier document
        may = [text for text in ranked if (include_positives or text not in positives)]
        may = [text for text in may if text != anchor or text in positives]
        window = may[range_min:range_max]
        if rescore is not None:
            scores = {text: np.float32(rescore(anchor, text)) for text in documents}
        lowest = min(scores[text] for text in positives)
        kept = []
        for text in window:
            score = scores[text]
            if absolute_margin is not None and score + np.float32(absolute_margin) > lowest:
                continue
            if relative_margin is not None and score > lowest - abs(lowest) * np.float32(relative_margin):
                continue
            if max_score is not None and score > np.float32(max_score):
                continue
            if min_score is not None and score < np.float32(min_score):
                continue
            kept.append((text, score))
        kept.sort(key=lambda pair: -pair[1])
        found.append((anchor, [(text, scores[text]) for text in positives], kept[:k]))
    return found


def plain_table(found, k, form, with_scores):
    """{column: values}, of columns called anchor and positive."""
    columns = {"triplet": ["negative"], "n-tuple": [f"negative_{i + 1}" for i in range(k)]}
    names = ["anchor", "positive", *columns.get(form, [])]
    if form.startswith("labeled"):
        names.append(("score" if with_scores else "label") + ("s" if form == "labeled-list" else ""))
    elif with_scores:
        names.append("scores")
    lines = []
    for anchor, positives, negatives in found:
        if form == "labeled-pair":
            lines += [(anchor, text, float(score) if with_scores else 1) for text, score in positives]
            lines += [(anchor, text, float(score) if with_scores else 0) for text, score in negatives]
            continue
        for positive, score in positives:
            if form == "triplet":
                for text, other in negatives:
                    lines.append((anchor, positive, text, *([[float(score), float(other)]] if with_scores else [])))
            elif form == "n-tuple" and len(negatives) == k:
                scores = [[float(score), *(float(other) for _, other in negatives)]] if with_scores else []
                lines.append((anchor, positive, *(text for text, _ in negatives), *scores))
            elif form == "labeled-list" and negatives:
                numbers = [float(score), *(float(other) for _, other in negatives)]
                labels = numbers if with_scores else [1] + [0] * len(negatives)
                lines.append((anchor, [positive, *(text for text, _ in negatives)], labels))
    return {name: [line[place] for line in lines] for place, name in enumerate(names)}
