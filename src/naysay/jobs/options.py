"""The options of a job beside those of mining, each declared once: see `naysay.mining.options`."""

# ruff: noqa: RUF009 (an option is declared by a call, like dataclasses.field)

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from naysay._options import command_fields, flag_of, option
from naysay.checks import check_device, check_one_of, check_whole, raise_invalid, shown
from naysay.places import Place, Url, check_table

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_LARGEST, _DIGITS = 1 << 63, 9
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def read_size(flag: str, text: str) -> int:
    """2GB, 500MB, 1.5GiB or a number of bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise_invalid(flag, "a size such as 2GB or 500MB", shown(text))
    size = float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()]
    if size >= _LARGEST:
        raise_invalid(flag, "a size below 8EiB", shown(text))
    return int(size)


def read_count(flag: str, text: str) -> int | str:
    """A whole number of at least 1, or auto."""
    if text == "auto":
        return text
    if not text.isdecimal():
        raise_invalid(flag, "a whole number, or auto", shown(text))
    if len(text) > _DIGITS:
        raise_invalid(flag, f"a number of at most {_DIGITS} digits, or auto", shown(text))
    return check_whole(flag, int(text), 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobOptions:
    """All options of `naysay mine` that are not options of `mine`. A path that is recorded is a file that is read.

    Without `corpus` the documents are the distinct positives, without `queries` the anchors are those of the pairs,
    both in the order of their first appearance. In Python, `model` may be an object with encode(). `budget` is the
    memory above what the program takes for itself. Known pairs (some 40 bytes each, some 120 while they are read) and
    k results for each anchor (12 bytes each, mapped) come on top; so do the index of words of "bm25", the texts that a
    model encodes, the ids of documents while they are read, and with `max_per_item` some 1.5 kB for each anchor.
    """

    pairs: Place = option(
        help="Anchors and their positives: .parquet, .jsonl, .csv or .tsv. Or a .toml file of options.",
        flags=("pairs",),
    )
    output: Place = option(
        help="Training file to write: .parquet, .jsonl or .hf.",
        flags=("--output", "-o"),
        record=False,
    )
    k: int | str = option(8, "Negatives for each anchor, or auto.", flags=("-k",), read=read_count, written="8")
    corpus: Place | None = option(
        None, "Documents: a file with ids, texts or both.", parameters=("corpus_ids", "corpus_texts")
    )
    queries: Place | None = option(
        None, "Anchors: a file with ids, texts or both.", parameters=("query_ids", "query_texts")
    )
    model: Any = option(
        None, "Encoder that makes the vectors: its folder, or its name on the Hugging Face hub.", parameters=("name",)
    )
    query_vectors: Place | None = option(
        None, "Vectors of the anchors: .npy, .safetensors or .parquet.", parameters=("queries",)
    )
    corpus_vectors: Place | None = option(
        None, "Vectors of the documents: .npy, .safetensors or .parquet.", parameters=("corpus",)
    )
    encoded: Place | None = option(
        None, "Folder in which --model keeps its vectors.", record=False, parameters=("folder",)
    )
    query_prompt: str = option("", "Prompt that --model puts before each anchor.")
    corpus_prompt: str = option("", "Prompt that --model puts before each document.")
    batch_size: int = option(32, "Texts that --model encodes at a time.")
    device: str | None = option(None, "Device of --model and of the search: cpu, cuda, ...")
    ignore: Place | None = option(None, "Pairs that are neither positive nor negative.")
    same_ids: bool = option(False, "Anchors are documents, by id or, without ids, by row: none is its own negative.")
    source: list[str] | None = option(None, "Another source of candidates: bm25. Can be repeated.")
    reviewer: str | None = option(
        None, "Who answers about --review pairs: cross-encoder:PATH, encoder:PATH, llm:MODEL@URL or people."
    )
    answers: Path | None = option(
        None, "File that keeps the answers of --reviewer. Default: beside the output.", record=False
    )
    review: int | None = option(
        None, "Pairs that --reviewer is asked about; without it, pairs that are written for a person to label."
    )
    review_file: Place | None = option(
        None, "File of --review: .csv, .jsonl or .parquet. Default: beside the output.", record=False
    )
    reviewed: Place | None = option(None, "File of --review, filled in: corrects the estimate of false negatives.")
    report: Place | None = option(None, "Write an .html file that shows what was mined, and why.", record=False)
    card: Place | None = option(
        None, "Write a dataset card, README.md, that the Hugging Face Hub shows beside the output.", record=False
    )
    record: Place | None = option(
        None, "Write all options and checksums as a .toml file that `naysay mine` runs again.", record=False
    )
    budget: int = option(
        2_000_000_000,
        "Memory for the job: 2GB, 500MB. The result does not depend on it.",
        read=read_size,
        written="2GB",
        record=False,
    )
    engine: str = option("local", "Where the search runs: local, or ray. The result is the same.", record=False)
    address: str | None = option(
        None, "Ray to connect to: auto, HOST:PORT or ray://HOST:PORT. Default: one on this machine.", record=False
    )
    workers: int | None = option(None, "Workers of Ray, --threads each. Default: all processors.", record=False)
    resume: bool = option(False, "Continue a job that was stopped.", record=False)
    fresh: bool = option(False, "Delete an unfinished job and start again.", record=False)
    job: Place | None = option(None, "Folder of the job. Default: beside the output.", record=False)
    format: str = option("triplet", "Format of the training file: triplet, n-tuple, flagembedding, ids, trec, ...")
    with_scores: bool = option(False, "Write scores, too.")
    short: str | None = option(None, "Anchors with fewer than k negatives, in formats of fixed width: drop or raise.")
    corpus_path: str | None = option(None, "Path of the corpus; only with --format nemo.")
    tag: str | None = option(None, "Name of the run; only with --format trec.")
    anchor_column: str = option("", "Column of the pairs with anchors.")
    positive_column: str = option("", "Column of the pairs with positives.")
    query_id_column: str = option("", "Column of --queries with ids.")
    query_text_column: str = option("", "Column of --queries with texts.")
    id_column: str = option("", "Column of --corpus with ids.")
    text_column: str = option("", "Column of --corpus with texts.")
    title_column: str = option("", "Column of --corpus with titles, put before the texts.")

    def __post_init__(self) -> None:
        """Check what does not need data."""
        for source in self.source or ():
            check_one_of("source", source, ("bm25",))
        if self.resume and self.fresh:
            raise_invalid("fresh", "left out with `resume`", "both")
        given = [name for name in ("query_vectors", "corpus_vectors") if getattr(self, name) is not None]
        if self.model is not None and given:
            raise_invalid("model", "left out where vectors are given", "both", "Pass one of them.")
        if self.model is None and len(given) < 2:
            if isinstance(self.pairs, Path):
                check_table("pairs", self.pairs)  # a wrong name of the file is the first mistake to mend
            got = f"`{given[0]}` alone" if given else "none"
            raise_invalid("model", "given, or `query_vectors` and `corpus_vectors`", got)
        check_one_of("engine", self.engine, ("local", "ray"))
        self._check_used()
        if self.workers is not None:
            check_whole("workers", self.workers, 1)
        check_whole("batch_size", self.batch_size, 1)
        if self.review is not None:
            check_whole("review", self.review, 1)
        if self.device is not None:
            check_device("device", self.device)
        for name, suffix in (("card", ".md"), ("record", ".toml")):
            place = getattr(self, name)
            if place is not None and place.suffix.lower() != suffix:
                raise_invalid(name, f"a file that ends in {suffix}", shown(str(place)))
        for name in ("encoded", "job"):
            if isinstance(getattr(self, name), Url):
                raise_invalid(name, "a folder on this machine", shown(getattr(self, name)))

    def _check_used(self) -> None:
        """Raise for an option that has no effect."""
        on_ray = self.engine == "ray"
        with_model = self.model is not None
        with_reviewer = self.reviewer is not None
        with_queries = self.queries is not None
        for name, is_used, rule in (
            ("address", on_ray, "left out without the engine 'ray'"),
            ("workers", on_ray, "left out without the engine 'ray'"),
            ("review_file", self.review is not None, "left out without `review`"),
            ("answers", with_reviewer, "left out without `reviewer`"),
            ("reviewed", not with_reviewer, "left out with `reviewer`"),
            ("query_prompt", with_model, "left out without `model`"),
            ("corpus_prompt", with_model, "left out without `model`"),
            ("encoded", with_model, "left out without `model`"),
            ("query_id_column", with_queries, "left out without `queries`"),
            ("query_text_column", with_queries, "left out without `queries`"),
        ):
            value = getattr(self, name)
            if value not in (None, "") and not is_used:
                raise_invalid(name, rule, shown(value if isinstance(value, int) else str(value)))

    @property
    def read_files(self) -> dict[str, Place]:
        """{option: file} of all files that decide the result."""
        values = {flag_of(one): getattr(self, one.name) for one in command_fields(self) if one.metadata["record"]}
        return {flag: path for flag, path in values.items() if isinstance(path, Path | Url)}

    @property
    def review_path(self) -> Place | None:
        """Where the pairs to review are written at the end, None if none are."""
        if self.review is None or self.reviewer is not None:
            return None
        return self.review_file or self.output.with_name(f"{Path(self.output.name).stem}.review.csv")

    @property
    def targets(self) -> dict[str, Place]:
        """{option: file} of all that is written at the end, if there is something to write."""
        found_file = self.output.with_name(f"{Path(self.output.name).stem}.found.jsonl")
        written = {"--output": self.output, "--report": self.report, "--review-file": self.review_path}
        written |= {"--card": self.card, "--record": self.record}
        if self.reviewer is not None:
            written["--found-file"] = found_file
        return {option: path for option, path in written.items() if path is not None}

    @property
    def vector_files(self) -> dict[str, Path]:
        """{"query" and "corpus": file}, once URLs are copied; empty where a model makes the vectors."""
        both = {"query": self.query_vectors, "corpus": self.corpus_vectors}
        return {name: path for name, path in both.items() if isinstance(path, Path)}


def recorded(contents: Mapping[str, Any], *options: Any) -> dict[str, Any]:
    """{option: value} of all that decides the result of a job; of files, what `contents` has of them."""
    values = {flag_of(one): getattr(each, one.name) for each in options for one in command_fields(each)
              if one.metadata["record"]}  # fmt: skip
    plain = (str, int, float, list, tuple, dict, type(None))
    texts = {flag: value if isinstance(value, plain) else type(value).__name__ for flag, value in values.items()}
    return texts | dict(contents)
