"""search: the bytes of a plain loop, for every engine, block, budget and number of threads."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_world import METRICS, plain, positives, same, world

import naysay as ns
from naysay.search import Found, _multiply, search
from naysay.search import _plan as plan
from naysay.search import _products as engines
from naysay.search import _scan as scan
from naysay.search._scores import pair_scores
from naysay.search._shards import known_in, merged, part_of, shards_of
from naysay.search.exact import Exact

FAST = ("int8", "float32")
ENGINES = (*FAST, "float64")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, "bfloat16"])
def test_every_engine_gives_the_bytes_of_a_plain_loop(metric, dtype):
    queries, corpus = world(1, 7, 400, 19, np.float32 if dtype == "bfloat16" else dtype)
    exclude, known = positives(2, 7, 400)
    if dtype == "bfloat16":
        queries, corpus = torch.from_numpy(queries).bfloat16(), torch.from_numpy(corpus).bfloat16()
        right = plain(queries.double().numpy(), corpus.double().numpy(), 9, metric, known)
    else:
        right = plain(queries, corpus, 9, metric, known)
    for engine in ("auto", *ENGINES):
        same(search(queries, corpus, 9, metric=metric, exclude=exclude, engine=engine), right)


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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
def test_blocks_and_threads_do_not_change_the_result(metric, engine, monkeypatch):
    queries, corpus = world(4, 30, 700, 16)
    exclude, _ = positives(5, 30, 700)
    right = search(queries, corpus, 12, metric=metric, exclude=exclude, engine="float64", threads=1)
    for columns, strip, threads in [(4096, 128, 1), (33, 7, 3), (100, 1, 2)]:
        monkeypatch.setattr(plan, "_SIZES", ((strip, columns),))
        monkeypatch.setattr("naysay.search._scores._CACHED", 16 * max(columns, 100))
        same(search(queries, corpus, 12, metric=metric, exclude=exclude, engine=engine, threads=threads), right)


@pytest.mark.parametrize("engine", FAST)
def test_a_small_budget_takes_the_queries_in_parts(engine, tmp_path, monkeypatch):
    queries, corpus = world(6, 300, 900, 12, np.float16)
    np.save(tmp_path / "corpus.npy", corpus)
    right = search(queries, corpus, 8, engine="float64")
    rows = []
    made = scan.OpenPairs.__init__
    monkeypatch.setattr(scan.OpenPairs, "__init__", lambda self, n, *rest: (rows.append(n), made(self, n, *rest))[1])
    for budget in (13_400_000, 40_000_000, None):
        same(search(queries, tmp_path / "corpus.npy", 8, engine=engine, budget=budget, threads=2), right)
    assert rows[0] < 150
    assert rows[1:] == [300, 300]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_budget_that_an_error_names_is_enough(engine):
    queries, corpus = world(16, 20, 500, 5)
    with pytest.raises(ns.NaysayError) as error:
        search(queries, corpus, 4, budget=1, engine=engine)
    assert error.value.parameter == "budget"
    enough = int(str(error.value).split("a `budget` of ")[1].split()[0])
    same(search(queries, corpus, 4, budget=enough, engine=engine), search(queries, corpus, 4))
    with pytest.raises(ns.NaysayError):
        search(queries, corpus, 4, budget=enough - 1, engine=engine)


def test_a_corpus_is_checked_and_rounded_once(monkeypatch):
    queries, corpus = world(17, 40, 3000, 8)
    exclude, _ = positives(18, 40, 3000)
    exact = Exact(corpus, "dot", engine="int8")
    surveyed, rounded = [], []
    own_survey, own_round = ns.search.exact.survey, ns.search.exact.round_rows
    monkeypatch.setattr("naysay.search.exact.survey", lambda *given: surveyed.append(given[0]) or own_survey(*given))
    monkeypatch.setattr("naysay.search.exact.round_rows", lambda *given: rounded.append(1) or own_round(*given))
    same(exact.search(queries, 7), search(queries, corpus, 7, metric="dot", engine="float64"))
    first = len(rounded)
    assert first > 0
    right = search(queries, corpus, 9, metric="dot", exclude=exclude, engine="float64")
    surveyed.clear()
    same(exact.search(queries, 9, exclude=exclude), right)
    assert surveyed == ["queries"]
    assert len(rounded) == first
    exact.release()
    same(exact.search(queries, 9, exclude=exclude), right)
    assert len(rounded) == 2 * first
    exact.check(queries)
    surveyed.clear()
    same(exact.search(queries[5:20], 9), search(queries[5:20], corpus, 9, metric="dot", engine="float64"))
    assert surveyed == ["corpus", "queries"]  # those of `search` only
    with pytest.raises(ns.NaysayError):
        exact.check(np.full((1, 8), np.nan))


def test_progress_sums_to_the_queries():
    queries, corpus = world(19, 33, 2000, 4)
    for engine in ENGINES:
        done = []
        search(queries, corpus, 3, engine=engine, on_progress=done.append)
        assert sum(done) == pytest.approx(33)


def test_torch_keeps_its_number_of_threads_and_is_loaded_only_if_needed():
    before = torch.get_num_threads()
    queries, corpus = world(7, 40, 300, 8)
    search(queries, corpus, 3, engine="int8", threads=2)
    assert torch.get_num_threads() == before
    code = """
