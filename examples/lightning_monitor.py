"""Lightning: a Monitor as a callback on batches of ns.data.loader, then its report. Run by make test-integrations.

Prints:
    12 steps with 4 negatives of a row; the report is run.html
"""

import tempfile

import lightning
import numpy as np
import torch

import naysay as ns
from naysay.integrations.lightning import monitor_callback


class Factors(lightning.LightningModule):  # noqa: D101
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = torch.nn.Embedding(60, 8), torch.nn.Embedding(200, 8)
        self.configure_optimizers = lambda: torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch: ns.data.Batch) -> dict[str, object]:  # noqa: D102
        positive = (self.users(batch.query.anchors) * self.items(batch.query.positives)).sum(1)
        scores = (self.users(batch.query.anchors)[:, None] * self.items(batch.negatives.ids)).sum(2)
        observed = {"query": batch.query, "negatives": batch.negatives, "scores": scores, "positive_scores": positive}
        return {"loss": ns.losses.bpr(positive, scores).mean(), "naysay": observed}  # the one line


known = ns.Positives.from_pairs(*np.random.default_rng(0).integers(0, (60, 200), size=(380, 2)).T, 60, 200)
loader = ns.data.loader(known, ns.samplers.Static(ns.pools.Everything(known)), 64, k=4)
quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False, "logger": False}
with tempfile.TemporaryDirectory() as folder:
    callback = monitor_callback(ns.difficulty.Monitor(f"{folder}/run.jsonl"))
    lightning.Trainer(max_epochs=2, callbacks=[callback], **quiet).fit(Factors(), loader)
    run = ns.report.read_run(f"{folder}/run.jsonl")
    page = ns.report.report_run(f"{folder}/run.jsonl", f"{folder}/run.html")
    k = run.scalars["negatives"][-1]
    print(f"{len(run.steps)} steps with {k:.0f} negatives of a row; the report is {page.name}")
