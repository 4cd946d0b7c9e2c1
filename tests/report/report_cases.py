"""Reports to test with: a small one of everything, and what a reader of the file sees."""

import json
from html.parser import HTMLParser

import numpy as np

from naysay.detectors import choose_thresholds
from naysay.quantity import auc, estimate, simulated
from naysay.report import (
    Contents,
    Example,
    Examples,
    ReviewPair,
    Scores,
    Trade,
    TradePoint,
    difficulty_by_percentile,
    effectiveness,
    threshold_tables,
    write_report,
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
    "javascript:window.hacked=5 {{7*7}} ${7*7} TARGET",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1\u05e8\u05d9\u05ea",
    "long " + "<&>" * 400_000,
)


def point(name="cut", share=0.05, score=0.5, **changed):
    """A point of a trade."""
    given = {"dropped": 40, "negatives": 400, "empty": 0, "low": share / 2, "high": min(1.0, 2 * share)}
    return TradePoint(name, false_share=share, mean_score=score, **(given | changed))


def trade(text="", **changed):
    """Twelve targets, three rules, and the negatives at the fifth target."""
    targets = np.geomspace(0.004, 0.2, 12).tolist()
    curve = tuple(
        point(share=target, score=0.4 + 0.01 * n, dropped=120 - 10 * n, empty=max(0, 3 - n), target=target)
        for n, target in enumerate(targets)
    )
    given = {
        "curve": curve,
        "chosen": point("these negatives", targets[4], 0.44, target=targets[4]),
        "rules": (
            point("nearest", 0.2, 0.51, dropped=0),
            point("share 0.95", 0.05, 0.445),
            point("margin 0.05", 0.04, 0.438),
        ),
        "command": f"mined.rethreshold(false_share=TARGET) {text}",
        "basis": f"Estimated from 300 labelled positives. {text}",
    }
    return Trade(**(given | changed))


def pair(n, text=""):
    given = f"a query, {n} {text}", f"d{n}", f'a "document"\nof {n} {text}'
    return ReviewPair(f"q{n}", *given, 0.5 + n / 100, float("nan") if n == 2 else n / 10)


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
    rng = np.random.default_rng(0)
    dropped = rng.normal(0.7, 0.05, 60)
    scores = Scores(
        rng.normal(0.7, 0.15, 40),
        rng.normal(0.3, 0.1, 900),
        dropped,
        np.arange(len(dropped)) % 2,
        ("suspicious", f"duplicate {text}"),
        low=0.2,
        high=0.55,
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
        "trade": trade(text),
        "review": tuple(pair(n, text) for n in range(5)),
    }
    return Contents(**(parts | changed))


class Page(HTMLParser):
    """Tags with their attributes, in order, and the text of each."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.stack = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")
        if tag not in ("meta", "input", "br"):
            self.stack.append(len(self.tags) - 1)

    def handle_endtag(self, tag):
        assert self.tags[self.stack[-1]][0] == tag, (tag, self.tags[self.stack[-1]])  # every element is closed
        self.stack.pop()

    def handle_data(self, data):
        for place in self.stack:
            self.texts[place] += data

    def all(self, tag, **wanted):
        return [
            (given, text)
            for (name, given), text in zip(self.tags, self.texts, strict=True)
            if name == tag and wanted.items() <= given.items()
        ]

    @property
    def data(self):
        """What the page's script reads."""
        return json.loads(self.all("script", id="data")[0][1])


def written(folder, contents):
    return write_report(folder / "report.html", contents).read_bytes().decode()