import sys, numpy as np
from naysay.search import search
print(search(np.eye(3), np.eye(3), 1).ids.tolist(), 'torch' in sys.modules, 'pyarrow' in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("[[0], [1], [2]] False")


def test_without_torch_the_product_is_numpy(monkeypatch):
    queries, corpus = world(8, 9, 200, 11)
    right = search(queries, corpus, 6, engine="float64")
    for module in (engines, _multiply):
        monkeypatch.setattr(module, "torch_is_loaded", lambda: False)
        monkeypatch.setattr(module, "need_torch", None)
    same(search(queries, corpus, 6, engine="float32"), right)


def test_a_small_search_starts_no_thread_and_compiles_nothing(monkeypatch):
    """`Nearest` searches at every draw: threads would take longer than the search."""
    queries, corpus = world(6, 20, 500, 8)
    right = search(queries, corpus, 4, engine="float32", threads=2)

    def fail(*given):
        raise AssertionError(given)

    monkeypatch.setattr(threading.Thread, "start", fail)
    monkeypatch.setattr("naysay.kernels.dots.listed_scores", fail)
    monkeypatch.setattr("naysay.kernels.bounds_scan.scan", fail)
    same(search(queries, corpus, 4, threads=2), right)


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
    """The smallest ids of equal rows come back, and the capacity of a query stays far below their number."""
    queries, corpus = world(10, 5, 3000, 7)
    corpus[200:] = corpus[200]
    queries[0] = corpus[200]
    right = plain(queries, corpus, 4, metric)
    np.save(tmp_path / "corpus.npy", corpus)
    for engine in ENGINES:
        for source in (corpus, tmp_path / "corpus.npy"):
            same(search(queries, source, 4, metric=metric, engine=engine), right)


@pytest.mark.parametrize("metric", METRICS)
def test_a_sum_next_to_a_rounding_boundary_is_taken_in_index_order(metric):
    """Scores within an ulp of float64 of the middle of two float32: only the order of the sum decides."""
    rng = np.random.default_rng(3)
    queries = np.concatenate([np.ones((1, 64)), rng.normal(size=(2, 64))])
    corpus = rng.normal(size=(400, 64))
    middles = np.float64(np.float32(3.0)) + 2.0**-23
    corpus[:, -1] += (middles if metric == "dot" else 0.0) - corpus.sum(axis=1) * (metric == "dot")
    right = plain(queries, corpus, 400, metric)
    for engine in FAST:
        same(search(queries, corpus, 400, metric=metric, engine=engine), right)


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


def test_excluded_and_ignored_pairs_stay_out_and_cost_other_queries_nothing():
    queries, corpus = world(15, 3, 2000, 6)
    most = np.arange(1500)
    exclude = ns.Positives.from_pairs(np.zeros(1500, int), most, 3, 2000).with_ignored(np.ones(2000, int), range(2000))
    known = {(0, i) for i in range(1500)} | {(1, i) for i in range(2000)}
    right = plain(queries, corpus, 5, "cosine", known)
    assert right.ids[1].tolist() == [-1] * 5
    for engine in ENGINES:
        same(search(queries, corpus, 5, exclude=exclude, engine=engine), right)


def test_the_rule_of_auto(monkeypatch):
    sample = np.random.default_rng(12).normal(size=(50, 64)).astype(np.float32)

    def chosen(queries, total=0, sample=sample):
        work = queries * 20_000 * 384
        return engines.choose("auto", work, max(work, total * 20_000 * 384), 64, lambda: sample).name

    if torch.cpu.get_capabilities().get("avx512_vnni"):
        assert chosen(10**4) == "int8"
        spiked = sample.copy()
        spiked[:, 3] = 60  # needs a fine grid
        assert chosen(10**4, sample=spiked) == "float32"
    assert chosen(10) == "float64"

    def loaded():
        raise LookupError

    monkeypatch.setattr(engines, "torch_is_loaded", lambda: False)
    monkeypatch.setattr(engines, "need_torch", loaded)
    assert chosen(2000) == "float32"
    with pytest.raises(LookupError):  # many small searches are worth loading torch
        chosen(2000, total=8000)


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_score_as_in_a_search(metric, tmp_path, monkeypatch):
    queries, corpus = world(20, 7, 30, 19)
    np.save(tmp_path / "corpus.npy", corpus)
    found = search(queries, corpus, 30, metric=metric)
    anchors, order = np.repeat(np.arange(7), 30), np.random.default_rng(0).permutation(210)
    pairs = anchors[order], found.ids.ravel()[order]
    right = found.scores.ravel()[order].tobytes()
    for compiled_from in (0, 1 << 22):
        monkeypatch.setattr("naysay.search._scores._FEW_NUMBERS", compiled_from)
        monkeypatch.setattr("naysay.search._scores._NUMBERS", 50 if compiled_from == 0 else 1 << 20)
        for source in (corpus, tmp_path / "corpus.npy"):
            given = ns.search.open_vectors(queries), ns.search.open_vectors(source)
            assert pair_scores(*given, *pairs, metric).tobytes() == right
            assert len(pair_scores(*given, pairs[0][:0], pairs[1][:0], metric)) == 0


@pytest.mark.parametrize("count", [1, 3, 7])
def test_shards_merge_to_one_search(count):
    queries, corpus = world(21, 9, 50, 3)
    corpus = np.round(corpus, 1)  # ties
    exclude, _ = positives(22, 9, 50)
    given = ns.search.open_vectors(corpus)
    best = Found.empty(9, 12)
    for shard in shards_of(50, count):
        known = known_in(exclude.indptr, exclude.indices, shard)
        found = search(queries, part_of(given, shard), 12, exclude=known, metric="l2")
        best = merged(best, Found(np.where(found.filled, found.ids + shard.start, -1), found.scores))
    same(best, search(queries, corpus, 12, exclude=exclude, metric="l2"))
