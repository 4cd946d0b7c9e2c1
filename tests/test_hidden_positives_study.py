"""The distrust study: its readers, what it hides, its comparison at equal hardness, and a small run from end to end."""

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.docs import hidden_positives, pages
from benchmarks.hidden_positives import (
    hide,
    packages,
    promises,
    readers,
    rules,
    study,
    text,
    triple_models,
    triples,
)
from benchmarks.hidden_positives.hardness import Curve, at_hardness, auc, compared
from naysay.errors import NaysayError

FOLDER = Path(__file__).parent.parent / "benchmarks"
WORDS = [f"word{n}" for n in range(60)]


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = lzma.open if path.suffix == ".xz" else gzip.open
    with opened(path, "wt", encoding="utf-8") as file:
        for row in rows:
            file.write(row if isinstance(row, str) else json.dumps(row))
            file.write("\n")


def text_of(topic, rng, length=12):
    return " ".join(rng.choice(WORDS[5 * topic : 5 * topic + 10], length).tolist())


def collection(seed=0, n_queries=40, n_documents=90, per=4, width=6):
    rng = np.random.default_rng(seed)
    documents = readers._unit(rng.standard_normal((n_documents, width)))
    queries = readers._unit(rng.standard_normal((n_queries, width)))
    counts = rng.integers(1, per + 1, n_queries)
    counts[:20] = 1
    pairs = [(q, d) for q in range(n_queries) for d in rng.choice(n_documents, counts[q], replace=False)]
    anchors, items = np.array(pairs).T
    texts = [text_of(n % 10, rng) for n in range(n_documents)]
    return readers.Collection(queries, documents, anchors, items, texts, "random")


def make_data(folder, seed=0):
    """Every file of the study, small."""
    rng = np.random.default_rng(seed)
    codes = [1, 2, 3, 4]
    for name, opened, n_queries in (("scifact", "xz", 220), ("cranfield", "gz", 110)):
        n_documents = 80
        topic = rng.integers(0, 10, n_documents)
        corpus = [{"_id": f"d{n}", "title": "t", "text": text_of(topic[n], rng)} for n in range(n_documents)]
        corpus.append({"_id": f"d{n_documents}", "title": "", "text": ""})
        write_lines(folder / name / f"corpus.jsonl.{opened}", corpus)
        evaluated = rng.integers(0, 10, n_queries)
        queries = [{"_id": f"q{n}", "text": text_of(evaluated[n], rng, 4)} for n in range(n_queries)]
        write_lines(folder / name / "queries.jsonl.gz", queries)
        lines = ["query-id\tcorpus-id\tcode"]
        for n in range(n_queries):
            fitting = np.flatnonzero(topic == evaluated[n])
            many = 1 if name == "scifact" and n % 2 else 4
            chosen = rng.permutation(fitting)[:many]
            lines += [f"q{n}\td{d}\t{1 if name == 'scifact' else rng.choice(codes)}" for d in chosen]
        if name == "cranfield":
            write_lines(folder / name / "qrels.tsv.gz", [*lines, "q0\td80\t-1"])
            continue
        write_lines(folder / name / "qrels_train.tsv.gz", lines[:60])
        write_lines(folder / name / "qrels_test.tsv.gz", [lines[0], *lines[60:]])
        (folder / "scifact-minilm").mkdir()
        centres = rng.standard_normal((10, 8))
        np.savez(
            folder / "scifact-minilm" / "embeddings.npz",
            doc=(centres[np.append(topic, 0)] + rng.standard_normal((81, 8))).astype(np.float16),
            query=(centres[evaluated] + rng.standard_normal((n_queries, 8))).astype(np.float16),
            doc_id=np.array([row["_id"] for row in corpus]),
            query_id=np.array([row["_id"] for row in queries]),
        )
    rows = []
    for n in range(260):
        source = n // 2
        tags = [f"tag{t}" for t in range(source % 7)]
        long = text_of(source % 10, np.random.default_rng(source), 20) + (" more" if n % 2 else "")
        rows.append({"package": f"p{n}", "source": f"s{source}", "section": "x", "tags": tags, "long": long})
        rows[-1]["short"] = text_of(source % 10, rng, 4)
    rows.append({"package": "none", "source": "s0", "section": "x", "tags": [], "short": "empty", "long": ""})
    write_lines(folder / "debian-desc" / "packages.jsonl.xz", rows)
    (folder / "codex-s").mkdir()
    triples = np.unique(rng.integers(0, [40, 3, 40], (900, 3)), axis=0)
    parts = dict(zip(readers.SPLITS, np.array_split(rng.permutation(triples), [400, 500, 600, 700]), strict=True))
    np.savez(folder / "codex-s" / "triples.npz", **{name: part.astype(np.int32) for name, part in parts.items()})
    relations = "1\tP2\tknows - of a person\n0\tP1\tin\n2\tP3\tpart of - a - b\n"
    (folder / "codex-s" / "relations.tsv.gz").write_bytes(gzip.compress(relations.encode()))


