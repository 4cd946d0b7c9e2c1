"""Likes of the recommendation study, read from ratings. The split, the encoder and the measures are naysay's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from naysay.checks import first_bad, raise_invalid

Ids = NDArray[np.int64]
LIKED, TOP = 4, 20
_COLUMNS = ("user", "item", "rating")


def read(folder: Path) -> tuple[Ids, Ids, int, int]:
    """(users, items) of FOLDER/ratings.npz that are rated 4 or 5, each once, and how many users and items there are."""
    path = folder / "ratings.npz"
    if not path.is_file():
        advice = "It holds the arrays user, item (both from 1) and rating (1 to 5)."
        raise_invalid("DATA", "a folder with a file ratings.npz", f"{str(folder)!r}", advice)
    with np.load(path) as file:
        missing = [name for name in _COLUMNS if name not in file]
        if missing:
            raise_invalid("DATA", f"a ratings.npz with {', '.join(_COLUMNS)}", f"none named {missing[0]}")
        users, items, ratings = (file[name].astype(np.int64) for name in _COLUMNS)
    for name, ids in (("user", users), ("item", items)):
        if (ids < 1).any():
            raise_invalid(name, "counted from 1", first_bad(ids, ids < 1))
    n_users, n_items = int(users.max()), int(items.max())
    liked = ratings >= LIKED
    codes = np.unique((users[liked] - 1) * n_items + items[liked] - 1)
    return codes // n_items, codes % n_items, n_users, n_items
