"""max_per_item: no item is the negative of more anchors; greedy by score; the same in memory and in a job."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.jobs import prepare
from naysay.jobs.command import mine_files
from naysay.mining import Reason

RNG = np.random.default_rng(0)
N, ITEMS = 60, 150
HUBS = 12  # items that are near to all anchors
CENTRE = RNG.normal(size=8)
QUERIES = (CENTRE + 0.7 * RNG.normal(size=(N, 8))).astype(np.float32)
CORPUS = RNG.normal(size=(ITEMS, 8)).astype(np.float32)
CORPUS[:HUBS] = (CENTRE + 0.2 * RNG.normal(size=(HUBS, 8))).astype(np.float32)
POSITIVES = HUBS + np.arange(N)


def mine(k=5, **options):
    return ns.mine(QUERIES, CORPUS, POSITIVES, k, **{"judge": "share:0.999", **options})


def greedy(mined, counts, cap):
    """The pairs that plain loops take, the highest scores first; ties by anchor, then id."""
    found = mined.candidates
    left = found.kept | found.dropped_for(Reason.TOO_FREQUENT, Reason.NOT_SELECTED)
    pairs = [(-found.scores[row, slot], row, int(found.ids[row, slot])) for row, slot in np.argwhere(left).tolist()]
    taken, per_item = [[] for _ in counts], {}
    for _, row, item in sorted(pairs):
        if len(taken[row]) < counts[row] and per_item.get(item, 0) < cap:
            taken[row].append(item)
            per_item[item] = per_item.get(item, 0) + 1
    return taken


@pytest.mark.parametrize("options", [{}, {"judge": "auto"}, {"judge": None, "k": np.arange(N) % 6}])
@pytest.mark.parametrize("cap", [1, 3])
def test_the_choice_is_that_of_plain_loops(options, cap):
    mined = mine(max_per_item=cap, **options)
    expected = greedy(mined, mined.counts, cap)
    assert [row[row >= 0].tolist() for row in mined.ids] == expected
    assert np.bincount(mined.ids[mined.mask]).max() <= cap


def test_freed_slots_get_the_next_candidates():
    free, capped = mine(), mine(max_per_item=4)
    assert np.bincount(free.ids[free.mask]).max() > 4
    assert capped.mask.sum() == free.mask.sum()  # other candidates take their places
    assert capped.dropped[Reason.TOO_FREQUENT].sum() > 0
    assert (mine(max_per_item=N).ids == free.ids).all()


def test_what_stays_short_is_counted_and_follows_on_short():
    short = mine(depth=8, judge=None, max_per_item=2)
    assert 0 < short.short < N
    assert any("short" in note for note in short.notes)
    dropped = mine(depth=8, judge=None, max_per_item=2, on_short="drop")
    assert set(dropped.mask.sum(axis=1).tolist()) == {0, 5}
    with pytest.raises(ns.NaysayError, match="negatives"):
        mine(depth=8, judge=None, max_per_item=2, on_short="raise")


def test_an_auto_k_is_what_the_cap_leaves():
    mined = mine("auto", max_per_item=2, min_score=0.0, max_k=8, on_short="raise")
    assert mined.short == 0
    assert mined.dropped[Reason.TOO_FREQUENT].any()
    assert (mined.counts == mined.mask.sum(axis=1)).all()
    assert [row[row >= 0].tolist() for row in mined.ids] == greedy(mined, [8] * N, 2)


def test_auto_states_the_estimate_of_the_final_set():
    free, capped = mine(judge="auto"), mine(judge="auto", max_per_item=2)
    assert capped.false_share is None or capped.rule != free.rule
    judged_again = capped.rethreshold(judge="share:0.9")
    assert np.bincount(judged_again.ids[judged_again.mask]).max() <= 2


@pytest.mark.parametrize(
    ("options", "rows"), [({"judge": "auto"}, 60), ({"judge": "auto"}, 7), ({"judge": "none", "on_short": "drop"}, 7)]
)
def test_a_job_gives_the_same_in_any_parts(tmp_path, monkeypatch, options, rows):
    np.save(tmp_path / "q.npy", QUERIES)
    np.save(tmp_path / "c.npy", CORPUS)
    pq.write_table(pa.table({"anchor": np.arange(N), "positive": POSITIVES}), tmp_path / "pairs.parquet")
    monkeypatch.setattr(prepare, "MIN_PART_ROWS", rows)
    monkeypatch.setattr(prepare, "MIN_PARTS", 1 << 30)
    vectors = {"query_vectors": tmp_path / "q.npy", "corpus_vectors": tmp_path / "c.npy"}
    out = tmp_path / "out.jsonl"
    written = mine_files(
        tmp_path / "pairs.parquet", output=out, k=5, format="ids", max_per_item=3, **vectors, **options
    )
    mined = mine(max_per_item=3, **options)
    found = [json.loads(line)["negatives"] for line in out.read_text().splitlines()]
    assert [ids for ids in found if ids] == [row[row >= 0].tolist() for row in mined.ids if (row >= 0).any()]
    assert written.rule.partition(" A review")[0] == mined.rule.partition(" A review")[0]
    assert (written.negatives, written.short) == (mined.mask.sum(), mined.short)
    assert written.dropped == {str(reason): counts.sum() for reason, counts in sorted(mined.dropped.items())}