def test_readers_give_what_the_files_hold(tmp_path):
    make_data(tmp_path)
    found = readers.scifact(tmp_path)
    assert found.queries.shape == (220, 8)
    assert found.documents.shape == (81, 8)
    np.testing.assert_allclose(np.linalg.norm(found.documents, axis=1), 1)
    lines = []
    for name in ("train", "test"):
        packed = (tmp_path / "scifact" / f"qrels_{name}.tsv.gz").read_bytes()
        lines += [line.split("\t") for line in gzip.decompress(packed).decode().splitlines()[1:]]
    wanted = {(int(q[1:]), int(d[1:])) for q, d, _ in lines}
    assert set(zip(found.anchors.tolist(), found.items.tolist(), strict=True)) == wanted
    assert len(found.anchors) == len(wanted)
    assert found.texts[3].startswith("t word")


def test_code_minus_one_is_dropped_and_an_empty_text_has_a_direction(tmp_path):
    make_data(tmp_path)
    found = readers.cranfield(tmp_path, width=10)
    assert found.documents.shape == (81, 10)
    assert 80 not in found.items  # only ever judged -1
    assert found.per_anchor().sum() == len(found.items)
    np.testing.assert_allclose(np.linalg.norm(found.documents, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(found.queries, axis=1), 1)


def test_packages_without_a_long_text_are_left_out_and_no_tags_are_no_class(tmp_path):
    make_data(tmp_path)
    found = readers.packages(tmp_path)
    assert len(found.long) == 260
    assert (found.source[0::2] == found.source[1::2]).all()
    assert len(np.unique(found.source)) == 130
    for n in range(260):
        assert found.tag_counts[n] == (n // 2) % 7
        assert (found.tags[n] == -1) == (found.tag_counts[n] == 0)
    assert found.tags[2] == found.tags[2 + 14]
    assert found.tags[2] != found.tags[4]


def test_a_triples_file_that_lacks_a_part_is_rejected(tmp_path):
    (tmp_path / "codex-s").mkdir()
    np.savez(tmp_path / "codex-s" / "triples.npz", train=np.zeros((1, 3)))
    with pytest.raises(NaysayError, match=r"`DATA` must be a triples\.npz with train, .*, got none named valid"):
        readers.triples(tmp_path)


def test_relations_are_named_by_their_id(tmp_path):
    make_data(tmp_path)
    assert readers.relation_names(tmp_path) == ["in", "knows", "part of"]


@given(st.integers(0, 1000), st.sampled_from(hide.WAYS))
def test_hiding_half_leaks_nothing(seed, by):
    data = collection(seed % 7)
    task = hide.hide(data, seed, by=by)
    positives = {}
    for anchor, item in zip(data.anchors.tolist(), data.items.tolist(), strict=True):
        positives.setdefault(anchor, set()).add(item)
    assert not set(task.evaluated.tolist()) & set(task.fitted.tolist())
    for row, anchor in enumerate(task.evaluated.tolist()):
        known, hidden = (set(np.flatnonzero(part[row]).tolist()) for part in (task.known, task.hidden))
        assert not known & hidden
        assert known | hidden == positives[anchor]
        assert len(hidden) == len(positives[anchor]) // 2
    hidden_pairs = {(int(task.evaluated[row]), int(item)) for row, item in zip(*np.nonzero(task.hidden), strict=True)}
    for row, (anchor, item) in enumerate(zip(task.fitted.tolist(), task.fitted_item.tolist(), strict=True)):
        assert item in positives[anchor]
        assert (anchor, item) not in hidden_pairs
        assert set(np.flatnonzero(task.fitted_known[row]).tolist()) == positives[anchor]
    several = {anchor for anchor, items in positives.items() if len(items) > 1}
    if by == "half":
        assert set(task.evaluated.tolist()) | set(task.fitted.tolist()) == several
    else:
        assert several <= set(task.evaluated.tolist())
        assert not several & set(task.fitted.tolist())


def test_hiding_depends_on_the_seed_alone():
    data = collection()
    first, again, other = (hide.hide(data, seed, by="half") for seed in (0, 0, 1))
    assert (first.hidden == again.hidden).all()
    assert first.evaluated.tolist() != other.evaluated.tolist()


def bench_of(data, by="single", seed=0):
    task = hide.hide(data, seed, by=by)
    groups = rules.clusterings(data.documents)
    whole = data.queries @ data.documents.T
    return task, hide.bench(data, whole, task, seed, groups), groups


def test_rules_are_told_nothing_of_what_is_hidden():
    data = collection(2)
    task, seen, groups = bench_of(data)
    swapped = hide.Task(
        task.evaluated, task.known, np.roll(task.hidden, 1, axis=1), task.fitted, task.fitted_item, task.fitted_known
    )
    other = hide.bench(data, data.queries @ data.documents.T, swapped, 0, groups)
    for name, rule in rules.rules(groups).items():
        setting = next(iter(rule.usual.values()))
        assert (rule.make(seen)(setting) == rule.make(other)(setting)).all(), name


def test_rules_flag_what_plain_loops_flag():
    data = collection(3)
    task, seen, groups = bench_of(data)
    made = rules.rules(groups)
    alpha = 0.2
    line = sorted(seen.calibration.tolist())[int(alpha * (len(seen.calibration) + 1)) - 1]
    standard_line = sorted(seen.deviations.tolist())[int(alpha * (len(seen.deviations) + 1)) - 1]
    flags = {name: made[name].make(seen) for name in made}
    for row in range(len(seen.scores)):
        known = np.flatnonzero(task.known[row])
        free = [place for place in range(seen.scores.shape[1]) if place not in known]
        own = min(seen.scores[row, place] for place in known)
        mean = np.mean([seen.scores[row, place] for place in free])
        spread = np.std([seen.scores[row, place] for place in free], ddof=1)
        best = sorted(free, key=lambda place: -seen.scores[row, place])
        for place in free:
            score = seen.scores[row, place]
            near = max(data.documents[place] @ data.documents[other] for other in known)
            assert flags["rank window"](3)[row, place] == (place in best[:3])
            assert flags["absolute"](0.4)[row, place] == (score > 0.4)
            assert flags["margin"](0.1)[row, place] == (score > own - 0.1)
            assert flags["share of the positive"](0.9)[row, place] == (score > own - 0.1 * abs(own))
            assert flags["calibrated"](alpha)[row, place] == (score >= line)
            assert flags["calibrated, by anchor"](alpha)[row, place] == ((score - mean) / spread >= standard_line)
            if abs(near - 0.6) > 1e-6:
                assert flags["near a positive"](0.6)[row, place] == (near > 0.6)
        break


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=9), st.floats(-1, 9))
def test_equal_hardness_is_read_along_straight_lines(points, level):
    hardness, shares = (np.array(part, float) for part in zip(*points, strict=True))
    found = at_hardness(hardness, shares, level)
    lowest = {}
    for hard, share in points:
        lowest[float(hard)] = min(share, lowest.get(float(hard), 99))
    places = sorted(lowest)
    if not places[0] <= level <= places[-1]:
        assert np.isnan(found)
        return
    if level in lowest:
        assert found == pytest.approx(lowest[level])
        return
    left = max(place for place in places if place < level)
    right = min(place for place in places if place > level)
    wanted = lowest[left] + (lowest[right] - lowest[left]) * (level - left) / (right - left)
    assert found == pytest.approx(wanted)


