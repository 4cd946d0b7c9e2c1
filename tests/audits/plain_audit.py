"""What an audit computes, in plain loops; and small sets to audit."""

import math

import numpy as np

from naysay.audits._training_set import SetScores, TrainingSet
from naysay.positives import Positives


def a_set(ids, pairs, *, scores=None, positive_scores=None, n_items=None, query_texts=None, corpus_texts=None):
    """A training set from lists."""
    ids = np.array(ids, np.int64).reshape(len(ids), -1)
    anchors, items = (
        (np.array(side, np.int64) for side in zip(*pairs, strict=True)) if pairs else (np.empty(0, int),) * 2
    )
    size = n_items or int(max(ids.max(initial=0), items.max(initial=0))) + 1
    return TrainingSet(
        name="a set",
        path=None,
        format=None,
        ids=ids,
        scores=None if scores is None else np.array(scores, np.float32).reshape(ids.shape),
        positives=Positives.from_pairs(anchors, items, len(ids), size),
        positive_scores=None if positive_scores is None else np.array(positive_scores, np.float32),
        query_names=query_texts,
        corpus_names=corpus_texts,
        query_texts=query_texts,
        corpus_texts=corpus_texts,
        duplicates=None,
    )


def scores_of(negatives, positives, anchors):
    """Scores as the audit holds them; the first scored positive of each anchor is its one."""
    positives, anchors = np.array(positives, np.float32), np.array(anchors, np.int64)
    seen, one = set(), []
    for place, anchor in enumerate(anchors.tolist()):
        if anchor not in seen and not np.isnan(positives[place]):
            seen.add(anchor)
            one.append(place)
    return SetScores(np.array(negatives, np.float32), positives, anchors, np.array(one, np.int64))


def plain_weights(scores, temperature):
    """({(anchor, slot): p}, idle share), by loops."""
    sums, rows, idle = {}, {}, 0
    there = 0
    for positive, anchor in zip(scores.positives.tolist(), scores.anchors.tolist(), strict=True):
        if math.isnan(positive):
            continue
        there += 1
        own = {slot: score for slot, score in enumerate(scores.negatives[anchor].tolist()) if not math.isnan(score)}
        top = max([positive, *own.values()])
        whole = math.exp((positive - top) / temperature)
        whole += sum(math.exp((score - top) / temperature) for score in own.values())
        total = 0.0
        for slot, score in own.items():
            share = math.exp((score - top) / temperature) / whole
            sums[anchor, slot] = sums.get((anchor, slot), 0.0) + share
            total += share
        rows[anchor] = rows.get(anchor, 0) + 1
        idle += total < 0.001
    return {place: total / rows[place[0]] for place, total in sums.items()}, idle / max(there, 1)
