"""The planted world: its truth is what plain loops say, its false negatives are hidden truths, and it is repeatable."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.kernels.threads import threads
from naysay.testing import planted_world, worlds

WORLD = planted_world()


def pairs_of(known):
    return set(zip(*(part.tolist() for part in known.pairs()), strict=True))


def test_sizes_and_shares():
    assert (WORLD.truth.n_anchors, WORLD.truth.n_items) == (2000, 1000)
    assert (WORLD.truth.count() == 20).all()
    assert (WORLD.known.count() == 14).all()
    assert pairs_of(WORLD.known) < pairs_of(WORLD.truth)
    for vectors, rows in ((WORLD.anchor_vectors, 2000), (WORLD.item_vectors, 1000)):
        assert (vectors.shape, vectors.dtype) == ((rows, 32), np.float32)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_best_items_agree_with_plain_loops(monkeypatch):
    rng = np.random.default_rng(0)
    anchors, items = (rng.standard_normal((size, 4)).astype(np.float32) for size in (7, 30))
    popularity = rng.random(30).astype(np.float32)
    key = np.uint64(12345)

    def mixed(value):
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % 2**64
        return value ^ (value >> 31)

    def luck(row, item):
        golden = 0x9E3779B97F4A7C15
        state = mixed(int(key) ^ mixed((row + golden) % 2**64))
        return worlds._LUCK * (mixed((state + item * golden) % 2**64) / 2**63 - 1)

    for block in (1 << 24, 64):  # one block for all, and blocks of two rows
        monkeypatch.setattr(worlds, "_BLOCK", block)
        for kept in (1, 5, 30):
            best = worlds._best(anchors, items, popularity, kept, key)
            for row in range(7):
                scores = [float(anchors[row] @ items[i]) + popularity[i] + luck(row, i) for i in range(30)]
                assert set(best[row].tolist()) == set(np.argsort(scores)[-kept:].tolist())


def test_false_negatives_are_true_and_not_known():
    anchors = np.arange(50)
    ids = np.random.default_rng(0).integers(-1, 1000, (50, 40))
    known, truth = pairs_of(WORLD.known), pairs_of(WORLD.truth)
    expected = [[(a, i) in truth and (a, i) not in known for i in row] for a, row in enumerate(ids.tolist())]
    found = WORLD.is_false_negative(anchors, ids)
    assert np.array_equal(found, expected)
    assert WORLD.false_negative_rate(anchors, ids) == pytest.approx(np.sum(expected) / (ids >= 0).sum())
    assert WORLD.false_negative_rate(anchors, np.full((50, 3), -1)) == 0.0
    assert WORLD.false_negative_rate(anchors[:0], ids[:0]) == 0.0
    hidden = np.array(sorted(truth - known))
    assert WORLD.false_negative_rate(hidden[:, 0], hidden[:, 1:]) == 1.0


def test_scores_are_dot_products_in_the_array_type_of_the_ids():
    anchors, ids = np.array([3, 5]), np.array([[1, 2, -1], [7, -1, 9]])
    found = WORLD.scores(anchors, ids)
    for row, slot in np.ndindex(ids.shape):
        expected = WORLD.anchor_vectors[anchors[row]] @ WORLD.item_vectors[ids[row, slot]] if ids[row, slot] >= 0 else 0
        assert found[row, slot] == pytest.approx(expected, abs=1e-6)
    assert found.dtype == np.float32
    tensor = WORLD.scores(torch.tensor(anchors), torch.tensor(ids))
    assert isinstance(tensor, torch.Tensor)
    assert np.array_equal(tensor.numpy(), found)
    assert WORLD.scores(anchors[:0], ids[:0]).shape == (0, 3)


def hardest_rate(world):
    """The false-negative rate of the ten best-scoring unknown items of each anchor."""
    scores = world.anchor_vectors @ world.item_vectors.T
    scores[world.known.pairs()] = -np.inf
    return world.false_negative_rate(np.arange(world.truth.n_anchors), np.argsort(-scores, axis=1)[:, :10])


def test_hard_negatives_are_often_false_and_a_worse_encoder_finds_fewer():
    rates = [hardest_rate(planted_world(500, 400, noise=noise)) for noise in (0.0, 1.0, 3.0)]
    assert rates[0] > rates[1] > rates[2]
    uniform = ns.pools.Everything(WORLD.known).draw(ns.Query(np.arange(2000)), 200, rng=ns.rng_for(0))
    by_chance = WORLD.false_negative_rate(np.arange(2000), uniform.ids)
    assert by_chance == pytest.approx(6 / 986, rel=0.1)  # 2,434 of 400,000 expected, give or take 49
    assert hardest_rate(WORLD) > 10 * by_chance


def test_noise_of_length_one_leaves_a_cosine_of_0_7():
    clean, noisy = planted_world(200, 300, noise=0.0), planted_world(200, 300, noise=1.0)
    for name in ("anchor_vectors", "item_vectors"):
        cosines = (getattr(clean, name) * getattr(noisy, name)).sum(axis=1)
        assert cosines.mean() == pytest.approx(0.5**0.5, abs=0.03)
    assert pairs_of(clean.known) == pairs_of(noisy.known)  # the truth does not depend on the encoder


def test_the_default_world_is_the_one_it_always_was():
    """Figures of the world before `spread` and `anisotropy` were arguments."""
    assert WORLD.anchor_vectors[0, :4] == pytest.approx([-0.03838796, -0.15617773, 0.12603335, 0.17634983], abs=1e-6)
    assert WORLD.item_vectors[-1, :4] == pytest.approx([0.2695998, -0.04100442, 0.31000987, 0.29778272], abs=1e-6)
    assert WORLD.known.indices[:6].tolist() == [123, 173, 315, 318, 468, 664]
    named = planted_world(300, 200, spread=0.7, anisotropy=0.0)
    plain = planted_world(300, 200)
    assert np.array_equal(named.anchor_vectors, plain.anchor_vectors)
    assert np.array_equal(named.item_vectors, plain.item_vectors)


def means(world):
    """The mean score of true pairs, and of all."""
    scores = world.anchor_vectors @ world.item_vectors.T
    return float(scores[world.truth.pairs()].mean()), float(scores.mean())


@pytest.mark.parametrize("name", worlds.ENCODERS)
def test_an_encoder_gives_the_scores_that_it_is_named_after(name):
    found = means(planted_world(500, 3000, per_anchor=8, seed=3, **worlds.ENCODERS[name]))
    assert found == pytest.approx([float(part) for part in name.split("/")], abs=0.02)


def test_anisotropy_lifts_and_narrows_all_scores_and_leaves_the_truth():
    plain = planted_world(300, 1000, dimensions=64, seed=2)
    scores = plain.anchor_vectors @ plain.item_vectors.T
    for share in (0.3, 0.9):
        lifted = planted_world(300, 1000, dimensions=64, seed=2, anisotropy=share)
        assert pairs_of(lifted.known) == pairs_of(plain.known)
        found = lifted.anchor_vectors @ lifted.item_vectors.T
        assert np.linalg.norm(lifted.item_vectors, axis=1) == pytest.approx(1, abs=1e-5)
        assert found.mean() == pytest.approx(share + (1 - share) * scores.mean(), abs=0.02)
        # Vectors lean towards the common one by chance, by about 1 / sqrt(dimensions): so "about", by anchor and item.
        slope = np.cov(found.ravel(), scores.ravel())[0, 1] / scores.var()
        assert slope == pytest.approx(1 - share, rel=0.15)


def test_threads_change_nothing():
    before, worlds_made = threads(), []
    try:
        for count in (1, 4):
            ns.set_threads(count)
            worlds_made.append(planted_world(300, 400))
    finally:
        ns.set_threads(before)
    assert pairs_of(worlds_made[0].truth) == pairs_of(worlds_made[1].truth)
    assert pairs_of(worlds_made[0].known) == pairs_of(worlds_made[1].known)


def test_a_small_and_a_full_world():
    tiny = planted_world(1, 1, dimensions=1, per_anchor=1, known_share=1.0)
    assert pairs_of(tiny.known) == pairs_of(tiny.truth) == {(0, 0)}
    none = planted_world(5, 4, per_anchor=2, known_share=0.0)
    assert len(none.known) == 0
    assert len(none.truth) == 10
    full = planted_world(5, 4, per_anchor=4)
    assert (full.truth.count() == 4).all()
