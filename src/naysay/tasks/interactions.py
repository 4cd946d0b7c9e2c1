"""Who interacted with what, in three parts: training, validation and test."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_floats, check_kind, check_lengths, public, raise_invalid, whole_numbers
from naysay.positives import Positives
from naysay.text import counted

Ids = NDArray[np.int64]
PARTS = ("train", "validation", "test")


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
        sizes = {}
        for name in PARTS:
            part = getattr(self, name)
            check_kind(name, part, Positives, "a Positives")
            sizes[name] = (part.n_anchors, part.n_items)
            if sizes[name] != sizes["train"]:
                raise_invalid(name, f"of {sizes['train'][0]} users and {sizes['train'][1]} items, like `train`", part)
            if not len(part):
                raise_invalid(name, "at least one pair", "none")
        seen = self.train
        for name in PARTS[1:]:
            kept, notes = _rankable(name, getattr(self, name), self.train, seen)
            object.__setattr__(self, name, kept)
            object.__setattr__(self, "notes", (*self.notes, *notes))
            seen = seen.union(kept)

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
        state = hashlib.sha256(f"{self.n_users} {self.n_items}".encode())
        for name in PARTS:
            state.update(np.concatenate(getattr(self, name).pairs()).tobytes())
        return state.hexdigest()[:16]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {counted(len(getattr(self, name)), 'pair')}" for name in PARTS)
        return f"Interactions({counted(self.n_users, 'user')}, {counted(self.n_items, 'item')}, {parts})"


def _rankable(name: str, part: Positives, train: Positives, seen: Positives) -> tuple[Positives, list[str]]:
    """A held-out part without pairs that training cannot rank or that are in an earlier part, and what was left out."""
    users, items = part.pairs()
    repeated = seen.contains(users, items)
    unseen_user, unseen_item = train.count()[users] == 0, train.item_counts()[items] == 0
    kept = ~(repeated | unseen_user | unseen_item)
    counts = {"items": unseen_item, "users": unseen_user & ~unseen_item}
    notes = [
        f"{counted(int(bad.sum()), f'{name} pair')} of {len(part):,} left out: {what} that training never saw."
        for what, bad in counts.items()
        if bad.any()
    ]
    again = int((repeated & ~unseen_user & ~unseen_item).sum())
    if again:
        notes.append(f"{counted(again, f'{name} pair')} of {len(part):,} left out: in an earlier part, too.")
    if not kept.any():
        rule = "at least one pair of a user and an item that training has, and that is in no earlier part"
        raise_invalid(name, rule, f"none of {len(part):,}", " ".join(notes))
    return Positives.from_pairs(users[kept], items[kept], part.n_anchors, part.n_items), notes


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
    return _in_parts(who, what[order], part, pairs)


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
    return _in_parts(who[order], what[order], part, pairs)


def _ids(parameter: str, values: Any) -> Ids:
    return whole_numbers(parameter, to_numpy(values)).astype(np.int64)


def _in_parts(users: Ids, items: Ids, part: NDArray[Any], sizes: Positives) -> Interactions:
    """The pairs by the number of their part."""
    n_users, n_items = sizes.n_anchors, sizes.n_items
    made = [Positives.from_pairs(users[part == one], items[part == one], n_users, n_items) for one in range(3)]
    return Interactions(made[0], made[1], made[2])
