"""Progress where there is no terminal: plain lines from time to time, with how much is done and how long is left."""

import re
import time

import numpy as np

import naysay as ns


class Slow:
    """A model that takes seconds for each block of texts."""

    cache_key = "slow"

    def encode(self, texts, **_):
        time.sleep(1.5)
        return np.ones((len(texts), 2))


def test_a_long_encoding_is_not_silent(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("naysay._console.FIRST_LINE", 2.0)
    texts = [f"text {place}" for place in range(5000)]
    ns.encode.encode_texts(Slow(), texts, folder=tmp_path / "shown")
    said = capfd.readouterr()
    assert said.out == ""
    first = said.err.splitlines()[0]
    done, left = re.fullmatch(r".*: ([\d,]+) of 5,000, \d+ s so far, about (\d+) s left", first).groups()
    assert 0 < int(done.replace(",", "")) < 5000
    assert 1 <= int(left) <= 30
    assert "\x1b" not in said.err


def test_nothing_is_shown_where_it_was_not_asked_for(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("naysay._console.FIRST_LINE", 2.0)
    texts = [f"text {place}" for place in range(3000)]
    ns.encode.encode_texts(Slow(), texts, folder=tmp_path, show=False)
    assert capfd.readouterr() == ("", "")
