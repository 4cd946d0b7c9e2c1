"""A language model as a reviewer, against a server on this machine that answers, fails, stalls and lies."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from grading_server import MODEL, Grader, serving

import naysay as ns
from naysay.detectors import LLM, AnswerFile, ByReviewer, Pairs
from naysay.detectors.reviewer import ask

pytest.importorskip("openai")
KEY = "sk-secret-0123456789"
FAST = {"backoff": 0.01, "most_wait": 0.05, "timeout": 30.0}
IMPATIENT = FAST | {"timeout": 3.0}  # of a server that stalls


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def pairs_of(n):
    ids = np.arange(n)
    return Pairs(ids, ids, [f"query {row}" for row in ids], [f"document {row}" for row in ids])


def grades_of(n):
    return {f"document {row}": row % 4 for row in range(n)}


def test_grades_are_answers_and_every_pair_is_asked_about_once():
    grader = Grader(grades_of(12))
    with serving(grader) as url:
        llm = LLM(MODEL, url, price=(1.0, 2.0), **FAST)
        answers = llm.review(pairs_of(12))
    np.testing.assert_allclose(answers, np.arange(12) % 4 / 3)
    assert set(grader.asked.values()) == {1}
    assert (llm.usage.pairs, llm.usage.requests, llm.usage.unparsed, llm.usage.failed) == (12, 12, 0, 0)
    assert llm.usage.answer_tokens == 12 < llm.usage.prompt_tokens


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Grade: 2", 2 / 3),
        ("**3**", 1.0),
        ("<think>is it 1 or 2?</think> 0", 0.0),
        ("2 or 3", None),
        ("10", None),
        ("2.5", None),
        ("yes", None),
        ("", None),
    ],
)
def test_a_reply_is_read_or_counted_never_guessed(reply, answer):
    with serving(Grader({"document 0": reply})) as url:
        llm = LLM(MODEL, url, **FAST)
        found = llm.review(pairs_of(1))[0]
    assert llm.usage.unparsed == (answer is None)
    assert np.isnan(found) if answer is None else found == pytest.approx(answer)


@pytest.mark.parametrize("failure", [429, 500, 503, "stall", "dies"])
def test_a_failure_that_passes_is_tried_again(failure):
    grader = Grader(grades_of(4), plan={"document 2": [failure]})
    with serving(grader) as url:
        llm = LLM(MODEL, url, **(IMPATIENT if failure == "stall" else FAST))
        np.testing.assert_allclose(llm.review(pairs_of(4)), np.arange(4) / 3)
    assert grader.asked == {f"document {row}": 2 if row == 2 else 1 for row in range(4)}
    assert set(grader.answered.values()) == {1}  # none was paid for twice
    assert llm.usage.failed == 0


def test_a_failure_that_stays_leaves_one_pair_unanswered_and_garbage_is_paid_for_once():
    grader = Grader(grades_of(4), plan={"document 1": [500] * 9, "document 3": ["garbage"] * 9})
    with serving(grader) as url:
        llm = LLM(MODEL, url, retries=2, **FAST)
        answers = llm.review(pairs_of(4))
    np.testing.assert_array_equal(np.isnan(answers), [False, True, False, True])
    assert (grader.asked["document 1"], grader.asked["document 3"]) == (3, 1)
    assert (llm.usage.failed, llm.usage.unparsed) == (1, 1)


def test_a_server_that_only_fails_ends_the_review():
    grader = Grader(grades_of(40), plan={f"document {row}": [500] * 9 for row in range(40)})
    with serving(grader) as url, pytest.raises(ns.NaysayError) as caught:
        LLM(MODEL, url, retries=1, in_flight=1, **FAST).review(pairs_of(40))
    assert caught.value.parameter == "reviewer"
    assert len(grader.asked) < 10


def test_pairs_and_tokens_have_a_budget_that_is_never_passed():
    grader = Grader(grades_of(30))
    with serving(grader) as url:
        few = LLM(MODEL, url, most_pairs=7, **FAST)
        assert np.count_nonzero(~np.isnan(few.review(pairs_of(30)))) == 7
        assert sum(grader.asked.values()) == 7
        assert few.usage.unaffordable == 23
        grader.asked.clear()
        cheap = LLM(MODEL, url, most_tokens=3000, **FAST)
        answered = np.count_nonzero(~np.isnan(cheap.review(pairs_of(30))))
        assert 0 < answered == sum(grader.asked.values()) < 30
        assert cheap.usage.tokens <= 3000
        alone = LLM(MODEL, url, most_tokens=3000, in_flight=1, **FAST)
        one_by_one = np.count_nonzero(~np.isnan(alone.review(pairs_of(30))))
        assert abs(answered - one_by_one) <= 1  # requests in flight take nothing from the budget of others
        assert np.isnan(LLM(MODEL, url, most_tokens=0, **FAST).review(pairs_of(2))).all()


def test_requests_in_flight_and_per_minute_are_limited():
    grader = Grader(grades_of(12), wait=0.02)
    with serving(grader) as url:
        LLM(MODEL, url, in_flight=3, **FAST).review(pairs_of(12))
        assert 1 <= grader.busiest <= 3
        start = time.monotonic()
        LLM(MODEL, url, per_minute=1200, **FAST).review(pairs_of(5))
    assert time.monotonic() - start >= 4 * 60 / 1200


def test_an_own_prompt_is_another_reviewer(tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("{document}|{query}|{unknown}")
    llm = LLM(MODEL, "http://localhost:9/v1", prompt=prompt)
    assert llm.name != LLM(MODEL, "http://localhost:9/v1").name
    with serving(Grader(grades_of(1))) as url:
        assert LLM(MODEL, url, prompt=prompt, **FAST).review(pairs_of(1))[0] == 0


# ---- what is kept ----


def test_no_pair_is_paid_for_twice_also_by_another_run(tmp_path):
    grader = Grader(grades_of(6) | {"document 4": "no idea"})
    with serving(grader) as url:
        for n in (4, 6):
            file = AnswerFile(tmp_path / "answers.jsonl")
            answers = ask(LLM(MODEL, url, **FAST), pairs_of(n), file)
        detector = ByReviewer(
            LLM(MODEL, url, **FAST),
            queries=[f"query {row}" for row in range(6)],
            documents=[f"document {row}" for row in range(6)],
            answers=tmp_path / "answers.jsonl",
        )
        suspicion = detector.suspicion(ns.Query(np.arange(6)), ns.Negatives(np.arange(6)[:, None]))
    np.testing.assert_allclose(answers, [0, 1 / 3, 2 / 3, 1, np.nan, 1 / 3])
    np.testing.assert_allclose(suspicion[:, 0], np.nan_to_num(answers))
    assert set(grader.answered.values()) == {1}


PROGRAM = """
import sys
import numpy as np
from naysay.detectors import LLM, AnswerFile, Pairs
from naysay.detectors.reviewer import ask
ids = np.arange(40)
pairs = Pairs(ids, ids, [f"query {row}" for row in ids], [f"document {row}" for row in ids])
print(ask(LLM("grader", sys.argv[1], in_flight=2), pairs, AnswerFile(sys.argv[2])).tolist())
"""


def test_a_killed_review_goes_on(tmp_path):
    grader = Grader(grades_of(40), wait=0.03)
    file = tmp_path / "answers.jsonl"
    with serving(grader) as url:
        words = [sys.executable, "-c", PROGRAM, url, str(file)]
        first = subprocess.Popen(words, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not file.exists() or file.read_text().count("\n") < 10):
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.wait()
        kept = file.read_text().count("\n")
        assert 10 <= kept < 40
        paid_before = dict(grader.answered)
        file.write_text(file.read_text() + '{"query": "half a li')
        second = subprocess.run(words, env=os.environ, capture_output=True, text=True, timeout=60, check=True)
    np.testing.assert_allclose(json.loads(second.stdout), np.arange(40) % 4 / 3)
    again = [name for name, count in grader.answered.items() if count > 1]
    assert len(again) <= 2  # those in flight when it was killed, whose answers never arrived
    assert sum(paid_before.values()) <= kept + 2
    assert KEY not in file.read_text() + second.stdout + second.stderr


# ---- errors ----


def test_the_key_is_in_no_message_file_or_log(tmp_path, caplog, monkeypatch):
    """The server repeats the key in its errors."""
    grader = Grader(grades_of(3), key="another", plan={"document 1": [500]})
    file = AnswerFile(tmp_path / "answers.jsonl")
    with caplog.at_level(logging.DEBUG), serving(grader) as url:
        llm = LLM(MODEL, url, **FAST)
        for call in (llm.check, lambda: ask(llm, pairs_of(3), file)):
            with pytest.raises(ns.NaysayError) as caught:
                call()
            assert caught.value.parameter == "reviewer"
            assert "OPENAI_API_KEY" in str(caught.value)
            assert caught.value.__suppress_context__
            assert KEY not in f"{caught.value!r} {caught.value}"
        assert sum(grader.asked.values()) == 0
        monkeypatch.setenv("OPENAI_API_KEY", "another")
        ask(llm, pairs_of(3), file)
    texts = [caplog.text, repr(llm), llm.name, *(path.read_text() for path in Path(tmp_path).iterdir())]
    assert not any(KEY in text or "another" in text for text in texts)


def test_no_server_and_a_wrong_model_are_one_sentence():
    with serving(Grader({})) as url:
        LLM(MODEL, url, **FAST).check()
        wrong = LLM("graderr", url, **FAST)
        for call in (wrong.check, lambda: wrong.review(pairs_of(1))):
            with pytest.raises(ns.NaysayError, match="graderr") as caught:
                call()
            assert caught.value.parameter == "reviewer"
    gone = LLM(MODEL, url, retries=0, in_flight=1, **FAST)
    for call in (gone.check, lambda: gone.review(pairs_of(8))):
        with pytest.raises(ns.NaysayError, match="server") as caught:
            call()
        assert caught.value.parameter == "reviewer"


def test_a_key_that_no_header_can_hold_is_not_repeated(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "schlüssel")
    with pytest.raises(ns.NaysayError) as caught:
        LLM(MODEL, "http://localhost:9/v1").review(pairs_of(1))
    assert "schl" not in str(caught.value)
