"""The paper's figures: the data in the specification is what the library computes, and the picture shows it."""

import json
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from naysay.errors import MissingExtraError, NaysayError
from naysay.plots import as_picture, check_picture
from naysay.quantity import adaptive, auc, effectiveness, estimate, mean_effectiveness, shares, simulated
from naysay.quantity._figures import SEPARATIONS, STAGES, WEIGHTS, figure, shown_k


def of_simulated(mu, **options):
    return estimate(auc(mu), auc(simulated(mu)), **options)


def panels(spec):
    """All panels, in the order of the page, whatever rows and columns hold them."""
    for part in ("vconcat", "hconcat"):
        if part in spec:
            return [panel for inner in spec[part] for panel in panels(inner)]
    return [spec]


def rows_of(panel, layer=0):
    return (panel["layer"][layer] if "layer" in panel else panel)["data"]["values"]


def texts(svg):
    """What stands in the picture, as text."""
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


ONE = of_simulated(1.0)
TWO = [("first", of_simulated(1.0, k_max=500)), ("second", of_simulated(3.0, k_max=500))]


@pytest.fixture(scope="module")
def of_one():
    return figure([("a run", ONE)])


@pytest.fixture(scope="module")
def of_two():
    return figure(TWO)


def test_there_is_a_panel_for_each_figure_and_run(of_one, of_two):
    assert len(panels(of_one)) == 2 + len(STAGES) + 2
    assert len(panels(of_two)) == 2 * (2 + len(STAGES)) + 2


def test_k_is_spread_over_a_log_axis():
    places = shown_k(1000, 733)
    assert places == sorted(set(places))
    assert {1, 2, 3, 733, 1000} <= set(places)
    assert len(places) < 200
    assert shown_k(1) == [1]
    assert shown_k(3, 2) == [1, 2, 3]


@pytest.mark.parametrize("weight", [0.9, 0.88])
def test_v_over_k_for_several_weights(weight):
    found = of_simulated(2.4, weight=weight)
    panel = panels(figure([("a run", found)]))[0]
    rows = rows_of(panel)
    assert {row["weight"] for row in rows} == {f"{w:g}" for w in (*WEIGHTS, weight)}
    for w in (*WEIGHTS, weight):
        direct = mean_effectiveness(found.separation, found.reached, weight=w)
        of_weight = [row for row in rows if row["weight"] == f"{w:g}"]
        assert [row["k"] for row in of_weight] == shown_k(1000, found.k)
        assert [row["v"] for row in of_weight] == [direct[row["k"] - 1] for row in of_weight]
    assert rows_of(panel, layer=1) == [{"k": found.k}]
    assert panel["layer"][1]["mark"]["strokeDash"]
    scale = panel["layer"][0]["encoding"]["color"]["scale"]
    assert scale["range"][scale["domain"].index(f"{weight:g}")] == "#D55E00"
    assert len(set(scale["range"])) == len(scale["domain"])


def test_the_schedule(of_one):
    rows = rows_of(panels(of_one)[1])
    k_at = adaptive(ONE.k, 1001)
    assert [row["k"] for row in rows] == [k_at(1000 * row["share"]) for row in rows]
    assert max(row["k"] for row in rows) == pytest.approx(ONE.k, rel=0.01)
    assert (rows[0]["share"], rows[-1]["share"], rows[-1]["k"]) == (0, 1, 1)


def test_stages_of_training(of_one):
    drawn = panels(of_one)[2:7]
    for stage, panel in zip(STAGES, drawn, strict=True):
        assert panel["title"]["text"] == f"mu' / mu = {stage:g}"
        for line in ("v", "good", "bad", "easy"):
            rows = [row for row in rows_of(panel) if row["line"] == line]
            ks, values = [row["k"] for row in rows], [row["value"] for row in rows]
            reached = stage * ONE.separation
            v = effectiveness(ks, ONE.separation, reached)
            direct = v if line == "v" else getattr(shares(ks, ONE.separation, reached), line)
            assert values == pytest.approx(direct, abs=1e-14)
    assert [panel["encoding"]["color"]["legend"] is not None for panel in drawn] == [False] * 4 + [True]


def test_best_k_over_separations(of_two):
    panel = panels(of_two)[-2]
    assert rows_of(panel) == [{"separation": mu, "k": of_simulated(mu, k_max=10_000).k} for mu in SEPARATIONS]
    assert [(row["separation"], row["k"]) for row in rows_of(panel, layer=1)] == [
        (pytest.approx(1), 4),
        (pytest.approx(3), 61),
    ]
    assert panel["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"


def test_runs_at_the_edge_are_left_out_of_fig_5():
    rows = rows_of(panels(figure([("a run", of_simulated(1.0, weight=0.7))]))[-2])
    assert len(rows) < len(SEPARATIONS)
    assert max(row["k"] for row in rows) < 10_000


def test_auc_over_separation(of_two):
    panel = panels(of_two)[-1]
    rows = rows_of(panel)
    assert [row["AUC"] for row in rows] == [auc(row["separation"]) for row in rows]
    assert [row["AUC"] for row in rows_of(panel, layer=1)] == [auc(found.separation) for _, found in TWO]


def test_labels_without_noise_have_no_stages():
    spec = figure([("a run", estimate(1.0, [0.6, 0.9]))])
    assert len(panels(spec)) == 4
    assert rows_of(panels(spec)[-1], layer=1) == []
    assert "Infinity" not in json.dumps(spec)


def test_the_svg_shows_titles_axes_and_names_as_they_are():
    name = """<b>&"it's" $x [0] {"signal": "1+1"} \u00e9.csv"""
    svg = as_picture(figure([(name, ONE)]), ".svg")
    shown = texts(svg)
    assert f"k = 4 for {name}" in shown
    for text in ("k, negatives per positive", "v", "weight", "0.95", "good", "best k", "AUC", "mu' / mu = 0.25"):
        assert text in shown
    assert "dashed: the best k, 4, at weight 0.9" in shown
    assert b"<b>" not in svg
    assert b"NaN" not in svg


def test_it_is_drawn_without_a_warning_for_one_k():
    svg = as_picture(figure([("a run", of_simulated(1.0, k_max=1))]), ".svg")
    assert b"NaN" not in svg


def test_a_png_is_large_enough_to_read(of_one):
    png = as_picture(of_one, ".png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = np.frombuffer(png[16:24], ">u4").tolist()
    assert width > 1500
    assert height > 1500


@pytest.mark.parametrize("name", ["plot.html", "plot", "plot.pdf", "svg"])
def test_other_pictures_are_rejected(tmp_path, name):
    with pytest.raises(NaysayError) as caught:
        check_picture("plot", tmp_path / name)
    got = repr(str(tmp_path / name))
    assert str(caught.value) == f"`plot` must be a file that ends in .svg or .png, got {got}."


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError) as caught:
        check_picture("plot", tmp_path / "plot.SVG")
    message = "vl-convert-python is not installed. Run in a clone of naysay: pip install '.[report]'"
    assert str(caught.value) == message
