"""Data of the five domains: splits leak nothing and lose nothing that can be ranked; files are read in all forms."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_worlds import EDGES, IMAGE_CLASSES, NODE_CLASSES, PICTURES, triples
from scipy.sparse import csr_array

import naysay as ns
from naysay import lab
from naysay.errors import NaysayError

PAIRS = [(user, item) for user in range(6) for item in range(10)]


def pairs_of(positives):
    return set(zip(*(ids.tolist() for ids in positives.pairs()), strict=True))


def parts_of(data):
    return data.train, data.validation, data.test


def n_pairs(data):
    return sum(map(len, parts_of(data)))


# ---- interactions ----


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.floats(0.1, 0.9))
def test_a_split_by_user_leaks_nothing_and_takes_tenths(seed, share):
    matrix = np.random.default_rng(seed).random((20, 45)) < share
    matrix[0, :5] = True
    users, items = np.nonzero(matrix)
    made = lab.split_by_user(np.tile(users, 2), np.tile(items, 2), 20, 45, seed=seed)  # repeated pairs count once
    train, validation, test = map(pairs_of, parts_of(made))
    whole = set(zip(users.tolist(), items.tolist(), strict=True))
    assert not train & validation
    assert not (train | validation) & test
    seen_users, seen_items = {user for user, _ in train}, {item for _, item in train}
    left_out = whole - train - validation - test
    assert not [pair for pair in left_out if pair[0] in seen_users and pair[1] in seen_items]
    for user in range(20):
        n = sum(owner == user for owner, _ in whole)
        held_out = max(1, n // 10) if n >= 3 else 0
        assert sum(owner == user for owner, _ in train) == n - 2 * held_out


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_a_split_by_time_trains_on_the_past(seed):
    rng = np.random.default_rng(seed)
    users, items, times = rng.integers(0, 6, 80), rng.integers(0, 8, 80), rng.integers(0, 50, 80)
    first = {}
    for user, item, time in zip(users.tolist(), items.tolist(), times.tolist(), strict=True):
        first[user, item] = min(time, first.get((user, item), time))
    try:
        made = lab.split_by_time(users, items, times)
    except NaysayError:  # all that is later is of items that training never saw
        return
    ends = [[first[pair] for pair in pairs_of(part)] for part in parts_of(made)]
    assert max(ends[0]) <= min(ends[1])
    assert max(ends[1]) <= min(ends[2])
    assert len(ends[0]) == len(first) - 2 * (len(first) // 10)


def test_what_training_never_saw_is_left_out_and_counted():
    def pairs(*both):
        return ns.Positives.from_pairs(*zip(*both, strict=True), 3, 4)

    made = lab.Interactions(pairs((0, 0), (1, 1)), pairs((0, 1), (0, 3), (2, 0)), pairs((1, 0), (0, 1), (2, 3)))
    assert (pairs_of(made.validation), pairs_of(made.test)) == ({(0, 1)}, {(1, 0)})
    assert [note[:24] for note in made.notes] == ["1 validation pair of 3 l"] * 2 + ["1 test pair of 3 left ou"] * 2


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("clicks.csv", "user,item", "u{user},{item}"),
        ("clicks.inter", "user_id:token\titem_id:token", "u{user}\t{item}"),
        ("pairs.jsonl", None, '{{"anchor": "u{user}", "positive": "i{item}"}}'),
        ("u.data", None, "{user}\t{item}\t{rating}\t{time}"),
        ("timed.csv", None, "{user},{item},{time}"),
        ("rated.txt", None, "{user}\t{item}\t{rating}"),
        ("named.tsv", None, "u{user}\ti{item}"),
    ],
)
def test_tables_of_interactions_lose_no_row(name, head, line, tmp_path):
    file = tmp_path / name
    rows = [
        line.format(user=user + 1, item=item + 1, rating=1 + user % 5, time=881_250_949 + 60 * (7 * place % 60))
        for place, (user, item) in enumerate(PAIRS)
    ]
    file.write_text("\n".join([head, *rows] if head else rows) + "\n")
    found = lab.read_interactions(file, split="user")
    assert (n_pairs(found), found.n_users, found.n_items) == (60, 6, 10)
    if "rating" in line:
        assert lab.read_interactions(file, split="user", liked=2).n_users == 4  # two users gave a rating of 1
        assert any("Ratings are not used" in note for note in found.notes)
    if "time" in line:
        assert len(lab.read_interactions(file, split="time").train) == 48  # the earliest eight tenths


def test_lists_of_items_and_a_given_test(tmp_path):
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    lists = [f"{user} {' '.join(str(item) for item in range(8))} \n" for user in range(6)]
    train.write_text("".join(lists) + "6\n" + "".join(f"{user} 8 9 0\n" for user in range(7, 12)))
    test.write_text("".join(f"{user} 8 9\n" for user in range(6)))
    found = lab.read_interactions(train, test=test)
    assert (len(found.train) + len(found.validation), len(found.test)) == (6 * 8 + 5 * 3, 6 * 2)
    assert any("train.txt" in note for note in found.notes)


def test_with_a_given_test_all_pairs_but_those_of_validation_are_trained_on(tmp_path):
    """Also those of items and entities that a split of the training pairs in three would leave out."""
    pairs = [*PAIRS, *((user, 10 + 4 * user + place) for user in range(6) for place in range(4))]  # four of one's own
    tested = [(user, 10 + 4 * (5 - user)) for user in range(6)]
    for name, rows in (("train", pairs), ("test", tested)):
        (tmp_path / f"{name}.csv").write_text("user,item\n" + "".join(f"u{user},i{item}\n" for user, item in rows))
        (tmp_path / f"{name}.txt").write_text("".join(f"u{user}\tlikes\ti{item}\n" for user, item in rows))
    parts = {"path": tmp_path / "train.csv", "test": tmp_path / "test.csv"}
    for seed in range(3):
        assert len(lab.read_interactions(**parts, seed=seed).train) == len(pairs) - 6
    parts = {"path": tmp_path / "train.txt", "test": tmp_path / "test.txt"}
    for seed in range(3):
        assert len(lab.read_triples(**parts, seed=seed).train) == len(pairs) - len(pairs) // 10


def test_given_parts_and_dates_as_times(tmp_path):
    users, items = np.arange(120) % 6, np.arange(120) % 10
    days = np.datetime64("2024-01-01") + np.arange(120)
    for name, column in (("d", {"date": days}), ("t", {"time": np.arange(120)})):
        pq.write_table(pa.table({"user": users, "item": items, **column}), tmp_path / f"{name}.parquet")
    dates, numbers = (lab.read_interactions(tmp_path / f"{name}.parquet") for name in "dt")
    assert dates.fingerprint() == numbers.fingerprint()
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((12, 40)) < 0.9)
    part = rng.choice(3, len(users), p=[0.8, 0.1, 0.1])
    files = [tmp_path / f"{name}.parquet" for name in ("train", "valid", "test")]
    for place, file in enumerate(files):
        pq.write_table(pa.table({"user": users[part == place], "item": items[part == place]}), file)
    given_parts = lab.read_interactions(files[0], validation=files[1], test=files[2])
    assert len(given_parts.train) == (part == 0).sum()
    assert n_pairs(given_parts) == len(users)


@pytest.mark.parametrize(("early", "kept"), [((), 0), ((24, 28), 16)])
def test_users_who_come_one_after_another_are_split_by_user(early, kept, tmp_path):
    users, items = np.repeat(np.arange(30), 8), np.tile(np.arange(8), 30)
    times = np.where(np.isin(users, early) & (items == 0), 0, users)  # training knows these users, and all items
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"user": users, "item": items, "time": times}), file)
    made = lab.read_interactions(file)
    assert made.fingerprint() == lab.read_interactions(file, split="user").fingerprint()
    assert f"only {kept} of 48" in made.notes[0]
    pq.write_table(pa.table({"user": users, "item": items, "time": np.random.default_rng(0).permutation(240)}), file)
    assert lab.read_interactions(file).fingerprint() == lab.read_interactions(file, split="time").fingerprint()


def test_too_few_pairs_for_a_split_by_time_are_split_by_user(tmp_path):
    file = tmp_path / "few.csv"
    file.write_text("user,item,time\n" + "".join(f"{max(0, n - 2)},{n % 3},{n}\n" for n in range(8)))
    assert lab.read_interactions(file).notes[0].startswith("Split by user")
    rows = [*((n % 3, n // 3) for n in range(18)), (3, 0), (3, 1)]  # the last tenth is of a user who is new
    file.write_text("user,item,time\n" + "".join(f"{user},{item},{n}\n" for n, (user, item) in enumerate(rows)))
    assert lab.read_interactions(file).notes[0].startswith("Split by user")


# ---- triples, edges and images ----


def test_triples_are_read_from_a_file_from_three_and_from_a_folder(tmp_path):
    data = triples()
    names = dict(zip(("train", "valid", "test"), parts_of(data), strict=True))
    for name, part in names.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in part.array.tolist()))
    files = {"validation": tmp_path / "valid.txt", "test": tmp_path / "test.txt"}
    whole, three = lab.read_triples(tmp_path), lab.read_triples(tmp_path / "train.txt", **files)
    assert whole.fingerprint() == three.fingerprint()
    assert [len(part) for part in parts_of(whole)] == [len(part) for part in parts_of(data)]
    two = lab.read_triples(tmp_path / "train.txt", test=files["test"])
    assert (len(two.validation), len(two.test)) == (len(data.train) // 10, len(data.test))
    assert len(two.train) + len(two.validation) == len(data.train)
    assert len(lab.read_triples(tmp_path / "train.txt").test) == len(data.train) // 10


def test_triples_of_what_training_never_saw_are_left_out():
    train, both = ns.Triples([[0, 0, 1]], 4, 1), ns.Triples([[1, 0, 0], [2, 0, 3]], 4, 1)
    made = lab.KnowledgeGraph(train, both, both)
    assert (len(made.validation), len(made.test), len(made.notes)) == (1, 1, 2)


def test_edge_lists_and_classes_are_read(tmp_path):
    lines = "".join(f"n{a} n{b}\n" for a, b in EDGES.tolist())
    (tmp_path / "edges.txt").write_text("# a graph\n# of friends\n" + lines)
    classes = "".join(f"n{node},{'xy'[label]}\n" for node, label in enumerate(NODE_CLASSES))
    (tmp_path / "classes.csv").write_text(classes)
    read = lab.read_graph(tmp_path / "edges.txt", labels=tmp_path / "classes.csv")
    edges = {tuple(sorted(edge)) for edge in EDGES.tolist() if edge[0] != edge[1]}
    assert (read.n_nodes, len(np.unique(read.labels)), n_pairs(read)) == (60, 2, len(edges))


def test_graphs_of_arrays_are_read(tmp_path):
    features = csr_array(np.eye(60, 5))
    arrays = {f"feat_{name}": getattr(features, name) for name in ("data", "indices", "indptr", "shape")}
    parts = {"train_idx": np.arange(20), "val_idx": np.arange(20, 40), "test_idx": np.arange(40, 60)}
    np.savez(tmp_path / "g.npz", edges=EDGES[EDGES[:, 0] != EDGES[:, 1]], labels=NODE_CLASSES, **arrays, **parts)
    read = lab.read_graph(tmp_path / "g.npz")
    assert read.features.shape == (60, 5)
    assert read.parts.tolist() == [0] * 20 + [1] * 20 + [2] * 20


def test_files_of_images(tmp_path):
    images = {"x_train": (PICTURES * 255).astype(np.uint8), "y_train": IMAGE_CLASSES[:, None]}
    test = {"x_test": np.zeros((9, 12, 12), np.uint8), "y_test": np.zeros(9, int)}
    np.savez(tmp_path / "keras.npz", **images, **test)
    read = lab.read_images(tmp_path / "keras.npz")
    assert repr(read) == "Images(249 of 12 x 12 x 1, 2 classes, train 216, validation 24, test 9)"


# ---- texts ----


def test_parts_share_no_document():
    queries, documents = np.arange(200), np.random.default_rng(0).integers(0, 150, 200)
    parts = lab.split_by_document(ns.Positives.from_pairs(queries, documents, 200, 150))
    of_parts = [{*part.pairs()[1].tolist()} for part in parts]
    assert len(set.union(*of_parts)) == sum(map(len, of_parts))
    assert sum(map(len, parts)) == 200
    assert all(10 <= len(part) <= 30 for part in parts[1:])


@pytest.mark.parametrize("positive", ["id", "text", "row", "text without ids"])
def test_positives_are_ids_texts_or_rows_of_the_corpus(positive, tmp_path):
    """As `mine` reads them. The corpus has five more documents than the pairs, and one text twice."""
    texts = [f"it is number {place}" for place in range(35)]
    texts[34] = texts[33]
    named = {"id": [f"d{place}" for place in range(35)], "text": texts}
    columns = {"text": texts} if positive in ("row", "text without ids") else named
    pq.write_table(pa.table(columns), tmp_path / "corpus.parquet")
    wanted = {"id": named["id"], "row": [str(place) for place in range(35)]}.get(positive, texts)
    rows = [f"what is {place}\t{wanted[place]}\n" for place in range(30)]
    (tmp_path / "pairs.tsv").write_text("query\tpositive\n" + "".join(rows))
    found = lab.read_texts(tmp_path / "pairs.tsv", corpus=tmp_path / "corpus.parquet")
    assert (found.n_documents, list(found.document_texts)) == (35, texts)
    assert sorted(pair for part in parts_of(found) for pair in pairs_of(part)) == [
        (place, place) for place in range(30)
    ]


def test_a_folder_of_beir(tmp_path):
    for name, letter in (("corpus", "d"), ("queries", "q")):
        lines = [json.dumps({"_id": f"{letter}{n}", "text": f"{n}"}) for n in range(30)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels").mkdir()
    for name, rows in (("train", range(20)), ("test", range(20, 30))):
        text = "".join(f"q{n}\td{n}\t1\n" for n in rows)
        (tmp_path / "qrels" / f"{name}.tsv").write_text("query-id\tcorpus-id\tscore\n" + text)
    read = lab.read_texts(tmp_path)
    assert [len(part) for part in parts_of(read)] == [18, 2, 10]
    assert read.query_texts == [f"{n}" for n in range(30)]
