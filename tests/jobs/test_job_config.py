"""The config file of `naysay mine`, the record of a job, and its dataset card."""

import hashlib
import tomllib

import numpy as np
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay._options import command_fields
from naysay.jobs.options import JobOptions
from naysay.mining.options import MiningOptions
from tests.contract.command import run

FILES = ["pairs.csv", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "--corpus", "docs.csv"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small job: its files, and what the command line alone makes of them."""
    folder = tmp_path_factory.mktemp("config")
    world = ns.planted_world(60, 90, per_anchor=3, noise=0.3)
    np.save(folder / "q.npy", world.anchor_vectors)
    np.save(folder / "c.npy", world.item_vectors)
    rows = "".join(f"question {anchor},d{item}\n" for anchor, item in zip(*world.known.pairs(), strict=True))
    (folder / "pairs.csv").write_text(f"question,answer\n{rows}")
    documents = "".join(f"d{row},answer | <b>{row}</b>\n" for row in range(90))
    (folder / "docs.csv").write_text(f"id,text\n{documents}")
    done = run("mine", *FILES, "-k", 3, "--rank-range", "2-30", "-o", "plain.parquet", folder=folder)
    assert done.code == 0, done.err
    return folder


def test_every_option_is_printed_and_read_again(made):
    printed = run("mine", *FILES, "-k", 3, "--rank-range", "2-30", "-o", "again.parquet", "--print-config", folder=made)
    assert printed.code == 0, printed.err
    settings = tomllib.loads(printed.out)
    assert (settings["pairs"], settings["k"], settings["rank_range"]) == ("pairs.csv", 3, "2-30")
    for one in command_fields(JobOptions, MiningOptions):
        assert f"\n{one.name} = " in printed.out or f"\n# {one.name} =\n" in printed.out
        assert one.metadata["help"] in printed.out
    (made / "job.toml").write_text(printed.out)
    done = run("mine", "job.toml", folder=made)
    assert done.code == 0, done.err
    assert (made / "again.parquet").read_bytes() == (made / "plain.parquet").read_bytes()


def test_options_that_are_not_given_are_comments():
    printed = run("mine", "--print-config")
    assert printed.code == 0
    assert not {"pairs", "output", "corpus"} & tomllib.loads(printed.out).keys()


def test_the_command_line_goes_before_the_file(made):
    text = 'pairs = "pairs.csv"\nquery-vectors = "q.npy"\ncorpus_vectors = "c.npy"\ncorpus = "docs.csv"\n'
    (made / "short.toml").write_text(f'{text}output = "of-file.parquet"\nk = 3\nwith_scores = true\n')
    done = run("mine", "short.toml", "-k", 5, "-o", "of-line.parquet", folder=made)
    assert done.code == 0, done.err
    assert not (made / "of-file.parquet").exists()
    table = pq.read_table(made / "of-line.parquet")
    assert "scores" in table.column_names
    assert ", k = 5, " in done.out


def test_the_record_of_a_job_runs_it_again_and_names_its_files(made):
    plain = (made / "plain.parquet").read_bytes()
    arguments = (*FILES, "-k", 3, "--rank-range", "2-30", "-o", "first.parquet", "--record", "record.toml")
    assert run("mine", *arguments, folder=made).code == 0
    assert (made / "first.parquet").read_bytes() == plain
    record = tomllib.loads((made / "record.toml").read_text())
    assert record["made"]["output"] == hashlib.sha256(plain).hexdigest()
    assert record["made"]["pairs"] == hashlib.sha256((made / "pairs.csv").read_bytes()).hexdigest()
    assert {"naysay", "numpy", "query-vectors", "corpus-vectors", "corpus"} <= record["made"].keys()
    (made / "record.toml").rename(made / "kept.toml")
    done = run("mine", "kept.toml", "-o", "second.parquet", folder=made)
    assert done.code == 0, done.err
    assert (made / "second.parquet").read_bytes() == plain
    assert (made / "record.toml").read_text().replace("second.", "first.") == (made / "kept.toml").read_text()


def test_a_password_in_a_url_is_not_printed():
    printed = run("mine", "s3://me:sesame-open@bucket/pairs.parquet", "--print-config")
    assert "bucket/pairs.parquet" in printed.out
    assert "sesame" not in printed.out


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("kk = 3", "'kk'"),
        ("k = ", "TOML"),
        ("[k]\nof = 3", "`k`"),
        ("max_k = 'few'", "--max-k"),
        ("format = 'cards'", "'cards'"),
        ("card = 'card.txt'", "--card"),
        ("record = 'record.json'", "--record"),
        (b"k='\xff'", "TOML"),
        (None, "No such file"),
    ],
)
def test_an_invalid_file_is_one_sentence(made, tmp_path, text, word):
    if text is not None:
        (tmp_path / "job.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    files = [made / word if word.endswith((".npy", ".csv")) else word for word in FILES[1:]]
    options = ["--output", tmp_path / "new.parquet"]
    if text is not None and isinstance(text, str):
        (tmp_path / "job.toml").write_text(f"pairs = '{made / 'pairs.csv'}'\n{text}")
    done = run("mine", tmp_path / "job.toml", *files, *options, folder=tmp_path)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert word in done.err
    assert not (tmp_path / "new.parquet").exists()


def test_the_dataset_card_is_what_the_hub_reads(made):
    yaml = pytest.importorskip("yaml")
    hub = pytest.importorskip("huggingface_hub")
    done = run("mine", *FILES, "-k", 3, "-o", "train.parquet", "--card", "README.md", folder=made)
    assert done.code == 0, done.err
    text = (made / "README.md").read_text()
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["configs"] == [
        {"config_name": "default", "data_files": [{"split": "train", "path": "train.parquet"}]}
    ]
    assert header["size_categories"] == ["n<1K"]
    assert hub.DatasetCard(text).data.pretty_name == "Hard negatives of train"
    rows = pq.read_metadata(made / "train.parquet").num_rows
    assert f"| rows | {rows:,} |" in text
    for name in ("train.parquet", "pairs.csv", "docs.csv", "q.npy", "c.npy"):
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() in text
    rule = done.out.splitlines()[-1]
    assert rule.split(".")[0].replace("_", "\\_") in text


def test_a_card_in_another_folder_and_of_ids_names_no_rows(made):
    yaml = pytest.importorskip("yaml")
    (made / "cards").mkdir()
    options = ("--format", "ids", "-o", "ids.jsonl", "--card", "cards/card.md")
    done = run("mine", *FILES, "-k", 3, *options, folder=made)
    assert done.code == 0, done.err
    header = yaml.safe_load((made / "cards" / "card.md").read_text().split("---\n")[1])
    assert "configs" not in header
    assert "task_categories" not in header


def test_a_job_that_fails_leaves_no_card_and_no_record(made):
    new = ("-o", "x.parquet", "--card", "x.md", "--record", "y.toml")
    done = run("mine", *FILES, *new, "--short", "raise", "--format", "n-tuple", "--min-score", 2, folder=made)
    assert done.code == 2
    assert not any((made / name).exists() for name in ("x.parquet", "x.md", "y.toml"))


def test_a_card_is_not_written_over_what_is_read(made):
    before = (made / "docs.csv").read_bytes()
    (made / "notes.md").write_text("mine")
    done = run("mine", *FILES, "-o", "notes.parquet", "--card", "notes.md", "--report", "notes.md", folder=made)
    assert done.code == 2
    assert (made / "notes.md").read_text() == "mine"
    assert (made / "docs.csv").read_bytes() == before
