"""Learned: negatives of a generator that is rewarded for what the model finds hard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._slots import check_score, corrupted_triples, score_slots
from naysay._state import Entry
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import check_bool, check_number, check_one_of, check_whole, public, raise_invalid
from naysay.pools._slots import ON_SHORT, given_ids
from naysay.pools.corruption import Corruption
from naysay.rng import generator_of, key_from, rng_for
from naysay.samplers import _policy as policy
from naysay.samplers._candidates import check_is_pool, number_at, wanted_slots, whole_at
from naysay.samplers._generators import Generator, read_within, state_within
from naysay.samplers._learned_candidates import Candidates
from naysay.samplers._top_k import take
from naysay.text import described
from naysay.types import Negatives, Pool, Query, anchor_ids, check_query

_BASELINES = ("exact", "none", "running", "others", "greedy")
REWARDS: dict[str, Callable[[Any], Any]] = {
    "score": lambda score: score,
    "sigmoid": lambda score: np.tanh(score / 2),  # 2 sigmoid - 1
    "softplus": lambda score: np.logaddexp(0.0, score),
    "sigmoid_log": lambda score: -np.logaddexp(0.0, -score),
}


@final
@public
@dataclass(eq=False, repr=False)
class Learned:
    """Draw negatives from softmax(generator / temperature) over candidates of a pool; `observe` trains the generator.

    The generator ascends E r = sum_j p_j r_j, r the reward of a candidate by the model in training, such as its score:
    it learns to propose what the model takes for a positive. `observe` draws candidates of its own and makes one step:

        "exact"    all candidates are scored: p_j (r_j - E r), the gradient without noise. n scores per row
        "none"     k = `slots` draws, the mean of r_j d log p_j
        "running"  the same with the mean reward of the epoch before as baseline; `update` ends an epoch (KBGAN)
        "others"   the baseline of a slot is the mean of the row's other slots; needs two
        "greedy"   the baseline is the reward of the likeliest candidate (self-critical)

    All have the same expectation. distinct=True draws rows without repeats, and learns with the probability of the
    ordered row and its total reward, which needs another baseline than "exact" and "others". To that the gradient of
    entropy * H(p) is added, and with entropy_floor=c that of H where H < log c.

    With explore=e known positives compete in `observe`, too, and draws come from (1 - e) p + e U(positives of the
    anchor), their rewards times p over that. So the generator learns what positives are like (IRGAN, e = 0.2, which its
    paper does not mention). `sample` never returns them. Ignored pairs never compete.

    With candidates=None all items that are not known compete, and log_q is exact: log p, for distinct rows given the
    earlier slots. With a number it is None, because candidates are random, and so it is for triples of two sides. All
    candidates of a triple replace one side, which is drawn by the pool's chances.

    Wang et al. IRGAN. SIGIR 2017; Cai and Wang. KBGAN: Adversarial Learning for Knowledge Graph Embeddings. NAACL 2018.
    The published codes do not exclude known positives from what the generator proposes. Evidence for such samplers is
    weak: compare with `Dynamic` at equal cost.

    Cost: `sample` n logits per row; `observe` n logits, a gradient of them, and n or `slots` scores per row.

    Args:
        pool: Where candidates come from. For candidates=None it has `positives`, or is a `Corruption`.
        generator: `Factors`, `TripleFactors`, `Perceptron`, `TorchModule`, or your own with the same methods.
        reward: A score function as in `Dynamic`, or a pair (kind, function) of the kinds "score", the score itself,
            "sigmoid", 2 sigmoid - 1, "softplus", log(1 + e^s), and "sigmoid_log", log sigmoid.
        candidates: n, or a function of the step; None: all.
        temperature: Of the softmax; above 0, or a function of the step.
        baseline: See above.
        slots: Draws per row in `observe`.
        entropy: The weight of the entropy.
        entropy_floor: c, at least 1, or None.
        explore: e, from 0 to below 1; needs candidates=None and draws, which "exact" does not make.
        distinct: Whether rows are without repeats.
        seed: Of the draws in `observe`.
        on_short: "pad" or "raise".

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=6))
        >>> sampler = Learned(pool, ns.samplers.Factors(1, 6, 2), lambda anchors, ids: ids * 1.0)
        >>> for step in range(200):
        ...     sampler.observe(ns.Query([0], step=step))
        >>> bool((sampler.sample(ns.Query([0] * 100), 1, rng=ns.rng_for(0)).ids == 5).mean() > 0.8)
        True
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    pool: Pool
    generator: Generator
    reward: Any
    candidates: Any = None
    temperature: Any = 1.0
    _: KW_ONLY
    baseline: str = "exact"
    slots: int = 1
    entropy: float = 0.0
    entropy_floor: float | None = None
    explore: float = 0.0
    distinct: bool = False
    seed: int = 0
    on_short: str = "pad"
    _lock: Lock = field(init=False)

    def __post_init__(self) -> None:
        check_is_pool(self.pool)
        kind, self._score = self.reward if isinstance(self.reward, tuple) else ("score", self.reward)
        check_one_of("reward", kind, tuple(REWARDS))
        check_score(self._score)
        self._shape = REWARDS[kind]
        self._settings(None)
        check_one_of("baseline", self.baseline, _BASELINES)
        check_one_of("on_short", self.on_short, ON_SHORT)
        check_whole("slots", self.slots, 2 if self.baseline == "others" else 1)
        check_number("entropy", self.entropy, at_least=0, finite=True)
        if self.entropy_floor is not None:
            check_number("entropy_floor", self.entropy_floor, at_least=1, finite=True)
        check_whole("seed", self.seed, 0)
        if check_bool("distinct", self.distinct) and self.baseline in ("exact", "others"):
            raise_invalid("baseline", '"none", "running" or "greedy" for distinct rows', repr(self.baseline))
        self._from = Candidates(self.pool, self.candidates)
        triples = isinstance(self.pool, Corruption)
        if check_number("explore", self.explore, at_least=0, below=1) and (self.candidates is not None or triples):
            raise_invalid("explore", "0 unless all items of a pool with `positives` compete", self.explore)
        if self.explore and (self.distinct or self.baseline == "exact"):
            got = f"baseline={self.baseline!r}, distinct={self.distinct}"
            raise_invalid("explore", '0 for distinct rows and the baseline "exact"', got)
        self._lock = Lock()
        self._steps = 0
        self._mean, self._sum, self._count = 0.0, 0.0, 0

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, the first drawn first."""
        check_query(query)
        number, temperature = self._settings(query.step)
        counts, width = wanted_slots(k, len(query), rng)
        found = self._from.draw(query, number, rng)
        with self._lock:
            logits = self._logits(query, found) / temperature
        made = generator_of(key_from(rng))
        chance, filled = policy.softmax(logits), np.asarray(found.ids) >= 0
        if self.distinct:
            order = policy.draw_distinct(logits, min(width, logits.shape[1]), made)
        else:
            order = policy.draw_independent(chance, width, made)
        kept = np.take_along_axis(filled, order, axis=1)
        answer = take(found, order, kept, counts, width, self.on_short)
        if number is None and len(getattr(self.pool, "sides", ())) < 2:  # the chance of a side is not known here
            with np.errstate(divide="ignore"):
                log_q = np.log(np.take_along_axis(chance, order, axis=1))
                if self.distinct:
                    log_q -= np.log1p(-np.minimum(np.cumsum(np.exp(log_q), axis=1) - np.exp(log_q), 1 - 1e-16))
            padded = np.zeros((len(log_q), width))
            padded[:, : log_q.shape[1]] = np.minimum(log_q, 0.0)[:, :width]
            answer = replace(answer, log_q=np.where(np.asarray(answer.ids) < 0, 0.0, padded))
        return answer.like(query)

    def log_chance(self, query: Query, ids: Any) -> NDArray[np.float64]:
        """(B, K) the log-probability of ids (B, K) in a draw of one, if all items compete.

        It is -inf for what is known, and 0 for -1, an empty slot.
        """
        number, temperature = self._settings(query.step)
        if number is not None or isinstance(self.pool, Corruption):
            raise_invalid("candidates", "None, and the pool one of items", number)
        with self._lock:
            chance = policy.softmax(self._logits(query, self._from.draw(query, None, rng_for(0))) / temperature)
        given = given_ids(ids, chance.shape[1])
        with np.errstate(divide="ignore"):
            return np.where(given < 0, 0.0, np.log(np.take_along_axis(chance, given, axis=1)))

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Train the generator by one step on the query's anchors. Call it once a step.

        Args:
            query: The anchors.
            negatives: Not used: candidates are drawn anew, so that sampling may happen elsewhere.
            positive_scores: Not used.
            vectors: Not used.
        """
        check_query(query)
        if not len(query):
            return
        number, temperature = self._settings(query.step)
        with self._lock:
            rng, self._steps = rng_for(self.seed, self._steps), self._steps + 1
            if self.explore:
                found, explored = self._from.with_positives(query)
            else:
                found, explored = self._from.draw(query, number, rng), None
            chance = policy.softmax(self._logits(query, found) / temperature)
            by_logit = self._gradient(query, found, chance, explored, rng)
            if self.entropy or self.entropy_floor is not None:
                weight = np.full((len(chance), 1), float(self.entropy))
                if self.entropy_floor is not None:
                    weight += policy.entropy(chance) < np.log(self.entropy_floor)
                by_logit += weight * policy.entropy_gradient(chance)
            by_logit *= 1 / (temperature * len(chance))
            by_logit[np.asarray(found.ids) < 0] = 0.0
            self.generator.ascend(*self._asked(query, found), by_logit)

    def _gradient(
        self, query: Query, found: Negatives, chance: Any, explored: Any, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """(B, n) the gradient of the expected reward in the logits, or its estimate by draws of `explored`, too."""
        if self.baseline == "exact":
            reward = self._rewards(query, found)
            self._seen((chance * np.where(chance > 0, reward, 0.0)).sum(axis=1))
            return policy.exact_gradient(chance, reward)
        slots = min(self.slots, chance.shape[1]) if self.distinct else self.slots
        with np.errstate(divide="ignore"):
            places = policy.draw_distinct(np.log(chance), slots, rng) if self.distinct else None
        proposal = chance if explored is None else policy.mixed(chance, explored, self.explore)
        if places is None:
            places = policy.draw_independent(proposal, slots, rng)
        reward = self._rewards(query, _at(found, places))
        reward = np.where(np.take_along_axis(chance, places, axis=1) > 0, reward, 0.0)
        baseline: Any = {"none": 0.0, "running": self._mean}.get(self.baseline, 0.0)
        if self.baseline == "others":
            baseline = (reward.sum(axis=1, keepdims=True) - reward) / (slots - 1)
        elif self.baseline == "greedy":
            baseline = self._rewards(query, _at(found, np.argmax(chance, axis=1)[:, None]))
            baseline = np.where(chance.sum(axis=1, keepdims=True) > 0, baseline, 0.0)
        ratio = policy.ratios(chance, proposal, places)
        self._seen((ratio * reward).mean(axis=1))
        if self.distinct:
            return policy.ordered_gradient(chance, places, reward, baseline * slots)
        return policy.drawn_gradient(chance, places, ratio * (reward - baseline))

    def update(self) -> None:
        """End an epoch: its mean reward becomes the baseline "running", and `mean_reward`."""
        with self._lock:
            self._mean = self._sum / self._count if self._count else self._mean
            self._sum, self._count = 0.0, 0

    @property
    def mean_reward(self) -> float:
        """The mean reward of the last epoch that ended; 0 before."""
        return self._mean

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that the next sample and observe depend on, apart from the settings."""
        with self._lock:
            own = {"steps": self._steps, "mean": self._mean, "sum": self._sum, "count": self._count}
            return {**own, **state_within(self.generator)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        whole = Entry(whole=True)
        mine = {"steps": whole, "mean": Entry(), "sum": Entry(), "count": whole}
        read, theirs = read_within(state, mine)
        with self._lock:
            self.generator.restore(theirs)
            self._steps, self._count = int(read["steps"]), int(read["count"])
            self._mean, self._sum = float(read["mean"]), float(read["sum"])

    def __repr__(self) -> str:
        return described(self)

    def _settings(self, step: int | None) -> tuple[Any, Any]:
        number = whole_at("candidates", self.candidates, step, optional=True)
        return number, number_at("temperature", self.temperature, step, above=0, finite=True)

    def _seen(self, rewards: Any) -> None:
        self._sum, self._count = self._sum + float(rewards.sum()), self._count + len(rewards)

    def _asked(self, query: Query, found: Negatives) -> tuple[Any, Any]:
        """Anchors and candidates as generators take them, with 0 in empty slots."""
        anchors, ids = anchor_ids(query), np.maximum(np.asarray(found.ids), 0)
        return anchors, ids if found.side is None else corrupted_triples(anchors, ids, found.side)

    def _logits(self, query: Query, found: Negatives) -> NDArray[np.float64]:
        logits = np.asarray(self.generator.logits(*self._asked(query, found)), np.float64)
        if logits.shape != found.shape:
            raise_invalid("generator", f"one that returns shape {found.shape}", f"shape {logits.shape}")
        return np.where(np.asarray(found.ids) < 0, -np.inf, logits)

    def _rewards(self, query: Query, found: Negatives) -> NDArray[np.float64]:
        """(B, n) the rewards; any number in empty slots."""
        asked = found.like(query)
        scores = np.asarray(to_numpy(score_slots(self._score, query, asked.ids, asked.side)), np.float64)
        return np.asarray(self._shape(np.where(np.asarray(found.ids) < 0, 0.0, scores)))


def _at(found: Negatives, places: NDArray[np.int64]) -> Negatives:
    """The candidates at some places."""
    side = None if found.side is None else np.take_along_axis(np.asarray(found.side), places, axis=1)
    return Negatives(np.take_along_axis(np.asarray(found.ids), places, axis=1), side=side)
