"""Nothing is removed that a job did not make, nothing is written that is not sound, and every refusal can be mended."""

import errno
import io
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import Encoder, World, in_parts, stopped

from naysay.errors import NaysayError
from naysay.formats import _whole_files as whole_files
from naysay.jobs import _parts as job_run
from naysay.jobs import command
from naysay.jobs.command import mine_files
from naysay.jobs.options import read_count, read_size
from tests.fuzz.rules import run


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, n=24, items=60)


@pytest.fixture
def whole(world):
    """The bytes of the output of a job that nothing disturbs."""
    world.run("whole.jsonl")
    return (world.folder / "whole.jsonl").read_bytes()


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


def test_a_folder_called_done_stays(world):
    (world.folder / "work.done").mkdir()
    (world.folder / "work.done" / "thesis.tex").write_text("years of work")
    world.run(job="work")
    assert tree(world.folder / "work.done") == {"thesis.tex": b"years of work"}


@pytest.mark.parametrize("content", ["{}", '{"naysay": "mine", "format": 2, "job": "0123456789abcdef"}', "", "[" * 10])
@pytest.mark.parametrize("given", [{}, {"fresh": True}, {"resume": True}])
def test_a_file_called_job_json_is_no_mark(world, content, given):
    folder = world.folder / "project"
    folder.mkdir()
    (folder / "job.json").write_text(content)
    (folder / "thesis.tex").write_text("years of work")
    before = tree(folder)
    message = refused(world, job="project", **given)
    assert "`--job` must be a new folder, or one of a job, got '" in message
    assert tree(folder) == before


@pytest.mark.parametrize("name", ["notes.txt", "part-000000000000-000000000005x", "lock.old", "known_scores.npy~"])
@pytest.mark.parametrize("given", [{"fresh": True}, {"resume": True}])
def test_a_file_of_a_user_in_the_folder_of_a_job(world, whole, monkeypatch, name, given):
    stopped(world, monkeypatch, 2)
    (world.job() / name).write_text("mine")
    before = tree(world.job())
    message = refused(world, **given)
    assert f"which holds {name!r}. Move it away, or pass another --job." in message
    assert tree(world.job()) == before
    (world.job() / name).unlink()
    world.run(**given)
    assert (world.folder / "out.jsonl").read_bytes() == whole
    assert not world.job().exists()


def test_a_file_that_comes_while_the_job_runs(world, monkeypatch, capsys):
    own = job_run.write_part
    monkeypatch.setattr(
        job_run, "write_part", lambda folder, part: ((world.job() / "notes.txt").write_text("mine"), own(folder, part))
    )
    world.run()
    assert tree(world.job()) == {"notes.txt": b"mine"}
    assert "is kept: it holds 'notes.txt', which the job did not make." in capsys.readouterr().err


def test_a_file_in_the_place_of_a_part(world, monkeypatch):
    own, name = job_run.write_part, "part-000000000000-000000000024"
    monkeypatch.setattr(
        job_run, "write_part", lambda folder, part: ((world.job() / name).write_text("mine"), own(folder, part))
    )
    assert f"which holds '{name}'" in refused(world)
    assert tree(world.job()) == {name: b"mine"}


def test_a_folder_that_was_there_stays(world):
    (world.folder / "empty").mkdir()
    world.run(job="empty")
    assert list((world.folder / "empty").iterdir()) == []
    world.job().mkdir()  # what a kill at the very end leaves
    world.run()
    assert not world.job().exists()


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


def test_outputs_in_the_folder_of_the_job(world):
    (world.folder / "work").mkdir()
    for given in ({"report": "work/r.html"}, {"encoded": world.folder / "work/e", "model": object(), **NO_VECTORS}):
        assert "must be outside of the folder of the job" in refused(world, job="work", **given)
    assert "`--job` must be another file than `--output`" in refused(world, job="out.jsonl")


def test_a_data_set_is_replaced_whole_and_nothing_beside_it(world, monkeypatch):
    output, turns = world.folder / "out.hf", []

    def write(draft, *given):
        draft.mkdir()
        turns.append(draft.name)
        (draft / "dataset_info.json").write_text(f"run {len(turns)}")
        return 1

    monkeypatch.setattr(whole_files, "need_datasets", lambda: None)
    monkeypatch.setattr(command, "_write", write)
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


# ---- damage -------------------------------------------------------------------------------------------------------


def flipped(path, place=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if place is None else place] ^= 4
    path.write_bytes(data)


