"""What the library computes, once more, in plain Python loops over lists and floats."""

import itertools
import math

import numpy as np

# ---- draws ----------------------------------------------------------------------------------------------------------


def free_items(known, anchor):
    """The items that may be drawn for an anchor: all but its positives and its ignored pairs."""
    items = list(range(known.n_items))
    taken = known.contains(np.full(len(items), anchor), np.array(items), relation="any")
    return [item for item, excluded in zip(items, taken, strict=True) if not excluded]


def log_q_of_row(ids, weights, free, distinct):
    """log_q of each slot of a row by its definition; 0 where the slot is empty."""
    left = {item: weights[item] for item in free if weights[item] > 0}
    values = []
    for item in ids:
        if item < 0:
            values.append(0.0)
            continue
        values.append(math.log(weights[item]) - math.log(math.fsum(left.values())))
        if distinct:
            del left[item]
    return values


def chances_of_rows(weights, free, slots):
    """{ordered row of distinct ids: its probability}, by enumeration."""
    found = {}
    for row in itertools.permutations(free, slots):
        left, chance = math.fsum(weights[item] for item in free), 1.0
        for item in row:
            chance *= weights[item] / left
            left -= weights[item]
        found[row] = chance
    return found


def distances(edges, n_nodes, start):
    """The number of steps from a node to every other one along undirected edges; infinity if there is no way."""
    away = [math.inf] * n_nodes
    away[start], reached = 0, [start]
    while reached:
        following = []
        for node in reached:
            for one, other in edges:
                for here, there in ((one, other), (other, one)):
                    if here == node and away[there] == math.inf:
                        away[there] = away[node] + 1
                        following.append(there)
        reached = following
    return away


# ---- search and mining ----------------------------------------------------------------------------------------------


def pair_score(query, item, metric="cosine"):
    """A float64 sum in index order, rounded to float32."""
    one, other = [float(value) for value in query], [float(value) for value in item]
    if metric == "l2":
        total = 0.0
        for a, b in zip(one, other, strict=True):
            total += (a - b) * (a - b)
        return np.float32(0.0 - math.sqrt(total))
    dot = one_square = other_square = 0.0
    for a, b in zip(one, other, strict=True):
        dot += a * b
        one_square += a * a
        other_square += b * b
    if metric == "dot":
        return np.float32(dot)
    return np.float32(dot / (math.sqrt(one_square) * math.sqrt(other_square)))


def pair_scores(queries, corpus, metric="cosine"):
    """(n, N) the scores of all pairs."""
    table = np.empty((len(queries), len(corpus)), np.float32)
    for row, query in enumerate(queries):
        for column, item in enumerate(corpus):
            table[row, column] = pair_score(query, item, metric)
    return table


def nearest(scores, k, allowed):
    """(ids (n, k), scores (n, k)): score descending, id ascending; -1 and -inf where a row is short.

    `allowed(row, item)` says whether an item may be a negative.
    """
    ids = np.full((len(scores), k), -1)
    best = np.full((len(scores), k), -np.inf, np.float32)
    for row, line in enumerate(scores):
        free = [item for item in range(len(line)) if allowed(row, item)]
        free.sort(key=lambda item: (-line[item], item))
        for slot, item in enumerate(free[:k]):
            ids[row, slot], best[row, slot] = item, line[item]
    return ids, best


# ---- losses over slots ----------------------------------------------------------------------------------------------