def test_a_curve_weights_anchors_and_a_rule_differs_from_itself_by_nothing():
    rng = np.random.default_rng(0)
    taken = np.full((3, 30), 10.0)
    hardness = np.array([[5.0], [4.0], [2.0]]) * np.ones((3, 30))
    returned = rng.integers(0, 3, (3, 30)).astype(float)
    curve = Curve([0, 1, 2], returned, np.full(30, 2.0), hardness, taken)
    weights = rng.integers(0, 4, 30).astype(float)
    hard, share = curve.points(weights)
    for place in range(3):
        assert hard[place] == pytest.approx(sum(weights * hardness[place]) / sum(weights * 10))
        assert share[place] == pytest.approx(sum(weights * returned[place]) / sum(weights * 2))
    better = Curve([0, 1, 2], 0 * returned, np.full(30, 2.0), hardness, taken)
    easy = Curve([0], returned[:1], np.full(30, 2.0), hardness[2:], taken[:1])
    curves = {"base": curve, "same": curve, "better": better, "easy": easy}
    found = compared(curves, "base", np.array([0.45]), np.random.default_rng(1))
    assert found["same"][0]["difference"] == found["same"][0]["low"] == found["same"][0]["high"] == 0
    assert found["better"][0]["percent"] == 0
    assert found["better"][0]["high"] < 0
    assert found["better"][0]["difference"] == pytest.approx(-found["base"][0]["percent"], abs=1e-3)
    assert found["easy"] == [None]


