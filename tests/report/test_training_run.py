"""`naysay report`: the log of a run as one page; text is escaped, and a damaged file is one sentence."""

import json

import numpy as np
import pytest

import naysay as ns
from naysay.cli import main

HEADER = '{"naysay": "run", "format": 1}\n'


def logged(path, steps=30):
    monitor = ns.difficulty.Monitor(path, histograms=10)
    rng = np.random.default_rng(0)
    for step in range(steps):
        negatives = ns.Negatives(
            rng.integers(0, 60, (8, 4)), suspicion=rng.random((8, 4)), dropped={"exhausted": 1, "too <b>hard</b>": 2}
        )
        scores = rng.normal(-step, 1, (8, 4))
        monitor.observe(ns.Query(np.arange(8), step=step), negatives, scores, positive_scores=np.zeros(8))
    return path


def test_the_log_of_refreshes_has_its_own_chart_and_advice(tmp_path):
    log, lines = tmp_path / "run.jsonl", [{"score/negatives": 0.4}, {"drift": 0.75, "random": 0.25}, {"failed": 1.0}]
    log.write_text(HEADER + "".join(line(10 * step, scalars) for step, scalars in enumerate([*lines, lines[2]])))
    page = ns.report.report_run(log, tmp_path / "run.html").read_text()
    assert "Refreshed negatives over the steps: drift goes from 0.75 to 0.75; random goes from 0.25 to 0.25." in page
    assert "A refresh failed 2 times, first at step 20: the negatives stayed as they were." in page


def line(step=0, scalars=None, **more):
    return json.dumps({"step": step, "scalars": {"repeats": 0.5} if scalars is None else scalars, **more}) + "\n"


def test_the_command_writes_one_page_beside_the_log(tmp_path, capsys):
    log = logged(tmp_path / "run.jsonl")
    main_exit(["report", str(log)])
    page = (tmp_path / "run.html").read_text()
    assert capsys.readouterr().out == f"Wrote {tmp_path / 'run.html'}.\n"
    for title in ("Negatives above their positive", "False negatives", "Gradient by difficulty", "Repeats", "Left out"):
        assert title in page
    assert "30 slots could not be filled" in page
    assert "Distribution of score/negatives" in page
    assert "http://" not in page.partition('<script type="application/json"')[0]
    main_exit(["report", str(log), "-o", str(tmp_path / "other.html"), "--title", "<i>mine</i>"])
    assert "&lt;i&gt;mine" in (tmp_path / "other.html").read_text()


