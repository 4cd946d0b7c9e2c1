"""Which corruptions train the best model of a knowledge graph, and do detectors tell true triples from false ones?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

import naysay as ns
from benchmarks import readers
from benchmarks.readers import Ids
from benchmarks.study import Claim, Found, Job, Settings, Study

RANKED = 2000  # triples that are ranked for validation


class Arm(NamedTuple):
    """A sampler as an expression of `pool` and `score`, and a name of `naysay.losses` with its options."""

    sampler: str = "Static(Corruption(train))"
    loss: str = "info_nce"
    options: tuple[tuple[str, float], ...] = ()


class Graph(NamedTuple):
    """Triples of three parts, and all of them together."""

    train: ns.Triples
    valid: Ids
    test: Ids
    every: ns.Triples
    false: dict[str, Ids]  # verified to be false, where the data has them


def world(folder: Path, _seed: int, settings: Settings) -> Graph:
    """Parts as published."""
    data = readers.arrays(folder, settings["data"], "triples.npz")
    every = np.concatenate([data[part] for part in ("train", "valid", "test")])
    sizes = int(every[:, [0, 2]].max()) + 1, int(every[:, 1].max()) + 1
    false = {name: data[name] for name in ("valid_negatives", "test_negatives") if name in data}
    return Graph(ns.Triples(data["train"], *sizes), data["valid"], data["test"], ns.Triples(every, *sizes), false)


class Model(nn.Module):
    """TransE, RotatE or ComplEx: a score of triples (..., 3), higher is more plausible."""

    def __init__(self, kind: str, n_entities: int, n_relations: int, dim: int, seed: int) -> None:
        """Random vectors, by the seed; relations of RotatE are angles."""
        super().__init__()
        self.kind = kind
        start = torch.Generator().manual_seed(seed)
        wide = dim // 2 if kind == "rotate" else dim
        self.entities = nn.Parameter(torch.randn(n_entities, dim, generator=start) / dim**0.5)
        self.relations = nn.Parameter(
            torch.randn(n_relations, wide, generator=start) * (1.0 if kind == "rotate" else dim**-0.5)
        )

    def forward(self, triples: Tensor) -> Tensor:
        """(...,) of triples (..., 3)."""
        head, relation, tail = (triples[..., place] for place in range(3))
        return self.of_vectors(
            embedding(head, self.entities), embedding(relation, self.relations), embedding(tail, self.entities)
        )

    def of_vectors(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """The same of vectors, which broadcast."""
        if self.kind == "transe":
            return -torch.linalg.vector_norm(head + relation - tail, dim=-1)
        real, imaginary = head.chunk(2, dim=-1)
        if self.kind == "rotate":
            cos, sin = relation.cos(), relation.sin()
            turned = torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1)
            return -torch.linalg.vector_norm(turned - tail, dim=-1)
        of_real, of_imaginary = relation.chunk(2, dim=-1)
        product = torch.cat(
            [real * of_real - imaginary * of_imaginary, real * of_imaginary + imaginary * of_real], dim=-1
        )
        return (product * tail).sum(dim=-1)

    @torch.no_grad()
    def ranks(self, triples: Ids, every: ns.Triples) -> Any:
        """Filtered ranks of heads and tails among all entities, ties half."""
        found = []
        everyone = torch.arange(len(self.entities))
        for triple in torch.from_numpy(triples):
            for place in (0, 2):
                asked = triple.repeat(len(everyone), 1)
                asked[:, place] = everyone
                scores = self(asked)
                own = scores[triple[place]]
                other = ~torch.from_numpy(every.contains(asked.numpy()))
                found.append(1 + float((scores[other] > own).sum()) + 0.5 * float((scores[other] == own).sum()))
        return np.array(found)


def trained(job: Job) -> tuple[Model, float]:
    """A model with the negatives of an arm, that of the best validation, and its mean reciprocal rank there."""
    graph, settings, arm = job.world, job.settings, job.arm
    sizes = graph.train.n_entities, graph.train.n_relations
    model = Model(settings["model"], *sizes, settings["dim"], job.seed)

    def score(_anchors: Tensor, corrupted: Tensor) -> Tensor:
        return model(corrupted)

    generator = Model("complex", *sizes, settings["dim"], job.seed)
    names = {
        **vars(ns.pools),
        **vars(ns.samplers),
        "train": graph.train,
        "score": ns.samplers.in_blocks(score),
        "generator": lambda triples, corrupted: generator(corrupted),
        "optimizer": torch.optim.Adam(generator.parameters(), lr=settings["lr"]),
    }
    sampler = eval(arm.sampler, names)  # text of a declaration
    pool = sampler.pool
    loss_of = getattr(ns.losses, arm.loss)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings["lr"])
    triples, order = graph.train.array.astype(np.int64), np.random.default_rng(job.seed)
    asked = np.random.default_rng(0).permutation(graph.valid)[: settings["ranked"]]
    best, kept = -1.0, {}
    for step in range(settings["steps"]):
        rows = torch.from_numpy(triples[order.integers(0, len(triples), settings["batch"])])
        query = ns.Query(rows, step=step)
        negatives = sampler.sample(query, settings["k"], rng=ns.rng_for(job.seed, step))
        corrupted = torch.as_tensor(pool.corrupted(query, negatives)).clamp(min=0)
        loss = loss_of(model(rows), model(corrupted), mask=negatives.mask, **dict(arm.options)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if hasattr(sampler, "observe"):
            sampler.observe(query, negatives)
        if isinstance(sampler, ns.samplers.Learned) and (step + 1) % (len(triples) // settings["batch"]) == 0:
            sampler.update()  # an epoch ends
        if (step + 1) % settings["every"] == 0:
            value = float((1 / model.ranks(asked, graph.every)).mean())
            if value > best:
                best, kept = value, {name: part.clone() for name, part in model.state_dict().items()}
    model.load_state_dict(kept)
    return model, best


def run(job: Job) -> Found:
    """Filtered MRR and hits of the test triples, at the step of the best validation."""
    model, best = trained(job)
    test = np.random.default_rng(1).permutation(job.world.test)[: job.settings["tested"]]
    ranks = model.ranks(test, job.world.every)
    return {"mrr": float((1 / ranks).mean()), "hits_at_10": float((ranks <= 10).mean()), "validation": best}


def flagged(job: Job) -> Found:
    """What a rule flags of test triples that are true, and keeps of those that are verified to be false."""
    graph = job.world
    plain = Job(graph, Arm(), job.seed, job.settings, job.earlier)
    model, _ = trained(plain)
    with torch.no_grad():
        scores = {
            name: model(torch.from_numpy(part)).numpy().astype(np.float64)
            for name, part in {"valid": graph.valid, "test": graph.test, **graph.false}.items()
        }
    rule = eval(job.arm, {**vars(ns.detectors), "scores": scores})  # text of a declaration
    found = {}
    for name, part in (("test", graph.test), ("test_negatives", graph.false["test_negatives"])):
        negatives = ns.Negatives(part[:, 2:], scores=scores[name][:, None])
        suspicion = np.asarray(rule.suspicion(ns.Query(np.arange(len(part))), negatives))[:, 0]
        found[name] = 100 * float((suspicion >= 0.5).mean())
    return {"true_flagged_percent": found["test"], "false_kept_percent": 100 - found["test_negatives"]}


ADVERSARIAL = (("alpha", 1.0), ("margin", 9.0))
ARMS = {
    "corruption": Arm(),
    "Bernoulli": Arm('Static(Corruption(train, choice="bernoulli"))'),
    "self-adversarial": Arm(loss="self_adversarial", options=ADVERSARIAL),
    "NSCaching": Arm("Cached(Corruption(train), score, size=50, fresh=50)"),
    "KBGAN": Arm(
        'Learned(Corruption(train, choice="bernoulli"), generator, optimizer, score, candidates=20, baseline="running")'
    ),
    "dynamic": Arm("Dynamic(Corruption(train), score, candidates=32)"),
}
SETTINGS = {"dim": 64, "k": 16, "batch": 1024, "every": 500, "ranked": 500, "tested": 2000}
QUICK = {"dim": 8, "k": 2, "batch": 64, "steps": 2, "every": 1, "ranked": 4, "tested": 4}
PROTOCOL = """\
Do negatives of a knowledge graph differ as the review of negative sampling has it (Yang et al., Fig. 6)? {model} on
{data}, Adam, k = 16 corruptions of either side, known triples drawn again. Filtered MRR of both sides of the test
triples at the step of the best validation MRR; the learning rate is chosen for each arm by validation.
Self-adversarial has the loss of its paper, the others InfoNCE. KBGAN's generator is ComplEx, from a random start.
Published for comparison: {published}."""
PUBLISHED = {
    ("codex-s", "transe"): "MRR 0.354 for TransE with another loss (Safavi and Koutra 2020)",
    ("codex-s", "rotate"): "no RotatE; MRR 0.354 for TransE and 0.465 for ComplEx (Safavi and Koutra 2020)",
    ("fb15k-237", "transe"): "MRR 0.338 for RotatE, self-adversarial, at a much larger dimension (Sun et al. 2019)",
    ("fb15k-237", "rotate"): "MRR 0.338 for RotatE, self-adversarial, at a much larger dimension (Sun et al. 2019)",
}


def declared(data: str, model: str, steps: int) -> Study:
    """One model on one graph."""
    return Study(
        name=f"knowledge-graph-{data}-{model}",
        protocol=PROTOCOL.format(model=model, data=data, published=PUBLISHED[data, model]),
        data=(data,),
        world=world,
        run=run,
        arms=ARMS,
        seeds=(0, 1, 2),
        measures=("mrr", "hits_at_10", "validation"),
        claims=(
            Claim("self-adversarial is better than uniform corruption", "self-adversarial", "corruption", "mrr"),
            Claim("a cache is better than uniform corruption", "NSCaching", "corruption", "mrr"),
            Claim("Bernoulli is better than uniform corruption", "Bernoulli", "corruption", "mrr"),
            Claim("KBGAN is better than uniform corruption", "KBGAN", "corruption", "mrr"),
        ),
        settings={**SETTINGS, "data": data, "model": model, "steps": steps},
        quick=QUICK,
        grid=({"lr": 1e-3}, {"lr": 1e-2}),
    )


STUDIES = (
    *(declared("codex-s", model, 10_000) for model in ("transe", "rotate")),
    *(declared("fb15k-237", model, 30_000) for model in ("transe", "rotate")),
    Study(
        name="knowledge-graph-verified",
        protocol="""\
Do detectors flag held-out true triples and keep those that are verified to be false (CoDEx-S)? ComplEx is trained
on the training triples alone. Thresholds are fitted to the scores of validation triples.""",
        data=("codex-s",),
        world=world,
        run=flagged,
        arms={f"calibrated, {alpha:g}": f"Calibrated({alpha}).fit(scores['valid'])" for alpha in (0.05, 0.1, 0.2)},
        seeds=(0, 1, 2),
        measures=("true_flagged_percent", "false_kept_percent"),
        settings={**SETTINGS, "data": "codex-s", "model": "complex", "steps": 3000, "lr": 1e-2},
        quick=QUICK,
    ),
)
