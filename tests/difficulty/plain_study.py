"""All measures of difficulty in plain loops, for the tests to compare with."""

import math


def hardest_first(line, kept=None):
    """Slots that count, the hardest first, of equal scores the earlier first."""
    slots = [slot for slot in range(len(line)) if kept is None or kept[slot]]
    return sorted(slots, key=lambda slot: (-line[slot], slot))


def interval(slots, low, high):
    """The slots of [low, high), by the one rule: places floor((1 - high) m) to floor((1 - low) m)."""
    m = len(slots)
    return slots[math.floor((1 - high) * m + 1e-9) : math.floor((1 - low) * m + 1e-9)]


def curve(scores, kept, value, groups):
    """[(mean, error, pairs)] of value(row, slot) by interval."""
    found = []
    for low, high in groups:
        parts = []
        for row, line in enumerate(scores):
            inside = interval(hardest_first(line, kept and kept[row]), low, high)
            if inside:
                parts.append((sum(float(value(row, slot)) for slot in inside), len(inside)))
        found.append(ratio(parts))
    return found


def shares(scores, kept, value, groups):
    """[(mean, error, pairs)] of the share of an anchor's values that falls into an interval."""
    found = []
    for low, high in groups:
        parts, pairs = [], 0
        for row, line in enumerate(scores):
            slots = hardest_first(line, kept and kept[row])
            inside = interval(slots, low, high)
            pairs += len(inside)
            if slots:
                whole = sum(value(row, slot) for slot in slots)
                parts.append((sum(value(row, slot) for slot in inside) / whole, 1))
        found.append((*ratio(parts)[:2], pairs))
    return found


def ratio(parts):
    """Mean, error over anchors, and how many, of (part, whole)."""
    pairs = sum(whole for _, whole in parts)
    if not pairs:
        return math.nan, math.nan, 0
    mean = sum(part for part, _ in parts) / pairs
    n = len(parts)
    if n < 2:
        return mean, math.nan, pairs
    return mean, math.sqrt(n / (n - 1) * sum((part - mean * whole) ** 2 for part, whole in parts)) / pairs, pairs


def common_depth(parents, one, two):
    """The depth of the least common ancestor, by walking up."""
    above = [one]
    while parents[above[-1]] >= 0:
        above.append(parents[above[-1]])
    while two not in above:
        two = parents[two]
    return len(above) - 1 - above.index(two)


def hard_slots(line, kept, hard):
    slots = hardest_first(line, kept)
    return slots[: math.floor(hard * len(slots) + 1e-9)]


def dispersion(scores, kept, classes, hard):
    """(counts, expected, variance, statistic, degrees) where hard slots are shuffled among those of one class."""
    m = len(classes)
    counts, expected, variance = [0] * m, [0.0] * m, [0.0] * m
    for row, line in enumerate(scores):
        mine = kept[row] if kept else [True] * m
        chosen = hard_slots(line, mine, hard)
        for j in range(m):
            counts[j] += j in chosen
            if mine[j]:
                alike = [i for i in range(m) if mine[i] and classes[i] == classes[j]]
                chance = sum(i in chosen for i in alike) / len(alike)
                expected[j] += chance
                variance[j] += chance * (1 - chance)
    statistic, degrees = 0.0, 0
    for name in set(classes):
        free = [j for j in range(m) if classes[j] == name and variance[j] > 1e-9]
        if len(free) > 1 or (free and sum(c == name for c in classes) > 1):
            degrees += len(free) - 1
            part = sum((counts[j] - expected[j]) ** 2 / variance[j] for j in free)
            statistic += part * (len(free) - 1) / len(free)
    return counts, expected, variance, statistic, degrees
