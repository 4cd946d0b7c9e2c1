"""The command `naysay audit`: read, encode if asked to, audit, print, write; whether the set passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rich.console import Console

from naysay.auditing._show import print_audit
from naysay.auditing._text import percent
from naysay.auditing._training_set import TrainingSet, training_set
from naysay.auditing.audit import audit
from naysay.auditing.report import report_audit
from naysay.auditing.result import Audit
from naysay.checks import raise_invalid, with_option_names
from naysay.files import check_apart, check_page, check_target

_SAME = ("format", "metric", "temperature", "alpha", "top", "seed")
_VECTORS = ("query_vectors", "corpus_vectors", "query_ids", "corpus_ids")
_OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in (*_SAME, *_VECTORS)},
    "path": "negatives",
    "name": "--model",
    "model": "--model",
    "folder": "--encoded",
}
_SHARE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*")


@with_option_names("audit", _OPTIONS)
def audit_command(
    negatives: Path,
    *,
    format: str = "",
    query_vectors: Path | None = None,
    corpus_vectors: Path | None = None,
    query_ids: Path | None = None,
    corpus_ids: Path | None = None,
    model: str = "",
    query_prompt: str = "",
    corpus_prompt: str = "",
    encoded: Path | None = None,
    metric: str = "cosine",
    temperature: float = 0.05,
    alpha: float = 0.05,
    fail_above: str | None = None,
    top: int = 10,
    seed: int = 0,
    json: Path | None = None,
    report: Path | None = None,
    console: Console | None = None,
) -> bool:
    """Audit a training file; print, write, and say whether it passes.

    It fails if `fail_above` is given ("2%", or 0.02) and the *estimate* of the share of false negatives is above. Not
    the lower end of the interval: that counts only what is proven, and would not move if somebody mined without a
    judge. The estimate is an upper one, so a gate by it errs by stopping; set it by a run that you have looked at.
    Where nothing can be estimated, a gate is refused: it would pass whatever the set is like.
    """
    out = console or Console()
    limit = _limit(fail_above)
    if json is not None:
        check_target("--json", json)
    if report is not None:
        check_page("--report", report)
    read = {"negatives": negatives, "--query-vectors": query_vectors, "--corpus-vectors": corpus_vectors}
    read |= {"--query-ids": query_ids, "--corpus-ids": corpus_ids}
    check_apart({"--json": json, "--report": report}, read)
    vectors: dict[str, Any] = {"query_vectors": query_vectors, "corpus_vectors": corpus_vectors}
    vectors |= {"query_ids": query_ids, "corpus_ids": corpus_ids}
    if model and any(given is not None for given in vectors.values()):
        raise_invalid("--model", "left out where vectors are given", repr(model))
    for parameter, given in (
        ("--query-prompt", query_prompt),
        ("--corpus-prompt", corpus_prompt),
        ("--encoded", encoded),
    ):
        if given and not model:
            raise_invalid(parameter, "left out without --model", repr(str(given)))
    errors = Console(stderr=True)
    with errors.status("reading", spinner="line") as status:
        found = training_set(negatives, format or None)
        if model:
            status.stop()
            prompts = (query_prompt or None, corpus_prompt or None)
            folder = encoded or negatives.parent / f".{negatives.name}.vectors"
            vectors = _encoded(found, model, folder, prompts)
            status.start()
        status.update("auditing")
        result = audit(found, **vectors, metric=metric, temperature=temperature, alpha=alpha, top=top, seed=seed)
    print_audit(result, out)
    if json is not None:
        result.write(json)
    if report is not None:
        report_audit(result, report, files={name: file for name, file in vectors.items() if file is not None})
    return _passes(result, limit, out)


def _limit(text: str | None) -> float | None:
    """The largest share that passes, from "2%" or "0.02"; None without one. An empty text is no limit to pass by."""
    if text is None:
        return None
    read = _SHARE.fullmatch(text)
    share = float(read[1]) / (100 if read[2] else 1) if read else -1.0
    if not 0 <= share <= 1:
        raise_invalid("--fail-above", "a share from 0 to 1, or 0% to 100%", repr(text))
    return share


def _passes(result: Audit, limit: float | None, out: Console) -> bool:
    """Whether the estimate is within the limit; a sentence either way."""
    if limit is None:
        return True
    passes = result.false.estimate <= limit
    verb = "passes" if passes else "fails"
    known = result.false.estimate > result.false.low or result.false.high < 1
    if passes and not known:
        rule = "left out where only proven false negatives can be counted"
        raise_invalid("--fail-above", rule, percent(limit), "Pass vectors, a model, or a set with scores.")
    only = "" if known else " Only what is proven could be counted."
    out.print()
    out.print(f"It {verb}: {percent(result.false.estimate)} against --fail-above {percent(limit)}.{only}")
    return passes


def _encoded(found: TrainingSet, model: str, folder: Path, prompts: tuple[str | None, str | None]) -> dict[str, Any]:
    """Vectors of all texts of the set, in its order, by a model; kept in `folder` for the next time."""
    from naysay.encode.model import load_model
    from naysay.encode.texts import encode_texts

    texts = (found.query_texts, found.corpus_texts)
    for name, given in zip(("queries", "documents"), texts, strict=True):
        if given is None:
            raise_invalid("--model", f"left out where the set has no texts of {name}", repr(model), "Pass vectors.")
    encoder = load_model(model)
    paths = [
        encode_texts(encoder, each, folder=folder, prompt=prompt) for each, prompt in zip(texts, prompts, strict=True)
    ]
    return {"query_vectors": paths[0], "corpus_vectors": paths[1]}
