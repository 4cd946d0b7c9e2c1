"""Who interacted with what, in three parts: training, validation and test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from naysay.arrays import to_numpy
from naysay.checks import as_floats, check_lengths, public, raise_invalid, whole_numbers
from naysay.positives import Positives
from naysay.tasks._parts import PARTS, Ids, add_notes, check_parts, checksum, in_parts, kept_of
from naysay.text import counted


@final
@public
@dataclass(frozen=True, eq=False)
class Interactions:
    """The pairs of users and items in three parts, over the same ids.

    Held-out pairs whose user or item is in no training pair are left out, because no factorisation can rank them; a
    note counts them. A pair that is in two parts stays in the earlier one.

    Args:
        train: Pairs to train on.
        validation: Pairs that choose the learning rate and the best step.
        test: Pairs that are measured once.
        notes: Sentences about the data.

    Raises:
        NaysayError: If sizes differ, or a part is empty, also after leaving out.

    Examples:
        >>> import naysay as ns
        >>> parts = [ns.Positives.from_pairs([0, 1, 0], [0, 1, 2], 2, 3)]
        >>> parts += [ns.Positives.from_pairs([user], [1 - user], 2, 3) for user in (0, 1)]
        >>> ns.tasks.Interactions(*parts)
        Interactions(2 users, 3 items, train 3 pairs, validation 1 pair, test 1 pair)
    """

    train: Positives
    validation: Positives
    test: Positives
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parts(self, Positives, "pair")
        users_seen, items_seen = self.train.count() > 0, self.train.item_counts() > 0
        earlier = self.train
        for name in PARTS[1:]:
            users, items = getattr(self, name).pairs()
            reasons = {
                "items that training never saw": ~items_seen[items],
                "users that training never saw": ~users_seen[users],
                "in an earlier part, too": earlier.contains(users, items),
            }
            rule = "at least one pair of a user and an item that training has, and that is in no earlier part"
            kept, notes = kept_of(name, "pair", reasons, rule)
            part = Positives.from_pairs(users[kept], items[kept], self.n_users, self.n_items)
            object.__setattr__(self, name, part)
            add_notes(self, *notes)
            earlier = earlier.union(part)

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.train.n_anchors

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.train.n_items

    def fingerprint(self) -> str:
        """A checksum of all pairs, 16 digits."""
        sizes = f"{self.n_users} {self.n_items}"
        return checksum(sizes, *(ids for name in PARTS for ids in getattr(self, name).pairs()))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {counted(len(getattr(self, name)), 'pair')}" for name in PARTS)
        return f"Interactions({counted(self.n_users, 'user')}, {counted(self.n_items, 'item')}, {parts})"


@public
def split_by_user(
    users: ArrayLike, items: ArrayLike, n_users: int | None = None, n_items: int | None = None, *, seed: int = 0
) -> Interactions:
    """Hold out a tenth of each user's pairs for validation and a tenth for the test, at random.

    Tenths are rounded down, but a user of three pairs or more has at least one in each part. A user of one or two pairs
    has them all in training.

    Args:
        users: (n,) ids from 0.
        items: (n,) ids from 0. Repeated pairs count once.
        n_users: By default the largest id plus one.
        n_items: By default the largest id plus one.
        seed: Of the choice.

    Raises:
        NaysayError: If no user has three pairs.

    Examples:
        >>> users, items = np.repeat(range(6), 10), [*range(10)] * 6
        >>> split_by_user(users, items)
        Interactions(6 users, 10 items, train 48 pairs, validation 6 pairs, test 6 pairs)
    """
    pairs = Positives.from_pairs(_ids("users", users), _ids("items", items), n_users, n_items)
    who, what = pairs.pairs()
    counts = pairs.count()
    if not (counts >= 3).any():
        got = f"at most {counts.max() if len(counts) else 0} for each of {counted(len(counts), 'user')}"
        raise_invalid("users", "at least three pairs of one user, for a split by user", got)
    order = np.lexsort((np.random.default_rng(seed).random(len(who)), who))
    place = np.arange(len(who)) - pairs.indptr[:-1][who]
    held = np.where(counts >= 3, np.maximum(1, counts // 10), 0)[who]
    part = np.where(place < held, 1, np.where(place < 2 * held, 2, 0))
    return Interactions(*in_parts(who, what[order], part, pairs))


@public
def split_by_time(users: ArrayLike, items: ArrayLike, times: ArrayLike) -> Interactions:
    """Train on the earliest eight tenths of all pairs, validate on the next tenth, and test on the last tenth.

    Of repeated pairs the earliest counts. Pairs of equal time stay in the order given.

    Args:
        users: (n,) ids from 0.
        items: (n,) ids from 0.
        times: (n,) numbers.

    Raises:
        NaysayError: If there are fewer than ten different pairs.

    Examples:
        >>> users, items = np.repeat(range(6), 10), [*range(10)] * 6
        >>> split_by_time(users, items, times=np.arange(60) % 7)
        Interactions(6 users, 10 items, train 48 pairs, validation 6 pairs, test 6 pairs)
    """
    who, what, when = _ids("users", users), _ids("items", items), as_floats("times", times)
    check_lengths(users=len(who), items=len(what), times=len(when))
    pairs = Positives.from_pairs(who, what)
    order = np.argsort(when, kind="stable")
    first = np.unique((who * pairs.n_items + what)[order], return_index=True)[1]
    order = order[np.sort(first)]
    if len(order) < 10:
        raise_invalid("users", "at least ten different pairs, for a split by time", len(order))
    tenth = len(order) // 10
    part = np.repeat([0, 1, 2], [len(order) - 2 * tenth, tenth, tenth])
    return Interactions(*in_parts(who[order], what[order], part, pairs))


def _ids(parameter: str, values: Any) -> Ids:
    return whole_numbers(parameter, to_numpy(values)).astype(np.int64)
