"""The judge of a job on disk: fitted once, saved with a checksum, the same for all parts and after a stop."""

import numpy as np
import pytest
from job_world import Families, Stop, in_parts, stopped

from naysay.errors import NaysayError
from naysay.jobs import prepare as job_prepare
from naysay.mining import mine


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return Families(tmp_path_factory.mktemp("families"), n=240, others=900)


def without_command(rule):
    """A rule ends with the command of a review, which Python and the command line write in different ways."""
    return rule.partition(" A review would settle it")[0]


@pytest.fixture
def whole(world):
    """The output of the whole job, and what it said."""
    said = world.run("whole.jsonl")
    return (world.folder / "whole.jsonl").read_bytes(), said


def test_it_is_fitted_once(world, whole, monkeypatch):
    stopped(world, monkeypatch, 2, rows=50)

    def again(*_, **__):
        pytest.fail("fitted again")

    monkeypatch.setattr(job_prepare, "fit_posterior", again)
    in_parts(monkeypatch, 33)
    said = world.run(resume=True)
    assert (world.folder / "out.jsonl").read_bytes() == whole[0]
    assert (said.rule, said.false_negatives) == (whole[1].rule, whole[1].false_negatives)


def test_stopped_before_it_was_saved(world, whole, monkeypatch):
    def stop(*_):
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(job_prepare, "fit_posterior", stop)
        in_parts(patched, 40)
        with pytest.raises(Stop):
            world.run()
    world.run(resume=world.job().exists())
    assert (world.folder / "out.jsonl").read_bytes() == whole[0]


def test_another_share_is_another_job(world, monkeypatch):
    stopped(world, monkeypatch, 1, rows=50)
    with pytest.raises(NaysayError, match=r"--false-share"):
        world.run(resume=True, false_share=0.2)
    said = world.run(fresh=True, false_share=0.2)
    assert "for a target of 20 %" in said.rule
    assert 0.05 < said.false_negatives.estimate <= 0.2
    mined = mine(world.queries, world.corpus, world.labelled, 5, false_share=0.2)
    assert world.ids(world.folder / "out.jsonl") == mined.ids.tolist()


IVF = {"approximate": "ivf", "min_recall": 0.3}


@pytest.mark.parametrize("given", [{}, {"k": "auto"}, {"rank_range": "2-60"}, {"select": "random"}, IVF])
def test_other_options_give_what_mine_gives(world, given):
    python = {"rank_range": (2, 60)} if "rank_range" in given else dict(given)
    k = python.pop("k", 5)
    if "approximate" in given:
        pytest.importorskip("faiss")
    said = world.run(**given)
    mined = mine(world.queries, world.corpus, world.labelled, k, **python)
    assert without_command(said.rule) == without_command(mined.rule)
    found = world.ids(world.folder / "out.jsonl")
    assert [item for row in found for item in row] == mined.ids[mined.mask].tolist()
    assert said.negatives == np.count_nonzero(mined.mask)


def test_the_memory_of_a_fit_is_in_the_budget(world):
    with pytest.raises(NaysayError, match=r"`--budget` must be at least \d+MB for this job, got 100MB"):
        world.run(budget="100MB")
    world.run(budget="165MB")