def test_a_flipped_bit_in_any_file_is_noticed(world, whole, monkeypatch):
    """Parts are mined again; all else is an error that says what to do."""
    stopped(world, monkeypatch, 2, source=["bm25"])
    names = sorted(tree(world.job()))
    assert {"corpus_texts.bytes", "corpus_ids.keys", "known_indices.npy", "bm25.npy", "job.json"} < {*names}
    shutil.copytree(world.job(), world.folder / "copy")
    world.run("words.jsonl", source=["bm25"])
    for name in names:
        flipped(world.job() / name)
        if name.startswith("part-"):
            world.run(resume=True, source=["bm25"])
            assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "words.jsonl").read_bytes()
            (world.folder / "out.jsonl").unlink()
        else:
            message = refused(world, resume=True, source=["bm25"])
            fixed = "Move that folder away, and run again." if name == "job.json" else "Start again with --fresh."
            assert message.endswith(fixed)
            assert repr(name) in message or name in message
        shutil.rmtree(world.job(), ignore_errors=True)
        shutil.copytree(world.folder / "copy", world.job())


@pytest.mark.parametrize("name", ["corpus_texts.bytes", "known_indptr.npy", "known_filter.npy"])
def test_a_file_that_is_gone_is_noticed(world, monkeypatch, name):
    stopped(world, monkeypatch, 2)
    (world.job() / name).unlink()
    assert f"'{name}' in the folder of the job is damaged. Start again with --fresh." in refused(world, resume=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b'"x"', b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b"{}"],
    ids=len,
)
def test_a_damaged_record(world, monkeypatch, content):
    stopped(world, monkeypatch, 1)
    (world.job() / "job.json").write_bytes(content)
    before = tree(world.job())
    for given in ({"resume": True}, {"fresh": True}, {}):
        message = refused(world, **given)
        assert "whose job.json is damaged, or not of this version. Move that folder away, and run again." in message
    assert tree(world.job()) == before


# ---- inputs that change -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "option"), [("c.npy", "--corpus-vectors"), ("docs.parquet", "--corpus"), ("pairs.parquet", "pairs")]
)
@pytest.mark.parametrize("when", [0, 2, 4])
def test_an_input_that_is_replaced_by_one_of_the_same_size(world, whole, monkeypatch, name, option, when):
    in_parts(monkeypatch, 5)
    path, own, written = world.folder / name, job_run.write_part, []
    kept = world.folder / "kept"
    shutil.copy2(path, kept)
    other = bytearray(path.read_bytes())
    other[-40] ^= 1

    def write(folder, part):
        if len(written) == when:
            (world.folder / "other").write_bytes(other)
            os.replace(world.folder / "other", path)
        written.append(part.start)
        own(folder, part)

    with monkeypatch.context() as patched:
        patched.setattr(job_run, "write_part", write)
        message = refused(world)
    assert message == (
        f"mine: `{option}` must be the same file until the job is done, got a change of {str(path)!r}. "
        "Put it back and run again with --resume, or start again with --fresh."
    )
    assert not [file.name for file in world.folder.iterdir() if file.name.startswith(".naysay")]
    os.replace(kept, path)
    world.run(resume=when > 0)
    assert (world.folder / "out.jsonl").read_bytes() == whole


def test_an_input_that_changes_while_the_output_is_written(world, monkeypatch):
    own, path = command._finalize, world.folder / "docs.parquet"

    def finalize(*given):
        found = own(*given)
        flipped(path)
        return found

    monkeypatch.setattr(command, "_finalize", finalize)
    assert "`--corpus` must be the same file until the job is done" in refused(world, report="r.html")
    assert not (world.folder / "r.html").exists()


def test_an_identical_copy_is_the_same_input(world, whole, monkeypatch):
    in_parts(monkeypatch, 5)
    path, own = world.folder / "c.npy", job_run.write_part

    def write(folder, part):
        shutil.copyfile(path, world.folder / "copy")
        os.replace(world.folder / "copy", path)
        own(folder, part)

    monkeypatch.setattr(job_run, "write_part", write)
    world.run()
    assert (world.folder / "out.jsonl").read_bytes() == whole


# ---- two jobs, one output -----------------------------------------------------------------------------------------


def test_what_is_replaced_is_said(world, capsys):
    world.run(report="r.html")
    assert "already" not in capsys.readouterr().err
    world.run(report="r.html")
    said = capsys.readouterr().err
    for name in ("out.jsonl", "r.html"):
        assert f"{world.folder / name} is there already: it is replaced when the job is done.\n" in said


def test_two_jobs_with_one_output(world, monkeypatch):
    own, messages = job_run.write_part, []

    def write(folder, part):
        if not messages:
            messages.append("")
            messages[0] = refused(world, job="second", k="3")
        own(folder, part)

    monkeypatch.setattr(job_run, "write_part", write)
    world.run(job="first")
    assert messages == [f"mine: another job is writing {str(world.folder / 'out.jsonl')!r}. Wait for it, or stop it."]
    assert not [file.name for file in world.folder.iterdir() if file.name.startswith(".") or file.is_dir()]


