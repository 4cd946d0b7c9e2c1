"""Which negatives for a graph: nodes are embedded by skip-gram on random walks, and their classes are read off.

300 nodes are in 3 classes, and most edges are within a class. A linear probe on the vectors finds the classes. Nodes at
two or three hops are often of the same class, so they are poor negatives here.

Prints:
    uniform:5    accuracy 0.71
    popularity:5 accuracy 0.73
    k-hop:5      accuracy 0.43
"""

import numpy as np

import naysay as ns

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    classes = np.arange(300) % 3
    edges = np.argwhere(rng.random((300, 300)) < np.where(classes[:, None] == classes, 0.03, 0.005))
    data = ns.lab.split_edges(edges, 300, labels=classes)
    found = ns.compare(data, task="graph", methods="uniform:5,popularity:5,k-hop:5", steps=50, seeds=1)
    for arm in found.arms:
        print(f"{arm.name:12} accuracy {found.mean(arm).mean:.2f}")
