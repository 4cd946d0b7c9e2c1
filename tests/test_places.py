"""Files of stores, copied with checks and uploaded whole; tables in parts; credentials that are never shown."""

import builtins
import gzip
import io
import os
import pickle
import traceback
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from odd_store import OddStore, odd_store

import naysay as ns
from naysay import places
from naysay.cli import main
from naysay.detectors import choose_thresholds
from naysay.errors import MissingExtraError, NaysayError
from naysay.places import Url, read_place
from naysay.search.vectors import open_vectors
from naysay.tables import parquet_batches, parquet_schema

SECRET = "s3://AKIAKEY:wJalr%2Ftop%2BSecret@bucket/a%20b/part.parquet?endpoint_override=localhost:1&token=QUERYSECRET"
BROKEN = "odd://someone:pass%2Fword@broken/x.npy?token=ABCDEFGH&sig=%2Bsign+ed"
SECRETS = ("AKIAKEY", "wJalr", "top+Secret", "top%2BSecret", "QUERYSECRET")


def sentence_of(function, *given, **options):
    with pytest.raises(NaysayError) as error:
        function(*given, **options)
    message = str(error.value)
    assert "\n" not in message
    return message.removeprefix(f"{error.value.caller}: ")


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def table(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


# ---- URLs ------------------------------------------------------------------------------------------------------------


def test_a_url_keeps_its_text_and_shows_no_credentials():
    url = read_place("", SECRET)
    assert (url.given, url.name, url.suffix, url.host) == (SECRET, "part.parquet", ".parquet", "bucket")
    assert str(url) == "s3://bucket/a%20b/part.parquet?endpoint_override=localhost:1"
    assert str(url.with_name("x.csv")) == "s3://bucket/a%20b/x.csv?endpoint_override=localhost:1"
    assert url.with_name("x.csv").user == url.user
    assert pickle.loads(pickle.dumps(url)) == url
    assert len({url, Url(SECRET), Url("s3://b/c")}) == 2
    for text in (str(url), repr(url), f"{url}", f"{[url]}"):
        assert not any(secret in text for secret in SECRETS)
    assert str(Url("abfs://box@account.dfs.core.windows.net/x")) == "abfs://box@account.dfs.core.windows.net/x"
    assert str(Url("https://token@host/x")) == "https://host/x"
    scrubbed = url.scrubbed(f"GET {SECRET} by AKIAKEY with wJalr/top+Secret failed")
    assert not any(secret in scrubbed for secret in SECRETS)
    assert scrubbed.endswith("by *** with *** failed")


def test_paths_are_paths():
    for text in ("a/b", "/a//b", "C:/x", "c://x", "a:b", "s3:/x", "://x"):
        assert read_place("", text) == Path(text)
    assert read_place("", "file:///a%20b/c.npy") == Path("/a b/c.npy")
    assert read_place("", "file://localhost/a") == Path("/a")
    assert not read_place("", "file://a.npy").exists()
    with pytest.raises(ValueError, match="a URL has a scheme"):
        Url("a/b")
    assert "must be a path" in sentence_of(places.as_place, "path", 3)


# ---- several files that are one table --------------------------------------------------------------------------------


def test_a_folder_or_a_glob_is_one_table(tmp_path, monkeypatch):
    for part in (2, 0, 1):
        (tmp_path / f"part-{part}.parquet").write_bytes(table(user=[part], item=[f"i{part}"]))
    (tmp_path / "_metadata.parquet").write_bytes(b"not a part")
    (tmp_path / "read.me").write_text("not a part")
    whole = ns.Positives.from_parquet(tmp_path, "user", "item")
    assert whole.item_names.names(np.arange(3)) == ["i0", "i1", "i2"]
    for given in (tmp_path / "part-*.parquet", str(tmp_path / "part-?.parquet"), f"file://{tmp_path}"):
        assert [pair.tolist() for pair in ns.Positives.from_parquet(given, "user", "item").pairs()] == [[0, 1, 2]] * 2
    assert [len(batch) for batch in parquet_batches(tmp_path)] == [1, 1, 1]
    files = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    odd_store(monkeypatch, folder=files)
    for given in ("odd://folder", "odd://folder/", "odd://folder/part-*.parquet", "odd://folder/part-[0-2].parquet"):
        assert [pair.tolist() for pair in ns.Positives.from_parquet(given, "user", "item").pairs()] == [[0, 1, 2]] * 2


def test_files_of_a_table_have_one_schema(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(table(user=[1], item=[2]))
    (tmp_path / "b.parquet").write_bytes(table(user=[1], item=[2]))
    (tmp_path / "c.parquet").write_bytes(table(user=[1], item=["x"]))
    (tmp_path / "d.parquet").write_bytes(table(user=[1]))
    message = "`path` must be files with the columns of 'a.parquet', got 'item' of string in "
    assert sentence_of(ns.Positives.from_parquet, tmp_path, "user", "item") == f"{message}'{tmp_path}/c.parquet'."
    files = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    odd_store(monkeypatch, many=files)
    assert sentence_of(ns.Positives.from_parquet, "odd://many", "user", "item") == f"{message}'odd://many/c.parquet'."
    (tmp_path / "c.parquet").unlink()
    assert "got no 'item' in " in sentence_of(parquet_schema, tmp_path)
    required = pa.schema([pa.field("item", pa.int64(), nullable=False), pa.field("user", pa.int64())])
    pq.write_table(pa.table({"item": [9], "user": [0]}, required), tmp_path / "d.parquet")  # in another order
    assert len(ns.Positives.from_parquet(tmp_path, "user", "item")) == 2


def test_what_is_no_table(tmp_path):
    (tmp_path / "empty").mkdir()
    message = f"`x` must be an existing file, got the folder '{tmp_path}/empty', which has no .parquet files."
    assert sentence_of(places.check_table, "x", tmp_path / "empty") == message
    assert "must be an existing file, got" in sentence_of(places.check_table, "x", tmp_path / "no-*.parquet")
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.eye(2))
    assert "one file, or several that end in .parquet" in sentence_of(open_vectors, tmp_path / "*.npy")
    (tmp_path / "[a].npy").write_bytes(npy(np.eye(3)))  # a file of that name is the file
    assert open_vectors(tmp_path / "[a].npy").n == 3


def test_files_that_are_written_are_apart(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    places.check_apart({"out": one, "report": None}, {"in": other, "more": None})
    assert "another file than `in`" in sentence_of(places.check_apart, {"out": one}, {"in": tmp_path / "." / "one"})
    assert "another file than `out`" in sentence_of(places.check_apart, {"out": one, "report": one}, {})


def test_what_is_written_is_no_part_of_what_is_read(tmp_path):
    for source in (tmp_path, tmp_path / "*.parquet"):
        message = sentence_of(places.check_apart, {"out": tmp_path / "new.parquet"}, {"in": source})
        assert message == f"`out` must be another file than `in`, got '{tmp_path}/new.parquet'."
    for other in ("new.jsonl", "below/new.parquet"):
        places.check_apart({"out": tmp_path / other}, {"in": tmp_path})
        places.check_apart({"out": tmp_path / other}, {"in": tmp_path / "*.parquet"})
    here, there = Url("odd://a/x"), Url("odd://u:pass@a/x")
    assert "another file than" in sentence_of(places.check_apart, {"out": here}, {"in": there})


# ---- reading ---------------------------------------------------------------------------------------------------------


def test_vectors_and_scores_of_a_url_are_read_from_a_copy_that_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    parts = {f"{at}.parquet": table(v=list(rows[20 * at : 20 * at + 20])) for at in range(2)}
    odd_store(monkeypatch, good={"a.npy": npy(rows), **parts, "s.npy": npy(rows[:, 0])})
    for url in ("odd://good/a.npy", "odd://good/*.parquet", Url("odd://good/a.npy")):
        vectors = open_vectors(url)
        assert (vectors.rows(0, 40) == rows).all()
        assert (vectors.take(np.array([1, 30])) == rows[[1, 30]]).all()
        del vectors
        assert os.listdir(tmp_path) == []
    found = choose_thresholds("odd://good/s.npy", false_share=0.1, hard_share=0.2)
    assert (found.low, found.high) == (lambda one: (one.low, one.high))(
        choose_thresholds(rows[:, 0], false_share=0.1, hard_share=0.2)
    )
    assert os.listdir(tmp_path) == []
    mined = ns.mine("odd://good/a.npy", "odd://good/a.npy", None, 2, judge=None)
    assert (mined.ids == ns.mine(rows, rows, None, 2, judge=None).ids).all()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("odd://lies/a.npy", "176 of the 186 bytes"),
        ("odd://hides/a.npy", "176 of the 166 bytes"),
        ("odd://vanishes/a.npy", "stays where it is while it is read"),
        ("odd://changes/a.npy", "does not change while it is read"),
        ("odd://denied/a.npy", "denies access. Check the credentials."),
        ("odd://good/none.npy", "which is not there"),
        ("odd://nothing/a.npy", "which is not there"),
        ("odd://good/*.npz", "which is not there"),
        ("odd://good", "without .parquet files"),
        ("odd://twice/*.npy", "several that end in .parquet"),
        ("what://a/b.npy", "a scheme that pyarrow or fsspec has"),
        ("odd://good/b.npy", "got 'odd://good/b.npy' ("),
    ],
)
def test_a_store_that_fails_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, url, reason):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    one = {"a.npy": npy(np.eye(2, 6, dtype=np.float32))}
    odd_store(monkeypatch, good={**one, "a.txt": b"", "b.npy": b"nonsense"}, lies=one, hides=one, vanishes=one,
              changes=one, denied=one, twice={**one, "b.npy": b""})  # fmt: skip
    sentence = sentence_of(open_vectors, url)
    assert sentence.startswith("`vectors` must be ")
    assert reason in sentence
    assert os.listdir(tmp_path) == []


