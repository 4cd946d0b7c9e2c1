"""mine_hard_negatives without its peer: against plain loops, and its laws."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_mining import cosine, plain_negatives, plain_table
from stand_in_models import Encoder, Scorer, on_a_circle, random_table

import naysay as ns
from naysay.detectors import MaxScore, Posterior, ShareOfPositive
from naysay.integrations import _hard_negative_tables as hard_negative_tables
from naysay.integrations import _hard_negatives as hard_negatives
from naysay.integrations.sentence_transformers import mine_hard_negatives
from naysay.search import _products as engines

FORMATS = ["triplet", "n-tuple", "labeled-pair", "labeled-list"]


def mined(rows, table, corpus=None, **options):
    """The answer for a dictionary of columns, as a dictionary."""
    columns = {"anchor": [a for a, _ in rows], "positive": [p for _, p in rows]}
    return mine_hard_negatives(columns, Encoder(table), corpus=corpus, verbose=False, **options).to_pydict()


@st.composite
def jobs(draw):
    """Pairs, a corpus or none, and all options that decide; some texts are anchors and documents at once."""
    n = draw(st.integers(2, 12))
    one = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    rows = [(f"text {a}", f"text {p}") for a, p in draw(st.lists(one, min_size=1, max_size=16))]
    extra = draw(st.none() | st.lists(st.integers(0, n - 1), max_size=14))
    k, range_min = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    options = {"num_negatives": k, "range_min": range_min, "range_max": range_min + k + draw(st.integers(0, 6))}
    for name in ("absolute_margin", "relative_margin", "max_score", "min_score"):
        if draw(st.booleans()):
            options[name] = draw(st.floats(-0.5, 0.5, width=16))
    if draw(st.booleans()):
        options["include_positives"] = True
    corpus = None if extra is None else [f"text {place}" for place in extra]
    return rows, corpus, random_table([f"text {i}" for i in range(n)], draw(st.integers(0, 2**32 - 1))), options


@settings(max_examples=25)
@given(jobs(), st.sampled_from(FORMATS), st.booleans(), st.booleans())
def test_against_plain_loops(job, form, with_scores, rescore):
    rows, corpus, table, options = job
    others = random_table(table, 11)
    score = (lambda one, other: cosine(others[one], others[other])) if rescore else None
    scorer = Scorer(score) if rescore else None
    asked = {"output_format": form, "output_scores": with_scores, "cross_encoder": scorer}
    k = options["num_negatives"]
    given_rules = {name: value for name, value in options.items() if name != "num_negatives"}
    expected = plain_negatives(rows, corpus, table, k, **given_rules, rescore=score)
    form = "n-tuple" if "include_positives" in options else form
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hard_negatives, "_SPARE", -k)  # the first search finds no more than are wanted
        found = mined(rows, table, corpus, **asked, **options)
    wanted = plain_table(expected, k, form, with_scores)
    assert list(found) == list(wanted)
    assert found == wanted


def test_the_same_in_small_pieces(monkeypatch):
    form = "n-tuple"
    table = random_table([f"q{i}" for i in range(20)] + [f"d{i}" for i in range(15)], 4)
    rows = [(f"q{i % 20}", f"d{i * 7 % 15}") for i in range(50)]
    options = {"output_format": form, "output_scores": True, "max_score": 0.5}
    whole = mined(rows, table, **options)
    monkeypatch.setattr(hard_negatives, "_SLOTS", 64)
    monkeypatch.setattr(hard_negatives, "_PAIRS", 7)
    monkeypatch.setattr(hard_negative_tables, "_CHUNK", 64)
    columns = {"anchor": [a for a, _ in rows], "positive": [p for _, p in rows]}
    small = mine_hard_negatives(columns, Encoder(table), verbose=False, **options)
    assert small.column(0).num_chunks > 5
    assert small.to_pydict() == whole
    small.validate(full=True)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("with_scores", [False, True])
def test_types_and_an_empty_answer(form, with_scores):
    table = random_table(["q", "d"], 0)
    columns = {"question": ["q"], "answer": ["d"]}
    found = mine_hard_negatives(
        columns, Encoder(table), output_format=form, output_scores=with_scores, num_negatives=2, verbose=False
    )
    assert found.num_rows == (1 if form == "labeled-pair" else 0)
    assert found.column_names[:2] == ["question", "answer"]
    kinds = {"negative": pa.string(), "negative_1": pa.string(), "negative_2": pa.string()}
    kinds |= {
        "score": pa.float64(),
        "label": pa.int64(),
        "labels": pa.list_(pa.int64()),
        "scores": pa.list_(pa.float64()),
    }
    for field in list(found.schema)[2:]:
        assert field.type == kinds[field.name]
    assert found.schema.field("answer").type == (pa.list_(pa.string()) if form == "labeled-list" else pa.string())


def test_forms_of_a_data_set():
    table = random_table(["q0", "q1", "d0", "d1"], 0)
    columns = {"x": [1, 2], "q": ["q0", "q1"], "d": ["d0", "d1"]}
    names = {"anchor_column_name": "q", "positive_column_name": "d", "verbose": False, "num_negatives": 1}
    expected = {"q": ["q0", "q1"], "d": ["d0", "d1"], "negative": ["d1", "d0"]}
    for form in (
        columns,
        pa.table(columns),
        pa.table(columns).cast(pa.schema({"x": "int8", "q": pa.large_string(), "d": "string"})),
    ):
        assert mine_hard_negatives(form, Encoder(table), **names).to_pydict() == expected
    assert mine_hard_negatives({"a": columns["q"], "b": columns["d"]}, Encoder(table), num_negatives=1, verbose=False)[
        "negative"
    ].to_pylist() == ["d1", "d0"]


def test_prompts_go_to_their_side():
    model = Encoder(random_table(["q", "d", "e"], 0))
    rows = {"q": ["q"], "d": ["d"]}
    given = {"query_prompt": "Q: ", "query_prompt_name": "unused", "corpus_prompt_name": "passage"}
    mine_hard_negatives(rows, model, corpus=["e"], verbose=False, batch_size=7, **given)
    asked = {tuple(texts): options for texts, options in zip(model.calls, model.options, strict=True)}
    assert asked["q",]["prompt"] == "Q: "
    assert "prompt_name" not in asked["q",]  # as theirs: the prompt has precedence
    assert asked["e", "d"]["prompt_name"] == "passage"
    assert {options["batch_size"] for options in model.options} == {7}


class Pooled(Scorer):
    """A cross-encoder with processes."""

    def start_multi_process_pool(self, target_devices=None):
        self.pools = [("start", target_devices)]
        return "pool"

    def stop_multi_process_pool(self, pool):
        self.pools.append(("stop", pool))

    def predict(self, pairs, pool=None, **options):
        self.pools.append(pool)
        return super().predict(pairs, **options)


def test_processes():
    class Many(Encoder):
        start_multi_process_pool, stop_multi_process_pool = (
            Pooled.start_multi_process_pool,
            Pooled.stop_multi_process_pool,
        )

    model, scorer = Many(random_table(["q", "d", "e"], 0)), Pooled(lambda one, other: 0.0)
    options = {"corpus": ["e"], "cross_encoder": scorer, "use_multi_process": ["cpu"], "verbose": False}
    mine_hard_negatives({"q": ["q"], "d": ["d"]}, model, **options)
    assert [given["pool"] for given in model.options] == ["pool", "pool"]
    assert scorer.pools == [("start", ["cpu"]), "pool", "pool", ("stop", "pool")]


def test_the_cache(tmp_path):
    table = random_table(["q0", "q1", "d0", "d1"], 0)
    rows = {"q": ["q0", "q1"], "d": ["d0", "d1"]}
    first, second = Encoder(table, cache_key="a"), Encoder(table, cache_key="a")
    answers = [mine_hard_negatives(rows, model, verbose=False, cache_folder=str(tmp_path)) for model in (first, second)]
    assert answers[0] == answers[1]
    assert (len(first.calls), len(second.calls)) == (2, 0)
    assert len(list(tmp_path.iterdir())) == 2


ENGINES = {"int8": engines._INT8, "float32": engines._FLOAT32, "float64": engines.PLAIN}


# ---- strategies of our own ---------------------------------------------------------------------------------


def spread_world(n=60):
    texts = {f"d{i}": i + 1 for i in range(n)}
    return on_a_circle(q=0, p=0.5, **texts), list(texts)


def test_spread_is_even_over_the_ranks():
    table, corpus = spread_world()
    found = mined([("q", "p")], table, corpus, sampling_strategy="spread", range_max=60)
    assert found["negative"] == ["d10", "d30", "d50"]


def test_an_anchor_that_loses_many_is_searched_to_the_last_rank(capsys):
    table, corpus = spread_world()
    table |= {"r": table["d59"], "s": table["d58"]}
    columns = {"q": ["q", "r"], "p": ["p", "s"]}
    options = {"max_score": float(np.cos(np.deg2rad(40.5))), "range_max": 50, "num_negatives": 2, "duplicates": False}
    found = mine_hard_negatives(columns, Encoder(table), corpus=corpus, **options)
    assert found["negative"].to_pylist() == ["d40", "d41", "d18", "d17"]
    # too near are d0 to d39, at 1 to 40 degrees from q, and d59 to d19, at 0 to 40 degrees from r
    assert "Skipped 81 of 96 candidates (84.38%): max_score" in capsys.readouterr().out


def test_a_judge():
    table = on_a_circle(q=0, p=5, a=10, b=40, c=60)
    line = float(np.cos(np.deg2rad(30)))
    found = mined([("q", "p")], table, ["a", "b", "c"], judge=MaxScore(line))
    assert found["negative"] == ["b", "c"]


def test_a_judge_as_text_means_the_same_as_for_mine():
    rng = np.random.default_rng(4)
    rows = [(f"q{row}", f"p{row}") for row in range(30)]
    table = random_table([text for row in rows for text in row], rng)
    plain = mined(rows, table, num_negatives=2)
    assert mined(rows, table, num_negatives=2, judge="none") == plain
    by_object = mined(rows, table, num_negatives=2, judge=MaxScore(0.3))
    assert by_object != plain
    assert mined(rows, table, num_negatives=2, judge="max_score:0.3") == by_object
    lowest = [cosine(table[anchor], table[positive]) for anchor, positive in rows]
    share = ShareOfPositive(np.array(lowest, np.float32), 0.9)
    assert mined(rows, table, num_negatives=2, judge="share:0.9") == mined(rows, table, num_negatives=2, judge=share)


@pytest.mark.parametrize("reviewed", [False, True])
def test_auto_is_the_judge_of_mine(reviewed):
    rng = np.random.default_rng(1)
    n, others, width, k = 300, 1500, 32, 10
    centres = rng.normal(size=(n, width))
    families = centres[:, None] + 0.6 * rng.normal(size=(n, 3, width))
    documents = np.concatenate([families.reshape(-1, width), rng.normal(size=(others, width))]).astype(np.float32)
    queries = (centres + 0.3 * rng.normal(size=(n, width))).astype(np.float32)
    labelled = 3 * np.arange(n) + rng.integers(0, 3, n)
    table = {f"d{i}": vector for i, vector in enumerate(documents)} | {f"q{i}": v for i, v in enumerate(queries)}
    rows = [(f"q{i}", f"d{item}") for i, item in enumerate(labelled)]
    options, texts = {}, {}
    if reviewed:
        options = {"reviewer": lambda pairs: pairs.items // 3 == pairs.anchors, "review": 60}
        texts = {"texts": ([f"q{i}" for i in range(n)], [f"d{i}" for i in range(len(documents))])}
    expected = ns.mine(queries, documents, labelled, k, **options, **texts)
    assert reviewed or isinstance(expected.judge, Posterior)
    assert expected.dropped["suspicious"].sum() > n / 10
    found = mined(rows, table, [f"d{i}" for i in range(len(documents))], num_negatives=k, judge="auto", **options)
    negatives = [int(text[1:]) for text in found["negative"]]
    assert negatives == expected.ids.ravel().tolist()


def test_a_judge_that_needs_no_number():
    """Two groups of texts: the line is drawn below the positives, and what else is above it is suspected."""
    rng = np.random.default_rng(0)
    table, rows = {}, []
    for i in range(40):
        centre = rng.standard_normal(16)
        for name in (f"q{i}", f"p{i}", f"same{i}"):
            table[name] = centre + 0.1 * rng.standard_normal(16)
        rows.append((f"q{i}", f"p{i}"))
    corpus = [f"same{i}" for i in range(40)]
    plain = mined(rows, table, corpus, num_negatives=1)["negative"]
    judged = mined(rows, table, corpus, num_negatives=1, judge="auto")["negative"]
    own = [f"same{i}" for i in range(40)]
    assert plain == own  # all false
    assert np.mean([one == other for one, other in zip(judged, own, strict=True)]) <= 0.1
