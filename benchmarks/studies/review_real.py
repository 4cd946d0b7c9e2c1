"""Are 100 answers worth more than labels on real data? Package descriptions and a knowledge graph, truth known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import naysay as ns
from benchmarks.readers import Floats, Ids
from benchmarks.studies import encoder, knowledge_graphs
from benchmarks.studies.review import LISTED, measured, of_every_pair
from benchmarks.study import Claim, Found, Job, Settings, Study

TOKENS = 48  # of a text that MiniLM reads
FOUND = 0.75  # of labelled positives are above the threshold of MiniLM, as `Encoder` chooses it
MANY = (6, 21)  # packages of a source, of which one is labelled for each of them
SHARE_OF_MANY = 0.1  # of the anchors, in natural groups


class World(NamedTuple):
    """Vectors that mine, the labelled item of each anchor, and all pairs that belong together."""

    queries: Floats
    items: Floats
    labels: Ids
    relevant: ns.Positives
    folder: Path
    texts: Any = None  # (of queries, of items), lists
    stronger: Any = None  # (queries, items), vectors by MiniLM
    verified: ns.Positives | None = None  # pairs that people found to be false

    def is_positive(self, anchors: Ids, items: Ids) -> NDArray[np.bool_]:
        """Whether pairs belong together."""
        return np.asarray(self.relevant.contains(anchors, items))


class Arm(NamedTuple):
    """How the negatives are mined, and who reviews: "truth", "minilm", or "minilm, truth" for a list of both."""

    judge: str | None = "auto"
    reviewer: str = ""
    answers: int = 0  # 0 with a reviewer: it is asked about every pair


# ---- worlds ----------------------------------------------------------------------------------------------------------


def packages(folder: Path, seed: int, settings: Settings) -> World:
    """Short descriptions as queries, long ones as documents; one source, or one text, makes packages relevant."""
    rows = encoder.packages(folder)
    sources = np.unique([row["source"] for row in rows], return_inverse=True)[1].astype(np.int64)
    counts = np.bincount(sources)
    rng, n = np.random.default_rng([seed, 31]), settings["anchors"]

    def drawn(smallest: int, largest: int, size: int) -> Ids:
        """So many packages of whole sources of these sizes."""
        eligible = rng.permutation(np.flatnonzero((counts >= smallest) & (counts <= largest)))
        end = int(np.searchsorted(np.cumsum(counts[eligible]), size))
        return np.flatnonzero(np.isin(sources, eligible[:end]))

    if settings["groups"] == "natural":
        n_many = int(SHARE_OF_MANY * n)
        places = np.concatenate([drawn(*MANY, n_many), drawn(1, 1, n - n_many)])
    else:
        places = drawn(3, 20, n)
    short, long = ([rows[place][name] for place in places] for name in ("short", "long"))
    texts = np.unique(long, return_inverse=True)[1]
    own = sources[places]
    belong = (own[:, None] == own) | (texts[:, None] == texts)
    words = encoder.encoder(folder, "static")
    model = encoder.encoder(folder, "minilm")
    model.max_seq_length = TOKENS
    return World(
        encoder.encoded(words, short),
        encoder.encoded(words, long),
        np.arange(len(places)),
        ns.Positives.from_pairs(*np.nonzero(belong), *belong.shape),
        folder,
        (short, long),
        (encoder.encoded(model, short), encoder.encoded(model, long)),
    )


def graph(folder: Path, seed: int, settings: Settings) -> World:
    """Heads with their relation as queries, entities as items, by ComplEx; one tail of training is labelled."""
    parts = knowledge_graphs.world(folder, seed, settings)
    model, _ = knowledge_graphs.trained(Job(parts, knowledge_graphs.Arm(), seed, settings, {}))
    n_entities = parts.train.n_entities
    false = np.concatenate([parts.false[name] for name in ("valid_negatives", "test_negatives")])

    def asked(triples: Any) -> Ids:
        return np.asarray(triples[:, 0], np.int64) * parts.train.n_relations + triples[:, 1]

    rng = np.random.default_rng([seed, 32])
    train, every = (np.asarray(one.array, np.int64) for one in (parts.train, parts.every))
    shuffled = rng.permutation(train)
    questions, first = np.unique(asked(shuffled), return_index=True)
    has_verified = np.isin(questions, asked(false))
    order = np.lexsort((rng.random(len(questions)), ~has_verified))  # those with verified negatives come first
    chosen = np.sort(order[: settings["anchors"]])
    questions, labelled = questions[chosen], shuffled[first[chosen]]

    def pairs(triples: Any) -> ns.Positives:
        listed = triples[np.isin(asked(triples), questions)]
        return ns.Positives.from_pairs(
            np.searchsorted(questions, asked(listed)), listed[:, 2], len(questions), n_entities
        )

    with torch.no_grad():
        head = model.entities[torch.from_numpy(labelled[:, 0])].chunk(2, dim=-1)
        relation = model.relations[torch.from_numpy(labelled[:, 1])].chunk(2, dim=-1)
        real = head[0] * relation[0] - head[1] * relation[1]
        imaginary = head[0] * relation[1] + head[1] * relation[0]
        queries = torch.cat([real, imaginary], dim=-1).numpy()
        items = model.entities.numpy()
    return World(queries, items, labelled[:, 2], pairs(every), folder, verified=pairs(false))


# ---- reviewers -------------------------------------------------------------------------------------------------------


class Stored:
    """MiniLM with the vectors of all texts computed before, in place of a model that encodes them when asked."""

    def __init__(self, world: World) -> None:
        """Look up texts of the world."""
        self.of_side = [dict(zip(*side, strict=True)) for side in zip(world.texts, world.stronger, strict=True)]

    def encode_query(self, texts: list[str], **_: Any) -> Floats:
        """(n, d) the vectors of queries."""
        return np.stack([self.of_side[0][text] for text in texts])

    def encode_document(self, texts: list[str], **_: Any) -> Floats:
        """(n, d) the vectors of documents."""
        return np.stack([self.of_side[1][text] for text in texts])


def reviewers(job: Job) -> list[Any]:
    """Those of an arm, the first one first."""
    world: World = job.world
    listed: list[Any] = []
    for name in job.arm.reviewer.split(", "):
        if name == "truth":
            listed.append(lambda pairs: world.is_positive(pairs.anchors, pairs.items).astype(float))
        else:
            minilm = ns.detectors.Encoder(world.folder / "minilm", device="cpu")
            minilm.model = Stored(world)
            listed.append(minilm)
    return listed


def run(job: Job) -> Found:
    """Mine by one arm."""
    world: World = job.world
    arm: Arm = job.arm
    k, metric = job.settings["k"], job.settings["metric"]
    given = world.queries, world.items, world.labels
    share, answers = None, 0
    if arm.reviewer and not arm.answers:
        listed = ns.mine(*given, LISTED, metric=metric, judge=None)
        says = world.is_positive if arm.reviewer == "truth" else _says_minilm(world)
        ids, scores, answers = of_every_pair(listed, k, lambda pairs: says(pairs.anchors, pairs.items).astype(float))
    else:
        options: dict[str, Any] = {"metric": metric, "judge": arm.judge, "seed": job.seed}
        if arm.reviewer:
            options |= {"reviewer": reviewers(job), "review": arm.answers, "texts": world.texts}
        mined = ns.mine(*given, k, **options)
        ids, scores, share = mined.ids, mined.scores, mined.false_share
        answers = 0 if mined.reviewed is None else len(mined.reviewed)
    found = measured(job, ids, scores, share, answers)
    if world.verified is not None:
        rows, slots = np.nonzero(ids >= 0)
        found["verified"] = float(world.verified.contains(rows, ids[rows, slots]).sum())
    return found


def _says_minilm(world: World) -> Any:
    """Whether MiniLM says yes, with the threshold that `Encoder` would choose."""
    queries, documents = world.stronger
    cosines = (queries * documents[world.labels]).sum(axis=1)
    threshold = np.quantile(cosines, 1 - FOUND)

    def says(anchors: Ids, items: Ids) -> NDArray[np.bool_]:
        return np.asarray((queries[anchors] * documents[items]).sum(axis=1) >= threshold)

    return says


# ---- declarations ----------------------------------------------------------------------------------------------------
ARMS = {
    "oracle": Arm(reviewer="truth"),
    "nearest": Arm(None),
    "share 0.95": Arm("share:0.95"),
    "auto": Arm(),
    "100 answers": Arm(reviewer="truth", answers=100),
    "300 answers": Arm(reviewer="truth", answers=300),
}
BY_MODEL = {
    "100 answers, MiniLM, checked": Arm(reviewer="minilm, truth", answers=100),
    "300 answers, MiniLM, checked": Arm(reviewer="minilm, truth", answers=300),
    "300 answers, MiniLM alone": Arm(reviewer="minilm", answers=300),
    "every pair, MiniLM": Arm(reviewer="minilm"),
}
MEASURES = ("true_share", "too_many", "covered", "told", "half_width", "hardness_lost", "hardness", "answers")
CLAIMS = (
    Claim("100 answers return fewer false negatives than the nearest", "100 answers", "nearest", "true_share", -1),
    Claim("100 answers cost less hardness than auto", "100 answers", "auto", "hardness_lost", -1),
    Claim("100 answers cost less hardness than share 0.95", "100 answers", "share 0.95", "hardness_lost", -1),
)
COMMON = """
Measured on what is returned: the true share of false negatives, whether it is above 7 %, whether the 95 % interval
holds it (an arm that says that it cannot tell counts as covered; "told" counts the others), half the width of the
interval, the mean score and its loss against the oracle, and the answers that were asked for, checks and labelled
positives included. Target 5 %, k = 5, 3,000 anchors, 3 seeds. Nothing was tuned on these worlds; a run with 300 anchors
showed that the program works. With so few seeds, coverage is counted, not estimated."""
ANSWERED = """
Arms: asking a reviewer who is right about each of an anchor's nearest until 5 are left (the oracle); the nearest; share
0.95; judge="auto" by labels; a reviewer who is right, with 100 and 300 answers"""
OF_PACKAGES = f"""\
Static word vectors (wordllama) mine descriptions of Debian packages: the short one is the query, the long ones are the
documents, and a package's own long description is labelled. Packages of one source, or of one long text, belong
together, so the truth is known. {{groups}}
{ANSWERED.strip()}; all-MiniLM-L6-v2 as
`Encoder` with 300 answers, alone ("at most" is claimed then, so that covered means that the truth is not above), and
with its yes answers checked by the one who is right, 100 and 300 answers; MiniLM asked about every pair in the same
way as the oracle. It reads 48 tokens, and says yes from the cosine that three of four labelled positives reach.
{COMMON.strip()}"""
GROUPS = {
    "natural": """\
