"""Reports to test with: a small one of everything, and the same figures by plain loops."""

import math

import numpy as np

from naysay.detectors import choose_thresholds
from naysay.quantity import auc, estimate, simulated
from naysay.report import (
    Contents,
    Example,
    Examples,
    Sample,
    Scores,
    difficulty_by_percentile,
    effectiveness,
    threshold_tables,
)

HOSTILE = (
    "<script>window.hacked=1;alert(1)</script>",
    "</script><script>window.hacked=2</script>",
    "\"'><img src=x onerror=window.hacked=3>",
    "</title></style></textarea>--><svg onload=window.hacked=4>",
    "\u202eright to left override \u2066 unclosed \u2069\u2069 and more",
    "\x00\x07\x1b[31mred\x7f\x85",
    b"broken \xff\xfe utf-8".decode("utf-8", "surrogateescape"),
    "lone \ud800 half",
    "&amp; &lt;b&gt; \u2028 \u2029",
    "javascript:window.hacked=5 {{7*7}} ${7*7} THRESHOLD",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1\u05e8\u05d9\u05ea",
    "long " + "<&>" * 400_000,
)


def sample(n=40, width=25, k=4, *, of_anchors=0, seed=0, **changed):
    """Random candidates, a tenth of them unlabelled positives."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.3, 0.15, (n, width))
    scores[:, : width // 10] += 0.4
    scores = -np.sort(-scores, axis=1).astype(np.float32)
    positives = rng.normal(0.7, 0.15, n).astype(np.float32)
    for row in range(0, n, 4):  # as high as the last negative that its anchor takes at the threshold
        positives[row] = scores[row][scores[row] < 0.55][k - 1]
    given = {
        "anchors": np.repeat(np.arange(n), width),
        "scores": scores.ravel(),
        "values": scores.ravel(),
        "k": np.full(n, k),
        "threshold": 0.55,
        "positives": positives,
        "positive_anchors": np.arange(n),
        "share": 0.09,
        "of_anchors": of_anchors,
        "command": "mined.rethreshold(judge=Bands(THRESHOLD, THRESHOLD))",
    }
    return Sample(**(given | changed))


def plain_figures(given, threshold):
    """`at_threshold` in loops."""
    rows = {}
    for place, anchor in enumerate(given.anchors.tolist()):
        rows.setdefault(anchor, []).append((float(given.scores[place]), float(given.values[place])))
    suspected = negatives = empty = 0
    scores, shares, lowest = [], [], {}
    for anchor, k in enumerate(given.k.tolist()):
        row = rows.get(anchor, [])
        suspected += sum(value >= threshold for _, value in row)
        taken = [place for place, (_, value) in enumerate(row) if value < threshold][:k]
        negatives += len(taken)
        empty += k - len(taken)
        scores += [row[place][0] for place in taken]
        shares += [(len(row) - place - 1) / len(row) for place in taken]
        lowest[anchor] = -math.inf if len(taken) < k else min((row[place][0] for place in taken), default=math.inf)
    scale = given.of_anchors / len(given.k)
    found = {"suspected": scale * suspected, "negatives": scale * negatives, "empty": scale * empty}
    found["mean_score"] = sum(scores) / len(scores) if scores else math.nan
    found["mean_percentile"] = sum(shares) / len(shares) if shares else math.nan
    known = list(zip(given.positives.tolist(), given.positive_anchors.tolist(), given.retrieved.tolist(), strict=True))
    if given.by == "suspicion" or not known:
        return found | {"miss_rate": math.nan, "false_rate": math.nan}
    found["miss_rate"] = sum(score < threshold for score, _, _ in known) / len(known)
    listed = [(score, anchor) for score, anchor, there in known if there]
    passed = sum(lowest[anchor] <= score < threshold for score, anchor in listed)
    if not negatives or not listed:
        return found | {"false_rate": math.nan}
    rate = given.share * passed / len(listed) * len(given.scores) / negatives
    return found | {"false_rate": min(rate, 1.0)}


def example(text="a text", **changed):
    given = {
        "anchor": f"anchor {text}",
        "positive": f"positive {text}",
        "candidate": f"candidate {text}",
        "score": 0.5,
        "suspicion": 0.25,
        "rank": 3,
        "outcome": "kept: top",
        "explanation": "Found by search at rank 3.",
    }
    return Example(**(given | changed))


def whole(text="", **changed):
    """Contents with every part; `text` is put wherever a user's text can be."""
    given = sample(of_anchors=100)
    dropped = given.scores[given.scores >= 0.55]
    scores = Scores(
        given.positives,
        given.scores[given.scores < 0.55],
        dropped,
        np.arange(len(dropped)) % 2,
        ("suspicious", f"duplicate {text}"),
        low=0.2,
        high=0.55,
        sample=given,
    )
    chosen = choose_thresholds(np.random.default_rng(1).normal(0, 0.2, 2000), n_positives=40)
    percentiles = np.arange(2.5, 100, 5)
    parts = {
        "title": f"A report {text}",
        "advice": (f"Train on it. {text}", f"Then look. {text}"),
        "numbers": {f"anchors {text}": f"100 {text}"},
        "scores": scores,
        "tables": threshold_tables(chosen, caption=f"Of 2,040 pairs. {text}"),
        "charts": (
            effectiveness(estimate(0.75, auc(simulated(0.95)), k_max=100), k=8, caption=f"A run. {text}"),
            difficulty_by_percentile(percentiles, percentiles / 100, {f"kept {text}": percentiles / 200}),
        ),
        "examples": (
            Examples(f"Hardest {text}", "hardest", tuple(example(f"{n} {text}") for n in range(4)), f"Kept. {text}"),
            Examples("Dropped", "dropped", (example("seven"), example("eight", outcome=f"dropped: duplicate {text}"))),
        ),
        "provenance": {"seed": "0", f"file {text}": f"sha256 {text}"},
        "notes": (f"A note. {text}",),
    }
    return Contents(**(parts | changed))