def test_a_copy_must_fit_on_the_disk(tmp_path, monkeypatch):
    odd_store(monkeypatch, good={"a.npy": npy(np.eye(2))})
    monkeypatch.setattr(places.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 3}))
    message = sentence_of(open_vectors, "odd://good/a.npy")
    assert message.startswith(
        "`vectors` must be a file that fits on this disk, where it is copied, got 160 bytes in 'odd"
    )


def test_a_scheme_whose_package_is_missing_names_it(monkeypatch):
    own = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] in ("fsspec", "huggingface_hub", "aiohttp"):
            raise ImportError(name)
        return own(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        MissingExtraError, match=r"huggingface_hub is not installed, which hf:// needs. Run: pip install"
    ):
        open_vectors("hf://datasets/a/b/c.npy")
    monkeypatch.setattr(builtins, "__import__", own)

    def no_package(url, **_):
        raise ImportError(url)

    monkeypatch.setattr("fsspec.core.url_to_fs", no_package)
    with pytest.raises(MissingExtraError, match=r"fsspec\[http\] is not installed, which https:// needs. Run: pip"):
        open_vectors("https://someone:secret@host/c.npy")


def test_no_error_of_a_store_goes_along_with_its_text(monkeypatch):
    odd_store(monkeypatch)
    with pytest.raises(NaysayError) as error:
        open_vectors(BROKEN)
    assert str(error.value).endswith("'odd://broken/x.npy' (cannot GET odd://***@broken/x?token=***&sig=***: *** ***).")
    text = "".join(traceback.format_exception(error.value))
    assert not any(secret in text for secret in ("someone", "pass%2Fword", "pass/word", "ABCDEFGH", "sign"))
    assert error.value.__context__ is None
    assert error.value.__cause__ is None


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_a_file_in_a_store_appears_whole_or_not_at_all(monkeypatch):
    files = odd_store(monkeypatch, full={"a.json": b"old"}, good={"a.json": b"old"}, readonly={"a.json": b"old"})
    monkeypatch.setattr(places, "_CHUNK", 2)
    places.write_whole("json", Url("odd://good/a.json"), b"newer")
    assert files["good/a.json"] == b"newer"
    message = sentence_of(places.write_whole, "json", Url("odd://full/a.json"), b"newer")
    assert message == "`json` must be a file that can be written, got 'odd://full/a.json' (no space in the store)."
    message = sentence_of(places.write_whole, "json", Url("odd://readonly/a.json"), b"newer")
    assert "'odd://readonly/a.json', to which the store denies access. Check the credentials." in message
    assert files == {"good/a.json": b"newer", "readonly/a.json": b"old"}  # no part of a file


