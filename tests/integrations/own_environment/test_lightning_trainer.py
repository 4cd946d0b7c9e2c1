"""The callback in a real trainer of Lightning: numbers of each step, and the monitor in its checkpoint."""

import logging
import warnings

import lightning
import pytest
import torch

import naysay as ns
from naysay.integrations.lightning import monitor_callback
from tests.integrations.upstream import check_signature

KNOWN = ns.Positives.from_pairs([0, 1, 2, 3], [0, 1, 2, 3], 4, 20)


class Model(lightning.LightningModule):
    """Two tables of vectors, trained by BPR on batches of `ns.data.loader`."""

    def __init__(self):
        super().__init__()
        self.users, self.items = torch.nn.Embedding(4, 8), torch.nn.Embedding(20, 8)

    def training_step(self, batch, batch_idx):
        users = self.users(torch.as_tensor(batch.query.anchors))
        positive = (users * self.items(torch.as_tensor(batch.query.positives))).sum(dim=-1)
        scores = (users[:, None] * self.items(torch.as_tensor(batch.negatives.ids))).sum(dim=-1)
        observed = {"query": batch.query, "negatives": batch.negatives, "scores": scores, "positive_scores": positive}
        return {"loss": ns.losses.bpr(positive, scores).mean(), "naysay": observed}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def trainer(folder, callback):
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return lightning.Trainer(
        accelerator="cpu",
        max_epochs=2,
        callbacks=[callback],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )


def test_a_trainer_calls_the_monitor_and_keeps_its_state(tmp_path):
    seen = []
    monitor, again = ns.difficulty.Monitor(seen.append), ns.difficulty.Monitor(seen.append)
    loader = ns.data.loader(KNOWN, ns.samplers.Static(ns.pools.Everything(KNOWN)), 2, k=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few workers, and what newer versions of torch deprecate
        run = trainer(tmp_path, monitor_callback(monitor))
        run.fit(Model(), loader)
        run.save_checkpoint(tmp_path / "run.ckpt")
        steps = len(seen)
        other = trainer(tmp_path, monitor_callback(again))
        other.fit_loop.max_epochs = 3
        other.fit(Model(), loader, ckpt_path=tmp_path / "run.ckpt")
    assert steps == 4
    assert seen[0]["scalars"]["above_positive"] <= 1
    assert len(seen) == 6
    assert again.calls == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("on_train_batch_end", ["self", "trainer", "pl_module", "outputs", "batch", "batch_idx"]),
        ("state_dict", ["self"]),
        ("load_state_dict", ["self", "state_dict"]),
    ],
)
def test_lightning_still_asks_as_it_did(name, expected):
    check_signature("lightning", "lightning", getattr(lightning.Callback, name), expected)
