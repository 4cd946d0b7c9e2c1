"""An error about a table of very many columns is still one short sentence."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay import cli

NAMES = [f"column_{place:05d}" for place in range(2_000)]
WIDE_ENOUGH = 2_000  # characters of a message


@pytest.fixture(autouse=True)
def wide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({name: ["x"] for name in NAMES}), "wide.parquet")
    with open("wide.csv", "w") as file:
        file.write(",".join(NAMES) + "\n" + ",".join(["x"] * len(NAMES)) + "\n")
    np.save("v.npy", np.eye(1, 2, dtype=np.float32))


def is_short(sentence):
    assert len(sentence) < WIDE_ENOUGH
    assert sum(name in sentence for name in NAMES) < 30
    assert "column_00000" in sentence
    assert "1,9" in sentence or "19" in sentence  # how many more there are


MINE = ["--query-vectors", "v.npy", "--corpus-vectors", "v.npy", "-k", "1", "-o", "out.jsonl"]


@pytest.mark.parametrize(
    "words",
    [
        ["mine", "wide.parquet", "--corpus", "wide.parquet", *MINE],
        ["mine", "wide.csv", "--corpus", "wide.csv", *MINE],
        ["compare", "wide.csv"],
        ["compare", "wide.csv", "--task", "text"],
        ["howmany", "--train-auc", "0.7", "--val-auc", "wide.csv"],
        ["thresholds", "wide.parquet"],
    ],
)
def test_a_command_names_some_columns(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    is_short(capsys.readouterr().err)


@pytest.mark.parametrize("read", [ns.Positives.from_csv, ns.Positives.from_parquet])
def test_a_wrong_column_gets_the_nearest(read):
    with pytest.raises(ns.NaysayError) as error:
        read("wide.csv" if read == ns.Positives.from_csv else "wide.parquet", "kolumn_01234", "column_00000")
    is_short(str(error.value))
    assert "column_01234" in str(error.value)
