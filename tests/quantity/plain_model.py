"""The paper's model in plain loops, by Simpson's rule: what the tests of this folder hold the library against."""

import math


def log_phi(x):
    if x > -1:
        return math.log1p(-0.5 * math.erfc(x / math.sqrt(2)))
    return math.log(0.5 * math.erfc(-x / math.sqrt(2)))


def reliable(k, mu, pieces=600):
    """integral phi(x - mu) Phi(x)^k dx over all that matters for |mu| up to about 8 and k up to about 1e4."""
    left, right = min(mu, 0) - 9, max(mu, 5) + 9
    step = (right - left) / pieces
    total = 0.0
    for piece in range(pieces + 1):
        x = left + piece * step
        simpson = 1 if piece in (0, pieces) else 4 if piece % 2 else 2
        total += simpson * math.exp(k * log_phi(x) - (x - mu) ** 2 / 2)
    return total * step / 3 / math.sqrt(2 * math.pi)


def effective(a, b, weight):
    """v of the two reliabilities, as the paper writes it: counts of good, bad and easy."""
    good, bad = a * (1 - b), b * (1 - a)
    easy = 1 - good - bad
    return weight * (good - bad) + (1 - weight) * easy


def mean_effective(k, mu, reached, weight):
    """The plain mean of v over a run."""
    a = reliable(k, mu)
    return sum(effective(a, reliable(k, point), weight) for point in reached) / len(reached)


def plain_schedule(step, peak, steps, turning):
    """Two straight lines, in words: up until the turn, down until the last step, 1 after it."""
    last = steps - 1
    turn = min(turning * steps, last)
    if step > last:
        return 1.0
    if step < turn:
        return 1 + (peak - 1) * step / turn
    if last == turn:
        return peak
    return 1 + (peak - 1) * (last - step) / (last - turn)
