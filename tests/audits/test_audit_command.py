"""The command `audit`: what it prints and writes, when it fails, and its errors."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from family_world import families, with_planted
from rich.console import Console

import naysay as ns
from naysay._commands import AuditOptions
from naysay.audits import command
from naysay.audits.command import audit_command, terminal_safe
from naysay.formats import write_negatives

WORLD = families(200, sizes=(2,), others=100)
NASTY = "\x1b[31mred\x1b[0m \u202eleft\u202c \u0007 line\nend [bold]not markup[/bold] 你好"
QUERIES = [f"{NASTY} {row}" for row in range(200)]
CORPUS = [f"document number {row} about {row % 7} things and {row % 31} more" for row in range(500)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A training set of nearest negatives with texts, one by ids, and the vectors."""
    folder = tmp_path_factory.mktemp("sets")
    mined = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 8, judge=None)
    mined.write(folder / "train.jsonl", "triplet", query_texts=QUERIES, corpus_texts=CORPUS)
    mined.write(folder / "train.parquet", "ids")
    np.save(folder / "q.npy", WORLD.anchor_vectors)
    np.save(folder / "c.npy", WORLD.item_vectors)
    (folder / "c.txt").write_text("\n".join(CORPUS) + "\n")
    return folder


def vectors(files):
    return {"query_vectors": files / "q.npy", "corpus_vectors": files / "c.npy"}


