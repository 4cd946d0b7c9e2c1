"""What a job reads: pairs by id, by text and by number, in every kind of file; what is wrong is told with its row."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import World, lines

from naysay.errors import NaysayError
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


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
