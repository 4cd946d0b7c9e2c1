"""Positives from data frames, Arrow streams, datasets and RecBole's files: the same pairs as from two arrays."""

import datetime
import subprocess
import sys

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import naysay as ns
from naysay.lab import read_interactions

USERS, ITEMS, TIMES = [3, 0, 3, 1, 0, 3], ["tea", "jam", "jam", "tea", "tea", "tea"], [50, 10, 20, 40, 30, 60]
DAYS = pd.to_datetime([f"2024-05-{time // 10:02}" for time in TIMES])
FRAME = pd.DataFrame({"user": USERS, "item": ITEMS, "time": TIMES, "day": DAYS, "odd": [1, "a", None, 2, 3, 4]})


class Stream:
    """A table of another library: nothing but the interface that pandas, Polars and DuckDB have."""

    def __init__(self, table):
        self.table = table
        self.columns = table.column_names

    def __getitem__(self, names):
        return Stream(self.table.select(names))

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def arrow(kind=None):
    columns = {name: FRAME[name].tolist() for name in ("user", "item", "time", "day")}
    names = pa.array(ITEMS, pa.string() if kind is None or pa.types.is_dictionary(kind) else kind)
    if kind is not None and pa.types.is_dictionary(kind):
        coded = names.dictionary_encode()
        names = pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(kind.value_type))
    return pa.table(columns | {"item": names})


def dataset():
    return datasets.Dataset(arrow())


SOURCES = {
    "pandas": lambda **more: ns.Positives.from_pandas(FRAME, "user", "item", **more),
    "pandas, another index": lambda **more: ns.Positives.from_pandas(FRAME.set_index("odd"), "user", "item", **more),
    "pandas, categories": lambda **more: ns.Positives.from_pandas(
        FRAME.astype({"item": "category"}), "user", "item", **more
    ),
    "Polars, which has views of strings": lambda **more: ns.Positives.from_polars(
        Stream(arrow(pa.string_view())), "user", "item", **more
    ),
    "Polars, categories": lambda **more: ns.Positives.from_polars(
        Stream(arrow(pa.dictionary(pa.uint32(), pa.string_view()))), "user", "item", **more
    ),
    "a dataset": lambda **more: ns.Positives.from_hf_dataset(dataset(), "user", "item", **more),
    "a chosen part of a dataset": lambda **more: ns.Positives.from_hf_dataset(
        datasets.concatenate_datasets([dataset(), dataset()]).select(range(6)), "user", "item", **more
    ),
}


def same(one, other):
    return (
        one.pairs()[0].tolist() == other.pairs()[0].tolist()
        and one.pairs()[1].tolist() == other.pairs()[1].tolist()
        and (one.n_anchors, one.n_items, one.duplicates) == (other.n_anchors, other.n_items, other.duplicates)
        and one.item_names == other.item_names
    )


@pytest.mark.parametrize("source", SOURCES)
def test_a_table_gives_the_pairs_of_its_columns(source):
    expected = ns.Positives.from_pairs(USERS, ITEMS)
    assert expected.duplicates == 1
    assert same(SOURCES[source](), expected)


def test_any_arrow_stream_is_a_table():
    expected = ns.Positives.from_pairs(USERS, ITEMS)
    for table in (arrow(), Stream(arrow(pa.string_view())), FRAME[["user", "item"]], arrow().to_reader()):
        assert same(ns.Positives.from_arrow(table, "user", "item"), expected)
    triples = Stream(pa.table({"head": [0, 1], "relation": [0, 0], "tail": [1, 2]}))
    assert len(ns.Triples.from_arrow(triples)) == 2


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("times", "before"),
    [("time", 40), ("day", "2024-05-04"), ("day", datetime.datetime(2024, 5, 4)), ("day", np.datetime64("2024-05-04"))],
)
def test_only_interactions_before_a_time_are_known(source, times, before):
    kept = np.array(TIMES) < 40
    expected = ns.Positives.from_pairs(np.array(USERS)[kept], np.array(ITEMS)[kept])
    assert same(SOURCES[source](times=times, before=before), expected)
    assert 0 < len(expected) < len(ns.Positives.from_pairs(USERS, ITEMS))


def test_raw_ids_with_gaps_are_counted_once_and_the_message_has_the_remedy():
    films = np.random.default_rng(0).choice(10_000, 300, replace=False)
    frame = pd.DataFrame({"user": np.arange(300) % 7, "film": films})
    with pytest.warns(ns.NaysayWarning, match=r"occur nowhere.*or item_names=True for a vocabulary of those") as caught:
        known = ns.Positives.from_pandas(frame, "user", "film")
    assert len(caught) == 1
    assert known.unused_items == films.max() + 1 - 300
    numbered = ns.Positives.from_pandas(frame, "user", "film", item_names=True)
    assert (numbered.n_items, numbered.unused_items) == (300, 0)
    again = ns.Positives.from_pandas(frame[:9], "user", "film", item_names=numbered.item_names)
    assert numbered.contains(*again.pairs()).all()
    drawn = ns.pools.Everything(numbered).draw(ns.Query([0]), 50, rng=ns.rng_for(0)).ids
    assert set(map(int, numbered.item_names.names(drawn[0]))) <= set(films.tolist())