def softplus(x):
    """log(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def counted_slots(scores, mask, weights, log_q):
    """[(score, weight)] of the slots in `mask`; the weight is over K_b q if there is a log_q."""
    places = [place for place in range(len(scores)) if mask[place]]
    found = []
    for place in places:
        weight = weights[place]
        if log_q is not None:
            weight *= math.exp(-log_q[place]) / len(places)
        found.append((scores[place], weight))
    return found


def info_nce(p, slots, temperature=1.0):
    """-p/t + log(e^(p/t) + sum of w e^(s/t))."""
    total = math.exp(p / temperature) + math.fsum(w * math.exp(s / temperature) for s, w in slots)
    return math.log(total) - p / temperature


def bpr(p, slots):
    """Sum of w log(1 + e^(s - p))."""
    return math.fsum(w * softplus(s - p) for s, w in slots)


def hinge(p, slots, margin=1.0):
    """Sum of w max(0, s - p + margin)."""
    return math.fsum(w * max(0.0, s - p + margin) for s, w in slots)


def sampled_bce(p, slots):
    """Binary cross-entropy of the positive and of each negative."""
    return softplus(-p) + math.fsum(w * softplus(s) for s, w in slots)


def gbce(p, slots, n_items, calibration):
    """gSASRec: the positive's term is raised by beta, from the share of items that are sampled."""
    share = min(math.fsum(w for _, w in slots) / (n_items - 1), 1.0)
    beta = share * (calibration * (1 - 1 / share) + 1 / share)
    return beta * softplus(-p) + math.fsum(w * softplus(s) for s, w in slots)


def decoupled(p, slots, temperature):
    """InfoNCE without the positive in the denominator."""
    return math.log(math.fsum(w * math.exp(s / temperature) for s, w in slots)) - p / temperature


def hard_negative_nce(p, slots, temperature, prior, min_score, beta):
    """HCL; with beta = 0 the debiased loss."""
    number = math.fsum(w for _, w in slots)
    tilted = [(s, w * math.exp(beta * s / temperature)) for s, w in slots]
    mean = math.fsum(u * math.exp(s / temperature) for s, u in tilted) / math.fsum(u for _, u in tilted)
    positive = math.exp(p / temperature)
    corrected = max((mean - prior * positive) / (1 - prior), math.exp(min_score / temperature))
    return math.log1p(number * corrected / positive)


def self_adversarial(p, slots, alpha, margin):
    """RotatE's loss: negatives weighted by a softmax of their scores."""
    shares = [w * math.exp(alpha * s) for s, w in slots]
    pushed = math.fsum(u * softplus(s + margin) for u, (s, _) in zip(shares, slots, strict=True)) / math.fsum(shares)
    return (softplus(-p - margin) + pushed) / 2


def margin_mse(p, slots, teacher_p, teacher_slots):
    """The weighted mean of squared differences of the student's and the teacher's margins."""
    total = math.fsum(w * ((p - s) - (teacher_p - t)) ** 2 for (s, w), t in zip(slots, teacher_slots, strict=True))
    return total / math.fsum(w for _, w in slots)


# ---- losses over a batch --------------------------------------------------------------------------------------------


def same_label(labels, i, j):
    """Whether two samples have one label; -1 matches nothing."""
    return labels[i] == labels[j] != -1


def eliminate(z, partner, labels, temperature):
    """Rows of the loss for one granularity. z may have more rows than partner: keys, with their labels."""
    rows = []
    for i, own in enumerate(partner):
        others = [j for j in range(len(z)) if j not in (i, own) and not same_label(labels, i, j)]
        exponents = [math.exp(float(np.dot(z[i], z[j])) / temperature) for j in [own, *others]]
        rows.append(-math.log(exponents[0] / math.fsum(exponents)))
    return rows


def attract(z, partner, labels, temperature):
    """The same, where samples of one label join the positives and stay in the denominator."""
    rows = []
    for i, own in enumerate(partner):
        similar = [math.exp(float(np.dot(z[i], z[j])) / temperature) for j in range(len(z))]
        total = math.fsum(similar[j] for j in range(len(z)) if j != i)
        positives = [own, *(j for j in range(len(z)) if j not in (i, own) and same_label(labels, i, j))]
        rows.append(math.fsum(-math.log(similar[j] / total) for j in positives) / len(positives))
    return rows


def gradient_of_eliminate(z, partner, labels, temperature, i):
    """Equation 8 of the source: d L_i / d z_i, other vectors held."""
    others = [j for j in range(len(z)) if j not in (i, partner[i]) and not same_label(labels, i, j)]
    similar = {j: math.exp(float(np.dot(z[i], z[j])) / temperature) for j in [partner[i], *others]}
    total = math.fsum(similar.values())
    gradient = -(1 - similar[partner[i]] / total) * z[partner[i]] / temperature
    for j in others:
        gradient = gradient + similar[j] / total * z[j] / temperature
    return gradient