Nine of ten anchors are the only package of their source, the
others are of sources of 6 to 21 packages.""",
    "rich": "Sources have 3 to 20 packages.",
}
OF_GRAPH = f"""\
CoDEx-S: a head with its relation is the query, all 2,034 entities are the items, ranked by ComplEx (64 dimensions,
1,000 steps on the training triples), by dot product. One training triple of each query is labelled; its other triples,
of all three parts, are the hidden positives. Queries with verified negatives are taken first. The graph is not
complete: a pair that is in no part counts as a true negative, so true shares are lower bounds. "verified" counts
returned negatives that people found to be false triples: hard negatives that a judge should not drop.
{ANSWERED.strip()}, by all three parts.
{COMMON.strip()}"""


def declared(groups: str) -> Study:
    """Packages, by one kind of groups."""
    return Study(
        name=f"review-debian-{groups}",
        protocol=OF_PACKAGES.format(groups=GROUPS[groups]),
        data=("debian-desc", "minilm", "wordllama"),
        world=packages,
        run=run,
        arms={**ARMS, **BY_MODEL},
        seeds=(0, 1, 2),
        measures=MEASURES,
        claims=(
            *CLAIMS,
            Claim(
                "300 checked answers of MiniLM return fewer false negatives than MiniLM asked about every pair",
                "300 answers, MiniLM, checked",
                "every pair, MiniLM",
                "true_share",
                -1,
            ),
        ),
        settings={"anchors": 3000, "k": 5, "metric": "cosine", "groups": groups},
        quick={"anchors": 300},
    )


STUDIES = (
    *(declared(groups) for groups in GROUPS),
    Study(
        name="review-codex",
        protocol=OF_GRAPH,
        data=("codex-s",),
        world=graph,
        run=run,
        arms=ARMS,
        seeds=(0, 1, 2),
        measures=(*MEASURES, "verified"),
        claims=CLAIMS,
        settings={
            "anchors": 3000,
            "k": 5,
            "metric": "dot",
            "data": "codex-s",
            "model": "complex",
            "dim": 64,
            "batch": 1024,
            "every": 500,
            "ranked": 100,
            "steps": 1000,
            "lr": 1e-2,
        },
        quick={"anchors": 300, "dim": 8, "batch": 64, "every": 1, "ranked": 4, "steps": 2},
    ),
)
