"""Time RecBole's own ``Sampler``: negatives for a batch of users, their known items excluded."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from protocol import Data, Repeat, serve
from recbole.sampler import Sampler


@dataclass(frozen=True)
class Interactions:
    """The part of a RecBole dataset that ``Sampler`` reads. Ids start at 1; 0 is padding."""

    inter_feat: dict[str, torch.Tensor]
    user_num: int
    item_num: int
    uid_field: str = "user"
    iid_field: str = "item"


def prepare(data: Data, case: str) -> tuple[float, Repeat]:
    """Build the sampler, with every id raised by one because RecBole uses 0 for padding."""
    n_items, k = int(data["n_items"]), int(data["k"])
    known = data["users"] * n_items + data["items"]
    batches = data["batch"] + 1
    dataset = Interactions(
        {"user": torch.from_numpy(data["users"] + 1), "item": torch.from_numpy(data["items"] + 1)},
        user_num=int(data["n_users"]) + 1,
        item_num=n_items + 1,
    )
    start = time.perf_counter()
    sampler = Sampler(["train"], [dataset], distribution=case, alpha=0.75).set_phase("train")
    build_seconds = time.perf_counter() - start

    def repeat() -> dict[str, Any]:
        start = time.perf_counter()
        # The second argument, the positive items, is not used by RecBole's Sampler.
        drawn = [sampler.sample_by_user_ids(users, None, k) for users in batches]
        seconds = time.perf_counter() - start
        items = torch.stack(drawn).numpy() - 1
        users = np.tile(batches - 1, k)  # RecBole's answer runs through the batch k times
        leaks = np.isin(users * n_items + items, known).sum()
        return {"seconds": seconds, "negatives": items.size, "leaks": int(leaks)}

    return build_seconds, repeat


if __name__ == "__main__":
    serve("recbole", "recbole", ["uniform", "popularity"], prepare)