def test_where_a_file_may_be_written_in_a_store(monkeypatch):
    odd_store(monkeypatch, good={"a.json": b"old"})
    places.check_target("json", Url("odd://good/new.json"))
    assert "must be a file, got the folder 'odd://good/'" not in sentence_of(
        places.check_target, "x", Url("odd://good")
    )
    assert "must be a file, got 'odd://good'" in sentence_of(places.check_target, "x", Url("odd://good"))
    assert "a scheme that pyarrow or fsspec has" in sentence_of(places.check_target, "x", Url("what://good/a"))
    assert "ends in .html" in sentence_of(places.check_page, "x", Url("odd://good/a.json"))
    assert places.is_there("x", Url("odd://good/a.json"))
    assert not places.is_there("x", Url("odd://good/b.json"))
    assert OddStore.files == {"good/a.json": b"old"}


def test_a_store_that_keeps_a_part_of_an_upload_is_found_out(monkeypatch):
    odd_store(monkeypatch, lies={"a.json": b"old"})
    message = sentence_of(places.write_whole, "json", Url("odd://lies/a.json"), b"newer")
    assert "15 of 5 bytes in 'odd://lies/a.json'" in message
    assert OddStore.files == {}


def test_what_was_there_stays_where_the_store_gives_up_the_upload(monkeypatch):
    files = odd_store(monkeypatch, aborts={"a.json": b"old"})
    monkeypatch.setattr(places, "_CHUNK", 2)
    assert "no space" in sentence_of(places.write_whole, "json", Url("odd://aborts/a.json"), b"newer")
    assert files == {"aborts/a.json": b"old"}


