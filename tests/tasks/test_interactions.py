"""Splits leak nothing and lose nothing that can be ranked, and tables are read in all their forms."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.tasks import Interactions, read_interactions, split_by_time, split_by_user


def sets(pairs):
    return set(zip(*(ids.tolist() for ids in pairs.pairs()), strict=True))


def rankable(pairs, train):
    users, items = {user for user, _ in train}, {item for _, item in train}
    return {(user, item) for user, item in pairs if user in users and item in items}


@given(st.integers(0, 10_000), st.floats(0.1, 0.9))
def test_a_split_by_user_leaks_nothing_and_takes_tenths(seed, share):
    matrix = np.random.default_rng(seed).random((20, 45)) < share
    matrix[0, :5] = True
    users, items = np.nonzero(matrix)
    made = split_by_user(np.tile(users, 2), np.tile(items, 2), 20, 45, seed=seed)  # repeated pairs count once
    parts = [sets(part) for part in (made.train, made.validation, made.test)]
    whole = set(zip(users.tolist(), items.tolist(), strict=True))
    assert not parts[0] & parts[1]
    assert not (parts[0] | parts[1]) & parts[2]
    left_out = whole - parts[0] - parts[1] - parts[2]
    assert not rankable(left_out, parts[0])
    for user in range(20):
        n = sum(owner == user for owner, _ in whole)
        held = max(1, n // 10) if n >= 3 else 0
        assert sum(owner == user for owner, _ in parts[0]) == n - 2 * held


@given(st.integers(0, 10_000))
def test_a_split_by_time_trains_on_the_past(seed):
    rng = np.random.default_rng(seed)
    users, items, times = rng.integers(0, 6, 80), rng.integers(0, 8, 80), rng.integers(0, 50, 80)
    first = {}
    for user, item, time in zip(users.tolist(), items.tolist(), times.tolist(), strict=True):
        first[user, item] = min(time, first.get((user, item), time))
    try:
        made = split_by_time(users, items, times)
    except NaysayError:  # all that is later is of items that training never saw
        return
    ends = [[first[pair] for pair in sets(part)] for part in (made.train, made.validation, made.test)]
    assert max(ends[0]) <= min(ends[1])
    assert max(ends[1]) <= min(ends[2])
    assert len(ends[0]) == len(first) - 2 * (len(first) // 10)


def test_what_training_never_saw_is_left_out_and_counted():
    def pairs(*both):
        return ns.Positives.from_pairs(*zip(*both, strict=True), 3, 4)

    made = Interactions(pairs((0, 0), (1, 1)), pairs((0, 1), (0, 3), (2, 0)), pairs((1, 0), (0, 1), (2, 3)))
    assert (sets(made.validation), sets(made.test)) == ({(0, 1)}, {(1, 0)})
    assert made.notes == (
        "1 validation pair of 3 left out: items that training never saw.",
        "1 validation pair of 3 left out: users that training never saw.",
        "1 test pair of 3 left out: items that training never saw.",
        "1 test pair of 3 left out: in an earlier part, too.",
    )


def clicks(n=120):
    rng = np.random.default_rng(0)
    return rng.permuted(np.repeat(np.arange(6), n // 6)), np.arange(n) % 10


FORMS = {
    "clicks.csv": ("user,item", ","),
    "clicks.tsv": ("User_ID\titem", "\t"),
    "clicks.inter": ("user_id:token\titem_id:token", "\t"),
}


@pytest.mark.parametrize("name", FORMS)
def test_text_tables_are_read(name, tmp_path):
    head, sign = FORMS[name]
    users, items = clicks()
    lines = [f"u{user}{sign}{item}" for user, item in zip(users, items, strict=True)]
    (tmp_path / name).write_text("\n".join([head, *lines]) + "\n")
    names = {user: place for place, user in enumerate(dict.fromkeys(users.tolist()))}
    expected = split_by_user([names[user] for user in users.tolist()], items)
    assert read_interactions(tmp_path / name).fingerprint() == expected.fingerprint()


PAIRS = [(user, item) for user in range(6) for item in range(10)]


@pytest.mark.parametrize(
    ("name", "line", "columns"),
    [
        ("u.data", "{user}\t{item}\t{rating}\t{time}", "user, item, rating, time"),
        ("plain.tsv", "{user}\t{item}\t{rating}\t{time}", "user, item, rating, time"),
        ("timed.csv", "{user},{item},{time}", "user, item, time"),
        ("rated.txt", "{user}\t{item}\t{rating}", "user, item, rating"),
        ("named.tsv", "u{user}\ti{item}", "user, item"),
    ],
)
def test_tables_without_headings_lose_no_row(name, line, columns, tmp_path):
    file = tmp_path / name
    rows = [
        line.format(user=user + 1, item=item + 1, rating=1 + user % 5, time=881_250_949 + 60 * (7 * place % 60))
        for place, (user, item) in enumerate(PAIRS)
    ]
    file.write_text("\n".join(rows) + "\n")
    found = read_interactions(file, split="user")
    assert len(found.train) + len(found.validation) + len(found.test) == len(PAIRS)
    assert (found.n_users, found.n_items) == (6, 10)
    assert any(columns in note for note in found.notes)
    if "rating" in columns:
        assert read_interactions(file, split="user", liked=2).n_users == 4  # the first and the last gave a rating of 1
    if "time" in columns:
        assert len(read_interactions(file, split="time").train) == 48  # the earliest eight tenths


def test_a_header_of_other_names_is_not_a_row(tmp_path):
    file = tmp_path / "sales.csv"
    file.write_text("customer,product\n" + "".join(f"c{user},p{item}\n" for user, item in PAIRS))
    with pytest.raises(NaysayError) as caught:
        read_interactions(file)
    assert caught.value.parameter == "path"
    assert "customer" in str(caught.value)


def test_lists_of_items_as_lightgcn_has_them(tmp_path):
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("".join(f"{user} {' '.join(str(item) for item in range(8))} \n" for user in range(6)) + "6\n")
    test.write_text("".join(f"{user} 8 9\n" for user in range(6)))
    alone = read_interactions(train)
    assert len(alone.train) + len(alone.validation) + len(alone.test) == 6 * 8
    assert any("train.txt" in note for note in alone.notes)
    train.write_text(train.read_text() + "".join(f"{user} 8 9 0\n" for user in range(7, 12)))  # items of the test
    found = read_interactions(train, test=test)
    assert len(found.train) + len(found.validation) == 6 * 8 + 5 * 3
    assert len(found.test) == 6 * 2


def test_pairs_of_anchors_and_positives_in_json_lines(tmp_path):
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f'{{"anchor": "u{user}", "positive": "i{item}"}}\n' for user, item in PAIRS))
    found = read_interactions(file)
    assert len(found.train) + len(found.validation) + len(found.test) == len(PAIRS)


def test_parquet_with_times_ratings_and_given_parts(tmp_path):
    users, items = clicks()
    rating = np.where(np.arange(120) < 60, 5, 2)
    table = pa.table({"user_id": users, "item_id": items, "timestamp": np.arange(120), "rating": rating})
    pq.write_table(table, tmp_path / "a.parquet")
    by_time = read_interactions(tmp_path / "a.parquet")
    assert by_time.notes[0].startswith("Ratings are not used")
    assert by_time.fingerprint() != read_interactions(tmp_path / "a.parquet", split="user").fingerprint()
    liked = read_interactions(tmp_path / "a.parquet", liked=4, split="user")
    assert sum(map(len, (liked.train, liked.validation, liked.test))) <= 60
    for name, rows in {"train": slice(0, 80), "valid": slice(80, 100), "test": slice(100, 120)}.items():
        pq.write_table(pa.table({"user": users[rows], "item": items[rows]}), tmp_path / f"{name}.parquet")
    files = [tmp_path / f"{name}.parquet" for name in ("train", "valid", "test")]
    given_parts = read_interactions(files[0], validation=files[1], test=files[2])
    assert len(given_parts.train) == len(set(zip(users[:80].tolist(), items[:80].tolist(), strict=True)))


def test_with_a_test_alone_validation_is_a_tenth_of_training(tmp_path):
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((12, 40)) < 0.6)
    late = rng.random(len(users)) < 0.2
    for name, rows in {"train": ~late, "test": late}.items():
        pq.write_table(pa.table({"user": users[rows], "item": items[rows]}), tmp_path / f"{name}.parquet")
    made = read_interactions(tmp_path / "train.parquet", test=tmp_path / "test.parquet")
    counts = np.bincount(users[~late])
    assert len(made.train) + len(made.validation) == counts.sum()
    assert len(made.validation) == (counts // 10).clip(1).sum()
    assert len(made.test) == late.sum()


def test_dates_are_times(tmp_path):
    users, items = clicks()
    days = np.datetime64("2024-01-01") + np.arange(120)
    pq.write_table(pa.table({"user": users, "item": items, "date": days}), tmp_path / "d.parquet")
    pq.write_table(pa.table({"user": users, "item": items, "time": np.arange(120)}), tmp_path / "t.parquet")
    dates, numbers = (read_interactions(tmp_path / f"{name}.parquet") for name in "dt")
    assert dates.fingerprint() == numbers.fingerprint()


@pytest.mark.parametrize(("early", "kept"), [((), 0), ((24, 28), 16)])
def test_users_who_come_one_after_another_are_split_by_user(early, kept, tmp_path):
    users, items = np.repeat(np.arange(30), 8), np.tile(np.arange(8), 30)
    times = np.where(np.isin(users, early) & (items == 0), 0, users)  # training knows these users, and all items
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"user": users, "item": items, "time": times}), file)
    made = read_interactions(file)
    assert made.fingerprint() == read_interactions(file, split="user").fingerprint()
    assert made.notes == (f"Split by user: training would know user and item of only {kept} of 48 later pairs.",)
    if early:
        by_time = read_interactions(file, split="time")
        assert len(by_time.validation) + len(by_time.test) == kept
    else:
        with pytest.raises(NaysayError, match=r"`validation` must"):
            read_interactions(file, split="time")
    pq.write_table(pa.table({"user": users, "item": items, "time": np.random.default_rng(0).permutation(240)}), file)
    assert read_interactions(file).fingerprint() == read_interactions(file, split="time").fingerprint()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "who,item\na,b\n",
            {},
            "`path` must be a table with a column named user or user_id, got columns 'who', 'item'.",
        ),
        ("user,item\n", {}, "`path` must be a table with rows, got none."),
        ("user,item\na,b\n", {"liked": 3}, "`liked` must be left out for a table without a column of ratings, got 3."),
        (
            "user,item,rating\na,b,1\n",
            {"liked": 3},
            "`liked` must be at most the highest rating, got 3. Every rating is lower.",
        ),
        (
            "user,item\na,b\n",
            {"split": "time"},
            "`split` must be 'user' for a table without a column of times, got 'time'",
        ),
        ("user,item\na,b\n", {"split": "tiem"}, "`split` must be one of 'auto', 'user', 'time', got 'tiem'."),
        ("user,item\na,b\n", {"validation": "x.csv"}, "`test` must be given along with `validation`, got nothing."),
        (
            "user,item\na,b\na,c\n",
            {},
            "`users` must be at least three pairs of one user, for a split by user, got at most 2",
        ),
        (
            "user,item,time\na,b,1\na,c,2\n",
            {"split": "time"},
            "`users` must be at least ten different pairs, for a split by time, got 2.",
        ),
        ("user,item,time\na,b,x\na,c,y\n", {}, "`time` must be numbers, dates or times, got 'x'."),
    ],
)
def test_tables_that_cannot_be_used_are_explained(text, options, message, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(NaysayError) as caught:
        read_interactions(tmp_path / "a.csv", **options)
    assert message in str(caught.value)


def test_unknown_endings_and_missing_files_are_explained(tmp_path):
    with pytest.raises(NaysayError, match=r"`path` must be a file that ends in "):
        read_interactions(tmp_path / "a.xlsx")
    with pytest.raises(NaysayError, match=r"`path` must be an existing file, got"):
        read_interactions(tmp_path / "a.csv")


def test_held_out_parts_that_cannot_be_ranked_are_an_error():
    train, other = (ns.Positives.from_pairs([0], [item], 1, 2) for item in (0, 1))
    with pytest.raises(
        NaysayError, match=r"`validation` must be at least one pair of a user and an item that training"
    ):
        Interactions(train, other, other)
    with pytest.raises(NaysayError, match=r"`test` must be at least one pair, got none."):
        Interactions(train, train, ns.Positives.from_pairs([], [], 1, 2))
    with pytest.raises(NaysayError, match=r"`validation` must be of 1 anchors and 2 items, like `train`"):
        Interactions(train, ns.Positives.from_pairs([0], [0], 1, 9), other)
