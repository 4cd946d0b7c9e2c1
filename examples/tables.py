"""Clicks from a data frame: raw ids with gaps, and negatives by the time of each click.

Prints:
    raw ids: 997 of 1000 items do not exist
    numbered: 3 items; ann, 940: known is True
    before day 3: 3 pairs; with one more: 4
    ann on day 1: ['23', '940']
"""

import warnings

import numpy as np
import pandas as pd

import naysay as ns

clicks = pd.DataFrame({"user": ["ann", "bob", "ann", "ann"], "item": [17, 940, 23, 940], "day": [1, 1, 2, 3]})
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    raw = ns.Positives.from_table(clicks, "user", "item", n_items=1000)
print(f"raw ids: {raw.n_items - len(np.unique(raw.indices))} of {raw.n_items} items do not exist")

known = ns.Positives.from_table(clicks, "user", "item", item_names=True)  # what the warning advises
print(f"numbered: {known.n_items} items; ann, 940: known is {known.contains(['ann'], ['940'])[0]}")

names = {"anchor_names": known.anchor_names, "item_names": known.item_names}
early = ns.Positives.from_table(clicks, "user", "item", times="day", before=3, **names)
more = ns.Positives.from_pairs(["bob"], ["17"], **names)
print(f"before day 3: {len(early)} pairs; with one more: {len(early.union(more))}")

pool = ns.pools.Everything(known, times=(clicks["user"], clicks["item"].astype(str), clicks["day"]))
drawn = pool.draw(ns.Query([0], times=[1]), 2, rng=ns.rng_for(0)).ids[0]
print("ann on day 1:", sorted(known.item_names.names(drawn)))
