"""Time PyKEEN: its ``BasicNegativeSampler`` with a Bloom filter, or its own training loop of TransE."""

import itertools
import time
from typing import Any

import numpy as np
import torch
from protocol import Data, Repeat, serve
from pykeen.losses import InfoNCELoss
from pykeen.models import ERModel, TransE
from pykeen.sampling import BasicNegativeSampler
from pykeen.training import SLCWATrainingLoop, TrainingCallback
from pykeen.triples import CoreTriplesFactory


def prepare(data: Data, case: str) -> tuple[float, Repeat]:
    """Prepare the sampler alone, or training with and without its filter."""
    if case == "bloom":
        return _sampler(data)
    return _training(data, filtered=case == "train_filtered")


def _made(data: Data, *, filtered: bool) -> BasicNegativeSampler:
    """Build the sampler on every triple that has to be filtered out."""
    return BasicNegativeSampler(
        mapped_triples=torch.from_numpy(data["known"]),
        num_entities=int(data["n_entities"]),
        num_relations=int(data["n_relations"]),
        num_negs_per_pos=int(data["k"]),
        filtered=filtered,
        filterer="bloom",
    )


def _sampler(data: Data) -> tuple[float, Repeat]:
    n_entities, n_relations = int(data["n_entities"]), int(data["n_relations"])
    batches = torch.from_numpy(data["batch"])
    start = time.perf_counter()
    sampler = _made(data, filtered=True)
    build_seconds = time.perf_counter() - start

    def keys(triples: np.ndarray) -> np.ndarray:
        """Give each triple one number."""
        head, relation, tail = np.moveaxis(triples, -1, 0)
        return (head * n_relations + relation) * n_entities + tail

    known = keys(data["known"])

    def repeat() -> dict[str, Any]:
        start = time.perf_counter()
        drawn = [sampler.sample(batch) for batch in batches]
        seconds = time.perf_counter() - start
        negatives = torch.stack([negative for negative, _ in drawn]).numpy()
        kept = torch.stack([mask for _, mask in drawn]).numpy()
        return {
            "seconds": seconds,
            "negatives": kept.size,
            "masked_share": float(1 - kept.mean()),
            "leaks": int(np.isin(keys(negatives[kept]), known).sum()),
        }

    return build_seconds, repeat


class Clock(TrainingCallback):
    """Times whole steps: from the end of the first backward pass to the end of the last one."""

    def __init__(self) -> None:
        """Nothing is timed yet."""
        super().__init__()
        self.moments: list[tuple[float, float]] = []

    def post_batch(self, epoch: int, batch: Any, **others: Any) -> None:
        """Keep the time on the wall and of the processor; PyKEEN's optimiser comes after this."""
        self.moments.append((time.perf_counter(), time.process_time()))


def _transe(factory: CoreTriplesFactory, data: Data) -> ERModel:
    """TransE as ours: Euclidean, InfoNCE without margin at temperature 1, no entity is normalised."""
    return TransE(
        triples_factory=factory,
        embedding_dim=int(data["width"]),
        scoring_fct_norm=2,
        entity_constrainer=None,
        loss=InfoNCELoss(margin=0.0, log_adversarial_temperature=0.0),
        random_seed=0,
    )


def _training(data: Data, *, filtered: bool) -> tuple[float, Repeat]:
    """Adam on TransE."""
    steps, batch, k = int(data["steps"]), int(data["batch"]), int(data["k"])
    start = time.perf_counter()
    some = torch.from_numpy(data["known"][: (steps + 1) * batch])  # the first step is not timed
    factory = CoreTriplesFactory(some, num_entities=int(data["n_entities"]), num_relations=int(data["n_relations"]))
    model = _transe(factory, data)
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.get_grad_params(), lr=1e-2),
        negative_sampler=_made(data, filtered=filtered),
    )
    build_seconds = time.perf_counter() - start
    epochs = itertools.count(1)

    def repeat() -> dict[str, Any]:
        clock, epoch = Clock(), next(epochs)  # PyKEEN counts the epochs of earlier calls, too
        settings = {"batch_size": batch, "use_tqdm": False, "continue_training": epoch > 1, "pin_memory": False}
        loop.train(factory, num_epochs=epoch, callbacks=clock, **settings)
        if len(clock.moments) != steps + 1:
            message = f"{len(clock.moments)} steps instead of {steps + 1}"
            raise RuntimeError(message)
        seconds, cpu_seconds = (last - first for first, last in zip(clock.moments[0], clock.moments[-1], strict=True))
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "negatives": steps * batch * k}

    return build_seconds, repeat


if __name__ == "__main__":
    serve("pykeen", "pykeen", ["bloom", "train", "train_filtered"], prepare)
