"""Index: exact scores in the canonical order, nothing excluded, one answer for all threads, and its recall measured."""

import json
import math
import shutil

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import plain_score, plain_search

import naysay as ns
from naysay.errors import NaysayError
from naysay.files import digest_of
from naysay.kernels.dots import COSINE, DOT, L2
from naysay.search import _index_build as building
from naysay.search import _index_rules as rules
from naysay.search._index_build import centres, in_threads
from naysay.search._index_rules import Euclid
from naysay.search.exact import search
from naysay.search.found import Found, Recall, check_recall, recall_of
from naysay.search.index import Index

KINDS = ("ivf", "hnsw")
METRICS = ("cosine", "dot", "l2")


def clustered(n, seed, width=16, spread=0.2):
    """Points around 60 centres, and queries like them."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).normal(size=(60, width))
    return (middles[rng.integers(0, 60, n)] + spread * rng.normal(size=(n, width))).astype(np.float32)


def even(n, seed, width=16):
    """Points without clusters."""
    return np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)


CORPUS, QUERIES = clustered(3000, 1), clustered(40, 2)


@pytest.fixture(scope="module")
def built():
    """An index of each kind by cosine."""
    return {kind: Index.build(CORPUS, kind=kind, seed=3) for kind in KINDS}


def same(one, other):
    assert one.ids.tolist() == other.ids.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()


# ---- what comes back ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_plain_loops_and_order_is_canonical(kind, metric):
    corpus, queries = clustered(1000, 4, width=5), clustered(6, 5, width=5)
    found = Index.build(corpus, kind=kind, metric=metric).search(queries, 7)
    right = plain_search(queries, corpus, 7, metric=metric)
    for row in range(6):
        assert len(set(found.ids[row].tolist())) == 7
        keys = [(-score, i) for i, score in zip(found.ids[row].tolist(), found.scores[row].tolist(), strict=True)]
        assert keys == sorted(keys)
        for i, score in zip(found.ids[row], found.scores[row], strict=True):
            assert plain_score(queries[row], corpus[i], metric).tobytes() == score.tobytes()
    assert recall_of(found, right_found(right), "").value > 0.9


def right_found(plain):
    return Found(plain.ids.astype(np.int64), plain.scores)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_asked_for_all_rows_it_is_the_exact_search(metric, dtype):
    """Then all lists are read: codes decide nothing any more, and every byte is that of `search`."""
    corpus, queries = clustered(1100, 6, width=6).astype(dtype), clustered(5, 7, width=6).astype(dtype)
    exclude = ns.Positives.from_pairs([0, 0, 4], [3, 5, 1099], 5, 1100)
    index = Index.build(corpus, metric=metric)
    same(index.search(queries, 1100, exclude=exclude), search(queries, corpus, 1100, metric=metric, exclude=exclude))


def test_largest_dot_products_are_found_though_norms_differ():
    rng = np.random.default_rng(8)
    corpus = even(2000, 9) * rng.lognormal(0, 1, (2000, 1)).astype(np.float32)
    index = Index.build(corpus, metric="dot")
    index.effort = 64
    assert index.measure(even(50, 10), 10).value > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_excluded_never_comes_back_and_its_place_is_filled(built, kind):
    """The 30 best of each query are taken away, some as positives, some as ignored: the next 10 come."""
    best = search(QUERIES, CORPUS, 45).ids
    known, ignored = best[:30, :30:2].ravel(), best[:30, 1:30:2].ravel()
    half = np.repeat(np.arange(30), 15)  # the last ten queries have nothing excluded
    exclude = ns.Positives.from_pairs(half, known, 30, 3000).with_ignored(half, ignored)
    found = built[kind].search(QUERIES, 10, exclude=exclude)
    assert (found.ids >= 0).all()
    taken = [set(row.tolist()) for row in best[:30, :30]]
    assert not any(i in taken[row] for row in range(30) for i in found.ids[row].tolist())
    right = plain_search(QUERIES[:3], CORPUS, 10, exclude=exclude)
    assert recall_of(Found(found.ids[:3], found.scores[:3]), right_found(right), "").value > 0.9
    same(Found(found.ids[30:], found.scores[30:]), built[kind].search(QUERIES[30:], 10))


def test_exclusion_may_leave_a_query_with_nothing():
    corpus = clustered(1000, 11, width=4)
    exclude = ns.Positives.from_pairs(np.zeros(998, int), np.arange(998), 2, 1000)
    found = Index.build(corpus).search(corpus[:3], 5, exclude=exclude)
    assert sorted(found.ids[0, :2].tolist()) == [998, 999]
    assert found.ids[0, 2:].tolist() == [-1, -1, -1]
    assert np.isneginf(found.scores[0, 2:]).all()
    assert found.ids[1:, 0].tolist() == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gives_the_answer_of_memory(tmp_path, kind):
    half = CORPUS.astype(np.float16)
    np.save(tmp_path / "corpus.npy", half)
    np.save(tmp_path / "queries.npy", QUERIES)
    from_file = Index.build(tmp_path / "corpus.npy", kind=kind)
    same(from_file.search(tmp_path / "queries.npy", 9), Index.build(half, kind=kind).search(QUERIES, 9))


def test_no_queries_and_one(built):
    assert built["ivf"].search(QUERIES[:0], 4).ids.shape == (0, 4)
    same(built["ivf"].search(QUERIES[:1], 4), Found(*(part[:1] for part in parts(built["ivf"].search(QUERIES, 4)))))


def parts(found):
    return found.ids, found.scores


# ---- how it is done does not show -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_budget_show_neither_in_the_index_nor_in_the_answer(built, kind):
    exclude = ns.Positives.from_pairs(np.arange(40) % 7, np.arange(40), 40, 3000)
    right = built[kind].search(QUERIES, 12, exclude=exclude)
    for threads, budget in ((1, 1 << 28), (3, None)):
        index = Index.build(CORPUS, kind=kind, seed=3, threads=threads, budget=budget)
        assert faiss.serialize_index(index.index).tobytes() == faiss.serialize_index(built[kind].index).tobytes()
        same(index.search(QUERIES, 12, exclude=exclude), right)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_does_not_depend_on_the_other_queries(built, kind, monkeypatch):
    together = built[kind].search(QUERIES, 6)
    for row in (0, 17, 39):
        alone = built[kind].search(QUERIES[row : row + 1], 6)
        same(alone, Found(together.ids[row : row + 1], together.scores[row : row + 1]))
    monkeypatch.setattr("naysay.search.index._STRIP", 3)
    monkeypatch.setattr("naysay.search.index._STRIPS", 2)
    same(built[kind].search(QUERIES, 6), together)


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_is_another_index(built, kind):
    other = Index.build(CORPUS, kind=kind, seed=4)
    assert faiss.serialize_index(other.index).tobytes() != faiss.serialize_index(built[kind].index).tobytes()


def test_blocks_of_the_corpus_are_added_one_after_another(monkeypatch):
    whole = Index.build(CORPUS, seed=3)
    monkeypatch.setattr(rules, "BLOCK", 700 * 16)
    added = []
    kept = building.add
    monkeypatch.setattr(building, "add", lambda index, rows, own: (added.append(len(rows)), kept(index, rows, own)))
    index = Index.build(CORPUS, seed=3)
    assert added == [700, 700, 700, 700, 200]
    assert faiss.serialize_index(index.index).tobytes() == faiss.serialize_index(whole.index).tobytes()


def test_nobodys_number_of_threads_moves(built):
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(2)
    try:
        assert in_threads(2, lambda _: faiss.omp_get_max_threads(), range(3)) == [1, 1, 1]
        built["ivf"].search(QUERIES, 3)
        assert faiss.omp_get_max_threads() == 2
    finally:
        faiss.omp_set_num_threads(before)


# ---- recall ---------------------------------------------------------------------------------------------


def test_the_same_setting_finds_all_on_one_corpus_and_a_part_on_another():
    near = Index.build(clustered(4000, 12)).measure(clustered(300, 13), 20)
    far = Index.build(even(4000, 12)).measure(even(300, 13), 20)
    assert near.setting == far.setting == "nprobe 8"
    assert near.value > 0.95
    assert far.value < 0.7
    assert near.low > far.high


def test_measured_recall_is_that_of_sets_in_loops(built):
    recall = built["ivf"].measure(QUERIES, 15, sample=10, seed=5)
    rows = sorted(ns.rng_for(5).choice(40, 10, replace=False).tolist())
    right = plain_search(QUERIES[rows], CORPUS, 15)
    found = built["ivf"].search(QUERIES[rows], 15)
    shares = [len(set(a) & set(b)) / 15 for a, b in zip(right.ids.tolist(), found.ids.tolist(), strict=True)]
    assert recall.value == pytest.approx(sum(shares) / 10, abs=1e-12)
    assert (recall.n, recall.depth, recall.note) == (10, 15, "")
    assert 0 <= recall.low <= recall.value <= recall.high <= 1
    assert built["ivf"].measure(QUERIES, 15, sample=10, seed=5) == recall
    assert built["ivf"].measure(QUERIES, 15, sample=1000).n == 40


def test_of_equal_scores_one_is_as_good_as_another():
    exact = Found(np.array([[1, 2]]), np.array([[0.9, 0.5]], np.float32))
    assert recall_of(Found(np.array([[1, 7]]), np.array([[0.9, 0.5]], np.float32)), exact, "").value == 1
    assert recall_of(Found(np.array([[1, 7]]), np.array([[0.9, 0.4]], np.float32)), exact, "").value == 0.5
    assert recall_of(Found(np.array([[1, -1]]), np.array([[0.9, -np.inf]], np.float32)), exact, "").value == 0.5


def test_a_row_that_cannot_be_full_is_measured_by_what_there_is():
    exact = Found(np.array([[1, -1], [3, 4]]), np.array([[0.9, -np.inf], [0.8, 0.7]], np.float32))
    found = Found(np.array([[1, -1], [3, -1]]), np.array([[0.9, -np.inf], [0.8, -np.inf]], np.float32))
    assert recall_of(found, exact, "").value == 0.75


def test_the_interval_is_that_of_clopper_and_pearson():
    """With all found the lower end is 0.025^(1/n); of 485 in 500 the tails of the binomial are 2.5 % each."""
    ones = Found(np.zeros((500, 1), np.int64), np.ones((500, 1), np.float32))
    recall = recall_of(ones, ones, "")
    assert (recall.value, recall.high) == (1, 1)
    assert recall.low == pytest.approx(0.025 ** (1 / 500), abs=1e-12)
    missing = ones.ids.copy()
    missing[:15] = -1
    recall = recall_of(Found(missing, ones.scores), ones, "")
    tail = sum(math.comb(500, i) * recall.low**i * (1 - recall.low) ** (500 - i) for i in range(485, 501))
    assert tail == pytest.approx(0.025, abs=1e-9)
    assert (round(recall.low, 4), round(recall.high, 4)) == (0.9510, 0.9831)


def test_tune_climbs_no_higher_than_it_must(monkeypatch):
    monkeypatch.setattr(rules, "_SHARE", 8)
    index = Index.build(even(4000, 14), seed=1)
    queries = even(200, 15)
    values = []
    for effort in rules.efforts("ivf", 4000):
        index.effort = effort
        values.append(index.measure(queries, 10, sample=100).value)
    assert values == sorted(values)
    wanted = values[1]
    recall = index.tune(queries, 10, min_recall=wanted, sample=100)
    assert (index.effort, recall.value, recall.note, recall.setting) == (16, wanted, "", "nprobe 16")
    short = index.tune(queries, 10, min_recall=1.0, sample=100)
    assert index.effort == rules.efforts("ivf", 4000)[-1] == 31
    assert short.value == values[-1] < 1
    assert str(short).endswith(
        "queries) with nprobe 31. Less than 1, and more effort would cost as much as an exact search"
    )


def test_a_graph_is_tuned_too(monkeypatch):
    monkeypatch.setattr(rules, "_ROWS_PER_STEP", 10)
    index = Index.build(even(4000, 16), kind="hnsw")
    first = index.measure(even(100, 17), 10)
    assert (first.setting, first.value < 1) == ("efSearch 32", True)
    recall = index.tune(even(100, 17), 10, min_recall=(first.value + 1) / 2)
    assert first.value < recall.value
    assert recall.setting == f"efSearch {index.effort}"
    assert index.effort in rules.efforts("hnsw", 4000)[1:]


def test_a_recall_below_the_least_is_refused():
    low = Recall(0.22, 0.1843, 0.259, 500, 100, "nprobe 8")
    check_recall(low, 0.22)
    message = (
        r"^check_recall: `min_recall` must be at most 0\.220, what the index reaches \(recall@100 0\.220 "
        r"\(95 % CI 0\.184 to 0\.259, 500 queries\) with nprobe 8\), got 0\.9\. "
        r"Search exactly, or let Index\.tune raise the setting\.$"
    )
    with pytest.raises(NaysayError, match=message):
        check_recall(low, 0.9)
    with pytest.raises(
        NaysayError, match=r"check_recall: `min_recall` must be a number at least 0 and at most 1, got 95"
    ):
        check_recall(low, 95)


# ---- the rules ------------------------------------------------------------------------------------------


def test_rules_in_numbers():
    assert [rules.lists_for(n) for n in (1000, 200_000, 1_000_000, 10**9)] == [124, 1788, 4000, 65536]
    assert rules.efforts("ivf", 200_000) == [8, 16, 32, 55]
    assert rules.efforts("hnsw", 200_000) == [32, 64, 128, 256, 390]
    assert rules.efforts("ivf", 1000) == [8]
    assert rules.efforts("hnsw", 1000) == [32]
    assert rules.fetched(100, np.array([0, 1, 2, 3, 5, 100])).tolist() == [125, 126, 127, 129, 133, 253]
    assert rules.fetched(10, np.array([0])).tolist() == [26]
    assert rules.probes_for(8, 4000, 1_000_000, 125) == 8
    assert rules.probes_for(8, 4000, 1_000_000, 20_000) == 160
    assert rules.probes_for(8, 124, 1000, 1000) == 124


def test_bytes_of_an_index_are_what_it_takes(built):
    for kind in KINDS:
        written = faiss.serialize_index(built[kind].index).nbytes
        assert 0.8 * written < rules.index_bytes(kind, 3000, 16) < 1.6 * written


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(COSINE, "cosine"), (DOT, "dot"), (L2, "l2")]))
def test_the_nearest_in_euclids_space_is_the_best(seed, metric):
    rng = np.random.default_rng(seed)
    corpus, query = rng.normal(size=(9, 4)) * rng.lognormal(size=(9, 1)), rng.normal(size=(1, 4))
    space = Euclid(metric[0], float(np.linalg.norm(corpus, axis=1).max()))
    rows = space.corpus(corpus).astype(np.float64)
    asked = space.queries(query, np.linalg.norm(query, axis=1)).astype(np.float64)
    assert rows.shape[1] == space.width(4)
    away = ((rows - asked) ** 2).sum(axis=1)
    scores = np.array([plain_score(query[0], row, metric[1]) for row in corpus])
    order = np.argsort(-scores)
    assert (np.diff(away[order]) > -1e-5).all()


def test_centres_are_those_of_plain_loops():
    rng = np.random.default_rng(18)
    sample = rng.normal(size=(60, 3)).astype(np.float32)
    found = centres(sample, 5, rounds=4, seed=7, budget=1 << 28, threads=2)
    means = [sample[i].astype(np.float64) for i in sorted(ns.rng_for(7).choice(60, 5, replace=False).tolist())]
    for _ in range(4):
        groups = [[] for _ in means]
        for row in sample.astype(np.float64):
            away = [float(((row - mean.astype(np.float32)) ** 2).sum()) for mean in means]
            groups[away.index(min(away))].append(row)
        means = [np.mean(group, axis=0) for group in groups]
    assert np.allclose(found, means, atol=1e-6)


def test_a_centre_that_runs_empty_starts_again_at_a_row():
    sample = np.repeat(np.array([[0.0, 1], [5, 5]], np.float32), 20, axis=0)
    found = centres(sample, 6, rounds=3, seed=0, budget=1 << 28, threads=1)
    assert np.isfinite(found).all()
    assert {tuple(row) for row in found.tolist()} <= {(0.0, 1.0), (5.0, 5.0)}


def test_a_corpus_of_one_vector_is_answered():
    found = Index.build(np.ones((1000, 3), np.float32)).search(np.ones((1, 3), np.float32), 3)
    assert (found.ids >= 0).all()
    assert (found.scores == 1).all()


# ---- on disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_opened_it_answers_the_same(built, kind, tmp_path):
    built[kind].save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", CORPUS)
    same(opened.search(QUERIES, 11), built[kind].search(QUERIES, 11))
    assert repr(opened) == repr(built[kind]) == f"Index({kind}, 3000 x 16, cosine, {built[kind].setting})"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def test_the_setting_is_saved_and_a_folder_of_ours_is_replaced(tmp_path):
    index = Index.build(clustered(1000, 19), metric="dot")
    index.save(tmp_path / "index")
    index.effort = 12
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", clustered(1000, 19))
    assert opened.effort == 12
    same(opened.search(QUERIES, 3), index.search(QUERIES, 3))


def test_a_save_that_fails_leaves_what_was_there(built, tmp_path, monkeypatch):
    built["ivf"].save(tmp_path / "index")
    before = (tmp_path / "index" / "header.json").read_bytes()

    def full(index, path):
        message = "Error\nwrite error"
        raise RuntimeError(message)

    monkeypatch.setattr(faiss, "write_index", full)
    with pytest.raises(NaysayError, match=r"`path` must be a place that can be written to, got .*\. write error$"):
        built["ivf"].save(tmp_path / "index")
    assert (tmp_path / "index" / "header.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def test_another_corpus_is_refused(built, tmp_path):
    built["ivf"].save(tmp_path / "index")
    with pytest.raises(
        NaysayError, match=r"^Index\.open: `corpus` must be the one of the index, 3000 x 16, got 2 x 16"
    ):
        Index.open(tmp_path / "index", CORPUS[:2])
    with pytest.raises(NaysayError, match=r"the one of the index, 3000 x 16, got 3000 x 15\.$"):
        Index.open(tmp_path / "index", CORPUS[:, :15])
    message = r"^Index\.open: `corpus` must be the one of the index, got other values, or another dtype\. Build a new"
    for other in (CORPUS * 2, CORPUS.astype(np.float64), CORPUS[::-1]):
        with pytest.raises(NaysayError, match=message):
            Index.open(tmp_path / "index", other)


def test_a_damaged_folder_is_refused(built, tmp_path):
    kept = tmp_path / "index"
    built["ivf"].save(kept)
    with pytest.raises(NaysayError, match=r"^Index\.open: `path` must be an index that naysay wrote, got '.*none'\.$"):
        Index.open(tmp_path / "none", CORPUS)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "header.json").write_text("[]")
    with pytest.raises(NaysayError, match="must be an index that naysay wrote"):
        Index.open(tmp_path / "theirs", CORPUS)
    with pytest.raises(NaysayError, match=r"^Index\.save: `path` must be new, or an index that naysay wrote, got "):
        built["ivf"].save(tmp_path / "theirs")
    with pytest.raises(NaysayError, match=r"^Index\.save: `path` must be in an existing folder, got "):
        built["ivf"].save(tmp_path / "no" / "index")
    header = json.loads((kept / "header.json").read_text())
    for change in ({"effort": 0}, {"kind": "auto"}, {"metric": "cos"}, {"n": "3000"}, {"largest": 1}, {"more": 1}):
        (kept / "header.json").write_text(json.dumps({**header, "about": {**header["about"], **change}}))
        with pytest.raises(NaysayError, match="must be an index with a sound header of format 1, got"):
            Index.open(kept, CORPUS)
    (kept / "header.json").write_text(json.dumps({**header, "format": 2}))
    with pytest.raises(NaysayError, match="must be an index with a sound header of format 1, got"):
        Index.open(kept, CORPUS)
    (kept / "header.json").write_text(json.dumps(header))
    file = kept / "index.faiss"
    data = file.read_bytes()
    file.write_bytes(data[:-9])
    with pytest.raises(
        NaysayError, match=r"must be a folder as it was written, got index\.faiss, missing or changed\.$"
    ):
        Index.open(kept, CORPUS)
    shutil.copy(file, tmp_path / "copy")
    file.unlink()
    with pytest.raises(NaysayError, match=r"index\.faiss, missing or changed"):
        Index.open(kept, CORPUS)


def test_a_file_of_another_index_is_refused(built, tmp_path):
    built["ivf"].save(tmp_path / "index")
    faiss.write_index(faiss.IndexFlatL2(16), str(tmp_path / "index" / "index.faiss"))
    header = json.loads((tmp_path / "index" / "header.json").read_text())
    header["file"] = digest_of(tmp_path / "index" / "index.faiss")
    (tmp_path / "index" / "header.json").write_text(json.dumps(header))
    with pytest.raises(NaysayError, match=r"must be a folder as it was written, got index\.faiss of 0 x 16\.$"):
        Index.open(tmp_path / "index", CORPUS)


# ---- refusals -------------------------------------------------------------------------------------------


def test_a_budget_too_small_is_refused_with_what_it_takes():
    with pytest.raises(
        NaysayError, match=r"`budget` must be at least (\d+) bytes for an index of 3000 rows, got 1000\."
    ):
        Index.build(CORPUS, budget=1000)
    needed = rules.memory_for("ivf", ns.search.open_vectors(CORPUS), 16, None, building=True)
    least = max(needed.index, 8 * 3000 + 4 * 4 * 16 * rules.sample_for("ivf", 3000)) + rules.WORK
    message = (
        rf"^Index\.build: `budget` must be at least {least} bytes .*, got {least - 1}\. Pass budget={least} or more\.$"
    )
    with pytest.raises(NaysayError, match=message):
        Index.build(CORPUS, budget=least - 1)
    index = Index.build(CORPUS, budget=least)
    index.search(QUERIES, 5)
    message = r"^Index\.search: `queries` must be few enough for the budget of \d+ bytes, got 40\. Open the index with "
    with pytest.raises(NaysayError, match=message):
        index.search(QUERIES, 2_000_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"corpus": CORPUS[:999]},
            "`corpus` must be of at least 1000 rows for an index, got 999. Use an exact search: it is faster there",
        ),
        ({"kind": "hsnw"}, "`kind` must be one of 'auto', 'ivf', 'hnsw', got 'hsnw'. Did you mean 'hnsw'?"),
        ({"metric": "cosin"}, "`metric` must be one of 'dot', 'cosine', 'l2', got 'cosin'. Did you mean 'cosine'?"),
        ({"seed": -1}, "`seed` must be at least 0, got -1."),
        ({"threads": 0}, "`threads` must be at least 1, got 0."),
        ({"budget": 0}, "`budget` must be at least 1, got 0."),
        (
            {"corpus": np.zeros((1000, 2))},
            "`corpus` must be without zero vectors, which have no cosine, got a zero vector",
        ),
        ({"corpus": np.full((1000, 2), np.nan)}, "`corpus` must be finite, got nan at row 0 (1000 such rows)."),
        ({"corpus": np.ones(5)}, "`corpus` must be of shape (n, d), a vector per row, got shape (5,)."),
    ],
)
def test_building_refuses_in_one_sentence(arguments, message):
    given = {"corpus": CORPUS, **arguments}
    with pytest.raises(NaysayError) as refused:
        Index.build(given.pop("corpus"), **given)
    assert str(refused.value).startswith(f"Index.build: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0}, "`depth` must be at least 1, got 0."),
        ({"queries": QUERIES[:, :3]}, "`queries` must be of width 16, like the corpus, got 3."),
        ({"queries": np.full((2, 16), np.inf)}, "`queries` must be finite, got inf at row 0 (2 such rows)."),
        ({"exclude": {1: 2}}, "`exclude` must be a Positives, or None, got dict."),
        (
            {"exclude": ns.Positives.from_pairs([0], [1], 41, 10)},
            "`exclude` must be of at most 40 anchors and 3000 items, the rows of queries and corpus, got 41 x 10.",
        ),
    ],
)
def test_searching_refuses_in_one_sentence(built, arguments, message):
    given = {"queries": QUERIES, "depth": 3, **arguments}
    with pytest.raises(NaysayError) as refused:
        built["ivf"].search(given.pop("queries"), given.pop("depth"), **given)
    assert str(refused.value) == f"Index.search: {message}"


def test_measuring_refuses_in_one_sentence(built):
    index = built["ivf"]
    for call, message in (
        (lambda: index.measure(QUERIES[:0], 3), "Index.measure: `queries` must be of at least one row, got 0."),
        (lambda: index.measure(QUERIES, 3, sample=0), "Index.measure: `sample` must be at least 1, got 0."),
        (lambda: index.measure(QUERIES, 0), "Index.measure: `depth` must be at least 1, got 0."),
        (
            lambda: index.tune(QUERIES, 3, min_recall=95),
            "Index.tune: `min_recall` must be a number above 0 and at most 1, got 95.",
        ),
        (lambda: index.tune(QUERIES, 3, seed=-1), "Index.tune: `seed` must be at least 0, got -1."),
    ):
        with pytest.raises(NaysayError) as refused:
            call()
        assert str(refused.value) == message


def test_queries_and_scores_that_float32_cannot_hold_are_refused():
    index = Index.build(CORPUS, metric="l2")
    with pytest.raises(
        NaysayError, match=r"`queries` must be of norms up to 1e\+15 times those of the corpus, got 4e\+30"
    ):
        index.search(np.full((1, 16), 1e30), 2)
    index = Index.build(CORPUS, metric="dot")
    with pytest.raises(NaysayError, match=r"`queries` must be of norms whose scores float32 holds, got scores up to "):
        index.search(np.full((1, 16), 1e60), 2)
