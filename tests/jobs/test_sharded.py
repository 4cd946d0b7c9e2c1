"""Shards: a corpus in any number of them gives what one search gives, to the byte; jobs that search so are the same."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from job_world import Encoder, Families, World, in_parts, stopped
from naysay.jobs._sharded import Sharded
from naysay.jobs._worker import Corpus, ShardWorker
from naysay.mining._known import equal_vectors
from workers_here import Here, jobs_here

import naysay as ns
from naysay.cli import main
from naysay.errors import MissingExtraError, NaysayError
from naysay.jobs import _plan, _sharded, command
from naysay.kernels.threads import set_threads, threads
from naysay.search._scores import METRICS
from naysay.search._shards import merged, part_of, shards_of
from naysay.search._survey import survey, survey_both
from naysay.search.exact import Found, SearchOptions
from naysay.search.vectors import open_vectors


@given(st.integers(0, 50), st.integers(1, 60))
def test_shards_hold_each_row_once(n, count):
    shards = shards_of(n, count)
    assert [row for shard in shards for row in range(shard.start, shard.stop)] == list(range(n))
    sizes = [shard.stop - shard.start for shard in shards]
    assert len(shards) == max(1, min(n, count))
    assert max(sizes) - min(sizes) <= 1
    assert [shard.number for shard in shards] == list(range(len(shards)))


def test_a_part_of_vectors():
    rows = np.arange(20.0).reshape(10, 2)
    part = part_of(open_vectors(rows), shards_of(10, 3)[1])
    assert part.rows(1, 99).tolist() == rows[4:6].tolist()
    assert part.take(np.array([0, 2])).tolist() == rows[[3, 5]].tolist()
    assert part.whole.tolist() == rows[3:6].tolist()


LISTS = hnp.arrays(np.float32, st.tuples(st.just(3), st.integers(1, 12)), elements=st.sampled_from([-1, 0, 0.5, 2]))


@given(LISTS, LISTS, st.data())
def test_two_lists_become_one(one, other, data):
    """Against a plain sort; scores are often equal, and ids decide."""
    width = max(one.shape[1], other.shape[1])
    ids = np.array([data.draw(st.permutations(range(30))) for _ in range(3)])

    def listed(scores, names):
        found = Found.empty(3, width)
        for row in range(3):
            kept = data.draw(st.integers(0, scores.shape[1]))
            pairs = sorted(zip(-scores[row, :kept], names[row, :kept], strict=True))
            found.ids[row, :kept] = [name for _, name in pairs]
            found.scores[row, :kept] = [-score for score, _ in pairs]
        return found

    left, right = listed(one, ids[:, :15]), listed(other, ids[:, 15:])
    both = merged(left, right)
    for row in range(3):
        pairs = [
            (-score, name)
            for found in (left, right)
            for score, name in zip(found.scores[row].tolist(), found.ids[row].tolist(), strict=True)
            if name >= 0
        ]
        expected = sorted(pairs)[:width]
        empty = width - len(expected)
        assert both.ids[row].tolist() == [name for _, name in expected] + [-1] * empty
        assert both.scores[row].tolist() == [-score for score, _ in expected] + [-np.inf] * empty


@pytest.fixture(autouse=True)
def _threads():
    """A worker sets the threads of its process."""
    before = threads()
    yield
    set_threads(before)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = rng.integers(-2, 3, (400, 6)).astype(np.float32) + np.float32(0.5)  # many equal scores, and equal vectors
    path = tmp_path_factory.mktemp("corpus") / "c.npy"
    np.save(path, rows)
    return path, rows


def sharded(path, rows, count):
    worker = ShardWorker(Corpus(path, *rows.shape, str(rows.dtype)), 1, 1 << 30)
    return Sharded(Here(worker), shards_of(len(rows), count))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [1, 3, 7])
def test_a_search_in_shards(corpus, monkeypatch, metric, count):
    path, rows = corpus
    queries = open_vectors(np.random.default_rng(1).integers(-2, 3, (50, 6)).astype(np.float32) + np.float32(0.5))
    known = ns.Positives.from_pairs(np.arange(50), np.arange(50) * 8 % 400, 50, 400)
    surveys = survey_both(queries, open_vectors(rows), METRICS[metric], 1)
    progress = []
    how = SearchOptions(metric, known, surveys=surveys, on_progress=progress.append)
    monkeypatch.setattr(_sharded, "rows_of_block", lambda depth: 16)
    shards = sharded(path, rows, count)
    middle = how.run(queries, rows, 30)[0].scores[:, 10]
    for highest in (None, middle, middle - np.float32(1e-6)):
        expected, above = how.run(queries, rows, 20, highest)
        progress.clear()
        found, counted = shards.search(queries, 20, highest, how)
        assert np.array_equal(found.ids, expected.ids)
        assert np.array_equal(found.scores, expected.scores)
        assert np.array_equal(counted, above)
        assert sum(progress) == pytest.approx(50)
    assert shards.pool.shared == 3 * 4  # a block of queries is sent once, not once for each shard


@pytest.mark.parametrize("count", [1, 4])
def test_norms_and_equal_vectors(corpus, count):
    path, rows = corpus
    shards, queries = sharded(path, rows, count), open_vectors(np.concatenate([rows[:30], rows[:5] + 9]))
    assert shards.largest_norm("cosine") == survey("corpus", open_vectors(rows), METRICS["cosine"], 1).largest
    pairs = [set(zip(*part, strict=True)) for part in (equal_vectors(queries, open_vectors(rows), shards.matched),
                                                       equal_vectors(queries, open_vectors(rows)))]  # fmt: skip
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) >= 30


def test_only_the_first_hundred_equal_vectors_count(tmp_path):
    rows = np.ones((350, 3), np.float32)
    np.save(tmp_path / "c.npy", rows)
    queries = open_vectors(rows[:2])
    for count in (1, 3, 10):
        found = equal_vectors(queries, open_vectors(rows), sharded(tmp_path / "c.npy", rows, count).matched)
        assert sorted(zip(*found, strict=True)) == [(anchor, item) for anchor in (0, 1) for item in range(100)]


def test_bad_rows_are_named_as_in_one_pass(tmp_path):
    rows = np.ones((40, 3), np.float32)
    rows[25, 1] = rows[33, 0] = np.nan
    np.save(tmp_path / "c.npy", rows)
    messages = []
    whole = open_vectors(rows)
    for largest in (sharded(tmp_path / "c.npy", rows, 4).largest_norm, lambda _: survey("corpus", whole, 1, 1)):
        with pytest.raises(NaysayError) as caught:
            largest("cosine")
        messages.append(str(caught.value))
    assert messages[0] == messages[1] == "`corpus` must be finite, got nan at row 25 (2 such rows)."


def test_another_file_on_a_node(corpus):
    worker = ShardWorker(Corpus(corpus[0], 500, 6, "float32"), 1, 1 << 30)
    rule = r"^`corpus` must be the same file on each node, 500 x 6 float32, got 400 x 6 float32 in '.*c\.npy'\.$"
    with pytest.raises(NaysayError, match=rule):
        worker.measured(shards_of(500, 1)[0], "cosine")


CASES = {
    "auto": {},
    "deeper": {"judge": "max_score:-0.2"},
    "random filling": {"judge": "max_score:0.6", "depth": 20, "on_short": "random", "seed": 5},
    "l2, mmr": {"metric": "l2", "select": "mmr", "balance": 0.3},
}


@pytest.mark.parametrize("name", CASES)
def test_a_job_in_shards_is_the_job(tmp_path, monkeypatch, name):
    world = World(tmp_path)
    cluster = jobs_here(monkeypatch, command)
    in_parts(monkeypatch, 13)
    world.run("plain.jsonl", **CASES[name])
    world.run("out.jsonl", engine="ray", workers=5, **CASES[name])
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
    assert {place for method, place in cluster.pools[0].calls if method == "search"} == set(range(5))


def test_a_search_that_stops_early(tmp_path, monkeypatch):
    world = Families(tmp_path)
    jobs_here(monkeypatch, command)
    monkeypatch.setattr("naysay.mining._search.LISTED", 0)
    world.run("plain.jsonl")
    world.run("out.jsonl", engine="ray", workers=3)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def test_begun_in_shards_and_ended_without(tmp_path, monkeypatch):
    world = World(tmp_path)
    jobs_here(monkeypatch, command)
    world.run("plain.jsonl")
    for first, second in (({"engine": "ray"}, {}), ({}, {"engine": "ray"})):
        assert stopped(world, monkeypatch, 2, rows=20, **first) == [0, 20]
        world.run(resume=True, **second)
        assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def test_workers_encode_the_same_vectors(tmp_path, monkeypatch):
    monkeypatch.setattr("naysay.encode.texts.BLOCK", 16)
    world = World(tmp_path)
    cluster = jobs_here(monkeypatch, command)
    given = {"query_vectors": None, "corpus_vectors": None, "query_prompt": "query: "}
    for name, engine in (("plain", {}), ("out", {"engine": "ray"})):
        world.run(f"{name}.jsonl", model=Encoder(), encoded=tmp_path / name, **given, **engine)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
    names = [sorted(file.name for file in (tmp_path / name).iterdir()) for name in ("plain", "out")]
    assert names[0] == names[1]  # with a checksum in each
    assert len(cluster.pools[0].calls) > 8


def test_a_plan(tmp_path, monkeypatch, capsys):
    world = World(tmp_path)
    jobs_here(monkeypatch, _plan)
    before = sorted(tmp_path.iterdir())
    plan = world.run(engine="ray", workers=4, dry_run=True)
    assert sorted(tmp_path.iterdir()) == before
    assert (plan.queries, plan.documents, plan.shards, plan.workers, plan.blocks) == (60, 150, 4, 4, 1)
    assert plan.read_bytes == 3 * world.corpus.nbytes
    assert plan.merged_bytes == 60 * 100 * 12 * 4
    assert plan.seconds > 0
    assert plan.worker_bytes > 0
    printed = capsys.readouterr().out
    assert printed == f"{plan}\n"
    assert printed.startswith(
        "Corpus: 150 x 32 in 4 shards of up to 38 rows; 60 queries in 1 block: 4 tasks for 4 workers"
    )
    assert printed.endswith("One machine is enough: leave --engine out.\n")


def test_a_plan_that_one_machine_is_too_slow_for():
    sizes = {"queries": 10**6, "documents": 10**9, "width": 384, "workers": 100, "threads": 8, "shards": 100}
    costs = {"blocks": 200, "worker_bytes": 10**9, "budget": 2 * 10**9, "read_bytes": 10**14, "merged_bytes": 10**11}
    plan = _plan.Plan(**sizes, **costs, seconds=5 * 3600, one_machine=40 * 86400)
    assert "about 5 h for the search" in str(plan)
    assert str(plan).endswith("Without Ray: about 40 days on this machine. One machine is too slow.")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "dask"}, r"`--engine` must be one of 'local', 'ray', got 'dask'"),
        ({"workers": 2}, r"`--workers` must be left out without the engine 'ray', got 2\."),
        ({"address": "auto"}, r"`--address` must be left out without the engine 'ray', got 'auto'\."),
        ({"engine": "ray", "workers": 0}, r"`--workers` must be at least 1, got 0\."),
        ({"dry_run": True}, r"`--dry-run` must be left out without the engine 'ray', got 'local'\."),
        (
            {"engine": "ray", "dry_run": True, "model": Encoder(), "query_vectors": None, "corpus_vectors": None},
            r"`--dry-run` must be left out with `--model`: it needs vectors, got both\.",
        ),
        (
            {"engine": "ray", "approximate": "ivf"},
            r"`--approximate` must be left out with the engine 'ray', which is exact, got 'ivf'\.",
        ),
    ],
)
def test_options_that_do_not_fit(tmp_path, given, message):
    with pytest.raises(NaysayError, match=f"^mine: {message}"):
        World(tmp_path).run(**given)
    assert not (tmp_path / "out.jsonl").exists()


def test_without_ray(tmp_path, monkeypatch, capsys):
    world = World(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=r"^mine: ray is not installed\. Run in a clone of naysay: pip install '\.\[ray\]'$"
    ):
        world.run(engine="ray")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["mine", "pairs.parquet", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "-o", "out.jsonl",
              "--corpus", "docs.parquet", "--engine", "ray"])  # fmt: skip
    assert caught.value.code == 2
    assert (
        capsys.readouterr().err
        == "naysay: mine: ray is not installed. Run in a clone of naysay: pip install '.[ray]'\n"
    )
    assert sorted(tmp_path.glob("*out*")) == []


def test_more_workers_than_processors(tmp_path, monkeypatch):
    jobs_here(monkeypatch, command)
    rule = "`--workers` must be at most 4, for 8 processors in the cluster and 2 for each worker, got 5."
    with pytest.raises(NaysayError, match=rule):
        World(tmp_path).run(engine="ray", workers=5, threads=2)
