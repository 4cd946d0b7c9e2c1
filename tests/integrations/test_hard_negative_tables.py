"""Results of mine_hard_negatives: fingerprints, and the statistics that are printed."""

import pytest
from stand_in_models import Encoder, on_a_circle, random_table

from naysay.integrations import _hard_negative_tables as hard_negative_tables
from naysay.integrations.sentence_transformers import mine_hard_negatives


def test_a_fingerprint_is_of_the_contents():
    table = random_table(["q0", "q1", "d0", "d1"], 0)
    rows = {"q": ["q0", "q1"], "d": ["d0", "d1"]}
    options = {"verbose": False, "num_negatives": 1}
    one, again, other, named = (
        hard_negative_tables.fingerprint(mine_hard_negatives(columns, Encoder(table), **given))
        for columns, given in (
            (rows, options),
            (rows, options),
            ({"q": ["q1", "q0"], "d": ["d1", "d0"]}, options),
            ({"q": ["q0", "q1"], "e": ["d0", "d1"]}, options),
        )
    )
    assert one == again
    assert len({one, other, named}) == 3
    assert len(one) == 16


def test_statistics(capsys):
    table = on_a_circle(q=0, p=20, r=90, s=80, **{"10": 10, "30": 30, "60": 60, "85": 85})
    columns = {"q": ["q", "r"], "p": ["p", "s"]}
    options = {"absolute_margin": 0.0, "min_score": 0.3, "num_negatives": 2}
    mine_hard_negatives(columns, Encoder(table), corpus=["10", "30", "60", "85"], **options)
    assert capsys.readouterr().out == (
        "2 anchors with 1.000 positives on average, in 2 rows; 6 documents. Ranks 1 to 21 are considered.\n"
        "             Positive       Negative     Difference\n"
        "Count               2              4\n"
        "Mean           0.9623         0.6830         0.2792\n"
        "Std            0.0226         0.1830         0.1844\n"
        "Min            0.9397         0.5000         0.0737\n"
        "25%            0.9510         0.5000         0.1075\n"
        "Median         0.9623         0.6830         0.2792\n"
        "75%            0.9735         0.8660         0.4510\n"
        "Max            0.9848         0.8660         0.4848\n"
        "Skipped 2 of 10 candidates (20.00%): absolute_margin of 0.0.\n"
        "Skipped 3 of 10 candidates (30.00%): min_score of 0.3.\n"
    )


@pytest.mark.parametrize(
    ("options", "short", "missing", "advice"),
    [
        ({}, "2 of 2 anchors (100.00%)", 2, "There are no more documents."),
        ({"max_score": 0.5}, "2 of 2 anchors (100.00%)", 3, "Looser bounds would find more."),
        ({"max_score": 0.5, "range_max": 3}, "2 of 2 anchors (100.00%)", 3, "Looser bounds would find more."),
        (
            {"max_score": 0.5, "range_max": 1, "num_negatives": 1},
            "1 of 2 anchors (50.00%)",
            1,
            "A larger range_max or looser bounds would find more.",
        ),
    ],
)
def test_a_shortage_is_counted(capsys, options, short, missing, advice):
    table = on_a_circle(q=0, p=20, r=90, s=80, e=85)
    mine_hard_negatives({"q": ["q", "r"], "p": ["p", "s"]}, Encoder(table), corpus=["e"], **options)
    last = capsys.readouterr().out.splitlines()[-1]
    wanted = options.get("num_negatives", 3)
    assert last == f"{short} have fewer than {wanted} negatives; {missing} are missing. {advice}"
