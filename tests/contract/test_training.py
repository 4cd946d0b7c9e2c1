"""The training loop around the negatives: loaders, batches, several processes, what the negatives did."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from tests.contract import names

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(RNG.integers(0, 40, 300), RNG.integers(0, 90, 300), 40, 90)
SAMPLER = ns.samplers.Static(ns.pools.Everything(KNOWN))
ALL = sorted(zip(*(part.tolist() for part in KNOWN.pairs()), strict=True))


def content(batches):
    return [
        (one.query.step, one.query.anchors.tolist(), one.query.positives.tolist(), one.negatives.ids.tolist())
        for one in batches
    ]


def pairs(batches):
    return [pair for _, anchors, items, _ in content(batches) for pair in zip(anchors, items, strict=True)]


def load(**options):
    return ns.data.loader(KNOWN, SAMPLER, 32, **({"k": 3} | options))


# ---- loader ---------------------------------------------------------------------------------------------------------


def test_an_epoch_has_each_pair_once_with_the_negatives_of_its_step():
    loader = load(seed=5)
    batches = list(loader)
    assert sorted(pairs(batches)) == ALL
    for batch in batches:
        again = SAMPLER.sample(batch.query, 3, rng=ns.rng_for(5, batch.query.step))
        assert torch.equal(torch.as_tensor(batch.negatives.ids), torch.as_tensor(again.ids))
    assert content(loader) != content(load(seed=5))  # the next epoch


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_workers_give_the_same_batches():
    assert content(load(workers=1)) == content(load())


def test_ranks_share_the_pairs():
    shares = [pairs(load(rank=rank, ranks=2)) for rank in range(2)]
    assert sorted({*shares[0], *shares[1]}) == ALL


def test_a_loader_resumes_in_the_middle_of_an_epoch():
    whole, loader = content(load()), load()
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    again = load()
    again.restore(loader.state())
    assert content(again) == whole[3:]


def test_k_may_be_a_schedule():
    at = ns.quantity.adaptive(peak=5, steps=10)
    for batch in load(k=at):
        assert batch.negatives.shape[1] in (math.floor(at(batch.query.step)), math.ceil(at(batch.query.step)))


# ---- batches --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=20), st.integers(1, 5), st.integers(0, 99))
def test_rows_of_one_label_never_meet(labels, size, seed):
    batches = ns.batches.Shuffled(len(labels), size, forbid=labels)
    plan = batches.plan(0, rng=ns.rng_for(seed))
    placed = [row for batch in plan.tolist() for row in batch if row >= 0]
    assert len(set(placed)) == len(placed)
    assert sum(batches.dropped.values()) == len(labels) - len(placed)
    for batch in plan.tolist():
        found = [labels[row] for row in batch if row >= 0 and labels[row] >= 0]
        assert len(set(found)) == len(found)


def test_groups_sit_together():
    groups = np.arange(24) // 6
    plan = ns.batches.Grouped(groups, 6).plan(0, rng=ns.rng_for(0))
    assert sorted(plan.ravel().tolist()) == list(range(24))
    assert all(len(set(groups[batch].tolist())) == 1 for batch in plan)


def test_rows_of_high_loss_come_more_often():
    by_loss = ns.batches.ByLoss(100, 10)
    by_loss.observe(np.arange(100), np.linspace(1, 0, 100))
    drawn = np.concatenate([by_loss.plan(epoch, rng=ns.rng_for(0, epoch)).ravel() for epoch in range(20)])
    assert (drawn < 50).mean() > 0.6


def test_batches_of_near_rows_cover_all():
    rng = np.random.default_rng(0)
    vectors = (np.repeat(np.eye(4), 12, axis=0) * 5 + rng.normal(0, 0.1, (48, 4))).astype(np.float32)
    walks = names.RandomWalkBatches(48, 6, neighbours=5, candidates=47)
    walks.update(vectors, rng=ns.rng_for(0))
    plan = walks.plan(0, rng=ns.rng_for(1))
    rows = plan[plan >= 0]
    assert sorted(rows.tolist()) == list(range(48))
    alike = np.mean([len(set((batch[batch >= 0] // 12).tolist())) for batch in plan])
    assert alike < 3  # random batches of six have more than three of the four groups


def test_a_plan_is_a_batch_sampler_of_a_data_loader():
    sampler = ns.batches.BatchSampler(ns.batches.Shuffled(20, 5), seed=3)
    rows = [batch.tolist() for batch in torch.utils.data.DataLoader(torch.arange(20), batch_sampler=sampler)]
    assert sorted(row for batch in rows for row in batch) == list(range(20))
    again = ns.batches.BatchSampler(ns.batches.Shuffled(20, 5), seed=3)
    assert [list(map(int, batch)) for batch in again] == rows


# ---- several processes, of which there is one here ------------------------------------------------------------------


def test_one_process_is_the_whole_batch():
    query = ns.Query(torch.arange(8), positives=torch.arange(8))
    whole = ns.distributed.WholeBatch(SAMPLER).sample(query, 3, rng=ns.rng_for(0))
    assert torch.equal(torch.as_tensor(whole.ids), torch.as_tensor(SAMPLER.sample(query, 3, rng=ns.rng_for(0)).ids))
    memory = ns.pools.Memory(16)
    ns.distributed.observe_all(memory, query, None, vectors=torch.eye(8))
    assert memory.ids.tolist() == list(range(8))


# ---- what they did --------------------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.booleans())
def test_percentiles_and_bands_are_counted_within_a_row(seed, masked):
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.linspace(-1, 1, 40), (3, 1)), axis=1)
    mask = rng.random((3, 40)) < 0.7 if masked else None
    found = ns.difficulty.bands(scores, mask, hard=0.25, hardest=0.05)
    for row in range(3):
        kept = [slot for slot in range(40) if mask is None or mask[row, slot]]
        order = sorted(kept, key=lambda slot: -scores[row, slot])
        hardest, hard = math.floor(0.05 * len(kept) + 1e-9), math.floor(0.25 * len(kept) + 1e-9)
        assert {slot for slot in kept if found[row, slot] == 2} == set(order[:hardest])
        assert {slot for slot in kept if found[row, slot] == 1} == set(order[hardest:hard])
        assert {slot for slot in kept if found[row, slot] == 0} == set(order[hard:])


def test_the_gradient_mass_is_that_of_a_softmax():
    scores = np.array([[0.9, 0.1, 0.5, -0.3]])
    found = ns.difficulty.gradient_mass(scores, temperature=0.5, bins=4)
    exponents = sorted(math.exp(value / 0.5) for value in scores[0])
    assert found.mean.tolist() == pytest.approx([value / math.fsum(exponents) for value in exponents])


def test_the_share_of_the_same_class_by_percentile():
    scores = np.array([[0.9, 0.1, 0.5, -0.3], [0.1, 0.2, 0.3, 0.4]])
    found = ns.difficulty.same_class_share(scores, [0, 1], [0, 1, 0, 1], bins=2)
    assert found.mean.tolist() == pytest.approx([0.25, 0.75])


def test_a_monitor_measures_a_step_and_logs_it(tmp_path):
    monitor = ns.difficulty.Monitor(tmp_path / "run.jsonl", temperature=1.0)
    negatives = ns.Negatives(np.array([[4, 2], [5, 3]]), scores=np.array([[0.5, 0.5], [0.9, 0.1]]))
    found = monitor.observe(ns.Query([0, 1], step=4), negatives, positive_scores=[0.8, 0.8])
    assert found["score/negatives"] == pytest.approx(0.5)
    assert found["above_positive"] == pytest.approx(0.25)
    assert found["repeats"] == 0
    assert monitor.observe(ns.Query([0, 1], step=5), negatives, positive_scores=[0.8, 0.8])["repeats"] == 1
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert {line["step"] for line in lines if "step" in line} == {4, 5}


def test_a_study_finds_the_planted_classes_among_the_hard():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    vectors = np.eye(3)[labels] * 2 + rng.normal(0, 0.5, (60, 3))
    found = ns.difficulty.study(vectors[:20], vectors[20:], labels=labels[:20], negative_labels=labels[20:])
    share = found.by_percentile.same_class.mean
    assert share[-1] > 0.8
    assert share[0] < 0.1


# ---- rankings -------------------------------------------------------------------------------------------------------


def test_ranking_is_counted_in_plain_loops():
    rng = np.random.default_rng(0)
    scores = rng.permuted(np.tile(np.arange(20.0), (6, 1)), axis=1)
    wanted = ns.Positives.from_pairs(np.arange(6), rng.integers(0, 20, 6), 6, 20)
    found = names.ranking(scores, wanted)
    ranks = [1 + int((scores[row] > scores[row, item]).sum()) for row, item in zip(*wanted.pairs(), strict=True)]
    assert found.ranks.tolist() == ranks
    assert found.mrr == pytest.approx(sum(1 / rank for rank in ranks) / 6)
    assert found.hits(3) == pytest.approx(sum(rank <= 3 for rank in ranks) / 6)


# ---- a planted world ------------------------------------------------------------------------------------------------


def test_a_planted_world_knows_its_false_negatives():
    world = ns.planted_world(50, 80, per_anchor=6, known_share=0.5, seed=3)
    ids = np.tile(np.arange(80), (50, 1))
    anchors = np.arange(50)
    false = world.is_false_negative(anchors, ids)
    assert (false == (world.truth.contains(anchors, ids) & ~world.known.contains(anchors, ids))).all()
    assert world.truth.count().tolist() == [6] * 50
    assert 0.3 < false.sum() / 300 < 0.7
    again = ns.planted_world(50, 80, per_anchor=6, known_share=0.5, seed=3)
    assert (again.item_vectors == world.item_vectors).all()


# ---- texts to vectors -----------------------------------------------------------------------------------------------


class Letters:
    """A model that counts letters, and how often it is asked."""

    cache_key = "letters"

    def __init__(self):
        self.seen = 0

    def encode(self, texts, prompt="", **options):
        self.seen += len(texts)
        return np.array([[text.count(letter) + 1.0 for letter in "abc"] for text in texts], np.float32)


def test_texts_are_encoded_once(tmp_path):
    model, texts = Letters(), ["a", "bb", "cab"]
    first = np.load(ns.encode.encode_texts(model, texts, folder=tmp_path, show=False))
    again = np.load(ns.encode.encode_texts(model, texts, folder=tmp_path, show=False))
    assert model.seen == 3
    assert first.tolist() == again.tolist() == [[2, 1, 1], [1, 3, 1], [2, 2, 2]]
