"""mine: order and bytes, exclusion, judges, selection, short rows, explanations; and the search behind it."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from tests.contract import names, oracles
from tests.contract.mined_world import Families

METRICS = ["cosine", "dot", "l2"]
WORLD = Families(n=200, others=700)


def few_values(n, width, seed):
    """Vectors of few values, so that scores are equal often; none is zero."""
    made = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], (n, width)).astype(np.float32)
    made[:, 0] = 1
    return made


def positives_of(pairs, n, items):
    return ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], n, items)


def mine(k=10, **options):
    return ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, k, **options)


@pytest.fixture(scope="module")
def auto():
    return mine()


@pytest.fixture(scope="module")
def nearest():
    return mine(judge=None)


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=14)


# ---- order and bytes ------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(0, 8), st.sampled_from(METRICS), PAIRS, PAIRS)
def test_the_nearest_are_those_of_plain_loops(seed, k, metric, positives, ignored):
    """Scores are float64 sums in index order, rounded to float32; score descending, id ascending; known ones out."""
    queries, corpus = few_values(6, 3, seed), few_values(10, 3, seed + 1)
    known, ignore = positives_of(positives, 6, 10), positives_of(ignored, 6, 10)
    mined = ns.mine(queries, corpus, known, k, metric=metric, judge=None, ignore=ignore, keep_own_text=True)
    scores = oracles.pair_scores(queries, corpus, metric)
    excluded = {*positives, *ignored}
    ids, best = oracles.nearest(scores, k, lambda row, item: (row, item) not in excluded)
    assert mined.ids.dtype == np.int64
    assert mined.scores.dtype == np.float32
    assert mined.ids.tolist() == ids.tolist()
    assert mined.scores.tobytes() == best.tobytes()
    for row in range(6):
        own = [scores[row, item] for a, item in positives if a == row]
        assert mined.positive_scores[row] == min(own) if own else np.isnan(mined.positive_scores[row])


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_rounded_once(metric):
    """Wide vectors, where a product in float32 would differ in the last bits."""
    rng = np.random.default_rng(0)
    queries, corpus = (rng.standard_normal((n, 150)).astype(np.float32) for n in (12, 90))
    mined = ns.mine(queries, corpus, None, 7, metric=metric, judge=None)
    ids, best = oracles.nearest(oracles.pair_scores(queries, corpus, metric), 7, lambda row, item: True)
    assert mined.ids.tolist() == ids.tolist()
    assert mined.scores.tobytes() == best.tobytes()


def test_the_same_bytes_for_any_block_size_and_number_of_threads(auto):
    for options in ({"budget": 12 << 20}, {"threads": 2}, {"threads": 4, "budget": 1 << 30}):
        again = mine(**options)
        for name in ("ids", "scores", "suspicion", "positive_scores"):
            assert getattr(again, name).tobytes() == getattr(auto, name).tobytes(), (options, name)


def test_half_precision_tensors_and_files_are_mined_as_they_are(tmp_path):
    queries, corpus = WORLD.queries.astype(np.float16), WORLD.corpus.astype(np.float16)
    np.save(tmp_path / "q.npy", queries)
    np.save(tmp_path / "c.npy", corpus)
    wanted = ns.mine(queries.astype(np.float32), corpus.astype(np.float32), WORLD.labelled, 5, judge=None)
    for one, other in (
        (queries, corpus),
        (torch.from_numpy(queries), torch.from_numpy(corpus)),
        (tmp_path / "q.npy", str(tmp_path / "c.npy")),
    ):
        found = ns.mine(one, other, WORLD.labelled, 5, judge=None)
        assert found.ids.tobytes() == wanted.ids.tobytes()
        assert found.scores.tobytes() == wanted.scores.tobytes()


@pytest.mark.parametrize("judge", [None, "auto"])
def test_no_queries_and_one_query(judge):
    assert ns.mine(WORLD.queries[:0], WORLD.corpus, None, 3, judge=judge).ids.shape == (0, 3)
    assert ns.mine(WORLD.queries[:1], WORLD.corpus, None, 3, judge=judge).ids.shape == (1, 3)


def test_positives_may_be_pairs_ids_or_positives():
    pairs = (np.arange(200), WORLD.labelled)
    forms = (WORLD.labelled, pairs, ns.Positives.from_pairs(*pairs, 200, WORLD.n_items))
    found = [ns.mine(WORLD.queries, WORLD.corpus, form, 4, judge=None).ids for form in forms]
    assert all((ids == found[0]).all() for ids in found)


# ---- what is excluded -----------------------------------------------------------------------------------------------


def test_anchors_that_are_items_are_not_their_own_negatives():
    found = ns.mine(WORLD.corpus[:50], WORLD.corpus[:50], None, 5, same_ids=True, judge=None)
    assert not (found.ids == np.arange(50)[:, None]).any()
    assert found.mask.all()


def test_a_copy_of_the_positive_is_dropped_by_a_judge_and_kept_without_one():
    corpus = np.concatenate([WORLD.corpus, WORLD.corpus[WORLD.labelled[:40]]])
    copies = (WORLD.n_items + np.arange(40))[:, None]
    judged = ns.mine(WORLD.queries[:40], corpus, WORLD.labelled[:40], 5, judge=names.MaxScore(1.1))
    assert not (judged.ids == copies).any()
    pure = ns.mine(WORLD.queries[:40], corpus, WORLD.labelled[:40], 5, judge=None)
    assert (pure.ids == copies).any(axis=1).mean() > 0.9


def test_documents_of_the_same_text_are_duplicates():
    texts = [f"text {row // 2}" for row in range(WORLD.n_items)]
    found = mine(k=40, judge=names.MaxScore(1.1), duplicates=texts)
    assert not (found.ids == (WORLD.labelled ^ 1)[:, None]).any()


# ---- judges ---------------------------------------------------------------------------------------------------------


def test_auto_keeps_the_estimated_share_of_false_negatives_within_the_target(auto, nearest):
    assert WORLD.false_share(nearest.ids) > 0.15
    assert 0.01 < WORLD.false_share(auto.ids) < 0.08
    assert auto.mask.all()
    share = auto.false_share
    assert share.low <= WORLD.false_share(auto.ids) <= share.high
    assert share.estimate <= 0.05 + 1e-9
    assert auto.rule
    assert auto.rule in str(auto)
    assert auto.scores.mean() > mine(judge="calibrated").scores.mean()  # it drops less than the fallback


def test_another_target_needs_no_other_search(auto):
    for target in (0.02, 0.1, 0.5):
        again, anew = auto.rethreshold(false_share=target), mine(false_share=target)
        assert (again.ids == anew.ids).all()
        assert again.false_share.estimate == pytest.approx(anew.false_share.estimate)


def test_too_few_labels_lead_to_a_stated_fallback():
    few = ns.mine(WORLD.queries, WORLD.corpus, (np.arange(3), WORLD.labelled[:3]), 4)
    assert few.mask.any()
    assert few.rule


def below(limit):
    """The nearest of an anchor that score below a limit of its own."""
    scores = oracles.pair_scores(WORLD.queries[:25], WORLD.corpus)

    def allowed(row, item):
        return item != WORLD.labelled[row] and not limit(scores[row, item], scores[row, WORLD.labelled[row]])

    return oracles.nearest(scores, 4, allowed)


@pytest.mark.parametrize(
    ("judge", "limit"),
    [
        ("margin:0.05", lambda score, own: score > own - 0.05),
        ("share:0.95", lambda score, own: score > 0.95 * own),
        (names.max_score_judge(0.4), lambda score, own: score >= 0.4),
        ("bands:0.1,0.4", lambda score, own: score >= 0.4),
    ],
)
def test_judges_by_the_positive_s_score_drop_what_their_formula_says(judge, limit):
    found = ns.mine(WORLD.queries[:25], WORLD.corpus, WORLD.labelled[:25], 4, judge=judge)
    ids, scores = below(limit)
    assert found.ids.tolist() == ids.tolist()
    assert found.scores.tobytes() == scores.tobytes()


def test_a_string_means_what_the_detector_means(nearest):
    lowest = nearest.positive_scores
    assert (mine(judge="margin:0.1").ids == mine(judge=ns.detectors.Margin(0.1, lowest)).ids).all()
    assert (mine(judge="none").ids == nearest.ids).all()


def test_any_detector_judges():
    lowest = mine(judge=None).positive_scores
    found = mine(judge={"high": names.MaxScore(0.45), "margin": ns.detectors.Margin(0.2, lowest)}, depth=60)
    limit = np.minimum(np.nextafter(np.float32(0.45), np.float32(0)), lowest - np.float32(0.2))
    assert (np.where(found.mask, found.scores, -1) <= limit[:, None]).all()


def test_a_calibrated_judge_misses_at_most_its_share():
    found = mine(judge="calibrated:0.1")
    own = oracles.pair_scores(WORLD.queries, WORLD.corpus[WORLD.labelled]).diagonal()
    limit = np.sort(own)[int(0.1 * 201) - 1]
    assert (found.scores[found.mask] < limit).all()
    assert found.scores.max() < limit


# ---- how many, which ------------------------------------------------------------------------------------------------


def test_k_may_differ_by_anchor():
    counts = np.arange(200) % 4
    found = mine(k=counts)
    assert found.ids.shape == (200, 3)
    assert found.mask.sum(axis=1).tolist() == counts.tolist()


def test_auto_k_counts_what_lies_between_floor_and_threshold():
    found = ns.mine(
        WORLD.queries[:25], WORLD.corpus, WORLD.labelled[:25], "auto", judge=ns.detectors.Bands(0.4, 0.6), max_k=7
    )
    scores = oracles.pair_scores(WORLD.queries[:25], WORLD.corpus)
    for row in range(25):
        between = [
            item
            for item in range(WORLD.n_items)
            if np.float32(0.4) <= scores[row, item] < np.float32(0.6) and item != WORLD.labelled[row]
        ]
        assert found.mask[row].sum() == min(len(between), 7)


def test_a_lowest_score_and_a_window_of_ranks():
    scores = oracles.pair_scores(WORLD.queries[:25], WORLD.corpus)
    found = ns.mine(WORLD.queries[:25], WORLD.corpus, None, 30, judge=None, rank_range=(3, 12), min_score=0.3)
    for row in range(25):
        order = sorted(range(WORLD.n_items), key=lambda item: (-scores[row, item], item))
        wanted = [item for item in order[2:12] if scores[row, item] >= np.float32(0.3)]
        assert found.ids[row][found.mask[row]].tolist() == wanted


@pytest.mark.parametrize(
    "options",
    [
        {"select": "random"},
        {"select": "softmax", "temperature": 0.1},
        {"select": "spread"},
        names.MMR,
        {"select": "groups", "groups": np.arange(WORLD.n_items) % 5},
    ],
    ids=lambda options: options["select"],
)
def test_other_selections_take_distinct_candidates_that_nobody_suspects(options):
    asked = {"judge": names.MaxScore(0.45), "depth": 40, "seed": 3, **options}
    found = mine(k=4, **asked)
    assert (found.ids == mine(k=4, **asked).ids).all()
    assert (found.scores[found.mask] < 0.45).all()
    assert not (found.ids == WORLD.labelled[:, None]).any()
    assert all(len({*row[row >= 0].tolist()}) == (row >= 0).sum() for row in found.ids)
    top = mine(k=4, judge=names.MaxScore(0.45), depth=40)
    assert (found.ids != top.ids).any()


def test_the_seed_decides_random_selections():
    one, other = (mine(k=4, judge=None, select="random", depth=40, seed=seed).ids for seed in (0, 1))
    assert (one != other).any()


def test_quotas_take_from_each_source():
    words = np.stack([np.random.default_rng(row).permutation(WORLD.n_items)[:20] for row in range(200)])
    found = mine(k=6, judge=None, sources={"words": words}, quotas={"search": 4, "words": 2})
    assert set(found.source_names) == {"search", "words"}
    place = found.source_names.index("words")
    for row in range(200):
        taken = found.ids[row][found.mask[row] & (found.source[row] == place)]
        assert set(taken.tolist()) <= set(words[row].tolist())
    assert ((found.source == found.source_names.index("search")) & found.mask).sum(axis=1).tolist() == [4] * 200


def test_a_second_model_scores_the_candidates_again():
    truth = oracles.pair_scores(WORLD.queries[:25, :4], WORLD.corpus[:, :4])
    found = ns.mine(
        WORLD.queries[:25],
        WORLD.corpus,
        WORLD.labelled[:25],
        3,
        judge=None,
        depth=20,
        rescore=lambda anchors, ids: truth[anchors, ids],
    )
    plain = ns.mine(WORLD.queries[:25], WORLD.corpus, WORLD.labelled[:25], 20, judge=None, depth=20)
    for row in range(25):
        listed = plain.ids[row][plain.mask[row]].tolist()
        assert found.scores[row].tolist() == truth[row, found.ids[row]].tolist()
        assert found.scores[row, 0] == max(truth[row, item] for item in listed)


# ---- short rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_short", ["pad", "drop", "relax", "random"])
def test_rows_that_are_short_follow_on_short(on_short):
    found = mine(k=6, judge=names.MaxScore(0.2), depth=25, on_short=on_short)
    filled = found.mask.sum(axis=1)
    assert not (found.ids == WORLD.labelled[:, None]).any()
    plain = mine(k=6, judge=names.MaxScore(0.2), depth=25).mask.sum(axis=1)
    assert (plain < 6).any()
    if on_short == "pad":
        assert (filled == plain).all()
    elif on_short == "drop":
        assert set(filled.tolist()) <= {0, 6}
    elif on_short == "relax":
        assert (filled == 6).all()
    else:
        assert (filled >= plain).all()
        assert filled.sum() > plain.sum()
        assert (found.scores[found.mask] < 0.2).all()  # the judge looks at random ones, too


def test_a_short_row_can_be_an_error():
    with pytest.raises(ns.NaysayError):
        mine(k=6, judge=names.MaxScore(-0.9), depth=25, on_short="raise")


# ---- what comes of it -----------------------------------------------------------------------------------------------


def test_every_negative_is_explained(auto):
    for row in (0, 50):
        told = auto.explain(row)
        assert told.anchor == row
        assert [fate.id for fate in told.negatives] == auto.ids[row].tolist()
        assert [fate.score for fate in told.negatives] == pytest.approx(auto.scores[row].tolist())
        assert all(fate.kept for fate in told.negatives)
        assert not any(fate.kept for fate in told.candidates)
        assert told.positive_score == auto.positive_scores[row]
        assert told.rule == auto.rule
        assert all(fate.by for fate in (*told.negatives, *told.candidates))


def test_everything_that_was_left_out_is_counted(nearest):
    limited = mine(k=3, judge=names.MaxScore(0.45), depth=30)
    for row in (0, 9):
        told = limited.explain(row)
        assert sum(told.dropped.values()) >= len(told.candidates)
        suspects = [fate for fate in told.candidates if fate.score >= 0.45]
        assert len({fate.by for fate in suspects}) <= 1


def test_negatives_go_on_to_a_loss_or_a_policy(nearest):
    negatives = nearest.negatives()
    assert (negatives.ids == nearest.ids).all()
    assert negatives.mask.tolist() == nearest.mask.tolist()
    assert np.isfinite(negatives.scores).all()


def test_what_was_mined_is_written(nearest, tmp_path):
    queries = [f"question {row}" for row in range(200)]
    corpus = [f"text {row}" for row in range(WORLD.n_items)]
    nearest.write(tmp_path / "train.jsonl", format="triplet", query_texts=queries, corpus_texts=corpus)
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    wanted = [
        {"anchor": queries[row], "positive": corpus[WORLD.labelled[row]], "negative": corpus[item]}
        for row in range(200)
        for item in nearest.ids[row].tolist()
    ]
    assert rows == wanted


def test_pairs_for_a_person_to_review_correct_the_estimate(auto):
    assert len(auto.pairs_to_review(30).anchors) == 30


# ---- search ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("threads", [1, 2])
def test_search_is_exact_and_certified(metric, threads):
    queries, corpus = WORLD.queries[:30], WORLD.corpus
    known = ns.Positives.from_pairs(np.arange(30), WORLD.labelled[:30], 30, WORLD.n_items)
    ids, scores = names.search(queries, corpus, 6, metric=metric, exclude=known, threads=threads)
    wanted = oracles.nearest(
        oracles.pair_scores(queries, corpus, metric), 6, lambda row, item: item != WORLD.labelled[row]
    )
    assert ids.tolist() == wanted[0].tolist()
    assert scores.tobytes() == wanted[1].tobytes()


def test_an_approximate_index_measures_its_recall():
    found = mine(k=5, judge=None, approximate="ivf", min_recall=0.3)
    exact = mine(k=5, judge=None)
    overlap = np.mean([len({*one} & {*other}) / 5 for one, other in zip(found.ids, exact.ids, strict=True)])
    assert overlap > 0.5
    scores = oracles.pair_scores(WORLD.queries[:5], WORLD.corpus)
    for row in range(5):
        assert found.scores[row].tolist() == scores[row, found.ids[row]].tolist()  # rescored exactly


def test_bm25_is_a_source_of_candidates():
    queries, corpus = ["red fox", "blue whale"], ["the red fox", "a blue whale", "red red wine", "nothing here"]
    found = ns.mining.bm25(queries, corpus, 2)
    assert found.ids[0].tolist() == [0, 2]
    assert found.ids[1, 0] == 1
