"""Rows for (head, relation, tail)."""

from naysay.catalog.rows import Alias, Method

_SETUP = """\
import numpy as np
import naysay as ns

triples = np.random.default_rng({seed}).integers(0, (100, 5, 100), size=(2000, 3))
train, valid = triples[:1800], triples[1800:]
pool = ns.pools.Corruption(train, known=valid{options})
known, sampler = pool.known, ns.samplers.Static(pool)
query = ns.Query(train[:64])
negatives = sampler.sample(query, {k}, rng=ns.rng_for(seed=0))          # ids, and negatives.side says which part
"""
_COST = "One search a row and side, then O(1) a draw; 5 bytes a known triple and side, 8 a key."

ROWS = (
    Method(
        name="corruption",
        kind="static",
        pool="global",
        summary="Replace head or tail by any entity that makes no known triple; the side is drawn per negative.",
        formula="P(side) = 1/2; P(e | side) = 1 / (entities not known on that side)",
        parts="Static(Corruption(train, known=valid))",
        paper="Bordes et al. Translating Embeddings for Modeling Multi-relational Data. NIPS 2013.",
        cost=_COST,
        example=_SETUP.format(seed=0, options="", k=4),
        aliases=(
            Alias(
                "TransE",
                "Bordes et al. NIPS 2013.",
                "One corrupted triple for each training triple.",
                _SETUP.format(seed=1, options="", k=1),
            ),
            Alias(
                "DistMult",
                "Yang et al. Embedding Entities and Relations for Learning and Inference. ICLR 2015.",
                "Ten corruptions for each triple, independent draws.",
                _SETUP.format(seed=2, options=", distinct=False", k=10),
            ),
            Alias(
                "RotatE",
                "Sun et al. RotatE. ICLR 2019.",
                "Many for each triple, weighed by the model itself: losses.self_adversarial.",
                _SETUP.format(seed=6, options="", k=64),
            ),
        ),
    ),
    Method(
        name="bernoulli",
        also=("TransH",),
        kind="static",
        pool="global",
        summary="Corruption that replaces the head more often where a head has many tails: fewer false negatives.",
        formula="P(head) = tph / (tph + hpt) of the relation, 0.5 where it has no triple",
        parts='Static(Corruption(train, choice="bernoulli"))',
        paper="Wang et al. Knowledge Graph Embedding by Translating on Hyperplanes. AAAI 2014.",
        cost=_COST,
        example=_SETUP.format(seed=3, options=', choice="bernoulli"', k=4),
    ),
    Method(
        name="typed",
        also=("type-constrained",),
        kind="static",
        pool="local",
        summary="Corruption by entities that were seen on that side of the relation: plausible, so harder.",
        formula="P(e | side, r) = 1 / (entities seen on that side of r and not known there)",
        parts='Static(Corruption(train, domains="observed", ranges="observed"))',
        paper="Krompass et al. Type-Constrained Representation Learning in Knowledge Graphs. ISWC 2015.",
        cost=_COST + " Up to one pass over the list of a relation where most of it is known.",
        example=_SETUP.format(seed=4, options=', domains="observed", ranges="observed"', k=4),
    ),
    Method(
        name="relation-corruption",
        kind="static",
        pool="global",
        summary="Replace the relation too: for models that must tell relations apart.",
        formula="P(side) = 1/3 each; uniform over what makes no known triple",
        parts='Static(Corruption(train, sides=("head", "relation", "tail")))',
        paper="Xie et al. Representation Learning of Knowledge Graphs with Entity Descriptions. AAAI 2016.",
        cost=_COST,
        example=_SETUP.format(seed=5, options=', sides=("head", "relation", "tail")', k=4),
        aliases=(
            Alias(
                "TransG",
                "Xiao et al. TransG: A Generative Mixture Model for Knowledge Graph Embedding. 2015.",
                "The relation alone (the review's reading).",
                _SETUP.format(seed=7, options=', sides=("relation",)', k=2),
            ),
        ),
    ),
)
