"""Data sets of Hugging Face go in, also streamed, and come out; nothing is downloaded or uploaded."""

import numpy as np
import pytest

import naysay as ns
from naysay.integrations.sentence_transformers import mine_hard_negatives

datasets = pytest.importorskip("datasets")
ROWS = {"user": ["a", "b", "a", "c"], "item": ["x", "y", "z", "x"], "note": [1, 2, 3, 4]}


def streamed(rows, **options):
    """A data set that is streamed, in two parts."""
    return datasets.Dataset.from_dict(rows).to_iterable_dataset(num_shards=2, **options)


def unnamed(rows):
    """A data set of a generator, which does not know its columns before it is read."""
    return datasets.IterableDataset.from_generator(lambda: (dict(zip(rows, row)) for row in zip(*rows.values())))  # noqa: B905


@pytest.mark.parametrize("make", [datasets.Dataset.from_dict, streamed, unnamed])
def test_positives_of_a_data_set(make):
    positives = ns.Positives.from_table(make(ROWS), anchors="user", items="item")
    expected = ns.Positives.from_table(datasets.Dataset.from_dict(ROWS), anchors="user", items="item")
    assert [array.tolist() for array in positives.pairs()] == [array.tolist() for array in expected.pairs()]


@pytest.mark.parametrize("make", [streamed, unnamed])
def test_a_column_that_a_streamed_data_set_lacks_is_named(make):
    with pytest.raises(ns.NaysayError, match=r"got 'users'\. Did you mean 'user'\?") as caught:
        ns.Positives.from_table(make(ROWS), anchors="users", items="item")
    assert caught.value.parameter == "anchors"


def test_an_empty_stream_has_no_pairs():
    empty = datasets.IterableDataset.from_generator(lambda: iter(()))
    with pytest.raises(ns.NaysayError) as caught:
        ns.Positives.from_table(empty, anchors="user", items="item")
    assert caught.value.parameter == "anchors"


class Encoder:
    """A vector for each text that only depends on it."""

    def encode(self, texts, **options):
        return np.stack([np.random.default_rng(sum(text.encode())).normal(size=8) for text in texts])


@pytest.mark.parametrize("make", [streamed, unnamed])
def test_the_drop_in_reads_a_stream_like_a_data_set(make):
    rows = {"question": [f"question {row}" for row in range(30)], "answer": [f"answer {row}" for row in range(30)]}
    mined = [
        mine_hard_negatives(pairs, Encoder(), num_negatives=2, verbose=False)
        for pairs in (datasets.Dataset.from_dict(rows), make(rows))
    ]
    assert isinstance(mined[1], datasets.Dataset)
    assert mined[0].to_dict() == mined[1].to_dict()
    assert len(mined[0]) == 60


def test_what_was_mined_comes_out_as_a_data_set_and_is_pushed_by_it(monkeypatch):
    world = ns.planted_world(20, 50)
    mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, k=2, judge=None)
    texts = {"query_texts": [f"q{row}" for row in range(20)], "corpus_texts": [f"d{row}" for row in range(50)]}
    data = mined.to_dataset("triplet", **texts)
    assert data.column_names == ["anchor", "positive", "negative"]
    assert len(data) == int((mined.mask.sum(axis=1) * world.known.count()).sum())
    assert data[0]["negative"] == f"d{mined.ids[0, 0]}"
    pushed = []
    monkeypatch.setattr(
        datasets.Dataset, "push_to_hub", lambda self, *names, **options: pushed.append((names, options))
    )
    data.push_to_hub("me/negatives", private=True)
    assert pushed == [(("me/negatives",), {"private": True})]
    with pytest.raises(ns.NaysayError) as caught:
        mined.to_dataset("triplets", **texts)
    assert caught.value.parameter == "format"
