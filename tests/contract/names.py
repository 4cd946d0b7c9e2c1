"""Public names that differ between versions, by the concept behind them: a rename is one edit here.

The names on the left are those of 0.2, the expressions on the right are those of the installed version.
"""

import naysay as ns

# Detectors
MaxScore = ns.detectors.MaxScore
ByReviewer = ns.detectors.ByReviewer
max_score_judge = "max_score:{}".format

# Samplers and batches
PercentileRange = ns.samplers.PercentileRange
MultiFeedback = ns.samplers.MultiFeedback
RandomWalkBatches = ns.batches.RandomWalkBatches

# Losses
hard_negative_nce = ns.losses.hard_negative_nce
gist = ns.losses.gist
all_items = ns.losses.all_items
invariant_spreading = ns.losses.invariant_spreading
proto_nce = ns.losses.proto_nce

# Evaluation of rankings
ranking = ns.lab.ranking

# The module behind `ns.audit` and `ns.compare`, and the function that writes an audit as HTML
report_audit = ns.audits.report_audit

# Options that change their names
MMR = {"select": "mmr", "mmr_lambda": 0.5}


def from_table(table, **columns):
    """Positives from any Arrow table."""
    return ns.Positives.from_table(table, **columns)


def split_positives(positives, share, rng):
    """(kept, hidden): some known positives are hidden, for tests of detectors."""
    split = positives.split(share, rng=rng)
    return split.kept, split.hidden


def search(queries, corpus, depth, **options):
    """(ids, scores) of an exact search."""
    found = ns.search.search(queries, corpus, depth, **options)
    return found.ids, found.scores


def learned(pool, module, optimizer, reward):
    """A sampler whose generator is a torch module."""
    return ns.samplers.Learned(pool, module, optimizer, reward)


def transformed(base, make):
    """A sampler of changed vectors; `make(ids, rng)` makes them."""
    return ns.samplers.Transformed(base, lambda query, ids, rng: make(ids, rng))


def learning_rate(arm):
    """The learning rate that was chosen for an arm of a comparison."""
    return arm.lr
