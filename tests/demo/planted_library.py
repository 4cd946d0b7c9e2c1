"""A small library that was never written: long docstrings of common and of rare words, some of them shared."""

import numpy as np

from naysay.demo.library import Library


def planted_library():
    """120 docstrings of six sentences of 9 words; each word is one of 900, the first 30 more frequent.

    Every tenth is shared by two names.
    """
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnoprstuvw"))
    words = sorted({"".join(rng.choice(letters, rng.integers(3, 8))) for _ in range(1000)})[:900]
    often = np.where(np.arange(900) < 30, 20.0, 1.0)
    names, documents = [], []
    for number in range(120):
        text = " ".join(f"{' '.join(rng.choice(words, 9, p=often / often.sum()))}." for _ in range(6))
        for owner in ("Base", "Derived") if number % 10 == 0 else ("Base",):
            names.append(f"m{number % 5}.{owner}.f{number}")
            documents.append(text)
    return Library(tuple(names), tuple(documents))
