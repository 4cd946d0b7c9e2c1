"""Jobs whose files are in a store: the same bytes, one copy of each, no credentials anywhere, and one sentence each."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import World, stopped
from odd_store import OddStore, odd_store

from naysay.cli import main
from naysay.errors import NaysayError
from naysay.jobs.command import mine_files
from naysay.jobs.folder import KeptJobError

USER, PASSWORD, TOKEN = "some-user-x", "pass%2Fword", "tok3n-q7"
SECRETS = (USER, PASSWORD, "pass/word", TOKEN)
INPUTS = {"corpus": "docs.parquet", "query_vectors": "q.npy", "corpus_vectors": "c.npy"}


def url(name, folder="in"):
    return f"odd://{USER}:{PASSWORD}@{folder}/{name}?token={TOKEN}"


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path, n=24, items=60)
    odd_store(
        monkeypatch, **{"in": {name: (tmp_path / name).read_bytes() for name in ("pairs.parquet", *INPUTS.values())}}
    )
    monkeypatch.chdir(tmp_path)
    return made


def run(output, **given):
    files = {name: url(file) for name, file in INPUTS.items()}
    return mine_files(
        url("pairs.parquet"), output=output, **{**files, "k": "5", "format": "ids", "with_scores": True, **given}
    )


class Named:
    """A job, as `stopped` takes it."""

    def __init__(self, job):
        self.run = job


def stop_after(parts, monkeypatch, job):
    stopped(Named(job), monkeypatch, parts)


def jobs(tmp_path):
    return [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_job_on_urls_writes_the_same_bytes_and_no_credentials(world, tmp_path, capsys):
    world.run("plain.jsonl")
    done = run(url("o.jsonl", "out"), report=url("r.html", "out"), review=4)
    assert OddStore.files["out/o.jsonl"] == (tmp_path / "plain.jsonl").read_bytes()
    assert sorted(name for name in OddStore.files if name.startswith("out/")) == [
        "out/o.jsonl",
        "out/o.review.csv",
        "out/r.html",
    ]
    assert jobs(tmp_path) == []
    shown = capsys.readouterr()
    sizes = {name: len(OddStore.files[f"in/{name}"]) for name in ("pairs.parquet", *INPUTS.values())}
    for name, size in sizes.items():
        assert f"odd://in/{name}: {size:,} bytes are copied to .o.jsonl.naysay-job/" in shown.err
    made = (data.decode("utf-8", "replace") for name, data in OddStore.files.items() if name.startswith("out/"))
    for text in (shown.out, shown.err, str(done), repr(done), *made):
        assert not any(secret in text for secret in SECRETS)


def test_a_job_that_is_stopped_has_no_credentials_and_resumes_from_its_copies(world, tmp_path, monkeypatch):
    world.run("plain.jsonl")
    stop_after(2, monkeypatch, lambda: run("out.jsonl"))
    job = tmp_path / ".out.jsonl.naysay-job"
    held = [path for path in job.rglob("*") if path.is_file()]
    assert {"pairs-000000.parquet", "corpus-000000.parquet", "corpus-vectors-000000.npy"} <= {
        path.name for path in held
    }
    for path in held:
        assert not any(secret.encode() in path.read_bytes() for secret in SECRETS)
    record = json.loads((job / "job.json").read_bytes())["options"]
    assert record["--corpus"]["bytes"] == len(OddStore.files["in/docs.parquet"])
    monkeypatch.setattr("naysay.jobs.prepare.fetch", None)  # nothing is copied again
    run("out.jsonl", resume=True)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
    assert jobs(tmp_path) == []


def test_another_file_in_the_store_is_another_job(world, tmp_path, monkeypatch):
    stop_after(1, monkeypatch, lambda: run("out.jsonl"))
    OddStore.files["in/docs.parquet"] += b" "
    with pytest.raises(NaysayError, match="`--resume` must be given for the same job, got another content of --corpus"):
        run("out.jsonl", resume=True)
    run("out.jsonl", fresh=True, corpus=tmp_path / "docs.parquet")


@pytest.mark.parametrize("folder", ["lies", "vanishes", "changes", "denied", "broken", "nothing"])
def test_an_input_that_fails_leaves_no_job_and_no_output(world, tmp_path, capsys, folder):
    OddStore.files[f"{folder}/c.npy"] = OddStore.files["in/c.npy"]
    if folder == "nothing":
        del OddStore.files["nothing/c.npy"]
    with pytest.raises(SystemExit) as end:
        main(["mine", url("pairs.parquet"), "--corpus-vectors", url("c.npy", folder), "--query-vectors", url("q.npy"),
              "--corpus", url("docs.parquet"), "-o", url("o.jsonl", "out"), "--format", "ids"])  # fmt: skip
    assert end.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("naysay: mine: `--corpus-vectors` must be ")
    assert f"odd://{folder}/c.npy" in last
    assert not any(secret in last for secret in SECRETS)
    assert jobs(tmp_path) == []
    assert not any(name.startswith("out/") for name in OddStore.files)


def test_bad_data_of_a_url_is_named_by_the_url(world):
    OddStore.files["in/docs.parquet"] = b"nonsense"
    with pytest.raises(
        NaysayError, match=r"`--corpus` must be a file that can be read to its end, got 'odd://in/docs.parq"
    ):
        run("out.jsonl")


def test_an_upload_that_fails_keeps_the_job(world, tmp_path, monkeypatch):
    world.run("plain.jsonl")
    OddStore.files["full/o.jsonl"] = b"old"
    monkeypatch.setattr("naysay.places._CHUNK", 1000)
    with pytest.raises(
        KeptJobError, match=r"'odd://full/o.jsonl' \(no space in the store\). Nothing is lost: run again with"
    ):
        run(url("o.jsonl", "full"))
    assert {
        name: data for name, data in OddStore.files.items() if name.startswith("full/")
    } == {}  # the store keeps no old file beside an upload
    monkeypatch.setattr("naysay.places._CHUNK", 1 << 20)  # written at once, for which there is space
    run(url("o.jsonl", "full"), resume=True)
    assert OddStore.files["full/o.jsonl"] == (tmp_path / "plain.jsonl").read_bytes()
    assert jobs(tmp_path) == []


def test_what_must_be_on_this_machine(world, capsys):
    model = {"model": "m", "query_vectors": None, "corpus_vectors": None}
    for name, given in (("job", {"job": url("j")}), ("encoded", {"encoded": url("e"), **model})):
        with pytest.raises(NaysayError, match=f"`--{name}` must be a folder on this machine, got 'odd://in/"):
            run("out.jsonl", **given)
    with pytest.raises(
        NaysayError, match="`--output` must be a file, not a data set of several files, where it is a URL"
    ):
        run(url("o.hf", "out"), format="triplet")


def test_tables_in_parts_give_the_same_bytes(world, tmp_path):
    world.run("plain.jsonl")
    for name, folder in (("pairs.parquet", "pairs"), ("docs.parquet", "docs")):
        whole = pq.read_table(tmp_path / name)
        (tmp_path / folder).mkdir()
        for part, start in enumerate(range(0, len(whole), 17)):
            stream = io.BytesIO()
            pq.write_table(whole.slice(start, 17), stream)
            OddStore.files[f"{folder}/part-{part:03d}.parquet"] = stream.getvalue()
            (tmp_path / folder / f"part-{part:03d}.parquet").write_bytes(stream.getvalue())
    vectors = pq.write_table
    for start in (0, 30):
        vectors(pa.table({"v": list(world.corpus[start : start + 30])}), tmp_path / f"vectors-{start:02d}.parquet")
    world.run("parts.jsonl", pairs="pairs", corpus="docs", corpus_vectors="vectors-*.parquet")
    assert (tmp_path / "parts.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
    mine_files("odd://pairs", output=tmp_path / "urls.jsonl", corpus="odd://docs/part-*.parquet", format="ids",
               query_vectors=url("q.npy"), corpus_vectors=url("c.npy"), k="5", with_scores=True)  # fmt: skip
    assert (tmp_path / "urls.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def test_a_part_that_changes_or_is_added_is_noticed(world, tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.parquet").write_bytes((tmp_path / "docs.parquet").read_bytes())
    stop_after(1, monkeypatch, lambda: world.run("out.jsonl", corpus="docs"))
    (tmp_path / "docs" / "b.parquet").write_bytes((tmp_path / "docs.parquet").read_bytes())
    with pytest.raises(NaysayError, match="got another content of --corpus"):
        world.run("out.jsonl", corpus="docs", resume=True)
    with pytest.raises(NaysayError, match="`--output` must be another file than `--corpus`"):
        world.run("docs/out.parquet", corpus="docs")


def test_a_job_on_a_device_gives_the_same_bytes(world, tmp_path):
    world.run("plain.jsonl")
    world.run("device.jsonl", device="cpu")
    assert (tmp_path / "device.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
