"""Files in S3, on a server of moto's on this machine: read, written whole, denied, missing and gone."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from _thread import interrupt_main
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay import places
from naysay.cli import main
from naysay.errors import NaysayError
from naysay.places import Url
from naysay.search.vectors import open_vectors

moto = pytest.importorskip("moto.server", reason="moto is not installed; run: pip install 'moto[server]'")
boto3 = pytest.importorskip("boto3")

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
MINED = ("--format", "ids", "-k", "5", "--with-scores")


@pytest.fixture(scope="module")
def server():
    """A server of S3 with a bucket, and credentials as users have them: in the environment."""
    own = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    os.environ |= {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_EC2_METADATA_DISABLED": "true"}
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="bucket")
    yield running
    running.stop()
    os.environ.clear()
    os.environ |= own


@pytest.fixture
def store(server):
    """The bucket, empty."""
    bucket = boto3.resource("s3", region_name="us-east-1").Bucket("bucket")
    bucket.objects.delete()
    return bucket


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A small world in files; the names of its tables have spaces and signs, as keys may have."""
    world = ns.planted_world(24, 60, per_anchor=8, noise=0.3, seed=3)
    anchors, items = world.known.pairs()
    pairs = pa.table({"anchor": [f"q{row}" for row in anchors], "positive": [f"d{row}" for row in items]})
    (tmp_path / "in" / "pa irs#1%20").mkdir(parents=True)
    for part in range(3):
        pq.write_table(pairs.slice(part * 70, 70), tmp_path / "in" / "pa irs#1%20" / f"part-{part}.parquet")
    assert len(pairs) <= 210
    pq.write_table(pa.table({"id": [f"d{row}" for row in range(60)]}), tmp_path / "in" / "docs.parquet")
    pq.write_table(pa.table({"id": [f"q{row}" for row in range(24)]}), tmp_path / "in" / "queries.parquet")
    np.save(tmp_path / "in" / "q.npy", world.anchor_vectors)
    np.save(tmp_path / "in" / "c.npy", world.item_vectors)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "in"


def uploaded(store, folder):
    for file in folder.rglob("*"):
        if file.is_file():
            store.upload_file(str(file), file.relative_to(folder.parent).as_posix())


def arguments(root, output, *more):
    given = ("--corpus", f"{root}/docs.parquet", "--queries", f"{root}/queries.parquet", "--query-vectors",
             f"{root}/q.npy", "--corpus-vectors", f"{root}/c.npy", "-o", output, *MINED, *more)  # fmt: skip
    return ["mine", f"{root}/pa irs#1%20", *given]


def body(store, key):
    return store.Object(key).get()["Body"].read()


def keys(store):
    return sorted(one.key for one in store.objects.all())


