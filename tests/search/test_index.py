"""Index: exact scores in the canonical order, exclusion, measured recall, and a folder on disk."""

import numpy as np
import pytest
from search_world import METRICS, clustered, even, plain, plain_score, same

import naysay as ns
from naysay.search import Index, Recall, check_recall, search

KINDS = ("ivf", "hnsw")
CORPUS, QUERIES = clustered(3000, 1), clustered(40, 2)


def recall(found, exact):
    rows = zip(found.ids.tolist(), exact.ids.tolist(), strict=True)
    return np.mean([len({*one} & {*other}) / len(other) for one, other in rows])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_plain_loops_and_order_is_canonical(kind, metric):
    corpus, queries = clustered(1000, 4, width=5), clustered(6, 5, width=5)
    found = Index.build(corpus, kind=kind, metric=metric).search(queries, 7)
    for row in range(6):
        assert len(set(found.ids[row].tolist())) == 7
        keys = [(-score, i) for i, score in zip(found.ids[row].tolist(), found.scores[row].tolist(), strict=True)]
        assert keys == sorted(keys)
        for i, score in zip(found.ids[row], found.scores[row], strict=True):
            sides = queries[row].astype(float).tolist(), corpus[i].astype(float).tolist()
            assert plain_score(metric, *sides).tobytes() == score.tobytes()
    assert recall(found, plain(queries, corpus, 7, metric)) > 0.9


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_asked_for_all_rows_it_is_the_exact_search(metric, dtype, tmp_path):
    """Then all lists are read, and every byte is that of `search`."""
    corpus, queries = clustered(1100, 6, width=6).astype(dtype), clustered(5, 7, width=6).astype(dtype)
    np.save(tmp_path / "corpus.npy", corpus)
    exclude = ns.Positives.from_pairs([0, 0, 4], [3, 5, 1099], 5, 1100)
    right = search(queries, corpus, 1100, metric=metric, exclude=exclude)
    for source in (corpus, tmp_path / "corpus.npy"):
        same(Index.build(source, metric=metric).search(queries, 1100, exclude=exclude), right)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_excluded_never_comes_back_and_its_place_is_filled(built, kind):
    """The 30 best of 30 queries are taken away, some as positives, some as ignored: the next 10 come."""
    best = search(QUERIES, CORPUS, 45).ids
    anchors = np.repeat(np.arange(30), 15)
    exclude = ns.Positives.from_pairs(anchors, best[:30, :30:2].ravel(), 30, 3000)
    exclude = exclude.with_ignored(anchors, best[:30, 1:30:2].ravel())
    found = built[kind].search(QUERIES, 10, exclude=exclude)
    assert found.filled.all()
    assert not any(np.isin(found.ids[row], best[row, :30]).any() for row in range(30))
    assert recall(found, search(QUERIES, CORPUS, 10, exclude=exclude)) > 0.9


def test_exclusion_may_leave_a_query_with_nothing():
    corpus = clustered(1000, 11, width=4)
    exclude = ns.Positives.from_pairs(np.zeros(998, int), np.arange(998), 2, 1000)
    found = Index.build(corpus).search(corpus[:3], 5, exclude=exclude)
    assert sorted(found.ids[0, :2].tolist()) == [998, 999]
    assert found.ids[0, 2:].tolist() == [-1, -1, -1]
    assert np.isneginf(found.scores[0, 2:]).all()
    assert found.ids[1:, 0].tolist() == [1, 2]
    assert Index.build(corpus).search(corpus[:0], 4).ids.shape == (0, 4)


# ---- recall ---------------------------------------------------------------------------------------------


def test_the_same_setting_finds_all_on_one_corpus_and_a_part_on_another():
    near = Index.build(clustered(2000, 12)).measure(clustered(200, 13), 20)
    far = Index.build(even(2000, 12)).measure(even(200, 13), 20)
    assert near.setting == far.setting == "nprobe 8"
    assert near.value > 0.95
    assert far.value < 0.7
    assert near.low > far.high


def test_measured_recall_is_that_of_sets_in_loops_with_the_interval_of_clopper_and_pearson(built):
    measured = built["ivf"].measure(QUERIES, 15, sample=10, seed=5)
    rows = sorted(ns.rng_for(5).choice(40, 10, replace=False).tolist())
    right = plain(QUERIES[rows], CORPUS, 15, "cosine")
    assert measured.value == pytest.approx(recall(built["ivf"].search(QUERIES[rows], 15), right), abs=1e-12)
    assert (measured.n, measured.depth, measured.note) == (10, 15, "")
    whole = built["ivf"].measure(QUERIES, 1, sample=1000)
    assert (whole.n, whole.value, whole.high) == (40, 1, 1)
    assert whole.low == pytest.approx(0.025 ** (1 / 40), abs=1e-12)
    check_recall(Recall(0.22, 0.1843, 0.259, 500, 100, "nprobe 8"), 0.22)


@pytest.mark.parametrize(("kind", "constant"), [("ivf", "_LISTS_SHARE"), ("hnsw", "_ROWS_PER_STEP")])
def test_tune_takes_the_lowest_effort_that_is_enough(kind, constant, monkeypatch):
    monkeypatch.setattr(f"naysay.search.index.{constant}", 8 if kind == "ivf" else 40)
    index = Index.build(even(4000, 14), kind=kind, seed=1)
    queries = even(200, 15)
    first = index.measure(queries, 10, sample=100)
    effort = index.effort
    recall = index.tune(queries, 10, min_recall=first.value + 0.01, sample=100)
    assert index.effort > effort
    assert recall.value > first.value
    assert recall.setting == index.setting
    assert index.tune(queries, 10, min_recall=first.value, sample=100).setting == first.setting
    short = index.tune(queries, 10, min_recall=1.0, sample=100)
    assert short.value == 1 or short.note != ""


# ---- on disk --------------------------------------------------------------------------------------------


@pytest.fixture
def saved(built, tmp_path):
    built["ivf"].save(tmp_path / "index")
    return tmp_path / "index"


def refused(folder, corpus=CORPUS):
    with pytest.raises(ns.NaysayError) as error:
        Index.open(folder, corpus)
    assert error.value.parameter in ("path", "corpus")


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_opened_it_finds_the_same(kind, tmp_path):
    corpus = clustered(1000, 21)
    index = Index.build(corpus, kind=kind)
    index.effort = 48
    index.save(tmp_path / "index")
    index.save(tmp_path / "index")  # over itself
    opened = Index.open(tmp_path / "index", corpus)
    assert (opened.kind, opened.effort, repr(opened)) == (kind, 48, repr(index))
    same(opened.search(QUERIES, 8), index.search(QUERIES, 8))
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_another_corpus_and_other_folders_are_refused(saved, tmp_path):
    other = CORPUS.copy()
    other[0, 0] += 1
    for corpus in (CORPUS[:-1], CORPUS[:, :5], CORPUS.astype(np.float64), other):
        refused(saved, corpus)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ns.NaysayError):
        Index.open(saved, CORPUS).save(tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "no index"])
def test_a_damaged_file_is_refused(saved, damage):
    file = saved / "index.npz"
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x40
    if damage == "gone":
        file.unlink()
    elif damage == "no index":
        np.savez(file, vectors=CORPUS)
    else:
        file.write_bytes(data[: len(data) // 2] if damage == "cut" else data)
    refused(saved)
