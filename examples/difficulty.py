"""Difficulty: which negatives are hard, of what classes, and whether they are always the same.

Vectors are scattered around ten classes in three groups, so that the hard negatives of an anchor are mostly of its own
class or group: false negatives, and the useful ones. A fifth of the negatives are shifted towards the mean of all
classes, and are hard more often.

Prints:
    band     percentile    same class  depth  gradient
    easy     0 to 95            6.6 %   0.37      74 %
    hard     95 to 99.9        75.2 %   1.71      25 %
    hardest  99.9 to 100       90.2 %   1.89       1 %
    a negative is hard for 0.2 to 15.0 % of anchors, 28 times the variance of a shuffle
    on average 5.0 %, those near the mean of all classes 7.1 %
"""

import naysay as ns

TREE = [10, 10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, -1]  # classes 0 to 9, three groups, the root


def main() -> None:
    """Make vectors, study them, and print some results."""
    rng = ns.rng_for(seed=0)
    groups, own = rng.standard_normal((3, 32)), rng.standard_normal((10, 32))
    centres = groups[[parent - 10 for parent in TREE[:10]]] + own
    labels, negative_labels = rng.integers(0, 10, 2000), rng.integers(0, 10, 2000)
    anchors = centres[labels] + 1.5 * rng.standard_normal((2000, 32))
    negatives = centres[negative_labels] + 1.5 * rng.standard_normal((2000, 32))
    negatives[::5] += centres.mean(axis=0)

    found = ns.difficulty.study(anchors, negatives, labels=labels, negative_labels=negative_labels, hierarchy=TREE)
    bands = found.by_band
    print("band     percentile    same class  depth  gradient")
    for i, band in enumerate(("easy", "hard", "hardest")):
        where = f"{100 * bands.score.low[i]:g} to {100 * bands.score.high[i]:g}"
        same, depth, mass = (curve.mean[i] for curve in (bands.same_class, bands.depth, bands.gradient))
        print(f"{band:8s} {where:13s} {100 * same:8.1f} %   {depth:.2f}      {100 * mass:2.0f} %")
    rates, ratio = 100 * found.consistency.rates, found.consistency.shuffled.ratio
    spread = f"{rates.min():.1f} to {rates.max():.1f} %"
    print(f"a negative is hard for {spread} of anchors, {ratio:.0f} times the variance of a shuffle")
    print(f"on average {rates.mean():.1f} %, those near the mean of all classes {rates[::5].mean():.1f} %")


if __name__ == "__main__":
    main()
