"""The catalogue: every program runs and conforms, every row is complete, and every name leads to a row."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from catalog_programs import run
from review_names import REVIEW as REVIEW_NAMES
from review_names import TODAY

import naysay as ns
from naysay import catalog
from naysay.catalog import _names, _table
from naysay.errors import NaysayError
from naysay.pools import Everything
from naysay.testing import _frequencies

METHODS = catalog.methods()
ALIASES = [alias for method in METHODS for alias in method.aliases]
ROWS = (*METHODS, *catalog.losses(), *catalog.detectors())
PROGRAMS = {entry.program: entry for entry in (*ALIASES, *METHODS)}
FOLDER = Path(_table.__file__).parent / "examples"
# Names of the review's static rows.
REVIEW = ("word2vec", "DeepWalk", "LINE", "node2vec", "BPR", "LightGCN", "TransE", "DistMult", "RUBER", "USR")


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    """A quarter of the draws for log_q: tests/pools has all of them, in smaller worlds, where mistakes show."""
    monkeypatch.setattr(_frequencies, "_DRAWS", 500)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_runs_and_its_sampler_conforms(program):
    names = run(PROGRAMS[program].example, program)
    negatives, known = names["negatives"], names["known"]
    assert (negatives.ids >= 0).any()
    ns.check_sampler(names["sampler"], known, k=min(4, max(1, negatives.shape[1])))


# One draws no items, the other has a detector that drops what is a positive at any time.
NEVER_KNOWN = ("adversarial_bank", "judged")


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name not in NEVER_KNOWN])
def test_every_sampler_excludes_by_time_or_rejects_times(program, monkeypatch):
    """All pairs become known at time 1, so at time 0 nothing is excluded."""

    def timed(positives, *settings, **named):
        return Everything(positives, *settings, **named, times=(*positives.pairs(), np.ones(len(positives))))

    monkeypatch.setattr(ns.pools, "Everything", timed)
    names = run(PROGRAMS[program].example, program)
    query, known = dataclasses.replace(names["query"], times=np.zeros(len(names["query"]))), names["known"]
    try:
        drawn = [names["sampler"].sample(query, 4, rng=ns.rng_for(seed)).numpy().ids for seed in range(20)]
    except NaysayError as error:
        assert "`query.times` must be left out here" in str(error)  # noqa: PT017
        return
    ids = np.concatenate(drawn, axis=1)
    assert (known.contains(np.asarray(query.anchors), np.maximum(ids, 0), relation="any") & (ids >= 0)).any()


@pytest.mark.parametrize("alias", [alias for alias in ALIASES if alias.parts], ids=lambda alias: alias.name)
def test_the_settings_of_an_alias_make_a_sampler_that_conforms(alias):
    names = run(alias.example, alias.program)
    sampler = eval(alias.parts, {**vars(ns.samplers), **vars(ns.pools), "np": np, **names})
    assert (sampler.sample(names["query"], 2, rng=ns.rng_for(0)).ids >= 0).any()
    ns.check_sampler(sampler, names["known"], k=2)


def test_every_program_belongs_to_an_entry_and_is_short():
    programs = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
    assert set(programs) == {entry.program for entry in (*ROWS, *ALIASES, *catalog.others()) if entry.program}
    for name, text in programs.items():
        assert text.startswith('"""'), name
        assert len(text.splitlines()) <= 26, name


@pytest.mark.parametrize("other", [other for other in catalog.others() if other.program], ids=lambda one: one.name)
def test_the_program_of_a_name_that_is_no_row_runs(other):
    names = run(other.example, other.program)
    made = [names[name] for name in ("loss", "values", "value", "batches", "negatives") if name in names]
    tensors = [one for one in made if isinstance(one, torch.Tensor)]
    assert all(one.isfinite().all() for one in tensors)
    assert tensors or any(isinstance(one, np.ndarray | ns.Negatives) for one in made)


def test_programs_differ():
    programs = [path.read_text() for path in FOLDER.glob("*.py")]
    assert len(set(programs)) == len(programs)


@pytest.mark.parametrize("name", REVIEW)
def test_the_reviews_names_are_aliases(name):
    method, alias = catalog.find(name)
    assert alias is not None
    assert alias.name == name
    assert alias in method.aliases
    assert "sampler.sample(" in alias.example


def test_no_name_stands_for_two_rows():
    names = [name.casefold() for row in ROWS for name in row.names]
    assert len(names) == len(set(names))


def test_parts_name_what_the_package_has():
    for method in METHODS:
        assert hasattr(ns.samplers, method.parts.split("(")[0]), method.parts


@pytest.mark.parametrize("row", [*ROWS, *ALIASES], ids=lambda row: row.name)
def test_entries_are_complete(row):
    optional = {"also", "aliases", "without", "needs", "needs_log_q", "unchecked"} | (
        {"parts"} if isinstance(row, catalog.Alias) else set()
    )
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if field.name not in optional:
            assert value.strip() if isinstance(value, str) else value, field.name
    assert row.example
    sentences = (row.note,) if isinstance(row, catalog.Alias) else (row.summary, row.cost)
    for sentence in sentences:
        assert sentence.endswith("."), sentence


def test_kinds_and_pools_are_those_of_the_review():
    assert {method.kind for method in METHODS} <= {"static", "hard", "mixed", "adversarial", "auxiliary", "in-batch"}
    assert {method.pool for method in METHODS} <= {"global", "local", "mini-batch", "hop", "memory"}