def test_auc_is_that_of_plain_loops():
    rng = np.random.default_rng(0)
    higher, lower = rng.integers(0, 5, 20).astype(float), rng.integers(0, 4, 30).astype(float)
    wanted = np.mean([(a > b) + 0.5 * (a == b) for a in higher for b in lower])
    assert auc(higher, lower) == pytest.approx(wanted)
    assert np.isnan(auc(higher, lower[:0]))


def test_a_tally_counts_what_plain_loops_count():
    data = collection(4)
    task, seen, _ = bench_of(data)
    ranks = text.ranks_of(seen.scores, task.known)
    flagged = seen.scores > 0.5
    tally = text.Tally(len(data.queries))
    tally.add(seen, seen.scores, ranks, task, flagged)
    returned = hidden = rank_sum = 0
    passed = []
    for row in range(len(seen.scores)):
        order = sorted(
            (place for place in range(seen.scores.shape[1]) if not task.known[row, place]),
            key=lambda place, row=row: -seen.scores[row, place],
        )
        left = [place for place in order if not flagged[row, place]]
        returned += sum(task.hidden[row, place] for place in left[:10])
        hidden += task.hidden[row].sum()
        rank_sum += sum(order.index(place) + 1 for place in left[:10])
        passed.append(sum(task.hidden[row, place] for place in left) / task.hidden[row].sum())
    found = tally.row(len(data.anchors))
    assert found["returned"]["percent"] == pytest.approx(100 * returned / hidden, abs=1e-3)
    assert found["let_through"]["percent"] == pytest.approx(100 * np.mean(passed), abs=1e-3)
    assert found["mean_rank"] == pytest.approx(rank_sum / (10 * len(passed)), abs=0.06)
    assert found["returned"]["low"] < found["returned"]["percent"] < found["returned"]["high"]


def test_what_is_promised_holds_where_hidden_and_known_are_alike():
    data = collection(5, n_queries=320, n_documents=120, per=6)
    rows = promises.promises(data, data.queries @ data.documents.T, 5)
    half = [row for row in rows if row["fitted_to"] == "half"]
    assert len(half) == 6
    for row in half:
        assert row["promised_percent"] <= 100 * row["alpha"]
        assert row["let_through"]["low"] <= 100 * row["alpha"]
        assert row["let_through"]["percent"] > 0


