"""Asking reviewers about pairs of a data set: who is trusted how far, every answer on record, and what people get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE
from naysay.arrays import Floats
from naysay.checks import raise_invalid
from naysay.detectors.llm import LLM
from naysay.detectors.rate import RateEstimate
from naysay.detectors.review import (
    CERTAIN,
    YES,
    Review,
    ReviewLists,
    Sensitivity,
    Share,
    conduct,
    positives_to_ask,
    sensitivity_of,
)
from naysay.detectors.reviewer import (
    FALSE_NEGATIVE,
    AnswerFile,
    Function,
    Pairs,
    People,
    Reviewer,
    ask,
    write_review_file,
)
from naysay.positives import Positives
from naysay.text import described

Ids = NDArray[np.int64]
_FITTING_POSITIVES = 200  # by which an encoder chooses its threshold
_RANDOM_PAIRS = 5  # asked about where nearly all answers are yes
_FEWEST_RANDOM_PAIRS = 3  # in a small corpus most of them are labelled, and fewer answers show nothing
_SUSPICIOUS_SHARE = 0.8  # of yes answers in the first round
CANDIDATE, POSITIVE, RANDOM = range(3)  # what is asked about
_ASSUMED = (
    "the reviewer finds unlabelled positives as often as labelled ones",
    "a yes of the last reviewer is right",
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReviewedPairs:
    """Every answer of a review, in order.

    Attributes:
        anchors: (n,) rows of the queries.
        items: (n,) rows of the corpus.
        answers: (n,) from 0 to 1; NaN where there was none.
        kind: (n,) what was asked about: 0 a candidate, 1 a labelled positive, 2 a random pair.
        by: (n,) who answered: 0 the first reviewer, 1 the trusted one.
    """

    anchors: Ids
    items: Ids
    answers: Floats
    kind: Ids
    by: Ids

    def __len__(self) -> int:
        return len(self.anchors)

    def __repr__(self) -> str:
        n_yes = int((self.answers[self.kind == 0] >= 0.5).sum())
        return described(self, f"{len(self):,} answers, yes to {n_yes:,} of {int((self.kind == 0).sum()):,} candidates")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A review of lists, and whom it rests on."""

    review: Review
    pairs: ReviewedPairs
    is_bound: bool  # whether only the upper end is claimed: yes answers are a model's own


