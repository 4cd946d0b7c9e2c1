"""The tutorial: each part against plain loops, and the whole on a library that was never written."""

import ast
import importlib
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from planted_library import planted_library

from naysay.demo import tutorial
from naysay.demo.tutorial import Encoder, Pairs, Pieces, Trainer, lesson, quality, split
from naysay.rng import rng_for
from naysay.types import Negatives

TEXTS = ["Feed the cat.", "", "a + b", "feed feed"]


@pytest.fixture(autouse=True)
def small_and_alone(monkeypatch):
    """A step over a small table is fast; in one thread it is also the same each time."""
    monkeypatch.setattr(tutorial, "BUCKETS", 2048)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def library():
    return planted_library()


def buckets(text):
    """The pieces of a text, spelt out."""
    words = "".join(mark if mark.isalnum() else f" {mark} " for mark in text.lower()).split()
    found = []
    for word in words:
        whole = f"<{word}>"
        found.append(whole)
        for size in (3, 4, 5):
            if len(whole) > size:
                found += [whole[at : at + size] for at in range(len(whole) - size + 1)]
    return [zlib.crc32(piece.encode()) % 2048 for piece in found] or [0]


# ---- pieces and vectors ---------------------------------------------------------------------------------


def test_pieces_are_those_of_the_words():
    pieces = Pieces(TEXTS)
    ids, begins = pieces.of(np.array([3, 0, 1, 2, 0]))
    expected = [buckets(TEXTS[row]) for row in (3, 0, 1, 2, 0)]
    assert ids.tolist() == [piece for row in expected for piece in row]
    assert begins.tolist() == np.cumsum([0, *map(len, expected)])[:-1].tolist()
    assert len(pieces) == 4


def test_buckets_are_the_same_in_every_process():
    assert Pieces(["cat"]).ids.tolist() == [569, 1100, 936, 348, 703, 1983]


def test_a_vector_is_the_sum_of_its_pieces_at_length_1(library):
    encoder = Encoder(Pairs(library), rng_for(0))
    table = encoder.table.detach().numpy().astype(np.float64)
    for row, found in enumerate(encoder.vectors(Pieces(TEXTS))):
        whole = sum(table[piece] for piece in buckets(TEXTS[row]))
        assert found == pytest.approx(whole / np.sqrt((whole**2).sum()), abs=1e-5)


def test_rare_pieces_begin_longer(library):
    pairs = Pairs(library)
    counts = np.bincount(np.r_[pairs.queries.ids, pairs.documents.ids], minlength=2048)
    length = np.linalg.norm(Encoder(pairs, rng_for(0)).table.detach().numpy(), axis=1)
    assert length[counts == 0].mean() > 1.5 * length[counts > 200].mean()


# ---- data and measure -----------------------------------------------------------------------------------


def test_no_document_is_in_two_parts(library):
    parts = split(library, 0)
    held = [set(part.library.documents) for part in (parts.train, parts.validation, parts.test)]
    assert sum(map(len, held)) == len(set().union(*held)) == 360
    names = [name for part in (parts.train, parts.validation, parts.test) for name in part.library.names]
    assert sorted(names) == sorted(library.names)
    assert [len(texts) for texts in held] == pytest.approx([0.7 * 360, 0.1 * 360, 0.2 * 360], abs=2)
    assert split(library, 1).test.library.names != parts.test.library.names
    assert split(library, 0).test.library.names == parts.test.library.names


def test_quality_is_that_of_the_loops(library):
    parts = split(library, 0)
    encoder = Encoder(parts.train, rng_for(3))
    ranks = []
    documents = [*parts.test.library.documents, *parts.train.library.documents]
    vectors = np.concatenate([encoder.vectors(parts.test.documents), encoder.vectors(parts.train.documents)])
    for row, name in enumerate(encoder.vectors(parts.test.queries)):
        scores = vectors @ name
        best = max(score for score, text in zip(scores, documents, strict=True) if text == documents[row])
        ranks.append(1 + sum(s >= best and t != documents[row] for s, t in zip(scores, documents, strict=True)))
    found = quality(encoder, parts.test, parts.train)
    assert found.recall_at_1 == pytest.approx(sum(rank == 1 for rank in ranks) / len(ranks))
    assert found.recall_at_10 == pytest.approx(sum(rank <= 10 for rank in ranks) / len(ranks))
    assert found.mrr == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks))


def test_a_tie_with_another_document_counts_against_it(library):
    encoder = Encoder(Pairs(library), rng_for(0))
    with torch.no_grad():
        encoder.table[:] = 1  # every text has the same vector
    part = library.take(np.arange(72, 84))  # twelve texts
    assert quality(encoder, Pairs(part)).mrr == pytest.approx(1 / 12)


# ---- training -------------------------------------------------------------------------------------------