def test_packages_are_asked_about_once_a_source_and_searched_exactly():
    rng = np.random.default_rng(0)
    source = rng.integers(0, 20, 80)
    data = readers.Packages([""] * 80, [""] * 80, source, source, source)
    evaluated, fitted = packages.chosen(data, 8, rng)
    assert len(evaluated) == len(fitted) == 8
    assert len(set(source[np.concatenate([evaluated, fitted])].tolist())) == 16
    short, long = (rng.standard_normal((80, 4)) for _ in range(2))
    ids, scores = packages.nearest(short, long, evaluated, 5)
    for row, anchor in enumerate(evaluated.tolist()):
        best = sorted((place for place in range(80) if place != anchor), key=lambda p: -(short[anchor] @ long[p]))
        assert ids[row].tolist() == best[:5]
        np.testing.assert_allclose(scores[row], [short[anchor] @ long[place] for place in best[:5]])


def test_complex_scores_are_log_probabilities_of_complex_products():
    model = triple_models.ComplEx(5, 2, 0)
    entity, relation = (part.detach().double().numpy() for part in (model.entity, model.relation))
    width = triple_models.WIDTH
    vectors, between = (array[:, :width] + 1j * array[:, width:] for array in (100 * entity, relation))
    with torch.no_grad():
        model.entity *= 100  # far from equal probabilities
    triples = np.array([[0, 1, 2], [4, 0, 3], [1, 1, 1]])

    def log_probability(head, relation, tail):
        every = [(vectors[head] * between[relation] * one.conj()).sum().real for one in vectors]
        return every[tail] - np.log(np.exp(every).sum())

    for (head, which, tail), score in zip(triples.tolist(), model.scores(triples), strict=True):
        both = log_probability(head, which, tail) + log_probability(tail, which + 2, head)
        assert score == pytest.approx(both, abs=1e-4)
    every = model.tails(triples[:, 0], triples[:, 1])
    np.testing.assert_allclose(every[np.arange(3), triples[:, 2]], model.scores(triples), atol=1e-6)
    for (head, which, tail), parts in zip(triples.tolist(), model.parts(triples), strict=True):
        raw = [
            (vectors[a] * between[r] * vectors[b].conj()).sum().real
            for a, r, b in [(head, which, tail), (tail, which + 2, head)]
        ]
        said = (log_probability(head, which, tail), log_probability(tail, which + 2, head), sum(raw))
        np.testing.assert_allclose(parts, said, atol=1e-4)


def test_attributes_are_predicted_by_all_others_and_never_by_themselves():
    rng = np.random.default_rng(0)
    train = np.unique(rng.integers(0, [7, 2, 7], (30, 3)), axis=0)
    model = triple_models.Attributes(train, 7, 2, ridge=0.7)
    attributes = sorted({(r, t) for _, r, t in train.tolist()} | {(r + 2, h) for h, r, _ in train.tolist()})
    has = {(h, r, t) for h, r, t in train.tolist()} | {(t, r + 2, h) for h, r, t in train.tolist()}
    known = np.array([[float((entity, *attribute) in has) for attribute in attributes] for entity in range(7)])

    def said(entity, relation, other):
        if (relation, other) not in attributes:
            return 0.0
        own = attributes.index((relation, other))
        rest = np.delete(known, own, axis=1)
        weights = np.linalg.solve(rest.T @ rest + 0.7 * np.eye(rest.shape[1]), rest.T @ known[:, own])
        return rest[entity] @ weights

    triples = np.array([(h, r, t) for h in range(7) for r in range(2) for t in range(7)])
    wanted = [(said(h, r, t), said(t, r + 2, h)) for h, r, t in triples.tolist()]
    np.testing.assert_allclose(model.parts(triples), wanted, atol=1e-9)
    np.testing.assert_allclose(model.scores(triples), np.sum(wanted, axis=1), atol=1e-9)
    tails = model.tails(np.array([3, 0]), np.array([1, 0]))
    np.testing.assert_allclose(tails[0], model.scores(np.array([(3, 1, t) for t in range(7)])))
    np.testing.assert_allclose(tails[1], model.scores(np.array([(0, 0, t) for t in range(7)])))


def test_known_tails_and_heads_are_counted():
    train = np.array([[0, 1, 2], [0, 1, 3], [4, 1, 2], [0, 0, 2]])
    told = triples.known_counts(train, (5, 2))
    found = told(np.array([[0, 1, 2], [4, 1, 0], [2, 1, 2]]))
    np.testing.assert_allclose(np.expm1(found), [[2, 2], [1, 0], [0, 2]])


