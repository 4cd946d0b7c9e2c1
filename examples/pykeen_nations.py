"""PyKEEN: exact negatives in its pipeline, then a cache of hard ones for the same model. Run by make test-integrations.

Prints:
    uniform: the loss fell, 0 negatives are known
    cached: the loss fell, 0 negatives are known
"""

import logging
import warnings

from pykeen.datasets import Nations
from pykeen.models import TransE
from pykeen.pipeline import pipeline

import naysay as ns
from naysay.integrations.pykeen import ExactNegativeSampler, score_of

logging.disable()
warnings.simplefilter("ignore")
data = Nations()
known = {tuple(triple) for part in data.factory_dict.values() for triple in part.mapped_triples.tolist()}
for name in ("uniform", "cached"):
    model = TransE(triples_factory=data.training, embedding_dim=16, random_seed=0)
    options = {"num_negs_per_pos": 8, "known": [data.validation, data.testing]}
    if name == "cached":
        options["sampler"] = lambda pool, model=model: ns.samplers.Cached(pool, score_of(model), size=8, fresh=8)
    result = pipeline(
        dataset=data,
        model=model,
        negative_sampler=ExactNegativeSampler,  # the one line
        negative_sampler_kwargs=options,
        training_kwargs={"num_epochs": 10, "use_tqdm": False},
        random_seed=0,
    )
    triples = data.training.mapped_triples
    negatives, mask = ExactNegativeSampler(mapped_triples=triples, **options).sample(triples)
    drawn = negatives[... if mask is None else mask].reshape(-1, 3).tolist()
    fell = result.losses[-1] < result.losses[0]
    print(f"{name}: the loss {'fell' * fell}, {sum(tuple(one) in known for one in drawn)} negatives are known")
