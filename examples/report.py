"""Write reports: one HTML file each that opens offline, with what to do, charts, a threshold to move, and examples.

The first report is of mined negatives, the second of your own figures: any table, Vega-Lite chart or examples. The
slider of the page gives the same figures as `at_threshold` here.

Prints:
    mined.html: below 2 MB True, loads anything from outside False
    Train on these 3,200 negatives: at most 3.0 % of them are estimated to be false.
    threshold 0.45: 19,894 suspected,   1.2 % of known positives below it, mean score of the negatives 0.42
    threshold 0.57: 14,464 suspected,   4.8 % of known positives below it, mean score of the negatives 0.52
    threshold 0.70:  4,984 suspected,  40.8 % of known positives below it, mean score of the negatives 0.68
    own.html holds 3 tables
"""

import re
import tempfile
from pathlib import Path

import numpy as np

import naysay as ns
from naysay.mining._report import report_mined
from naysay.report import Contents, Sample, Scores, Table, at_threshold, write_report


def main() -> None:
    """Write both reports, and move the threshold."""
    world = ns.planted_world(400, 2000, per_anchor=12, noise=0.15)
    mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, k=8)
    candidates = mined.candidates
    with tempfile.TemporaryDirectory() as folder:
        path = report_mined(mined, Path(folder) / "mined.html", corpus_texts=[f"document {n}" for n in range(2000)])
        page = path.read_text()
        outside = re.search(r'\ssrc=|<link|href="(?!#)', page[: page.index("<script>")])
        print(f"{path.name}: below 2 MB {path.stat().st_size < 2_000_000}, loads anything from outside {bool(outside)}")
        print(re.sub("<.*?>", "", re.search(r'<p class="lead">(.*?)</p>', page)[1]))

        anchors = np.repeat(np.arange(400), candidates.ids.shape[1])
        whose, scores = mined.known.pairs()[0], candidates.scores.ravel()
        one = ns.detectors.one_per_anchor(whose, rng=ns.rng_for(0))
        known = {"positives": mined.known_scores[one], "positive_anchors": whose[one]}
        sample = Sample(anchors, scores, scores, mined.counts, threshold=0.57, **known)
        for threshold in (0.45, 0.57, 0.7):
            now = at_threshold(sample, threshold)
            print(
                f"threshold {threshold:.2f}: {now.suspected:6,.0f} suspected, {100 * now.miss_rate:5.1f} % of known "
                f"positives below it, mean score of the negatives {now.mean_score:.2f}"
            )
        shown = Scores(mined.known_scores, mined.scores[mined.mask], [], [], high=0.57, sample=sample)
        counts = Table("Counts", ("what", "how many"), (("negatives", int(mined.mask.sum())),), "What there is.")
        own = Contents("Mine", ("Check the threshold first.",), scores=shown, tables=(counts,))
        own = write_report(Path(folder) / "own.html", own)
        print(f"{own.name} holds {own.read_text().count('<table>')} tables")


if __name__ == "__main__":
    main()