def test_the_best_line_makes_the_fewest_mistakes():
    rng = np.random.default_rng(0)
    true, false = rng.integers(2, 9, 15).astype(float), rng.integers(0, 6, 20).astype(float)
    line = triples.best_threshold(true, false)

    def mistakes(at):
        return sum(score < at for score in true) + sum(score >= at for score in false)

    assert mistakes(line) == min(mistakes(at) for at in np.arange(-1, 10, 0.5) if true.min() <= at <= true.max())


def test_a_folder_without_the_data_ends_in_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        study.main([str(tmp_path), "--only", "cranfield", "codex"])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("hidden_positives: `DATA` must be a folder with the data of cranfield, codex, got ")
    assert "It lacks cranfield/corpus.jsonl.gz (and 4 more); name with --only the parts that it has" in printed.err
    with pytest.raises(SystemExit, match="2"):
        study.main([str(tmp_path), "--seeds", "0"])
    assert capsys.readouterr().err == "hidden_positives: `--seeds` must be at least 1, got 0.\n"


def test_a_small_study_runs_from_end_to_end(tmp_path, capsys):
    make_data(tmp_path)
    out = tmp_path / "found.json"
    sizes = ("--seeds", "1", "--anchors", "40", "--steps", "5")
    study.main([str(tmp_path), *sizes, "--out", str(out)])
    assert "minutes left in this part" in capsys.readouterr().out
    assert "NaN" not in out.read_text()
    found = json.loads(out.read_text())
    assert set(found) >= {"scifact", "cranfield", "debian", "codex"}
    for name in ("scifact", "cranfield"):
        rows = found[name]["rules"]
        assert rows["naive"]["let_through"]["percent"] == 100
        assert rows["naive"]["returned"]["percent"] >= rows["rank window, 10"]["returned"]["percent"]
        assert all(0 <= row["returned"]["percent"] <= 100 for row in rows.values())
        base = found[name]["equal_hardness"]["score"]["rules"]["rank window"]
        assert [level["difference"] for level in base] == [0, 0, 0]
    assert "score, all anchors" in found["scifact"]["equal_hardness"]
    source = found["debian"]["detectors"]["source"]
    assert source["naive"]["mtpr"]["percent"] == 0
    assert source["duplicates by text, 0.8"]["mtpr"]["percent"] > 90  # the two of a source differ by one word
    assert source["duplicates by text, 0.8"]["false_of_taken"]["percent"] < source["naive"]["false_of_taken"]["percent"]
    codex = found["codex"]
    assert codex["models"] == 1
    assert set(codex["flagged"]) == {"ComplEx", "attributes", "both"}
    assert set(codex["flagged"]["both"]) == {"labelled, by relation, cost 1", "labelled, by relation, cost 4"}
    dear, plain = (codex["flagged"]["both"][f"labelled, by relation, cost {cost}"] for cost in (4, 1))
    assert dear["test"]["percent"] > plain["test"]["percent"]
    for kind, name in (("true", "test"), ("false", "test_negatives")):
        assert sum(row[kind] for row in codex["by_relation"]) == codex[name]
        wrong = sum(row[f"{kind}_wrong"] for row in codex["by_relation"])
        flagged = plain[name]["percent"] * codex[name] / 100
        assert wrong == pytest.approx(codex[name] - flagged if kind == "true" else flagged, abs=0.01)
    parts = hidden_positives.distrust(found, lambda headings, rows: json.dumps([headings, *rows]))
    made = [json.loads(part) for part in parts if part.startswith("[[")]
    assert len(made) >= 8
    assert all(len(cells) == len(rows[0]) for rows in made for cells in rows)


def test_published_sections_are_made_of_the_results():
    names = [name for name in hidden_positives.SECTIONS if (FOLDER / "results" / f"{name}.json").exists()]
    assert "false_negatives" in names
    parts = hidden_positives.sections(pages.result, pages.table)
    assert all(isinstance(part, str) for part in parts)
    assert sum(part.startswith("## ") for part in parts) == len(names)
    assert "nan" not in "\n".join(parts)
