"""A job that is refused because anchors are short: what is done is gone on with, or makes room for another."""

import pytest
from job_world import Encoder, World, in_parts, lines

from naysay.errors import NaysayError
from naysay.jobs import _parts as job_run

GIVEN = {"judge": "max_score:0.62", "depth": 20, "k": "3"}  # the judge leaves the anchors 4, 5 and 14 short
RULE = (
    "mine: `--on-short` must be other than 'raise' unless each anchor has its k negatives, got 0 of 3 for anchor 4 "
    "(2 such in its part). Run again with another --on-short, which continues from here; or with a smaller -k or "
    "a larger --depth."
)


@pytest.fixture
def world(tmp_path, monkeypatch):
    in_parts(monkeypatch, 2)
    return World(tmp_path, n=24, items=60)


@pytest.fixture
def mined(monkeypatch):
    """Where the parts begin that are mined."""
    own, starts = job_run.write_part, []
    monkeypatch.setattr(job_run, "write_part", lambda folder, part: (starts.append(part.start), own(folder, part)))
    return starts


def refusal(world, **given):
    with pytest.raises(NaysayError) as error:
        world.run(**GIVEN | given)
    return str(error.value)


def same(world, **given):
    """Whether the output is that of a job that was never refused."""
    world.run("whole.jsonl", **GIVEN | given)
    return (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("on_short", ["pad", "drop", "relax", "random"])
def test_another_policy_goes_on_from_there(world, mined, on_short):
    assert refusal(world, on_short="raise") == RULE
    assert mined == [0, 2]
    assert refusal(world, on_short="raise") == RULE  # a job that can only fail again says the same again
    assert mined == [0, 2]
    done = world.run(**GIVEN, on_short=on_short)
    assert mined == list(range(0, 24, 2))
    assert not world.job().exists()
    assert same(world, on_short=on_short)
    found = [len(row["negatives"]) for row in lines(world.folder / "out.jsonl")]
    expected = [{4: 0, 5: 2, 14: 0}.get(row, 3) for row in range(24)]
    if on_short == "pad":
        assert found == expected
        assert (done.short, done.missing) == (3, 7)


def test_other_options_start_anew(world, mined):
    refusal(world, on_short="raise")
    world.run(**GIVEN | {"k": "2", "judge": "max_score:0.7"}, on_short="raise")
    assert mined == [0, 2, *range(0, 24, 2)]
    assert same(world, k="2", judge="max_score:0.7")


def test_resume_asks_for_the_same_job(world):
    refusal(world, on_short="raise")
    message = refusal(world, on_short="pad", k="2", resume=True)
    assert "`--resume` must be given for the same job, got another -k (3 before, 2 now). Undo" in message
    world.run(**GIVEN, on_short="pad", resume=True)
    assert same(world)


def test_it_is_an_unfinished_job_once_it_went_on(world, monkeypatch):
    refusal(world, on_short="raise")
    own = job_run.write_part

    def write(folder, part):
        if part.start == 8:
            raise KeyboardInterrupt
        own(folder, part)

    with monkeypatch.context() as patched:
        patched.setattr(job_run, "write_part", write)
        with pytest.raises(KeyboardInterrupt):
            world.run(**GIVEN, on_short="pad")
    assert "`--output` must be one without an unfinished job" in refusal(world, on_short="pad")
    message = refusal(world, on_short="drop", resume=True)  # parts with anchors that are short are done by now
    assert "got another --on-short ('pad' before, 'drop' now)" in message
    world.run(**GIVEN, resume=True)
    assert same(world)


def test_what_was_stopped_under_raise_goes_on_without_it(world, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(job_run, "write_part", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            world.run(**GIVEN, on_short="raise")
    assert "unfinished job" in refusal(world, on_short="pad")  # nobody refused it, so nobody may take it over
    world.run(**GIVEN, on_short="relax", resume=True)
    assert same(world, on_short="relax")


def test_rows_that_are_short_in_the_file(world, mined):
    given = {"format": "n-tuple", "with_scores": False}
    message = (
        "mine: `--short` must be 'drop' unless each anchor has 3 negatives, got 0 at row 4 (3 such rows). Run again "
    )
    assert refusal(world, short="raise", **given) == message + "with --short drop, which continues from here."
    assert mined == list(range(0, 24, 2))
    world.run(**GIVEN, short="drop", **given)
    assert mined == list(range(0, 24, 2))  # all that was left was to write
    assert same(world, **given, short="drop")


def test_vectors_of_a_model_stay_where_a_job_starts_anew(world):
    model = Encoder()
    given = {"model": model, "query_vectors": None, "corpus_vectors": None, "judge": "max_score:0.1"}
    assert "`--on-short` must be other" in refusal(world, **given, on_short="raise")
    before = model.seen
    assert before
    world.run(**GIVEN | given | {"k": "2"})
    assert model.seen == before
    assert same(world, **given, k="2")
    assert not world.job().exists()
