"""Rows for what finds false negatives by asking, by comparing, or by several at once."""

from naysay.catalog.rows import Suspect

_GUIDE = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
anchor_vectors, item_vectors = rng.standard_normal((50, 16)), rng.standard_normal((200, 16))    # a small, fast model
item_vectors[:50] = anchor_vectors + 0.5 * rng.standard_normal((50, 16))            # item a is the positive of anchor a
item_vectors[50:70] = item_vectors[:20] + 0.5 * rng.standard_normal((20, 16))       # and has a fellow nobody labelled


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", anchor_vectors[anchors], item_vectors[ids])


def rerank(anchors, ids):                                     # a better, slow one: pairs in, a score for each out
    return (anchor_vectors[anchors] * item_vectors[ids]).sum(axis=1) + 0.1 * np.sin(7 * anchors + ids)


known = ns.Positives.from_pairs(np.arange(50), np.arange(50), n_items=200)
sampler = ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=64)
query = ns.Query(np.arange(50), positives=np.arange(50))
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
detector = {detector}
suspicion = detector.suspicion(query, negatives)              # (50, 8), flagged from 0.5 on
"""

_ASKED = _GUIDE.format(detector="ns.detectors.Guide(rerank, threshold=9.0, first=9.0, budget=100)   # nearest to 9.0")
_GIST = _GUIDE.format(detector="ns.detectors.Guide(rerank, margin=0.5)                        # by the positive's")

_LABELLED = """\
import numpy as np
import naysay as ns

world = ns.planted_world(n_anchors=300, n_items=500, per_anchor=8, noise=0.5)       # its judge is never wrong
pool = ns.pools.Everything(world.known)
language = np.arange(300) % 3                                 # of each anchor: whatever may move the line


def near(anchors, count, seed):                               # the best of 200 candidates, as a miner hands them out
    asked = ns.Query(anchors)
    sampler = ns.samplers.Dynamic(pool, world.scores, candidates=200)
    return asked, sampler.sample(asked, count, rng=ns.rng_for(seed))


judged = near(np.arange(0, 300, 2), 4, seed=0)                # somebody looked at 600 of them
detector = ns.detectors.Labelled(groups=language).fit(*judged, world.is_false_negative)
query, negatives = near(np.arange(1, 300, 2), 8, seed=1)
suspicion = detector.suspicion(query, negatives)              # (150, 8), the chance to be a false negative
"""

_TWINS = """\
import numpy as np
import naysay as ns

cities = ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Quito"]
documents = [*cities, *(f"{city.lower()}." for city in cities), *(f"The mayor of {city}" for city in cities)]
questions = [f"the mayor of {city}" for city in cities]       # one of the documents is the question itself
known = ns.Positives.from_pairs(np.arange(6), np.arange(6), n_items=18)
query = ns.Query(np.arange(6), positives=np.arange(6))
negatives = ns.samplers.Static(ns.pools.Everything(known)).sample(query, 12, rng=ns.rng_for(seed=0))
detector = ns.detectors.Duplicates(item_texts=documents, anchor_texts=questions, positives=known)
suspicion = detector.suspicion(query, negatives)              # 1 for "paris." and for the question, if they came
"""

_VECTORS = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
vectors = rng.standard_normal((100, 16))
vectors[50:] = vectors[:50] + 0.02 * rng.standard_normal((50, 16))                  # nearly the same, once more
known = ns.Positives.from_pairs(np.arange(100), np.roll(np.arange(100), 1))
query = ns.Query(np.arange(100))
negatives = ns.samplers.Static(ns.pools.Everything(known)).sample(query, 50, rng=ns.rng_for(seed=0))
detector = ns.detectors.Duplicates(item_vectors=vectors, positives=known, shared_ids=True, transitive=0.75)
suspicion = detector.suspicion(query, negatives)              # near the positive, near the anchor, the anchor itself
"""

