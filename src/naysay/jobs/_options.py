"""The options of `naysay mine` as a shell writes them, turned into what `mine` takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, check_whole, raise_invalid, shown
from naysay.detectors.absolute import Absolute
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.margin import Margin, ShareOfPositive
from naysay.errors import NaysayError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_STEPS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_JUDGES = ("auto", "none", "calibrated", "margin", "share", "absolute", "bands")
# judge(the lowest positive's score of each anchor) -> what `mine` takes
MakeJudge = Callable[[NDArray[np.float32]], Any]


def read_bytes(option: str, text: str) -> int:
    """2GB, 500MB, 1.5GiB or a number of bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise_invalid(option, "a size such as 2GB or 500MB", shown(text))
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _STEPS[found[2].lower()])


def read_count(option: str, text: str) -> int | str:
    """A whole number of at least 1, or auto."""
    if text == "auto":
        return text
    if not text.isdecimal():
        raise_invalid(option, "a whole number, or auto", shown(text))
    return check_whole(option, int(text), 1)


def read_ranks(option: str, text: str) -> tuple[int, int | None] | None:
    """10-100, or 10- for all from 10 on; nothing is None."""
    if not text:
        return None
    first, dash, last = text.partition("-")
    if not dash or not first.isdecimal() or not (last.isdecimal() or not last):
        raise_invalid(option, "two ranks such as 10-100, or 10-", shown(text))
    return int(first), int(last) if last else None


def read_quotas(option: str, text: str) -> dict[str, int] | None:
    """search=4,bm25=2; nothing is None."""
    if not text:
        return None
    quotas: dict[str, int] = {}
    for part in text.split(","):
        name, sign, count = part.strip().partition("=")
        if not sign or not count.isdecimal() or not name or name in quotas:
            raise_invalid(option, "sources and counts such as search=4,bm25=2", shown(text))
        quotas[name] = int(count)
    return quotas


def read_judge(option: str, text: str) -> MakeJudge:
    """auto, none, calibrated:ALPHA, margin:M, share:S, absolute:SCORE or bands:LOW,HIGH."""
    name, _, rest = text.partition(":")
    check_one_of(option, name, _JUDGES)
    wanted = {"auto": 0, "none": 0, "bands": 2}.get(name, 1)
    try:
        numbers = [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        numbers = [0.0] * 3
    if len(numbers) != wanted and not (name == "calibrated" and not rest):
        how = {0: f"{name} by itself", 1: f"{name} and a number, such as {name}:0.05", 2: "bands:LOW,HIGH"}[wanted]
        raise_invalid(option, how, shown(text))
    makers: dict[str, MakeJudge] = {
        "auto": lambda _: "auto",
        "none": lambda _: None,
        "calibrated": lambda _: Calibrated(*numbers),
        "margin": lambda lowest: Margin(numbers[0], lowest),
        "share": lambda lowest: ShareOfPositive(lowest, *numbers),
        "absolute": lambda _: Absolute(numbers[0]),
        "bands": lambda _: Bands(*numbers),
    }
    try:
        makers[name](np.ones(1, np.float32))
    except NaysayError as refusal:
        raise_invalid(option, "a judge with numbers that it can have", f"{shown(text)} ({refusal})")
    return makers[name]