def test_compressed_files_are_copied_as_they_are(monkeypatch):
    lines = gzip.compress(b'{"anchor": "a", "positive": "b", "negative": "c"}\n' * 30)
    files = odd_store(monkeypatch, good={"a.jsonl.gz": lines})
    with places.local("x", "odd://good/a.jsonl.gz") as path:
        assert path.name.endswith(".jsonl.gz")
        assert path.read_bytes() == lines
    places.write_whole("x", Url("odd://good/b.gz"), b"plain")
    assert files["good/b.gz"] == b"plain"
    assert ns.audit("odd://good/a.jsonl.gz").negatives == 1


def test_a_query_is_neither_in_the_name_nor_in_a_message_of_a_copy(monkeypatch):
    odd_store(monkeypatch, good={"a.npy": b"nonsense"})
    message = sentence_of(open_vectors, "odd://good/a.npy?signature=SIGNATURE")
    assert "'odd://good/a.npy' (" in message
    assert "SIGNATURE" not in message


def test_files_in_memory(monkeypatch):
    store = fsspec.filesystem("memory")
    monkeypatch.setattr(type(store), "store", {})
    monkeypatch.setattr(type(store), "pseudo_dirs", [""])
    store.pipe("/data/a.npy", npy(np.eye(4)))
    store.pipe("/data/parts/0.parquet", table(user=[0], item=[1]))
    store.pipe("/data/parts/1.parquet", table(user=[1], item=[0]))
    assert open_vectors("memory://data/a.npy").n == 4
    assert len(ns.Positives.from_parquet("memory://data/parts/*.parquet", "user", "item")) == 2
    assert len(ns.Positives.from_parquet("memory://data/parts", "user", "item")) == 2
    places.write_whole("x", Url("memory://data/out/x.json"), b"{}")
    assert store.find("/data/out") == ["/data/out/x.json"]
    assert store.cat("/data/out/x.json") == b"{}"


def test_audit_and_thresholds_of_urls_show_no_credentials(tmp_path, monkeypatch, capsys):
    planted = ns.planted_world(40, 90, per_anchor=4, noise=0.3, seed=1)
    rows = {
        "anchor": np.arange(40),
        "positive": planted.known.indices[planted.known.indptr[:-1]],
        "negative": (np.arange(40) * 7) % 90,
    }
    files = {"t.parquet": table(**rows), "q.npy": npy(planted.anchor_vectors), "c.npy": npy(planted.item_vectors)}
    held = odd_store(monkeypatch, good={**files, "s.npy": npy(np.linspace(0, 1, 500))})

    def url(name):
        return f"odd://some-user-x:pass%2Fword@good/{name}?token=tok3n-q7"

    vectors = ["--query-vectors", url("q.npy"), "--corpus-vectors", url("c.npy")]
    for given in (
        ["audit", url("t.parquet"), *vectors, "--json", url("a.json"), "--report", url("a.html")],
        ["thresholds", url("s.npy"), "--json", url("s.json")],
    ):
        with pytest.raises(SystemExit) as end:
            main(given)
        assert not end.value.code
    shown = capsys.readouterr()
    assert "naysay mine odd://good/t.parquet --query-vectors odd://good/q.npy" in shown.out
    made = {name: held[f"good/{name}"].decode() for name in ("a.json", "a.html", "s.json")}
    for text in (shown.out, shown.err, *made.values()):
        assert not any(secret in text for secret in ("some-user-x", "pass%2Fword", "pass/word", "tok3n-q7"))
    assert len(held) == 7