def printed(path, width=80, encoding="utf-8", **options):
    """Whether the set passes, and the text of a call."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    passes = audit_command(AuditOptions(negatives=path, **options), console=Console(file=out, width=width))
    out.flush()
    return passes, out.buffer.getvalue().decode(encoding)


def refusal(call, *arguments, **options):
    with pytest.raises(ns.NaysayError) as caught:
        call(*arguments, **options)
    return str(caught.value)


# ---- what is printed and written ------------------------------------------------------------------------------------


def test_what_to_do_the_findings_the_worst_rows_and_the_next_lines(files, tmp_path, capsys):
    passes, text = printed(files / "train.parquet", **vectors(files), json=tmp_path / "out.json", width=100)
    kept = json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    lines = text.splitlines()
    assert passes
    joined = " ".join(text.split())
    assert joined.startswith(f"{kept['summary']} {kept['advice'][0]}")
    assert "--fix OUT would drop these negatives: suspected" in joined
    for part in ("1,600 negatives of 200 anchors", "The 10 worst rows:", kept["rule"], *kept["notes"]):
        assert part in joined
    assert {f"  {command}" for command in kept["commands"]} <= {*lines}
    assert max(len(line) for line in lines if not line.startswith("  naysay")) <= 100
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_texts_of_others_do_nothing_to_the_terminal(files, encoding):
    _, text = printed(files / "train.jsonl", width=60, encoding=encoding, top=3)
    assert not [each for each in text if each != "\n" and not each.isprintable()]
    assert text.count("   anchor    ") == 0  # neither scores nor copies: nothing to show
    _, text = printed(
        files / "train.jsonl",
        width=100,
        encoding=encoding,
        top=3,
        query_vectors=files / "q.npy",
        corpus_vectors=files / "c.npy",
        corpus_ids=files / "c.txt",
    )
    assert not [each for each in text if each != "\n" and not each.isprintable()]
    assert text.count("   anchor    ") == 3
    assert "[bold]not markup" in text


def test_it_fixes_the_set(files, tmp_path):
    out = tmp_path / "fixed.parquet"
    _, text = printed(files / "train.parquet", **vectors(files), fix=out, fix_reasons="suspected")
    assert "fixed.parquet has 200 of 200 rows. Dropped negatives:" in " ".join(text.split())
    dropped = len((tmp_path / "fixed.changes.jsonl").read_text().splitlines())
    assert (ns.formats.read_negatives(out).ids >= 0).sum() == 1600 - dropped < 1600
    for options in (
        {"fix": tmp_path / "a.jsonl"},
        {"fix": files / "train.parquet"},
        {"fix_reasons": "suspected"},
        {"fix": out, "fix_reasons": "copies"},
    ):
        with pytest.raises(ns.NaysayError, match=r"^audit: `--fix"):
            printed(files / "train.parquet", **options)


def test_what_fix_cannot_do_is_known_before_anything_is_written(files, tmp_path):
    fix = {"fix": tmp_path / "a.parquet"}
    for options in ({"fix_reasons": "copies", "json": tmp_path / "a.json"}, {"json": tmp_path / "a.changes.jsonl"}):
        with pytest.raises(ns.NaysayError, match=r"^audit: `--fix"):
            printed(files / "train.parquet", **fix, **options)
    assert not [*tmp_path.iterdir()]


def test_a_set_without_findings_is_copied(files, tmp_path):
    _, text = printed(files / "train.parquet", fix=tmp_path / "a.parquet")
    assert "has 200 of 200 rows. No negative was dropped." in " ".join(text.split())
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(files / "train.parquet"))


def test_a_model_encodes_the_texts_in_the_order_of_the_set(files, tmp_path, monkeypatch):
    asked = []

    def encode_texts(model, texts, *, folder, prompt=None, **others):
        asked.append((model, len(texts), folder, prompt))
        side, names = (WORLD.anchor_vectors, QUERIES) if len(texts) == 200 else (WORLD.item_vectors, CORPUS)
        rows = {name.encode("utf-8", "replace"): row for row, name in enumerate(names)}
        np.save(tmp_path / f"{len(texts)}.npy", side[[rows[text.encode("utf-8", "replace")] for text in texts]])
        return tmp_path / f"{len(texts)}.npy"

    monkeypatch.setattr("naysay.encode.texts.encode_texts", encode_texts)
    monkeypatch.setattr("naysay.encode.model.load_model", lambda name, device: f"{name} on {device}")
    _, text = printed(files / "train.jsonl", model="M", query_prompt="q: ", device="cpu")
    assert asked[0] == ("M on cpu", 200, files / ".train.jsonl.vectors", "q: ")
    assert asked[1][0] == "M on cpu"
    assert asked[1][3] is None
    assert "1,600 negatives" in text
    assert "score " in text
    message = "audit: `--model` must be left out where the set has no texts of queries, got 'M'. Pass vectors."
    assert refusal(printed, files / "train.parquet", model="M") == message


def cache_of_one(function):
    """The function, called once: other calls return the same."""
    found = []

    def call(*given, **options):
        if not found:
            found.append(function(*given, **options))
        return found[0]

    return call


# ---- the gate -------------------------------------------------------------------------------------------------------


def test_it_fails_above_the_limit_and_not_at_it(files, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "audit", cache_of_one(command.audit))
    printed(files / "train.parquet", **vectors(files), json=tmp_path / "out.json")  # the same audit for all limits
    share = json.loads((tmp_path / "out.json").read_text())["false_share"]
    assert 0.05 < share["estimate"] < share["high"] < 1
    upper = f"the upper end of the 95 % CI of the false share is {100 * share['high']:.1f} %"
    estimate = f"its estimate is {100 * share['estimate']:.1f} %"
    between = (share["estimate"] + share["high"]) / 2
    for options, expected, said in (
        ({"fail_above": "2%"}, False, f"fails --fail-above 2.0 %: {upper}; {estimate}."),
        ({"fail_above": "0.02"}, False, f"fails --fail-above 2.0 %: {upper}; {estimate}."),
        ({"fail_above": repr(between)}, False, f"fails --fail-above {100 * between:.1f} %: {upper}; {estimate}."),
        ({"fail_above": repr(share["high"])}, True, f"{upper}; {estimate}."),
        ({"fail_above": repr(between), "fail_on": "estimate"}, True, f"{estimate}; {upper}."),
        ({"fail_above": repr(share["estimate"]), "fail_on": "estimate"}, True, f"{estimate}; {upper}."),
        ({"fail_above": "2%", "fail_on": "estimate"}, False, f"fails --fail-above 2.0 %: {estimate}; {upper}."),
        ({"fail_above": "100 %"}, True, f"passes --fail-above 100.0 %: {upper}; {estimate}."),
    ):
        passes, text = printed(files / "train.parquet", width=300, **vectors(files), **options)
        assert passes is expected
        assert text.splitlines()[-1].startswith("The set passes " if expected else "The set fails ")
        assert text.splitlines()[-1].endswith(said)


def test_a_set_with_random_false_negatives_fails(files, tmp_path):
    """`--fail-above 6%` passed a set of which 9.1 % were planted false negatives."""
    judged = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 8, judge="calibrated")
    ids = with_planted(WORLD, judged.ids, 0.1)
    truth = WORLD.false_negative_rate(np.arange(200), ids)
    assert 0.06 < truth < 0.12
    path = tmp_path / "planted.parquet"
    write_negatives(path, "ids", ids=ids, positives=WORLD.known)
    passes, text = printed(path, width=300, **vectors(files), fail_above="6%")
    assert not passes
    assert "The set fails --fail-above 6.0 %: the upper end" in text.splitlines()[-1]
    assert printed(files / "train.parquet", **vectors(files), fail_above="6%")[0] is False


def test_a_gate_needs_an_estimate(files):
    message = "audit: `--fail-on` must be one of 'upper', 'estimate', got 'lower'."
    assert refusal(printed, files / "train.jsonl", fail_on="lower").startswith(message)
    sentence = refusal(printed, files / "train.jsonl", fail_above="2%")
    assert sentence.startswith("audit: `--fail-above` ")
    assert "unknown" in sentence
    assert sentence.endswith("Pass vectors, or a model.")


def test_nothing_is_written_over_what_is_read(files, tmp_path):
    before = (files / "train.parquet").read_bytes()
    message = refusal(printed, files / "train.parquet", json=files / "train.parquet")
    assert message.startswith("audit: `--json` must be another file than `negatives`, got ")
    same = {"json": tmp_path / "a.html", "report": tmp_path / "a.html"}
    assert "`--report` must be another file than `--json`" in refusal(printed, files / "train.parquet", **same)
    message = refusal(printed, files / "train.parquet", report=tmp_path / "a.pdf")
    assert message.startswith("audit: `--report` must be a file that ends in .html, got ")
    assert (files / "train.parquet").read_bytes() == before


@pytest.mark.parametrize("limit", ["", "2 per cent", "-1", "101%", "1.5", "%", "nan"])
def test_limits_that_are_no_share(files, limit):
    message = f"audit: `--fail-above` must be a share from 0 to 1, or 0% to 100%, got {limit!r}."
    assert refusal(printed, files / "train.parquet", fail_above=limit) == message


# ---- parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "width", "encoding", "shown"),
    [
        ("plain", 10, "utf-8", "plain"),
        ("  two\n lines\t", 20, "utf-8", "two lines"),
        ("abcdefghij", 5, "utf-8", "abcd…"),
        ("abcdefghij", 5, "ascii", "ab..."),
        ("你好你好", 5, "utf-8", "你好…"),
        ("a\x1b[2Jb\u202ec\ud800", 20, "utf-8", "a\ufffd[2Jb\ufffdc\ufffd"),
        ("é\u200b", 9, "ascii", "??"),
        ("x" * 1_000_000, 4, "utf-8", "xxx…"),
        ("", 4, "utf-8", ""),
    ],
)
def test_terminal_safe(text, width, encoding, shown):
    assert terminal_safe(text, width, encoding) == shown


def test_errors_come_before_anything_is_printed_or_written(files, tmp_path):
    out = io.StringIO()
    console, target = Console(file=out), tmp_path / "out.json"
    for options, message in (
        ({"model": "M", **vectors(files)}, "`--model` must be left out where vectors are given, got 'M'."),
        ({"query_prompt": "q"}, "`--query-prompt` must be left out without --model, got 'q'."),
        ({"json": tmp_path}, f"`--json` must be a file, got the folder {str(tmp_path)!r}."),
        ({"report": tmp_path / "no" / "a.html"}, "`--report` must be in an existing folder, got "),
        (
            {"query_vectors": files / "q.npy"},
            "`--corpus-vectors` must be given along with the other vectors, got nothing.",
        ),
        ({"alpha": 2.0}, "`--alpha` must be a number above 0 and below 1, got 2.0."),
        ({"metric": "foo"}, "`--metric` must be one of 'dot', 'cosine', 'l2', got 'foo'."),
        ({"corpus_ids": files / "x.txt"}, "`--corpus-ids` must be left out without vectors, got names."),
    ):
        given = AuditOptions(**({"negatives": files / "train.parquet", "json": target} | options))
        message_got = refusal(audit_command, given, console=console)
        assert message_got.startswith(f"audit: {message}")
    assert out.getvalue() == ""
    assert not target.exists()


# ---- nothing is lost, and sentences are plain -----------------------------------------------------------------------


def test_files_are_written_before_printing_which_a_closed_pipe_ends(files, tmp_path):
    class Closed(io.StringIO):
        def write(self, text):
            raise RuntimeError("closed")

    options = AuditOptions(
        negatives=files / "train.parquet", **vectors(files), json=tmp_path / "a.json", report=tmp_path / "a.html"
    )
    with pytest.raises(RuntimeError, match="closed"):
        audit_command(options, console=Console(file=Closed()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.json"]


# ---- a reviewer -----------------------------------------------------------------------------------------------------


def test_people_answer_in_a_file_and_the_next_call_reads_it(files, tmp_path):
    train = tmp_path / "train.jsonl"
    corpus = [f"document {row}" for row in range(500)]
    mined = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 8, judge=None)
    mined.write(train, "flagembedding", query_texts=[f"query {row}" for row in range(200)], corpus_texts=corpus)
    _, text = printed(train, reviewer="people", review=100)
    assert "train.review.csv" in text
    assert "--fix OUT would change nothing" in text
    head, *rows = csv.reader((tmp_path / "train.review.csv").read_text().splitlines())
    assert len(rows) == 100
    false = [WORLD.truth.contains([int(row[1].split()[1])], [int(row[3].split()[1])])[0] for row in rows]
    with (tmp_path / "train.review.csv").open("w", newline="") as stream:
        answered = [[*row[:-1], "yes" if one else "no"] for row, one in zip(rows, false, strict=True)]
        csv.writer(stream).writerows([head, *answered])
    options = {"reviewer": "people", "review": 100, "fix": tmp_path / "fixed.jsonl", "false_negatives": "positive"}
    _, text = printed(train, **options, width=200)
    assert f"reviewed     100 negatives, {sum(false)} false; of what --fix leaves" in text
    assert f"{sum(false)}, positives now" in text
    changes = [json.loads(line) for line in (tmp_path / "fixed.changes.jsonl").read_text().splitlines()]
    assert [change["now"] for change in changes if change["reason"] == "reviewed"] == ["positive"] * sum(false)
    positives = [len(json.loads(line)["pos"]) for line in (tmp_path / "fixed.jsonl").read_text().splitlines()]
    assert sum(positives) == 200 + sum(false)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"reviewer": "people"}, "`--review`"),
        ({"reviewer": "people", "review": 0}, "`--review`"),
        ({"review": 10}, "`--review`"),
        ({"answers": Path("a.jsonl")}, "--answers"),
        ({"reviewer": "someone", "review": 10}, "--reviewer"),
        ({"reviewer": "encoder:./no such folder", "review": 10}, "no such folder"),
        ({"reviewer": "llm:m@http://127.0.0.1:9/v1", "review": 10}, "--reviewer"),
        ({"reviewer": "people", "review": 10, "review_file": Path("a.txt")}, "--review-file"),
        ({"false_negatives": "positive"}, "--false-negatives"),
        ({"reviewer": "people", "review": 9, "fix": Path("x.jsonl"), "false_negatives": "positive"}, "one positive"),
    ],
)
def test_a_review_that_cannot_be_done_ends_the_command_before_it_reads(files, monkeypatch, options, option):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(files)
    assert option in refusal(printed, files / "train.jsonl", **options)
    assert not (files / "x.jsonl").exists()


def test_a_reviewer_of_texts_needs_texts(files, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    text = refusal(printed, files / "train.parquet", reviewer="llm:m@http://127.0.0.1:9/v1", review=10)
    assert "given with texts" in text