# ---- RecBole --------------------------------------------------------------------------------------------

INTER = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + "".join(
    f"{user}\t{100 * len(item)}{item}\t{1 + place % 5}\t{time}\n"
    for place, (user, item, time) in enumerate(zip(USERS, ITEMS, TIMES, strict=True))
)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "shop"
    made.mkdir()
    (made / "shop.inter").write_text(INTER)
    return made


def test_an_atomic_file_is_read_with_its_tokens(folder):
    known = ns.Positives.from_recbole(folder / "shop.inter")
    assert known.anchor_names.names(range(3)) == ["3", "0", "1"]
    assert known.item_names.names(range(2)) == ["300tea", "300jam"]
    assert same(known, ns.Positives.from_recbole(folder))
    assert known.contains(["3", "1"], ["300jam", "300jam"]).tolist() == [True, False]
    later = ns.Positives.from_recbole(folder, anchor_names=known.anchor_names, item_names=known.item_names)
    assert later.union(known).n_items == 2


def test_ratings_and_times_choose_rows(folder):
    liked, early = ns.Positives.from_recbole(folder, liked=4), ns.Positives.from_recbole(folder, before=30)
    assert sorted(zip(*(part.tolist() for part in liked.pairs()), strict=True)) == [(0, 0), (1, 0)]
    assert early.item_names.names([0]) == ["300jam"]
    assert len(early) == 2


def test_the_reader_of_tasks_reads_the_same_columns(folder):
    rows = "".join(f"{n % 6}\t{n // 6}\n" for n in range(60))
    file = folder / "more.inter"
    file.write_text(f"user_id:token\titem_id:token\n{rows}")
    parts = read_interactions(file)
    whole = parts.train.union(parts.validation).union(parts.test)
    assert len(whole) == len(ns.Positives.from_recbole(file)) == 60


# ---- errors ---------------------------------------------------------------------------------------------


class Lazy:
    def collect(self):
        return FRAME


CASES = {
    "from_pandas": [
        (([1],), {}, "`frame` must be a data frame of pandas, got list."),
        ((FRAME, "usr", "item"), {}, "`anchors` must be one of the columns 'user', 'item', 'time', 'day', 'odd', got"),
        ((FRAME, "user", "odd"), {}, "`frame` must be a table that Arrow can read, got"),
        ((FRAME, "user", "item"), {"before": 3}, "`times` must be given along with `before`, got None."),
        ((FRAME, "user", "item"), {"times": "time"}, "`before` must be given along with `times`, got None."),
        ((FRAME, "user", "item"), {"times": "time", "before": "May"}, "`before` must be a number"),
        ((FRAME, "user", "item"), {"times": "day", "before": "May"}, "`before` must be a date or a time, like the"),
        ((FRAME.assign(user=[1, None, 2, 3, 4, 5]), "user", "item"), {}, "`anchors` must be "),
    ],
    "from_polars": [((Lazy(),), {}, "`frame` must be a data frame of Polars, got Lazy. Pass frame.collect().")],
    "from_arrow": [
        (([1],), {}, "`table` must be a pyarrow.Table, or another table with __arrow_c_stream__, got list.")
    ],
    "from_hf_dataset": [
        (([1],), {}, "`dataset` must be a datasets.Dataset, got list."),
        (
            (datasets.DatasetDict({"train": dataset()}),),
            {},
            "`dataset` must be a datasets.Dataset, got DatasetDict. Choose a split: dataset['train'].",
        ),
        ((dataset(), "user", "itm"), {}, "`items` must be one of the columns 'user', 'item'"),
    ],
}


@pytest.mark.parametrize(
    ("maker", "arguments", "options", "message"), [(maker, *case) for maker, cases in CASES.items() for case in cases]
)
def test_errors_are_one_sentence(maker, arguments, options, message):
    given = arguments if len(arguments) == 3 else (*arguments, "user", "item")
    with pytest.raises(ns.NaysayError) as raised:
        getattr(ns.Positives, maker)(*given, **options)
    assert str(raised.value).startswith(f"Positives.{maker}: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("shop.csv", INTER, {}, "`path` must be a file that ends in .inter, or its folder, got"),
        ("shop.inter", "a:token\tb:token\n1\t2\n", {}, "`path` must be a table with a column named user or user_id"),
        ("shop.inter", "user_id:token\titem_id:token\n1\t2\n", {"before": 3}, "`before` must be left out for a table"),
        ("shop.inter", "user_id:token\titem_id:token\n1\t2\n", {"liked": 3}, "`liked` must be left out for a table"),
    ],
)
def test_errors_of_atomic_files(tmp_path, name, text, options, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ns.NaysayError) as raised:
        ns.Positives.from_recbole(tmp_path / name, **options)
    assert str(raised.value).startswith(f"Positives.from_recbole: {message}")


def test_pandas_and_polars_are_never_imported():
    program = (
        "import sys, naysay; naysay.Positives.from_pairs([0], [0]); print({'pandas', 'polars'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
