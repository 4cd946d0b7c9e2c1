"""The rule and the estimate of mined negatives are those of the ids that are returned, whatever chose them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from families import Families

from naysay.detectors import Posterior
from naysay.jobs.command import mine_files
from naysay.text import with_interval

WORLD = Families()
AUTO = WORLD.mine()

CHOICES = {
    "top": {},
    "random": {"select": "random"},
    "spread": {"select": "spread"},
    "softmax": {"select": "softmax", "temperature": 0.05},
    "relaxed": {"on_short": "relax", "min_score": 0.44},
    "short anchors dropped": {"on_short": "drop", "min_score": 0.44},
    "filled at random": {"on_short": "random", "min_score": 0.44},
    "short lists": {"depth": 12},
    "later ranks": {"rank_range": (8, 60)},
}


@pytest.mark.parametrize("options", CHOICES.values(), ids=CHOICES)
def test_the_rule_states_the_estimate_of_the_ids(options):
    mined = WORLD.mine(**options)
    assert isinstance(mined.judge, Posterior)
    share = mined.false_share
    assert with_interval(share.estimate, share.low, share.high) in mined.rule
    assert share.estimate == pytest.approx(WORLD.share(mined), abs=0.03)
    if "suspicious" in mined.dropped:
        assert f"to {mined.scores[mined.mask].mean(dtype=np.float64):.3f}" in mined.rule


def test_a_selection_that_takes_fewer_of_the_nearest_has_a_smaller_share():
    spread = WORLD.mine(select="spread")
    assert spread.false_share.estimate < 0.5 * AUTO.false_share.estimate
    assert with_interval(*[getattr(AUTO.false_share, end) for end in ("estimate", "low", "high")]) not in spread.rule


def test_another_suspicion_has_its_own_rule():
    strict = AUTO.rethreshold(0.02)
    share = strict.false_share
    assert share.estimate < 0.5 * AUTO.false_share.estimate
    assert with_interval(share.estimate, share.low, share.high) in strict.rule
    back = strict.rethreshold(AUTO.suspicion_threshold)
    np.testing.assert_array_equal(back.ids, AUTO.ids)
    assert back.rule == AUTO.rule
    assert back.false_share == AUTO.false_share


def test_a_posterior_of_other_data_is_not_asked_about_its_own():
    other = Families(n=200, others=100, seed=7)
    fitted = other.mine(false_share=0.2).judge
    moved = Posterior(10, 0.2, positive_scores=AUTO.judge.positive_scores, alike=AUTO.judge.alike)
    moved.restore(fitted.state())
    mined = WORLD.mine(judge=moved)
    elsewhere = fitted.summary.after
    assert mined.false_share.estimate == pytest.approx(WORLD.share(mined), abs=0.04)
    assert with_interval(elsewhere.estimate, elsewhere.low, elsewhere.high) not in mined.rule


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("families")
    np.save(folder / "queries.npy", WORLD.queries)
    np.save(folder / "corpus.npy", WORLD.corpus)
    table = pa.table({"anchor": np.arange(WORLD.n), "positive": WORLD.labelled})
    pq.write_table(table, folder / "pairs.parquet")
    return folder


@pytest.mark.parametrize("options", [CHOICES["spread"], CHOICES["relaxed"]])
def test_a_job_says_what_mine_says(files, options):
    vectors = {"query_vectors": files / "queries.npy", "corpus_vectors": files / "corpus.npy"}
    out = files / "out.jsonl"
    written = mine_files(files / "pairs.parquet", output=out, k=10, format="ids", **vectors, **options)
    mined = WORLD.mine(**options)
    found = [json.loads(line)["negatives"] for line in out.read_text().splitlines()]
    assert [id_ for row in found for id_ in row] == mined.ids[mined.mask].tolist()
    assert written.rule.partition(" A review")[0] == mined.rule.partition(" A review")[0]
    assert written.false_negatives == mined.false_share
