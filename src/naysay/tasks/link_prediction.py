"""Link prediction: TransE, DistMult, ComplEx or RotatE on triples, by filtered MRR and Hits of both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import pools, samplers
from naysay._slots import corrupted_triples
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_kind, check_one_of, check_whole, public
from naysay.evaluate import ranking
from naysay.losses import hinge, info_nce, self_adversarial
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.tasks._parts import HELD_OUT, Device, checked_device, mean_hardness, put, recorded_device, usual_batch
from naysay.tasks._products import row_scores
from naysay.tasks.knowledge_graph import KnowledgeGraph
from naysay.tasks.triple_models import MOST_WIDTH, TRIPLE_MODELS, TripleModel
from naysay.text import counted
from naysay.triples import Triples
from naysay.types import HEAD, TAIL, Negatives, Query

CANDIDATES = 32
VALIDATED = 500  # validation triples that are ranked while a model trains, unless the task is told otherwise
MARGIN = {"transe": 9.0, "rotate": 9.0, "distmult": 0.0, "complex": 0.0}  # of self_adversarial, as Sun et al. have it
_SAMPLERS = ("Static", "Dynamic", "NearPositive", "SoftmaxWeights", "PercentileRange", "Mixed")


def _methods(model: str) -> Mapping[str, str]:
    """{name: composition} of arms for a model.

    A mechanism is trained with the task's loss, or with the one that its name says. The name of a paper stands for its
    loss, too, and for its model: such an arm needs `transe_model`, which `LinkPredictor.parts` has for that model only.
    What a paper has and we do not is named in the same way, so that the name is not taken for the sampler alone.
    """
    uniform, softmax = "Static(Corruption(train, known=valid))", "Dynamic(Corruption(triples), score, candidates=32"
    adversarial = f"with_loss({uniform}, self_adversarial, margin={MARGIN[model]}, alpha=1.0"
    ranking = f"with_loss({uniform}, hinge, margin=1.0"
    return MappingProxyType(
        {
            "uniform": uniform,
            "dynamic-softmax": f"{softmax}, temperature=1.0)",
            "near-positive": "NearPositive(Corruption(triples), similarity, candidates=32)",
            "margin-ranking": f"{ranking})",
            "self-adversarial": f"{adversarial})",
            "TransE": f"{ranking}, model=transe_model)",
            "DistMult": f"{ranking}, model=distmult_model)",
            "RotatE": f"{adversarial}, model=rotate_model)",
            "TransH": f"{ranking}, model=transh_model)",
            "TransG": f"{ranking}, model=transg_model)",
            "Shan et al.": f"{softmax}, temperature=1.0, confidence=triple_confidence)",
            "SNS": "with_loss(NearPositive(Corruption(triples), similarity), loss_of_the_paper)",
        }
    )


class _Questions:
    """The questions (h, r, ?) and (?, r, t) of some triples: what is wanted, and what else is true."""

    def __init__(self, wanted: Triples, true: Triples) -> None:
        entities, relations = wanted.n_entities, wanted.n_relations
        tail_keys, heads = wanted.array[:, 0] * relations + wanted.array[:, 1], wanted.array[:, 0]
        head_keys = (entities + wanted.array[:, 2]) * relations + wanted.array[:, 1]
        self.keys, rows = np.unique(np.concatenate([tail_keys, head_keys]), return_inverse=True)
        sizes = len(self.keys), entities
        answers = np.concatenate([wanted.array[:, 2], heads])
        self.wanted = Positives.from_pairs(rows.reshape(-1), answers, *sizes)
        every = np.concatenate(
            [
                true.array[:, 0] * relations + true.array[:, 1],
                (entities + true.array[:, 2]) * relations + true.array[:, 1],
            ]
        )
        answers = np.concatenate([true.array[:, 2], true.array[:, 0]])
        place = np.minimum(np.searchsorted(self.keys, every), len(self.keys) - 1)
        asked = self.keys[place] == every
        self.known = Positives.from_pairs(place[asked], answers[asked], *sizes)
        given, self.relations = np.divmod(self.keys, relations)
        self.tails, self.given = given < entities, given % entities

    @torch.no_grad()
    def queries(self, model: TripleModel) -> Tensor:
        """(questions, d): questions of tails come first, because their keys are smaller."""
        parts = []
        for tails in (True, False):
            rows = self.tails == tails
            given, relations = (to_torch(ids[rows], model.entities.device) for ids in (self.given, self.relations))
            parts.append(model.queries(given, relations, tails=tails))
        return torch.cat(parts)


@final
@public
class LinkPrediction:
    """The task of completing triples: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of training triples, k corrupted ones for each, and minimises `losses.info_nce` at temperature
    1, or the loss that an arm names: see `LinkPredictor.with_loss`. Measures are filtered: other known answers are left
    out, of all three parts. A tie counts half. All entities are ranked, for some of the validation triples and for all
    test triples.

    Args:
        data: The triples.
        model: "transe", "distmult", "complex" or "rotate".
        width: The number of coordinates of a vector.
        batch: Triples of a step; by default a hundredth of the training triples, rounded to a power of two from 256 to
            4,096, and at most all.
        validated: Validation triples that are ranked, a random choice that is the same for all runs; at most all.
        device: Where torch keeps the vectors and trains, such as "cuda". Draws and ranks are made on the processor.

    Examples:
        >>> import naysay as ns
        >>> task = LinkPrediction(ns.tasks.split_triples([[a, 0, b] for a in range(6) for b in range(5)], 6, 1))
        >>> task.measure, task.pairs
        ('mrr', 24)
    """

    name = "knowledge-graph"
    models = TRIPLE_MODELS
    measure = "mrr"
    own: Mapping[str, str] = _methods("transe")  # a task has those of its model
    quick_steps = 160
    k = 8
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
        width: int = 64,
        batch: int | None = None,
        validated: int = VALIDATED,
        device: Device = "cpu",
    ) -> None:
        """Index what is asked and what is true."""
        check_kind("data", data, KnowledgeGraph, "a KnowledgeGraph")
        check_one_of("model", model, TRIPLE_MODELS)
        self.data, self.model, self.width = data, model, check_whole("width", width, 2, MOST_WIDTH)
        self.own = _methods(model)
        self.device = checked_device(device)
        self.triples = to_torch(data.train.array, self.device)
        self.pairs = len(data.train)
        self.batch = usual_batch(self.pairs, batch)
        self.held = data.validation.union(data.test)
        true = data.train.union(self.held)
        some = np.random.default_rng(0).permutation(data.validation.array)[: check_whole("validated", validated, 1)]
        self.validated = len(some)
        sizes = data.train.n_entities, data.train.n_relations
        self.questions = {"validation": _Questions(Triples(some, *sizes), true), "test": _Questions(data.test, true)}
        asked, tested = (len(self.questions[part].keys) for part in ("validation", "test"))
        self.test_work = tested / asked  # what a test costs, in validations
        self.ranked = (
            f"Validation ranks all entities for both sides of {counted(self.validated, 'triple')}, "
            f"the test of {len(data.test):,}."
        )

    def settings(self) -> dict[str, Any]:
        """What decides the result, for the record."""
        known = {"task": self.name, "model": self.model, "data": repr(self.data)}
        sizes = {"width": self.width, "batch": self.batch, "validated": self.validated, "false negatives": HELD_OUT}
        return {**known, "fingerprint": self.data.fingerprint(), **sizes, **recorded_device(self.device)}

    def start(self, seed: int) -> LinkPredictor:
        """A model before training, the same for equal seeds."""
        return LinkPredictor(self, seed)


@final
@public
class LinkPredictor:
    """A model of `LinkPrediction` that is being trained: what samplers ask, the loss of a step, and the measures.

    Args:
        task: The task.
        seed: Of the first vectors and of the draws.

    Examples:
        >>> import naysay as ns
        >>> task = LinkPrediction(ns.tasks.split_triples([[a, 0, b] for a in range(6) for b in range(5)], 6, 1))
        >>> sampler = ns.samplers.Static(ns.pools.Corruption(task.data.train))
        >>> loss, negatives = task.start(0).loss(np.arange(4), sampler, 2, step=0)
        >>> negatives.shape
        (4, 2)
    """

    def __init__(self, task: LinkPrediction, seed: int) -> None:
        """Make the vectors."""
        self.task, self.seed, self.hardness = task, seed, float("nan")
        sizes = task.data.train.n_entities, task.data.train.n_relations
        self.network = TripleModel(task.model, *sizes, seed, width=task.width, device=task.device)
        self.parameters = [self.network.entities, self.network.relations]

    @torch.no_grad()
    def score(self, triples: Tensor, corrupted: Tensor) -> Tensor:
        """(B, n) the scores of corrupted triples (B, n, 3) of triples (B, 3), without gradients."""
        heads, relations, tails = corrupted.unbind(dim=-1)
        if bool((relations != triples[:, None, 1]).any()):
            return self.network.score(corrupted)
        of_heads = heads != triples[:, None, 0]
        side = torch.where(of_heads, HEAD, TAIL)
        if bool((of_heads & (tails != triples[:, None, 2])).any()):  # both ends are replaced
            return self.network.score(corrupted)
        return self.network.scores(triples, torch.where(of_heads, heads, tails), side)[:, 1:]

    def similarity(self, entities: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the products of entities (B, n) and entities (B,), without gradients."""
        return row_scores(self.network.entities.detach(), entities.contiguous(), ids.contiguous())

    def parts(self) -> Mapping[str, Any]:
        """{name: value}: what the code of a catalogue row may name. Rows that name anything else do not fit."""
        offered: dict[str, Any] = {name: getattr(samplers, name) for name in _SAMPLERS}
        train = self.task.data.train
        offered |= {"np": np, "Corruption": pools.Corruption, "train": train, "triples": train}
        offered |= {"with_loss": self.with_loss, "hinge": hinge, "self_adversarial": self_adversarial}
        offered |= {f"{self.task.model}_model": self.task.model}  # papers whose model is another do not fit
        offered |= {"score": self.score, "similarity": self.similarity, "candidates": CANDIDATES, "rho": 1.0}
        return offered | {"valid": ()}  # held-out triples may be drawn, as in practice

    def loss(self, rows: NDArray[np.int64], sampler: Any, k: int, *, step: int) -> tuple[Tensor, Negatives]:
        """The mean InfoNCE of some training triples with k corrupted ones each, and the negatives."""
        return self._step(rows, sampler, k, step, info_nce)

    def with_loss(
        self, sampler: Any, loss: Callable[..., Tensor], *, model: str | None = None, **settings: float
    ) -> Callable[..., tuple[Tensor, Negatives]]:
        """A step like `loss`, with another loss of `naysay.losses`.

        Args:
            sampler: What draws corrupted triples.
            loss: loss(positive (B,), negatives (B, K), *, mask, weights, **settings) -> (B,).
            model: Only a note for who reads the arm: the model that its paper has.
            settings: Arguments of the loss, such as its margin.
        """
        chosen = partial(loss, **settings)

        def step_of(rows: NDArray[np.int64], k: int, *, step: int) -> tuple[Tensor, Negatives]:
            return self._step(rows, sampler, k, step, chosen)

        return step_of

    def _step(
        self, rows: NDArray[np.int64], sampler: Any, k: int, step: int, loss: Callable[..., Tensor]
    ) -> tuple[Tensor, Negatives]:
        """The mean loss of some training triples with k corrupted ones each, and the negatives."""
        triples = self.task.triples[to_torch(rows, self.task.device)]
        negatives: Negatives = sampler.sample(Query(triples, step=step), k, rng=rng_for(self.seed, step))
        both = self.network.scores(triples, negatives.ids.clamp(min=0), negatives.side)
        positive, scores = both[:, 0], both[:, 1:]
        self.hardness = mean_hardness(positive, scores, negatives.mask)
        return loss(positive, scores, mask=negatives.mask, weights=negatives.weights).mean(), negatives

    def false_share(self, rows: NDArray[np.int64], negatives: Negatives) -> float:
        """The share of the negatives of some training triples that are held-out triples."""
        triples = self.task.triples[to_torch(rows, self.task.device)]
        corrupted = corrupted_triples(triples, negatives.ids.clamp(min=0), negatives.side)[negatives.mask]
        return float(self.task.held.contains(to_numpy(corrupted)).mean()) if len(corrupted) else 0.0

    def snapshot(self) -> list[Tensor]:
        """All vectors, for `measure`."""
        return [part.detach().clone() for part in self.parameters]

    def measure(self, vectors: list[Tensor], part: str = "validation") -> dict[str, float]:
        """Rank both sides of the "validation" or the "test" triples by vectors of `snapshot`."""
        check_one_of("part", part, ("validation", "test"))
        questions, model = self.task.questions[part], self.network
        with torch.no_grad():
            now = self.snapshot()
            put(self.parameters, vectors)
            queries = questions.queries(model)
            found = ranking(
                lambda rows: model.order_all(queries[rows]), questions.wanted, known=questions.known, alone=True
            )
            put(self.parameters, now)
        return {"mrr": found.mrr, **{f"hits@{n}": found.hits(n) for n in (10, 1, 3)}}
