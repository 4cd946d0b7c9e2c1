"""What a job reads: pairs by id, by text and by number, in every kind of file; what is wrong is told with its row."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import World, lines

from naysay.errors import NaysayError
from naysay.jobs.command import mine_files
from naysay.mining import mine


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, n=24, items=60)


def negatives(world, output="out.jsonl"):
    return [row["negatives"] for row in lines(world.folder / output)]


def expected(world, k=5, **given):
    mined = mine(world.queries, world.corpus, world.known, k, **given)
    return [[f"d{i}" for i in row if i >= 0] for row in mined.ids.tolist()]


def test_pairs_in_every_kind_of_file(world):
    table = pq.read_table(world.folder / "pairs.parquet")
    rows = table.to_pylist()
    (world.folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, between in (("pairs.csv", ","), ("pairs.tsv", "\t")):
        text = "\n".join(between.join(row.values()) for row in rows)
        (world.folder / name).write_text(f"query{between}found\n{text}\n")  # two columns, whatever they are called
    for name in ("pairs.parquet", "pairs.jsonl", "pairs.csv", "pairs.tsv"):
        world.run(pairs=name)
        assert negatives(world) == expected(world)


def test_columns_by_name(world):
    table = pq.read_table(world.folder / "pairs.parquet")
    more = table.append_column("date", pa.array(range(len(table)))).rename_columns(["left", "right", "date"])
    pq.write_table(more, world.folder / "named.parquet")
    with pytest.raises(
        NaysayError, match=r"`--anchor-column` must be given for these columns, got 'left', 'right', 'da"
    ):
        world.run(pairs="named.parquet")
    with pytest.raises(
        NaysayError, match=r"`--anchor-column` must be one of 'left', 'right', 'date', got 'lft'\. Did you"
    ):
        world.run(pairs="named.parquet", anchor_column="lft")
    with pytest.raises(NaysayError, match=r"`--positive-column` must be another than --anchor-column, got 'left'"):
        world.run(pairs="named.parquet", anchor_column="left", positive_column="left")
    world.run(pairs="named.parquet", anchor_column="left", positive_column="right")
    assert negatives(world) == expected(world)
    documents = pq.read_table(world.folder / "docs.parquet").rename_columns(["key", "body"])
    titles = documents.append_column("head", pa.array([f"T{row}" for row in range(60)]))
    pq.write_table(titles, world.folder / "docs.parquet")
    with pytest.raises(
        NaysayError, match=r"`--corpus` must be a file with a column of ids or of texts, got 'key', 'body'"
    ):
        world.run()
    columns = {"id_column": "key", "text_column": "body", "title_column": "head"}
    world.run(**columns, format="triplet", with_scores=False)
    row = lines(world.folder / "out.jsonl")[0]
    first = expected(world)[0][0]
    assert row["negative"] == f"T{first[1:]} {world.texts[int(first[1:])]}"
    with pytest.raises(NaysayError, match=r"`--title-column` must be one of 'key', 'body', 'head', got 'hed'"):
        world.run(**columns | {"title_column": "hed"})


def test_positives_by_text_and_by_number(world):
    anchors, items = world.known.pairs()
    texts = [f"document {row}" for row in range(60)]
    pq.write_table(pa.table({"text": texts}), world.folder / "texts.parquet")
    for name, values in (("text", [texts[item] for item in items]), ("number", items)):
        table = pa.table({"anchor": [world.anchors[row] for row in anchors], "positive": values})
        pq.write_table(table, world.folder / f"{name}.parquet")
        world.run(pairs=f"{name}.parquet", corpus="texts.parquet")
        assert [[f"d{item}" for item in row] for row in negatives(world)] == expected(world)
    both = pa.table({"id": [f"d{row}" for row in range(60)], "text": texts})  # there are ids, and positives are texts
    pq.write_table(both, world.folder / "both.parquet")
    world.run(pairs="text.parquet", corpus="both.parquet")
    assert negatives(world) == expected(world)


def test_ids_of_any_kind(world):
    """Numbers, strings and numbers too large for a row, mixed: as ids they are what they are written as."""
    names = [row if row % 3 == 0 else str(row) if row % 3 == 1 else 10**30 + row for row in range(60)]
    write(world.folder / "docs.jsonl", [{"id": name, "text": f"text {row}"} for row, name in enumerate(names)])
    anchors, items = world.known.pairs()
    rows = [{"anchor": world.anchors[a], "positive": names[i]} for a, i in zip(anchors, items, strict=True)]
    write(world.folder / "mixed.jsonl", rows)
    world.run(pairs="mixed.jsonl", corpus="docs.jsonl")
    assert negatives(world) == [[str(names[int(name[1:])]) for name in row] for row in expected(world)]


def test_queries_of_a_file(world):
    anchors, items = world.known.pairs()
    order = np.random.default_rng(0).permutation(len(anchors))  # pairs in any order: rows are those of the file
    table = {"query_id": [int(row) for row in anchors[order]], "doc_id": [f"d{item}" for item in items[order]]}
    pq.write_table(pa.table(table), world.folder / "any.parquet")
    rows = "".join(json.dumps({"_id": str(row), "text": f"text of {row}"}) + "\n" for row in range(24))
    (world.folder / "queries.jsonl").write_text(rows)
    world.run(pairs="any.parquet", queries="queries.jsonl")
    assert negatives(world) == expected(world)
    world.run("out.parquet", pairs="any.parquet", queries="queries.jsonl", format="triplet", with_scores=False)
    assert pq.read_table(world.folder / "out.parquet").column("anchor")[0].as_py() == "text of 0"


def test_documents_are_the_distinct_positives(world):
    anchors, items = world.known.pairs()
    order = list(dict.fromkeys(items.tolist()))
    np.save(world.folder / "some.npy", world.corpus[order])
    world.run(corpus=None, corpus_vectors="some.npy", format="triplet", with_scores=False)
    place = {item: row for row, item in enumerate(order)}
    mined = mine(world.queries, world.corpus[order], (anchors, [place[item] for item in items.tolist()]), 5)
    first = lines(world.folder / "out.jsonl")[0]
    assert first == {
        "anchor": "question 0",
        "positive": f"d{order[mined.known.indices[0]]}",
        "negative": f"d{order[mined.ids[0, 0]]}",
    }
    rule = (
        rf"`--corpus-vectors` must be a vector for each of the {len(order)} documents that the pairs name, got 60 vec"
    )
    with pytest.raises(NaysayError, match=rule):
        world.run(corpus=None)


def test_lengths_that_do_not_match(world):
    np.save(world.folder / "short.npy", world.queries[:-1])
    rule = (
        r"^mine: `--query-vectors` must be a vector for each of the 24 queries that the pairs name, got 23 vectors\.$"
    )
    with pytest.raises(NaysayError, match=rule):
        world.run(query_vectors="short.npy")
    np.save(world.folder / "short.npy", world.corpus[:-1])
    rule = r"`--corpus-vectors` must be a vector for each of the 60 documents of '.*docs\.parquet', got 59 vectors\.$"
    with pytest.raises(NaysayError, match=rule):
        world.run(corpus_vectors="short.npy")
    assert not world.job().exists()


def test_texts_that_utf8_cannot_hold(world):
    rows = [{"id": f"d{row}", "text": "\ud800 broken" if row == 7 else f"text {row}"} for row in range(60)]
    (world.folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for output in ("out.parquet", "out.jsonl"):
        with pytest.raises(NaysayError, match=r"`--corpus` must be .*UTF-8"):
            world.run(output, corpus="docs.jsonl", format="triplet", with_scores=False)
    assert not (world.folder / "out.jsonl").exists()


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"^mine: `--anchor-column` must be given for these columns, got none\.$"),
        ([[1, 2]], r"^mine: `pairs` must be a file in which every line is a JSON object, got \[1, 2\] in line 1 of "),
        (
            [{"anchor": "question 0", "positive": "d1"}, {"anchor": "question 0"}],
            r"`pairs` must be a file with a value in every row of 'positive', got nothing in .positive. at row 1",
        ),
        (
            [{"anchor": "question 0", "positive": "d1"}, 7],
            r"^mine: `pairs` must be a file in which every line is a JSON object, got 7 in line 2 of ",
        ),
        (
            [{"anchor": "question 0", "positive": 0.5}],
            r"^mine: `pairs` must be a file with strings or whole numbers in 'positive', got 0\.5 at row 0\.$",
        ),
        (
            [{"anchor": f"question {row}", "positive": "nobody" if row in (4, 9) else "d1"} for row in range(24)],
            r"`pairs` must be a file whose 'positive' holds .* of the 60 docum.*, got 'nobody' at row 4 \(2 such rows",
        ),
        (
            [{"anchor": row, "positive": "d1"} for row in range(25)],
            r"^mine: `pairs` must be between 0 and 23 \(24 queries, by row number\), got 24 at row 24 \(1 such row",
        ),
    ],
)
def test_pairs_that_are_refused(world, rows, message):
    write(world.folder / "bad.jsonl", rows)
    with pytest.raises(NaysayError, match=message):
        world.run(pairs="bad.jsonl")
    assert not world.job().exists()


def test_files_that_are_refused(world):
    for option, given in (("pairs", "no.parquet"), ("corpus", "no.parquet"), ("query_vectors", "no.npy")):
        name = "pairs" if option == "pairs" else f"--{option}".replace("_", "-")
        with pytest.raises(NaysayError, match=rf"^mine: `{name}` must be a file that can be read, got .*No such file"):
            world.run(**{option: given})
    (world.folder / "pairs.xml").write_text("<pairs/>")
    with pytest.raises(NaysayError, match=r"^mine: `pairs` must be a table, got '.*pairs\.xml'\. \.parquet, \.jsonl"):
        world.run(pairs="pairs.xml")
    write(world.folder / "odd.jsonl", [{"id": "d1", "text": 5}])
    with pytest.raises(NaysayError, match=r"`--corpus` must be a file with strings in 'text', got 5 at row 0"):
        world.run(corpus="odd.jsonl")


def test_an_id_that_stands_twice(world):
    before = sorted(world.folder.iterdir())
    documents = [{"id": f"d{row}", "text": world.texts[row]} for row in range(60)]
    named = {f"d{row}" for row in world.known.pairs()[1]}
    other = next(row for row in range(60) if f"d{row}" not in named)
    for row in (1, other):  # one that pairs name, and one that none does
        twice = [*documents, {"id": f"d{row}", "text": "more"}]
        write(world.folder / "twice.jsonl", twice)
        np.save(world.folder / "c61.npy", np.concatenate([world.corpus, world.corpus[:1]]))
        rule = rf"^mine: `--corpus` must be a file with each id of 'id' once, got 'd{row}' at rows {row} and 60\.$"
        with pytest.raises(NaysayError, match=rule):
            world.run(corpus="twice.jsonl", corpus_vectors="c61.npy")
    queries = [{"qid": min(row, 22), "text": text} for row, text in enumerate(world.anchors)]
    write(world.folder / "queries.jsonl", queries)  # pairs name texts, so that no id is asked for
    rule = r"^mine: `--queries` must be a file with each id of 'qid' once, got '22' at rows 22 and 23\.$"
    with pytest.raises(NaysayError, match=rule):
        world.run(queries="queries.jsonl")
    left = {path.name for path in world.folder.iterdir()} - {path.name for path in before}
    assert left == {"twice.jsonl", "c61.npy", "queries.jsonl"}


@pytest.mark.parametrize(
    ("name", "option"), [("pairs.parquet", "pairs"), ("docs.parquet", "--corpus"), ("c.npy", "--corpus-vectors")]
)
def test_files_that_are_cut_off(world, name, option):
    path = world.folder / name
    path.write_bytes(path.read_bytes()[:-37])
    with pytest.raises(
        NaysayError, match=rf"^mine: `{option}` must be a file (that can be read|of at least)"
    ) as refusal:
        world.run()
    assert "\n" not in str(refusal.value)
    assert not world.job().exists()


def test_vectors_that_are_refused(world):
    bad = world.queries.copy()
    bad[3, 1], bad[9, 0] = np.nan, np.inf
    np.save(world.folder / "bad.npy", bad)
    rule = r"^mine: `--query-vectors` must be finite, got nan at row 3 \(2 such rows\)\.$"
    with pytest.raises(NaysayError, match=rule):
        world.run(query_vectors="bad.npy")
    for given, got in (
        ({"query_vectors": None}, "`--corpus-vectors` alone"),
        ({"corpus_vectors": None}, "`--query-vectors` alone"),
    ):
        with pytest.raises(
            NaysayError, match=rf"`--model` must be given, or `--query-vectors` and `--corpus-vectors`, got {got}"
        ):
            world.run(**given)
    with pytest.raises(NaysayError, match=r"`--model` must be left out where vectors are given, got both"):
        world.run(model="somewhere")
    with pytest.raises(NaysayError, match=r"^mine: `pairs` must be an existing file, got 'lost\.parquet'\.$"):
        mine_files(Path("lost.parquet"), output=Path("out.jsonl"))  # not that --model is missing
