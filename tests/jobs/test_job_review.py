"""`--review` writes pairs for a person to label, and `--reviewed` corrects the estimate by them."""

import csv
import json
import os
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import Families, in_parts, lines, stopped

import naysay as ns
from naysay import cli
from naysay.detectors.reviewer import COLUMNS
from naysay.errors import NaysayError
from naysay.mining import mine

N = 240


class Easy(Families):
    """The labelled document of each anchor is the nearest of its three: scores alone see no false negatives."""

    def __init__(self, folder):
        super().__init__(folder, n=N, others=900)
        unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (self.queries, self.corpus)]
        own = np.einsum("nd,npd->np", unit[0], unit[1][: 3 * N].reshape(N, 3, -1))
        self.labelled = 3 * np.arange(N) + own.argmax(axis=1)
        pairs = {"anchor": [f"q{row}" for row in range(N)], "positive": [f"d{row}" for row in self.labelled]}
        pq.write_table(pa.table(pairs), folder / "pairs.parquet")

    def answers(self, rows):
        """Whether each pair of a review is a false negative."""
        pairs = [(int(row["query_id"][1:]), int(row["document_id"][1:])) for row in rows]
        return [item < 3 * N and item // 3 == anchor for anchor, item in pairs]


@pytest.fixture
def world(tmp_path):
    return Easy(tmp_path)


def read(path):
    """The rows of a review."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))
    return lines(path) if path.suffix == ".jsonl" else pq.read_table(path).to_pylist()


def write(path, rows):
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


def filled(world, path, form=("no", "yes"), some=None):
    rows = read(path)
    for row, answer in zip(rows[:some], world.answers(rows), strict=False):
        row["false_negative"] = form[answer]
    write(path, rows)
    return rows


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_review_and_back(world, capsys, ending):
    file = world.folder / f"asked{ending}"
    first = world.run(review=100, review_file=file)
    shown = capsys.readouterr().out
    assert f"Next: write yes (a false negative) or no in the column false_negative of {file}, for some" in shown
    assert f"then mine again with --reviewed {file}." in shown
    assert first.review == file
    assert first.false_negatives.startswith("unknown (the labelled positives look like the easiest of their anchors")
    rows = read(file)
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len({(row["query_id"], row["document_id"]) for row in rows}) == 100
    nearest = mine(world.queries, world.corpus, world.labelled, 5, judge=None)
    scores = {(f"q{a}", f"d{i}"): s for a in range(N) for i, s in zip(nearest.ids[a], nearest.scores[a], strict=True)}
    for row in rows:
        assert float(row["score"]) == pytest.approx(scores[row["query_id"], row["document_id"]], abs=1e-6)
        assert 0 <= float(row["posterior"]) <= 1
        assert (row["query"], row["document"]) == ("", row["document_id"])
        assert row["false_negative"] == ""
    filled(world, file)
    second = world.run("second.jsonl", reviewed=file)
    yes = sum(world.answers(rows))
    assert f"It is corrected: {yes} of 100 reviewed pairs are false negatives: {yes}.0 % (95 % CI" in second.rule
    estimate = second.rule.partition(": ")[2]
    truth = 100 * 2 / 5
    assert float(estimate.split()[0]) == pytest.approx(truth, rel=0.3)
    low, high = (float(part) for part in estimate.partition("CI ")[2].partition(")")[0].split(" to "))
    assert low < truth < high
    assert world.share(world.folder / "second.jsonl") < 0.1
    anchors, items = (np.array([int(row[name][1:]) for row in rows]) for name in ("query_id", "document_id"))
    given = anchors, items, np.array(world.answers(rows))
    mined = mine(world.queries, world.corpus, world.labelled, 5, reviewed=given)
    assert mined.rule == second.rule
    assert world.ids(world.folder / "second.jsonl") == mined.ids.tolist()
    known = {*zip(anchors[given[2]].tolist(), items[given[2]].tolist(), strict=True)}
    assert not any((row, item) in known for row, ids in enumerate(mined.ids.tolist()) for item in ids)


def test_the_pairs_are_those_of_python(world, monkeypatch):
    drawn = mine(world.queries, world.corpus, world.labelled, 5).pairs_to_review(30)
    in_parts(monkeypatch, 50)
    file = world.folder / "asked.jsonl"
    world.run(review=30, review_file=file)
    rows = read(file)
    assert [row["query_id"] for row in rows] == [f"q{anchor}" for anchor in drawn.anchors]
    assert [row["document_id"] for row in rows] == [f"d{item}" for item in drawn.items]
    np.testing.assert_allclose([row["posterior"] for row in rows], drawn.posterior, atol=1e-6)


def test_other_judges_are_measured_by_it(world):
    first = world.run(judge="share:0.95", review=60)
    file = world.folder / "out.review.csv"
    filled(world, file)
    second = world.run(judge="share:0.95", reviewed=file)
    assert first.rule == second.rule
    truth = world.share(world.folder / "out.jsonl")
    assert first.false_negatives.startswith("unknown (the labelled positives look like the easiest")
    assert second.false_negatives.low < truth < second.false_negatives.high


def test_after_a_stop(world, monkeypatch):
    file = world.folder / "whole.csv"
    world.run("whole.jsonl", review=40, review_file=file)
    stopped(world, monkeypatch, 2, rows=50, review=40)
    world.run(resume=True, review=40)
    assert (world.folder / "out.review.csv").read_bytes() == file.read_bytes()
    filled(world, file)
    world.run("whole.jsonl", reviewed=file)
    stopped(world, monkeypatch, 2, rows=50, reviewed=file)
    rows = read(file)
    rows[0]["false_negative"] = {"yes": "no", "no": "yes"}[rows[0]["false_negative"]]
    before = file.read_bytes()
    write(file, rows)
    with pytest.raises(NaysayError, match="another content of --reviewed"):
        world.run(resume=True, reviewed=file)
    file.write_bytes(before)
    world.run(resume=True, reviewed=file)
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()


def test_a_file_that_is_there_is_not_replaced(world):
    file = world.folder / "out.review.csv"
    file.write_text("filled in by hand")
    with pytest.raises(NaysayError, match=r"`--review-file` must be a new file, .* got '.*out\.review\.csv'\. Move it"):
        world.run(review=10)
    assert file.read_text() == "filled in by hand"


def test_rows_without_ids(world):
    """Without ids, a review names rows."""
    rows = "".join(f'{{"anchor": {row}, "positive": {item}}}\n' for row, item in enumerate(world.labelled))
    (world.folder / "rows.jsonl").write_text(rows)
    files = {"pairs": "rows.jsonl", "corpus": None, "queries": None}
    world.run(**files, review=50)
    file = world.folder / "out.review.csv"
    found = read(file)
    assert {row["query"] + row["document"] for row in found} == {""}
    for row in found:
        a, i = int(row["query_id"]), int(row["document_id"])
        row["false_negative"] = "yes" if i < 3 * N and i // 3 == a else "no"
    write(file, found)
    assert " of 50 reviewed pairs are false negatives" in world.run(**files, reviewed=file).rule


def test_a_stated_labelled_share(world):
    said = world.run(labelled_share=1 / 3)
    assert "labelled positives, which are 33.3333 % of all positives, as stated." in said.rule
    mined = mine(world.queries, world.corpus, world.labelled, 5, labelled_share=1 / 3)
    assert mined.rule.partition(" A review")[0] == said.rule.partition(" A review")[0]
    assert world.ids(world.folder / "out.jsonl") == mined.ids.tolist()


NASTY = ['=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(A1)", "\tx", "'=1", "''-1", "'tis", "=", "plain"]


def test_a_review_has_no_formulas_and_is_read_back(tmp_path):
    world = ns.planted_world(len(NASTY) * 4, 120, per_anchor=2, known_share=0.5)
    names = [f"{NASTY[row % len(NASTY)]}{row}" for row in range(120)]
    anchors, items = world.known.pairs()
    pairs = [{"anchor": names[anchor], "positive": names[item]} for anchor, item in zip(anchors, items, strict=True)]
    documents = [{"id": name, "text": f"{name} text"} for name in names]
    for file, rows in (("pairs", pairs), ("docs", documents), ("queries", documents[: len(NASTY) * 4])):
        (tmp_path / f"{file}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    np.save(tmp_path / "q.npy", world.anchor_vectors)
    np.save(tmp_path / "c.npy", world.item_vectors)
    review = tmp_path / "review.csv"
    words = ["mine", str(tmp_path / "pairs.jsonl"), "-k", "2"]
    for option, file in (("corpus", "docs.jsonl"), ("queries", "queries.jsonl")):
        words += [f"--{option}", str(tmp_path / file)]
    words += ["--query-vectors", str(tmp_path / "q.npy"), "--corpus-vectors", str(tmp_path / "c.npy")]

    def run(*more):
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, *more])
        assert ended.value.code in (0, None)

    run("-o", str(tmp_path / "first.jsonl"), "--review", "30", "--review-file", str(review))
    rows = read(review)
    cells = [row[name] for row in rows for name in ("query_id", "query", "document_id", "document")]
    assert len(rows) == 30
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r"]
    assert all(float(row["score"]) for row in rows)
    write(review, [row | {"false_negative": "no"} for row in rows])
    run("-o", str(tmp_path / "second.jsonl"), "--reviewed", str(review))


class Kill(BaseException):
    """In place of a signal."""


@contextmanager
def killed_after(monkeypatch, file):
    """A job inside ends as soon as it has published the file."""
    own = os.replace

    def replace(source, target):
        own(source, target)
        if target == file:
            raise Kill

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(Kill):
            yield


def test_a_job_that_is_killed_after_its_review_file_goes_on(world, monkeypatch):
    file, report = world.folder / "asked.csv", "report.html"
    world.run(review=20, review_file=file, report=report)
    wanted = {path: path.read_bytes() for path in (file, world.folder / "out.jsonl", world.folder / report)}
    for path in wanted:
        path.unlink()
    with killed_after(monkeypatch, file):
        world.run(review=20, review_file=file, report=report)
    assert file.read_bytes() == wanted[file]
    assert world.job().is_dir()
    with pytest.raises(NaysayError, match="--resume"):
        world.run(review=20, review_file=file, report=report)
    world.run(review=20, review_file=file, report=report, resume=True)
    assert {path: path.read_bytes() for path in wanted} == wanted
    assert not world.job().exists()


def test_a_review_that_a_person_filled_in_meanwhile_is_kept(world, monkeypatch):
    file = world.folder / "asked.csv"
    with killed_after(monkeypatch, file):
        world.run(review=20, review_file=file)
    filled(world, file)
    answers = file.read_bytes()
    with pytest.raises(NaysayError, match="--review-file"):
        world.run(review=20, review_file=file, resume=True)
    assert file.read_bytes() == answers
