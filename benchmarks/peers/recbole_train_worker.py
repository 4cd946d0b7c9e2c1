"""Time RecBole's own training steps of matrix factorisation, with dynamic (DNS) negatives."""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from protocol import Data, Repeat, serve
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.model.general_recommender.bpr import BPR


def prepare(data: Data, _case: str) -> tuple[float, Repeat]:
    """Build the dataset, the loader and the model by RecBole's public calls; every pair is a training pair."""
    sys.argv = sys.argv[:1]  # Config reads the command line too
    with tempfile.TemporaryDirectory() as folder:
        config = _config(folder, data)
        _write_pairs(Path(folder) / "world", data["users"].tolist(), data["items"].tolist())
        start = time.perf_counter()
        loader, _, _ = data_preparation(config, create_dataset(config))
        model = BPR(config, loader.dataset)
        loader.get_model(model)  # what the trainer does before the first epoch
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        build_seconds = time.perf_counter() - start
    steps, n_items = int(data["steps"]), int(data["n_items"])
    user_of, item_of = (_ids(loader.dataset, field) for field in ("user_id", "item_id"))
    known = data["users"] * n_items + data["items"]
    batches = _for_ever(loader)

    def repeat() -> dict[str, Any]:
        drawn = []
        start, own = time.perf_counter(), time.process_time()
        for _ in range(steps):
            batch = next(batches)
            optimiser.zero_grad()
            model.calculate_loss(batch).backward()
            optimiser.step()
            drawn.append((batch["user_id"], batch["neg_item_id"]))
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - own
        users, items = (torch.cat(part).numpy() for part in zip(*drawn, strict=True))
        leaks = np.isin(user_of[users] * n_items + item_of[items], known).sum()
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "negatives": len(items), "leaks": int(leaks)}

    return build_seconds, repeat


def _config(folder: str, data: Data) -> Config:
    """Its own dynamic sampling, one negative of some candidates."""
    negatives = {"distribution": "uniform", "sample_num": 1, "alpha": 1.0, "dynamic": True}
    negatives["candidate_num"] = int(data["candidates"])
    settings = {
        "data_path": folder,
        "embedding_size": int(data["width"]),
        "train_batch_size": int(data["batch"]),
        "train_neg_sample_args": negatives,
        "eval_args": {"split": {"RS": [1.0, 0, 0]}, "group_by": "none", "order": "RO", "mode": "full"},
        "use_gpu": False,
        "state": "ERROR",
    }
    return Config(model="BPR", dataset="world", config_dict=settings)


def _write_pairs(folder: Path, users: list[int], items: list[int]) -> None:
    """The pairs as RecBole reads them."""
    folder.mkdir()
    lines = (f"{user}\t{item}\n" for user, item in zip(users, items, strict=True))
    (folder / "world.inter").write_text("user_id:token\titem_id:token\n" + "".join(lines))


def _ids(dataset: Any, field: str) -> np.ndarray:
    """Our id of each of RecBole's, which start at 1; 0 is padding."""
    return np.array([-1, *map(int, dataset.field2id_token[field][1:])])


def _for_ever(loader: Any) -> Iterator[Any]:
    """Batches, epoch after epoch."""
    while True:
        yield from loader


if __name__ == "__main__":
    serve("recbole_train", "recbole", ["dynamic"], prepare)
