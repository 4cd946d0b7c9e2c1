"""The verdict on k: clear cases, and what cannot be told."""

import numpy as np
import pytest

from naysay.auditing._corpus_sample import Look
from naysay.auditing.k_verdict import K_MAX, enough
from naysay.quantity import auc, estimate, simulated


def seen_at(mu, rows=1500, width=200, seed=0):
    """A look in which positives are N(mu, 1) and uniform negatives N(0, 1)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, (rows, width)).astype(np.float32)
    positives = rng.normal(mu, 1, rows).astype(np.float32)
    return Look(np.arange(rows), scores, np.ones(scores.shape, bool), positives, width)


@pytest.mark.parametrize(
    ("mu", "k", "verdict"),
    [
        (1.0, 4, "within"),
        (1.0, 1, "too small"),
        (1.0, 64, "too large"),
        (2.4, 20, "within"),
        (2.4, 2, "too small"),
        (2.4, 300, "too large"),
        (4.0, 8, "too small"),
    ],
)
def test_clear_cases(mu, k, verdict):
    found = enough(k, seen_at(mu))
    assert (found.k, found.verdict) == (k, verdict)
    assert found.low <= found.best <= found.high
    assert found.auc == pytest.approx(auc(mu), abs=0.02)
    assert abs(found.auc - auc(mu)) <= 4 * found.error
    assert found.best == estimate(found.auc, auc(simulated(found.separation)), k_max=K_MAX).k


def test_the_ends_are_within():
    seen = seen_at(2.4)
    known = enough(1, seen)
    ends = [enough(k, seen).verdict for k in (known.low - 1, known.low, known.high, known.high + 1)]
    assert ends == ["too small", "within", "within", "too large"]


def test_the_paper_s_own_figures_at_the_middle():
    assert enough(4, seen_at(1.0)).best in (4, 5)  # METHODS: mu 1 gives 4
    assert 15 <= enough(20, seen_at(2.4)).best <= 26  # 2.4 gives 20


def test_a_perfect_encoder_is_held_to_what_it_can_show():
    found = enough(8, seen_at(40.0, rows=50, width=10))
    assert (found.auc, found.error, found.verdict) == (1.0, 0.0, "too small")
    assert found.separation < 4  # 50 rows cannot show more
    assert found.best > 8


def test_what_cannot_be_told():
    assert enough(8, None).verdict == "cannot be told"
    assert "it takes vectors" in enough(8, None).rests_on
    one = seen_at(1.0, rows=1)
    assert enough(8, one).rests_on == "it takes positives of at least 2 anchors"
    worse = enough(8, seen_at(-1.0))
    assert (worse.verdict, worse.best) == ("cannot be told", None)
    assert worse.auc < 0.5
    assert worse.rests_on == "the model ranks positives no higher than uniform negatives"
