"""Write reports: one HTML file each that opens offline, with the trade of false negatives and hardness, and examples.

The first report is of mined negatives, the second of your own figures: any table, Vega-Lite chart or examples. The
slider of the page moves over the same targets as `rethreshold(false_share=...)` here.

Prints:
    mined.html: below 2 MB True, loads anything from outside False
    An estimated 2.4 % (95 % CI 0.6 to 5.9) of these 3,200 negatives are false
    target   1%: mean score 0.518, in truth 0.9% false
    target   5%: mean score 0.524, in truth 2.8% false
    target  10%: mean score 0.529, in truth 4.1% false
    own.html holds 3 tables
"""

import re
import tempfile
from pathlib import Path

import numpy as np

import naysay as ns
from naysay.report import Contents, Scores, Table, write_report


def main() -> None:
    """Write both reports, and move the target."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(400, 32))  # each query has three right answers, of which one is labelled
    answers = centres[:, None] + 0.6 * rng.normal(size=(400, 3, 32))
    corpus = np.concatenate([answers.reshape(-1, 32), rng.normal(size=(2000, 32))])
    mined = ns.mine(centres, corpus, 3 * np.arange(400) + rng.integers(0, 3, 400), k=8)
    with tempfile.TemporaryDirectory() as folder:
        path = mined.report(Path(folder) / "mined.html", corpus_texts=[f"document {n}" for n in range(3200)])
        page = path.read_text()
        outside = re.search(r'\ssrc=|<link|href="(?!#)', page[: page.index("<script>")])
        print(f"{path.name}: below 2 MB {path.stat().st_size < 2_000_000}, loads anything from outside {bool(outside)}")
        print(re.sub("<.*?>", "", re.search(r'<p class="lead">(.*?);', page)[1]))
        for target in (0.01, 0.05, 0.1):
            moved = mined.rethreshold(false_share=target)
            false = np.mean((moved.ids // 3 == np.arange(400)[:, None]) & (moved.ids < 1200))
            print(f"target {target:4.0%}: mean score {moved.scores[moved.mask].mean():.3f}, in truth {false:.1%} false")
        shown = Scores(mined.known_scores, mined.scores[mined.mask], [], [])
        counts = Table("Counts", ("what", "how many"), (("negatives", int(mined.mask.sum())),), "What there is.")
        own = Contents("Mine", ("Check the scores first.",), scores=shown, tables=(counts,))
        own = write_report(Path(folder) / "own.html", own)
        print(f"{own.name} holds {own.read_text().count('<table>')} tables")


if __name__ == "__main__":
    main()
