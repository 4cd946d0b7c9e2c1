"""What the command refuses names what was typed: options, never the parameters of Python's functions."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import World

from naysay.checks import raise_invalid, with_option_names
from naysay.errors import NaysayError


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"), n=24, items=60)
    np.save(made.folder / "narrow.npy", made.queries[:, :3])
    np.save(made.folder / "huge.npy", made.queries.astype(np.float64) * 1e39)
    np.save(made.folder / "none.npy", made.corpus[:0])
    names = [f"d{' ' * (row == 3)}{row}" for row in range(60)]
    pq.write_table(pa.table({"id": names, "text": made.texts}), made.folder / "spaced.parquet")
    some = {"anchor": made.anchors, "positive": ["d1"] * 24}
    pq.write_table(pa.table(some), made.folder / "some.parquet")
    return made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "cosin"}, "`--metric` must be one of 'dot', 'cosine', 'l2', got 'cosin'. Did you mean 'cosine'?"),
        ({"select": "best"}, "`--select` must be one of 'top', 'random', 'softmax', 'spread', 'mmr', got 'best'."),
        ({"select": "groups"}, "`--select` must be one of 'top', 'random', 'softmax', 'spread', 'mmr', got 'groups'."),
        ({"select": "softmax"}, "`--temperature` must be given for 'softmax', got None."),
        ({"temperature": 0.1}, "`--temperature` must be left out for 'top', got 0.1. It is for 'softmax'."),
        ({"select": "mmr", "mmr_lambda": 2.0}, "`--mmr-lambda` must be a number at least 0 and at most 1, got 2.0."),
        ({"quotas": "search=4"}, "`--quotas` must be 5 in all, like `-k`, got 4."),
        ({"quotas": "search=4", "k": "auto"}, "`--quotas` must be left out where `-k` is auto, got {'search': 4}."),
        ({"k": "auto", "judge": "none"}, "`-k` must be a number without a judge, got 'auto'. Only a judge"),
        ({"judge": "calibrated:0.001"}, "`--judge` must be fitted, or 999 anchors must have a positive, got 24 that"),
        ({"false_share": 0.0}, "`--false-share` must be a number above 0 and below 1, got 0.0."),
        ({"false_share": 1.5}, "`--false-share` must be a number above 0 and below 1, got 1.5."),
        ({"depth": 0}, "`--depth` must be at least 1, got 0."),
        ({"rank_range": "9-3"}, "`--rank-range` must be at least 9, got 3."),
        ({"min_score": float("nan")}, "`--min-score` must be a number, got nan."),
        ({"max_k": 0}, "`--max-k` must be at least 1, got 0."),
        ({"on_short": "fill"}, "`--on-short` must be one of 'pad', 'drop', 'relax', 'random', 'raise', got 'fill'."),
        ({"threads": 0}, "`--threads` must be at least 1, got 0."),
        ({"approximate": "ifv"}, "`--approximate` must be one of 'auto', 'ivf', 'hnsw', got 'ifv'. Did you mean 'iv"),
        ({"min_recall": 90}, "`--min-recall` must be a number at least 0 and at most 1, got 90."),
        (
            {"approximate": "ivf"},
            "`--corpus-vectors` must be of at least 1000 rows for an index, got 60. Use an exact search: it is "
            "faster there.",
        ),
        ({"format": "tripplet"}, "`--format` must be one of "),
        ({"format": "n-tuple", "short": "rise"}, "`--short` must be one of 'drop', 'raise', got 'rise'. Did you mean"),
        ({"short": "drop"}, "`--short` must be left out for the format 'ids', which holds rows of any length, got "),
        ({"corpus_path": "c"}, "`--corpus-path` must be left out for the format 'ids', got 'c'."),
        ({"format": "nemo"}, "`--corpus-path` must be given for the format 'nemo', got None. It is the folder of"),
        ({"tag": "t"}, "`--tag` must be left out for the format 'ids', got 't'."),
        ({"format": "trec", "tag": "a b"}, "`--tag` must be without white space, and not empty, got 'a b' at row 0."),
        (
            {"format": "trec", "corpus": "spaced.parquet", "pairs": "some.parquet"},
            "`--corpus` must be without white space, and not empty, got 'd 3' at row 3.",
        ),
        ({"output": "nowhere/out.jsonl"}, "`--output` must be in an existing folder, got '"),
        (
            {"same_ids": True},
            "`--same-ids` must be left out unless anchors and documents share ids, or anchors are the 60 documents by "
            "row, got 24 anchors without the id of a document. Pass --queries and --corpus with ids.",
        ),
        ({"query_vectors": "narrow.npy"}, "`--query-vectors` must be of width WIDTH, like `--corpus-vectors`, got 3."),
        ({"query_vectors": "huge.npy", "metric": "l2"}, "`--query-vectors` must be of norms whose scores float32 "),
        (
            {"model": "./nowhere", "query_vectors": None, "corpus_vectors": None},
            "`--model` must be a folder on this machine, or a name on the hub, got './nowhere'.",
        ),
    ],
    ids=str,
)
def test_options_are_named(world, given, message):
    with pytest.raises(NaysayError) as refusal:
        world.run(**given)
    assert str(refusal.value).startswith(f"mine: {message}".replace("WIDTH", str(world.corpus.shape[1])))
    assert not [path for path in world.folder.iterdir() if path.name.startswith(".")]  # nothing is in the way


def test_errors_of_others_keep_their_words():
    with pytest.raises(NaysayError, match=r"^mine: metric$"), with_option_names("mine", {"metric": "--metric"}):
        raise NaysayError("metric")
    with (
        pytest.raises(NaysayError, match=r"^mine: `wanted` must be left out, like `--metric`, got 3\.$"),
        with_option_names("mine", {"metric": "--metric"}),
    ):
        raise_invalid("wanted", "left out, like `metric`", 3)
