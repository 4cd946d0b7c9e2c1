"""Negative cache: one negative of a queue by the softmax of stale scores; its fresh vector goes back into the queue."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
questions, answers = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(questions, answers, n_anchors=50, n_items=200)
of_question, of_answer = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))
memory = ns.pools.Memory(200, known)
memory.push(np.arange(200), np.full(200, -1), vectors=of_answer)


def embed_anchors(ids):
    return of_question[ids]


score = ns.samplers.StoredVectors("dot", embed_anchors)
sampler = ns.samplers.Dynamic(memory, score, candidates=None, temperature=1.0)
query = ns.Query(questions[:64], positives=answers[:64])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))
fresh = np.unique(negatives.ids)
memory.replace(fresh, of_answer[fresh])  # as the encoder sees them now
