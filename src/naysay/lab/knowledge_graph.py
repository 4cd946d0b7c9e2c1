"""Knowledge graphs: triples in three parts; TransE, DistMult, ComplEx and RotatE, by filtered MRR and Hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from naysay._slots import corrupted_triples
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_whole, public, raise_invalid
from naysay.lab._data import (
    PARTS,
    File,
    Ids,
    check_parts,
    checksum,
    ids_of,
    part_files,
    random_tenths,
    rows_kept,
    sizes_of_parts,
    text_lines,
)
from naysay.lab._task import GENERATOR_RATE, HELD_OUT, Device, Learner, Task, row_products
from naysay.lab.ranking import ranking
from naysay.positives import Positives
from naysay.samplers import in_blocks
from naysay.text import counted
from naysay.triples import Triples
from naysay.types import Negatives, Query

MARGIN = {"transe": 9.0, "rotate": 9.0, "distmult": 0.0, "complex": 0.0}  # of self_adversarial, as Sun et al. have it
_DISTANCES = ("transe", "rotate")  # the others are products
_MOST_DIM = 1 << 16  # coordinates of a vector
_VALIDATED = 500  # validation triples that are ranked while a model trains, unless the task is told otherwise
_CANDIDATES = 32
_FILES = {"train": ("train",), "validation": ("valid", "validation", "dev"), "test": ("test",)}


# ---- data ------------------------------------------------------------------------------------------------------------


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
            triples = getattr(self, name).array
            entities_seen = np.isin(triples[:, [0, 2]], seen[:, [0, 2]]).all(axis=1)
            relations_seen = np.isin(triples[:, 1], seen[:, 1])
            reasons = {"entities or relations that training never saw": ~entities_seen | ~relations_seen}
            rule = "at least one triple whose entities and relation training has"
            kept = rows_kept(self, name, "triple", reasons, rule)
            part = Triples(triples[kept], self.train.n_entities, self.train.n_relations)
            object.__setattr__(self, name, part)

    def fingerprint(self) -> str:
        """A checksum of all triples, 16 digits."""
        return checksum(*(getattr(self, name).array for name in PARTS))

    def __repr__(self) -> str:
        entities = "1 entity" if self.train.n_entities == 1 else f"{self.train.n_entities:,} entities"
        relations = counted(self.train.n_relations, "relation")
        return f"KnowledgeGraph({entities}, {relations}, {sizes_of_parts(self, 'triple')})"


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
    return KnowledgeGraph(*_tenths(Triples(triples, n_entities, n_relations), seed))


def _tenths(known: Triples, seed: int) -> tuple[Triples, Triples, Triples]:
    """The three parts of `split_triples`, with the held-out triples that cannot be ranked."""
    if len(known) < 10:
        raise_invalid("triples", "at least ten different triples, for a split", len(known))
    parts = random_tenths(known.array, seed)
    train, validation, test = (Triples(part, known.n_entities, known.n_relations) for part in parts)
    return train, validation, test


@public
def read_triples(
    path: File, *, validation: File | None = None, test: File | None = None, seed: int = 0
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
    files = part_files(path, validation, test)
    if files["path"].is_dir():
        files = {part: _in_folder(files["path"], part) for part in PARTS}
    parts = [text_lines(name, file, ("head", "relation", "tail"), "\t") for name, file in files.items()]
    heads, relations, tails = zip(*parts, strict=True)
    entity_ids, _ = ids_of("path", [*heads, *tails], numbers=False)  # heads and tails share their names
    relation_ids, _ = ids_of("path", relations, numbers=False)
    triples = [
        np.stack(columns, axis=1)
        for columns in zip(entity_ids[: len(parts)], relation_ids, entity_ids[len(parts) :], strict=True)
    ]
    sizes = [1 + max(int(ids.max()) for ids in columns) for columns in (entity_ids, relation_ids)]
    if len(parts) == 1:
        return split_triples(triples[0], *sizes, seed=seed)
    train, *held_out = (Triples(part, *sizes) for part in triples)
    if len(held_out) == 1:
        kept, own_validation, also_kept = _tenths(train, seed)
        return KnowledgeGraph(kept.union(also_kept), own_validation, held_out[0])
    return KnowledgeGraph(train, held_out[0], held_out[1])


def _in_folder(folder: Path, part: str) -> Path:
    """The file of a part."""
    names = [f"{stem}{ending}" for stem in _FILES[part] for ending in (".txt", ".tsv")]
    present = next((folder / name for name in names if (folder / name).is_file()), None)
    if present is None:
        raise_invalid("path", f"a folder with {' or '.join(names[:2])}", repr(str(folder)))
    return present


# ---- model -----------------------------------------------------------------------------------------------------------


class TripleModel(nn.Module):
    """A model of triples, whose score is that of a query and an entity, from either side.

        TransE      -|h + r - t|             query of tails h + r, of heads t - r
        DistMult    sum h r t                h r, t r
        ComplEx     Re sum h r conj(t)       h r, t conj(r), in complex numbers
        RotatE      -|h r - t|, |r_i| = 1    h r, t conj(r), in complex numbers

    So all heads or tails of a triple are scored by one product, or one matrix of distances. Distances are Euclidean;
    the paper of RotatE adds up moduli instead. Complex vectors have their real parts first, and RotatE's relations are
    angles, in the first half of their coordinates.

    Bordes et al. NIPS 2013; Yang et al. ICLR 2015; Trouillon et al. ICML 2016; Sun et al. ICLR 2019.
    """

    def __init__(
        self, kind: str, n_entities: int, n_relations: int, seed: int, *, dim: int = 64, device: Device = "cpu"
    ) -> None:
        super().__init__()
        self.kind = kind
        random = torch.Generator().manual_seed(seed)
        width = 2 * (dim // 2)  # complex numbers have two coordinates
        entities, relations = (torch.randn(size, width, generator=random) for size in (n_entities, n_relations))
        relation_scale = np.pi / 2 if kind == "rotate" else 0.1  # angles go all the way round
        self.entities = nn.Parameter((0.1 * entities).to(device))
        self.relations = nn.Parameter((relation_scale * relations).to(device))

    def queries(self, entities: Tensor, relations: Tensor, *, tails: bool) -> Tensor:
        """(..., dim) what the missing tail should be near to, or the missing head, of an entity and a relation."""
        known, between = embedding(entities, self.entities), embedding(relations, self.relations)
        if self.kind == "transe":
            return known + between if tails else known - between
        if self.kind == "distmult":
            return known * between
        real, imaginary = between.chunk(2, dim=-1)
        if self.kind == "rotate":
            real, imaginary = torch.cos(real), torch.sin(real)
        if not tails:
            imaginary = -imaginary
        a, b = known.chunk(2, dim=-1)
        return torch.cat([a * real - b * imaginary, a * imaginary + b * real], dim=-1)

    def score(self, triples: Tensor) -> Tensor:
        """(...,) of triples (..., 3)."""
        heads, relations, tails = triples.unbind(dim=-1)
        return self.score_vectors(self.queries(heads, relations, tails=True), embedding(tails, self.entities))

    def score_vectors(self, queries: Tensor, entities: Tensor) -> Tensor:
        """(...,) of queries (..., dim), and the vectors (..., dim) of entities."""
        if self.kind in _DISTANCES:
            return -((queries - entities).square().sum(dim=-1) + 1e-12).sqrt()  # which has a gradient at 0
        return (queries * entities).sum(dim=-1)

    @torch.no_grad()
    def order_all(self, queries: Tensor) -> Tensor:
        """(n, n_entities) numbers that order all entities by their scores for queries (n, dim), by one product.

        They are the scores of DistMult and ComplEx. For distances they are q e - |e|^2 / 2: that is -|q - e|^2 / 2, but
        for a number that all entities of a row share.
        """
        if self.kind not in _DISTANCES:
            return queries @ self.entities.T
        return torch.addmm(self.entities.square().sum(dim=1), queries, self.entities.T, beta=-0.5)


# ---- task ------------------------------------------------------------------------------------------------------------


def _methods(model: str) -> Mapping[str, str]:
    """{name: composition} of arms for a model.

    A mechanism is trained with the task's loss, or with the one that its name says. The name of a paper stands for its
    loss, too, and for its model: such an arm needs `transe_model`, which the task has for that model only.
    What a paper has and we do not is named in the same way, so that the name is not taken for the sampler alone.
    NSCaching has a margin for distances and the logistic loss for products; SANS the self-adversarial loss; MixKG the
    same with equal weights.
    """
    cached = "Cached(Corruption(train, choice='bernoulli'), score, size=30, fresh=30)"
    generator = (
        "Learned(Corruption(train, choice='bernoulli'), triple_generator, triple_optimizer, score, candidates=20,"
        " baseline='running')"
    )
    mixed = "MixKG(Corruption(train, sides=('tail',)), score, embed, candidates=32, n_hard=8)"
    loss_of_cache = "hinge, margin=1.0" if model in _DISTANCES else "sampled_bce"
    uniform, softmax = "Static(Corruption(train, known=valid))", "Dynamic(Corruption(triples), score, candidates=32"
    adversarial = f"with_loss({uniform}, self_adversarial, margin={MARGIN[model]}, alpha=1.0"
    margin_ranking = f"with_loss({uniform}, hinge, margin=1.0"
    return MappingProxyType(
        {
            "uniform": uniform,
            "dynamic-softmax": f"{softmax}, temperature=1.0)",
            "near-positive": "NearPositive(Corruption(triples), similarity, candidates=32)",
            "margin-ranking": f"{margin_ranking})",
            "self-adversarial": f"{adversarial})",
            "TransE": f"{margin_ranking}, model=transe_model)",
            "DistMult": f"{margin_ranking}, model=distmult_model)",
            "RotatE": f"{adversarial}, model=rotate_model)",
            "TransH": f"{margin_ranking}, model=transh_model)",
            "TransG": f"{margin_ranking}, model=transg_model)",
            "cached": cached,
            "learned": generator,
            "NSCaching": f"with_loss({cached}, {loss_of_cache})",
            "KBGAN": f"with_loss({generator}, hinge, margin=1.0, model=transe_model)",
            "SANS": f"with_loss(Static(KHop(train, hops=(1, 2))), self_adversarial, margin={MARGIN[model]}, alpha=1.0)",
            "MixKG": f"with_loss({mixed}, self_adversarial, margin={MARGIN[model]}, alpha=0.0)",
            "ANS (adaptive k)": f"scheduled({uniform}, adaptive(k, steps))",
            "Shan et al.": f"{softmax}, temperature=1.0, confidence=triple_confidence)",
            "SNS": "with_loss(NearPositive(Corruption(triples), similarity), loss_of_the_paper)",
        }
    )


class _Questions:
    """The questions (h, r, ?) and (?, r, t) of some triples: what is wanted, and what else is true."""

    def __init__(self, wanted: Triples, true: Triples) -> None:
        self.keys, rows = np.unique(_question_keys(wanted), return_inverse=True)
        sizes = len(self.keys), wanted.n_entities
        self.wanted = Positives.from_pairs(rows.reshape(-1), _answers(wanted), *sizes)
        true_keys = _question_keys(true)
        place = np.minimum(np.searchsorted(self.keys, true_keys), len(self.keys) - 1)
        is_asked = self.keys[place] == true_keys
        self.known = Positives.from_pairs(place[is_asked], _answers(true)[is_asked], *sizes)
        known_entities, self.relations = np.divmod(self.keys, wanted.n_relations)
        self.of_tails, self.known_entities = known_entities < wanted.n_entities, known_entities % wanted.n_entities

    @torch.no_grad()
    def queries(self, model: TripleModel) -> Tensor:
        """(questions, dim): questions of tails come first, because their keys are smaller."""
        parts = []
        for tails in (True, False):
            rows = self.of_tails == tails
            known_entities, relations = (
                to_torch(ids[rows], model.entities.device) for ids in (self.known_entities, self.relations)
            )
            parts.append(model.queries(known_entities, relations, tails=tails))
        return torch.cat(parts)


def _question_keys(triples: Triples) -> Ids:
    """One number for each question: (h, r, ?) of all triples, then (?, r, t)."""
    heads, relations, tails = triples.array.T
    of_tails = heads * triples.n_relations + relations
    of_heads = (triples.n_entities + tails) * triples.n_relations + relations
    return np.concatenate([of_tails, of_heads])


def _answers(triples: Triples) -> Ids:
    """The answers to `_question_keys`."""
    return np.concatenate([triples.array[:, 2], triples.array[:, 0]])


@final
@public
class LinkPrediction(Task):
    """The task of completing triples: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of training triples, k corrupted ones for each, and minimises `losses.info_nce` at temperature
    1, or the loss that an arm names. Measures are filtered: other known answers are left
    out, of all three parts. A tie counts half. All entities are ranked, for some of the validation triples and for all
    test triples.

    Args:
        data: The triples.
        model: "transe", "distmult", "complex" or "rotate".
        dim: The number of coordinates of a vector.
        batch: Triples of a step; by default a hundredth of the training triples, rounded to a power of two from 256 to
            4,096, and at most all.
        validated: Validation triples that are ranked, a random choice that is the same for all runs; at most all.
        device: Where torch keeps the vectors and trains, such as "cuda". Draws and ranks are made on the processor.

    Examples:
        >>> import naysay as ns
        >>> task = LinkPrediction(ns.lab.split_triples([[a, 0, b] for a in range(6) for b in range(5)], 6, 1))
        >>> task.measure, task.pairs
        ('mrr', 24)
    """

    name = "knowledge-graph"
    models = tuple(MARGIN)
    measure = "mrr"
    methods: Mapping[str, str] = _methods("transe")  # a task has those of its model
    quick_steps = 160
    quick = ("corruption:8", "bernoulli:8", "typed:8", "self-adversarial:8")
    defaults = (
        *("corruption:8", "bernoulli:8", "typed:8", "relation-corruption:8"),
        *("near-positive:8", "dynamic-softmax:8", "self-adversarial:8"),
    )

    def __init__(
        self,
        data: KnowledgeGraph,
        model: str = "transe",
        *,
        dim: int = 64,
        batch: int | None = None,
        validated: int = _VALIDATED,
        device: Device = "cpu",
    ) -> None:
        """Index what is asked and what is true."""
        super().__init__(data, KnowledgeGraph, model, device)
        self.dim = check_whole("dim", dim, 2, _MOST_DIM)
        self.methods = _methods(model)
        self.triples = to_torch(data.train.array, self.device)
        self.set_batch(len(data.train), batch)
        self.held = data.validation.union(data.test)
        true = data.train.union(self.held)
        most = check_whole("validated", validated, 1)
        ranked = np.random.default_rng(0).permutation(data.validation.array)[:most]
        self.validated = len(ranked)
        asked = Triples(ranked, data.train.n_entities, data.train.n_relations)
        self.questions = {"validation": _Questions(asked, true), "test": _Questions(data.test, true)}
        self.test_work = len(self.questions["test"].keys) / len(self.questions["validation"].keys)
        self.ranked = (
            f"Validation ranks all entities for both sides of {counted(self.validated, 'triple')}, "
            f"the test of {len(data.test):,}."
        )
        self.sizes = {"dim": self.dim, "validated": self.validated, "false negatives": HELD_OUT}

    def start(self, seed: int) -> LinkPredictor:
        """A model before training, the same for equal seeds."""
        return LinkPredictor(self, seed)


@final
class LinkPredictor(Learner):
    """A model of `LinkPrediction` in training."""

    def __init__(self, task: LinkPrediction, seed: int) -> None:
        self.task, self.seed = task, seed
        train = task.data.train
        self.network: TripleModel = TripleModel(
            task.model, train.n_entities, train.n_relations, seed, dim=task.dim, device=task.device
        )

    @torch.no_grad()
    def score(self, triples: Tensor, corrupted: Tensor) -> Tensor:
        """(B, n) the scores of corrupted triples (B, n, 3), without gradients."""
        return self.network.score(corrupted)

    @torch.no_grad()
    def similarity(self, entities: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the products of entities (B, n) and entities (B,), without gradients."""
        return row_products(self.network.entities[entities], self.network.entities[ids])

    def parts(self) -> dict[str, Any]:
        """See `Learner.parts`."""
        train = self.task.data.train
        generator = TripleModel(
            "distmult", train.n_entities, train.n_relations, self.seed, dim=self.task.dim, device=self.task.device
        )
        return {
            **super().parts(),
            "triple_generator": lambda triples, corrupted: generator.score(corrupted),
            "triple_optimizer": torch.optim.Adam(generator.parameters(), lr=GENERATOR_RATE),
            "n_entities": train.n_entities,
            "embed": lambda ids: embedding(ids, self.network.entities),
            "train": train,
            "triples": train,
            "valid": (),  # held-out triples may be drawn, as in practice
            f"{self.task.model}_model": self.task.model,  # papers whose model is another do not fit
            "score": in_blocks(self.score),
            "similarity": in_blocks(self.similarity),
            "candidates": _CANDIDATES,
            "rho": 1.0,
        }

    def query(self, rows: Ids, step: int) -> Query:
        """See `Learner.query`."""
        return Query(self.task.triples[to_torch(rows, self.task.device)], step=step)

    def scores(self, query: Query, negatives: Negatives) -> tuple[Tensor, Tensor]:
        """See `Learner.scores`."""
        positive = self.network.score(query.anchors)
        if negatives.vectors is None:
            corrupted = corrupted_triples(query.anchors, negatives.ids.clamp(min=0), negatives.side)
            return positive, self.network.score(corrupted)
        heads, relations, tails = query.anchors.unbind(dim=1)
        of_tails, of_heads = (
            self.network.queries(known, relations, tails=asks_tails)[:, None]
            for known, asks_tails in ((heads, True), (tails, False))
        )
        queries = torch.where((negatives.side == 2)[:, :, None], of_tails, of_heads)
        return positive, self.network.score_vectors(queries, negatives.vectors)

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The share of the negatives of some training triples that are held-out triples."""
        triples = self.task.triples[to_torch(rows, self.task.device)]
        corrupted = corrupted_triples(triples, negatives.ids.clamp(min=0), negatives.side)[negatives.mask]
        return float(self.task.held.contains(to_numpy(corrupted)).mean()) if len(corrupted) else 0.0

    def measured(self, part: str) -> dict[str, float]:
        """Rank both sides of all triples of a part."""
        questions = self.task.questions[part]
        queries = questions.queries(self.network)
        ranks = ranking(
            lambda rows: self.network.order_all(queries[rows]), questions.wanted, known=questions.known, alone=True
        )
        return {"mrr": ranks.mrr, **{f"hits@{n}": ranks.hits(n) for n in (10, 1, 3)}}
