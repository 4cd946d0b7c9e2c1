"""The catalogue: nothing listed can go untested, and every name leads somewhere."""

import pytest

import naysay as ns
from naysay import catalog
from naysay.errors import NaysayError

EXAMPLES = {
    name: example
    for method in catalog.methods()
    for name, example in [(method.name, method.example), *((alias.name, alias.example) for alias in method.aliases)]
}
# Names that the review's static rows go by.
REVIEW = ("word2vec", "DeepWalk", "LINE", "node2vec", "BPR", "LightGCN", "TransE", "DistMult", "RUBER", "USR")


def run(example):
    names = {}
    exec(compile(example, "example", "exec"), names)
    return names


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs_and_its_sampler_conforms(name):
    names = run(EXAMPLES[name])
    negatives, known = names["negatives"], names["known"]
    assert (negatives.ids >= 0).any()
    ns.check_sampler(names["sampler"], known, k=min(4, max(1, negatives.shape[1])))


@pytest.mark.parametrize("name", REVIEW)
def test_the_reviews_names_are_aliases_with_an_example_of_their_own(name):
    method, alias = catalog.find(name)
    assert alias is not None
    assert alias.name == name
    assert alias.example != method.example


def test_examples_differ():
    assert len(set(EXAMPLES.values())) == len(EXAMPLES)


def test_no_name_stands_for_two_rows():
    names = [
        name.casefold() for row in (*catalog.methods(), *catalog.losses(), *catalog.detectors()) for name in row.names
    ]
    assert len(names) == len(set(names))


def test_parts_name_what_the_package_has():
    for method in catalog.methods():
        sampler = method.parts.split("(")[0]
        assert hasattr(ns.samplers, sampler) or hasattr(ns.detectors, sampler), method.parts


@pytest.mark.parametrize("method", catalog.methods(), ids=lambda method: method.name)
def test_rows_say_everything(method):
    for field in ("summary", "formula", "parts", "paper", "cost", "example"):
        assert getattr(method, field).strip()
    assert method.kind in ("static", "hard", "mixed", "adversarial", "auxiliary", "in-batch")
    assert method.pool in ("global", "local", "mini-batch", "hop", "memory")


def test_find_ignores_case_and_knows_other_names():
    assert catalog.find("UNIFORM")[0].name == "uniform"
    assert catalog.find("rns") == (catalog.find("uniform")[0], None)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(
        NaysayError, match=r"must be a name of the catalogue, got 'wrd2vec'\. Did you mean 'word2vec'\? `nay"
    ):
        catalog.find("wrd2vec")


def test_a_sampler_that_ignores_what_is_known_would_be_found():
    names = run(EXAMPLES["uniform"])
    empty = ns.Positives.from_pairs([], [], n_anchors=50, n_items=200)
    with pytest.raises(ns.testing.PromiseBroken, match="exclusion"):
        ns.check_sampler(ns.samplers.Static(ns.pools.Everything(empty)), names["known"])
