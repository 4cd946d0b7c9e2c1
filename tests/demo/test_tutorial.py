"""The tutorial: each part against plain loops, and the whole on a library that was never written."""

import ast
import importlib
import math
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from planted_library import planted_library

from naysay.demo import Library, choices, tutorial
from naysay.demo.tutorial import Encoder, Pairs, Pieces, Trainer, lesson, quality, split
from naysay.lab import retrieval as subwords
from naysay.rng import rng_for
from naysay.types import Negatives

TEXTS = ["Feed the cat.", "", "a + b", "feed feed"]
SAME = " ".join(f"same{n}" for n in range(24))


@pytest.fixture(autouse=True)
def a_small_encoder(monkeypatch):
    """A step over a small table is fast."""
    monkeypatch.setattr(subwords, "BUCKETS", 2048)


@pytest.fixture(scope="module")
def library():
    return planted_library()


def pairs_of(library, seed=0):
    return Pairs(sorted({*library.documents}), rng_for(seed))


def encoder_of(pairs, rng):
    return Encoder([pairs.queries, pairs.documents], rng)


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
    encoder = encoder_of(pairs_of(library), rng_for(0))
    table = encoder.table.detach().numpy().astype(np.float64)
    for row, found in enumerate(encoder.vectors(Pieces(TEXTS))):
        whole = sum(table[piece] for piece in buckets(TEXTS[row]))
        assert found == pytest.approx(whole / np.sqrt((whole**2).sum()), abs=1e-5)


def test_rare_pieces_begin_longer(library):
    pairs = pairs_of(library)
    counts = np.bincount(np.r_[pairs.queries.ids, pairs.documents.ids], minlength=2048)
    length = np.linalg.norm(encoder_of(pairs, rng_for(0)).table.detach().numpy(), axis=1)
    assert length[counts == 0].mean() > 1.5 * length[counts > 200].mean()


# ---- data and measure -----------------------------------------------------------------------------------


def test_passages_overlap_and_questions_are_words_of_a_run(library):
    pairs = pairs_of(library)
    texts = sorted({*library.documents})
    plain = [" ".join(text.split()[at : at + 36]) for text in texts for at in range(0, 54 - 36 + 1, 6)]
    assert pairs.passages == plain
    assert len(pairs) == 4 * len(texts)
    for run, asked, label in zip(pairs.runs, pairs.questions, pairs.labels.tolist(), strict=True):
        words = run.split()
        assert len(words) == 6
        left = iter(words)
        assert all(word in left for word in asked.split())  # in order
        assert len(asked.split()) == 5
        assert f" {run} " in f" {pairs.passages[label]} "


def test_every_passage_that_holds_the_run_answers(library):
    pairs = pairs_of(library)
    rows, items = pairs.relevant.pairs()
    for row, run in enumerate(pairs.runs[:60]):
        holds = [at for at, passage in enumerate(pairs.passages) if f" {run} " in f" {passage} "]
        assert items[rows == row].tolist() == holds
        assert pairs.labels[row] in holds
    assert pairs.known.pairs()[1].tolist() == pairs.labels.tolist()
    assert len(rows) > 2 * len(pairs)


def test_no_question_is_answered_in_another_part(library):
    shared = Library(library.names, tuple(f"{' '.join(text.split()[:30])} {SAME}" for text in library.documents))
    parts = split(shared, 0)
    texts = [set(part.passages) for part in (parts.train, parts.validation, parts.test)]
    assert not texts[0] & texts[2]
    for part, others in ((parts.validation, (parts.train, parts.test)), (parts.test, (parts.train, parts.validation))):
        assert 0 < len(part) < 4 * len({*part.passages})
        for run in part.runs:
            assert not any(f" {run} " in f" {passage} " for other in others for passage in other.passages)
    assert split(shared, 1).test.questions != parts.test.questions
    assert split(shared, 0).test.questions == parts.test.questions


def test_quality_is_that_of_the_loops(library):
    parts = split(library, 0)
    encoder = encoder_of(parts.train, rng_for(3))
    vectors = np.concatenate([encoder.vectors(parts.test.documents), encoder.vectors(parts.train.documents)])
    ndcg, recall, first = [], [], []
    for row, asked in enumerate(encoder.vectors(parts.test.queries)):
        order = sorted(range(len(vectors)), key=lambda at, asked=asked: -float(vectors[at] @ asked))
        right = [
            f" {parts.test.runs[row]} " in f" {([*parts.test.passages, *parts.train.passages])[at]} " for at in order
        ]
        most = min(10, sum(right))
        gain = sum(1 / math.log2(place + 2) for place in range(10) if right[place])
        ndcg.append(gain / sum(1 / math.log2(place + 2) for place in range(most)))
        recall.append(sum(right[:10]) / most)
        first.append(1 / (1 + right.index(True)))
    found = quality(encoder, parts.test, parts.train)
    assert found.ndcg_at_10 == pytest.approx(np.mean(ndcg), abs=1e-6)
    assert found.recall_at_10 == pytest.approx(np.mean(recall), abs=1e-6)
    assert found.mrr == pytest.approx(np.mean(first), abs=1e-6)


