"""How well held-out items rank: exact, against 100 sampled items, and with every tie counted against the model.

Half of the true items of 200 users are known, the other half is wanted. The model is the truth with noise, rounded to
one decimal, so that many items tie. A sampled figure is far higher than the exact one.

Prints:
    all items            recall@20 0.59, NDCG@20 0.47, MRR 0.53, AUC 0.982
    100 sampled          recall@20 0.98, NDCG@20 0.91, MRR 0.90, AUC 0.981
    all, ties count      recall@20 0.46, NDCG@20 0.36, MRR 0.43, AUC 0.982
"""

import naysay as ns

world = ns.planted_world(n_anchors=200, n_items=1000, known_share=0.5, noise=0.6)
users, items = world.truth.pairs()
held = ~world.known.contains(users, items)
wanted = ns.Positives.from_pairs(users[held], items[held], 200, 1000)
scores = (world.anchor_vectors @ world.item_vectors.T).round(1)
drawn = ns.pools.Everything(world.truth).draw(ns.Query(range(200)), 100, rng=ns.rng_for(0)).ids


def show(name: str, **options: object) -> None:
    """Print four measures."""
    found = ns.lab.ranking(scores, wanted, known=world.known, **options)
    recall, ndcg = found.recall(20), found.ndcg(20)
    print(f"{name:20} recall@20 {recall:.2f}, NDCG@20 {ndcg:.2f}, MRR {found.mrr:.2f}, AUC {found.auc:.3f}")


if __name__ == "__main__":
    show("all items")
    show("100 sampled", candidates=drawn)
    show("all, ties count", ties="pessimistic")
