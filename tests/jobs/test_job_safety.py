"""Nothing is removed that a job did not make, nothing is written that is not sound, and every refusal can be mended."""

import errno
import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import Encoder, World

from naysay.errors import NaysayError
from naysay.jobs import command, outputs
from naysay.jobs.command import mine_files
from tests.fuzz.rules import run


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, n=24, items=60)


def tree(folder):
    """{name: bytes} of all files below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refused(world, **given):
    """The sentence with which the job ends; nothing is published."""
    output = world.folder / "out.jsonl"
    before = output.read_bytes() if output.exists() else None
    with pytest.raises(NaysayError) as error:
        world.run(**given)
    assert (output.read_bytes() if output.exists() else None) == before
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("output", ["", "/", "."])
def test_an_output_without_a_name(world, output):
    with pytest.raises(NaysayError, match=r"^mine: `--output` must be a file, got the folder '"):
        mine_files(
            world.folder / "pairs.parquet",
            output=Path(output),
            query_vectors=world.folder / "q.npy",
            corpus_vectors=world.folder / "c.npy",
        )


# ---- what may be removed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", [".", "", "..", "sub/.."])
def test_a_job_needs_a_folder_of_its_own(world, monkeypatch, job):
    (world.folder / "sub").mkdir()
    monkeypatch.chdir(world.folder)
    command = ["mine", "pairs.parquet", "--corpus", "docs.parquet", "-o", "o.jsonl"]
    command += ["--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "--job", job]
    before = tree(world.folder)
    done = run(command)
    assert done.code == 2
    assert done.err.startswith("naysay: mine: `--job` must be a folder of its own, got '")
    assert done.err.count("\n") == 1
    assert tree(world.folder) == before


def test_a_data_set_is_replaced_whole_and_nothing_beside_it(world, monkeypatch):
    output, turns = world.folder / "out.hf", []

    def write(draft, *given):
        draft.mkdir()
        turns.append(draft.name)
        (draft / "dataset_info.json").write_text(f"run {len(turns)}")
        return 1

    monkeypatch.setattr(outputs, "need_datasets", lambda: None)
    monkeypatch.setattr(outputs, "write_training_file", write)
    given = {"output": "out.hf", "format": "triplet", "with_scores": False}
    for turn in ("run 1", "run 2"):
        world.run(**given)
        assert tree(output) == {"dataset_info.json": turn.encode()}
    own = os.replace

    def broken(source, target):
        if Path(target) == output and Path(source).name == turns[-1]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        own(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", broken)
        with pytest.raises(NaysayError, match=r"out\.hf' cannot be written \(Input/output error\)\. Nothing is lost"):
            world.run(**given)
    assert tree(output) == {"dataset_info.json": b"run 2"}
    (output / "notes.txt").write_text("mine")
    with pytest.raises(NaysayError, match=r"`--output` must be a data set and nothing else, got .* holds 'notes\.txt'"):
        world.run(**given, resume=True)
    assert (output / "notes.txt").read_text() == "mine"
    (output / "notes.txt").unlink()
    world.run(**given, resume=True)
    assert tree(output) == {"dataset_info.json": b"run 4"}
    assert not [file.name for file in world.folder.iterdir() if file.name.startswith(".")]


# ---- inputs that change -------------------------------------------------------------------------------------------


def test_an_input_that_changes_while_the_output_is_written(world, monkeypatch):
    own, path = command.write_outputs, world.folder / "docs.parquet"

    def finalize(*given):
        found = own(*given)
        path.write_bytes(path.read_bytes() + b" ")
        return found

    monkeypatch.setattr(command, "write_outputs", finalize)
    assert "`--corpus` must be the same file until the job is done" in refused(world, report="r.html")
    assert not (world.folder / "r.html").exists()


# ---- a refusal that is mended -------------------------------------------------------------------------------------

NO_VECTORS = {"query_vectors": None, "corpus_vectors": None}


def test_a_missing_package_leaves_no_job(world, monkeypatch):
    from naysay.errors import MissingExtraError
    from naysay.jobs import prepare

    def missing(*given, **options):
        raise MissingExtraError("bm25s is not installed")

    with monkeypatch.context() as patched:
        patched.setattr(prepare, "bm25", missing)
        with pytest.raises(MissingExtraError):
            world.run(source=["bm25"])
    world.run(source=["bm25"])


# ---- the options of a model, and numbers --------------------------------------------------------------------------


def test_prompts_and_batches_reach_the_model(world):
    model = Encoder()
    given = {"model": model, **NO_VECTORS, "encoded": world.folder / "vectors"}
    world.run(**given, query_prompt="q: ", corpus_prompt="c: ", batch_size=7)
    assert [options["prompt"] for options in model.options] == ["q: ", "c: "]
    assert {options["batch_size"] for options in model.options} == {7}
    seen = model.seen
    world.run(**given, query_prompt="q: ", corpus_prompt="c: ", batch_size=8)
    assert model.seen == seen  # the same vectors
    world.run(**given, corpus_prompt="c: ")
    assert model.seen == seen + 24  # other vectors of the anchors


# ---- who is blamed ------------------------------------------------------------------------------------------------


def _no_utf8():
    """A Parquet file of strings that are not UTF-8, as a flipped bit leaves it."""
    bytes_of_file = io.BytesIO()
    column = pa.array([b"\xe5\x28"], pa.binary()).view(pa.string())
    pq.write_table(pa.table(dict.fromkeys(("anchor", "positive", "id", "text"), column)), bytes_of_file)
    return bytes_of_file.getvalue()


MALFORMED = {
    "strings that are not utf-8": (".parquet", _no_utf8()),
    "not json": (".jsonl", b'{"anchor": 1, "positive": 2}\n{"anchor": \n'),
    "not utf-8": (".csv", b"anchor,positive\n\xff\xfe,1\n"),
    "cut off": (".jsonl.gz", b"\x1f\x8b\x08\x00"),
    "no gzip": (".jsonl.gz", b"plain"),
    "no parquet": (".parquet", b"PAR1"),
    "empty": (".jsonl", b""),
    "list": (".jsonl", b"[]\n"),
    "rows of other lengths": (".csv", b"anchor,positive\na,b,c,d\n"),
    "nested": (".jsonl", b"[" * 100_000),
    "nested objects": (".jsonl", b'{"anchor": 1, "positive": 1, "id": 1, "text": "a"}\n' + b'{"anchor":' * 50_000),
    "null": (".jsonl", b'{"anchor": null, "positive": null, "id": null, "text": null}\n'),
    "numbers": (".jsonl", b'{"anchor": 0.5, "positive": NaN, "id": 0.5, "text": 7}\n'),
}


@pytest.mark.parametrize("option", ["pairs", "corpus"])
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_input_is_named(world, option, kind):
    suffix, content = MALFORMED[kind]
    (world.folder / f"bad{suffix}").write_bytes(content)
    names = {option, f"{option}-column", "anchor-column", "positive-column"}
    message = refused(world, **{option: f"bad{suffix}"})
    blamed = message.split("`")[1].removeprefix("--")
    assert blamed in names, message
    assert not world.job().exists()


NESTED = (50_000).to_bytes(8, "little") + b"[" * 50_000  # the header of a .safetensors file


@pytest.mark.parametrize("option", ["corpus_vectors"])
@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".parquet", ".bin"])
@pytest.mark.parametrize("content", [b"", b"PAR1" * 9, NESTED])
def test_malformed_vectors_are_named(world, option, suffix, content):
    (world.folder / f"bad{suffix}").write_bytes(content)
    message = refused(world, **{option: f"bad{suffix}"})
    assert message.startswith(f"mine: `--{option.replace('_', '-')}` must be "), message