def gradient_of_attract(z, partner, labels, temperature, i):
    """Equation 10: the coefficient of a near positive may be negative."""
    everyone = [j for j in range(len(z)) if j != i]
    similar = {j: math.exp(float(np.dot(z[i], z[j])) / temperature) for j in everyone}
    total = math.fsum(similar.values())
    positives = {partner[i], *(j for j in everyone if same_label(labels, i, j))}
    gradient = np.zeros_like(z[i])
    for j in everyone:
        pulled = 1 / len(positives) if j in positives else 0.0
        gradient = gradient - (pulled - similar[j] / total) * z[j] / temperature
    return gradient


def sup_con(z, labels, temperature):
    """Supervised contrast, the sum over positives outside the logarithm. A row without positives is 0."""
    rows = []
    for i in range(len(z)):
        similar = [math.exp(float(np.dot(z[i], z[j])) / temperature) for j in range(len(z))]
        total = math.fsum(similar[j] for j in range(len(z)) if j != i)
        positives = [j for j in range(len(z)) if j != i and same_label(labels, i, j)]
        terms = [-math.log(similar[j] / total) for j in positives]
        rows.append(math.fsum(terms) / len(terms) if terms else 0.0)
    return rows


# ---- how many -------------------------------------------------------------------------------------------------------

GRID = np.linspace(-10, 18, 14_001)


def normal_cdf(x):
    """The distribution function of N(0, 1)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


LOG_CDF = np.array([math.log(max(normal_cdf(x), 1e-300)) for x in GRID])


def reliability(k, separation):
    """P(a positive beats all of k negatives), by the trapezoid rule on a fine grid."""
    density = np.exp(-((GRID - separation) ** 2) / 2) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(density * np.exp(k * LOG_CDF), GRID))


def mean_effectiveness(k, separation, reached, weight=0.9):
    """The mean over the curve of v = w (good - bad) + (1 - w) easy."""
    a, total = reliability(k, separation), 0.0
    for value in reached:
        b = reliability(k, value)
        good, bad = a * (1 - b), b * (1 - a)
        total += weight * (good - bad) + (1 - weight) * (1 - good - bad)
    return total / len(reached)


def simulated_curve(separation, points=60, end=3.0):
    """mu (1 - e^-t) at equal steps from 0 to `end`, both ends included."""
    return [separation * (1 - math.exp(-end * place / (points - 1))) for place in range(points)]


def auc_of(separation):
    """The AUC of two normal distributions that are so far apart."""
    return normal_cdf(separation / math.sqrt(2))


# ---- detectors ------------------------------------------------------------------------------------------------------


def count_bands(scores, low, high):
    """[easy, hard, false], one score at a time."""
    found = [0, 0, 0]
    for score in scores:
        found[2 if score >= high else 1 if score >= low else 0] += 1
    return found


def lowest_within(scores, allowed):
    """The lowest threshold among the scores that at most `allowed` of them reach."""
    for candidate in sorted(set(scores)):
        if sum(score >= candidate for score in scores) <= allowed:
            return candidate
    return None


def confidence(sample, centroids, assigned, temperature):
    """The softmax over centroids of cosine / temperature, at the assigned centroid."""
    logits = [float(pair_score64(sample, centroid)) / temperature for centroid in centroids]
    top = max(logits)
    return math.exp(logits[assigned] - top) / math.fsum(math.exp(value - top) for value in logits)


def pair_score64(one, other):
    """The cosine in float64."""
    dot = math.fsum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*map(float, one)) * math.hypot(*map(float, other)))


def detection_rates(labels, classes):
    """(MTPR, MTNR): means over anchors that have a candidate of the same class, and of another."""
    n, flagged_same, kept_other = len(labels), [], []
    for i in range(n):
        same = [same_label(labels, i, j) for j in range(n) if j != i and classes[j] == classes[i]]
        other = [not same_label(labels, i, j) for j in range(n) if j != i and classes[j] != classes[i]]
        if same:
            flagged_same.append(sum(same) / len(same))
        if other:
            kept_other.append(sum(other) / len(other))
    return sum(flagged_same) / len(flagged_same), sum(kept_other) / len(kept_other)
