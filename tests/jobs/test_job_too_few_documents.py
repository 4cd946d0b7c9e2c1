"""What a corpus is too small for is an error at once: nothing is encoded, mined or left behind."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.cli import main
from naysay.errors import NaysayError
from naysay.jobs.command import mine_files

ITEMS, ANCHORS = 90, 30


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "queries.npy", rng.normal(size=(ANCHORS, 8)).astype(np.float32))
    np.save(tmp_path / "corpus.npy", rng.normal(size=(ITEMS, 8)).astype(np.float32))
    pairs = {"anchor": np.arange(ANCHORS), "positive": np.arange(ANCHORS)}
    pq.write_table(pa.table(pairs), tmp_path / "pairs.parquet")
    texts = [f"document {row}" for row in range(ITEMS)]
    pq.write_table(pa.table({"id": [str(row) for row in range(ITEMS)], "text": texts}), tmp_path / "documents.parquet")
    questions = [f"question {row}" for row in range(ANCHORS)]
    by_text = {"anchor": questions, "positive": texts[:ANCHORS]}
    pq.write_table(pa.table(by_text), tmp_path / "texts.parquet")
    return tmp_path


UNSATISFIABLE = [("rank_range", (ITEMS + 1, None)), ("min_score", 1.01)]


@pytest.mark.parametrize(("name", "value"), UNSATISFIABLE)
def test_mine_raises_at_once(files, name, value):
    options = {"k": 5, name: value}
    with pytest.raises(NaysayError) as error:
        ns.mine(np.load(files / "queries.npy"), np.load(files / "corpus.npy"), np.arange(ANCHORS), **options)
    assert error.value.parameter == name


@pytest.mark.parametrize(
    "arguments", [["-k", "20000"], ["--rank-range", "91-"], ["--min-score", "1.01"]], ids=["k", "ranks", "score"]
)
def test_the_command_leaves_nothing_behind(files, capsys, arguments):
    before = sorted(path.name for path in files.iterdir())
    given = ["mine", str(files / "pairs.parquet"), "-o", str(files / "out.parquet"), "--format", "ids"]
    given += ["--query-vectors", str(files / "queries.npy"), "--corpus-vectors", str(files / "corpus.npy")]
    with pytest.raises(SystemExit) as stop:
        main([*given, *arguments])
    assert stop.value.code == 2
    assert arguments[0] in capsys.readouterr().err
    assert sorted(path.name for path in files.iterdir()) == before


def test_nothing_is_encoded_first(files):
    class Encoder:
        cache_key = "slow"

        def encode(self, texts, **options):
            pytest.fail("encoded")

    start = time.perf_counter()
    with pytest.raises(NaysayError) as error:
        mine_files(
            files / "texts.parquet",
            output=files / "out.parquet",
            corpus=files / "documents.parquet",
            model=Encoder(),
            k="20000",
        )
    assert error.value.parameter == "k"
    assert time.perf_counter() - start < 30
    assert not list(files.glob(".out*"))
