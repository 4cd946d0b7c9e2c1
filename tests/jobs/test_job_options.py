"""Options of a job: read from text, recorded, named in errors, and all of them on the command line."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from naysay._options import command_fields, flag_of, option_names
from naysay.cli import _mine_command, _parameters
from naysay.detectors import MaxScore
from naysay.errors import NaysayError
from naysay.jobs.command import mine_files
from naysay.jobs.options import JobOptions, read_size, recorded
from naysay.mining.options import MiningOptions

FILES = {"pairs": Path("p.csv"), "output": Path("o.jsonl"), "query_vectors": Path("q.npy"), "corpus_vectors": Path("c")}


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("500mb", 5 * 10**8), ("1.5GiB", 3 << 29), ("12", 12), ("3 K", 3000)]
)
def test_sizes(text, size):
    assert read_size("--budget", text) == size


def test_the_command_has_every_option_with_its_default_and_help():
    shown = {name: parameter for parameter in _mine_command().params for name in parameter.opts}
    for one in command_fields(JobOptions, MiningOptions):
        parameter = shown[flag_of(one)]
        assert one.metadata["help"] == getattr(parameter, "help", one.metadata["help"])
        assert not one.metadata["help"].startswith("Of ")
        if not one.metadata["read"]:
            assert parameter.default == (None if one.name in ("pairs", "output") else one.default)
    n_flags = sum(max(1, len(one.metadata["flags"])) for one in command_fields(JobOptions, MiningOptions))
    assert len(shown.keys() - {"--print-config"}) == n_flags


def test_options_without_help_are_for_python_only():
    hidden = {one.name for one in fields(MiningOptions) if not one.metadata["help"]}
    assert hidden == {"ignore", "same_ids", "reviewed", "duplicates", "sources", "rescore", "rescore_budget",
                      "rescore_batch", "groups", "engine", "budget", "device", "reviewer", "review", "answers",
                      "texts"}  # fmt: skip
    assert not hidden & {parameter.name for parameter in _parameters(MiningOptions, "")}


def test_errors_name_options_that_exist():
    names = option_names(MiningOptions, JobOptions)
    shown = {name for parameter in _mine_command().params for name in parameter.opts}
    assert {*names.values()} <= shown
    assert (names["queries"], names["corpus"], names["k"]) == ("--query-vectors", "--corpus-vectors", "-k")
    assert (names["max_k"], names["query_texts"], "path" in names) == ("--max-k", "--queries", False)


def test_the_record_holds_what_decides_the_result():
    job, mining = JobOptions(**FILES, budget=5, resume=True), MiningOptions(rank_range=(3, 9), threads=2)
    record = recorded({"pairs": {"bytes": 1}}, job, mining)
    assert record["pairs"] == {"bytes": 1}
    assert (record["--rank-range"], record["--judge"], record["-k"]) == ((3, 9), "auto", 8)
    for left_out in ("--budget", "--resume", "--threads", "--output", "--report", "--job", "--encoded"):
        assert left_out not in record
    assert recorded({}, JobOptions(**FILES, fresh=True, budget=7), MiningOptions(rank_range=(3, 9))) == recorded(
        {}, job, mining
    )
    assert job.read_files == {"pairs": FILES["pairs"], "--query-vectors": FILES["query_vectors"],
                              "--corpus-vectors": FILES["corpus_vectors"]}  # fmt: skip


def test_every_option_of_mine_has_an_argument_in_the_docstring():
    documented = inspect.getdoc(MiningOptions)
    assert [one.name for one in fields(MiningOptions) if f"\n    {one.name}: " not in documented] == []
    assert all(one.metadata["help"] for one in fields(JobOptions))


def test_mine_files_takes_the_options_of_the_command():
    with pytest.raises(
        TypeError, match=r"^mine_files\(\) got an unexpected keyword argument 'max_kk'\. Did you mean 'max_k'"
    ):
        mine_files("p.csv", output="o.jsonl", max_kk=3)
    with pytest.raises(NaysayError, match=r"^mine: `--judge` must be text, such as 'margin:0\.05', got MaxScore"):
        mine_files(**FILES, judge=MaxScore(0.5))
    with pytest.raises(NaysayError, match=r"^mine: `-k` must be a whole number, or auto, got 'few'\.$"):
        mine_files(**FILES, k="few")