def test_every_sampler_of_the_package_is_listed():
    public = {name for name in ns.samplers.__all__ if hasattr(getattr(ns.samplers, name), "sample")}
    text = "\n".join(method.parts for method in METHODS)
    assert {name for name in public if f"{name}(" not in text} == set()


def test_find_ignores_case_and_knows_other_names():
    assert catalog.find("UNIFORM")[0].name == "uniform"
    assert catalog.find("rns") == (catalog.find("uniform")[0], None)


def test_an_unknown_name_is_an_error_with_the_nearest_name():
    with pytest.raises(
        NaysayError, match=r"^find: `name` must be a name of the catalogue, got 'wrd2vec'\. Did you mean 'word2vec'\? `"
    ):
        catalog.find("wrd2vec")
    with pytest.raises(NaysayError, match=r"got '~~~~'\. `naysay methods` lists them all\.$"):
        catalog.find("~~~~")


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("Barlo", "'Barlow Twins'"),
        ("barlow-twin", "'Barlow Twins'"),
        ("Barlwo Twins", "'Barlow Twins'"),
        ("KBGNA", "'KBGAN'"),
        ("SamWalker+", "'SamWalker++'"),
        ("popularrity", "'popularity'"),
        ("distnce-wieghted", "'distance-weighted'"),
        ("SimC", "'SimCLR' or 'SimCSE' or 'SimCLR loss'"),
    ],
)
def test_a_begun_or_mistyped_name_gets_the_names_that_it_may_be(name, suggested):
    with pytest.raises(NaysayError) as caught:
        catalog.find(name)
    assert f"got '{name}'. Did you mean {suggested}? `naysay" in str(caught.value)


def test_every_long_name_of_the_review_is_suggested_for_a_slip():
    """A letter less, a letter twice, and two exchanged, in the middle of the name."""
    missed = []
    for name in (*REVIEW_NAMES, *TODAY):
        places = [place for place, letter in enumerate(name) if letter.isalnum()]
        at = places[len(places) // 2]
        slips = (name[:at] + name[at + 1 :], name[:at] + name[at:][0] + name[at:])
        slips += (name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :],)
        for slip in slips if len(places) >= 6 else ():
            if slip != name:
                with pytest.raises(NaysayError) as caught:
                    catalog.find(slip)
                said = _table._letters(str(caught.value).rpartition("Did you mean")[2])
                missed += [slip] if _table._letters(name) not in said else []
    assert missed == []


@pytest.mark.parametrize(
    "name",
    [
        *("CoCo", "AdSo", "SimX", "IRGA2N-x", "KGAT", "BERT", "TransD", "KBGAT", "LightGCL"),
        *("MoCo v3", "RocketQAv2", "transformer", "ConSERT", "Mix"),
    ],
)
def test_a_name_of_another_method_is_no_suggestion(name):
    with pytest.raises(NaysayError, match=rf"^find: `name` must be a name of the catalogue, got '{name}'\. `naysay"):
        catalog.find(name)


def answer(name):
    """The status of a name: that of a row, "runs", or that of another."""
    other = _names.find_other(name)
    return "runs" if other is None and catalog.find(name) else other.status


def test_every_name_of_the_review_has_an_answer():
    assert len(REVIEW_NAMES) == len(set(REVIEW_NAMES)) == 153
    statuses = Counter(answer(name) for name in REVIEW_NAMES)
    assert statuses == {"runs": 146, "partial": 2, "not a sampler": 5}
    assert all(answer(name) for name in TODAY)


def test_names_that_are_no_rows_are_complete_and_clash_with_none():
    names = [name.casefold() for row in (*ROWS, *catalog.others()) for name in row.names]
    assert len(names) == len(set(names))
    assert not set(_names.spellings()) & set(names)
    for spelling, name in _names.spellings().items():
        assert name in {*names, *(one.removeprefix("losses.") for one in names)}, spelling
    for other in catalog.others():
        assert other.status in ("runs", "partial", "not a sampler", "not here")
        assert other.note.endswith("."), other.name
        assert other.paper
        with pytest.raises(NaysayError, match="which is"):
            catalog.find(other.name)


def test_a_paper_that_was_not_checked_says_so():
    other = next(other for other in catalog.others() if other.name == "DPO")
    for row in (catalog.find("MixGCF")[0], other):
        assert row.cited == row.paper
        assert dataclasses.replace(row, unchecked=True).cited == f"{row.paper} (not checked)"


def test_an_unknown_or_missing_key_in_the_table_is_an_error():
    entry = {"name": "new", "paper": "", "summary": "", "formula": "", "cost": "", "kind": "", "parts": ""}
    assert _table._entry(catalog.Detector, entry).program == "new"
    with pytest.raises(TypeError, match="colour"):
        _table._entry(catalog.Detector, entry | {"colour": "red"})
    with pytest.raises(TypeError, match="formula"):
        _table._entry(catalog.Detector, {key: value for key, value in entry.items() if key != "formula"})


def test_a_sampler_that_ignores_what_is_known_would_be_found():
    names = run(catalog.find("uniform")[0].example)
    empty = ns.Positives.from_pairs([], [], n_anchors=50, n_items=200)
    with pytest.raises(ns.testing.PromiseBroken, match="exclusion"):
        ns.check_sampler(ns.samplers.Static(ns.pools.Everything(empty)), names["known"])
