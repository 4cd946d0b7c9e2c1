"""monitor_callback in a Trainer of the real package, on batches of ns.data.loader."""

import warnings

import pytest
import torch

import naysay as ns
from naysay.integrations.lightning import monitor_callback
from naysay.integrations.sentence_transformers import RefreshNegatives
from naysay.report import read_run
from tests.integrations import small_trainers as small
from tests.integrations.upstream import check_signature

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning.pytorch as lightning
pytestmark = pytest.mark.filterwarnings("ignore")
N_USERS, N_ITEMS = 30, 50


class Factors(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        random = torch.Generator().manual_seed(0)
        tables = (torch.randn(size, 4, generator=random) for size in (N_USERS, N_ITEMS))
        self.users, self.items = (torch.nn.Embedding.from_pretrained(table, freeze=False) for table in tables)
        self.steps = []

    def training_step(self, batch, batch_idx):
        user = self.users(batch.query.anchors)
        positive = (user * self.items(batch.query.positives)).sum(dim=1)
        scores = (user[:, None] * self.items(batch.negatives.ids)).sum(dim=2)
        self.steps.append((batch.query.step, scores.mean().item()))
        observed = {"query": batch.query, "negatives": batch.negatives, "scores": scores, "positive_scores": positive}
        return {"loss": ns.losses.bpr(positive, scores).mean(), "naysay": observed}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Memory(lightning.loggers.logger.Logger):
    """A logger of Lightning that keeps what it is given."""

    name, version = "memory", 0

    def __init__(self):
        super().__init__()
        self.seen = []

    def log_metrics(self, metrics, step=None):
        if "score/negatives" in metrics:
            self.seen.append((step, metrics["score/negatives"]))

    def log_hyperparams(self, params, *args, **options):
        pass


def loader():
    users, items = ns.rng_for(0).integers(0, (N_USERS, N_ITEMS), size=(90, 2)).T
    known = ns.Positives.from_pairs(users, items, N_USERS, N_ITEMS)
    return ns.data.loader(known, ns.samplers.Static(ns.pools.Everything(known)), 32, k=4, seed=0)


def trainer(folder, monitor, logger=False, **options):
    settings = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "logger": logger}
    return lightning.Trainer(default_root_dir=folder, callbacks=[monitor_callback(monitor)], **settings, **options)


def test_each_step_is_in_the_log_and_the_state_in_the_checkpoint(tmp_path):
    log, model = tmp_path / "run.jsonl", Factors()
    run = trainer(tmp_path, ns.difficulty.Monitor(log), max_epochs=2, enable_checkpointing=False)
    run.fit(model, loader())
    run.save_checkpoint(tmp_path / "last.ckpt")
    found = read_run(log)
    assert found.steps.tolist() == [step for step, _ in model.steps] == [0, 1, 2, 3, 4, 5]
    assert found.scalars["score/negatives"] == pytest.approx([mean for _, mean in model.steps], abs=1e-6)
    for name in ("above_positive", "gradient/hardest", "effective_negatives", "repeats", "empty_rows"):
        assert name in found.scalars
    again = ns.difficulty.Monitor()
    trainer(tmp_path, again, max_epochs=3, enable_checkpointing=False).fit(
        Factors(), loader(), ckpt_path=tmp_path / "last.ckpt"
    )
    assert again.calls == 6 + 3


def test_without_a_log_of_its_own_it_uses_that_of_the_trainer(tmp_path):
    logger, model = Memory(), Factors()
    trainer(tmp_path, ns.difficulty.Monitor(), logger, max_epochs=1, enable_checkpointing=False).fit(model, loader())
    assert logger.seen == [(step + 1, pytest.approx(mean, abs=1e-6)) for step, mean in model.steps]


def test_a_callback_in_the_trainer_of_another_package_is_an_error_before_training(tmp_path):
    settings = {"enable_progress_bar": False, "logger": False, "accelerator": "cpu", "default_root_dir": tmp_path}
    model = Factors()
    run = lightning.Trainer(callbacks=[RefreshNegatives()], **settings)
    said = r"`callbacks` must be those of SentenceTransformerTrainer or transformers.Trainer, got"
    with pytest.raises(ns.NaysayError, match=said):
        run.fit(model, loader())
    assert model.steps == []
    with pytest.raises(
        ns.NaysayError, match=r"`callbacks` must be those of a Lightning Trainer, got another trainer's"
    ):
        small.trainer(tmp_path, [monitor_callback(ns.difficulty.Monitor())])


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
