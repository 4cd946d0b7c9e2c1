"""search: the bytes of a plain loop, for every engine, block, budget and number of threads."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from index_world import same
from search_world import plain, positives, world

import naysay as ns
from naysay.errors import NaysayError
from naysay.search import _multiply
from naysay.search import _plan as plan
from naysay.search import _products as engines
from naysay.search import _scan as scan
from naysay.search.exact import Found, search

METRICS = ("dot", "cosine", "l2")
FAST = ("int8", "float32")
ENGINES = (*FAST, "float64")


# ---- the oracle -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_engine_gives_the_bytes_of_a_plain_loop(metric, dtype):
    queries, corpus = world(1, 7, 400, 19, dtype)
    exclude, known = positives(2, 7, 400)
    right = plain(queries, corpus, 9, metric, known)
    for engine in ENGINES:
        same(search(queries, corpus, 9, metric=metric, exclude=exclude, engine=engine), right)


@pytest.mark.parametrize("metric", METRICS)
def test_bfloat16_is_read_as_what_it_holds(metric):
    queries, corpus = (torch.from_numpy(part).bfloat16() for part in world(3, 4, 60, 8))
    right = plain(queries.double().numpy(), corpus.double().numpy(), 5, metric)
    for engine in ENGINES:
        same(search(queries, corpus, 5, metric=metric, engine=engine), right)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_ties_duplicates_and_short_rows_as_in_loops(data):
    """A handful of whole numbers: most scores are equal, and the ids decide."""
    width = data.draw(st.integers(1, 3))
    vector = st.lists(st.integers(-2, 2), min_size=width, max_size=width).filter(any)
    queries = np.array(data.draw(st.lists(vector, max_size=3)), np.float32).reshape(-1, width)
    corpus = np.array(data.draw(st.lists(vector, max_size=12)), np.float32).reshape(-1, width)
    pairs = st.tuples(st.integers(0, max(0, len(queries) - 1)), st.integers(0, max(0, len(corpus) - 1)))
    known = set(data.draw(st.lists(pairs, max_size=8))) if len(queries) and len(corpus) else set()
    exclude = ns.Positives.from_pairs([a for a, _ in known], [i for _, i in known], len(queries), len(corpus))
    metric, depth = data.draw(st.sampled_from(METRICS)), data.draw(st.integers(1, 15))
    right = plain(queries, corpus, depth, metric, known)
    for engine in ENGINES:
        same(search(queries, corpus, depth, metric=metric, exclude=exclude, engine=engine, threads=1), right)


# ---- how it is done does not show -----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
def test_block_sizes_and_threads_do_not_show(metric, engine, monkeypatch):
    queries, corpus = world(4, 70, 1500, 16)
    exclude, _ = positives(5, 70, 1500)
    right = search(queries, corpus, 12, metric=metric, exclude=exclude, engine="float64", threads=1)
    for columns, strip, threads in [(4096, 128, 1), (33, 7, 3), (100, 1, 2), (1, 64, 1)]:
        monkeypatch.setattr(plan, "_COLUMNS", columns)
        monkeypatch.setattr(plan, "_STRIP", strip)
        same(search(queries, corpus, 12, metric=metric, exclude=exclude, engine=engine, threads=threads), right)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_small_budget_takes_the_queries_in_parts(engine, tmp_path, monkeypatch):
    queries, corpus = world(6, 300, 900, 12, np.float16)
    np.save(tmp_path / "corpus.npy", corpus)
    right = search(queries, corpus, 8, engine="float64")
    rows = []
    made = scan.UnresolvedPairs.__init__
    monkeypatch.setattr(
        scan.UnresolvedPairs, "__init__", lambda self, n, *rest: (rows.append(n), made(self, n, *rest))[1]
    )
    for budget in (17_700_000, 30_000_000, None):
        same(search(queries, tmp_path / "corpus.npy", 8, engine=engine, budget=budget, threads=2), right)
    assert rows[0] < 150
    assert rows[1:] == [300, 300]


def test_the_number_of_threads_of_torch_is_as_before():
    before = torch.get_num_threads()
    queries, corpus = world(7, 40, 300, 8)
    search(queries, corpus, 3, engine="int8", threads=2)
    assert torch.get_num_threads() == before


def test_without_torch_the_product_is_numpy(monkeypatch):
    queries, corpus = world(8, 9, 200, 11)
    right = search(queries, corpus, 6, engine="float64")
    for module in (engines, _multiply):
        monkeypatch.setattr(module, "torch_is_loaded", lambda: False)
        monkeypatch.setattr(module, "need_torch", None)
    same(search(queries, corpus, 6, engine="float32"), right)


def test_a_search_loads_torch_only_if_it_needs_it():
    code = """