def test_an_epoch_sees_each_name_once(library, monkeypatch):
    monkeypatch.setattr(tutorial, "BATCH", 60)
    trainer = Trainer(Pairs(library), 20, 0)
    epochs = []
    for epoch in range(2):
        rows = []
        for step in range(7):
            trainer.step = 7 * epoch + step
            rows += trainer.batch().tolist()
        assert len(set(rows)) == len(rows) == 420  # the last 12 of 432 wait for another order
        epochs.append(rows)
    assert epochs[0] != epochs[1]


def test_empty_slots_teach_nothing(library):
    plain, empty = (Trainer(Pairs(library), 20, 0) for _ in range(2))
    plain.in_batch(2)
    empty.mined(2, Negatives(np.full((432, 3), -1)))
    assert torch.allclose(plain.encoder.table, empty.encoder.table, atol=1e-4)
    full = Trainer(Pairs(library), 20, 0)
    full.mined(2, Negatives(np.zeros((432, 3), np.int64)))
    assert not torch.allclose(plain.encoder.table, full.encoder.table, atol=1e-2)


def test_slots_hold_their_documents(library):
    trainer = Trainer(Pairs(library), 20, 0)
    ids = np.array([[4, -1, 9], [9, 4, -1]])
    vectors = trainer.encoder.vectors(trainer.pairs.documents)
    found = trainer.of_slots(ids).detach().numpy()
    assert found[0, 0] == pytest.approx(vectors[4], abs=1e-6)
    assert found[1, 0] == pytest.approx(vectors[9], abs=1e-6)
    assert found[0, 2] == pytest.approx(vectors[9], abs=1e-6)


def test_a_seed_fixes_the_run_and_a_copy_goes_its_own_way(library):
    def trained(seed):
        trainer = Trainer(Pairs(library), 12, seed)
        trainer.in_batch(4)
        trainer.random(4, 3)
        return trainer

    one, other, third = trained(0), trained(0), trained(1)
    assert torch.equal(one.encoder.table, other.encoder.table)
    assert not torch.equal(one.encoder.table, third.encoder.table)
    copy, before = one.copy(), one.encoder.table.detach().clone()
    copy.in_batch(4)
    assert torch.equal(one.encoder.table, before)
    assert copy.pairs is one.pairs
    one.in_batch(4)
    assert torch.equal(one.encoder.table, copy.encoder.table)  # the optimiser was copied with it
    assert one.step == 12


def test_the_rate_falls_to_0(library):
    trainer = Trainer(Pairs(library), 4, 0)
    rates = []
    for _ in range(4):
        trainer.in_batch(1)
        rates.append(trainer.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([tutorial.RATE * share for share in (1, 0.75, 0.5, 0.25)])


# ---- negatives ------------------------------------------------------------------------------------------


def test_the_nearest_hold_twins_and_the_judged_none(library):
    pairs = Pairs(library)
    trainer = Trainer(pairs, 20, 0)
    trainer.in_batch(20)
    text_of = library.text_of

    def duplicates(mined):
        return int(((text_of[mined.ids] == text_of[:, None]) & mined.mask).sum())

    assert duplicates(tutorial.nearest(trainer.encoder, pairs, 4)) == 144  # each override, and what it overrides
    careful = tutorial.judged(trainer.encoder, pairs, 4)
    assert duplicates(careful) == 0
    assert careful.mask.all()
    assert careful.rule.startswith("Suspected as duplicates of the anchor or of its positives: the same text, n-grams")


def test_all_arms_learn_in_as_many_steps(library, monkeypatch):
    monkeypatch.setattr(tutorial, "BATCH", 64)
    made = []
    start = Trainer.__init__

    def remembered(self, *arguments):
        made.append(self)
        start(self, *arguments)

    monkeypatch.setattr(Trainer, "__init__", remembered)
    copied = Trainer.copy
    monkeypatch.setattr(Trainer, "copy", lambda self: made.append(copied(self)) or made[-1])
    parts, heard = split(library, 0), []
    found = lesson(parts, steps=40, seed=0, on_progress=heard.append)
    assert tuple(found.quality) == tutorial.ARMS
    assert sorted(trainer.step for trainer in made) == [20, 40, 40, 40, 40]  # the first is what was mined with
    untrained = quality(Encoder(parts.train, rng_for(0)), parts.test, parts.train, parts.validation)
    assert all(arm.mrr > untrained.mrr + 0.1 for arm in found.quality.values())
    assert heard[0] == "random negatives"
    again = lesson(parts, steps=40, seed=0)
    assert again.quality == found.quality
    assert (again.mined.ids == found.mined.ids).all()


def test_it_uses_public_names_only():
    tree = ast.parse(Path(tutorial.__file__).read_text())
    folders = ("detectors", "losses", "mining", "pools", "samplers")
    used = [
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in folders
    ]
    assert {folder for folder, _ in used} == set(folders)
    assert [pair for pair in used if pair[1] not in importlib.import_module(f"naysay.{pair[0]}").__all__] == []