@final
@dataclass(slots=True)
class Asking:
    """Asks reviewers about pairs of a data set, each pair once, and records the answers."""

    first: Reviewer
    trusted: Reviewer | None  # who checks the yes answers of the first
    pairs_of: Callable[[Ids, Ids], Pairs]  # (anchors, items) -> pairs with their texts
    known: Positives  # pairs that are no random pairs
    file: AnswerFile | None
    rng: np.random.Generator
    record: list[ReviewedPairs] = field(default_factory=list)

    def review(
        self,
        lists: ReviewLists,
        anchors: Ids,
        ids: Ids,
        *,
        budget: int,
        false_share: float,
        sensitivity: Sensitivity,
        is_fixed: bool = False,
    ) -> Asked:
        """Ask about candidates of lists: those of `anchors` (A,), which are `ids` (A, M); see `conduct`."""
        checker = None if isinstance(self.trusted, People) and not self.trusted.answers else self.trusted

        def ask_first(rows: Ids, slots: Ids) -> Floats:
            is_first_round = not any((part.kind == CANDIDATE).any() for part in self.record)
            answers = self._ask(self.first, anchors[rows], ids[rows, slots], CANDIDATE)
            if is_first_round and not isinstance(self.first, People) and (answers >= YES).mean() > _SUSPICIOUS_SHARE:
                self._check_random_pairs()
            return answers

        def ask_trusted(rows: Ids, slots: Ids) -> Floats:
            return self._ask(checker or self.first, anchors[rows], ids[rows, slots], CANDIDATE, by=1)

        done = conduct(
            lists,
            ask_first,
            budget=budget,
            false_share=false_share,
            rng=self.rng,
            sensitivity=sensitivity,
            check=None if checker is None else ask_trusted,
            at_once=self.people is not None,  # their answers come later, and must be about the same pairs
            is_fixed=is_fixed,
        )
        is_bound = not isinstance(self.first, People | Function) and checker is None
        return Asked(done, self._recorded(), is_bound)

    @property
    def people(self) -> People | None:
        """Those who answer in a file, if any do."""
        return next((one for one in (self.first, self.trusted) if isinstance(one, People)), None)

    def trust(self, anchors: Ids, items: Ids, budget: int) -> Sensitivity:
        """How many of the labelled positives, one of each anchor, the first reviewer finds.

        One whose threshold is open chooses it by others first.
        """
        places = self.rng.permutation(len(anchors))
        fit = getattr(self.first, "fit", None)
        if callable(fit):
            chosen = places[:_FITTING_POSITIVES]
            fit(self.pairs_of(anchors[chosen], items[chosen]))
        if isinstance(self.first, People) or not len(places):
            return CERTAIN
        places = places[-positives_to_ask(budget) :]
        answers = self._ask(self.first, anchors[places], items[places], POSITIVE)
        answers = answers[~np.isnan(answers)]
        if not len(answers):
            raise_invalid("reviewer", "one that answers", f"no answer about {len(places)} labelled positives")
        return sensitivity_of(int((answers >= YES).sum()), len(answers))

    def write_for_people(self, score: Callable[[Ids, Ids], Floats]) -> None:
        """Write the pairs that people are to answer, if there is no file yet.

        These are all pairs that were drawn, or the yes answers of a model; `score` gives the scores of pairs.
        """
        people = self.people
        if people is None or people.path.exists():
            return
        asked = self._recorded()
        wanted = (asked.kind == CANDIDATE) & (asked.by == 0)
        if people is not self.first:
            wanted &= asked.answers >= YES
        anchors, items = asked.anchors[wanted], asked.items[wanted]
        unknown = np.full(len(anchors), np.nan)
        write_review_file("reviewer", people.path, [self.pairs_of(anchors, items)], score(anchors, items), unknown)

    def _ask(self, reviewer: Reviewer, anchors: Ids, items: Ids, kind: int, by: int = 0) -> Floats:
        answers = ask(reviewer, self.pairs_of(anchors, items), self.file)
        n = len(answers)
        self.record.append(ReviewedPairs(anchors, items, answers, np.full(n, kind), np.full(n, by)))
        return answers

    def _check_random_pairs(self) -> None:
        """Raise if the reviewer says yes to random pairs, too."""
        anchors = self.rng.integers(0, self.known.n_anchors, _RANDOM_PAIRS)
        items = self.rng.integers(0, self.known.n_items, _RANDOM_PAIRS)
        is_free = ~self.known.contains(anchors, items, relation="any")
        answers = self._ask(self.first, anchors[is_free], items[is_free], RANDOM)
        if len(answers) >= _FEWEST_RANDOM_PAIRS and (answers >= YES).all():
            raise_invalid("reviewer", "one that tells pairs apart", f"yes to all of {len(answers)} random pairs")

    def _recorded(self) -> ReviewedPairs:
        none = np.empty(0, np.int64)
        parts = [ReviewedPairs(none, none, np.empty(0), none, none), *self.record]
        names = [each.name for each in fields(ReviewedPairs)]
        return ReviewedPairs(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def rate_of(share: Share, n_answers: int, *, is_bound: bool, proven: float = 0.0, note: str = "") -> RateEstimate:
    """The estimate of a review, as it is stated: of a model alone only its upper end.

    Args:
        share: The share of false negatives and its interval.
        n_answers: About how many candidates the reviewer answered.
        is_bound: Whether yes answers are a model's own.
        proven: The share that is false without doubt, which is then the lower end.
        note: What to say of an estimate that is such a bound.
    """
    low = proven if is_bound else share.low
    notes = (note,) if is_bound and note else ()
    numbers = share.estimate, low, share.high, CONFIDENCE, n_answers
    return RateEstimate("false negatives", *numbers, _ASSUMED, notes, bound=is_bound)


def review_notes(reviewers: Sequence[Reviewer | None], next_step: str) -> tuple[str, ...]:
    """What a language model cost, and what people have yet to answer, a sentence each."""
    notes = tuple(
        f"{one.model}: {one.usage.describe(one.price)}."
        for one in reviewers
        if isinstance(one, LLM) and one.usage.requests
    )
    people = next((one for one in reviewers if isinstance(one, People)), None)
    if people is None or people.answers or not people.path.exists():
        return notes
    return (
        *notes,
        f"Pairs to review are in {people.path.name!r}: write yes or no into {FALSE_NEGATIVE!r}, and {next_step}.",
    )
