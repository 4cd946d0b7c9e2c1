"""Index: exact scores in the canonical order, exclusion, one result for all threads, and its errors."""

import faiss
import numpy as np
import pytest
from index_world import CORPUS, KINDS, METRICS, QUERIES, clustered, even, same
from plain_search import plain_score, plain_search

import naysay as ns
from naysay.errors import NaysayError
from naysay.search import _index_faiss as building
from naysay.search import _index_rules as rules
from naysay.search._index_faiss import in_threads
from naysay.search.exact import Found, search
from naysay.search.index import Index
from naysay.search.recall import recall_of


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


# ---- errors ---------------------------------------------------------------------------------------------


def test_a_budget_too_small_raises_with_what_it_takes():
    with pytest.raises(
        NaysayError, match=r"`budget` must be at least (\d+) bytes for an index of 3000 rows, got 1000\."
    ):
        Index.build(CORPUS, budget=1000)
    total, left = rules.memory_for("ivf", ns.search.open_vectors(CORPUS), 16, None, building=True)
    least = max(total - left, 8 * 3000 + 4 * 4 * 16 * rules.sample_for("ivf", 3000)) + rules.WORK
    rule = rf"^Index\.build: `budget` must be at least {least} bytes .*, got {least - 1}"
    message = rf"{rule}\. Pass a `budget` of {least} or more\.$"
    with pytest.raises(NaysayError, match=message):
        Index.build(CORPUS, budget=least - 1)
    index = Index.build(CORPUS, budget=least)
    index.search(QUERIES, 5)
    message = r"^Index\.search: `queries` must be few enough for the budget of \d+ bytes, got 80000\. Open the index "
    with pytest.raises(NaysayError, match=message):
        index.search(np.tile(QUERIES, (2000, 1)), 5)
    message = r"^Index\.search: `depth` must be at most 3000, the rows of the corpus, for the budget of \d+ bytes, got"
    for depth in (2_000_000, 10**19):
        with pytest.raises(NaysayError, match=message):
            index.search(QUERIES, depth)
    with pytest.raises(NaysayError, match=r"`threads` must be at most \d+ for a memory of \d+ bytes, got 1000\."):
        Index.build(CORPUS, budget=least, threads=1000)


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
def test_building_raises_in_one_sentence(arguments, message):
    given = {"corpus": CORPUS, **arguments}
    with pytest.raises(NaysayError) as error:
        Index.build(given.pop("corpus"), **given)
    assert str(error.value).startswith(f"Index.build: {message}")


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
def test_searching_raises_in_one_sentence(built, arguments, message):
    given = {"queries": QUERIES, "depth": 3, **arguments}
    with pytest.raises(NaysayError) as error:
        built["ivf"].search(given.pop("queries"), given.pop("depth"), **given)
    assert str(error.value) == f"Index.search: {message}"


def test_measuring_raises_in_one_sentence(built):
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
        with pytest.raises(NaysayError) as error:
            call()
        assert str(error.value) == message


def test_queries_and_scores_that_float32_cannot_hold_raise():
    index = Index.build(CORPUS, metric="l2")
    with pytest.raises(
        NaysayError, match=r"`queries` must be of norms up to 1e\+15 times those of the corpus, got 4e\+30"
    ):
        index.search(np.full((1, 16), 1e30), 2)
    index = Index.build(CORPUS, metric="dot")
    with pytest.raises(NaysayError, match=r"`queries` must be of norms whose scores float32 holds, got scores up to "):
        index.search(np.full((1, 16), 1e60), 2)