import sys, numpy as np
from naysay.search.exact import search
print(search(np.eye(3), np.eye(3), 1).ids.tolist(), 'torch' in sys.modules, 'pyarrow' in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("[[0], [1], [2]] False")


# ---- what strains a certificate -------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_that_differ_in_the_last_bit(metric):
    """2,000 rows within one rounding of one another, far below what any engine sees: all stay open until scored."""
    rng = np.random.default_rng(9)
    base = rng.normal(size=24).astype(np.float32)
    corpus = np.repeat(base[None], 2000, axis=0)
    places = rng.integers(0, 24, 2000)
    up = np.where(rng.random(2000) < 0.5, np.float32(np.inf), np.float32(-np.inf))
    corpus[np.arange(2000), places] = np.nextafter(base[places], up)
    queries = np.stack([base, -base, np.roll(base, 1)]).astype(np.float32)
    right = search(queries, corpus, 20, metric=metric, engine="float64")
    for engine in FAST:
        same(search(queries, corpus, 20, metric=metric, engine=engine), right)
    same(plain(queries[:1], corpus, 20, metric), Found(right.ids[:1], right.scores[:1]))


@pytest.mark.parametrize("metric", METRICS)
def test_thousands_of_equal_rows_fit_a_small_capacity(metric, tmp_path):
    """The smallest ids of equal rows come back, and the room of a query stays far below their number."""
    queries, corpus = world(10, 5, 3000, 7)
    corpus[200:] = corpus[200]
    queries[0] = corpus[200]
    right = search(queries, corpus, 4, metric=metric, engine="float64")
    assert right.ids[0].tolist() == [200, 201, 202, 203] or metric == "dot"
    np.save(tmp_path / "corpus.npy", corpus)
    for engine in ENGINES:
        for source in (corpus, tmp_path / "corpus.npy"):
            same(search(queries, source, 4, metric=metric, engine=engine), right)
    same(plain(queries[:1], corpus, 4, metric), Found(right.ids[:1], right.scores[:1]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("sizes", [(1e-12, 1e-12), (1e20, 1e-20), (1e-20, 1e20), (1e18, 1e18), (1e-25, 1.0)])
def test_huge_and_tiny_norms(metric, sizes):
    queries, corpus = world(11, 4, 300, 9, np.float64)
    queries, corpus = queries * sizes[0], corpus * sizes[1]
    corpus[::7] *= 1e-15
    corpus[::11] *= -1
    right = plain(queries, corpus, 6, metric)
    for engine in FAST:
        same(search(queries, corpus, 6, metric=metric, engine=engine), right)


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_of_zero_are_found(engine):
    queries, corpus = np.zeros((2, 3)), np.ones((900, 3))
    queries[1] = [1, -1, 0]
    found = search(queries, corpus, 3, metric="dot", engine=engine)
    assert found.ids.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert found.scores.tobytes() == bytes(24)


def test_an_outlier_coordinate_turns_auto_to_a_finer_engine():
    rng = np.random.default_rng(12)
    sample = rng.normal(size=(50, 64)).astype(np.float32)
    if not torch.cpu.get_capabilities().get("avx512_vnni"):
        pytest.skip("this processor has no products of 8 bits")
    assert engines.choose("auto", 10**4, 10**4, 64, sample).name == "int8"
    sample[:, 3] = 60
    assert engines.choose("auto", 10**4, 10**4, 64, sample).name == "float32"
    assert engines.choose("auto", 10, 10**4, 64, sample).name == "float64"


@pytest.mark.parametrize("engine", ENGINES)
def test_depth_beyond_the_corpus_and_empty_sides(engine):
    queries, corpus = world(13, 3, 5, 4)
    found = search(queries, corpus, 8, engine=engine)
    same(found, plain(queries, corpus, 8, "cosine"))
    assert found.filled.sum(1).tolist() == [5, 5, 5]
    assert search(queries[:0], corpus, 8, engine=engine).ids.shape == (0, 8)
    nobody = search(queries, corpus[:0], 2, engine=engine)
    assert nobody.ids.tolist() == [[-1, -1]] * 3
    assert np.isneginf(nobody.scores).all()


def test_all_of_a_row_excluded():
    queries, corpus = world(14, 2, 400, 4)
    exclude = ns.Positives.from_pairs(np.zeros(400, int), np.arange(400), 1, 400)
    for engine in ENGINES:
        found = search(queries, corpus, 3, exclude=exclude, engine=engine)
        assert found.ids[0].tolist() == [-1, -1, -1]
        assert (found.ids[1] >= 0).all()


def test_ignored_pairs_stay_out_too():
    queries, corpus = np.eye(2), np.eye(2)
    known = ns.Positives.from_pairs([], [], 2, 2).with_ignored([0], [0])
    assert search(queries, corpus, 2, exclude=known).ids.tolist() == [[1, -1], [1, 0]]


def test_a_query_with_many_positives_costs_the_others_nothing():
    """sentence-transformers fetches range_max plus the most positives of any query, for every query."""
    queries, corpus = world(15, 3, 2000, 6)
    exclude = ns.Positives.from_pairs(np.zeros(1500, int), np.arange(1500), 3, 2000)
    known = {(0, i) for i in range(1500)}
    right = plain(queries, corpus, 5, "cosine", known)
    for engine in ENGINES:
        same(search(queries, corpus, 5, exclude=exclude, engine=engine), right)


# ---- errors ---------------------------------------------------------------------------------------------


def raises(sentence, *args, **options):
    with pytest.raises(NaysayError, match=sentence):
        search(*args, **options)


def test_errors():
    eye = np.eye(3)
    raises("search: `depth` must be at least 1, got 0", eye, eye, 0)
    raises("search: `depth` must be a whole number, got 2.5", eye, eye, 2.5)
    raises(
        "`metric` must be one of 'dot', 'cosine', 'l2', got 'cosin'. Did you mean 'cosine'", eye, eye, 1, metric="cosin"
    )
    raises("`engine` must be one of 'auto', .*got 'int4'. Did you mean 'int8'", eye, eye, 1, engine="int4")
    raises("`threads` must be at least 1, got 0", eye, eye, 1, threads=0)
    raises("`queries` must be of width 2, like the corpus, got 3", eye, np.eye(2), 1)
    raises("`exclude` must be a Positives, or None, got list", eye, eye, 1, exclude=[(0, 1)])
    wide = ns.Positives.from_pairs([0], [0], 3, 4)
    raises("`exclude` must be of at most 3 anchors and 3 items.*got 3 x 4", eye, eye, 1, exclude=wide)
    raises(
        r"`budget` must be at least \d+ bytes for this search, got 1000. Pass a `budget` of \d+ or more",
        eye,
        eye,
        1,
        budget=1000,
    )
    raises(
        "`engine` must be 'float64' for vectors wider than",
        np.ones((1, 140_000)),
        np.ones((1, 140_000)),
        1,
        engine="int8",
    )


def test_the_budget_that_an_error_names_is_enough():
    queries, corpus = world(16, 20, 500, 5)
    with pytest.raises(NaysayError) as error:
        search(queries, corpus, 4, budget=1, engine="int8")
    enough = int(str(error.value).split("a `budget` of ")[1].split()[0])
    same(search(queries, corpus, 4, budget=enough, engine="int8"), search(queries, corpus, 4))
    raises("`budget`", queries, corpus, 4, budget=enough - 1, engine="int8")


def test_vectors_without_a_score_raise_before_any_work():
    queries, corpus = world(17, 5, 40, 3)
    bad = corpus.copy()
    bad[[7, 9], 1] = np.nan
    raises(r"`corpus` must be finite, got nan at row 7 \(2 such rows\)", queries, bad, 2)
    bad = queries.copy()
    bad[4, 0] = -np.inf
    raises(r"`queries` must be finite, got -inf at row 4 \(1 such row\)", bad, corpus, 2, metric="dot")
    bad = corpus.copy()
    bad[3:5] = 0
    raises(r"`corpus` must be without zero vectors.*got a zero vector at row 3 \(2 such rows\)", queries, bad, 2)
    same(search(queries, bad, 2, metric="dot"), plain(queries, bad, 2, "dot"))
    same(search(queries, bad, 2, metric="l2"), plain(queries, bad, 2, "l2"))
    raises(
        "`queries` must be of norms whose scores float32 holds, got scores up to",
        queries * 1e20,
        corpus * 1e20,
        2,
        metric="dot",
    )
    raises(
        "`corpus` must be of norms between 1e-140 and 1e.140, got a largest", queries, corpus.astype(float) * 1e200, 2
    )
    raises("`corpus` must be of norms between 1e-140", queries, corpus.astype(float) * 1e-160, 2)