_COMBINED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
documents = [f"Document {i % 80}" + "." * (i // 80) for i in range(160)]            # each twice, but for a full stop
scores = rng.random((40, 160))                                # a model's
known = ns.Positives.from_pairs(np.arange(40), np.arange(40), n_items=160)
sampler = ns.samplers.Dynamic(ns.pools.Everything(known), lambda a, ids: scores[a[:, None], ids], candidates=100)
query = ns.Query(np.arange(40), positives=np.arange(40))
negatives = sampler.sample(query, 50, rng=ns.rng_for(seed=0))
duplicates = ns.detectors.Duplicates(item_texts=documents, positives=known)
close = ns.detectors.Guide(lambda a, ids: scores[a, ids], threshold=0.97, scale=0.01)
detector = ns.detectors.Combined({"duplicates": duplicates, "close": close}, rule="max")
suspicion = detector.suspicion(query, negatives)              # flagged if either flags
"""

_GISTEMBED = "Solatorio. GISTEmbed: Guided In-sample Selection of Training Negatives ... 2024."
_BRODER = "Broder. On the Resemblance and Containment of Documents. 1997."

ROWS: tuple[Suspect, ...] = (
    Suspect(
        name="detectors.Guide",
        kind="opinion",
        summary="What a better model says, asked about the slots where the first opinion is in doubt.",
        formula="1 / (1 + exp(-(g - line) / scale)) where it was asked, the first opinion elsewhere",
        parts="Guide(score_pairs, threshold, first=threshold_or_detector, budget=pairs)",
        paper="Qu et al. RocketQA: An Optimized Training Approach to Dense Passage Retrieval. NAACL 2021: denoising.",
        cost="The guide's, for at most `budget` pairs a call, in batches; a sort of the slots.",
        example=_ASKED,
        also=("denoised hard negatives", "cross-encoder filter"),
    ),
    Suspect(
        name="guided by the positive",
        kind="opinion",
        summary="What a guide finds closer than the row's positive, less a margin.",
        formula="1 / (1 + exp(-(g - g_positive + margin) / scale))",
        parts="Guide(score_pairs, margin=margin)",
        paper=_GISTEMBED,
        cost="The guide's, for each distinct pair and each row's positive.",
        example=_GIST,
        also=("GISTEmbed filter",),
    ),
    Suspect(
        name="detectors.Labelled",
        kind="opinion",
        summary="What people said of some candidates, carried over to all: by score, group and whatever else may tell.",
        formula="logit s = (w + u_g) . (1, z) + log cost, by logistic regression with small weights",
        parts="Labelled(groups=groups, features=features).fit(query, negatives, truth)",
        paper="Platt. Probabilistic Outputs for Support Vector Machines. 1999; groups: Gelman and Hill. 2007.",
        cost="O(n f^2 + G f^3) a round for n labels in G groups; O(f) a slot, and what the features cost.",
        example=_LABELLED,
    ),
    Suspect(
        name="detectors.Duplicates",
        kind="identity",
        summary="The positive or the anchor under another id: equal once folded, or nearly the same words.",
        formula="1 if equal; else logit s = 2 (logit J - logit line), J the Jaccard similarity of runs of words",
        parts="Duplicates(item_texts=texts, anchor_texts=texts, positives=known)",
        paper=_BRODER,
        cost="A pass over the texts once; then signature comparisons for each slot and positive of its row.",
        example=_TWINS,
        also=("near duplicates", "MinHash"),
    ),
    Suspect(
        name="duplicates by vectors and links",
        kind="identity",
        summary="Vectors nearly parallel to a positive's or the anchor's, and positives of neighbours.",
        formula="logit s = 2 (logit cosine - logit line); `transitive` for q - p - q' - item",
        parts="Duplicates(item_vectors=vectors, positives=known, shared_ids=True, transitive=0.75)",
        paper=_BRODER,
        cost="O(d) for each slot and positive of its row; the positives of the candidate's anchors.",
        example=_VECTORS,
    ),
    Suspect(
        name="detectors.Combined",
        kind="agreement",
        summary="Several detectors as one, with each one's share of the blame.",
        formula="max s, min s, mean s, or 1 - product of (1 - s)",
        parts="Combined({name: detector, ...}, rule)",
        paper="Pearl. Probabilistic Reasoning in Intelligent Systems. 1988: the noisy-or.",
        cost="The parts'.",
        example=_COMBINED,
    ),
)
