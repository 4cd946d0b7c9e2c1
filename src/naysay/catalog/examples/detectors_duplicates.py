"""detectors.Duplicates: the positive or the anchor under another id: equal or similar texts."""

import numpy as np

import naysay as ns

cities = ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Quito"]
documents = [*cities, *(f"{city.lower()}." for city in cities), *(f"The mayor of {city}" for city in cities)]
questions = [f"the mayor of {city}" for city in cities]  # one of the documents is the question itself
known = ns.Positives.from_pairs(np.arange(6), np.arange(6), n_items=18)
query = ns.Query(np.arange(6), positives=np.arange(6))
negatives = ns.samplers.Static(ns.pools.Everything(known)).sample(query, 12, rng=ns.rng_for(seed=0))
detector = ns.detectors.Duplicates(item_texts=documents, anchor_texts=questions, positives=known)
suspicion = detector.suspicion(query, negatives)  # 1 for "paris." and for a copy of the question