# ---- training -------------------------------------------------------------------------------------------


def test_an_epoch_sees_each_question_once(library, monkeypatch):
    monkeypatch.setattr(tutorial, "BATCH", 68)
    trainer = Trainer(pairs_of(library), 20, 0)
    epochs = []
    for epoch in range(2):
        rows = []
        for step in range(7):
            trainer.step = 7 * epoch + step
            rows += trainer.batch().tolist()
        assert len(set(rows)) == len(rows) == 476  # the last 4 of 480 wait for another order
        epochs.append(rows)
    assert epochs[0] != epochs[1]


def test_empty_slots_teach_nothing(library):
    plain, empty = (Trainer(pairs_of(library), 20, 0) for _ in range(2))
    plain.in_batch(2)
    empty.mined(2, Negatives(np.full((480, 3), -1)))
    assert torch.allclose(plain.encoder.table, empty.encoder.table, atol=1e-4)
    full = Trainer(pairs_of(library), 20, 0)
    full.mined(2, Negatives(np.zeros((480, 3), np.int64)))
    assert not torch.allclose(plain.encoder.table, full.encoder.table, atol=1e-2)


def test_slots_hold_their_documents(library):
    trainer = Trainer(pairs_of(library), 20, 0)
    ids = np.array([[4, -1, 9], [9, 4, -1]])
    vectors = trainer.encoder.vectors(trainer.pairs.documents)
    found = trainer.of_slots(ids).detach().numpy()
    assert found[0, 0] == pytest.approx(vectors[4], abs=1e-6)
    assert found[1, 0] == pytest.approx(vectors[9], abs=1e-6)
    assert found[0, 2] == pytest.approx(vectors[9], abs=1e-6)


def test_a_seed_fixes_the_run(library):
    def trained(seed):
        trainer = Trainer(pairs_of(library), 12, seed)
        trainer.in_batch(4)
        trainer.random(4, 3)
        return trainer

    one, other, third = trained(0), trained(0), trained(1)
    assert torch.equal(one.encoder.table, other.encoder.table)
    assert not torch.equal(one.encoder.table, third.encoder.table)
    assert one.step == 8


def test_the_rate_falls_to_0(library):
    trainer = Trainer(pairs_of(library), 4, 0)
    rates = []
    for _ in range(4):
        trainer.in_batch(1)
        rates.append(trainer.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([tutorial.RATE * share for share in (1, 0.75, 0.5, 0.25)])


# ---- negatives ------------------------------------------------------------------------------------------


def test_the_nearest_hold_false_negatives_and_the_judged_few(library):
    pairs = pairs_of(library)
    encoder = encoder_of(pairs, rng_for(0))

    def false(mined):
        held = [(row, item) for row, items in enumerate(mined.ids.tolist()) for item in items if item >= 0]
        return np.mean([f" {pairs.runs[row]} " in f" {pairs.passages[item]} " for row, item in held])

    plain, careful = tutorial.nearest(encoder, pairs, 4), tutorial.judged(encoder, pairs, 4)
    assert false(plain) > 0.2
    assert false(careful) < 0.4 * false(plain)
    assert choices.false_share(plain, pairs) == pytest.approx(false(plain))
    assert careful.mask.all()


def test_all_arms_begin_alike_and_take_as_many_steps(library, monkeypatch):
    monkeypatch.setattr(tutorial, "BATCH", 64)
    made = []
    start = Trainer.__init__

    def remembered(self, *arguments):
        made.append(self)
        start(self, *arguments)

    monkeypatch.setattr(Trainer, "__init__", remembered)
    parts, heard = split(library, 0), []
    found = lesson(parts, steps=6, seed=0, on_progress=heard.append)
    assert tuple(found.quality) == tutorial.ARMS
    assert [trainer.step for trainer in made] == [0, 6, 6, 6, 6]  # the first is what was mined with
    assert torch.equal(found.start.table, Trainer(parts.train, 6, 0).encoder.table)
    assert heard == [f"{arm} negatives" for arm in tutorial.ARMS]
    again = lesson(parts, steps=6, seed=0)
    assert again.quality == found.quality
    assert (again.mined.ids == found.mined.ids).all()


def test_it_uses_public_names_only():
    tree = ast.parse(Path(tutorial.__file__).read_text())
    folders = ("losses", "mining", "pools", "samplers")
    used = [
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in folders
    ]
    assert {folder for folder, _ in used} == set(folders)
    assert [pair for pair in used if pair[1] not in importlib.import_module(f"naysay.{pair[0]}").__all__] == []
