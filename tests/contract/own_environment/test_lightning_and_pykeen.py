"""Lightning and PyKEEN: the monitor's callback in a real trainer, and negatives that are never known triples."""

import numpy as np
import pytest
import torch

import naysay as ns

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the packages


def test_a_trainer_of_lightning_logs_the_monitor():
    import lightning.pytorch as lightning

    from naysay.integrations.lightning import monitor_callback

    known = ns.Positives.from_pairs(np.arange(8), np.arange(8), 8, 30)
    sampler, seen = ns.samplers.Static(ns.pools.Everything(known)), []

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(30, 4)

        def training_step(self, batch, step):
            query = ns.Query(batch, positives=batch, step=step)
            negatives = sampler.sample(query, 3, rng=ns.rng_for(0, step))
            vectors = self.table(batch)
            scores = (vectors[:, None] * self.table(negatives.ids)).sum(-1)
            own = (vectors * vectors).sum(-1)
            told = {"query": query, "negatives": negatives, "scores": scores.detach(), "positive_scores": own.detach()}
            return {"loss": ns.losses.info_nce(own, scores, mask=negatives.mask).mean(), "naysay": told}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    trainer = lightning.Trainer(
        max_steps=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[monitor_callback(ns.difficulty.Monitor(seen.append))],
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.arange(8), batch_size=4))
    assert len(seen) >= 2
    assert all("score/negatives" in each["scalars"] for each in seen)


def test_negatives_in_pykeen_are_never_known_triples():
    from pykeen.triples import CoreTriplesFactory

    from naysay.integrations.pykeen import ExactNegativeSampler

    triples = torch.from_numpy(np.random.default_rng(0).integers(0, [12, 2, 12], (60, 3))).unique(dim=0)
    factory = CoreTriplesFactory(triples, num_entities=12, num_relations=2)
    sampler = ExactNegativeSampler(mapped_triples=factory.mapped_triples, num_entities=12, num_relations=2)
    known = {tuple(triple) for triple in triples.tolist()}
    made, mask = sampler.sample(triples)
    rows = made.reshape(-1, 3) if mask is None else made[mask]
    assert len(rows)
    assert not known & {tuple(triple) for triple in rows.tolist()}
