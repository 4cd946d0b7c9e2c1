"""A knowledge graph in three parts: given, read from tables of names, or split at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay import tables
from naysay.checks import public, raise_invalid
from naysay.files import as_path, check_file
from naysay.tasks._parts import PARTS, add_notes, check_parts, checksum, kept_of
from naysay.text import counted
from naysay.triples import Triples

_FILES = {"train": ("train",), "validation": ("valid", "validation", "dev"), "test": ("test",)}


@final
@public
@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Triples to train on, to validate with and to test on, over the same ids.

    Held-out triples with an entity or a relation that training never saw are left out, and a note counts them.

    Args:
        train: Triples to train on.
        validation: Triples that choose the learning rate and the best step.
        test: Triples that are measured once.
        notes: Sentences about the data.

    Raises:
        NaysayError: If a part is empty, also after leaving out.

    Examples:
        >>> import naysay as ns
        >>> parts = [ns.Triples([row], 3, 1) for row in ([0, 0, 1], [1, 0, 0])]
        >>> KnowledgeGraph(ns.Triples([[0, 0, 1], [1, 0, 2]], 3, 1), *parts)
        KnowledgeGraph(3 entities, 1 relation, train 2 triples, validation 1 triple, test 1 triple)
    """

    train: Triples
    validation: Triples
    test: Triples
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parts(self, Triples, "triple")
        seen = self.train.array
        for name in PARTS[1:]:
            given = getattr(self, name).array
            unseen = ~np.isin(given[:, [0, 2]], seen[:, [0, 2]]).all(axis=1) | ~np.isin(given[:, 1], seen[:, 1])
            reasons = {"entities or relations that training never saw": unseen}
            rule = "at least one triple whose entities and relation training has"
            kept, notes = kept_of(name, "triple", reasons, rule)
            sizes = self.train.n_entities, self.train.n_relations
            object.__setattr__(self, name, Triples(given[kept], *sizes))
            add_notes(self, *notes)

    def fingerprint(self) -> str:
        """A checksum of all triples, 16 digits."""
        return checksum(*(getattr(self, name).array for name in PARTS))

    def __repr__(self) -> str:
        entities = "1 entity" if self.train.n_entities == 1 else f"{self.train.n_entities:,} entities"
        parts = ", ".join(f"{name} {counted(len(getattr(self, name)), 'triple')}" for name in PARTS)
        return f"KnowledgeGraph({entities}, {counted(self.train.n_relations, 'relation')}, {parts})"


@public
def split_triples(triples: Any, n_entities: int, n_relations: int, *, seed: int = 0) -> KnowledgeGraph:
    """Hold out a tenth of the triples for validation and a tenth for the test, at random.

    Args:
        triples: (n, 3) ids of head, relation and tail. Repeated triples count once.
        n_entities: The number of entities.
        n_relations: The number of relations.
        seed: Of the choice.

    Raises:
        NaysayError: If there are fewer than ten triples.

    Examples:
        >>> split_triples([[a, 0, b] for a in range(6) for b in range(5)], 6, 1)
        KnowledgeGraph(6 entities, 1 relation, train 24 triples, validation 3 triples, test 3 triples)
    """
    known = Triples(triples, n_entities, n_relations)
    if len(known) < 10:
        raise_invalid("triples", "at least ten different triples, for a split", len(known))
    order, tenth = np.random.default_rng(seed).permutation(len(known)), len(known) // 10
    parts = np.split(known.array[order], [len(known) - 2 * tenth, len(known) - tenth])
    train, validation, test = (Triples(part, n_entities, n_relations) for part in parts)
    return KnowledgeGraph(train, validation, test)


@public
def read_triples(
    path: str | Path, *, validation: str | Path | None = None, test: str | Path | None = None, seed: int = 0
) -> KnowledgeGraph:
    r"""Read triples of names: text files of lines "head, relation, tail", separated by tabs, without a header.

    Args:
        path: A file; or a folder with train, valid and test, each .txt or .tsv, as FB15k-237 has them.
        validation: The triples for validation; if only `test` is given, a tenth of the training triples.
        test: The triples for the test; then `path` is those to train on.
        seed: Of the split, if the parts are not given.

    Raises:
        NaysayError: If a file is missing or not such a table, or there are too few triples.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "knows.tsv"
        ...     _ = file.write_text("".join(f"p{a}\tknows\tp{b}\n" for a in range(6) for b in range(5)))
        ...     read_triples(file)
        KnowledgeGraph(6 entities, 1 relation, train 24 triples, validation 3 triples, test 3 triples)
    """
    files = {"path": as_path("path", path)}
    if files["path"].is_dir():
        files = {part: _in_folder(files["path"], part) for part in PARTS}
    elif validation is not None and test is None:
        raise_invalid("test", "given along with `validation`", "nothing")
    else:
        given = {"validation": validation, "test": test}
        files |= {name: as_path(name, file) for name, file in given.items() if file is not None}
    rows = []
    for name, file in files.items():
        check_file(name, file)
        read = tables.read_lines(file, "\t", ("head", "relation", "tail"))
        rows.append(tables.columns(read, heads="head", relations="relation", tails="tail"))
    columns = [
        [part[name] for part in rows] for name in ("heads", "tails", "relations")
    ]  # heads and tails share their names
    entities, _ = tables.encode("path", _joined([*columns[0], *columns[1]]))
    relations, _ = tables.encode("path", _joined(columns[2]))
    heads, tails = np.split(entities, 2)
    triples: NDArray[Any] = np.stack([heads, relations, tails], axis=1)
    sizes = int(entities.max()) + 1, int(relations.max()) + 1
    if len(rows) == 1:
        return split_triples(triples, *sizes, seed=seed)
    ends = np.cumsum([len(part["heads"]) for part in rows])[:-1]
    train, *held = (Triples(part, *sizes) for part in np.split(triples, ends))
    if len(held) == 1:
        own = split_triples(train.array, *sizes, seed=seed)
        train, held = own.train.union(own.test), [own.validation, *held]
    return KnowledgeGraph(train, held[0], held[1])


def _in_folder(folder: Path, part: str) -> Path:
    """The file of a part."""
    names = [f"{stem}{ending}" for stem in _FILES[part] for ending in (".txt", ".tsv")]
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise_invalid("path", f"a folder with {' or '.join(names[:2])}", repr(str(folder)))
    return found


def _joined(columns: list[Any]) -> Any:
    whole = columns[0]
    for column in columns[1:]:
        whole = tables.joined(whole, column)
    return whole