def main_exit(arguments):
    """Run a command that ends well."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, None)


def test_text_of_the_log_is_text(tmp_path):
    page = ns.report.report_run(logged(tmp_path / "run.jsonl"), tmp_path / "run.html").read_text()
    assert "too <b>hard</b>" not in page
    assert "too &lt;b&gt;hard&lt;/b&gt;" in page
    nasty = tmp_path / "nasty.jsonl"
    nasty.write_text(HEADER + line(scalars={"dropped/</script><script>alert(1)</script>": 1.0}))
    page = ns.report.report_run(nasty, tmp_path / "nasty.html").read_text()
    assert "<script>alert(1)" not in page


def test_the_numbers_are_those_of_the_log(tmp_path):
    run = ns.report.read_run(logged(tmp_path / "run.jsonl"))
    lines = [json.loads(one) for one in (tmp_path / "run.jsonl").read_text().splitlines()[1:]]
    for name, values in run.scalars.items():
        assert [one["scalars"].get(name) for one in lines] == [None if np.isnan(one) else one for one in values]
    assert [step for step, _, _ in run.histograms["score/negatives"]] == [0, 10, 20]


def test_the_later_line_of_a_step_counts_and_a_half_line_is_left_out(tmp_path):
    log = tmp_path / "run.jsonl"
    log.write_text(HEADER + line(0) + line(1) + line(1, {"repeats": 0.75}) + '{"step": 2, "sc')
    run = ns.report.read_run(log)
    assert (run.steps.tolist(), run.scalars["repeats"].tolist()) == ([0, 1], [0.5, 0.75])
    assert run.notes == ("The last line was not complete, and is left out.",)


def test_a_long_run_fits(tmp_path):
    log = tmp_path / "run.jsonl"
    log.write_text(HEADER + "".join(line(step, {"repeats": step / 5000, "negatives": 4}) for step in range(5000)))
    page = ns.report.report_run(log, tmp_path / "run.html").read_text()
    assert page.count('"of":"repeats"') + page.count('"of": "repeats"') in (0, 200)  # 0 without the extra for charts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a log of difficulty.Monitor"),
        ("\x00\x01\n", "must be a log of difficulty.Monitor"),
        (line(), "must be a log of difficulty.Monitor"),
        (HEADER, "must be a log with at least one step"),
        (HEADER + "{\n" + line(), "must be an undamaged log, got no JSON in line 2 of"),
        (HEADER + line() + "[]\n", "must be an undamaged log, got no step in line 3 of"),
        (HEADER + line(step="a"), "must be an undamaged log, got no step number in line 2 of"),
        (HEADER + line(step=-1), "must be an undamaged log, got no step number in line 2 of"),
        (HEADER + line(scalars={"a": "b"}), "must be an undamaged log, got a measure that is no number"),
        (HEADER + '{"step": 1, "scalars": {"a": NaN}}\n', "got a measure that is no number"),
        (HEADER + line(histograms=3), "must be an undamaged log, got no histogram in line 2 of"),
        (HEADER + line(histograms={"a": {"counts": [1], "ends": [0]}}), "got no histogram in line 2 of"),
        (HEADER + "[" * 100_000 + "\n", "must be an undamaged log, got no JSON in line 2 of"),
    ],
)
def test_a_damaged_file_is_one_sentence_and_exit_2(tmp_path, capsys, text, message):
    log = tmp_path / "run.jsonl"
    log.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["report", str(log)])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("naysay: report: `RUN` ")
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "naysay: report: `RUN` must be"),
        (["run.jsonl", "-o", "run.txt"], "naysay: report: `--output` must be"),
    ],
)
def test_wrong_files_are_one_sentence(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.jsonl").write_text(HEADER + line())
    with pytest.raises(SystemExit) as ended:
        main(["report", *arguments])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(message)


HUGE_WHOLE = int("9" * 400)


@pytest.mark.parametrize("measure", ["score/negatives", "of no chart"])
@pytest.mark.parametrize("value", [HUGE_WHOLE, -1e308])
def test_a_measure_that_cannot_be_added_up_is_a_damaged_log(tmp_path, capsys, measure, value):
    log = tmp_path / "run.jsonl"
    log.write_text(HEADER + line(0, {measure: value}) + line(1, {measure: value}))
    with pytest.raises(SystemExit) as ended:
        main(["report", str(log)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ns.NaysayError) as error:
        ns.report.read_run(log)
    assert error.value.parameter == "path"


@pytest.mark.parametrize("ends", [[-1e308, 1e308], [1e308, 1.7e308], [0, HUGE_WHOLE]])
def test_a_histogram_of_huge_numbers_is_a_damaged_log(tmp_path, ends):
    log = tmp_path / "run.jsonl"
    log.write_text(HEADER + line(histograms={"suspicion": {"counts": [1], "ends": ends}}))
    with pytest.raises(ns.NaysayError) as error:
        ns.report.report_run(log)
    assert error.value.parameter == "path"


@pytest.mark.parametrize("word", [".", "folder.jsonl"])
def test_a_folder_is_not_a_log(tmp_path, monkeypatch, capsys, word):
    (tmp_path / "folder.jsonl").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["report", word])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("naysay: report: `RUN` ")
    assert said.count("\n") == 1
