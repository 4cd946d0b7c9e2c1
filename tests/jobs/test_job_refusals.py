"""What the command refuses names what was typed: options, never the parameters of Python's functions."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main
from job_world import World

from naysay.checks import raise_invalid
from naysay.cli import app
from naysay.errors import NaysayError
from naysay.jobs._option_names import _OPTIONS, in_options


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
        ({"select": "softmax"}, "`--temperature` must be given for 'softmax', got nothing."),
        ({"temperature": 0.1}, "`--temperature` must be left out for 'top', got 0.1. It is for 'softmax'."),
        ({"select": "mmr", "balance": 2.0}, "`--balance` must be a number from 0 to 1, got 2.0."),
        ({"quotas": "search=4"}, "`--quotas` must be 5 in all, like -k, got 4."),
        ({"quotas": "search=4", "k": "auto"}, "`--quotas` must be left out with -k auto, got {'search': 4}."),
        ({"k": "auto", "judge": "none"}, "`-k` must be a number without a judge, got 'auto'. Without a line there is"),
        ({"judge": "calibrated:0.001"}, "`--judge` must be fitted, or 999 anchors must have a positive, got 24 that"),
        ({"depth": 0}, "`--depth` must be at least 1, got 0."),
        ({"ranks": "9-3"}, "`--ranks` must be at least 9, got 3."),
        ({"floor": float("nan")}, "`--floor` must be one number, got nan."),
        ({"most": 0}, "`--most` must be at least 1, got 0."),
        ({"on_short": "fill"}, "`--on-short` must be one of 'pad', 'drop', 'relax', 'random', 'raise', got 'fill'."),
        ({"threads": 0}, "`--threads` must be at least 1, got 0."),
        ({"approximate": "ifv"}, "`--approximate` must be one of 'auto', 'ivf', 'hnsw', got 'ifv'. Did you mean 'iv"),
        ({"min_recall": 90}, "`--min-recall` must be from 0 to 1, got 90."),
        (
            {"approximate": "ivf"},
            "`--corpus-vectors` must be of at least 1000 rows for an index, got 60. Leave --approximate out: the "
            "search is exact, and faster there.",
        ),
        ({"format": "tripplet"}, "`--format` must be one of "),
        ({"format": "n-tuple", "short": "rise"}, "`--short` must be one of 'drop', 'raise', got 'rise'. Did you mean"),
        ({"short": "drop"}, "`--short` must be left out for the format 'ids', which holds rows of any length, got "),
        ({"corpus_path": "c"}, "`--corpus-path` must be left out for the format 'ids', got 'c'."),
        ({"format": "nemo"}, "`--corpus-path` must be given for the format 'nemo', got nothing. It is the folder of"),
        ({"tag": "t"}, "`--tag` must be left out for the format 'ids', got 't'."),
        ({"format": "trec", "tag": "a b"}, "`--tag` must be without white space, and not empty, got 'a b' at row 0."),
        (
            {"format": "trec", "corpus": "spaced.parquet", "pairs": "some.parquet"},
            "`--corpus` must be without white space, and not empty, got 'd 3' at row 3.",
        ),
        ({"output": "nowhere/out.jsonl"}, "`--output` must be in an existing folder, got '"),
        (
            {"same_ids": True},
            "`--same-ids` must be left out unless queries are the 60 corpus rows, got 24 queries. For some of the "
            "items pass them by --ignore.",
        ),
        ({"query_vectors": "narrow.npy"}, "`--query-vectors` must be of width WIDTH, like --corpus-vectors, got 3."),
        ({"query_vectors": "huge.npy", "metric": "l2"}, "`--query-vectors` must be of norms whose scores float32 "),
        (
            {"model": "nowhere", "query_vectors": None, "corpus_vectors": None},
            "`--model` must be a folder on this machine, got 'nowhere'. Pass the folder that it was saved in.",
        ),
    ],
    ids=str,
)
def test_options_are_named(world, given, message):
    with pytest.raises(NaysayError) as refusal:
        world.run(**given)
    assert str(refusal.value).startswith(f"mine: {message}".replace("WIDTH", str(world.corpus.shape[1])))
    assert not [path for path in world.folder.iterdir() if path.name.startswith(".")]  # nothing is in the way


def test_what_is_named_is_an_option_of_the_command():
    command = typer.main.get_command(app).commands["mine"]
    there = {option for parameter in command.params for option in parameter.opts}
    assert there >= {option for names in _OPTIONS.values() for option in names.values()}


def test_other_refusals_stay_as_they_are():
    for owner, parameter in (("mine", "--queries"), ("Index.tune", "wanted"), ("nobody", "metric")):
        with (
            pytest.raises(NaysayError, match=rf"^{owner}: `{parameter}` must be None for good, got None\.$"),
            in_options(),
        ):
            raise_invalid(parameter, "None for good", None)
    with pytest.raises(NaysayError, match=r"^metric$"), in_options():
        raise NaysayError("metric")
