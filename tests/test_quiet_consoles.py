"""A quiet console is quiet: neither standard output nor standard error gets a word."""

import numpy as np
import pytest
from rich.console import Console

import naysay as ns
from naysay._commands import HowmanyOptions, ThresholdOptions
from naysay.catalog._show import print_method, print_methods
from naysay.detectors._thresholds_command import thresholds
from naysay.jobs.command import mine_files
from naysay.quantity._command import howmany

QUIET = Console(quiet=True)


def mine(folder):
    world = ns.planted_world(30, 60, per_anchor=2, known_share=0.5)
    anchors, items = world.known.pairs()
    rows = (f'{{"anchor": {anchor}, "positive": {item}}}' for anchor, item in zip(anchors, items, strict=True))
    (folder / "pairs.jsonl").write_text("\n".join(rows))
    np.save(folder / "q.npy", world.anchor_vectors)
    np.save(folder / "c.npy", world.item_vectors)
    for _ in range(2):  # the second time there is a file to replace
        mine_files(
            folder / "pairs.jsonl",
            query_vectors=folder / "q.npy",
            corpus_vectors=folder / "c.npy",
            k=2,
            output=folder / "out.jsonl",
            format="ids",
            console=QUIET,
        )


def choose(folder):
    np.save(folder / "scores.npy", np.random.default_rng(0).normal(size=(50, 20)))
    thresholds(ThresholdOptions(scores=folder / "scores.npy"), console=QUIET)


@pytest.mark.parametrize(
    "call",
    [
        mine,
        choose,
        lambda folder: howmany(HowmanyOptions(separation=[1.5], k_max=50), console=QUIET),
        lambda folder: print_methods(QUIET),
        lambda folder: print_method("info_nce", QUIET),
    ],
    ids=["mine", "thresholds", "howmany", "methods", "method"],
)
def test_nothing_is_printed(call, tmp_path, capfd):
    call(tmp_path)
    assert capfd.readouterr() == ("", "")
