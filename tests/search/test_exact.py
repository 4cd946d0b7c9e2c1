"""search: the bytes of a plain loop, for every engine, block, budget, device and number of threads."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_world import METRICS, plain, positives, same, world

import naysay as ns
from naysay.search import Found, search

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
        monkeypatch.setattr("naysay.search._scan._SIZES", ((strip, columns),))
        monkeypatch.setattr("naysay.search._scores._CACHED", 16 * max(columns, 100))
        same(search(queries, corpus, 12, metric=metric, exclude=exclude, engine=engine, threads=threads), right)


@pytest.mark.parametrize("engine", FAST)
def test_a_small_budget_gives_the_same_and_progress_sums_to_the_queries(engine, tmp_path):
    queries, corpus = world(6, 300, 900, 12, np.float16)
    np.save(tmp_path / "corpus.npy", corpus)
    right = search(queries, corpus, 8, engine="float64")
    threads = torch.get_num_threads()
    for budget in (13_400_000, 40_000_000, None):
        done = []
        given = {"engine": engine, "budget": budget, "threads": 2, "on_progress": done.append}
        same(search(queries, tmp_path / "corpus.npy", 8, **given), right)
        assert sum(done) == pytest.approx(300)
    assert torch.get_num_threads() == threads


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


def test_without_torch_the_product_is_numpy(monkeypatch):
    queries, corpus = world(8, 9, 200, 11)
    right = search(queries, corpus, 6, engine="float64")
    monkeypatch.setattr("naysay.search._products.torch_is_loaded", lambda: False)
    monkeypatch.setattr("naysay.search._products.need_torch", None)
    same(search(queries, corpus, 6, engine="float32"), right)


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
@pytest.mark.parametrize("sizes", [(1e20, 1e-20), (1e18, 1e18), (1e-25, 1.0)])
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


@pytest.mark.parametrize("metric", METRICS)
def test_known_pairs_score_as_in_a_search(metric, tmp_path, monkeypatch):
    """In NumPy and by compiled loops, from memory and from a file."""
    queries, corpus = world(20, 7, 30, 19)
    np.save(tmp_path / "corpus.npy", corpus)
    known = ns.Positives.from_pairs(np.repeat(np.arange(7), 5), np.random.default_rng(0).permutation(35) % 30, 7, 30)
    found = search(queries, corpus, 30, metric=metric)
    score = {(row, i): s for row in range(7) for i, s in zip(found.ids[row].tolist(), found.scores[row], strict=True)}
    right = np.array([score[pair] for pair in zip(*map(np.ndarray.tolist, known.pairs()), strict=True)])
    for compiled_from in (0, 1 << 22):
        monkeypatch.setattr("naysay.search._scores._FEW_NUMBERS", compiled_from)
        for source in (corpus, tmp_path / "corpus.npy"):
            mined = ns.mine(queries, source, known, 3, metric=metric, judge=None)
            assert mined.known_scores.tobytes() == right.tobytes()


# ---- a device of torch's --------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("engine", ["auto", *FAST])
def test_a_device_gives_the_same_bytes(engine, metric):
    for n, size, width in ((5, 203, 11), (1, 9, 1)):
        queries, corpus = world(width, n, size, width)
        right = search(queries, corpus, 6, metric=metric, engine="float64")
        same(search(queries, corpus, 6, metric=metric, engine=engine, device=torch.device("cpu"), threads=2), right)


def poor(rng, noise):
    """A product as a device may make it: factors cut to 10 bits, and sums off by `noise` in any direction."""

    def on_device(queries, corpus):
        cut = [(one.view(torch.int32) & -(1 << 13)).view(torch.float32).double() for one in (queries, corpus)]
        signs = torch.from_numpy(rng.choice([-1.0, 1.0], (len(queries), len(corpus))))
        return (cut[0] @ cut[1].T + noise * signs).float()  # codes have the norm 1

    return on_device


@pytest.mark.parametrize("metric", METRICS)
def test_a_device_that_cuts_and_rounds_gives_the_same_bytes(monkeypatch, metric):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(30, 64)).astype(np.float32)
    corpus = np.concatenate([queries + 1e-3 * rng.normal(size=queries.shape) for _ in range(20)]).astype(np.float32)
    right = search(queries, corpus, 5, metric=metric, engine="float64")
    monkeypatch.setattr("naysay.search._products.on_device", poor(rng, 0.9 * 64 * 2.0**-21))
    same(search(queries, corpus, 5, metric=metric, engine="float32", device="cpu"), right)
    monkeypatch.setattr("naysay.search._products.on_device", poor(rng, 0.02))  # more than the bound allows for
    assert (search(queries, corpus, 5, metric=metric, engine="float32", device="cpu").ids != right.ids).any()


def test_mining_on_a_device_gives_the_same_bytes():
    planted = ns.planted_world(60, 150, per_anchor=8, noise=0.3, seed=3)
    given = (planted.anchor_vectors, planted.item_vectors, planted.known, 5)
    one, other = ns.mine(*given), ns.mine(*given, device="cpu")
    assert (one.ids.tobytes(), one.scores.tobytes(), one.rule) == (
        other.ids.tobytes(),
        other.scores.tobytes(),
        other.rule,
    )