def test_a_lock_of_a_killed_process_is_taken_over_and_a_file_of_a_user_is_not(world):
    lock = world.folder / ".out.jsonl.naysay-lock"
    lock.write_text("mine")
    assert f"which holds {lock.name!r}. Move it away" in refused(world)
    assert lock.read_text() == "mine"
    lock.write_text("naysay job 0123456789abcdef\n")
    world.run()
    assert not lock.exists()


# ---- a refusal that is mended -------------------------------------------------------------------------------------

NO_VECTORS = {"query_vectors": None, "corpus_vectors": None}


@pytest.mark.parametrize("first", [{"on_short": "raise", "judge": "absolute:0.1"}, {"judge": "calibrated:0.001"}])
def test_a_job_that_is_refused_again_and_again(world, first):
    """No refusal leaves a folder that refuses the corrected run, and no text is encoded twice."""
    model = Encoder()
    given = {"model": model, **NO_VECTORS, "depth": 20}
    refused(world, **given | first)
    seen = model.seen
    assert seen
    for wrong in ({"budget": "1MB"}, {"judge": "calibrated:0.001"}, {"k": "auto", "judge": "none"}):
        refused(world, **given | wrong)
    world.run(**given)
    assert model.seen == seen
    assert not world.job().exists()


def test_a_missing_package_leaves_no_job(world, monkeypatch):
    from naysay.errors import MissingExtraError
    from naysay.jobs import _prepare

    def missing(*given, **options):
        raise MissingExtraError("bm25s is not installed")

    with monkeypatch.context() as patched:
        patched.setattr(_prepare, "bm25", missing)
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


def test_other_prompts_are_another_job(world, monkeypatch):
    given = {"model": Encoder(), **NO_VECTORS}
    stopped(world, monkeypatch, 1, **given)
    for name, value in (("query_prompt", "q"), ("corpus_prompt", "c"), ("batch_size", 3)):
        message = refused(world, **given, resume=True, **{name: value})
        assert f"got another --{name.replace('_', '-')} (" in message


def test_the_device_is_passed_on(world, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "naysay.encode.model.load_model", lambda name, *, device: asked.append((name, device)) or Encoder()
    )
    world.run(model="folder", device="cpu", **NO_VECTORS)
    assert asked == [("folder", "cpu")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"query_prompt": "q"}, "`--query-prompt` must be left out without `--model`, got 'q'."),
        ({"device": "nowhere"}, "`--device` must be one that torch can use here, got 'nowhere'."),
        ({"device": "meta"}, "`--device` must be a device that holds numbers, got 'meta'."),
        ({"batch_size": 0}, "`--batch-size` must be at least 1, got 0."),
    ],
    ids=["prompt", "device", "device without memory", "batch size"],
)
def test_options_of_a_model_that_are_refused(world, given, message):
    assert refused(world, **given).startswith(f"mine: {message}")


@pytest.mark.parametrize(
    ("read", "text"), [(read_size, "9" * 400), (read_size, "9" * 5000), (read_size, "1e3"), (read_count, "9" * 5000)]
)
def test_numbers_of_many_digits(read, text):
    with pytest.raises(NaysayError, match=r"^`--it` must be a "):
        read("--it", text)


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
    "no xz": (".jsonl.xz", b"plain"),
    "no parquet": (".parquet", b"PAR1"),
    "empty": (".jsonl", b""),
    "list": (".jsonl", b"[]\n"),
    "rows of other lengths": (".csv", b"anchor,positive\na,b,c,d\n"),
    "nested": (".jsonl", b"[" * 100_000),
    "nested objects": (".jsonl", b'{"anchor": 1, "positive": 1, "id": 1, "text": "a"}\n' + b'{"anchor":' * 50_000),
    "null": (".jsonl", b'{"anchor": null, "positive": null, "id": null, "text": null}\n'),
    "numbers": (".jsonl", b'{"anchor": 0.5, "positive": NaN, "id": 0.5, "text": 7}\n'),
}


@pytest.mark.parametrize("option", ["pairs", "corpus", "queries", "ignore"])
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


@pytest.mark.parametrize("option", ["query_vectors", "corpus_vectors"])
@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".parquet", ".bin"])
@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PAR1" * 9, json.dumps({"a": 1}).encode(), NESTED])
def test_malformed_vectors_are_named(world, option, suffix, content):
    (world.folder / f"bad{suffix}").write_bytes(content)
    message = refused(world, **{option: f"bad{suffix}"})
    assert message.startswith(f"mine: `--{option.replace('_', '-')}` must be "), message