def refused(arguments, capfd):
    """The one sentence with which a command ends."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    errors = capfd.readouterr().err
    assert SECRET not in errors
    assert KEY not in errors
    assert "Traceback" not in errors
    return next(line for line in errors.splitlines() if line.startswith("naysay: "))


def done(arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert not end.value.code


def test_a_job_in_s3_writes_the_same_bytes(store, files, capfd):
    uploaded(store, files)
    done(arguments("in", "plain.jsonl"))
    done(arguments("s3://bucket/in", "s3://bucket/out/o.jsonl", "--report", "s3://bucket/out/r.html", "--review", "4"))
    assert body(store, "out/o.jsonl") == Path("plain.jsonl").read_bytes()
    assert [key for key in keys(store) if key.startswith("out/")] == ["out/o.jsonl", "out/o.review.csv", "out/r.html"]
    assert sorted(path.name for path in Path().iterdir()) == ["in", "plain.jsonl"]
    shown = capfd.readouterr()
    for text in (shown.out, shown.err, *(body(store, key).decode() for key in keys(store) if key.startswith("out/"))):
        assert SECRET not in text
        assert KEY not in text
    url = f"s3://{KEY}:{SECRET}@bucket/in"  # credentials in the URL
    query = f"?region=us-east-1&scheme=http&endpoint_override={os.environ['AWS_ENDPOINT_URL'].removeprefix('http://')}"
    given = [f"{one}{query}" if one.startswith("s3://") else one for one in arguments(url, "again.jsonl")]
    done(given)
    assert Path("again.jsonl").read_bytes() == Path("plain.jsonl").read_bytes()


def test_a_killed_job_resumes_and_its_folder_has_no_credentials(store, files):
    uploaded(store, files)
    done(arguments("in", "plain.jsonl"))
    url = f"s3://{KEY}:{SECRET}@bucket/in"
    query = f"?region=us-east-1&scheme=http&endpoint_override={os.environ['AWS_ENDPOINT_URL'].removeprefix('http://')}"
    given = [f"{one}{query}" if one.startswith("s3://") else one for one in arguments(url, "s3://bucket/out/o.jsonl")]
    code = (
        "import os, sys; from naysay.jobs import parts; parts.write_part = lambda *_: os._exit(9); "
        "from naysay.cli import main; main(sys.argv[1:])"
    )
    ended = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, check=False)
    assert ended.returncode == 9, ended.stderr
    held = [path for path in Path(".o.jsonl.naysay-job").rglob("*") if path.is_file()]
    assert len(held) > 10
    for text in (ended.stdout.encode(), ended.stderr.encode(), *(path.read_bytes() for path in held)):
        assert SECRET.encode() not in text
        assert KEY.encode() not in text
    assert "out/o.jsonl" not in keys(store)
    done([*given, "--resume"])
    assert body(store, "out/o.jsonl") == Path("plain.jsonl").read_bytes()


def test_audit_thresholds_and_positives_of_s3(store, files, capfd):
    uploaded(store, files)
    rows = [{"anchor": f"q{row}", "positive": f"d{row}", "negative": f"d{row + 24}"} for row in range(24)]
    pq.write_table(pa.Table.from_pylist(rows), files / "train.parquet")
    scores = np.random.default_rng(0).normal(size=1000)
    np.save(files / "s.npy", scores)
    uploaded(store, files)
    known = ns.Positives.from_parquet("s3://bucket/in/pa irs#1%20", "anchor", "positive")
    assert len(known) == len(ns.Positives.from_parquet(files / "pa irs#1%20", "anchor", "positive"))
    found = []
    for root, out in ((files, Path("a.json")), ("s3://bucket/in", "s3://bucket/out/a.json")):
        page = "a.html" if root is files else "s3://bucket/out/a.html"
        done(["audit", f"{root}/train.parquet", "--query-vectors", f"{root}/q.npy", "--corpus-vectors", f"{root}/c.npy",
              "--query-ids", f"{root}/queries.parquet", "--corpus-ids", f"{root}/docs.parquet", "--json", str(out),
              "--report", page])  # fmt: skip
        found.append(json.loads(out.read_text() if isinstance(out, Path) else body(store, "out/a.json")))
        done(["thresholds", f"{root}/s.npy", "--json", str(out).replace("a.json", "t.json")])
        found.append(json.loads(Path("t.json").read_text() if root is files else body(store, "out/t.json")))
    assert found[2]["name"] == "s3://bucket/in/train.parquet"
    for one, other in ((found[0], found[2]), (found[1], found[3])):
        differ = {name for name in one if one[name] != other[name]}
        assert differ <= {"name", "commands", "scores", "file"}
    assert b"<html" in body(store, "out/a.html")
    assert SECRET not in capfd.readouterr().out


def test_what_is_not_there(store, files, capfd):
    uploaded(store, files)
    last = refused(arguments("s3://bucket/none", "o.jsonl"), capfd)
    assert last == (
        "naysay: mine: `pairs` must be an existing file, got 's3://bucket/none/pa irs#1%20', which is not there."
    )
    assert "which is not there" in refused(arguments("s3://no-such-bucket/in", "o.jsonl"), capfd)
    last = refused(arguments("in", "s3://no-such-bucket/o.jsonl"), capfd)
    assert last == "naysay: mine: `--output` must be in an existing bucket, got 's3://no-such-bucket/o.jsonl'."
    assert sorted(path.name for path in Path().iterdir()) == ["in"]


def ask_moto(action, data=b""):
    address = f"{os.environ['AWS_ENDPOINT_URL']}/moto-api/{action}"
    request = urllib.request.Request(address, data=data, headers={"Content-Type": "text/plain"}, method="POST")
    urllib.request.urlopen(request).read()


def test_a_bucket_without_permission(store, files, capfd):
    uploaded(store, files)
    ask_moto("reset-auth", b"0")  # from now on credentials are checked, and ours are unknown
    try:
        last = refused(arguments("s3://bucket/in", "o.jsonl"), capfd)
        assert last.startswith(
            "naysay: mine: `pairs` must be a file that can be read, got 's3://bucket/in/pa irs#1%20', to"
        )
        assert last.endswith("to which the store denies access. Check the credentials.")
        assert "the store denies access" in refused(arguments("in", "s3://bucket/o.jsonl"), capfd)
    finally:
        ask_moto("reset-auth", b"inf")
    assert sorted(path.name for path in Path().iterdir()) == ["in"]
    assert "o.jsonl" not in keys(store)


def test_an_upload_appears_when_it_is_complete(store, tmp_path, monkeypatch):
    draft, url = tmp_path / "draft", Url("s3://bucket/out/large.bin")
    draft.write_bytes(os.urandom(24 << 20))  # three parts
    store.put_object(Key="out/large.bin", Body=b"old")
    upload_whole = places._upload

    def interrupted(*given):
        time.sleep(0.3)  # until the result is waited for
        interrupt_main()
        time.sleep(0.3)
        upload_whole(*given)

    monkeypatch.setattr(places, "_upload", interrupted)
    with pytest.raises(KeyboardInterrupt):
        places.upload("x", draft, url)
    assert body(store, "out/large.bin") == draft.read_bytes()


def test_a_server_that_is_gone_is_a_sentence_in_bounded_time(server, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    start = time.monotonic()
    with pytest.raises(NaysayError, match=r"`vectors` must be a file that can be read, got 's3://bucket/c.npy' \("):
        open_vectors("s3://bucket/c.npy")
    assert time.monotonic() - start < 120
    with pytest.raises(NaysayError, match="`json` must be a file that can be written, got"):
        places.write_whole("json", Url("s3://bucket/c.json"), b"x")


def test_gs_without_credentials_is_a_sentence_in_bounded_time(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "_GS_RETRIES", 1)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:9")  # no server of Google's
    with pytest.raises(NaysayError, match=r"must be a file that can be read, got 'gs://bucket/c.npy' \("):
        open_vectors("gs://bucket/c.npy")
