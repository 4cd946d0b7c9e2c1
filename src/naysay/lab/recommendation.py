"""Recommendation: interactions in three parts, matrix factorisation or LightGCN, ranked by recall and NDCG."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.functional import embedding

from naysay._interactions import as_times, liked_rows, read_interaction_file
from naysay.arrays import to_numpy, to_torch
from naysay.checks import (
    as_floats,
    check_lengths,
    check_number,
    check_one_of,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.errors import NaysayError
from naysay.lab._data import (
    PARTS,
    File,
    Ids,
    Parts,
    at_most_anchors,
    check_parts,
    checksum,
    ids_of,
    keep_new_pairs,
    pairs_by_part,
    part_files,
    sizes_of_parts,
)
from naysay.lab._task import (
    ADAPTIVE_K,
    HELD_OUT,
    NUMBERS,
    Device,
    PairLearner,
    Step,
    Task,
    uses,
)
from naysay.lab.ranking import ranking
from naysay.losses import all_items
from naysay.positives import Positives
from naysay.samplers import in_blocks
from naysay.text import counted

HOPS = {"mf": 0, "lightgcn": 2}
# Weight decay. Propagation smooths by itself, and gradients are spread over many users: results/claims_samplers.json.
_DECAYS = {"mf": 1e-6, "lightgcn": 1e-8}
_TOP = 20
BANDS = ("head", "middle", "tail")  # of items, by how popular they are
_FEWEST_BY_TIME = 10  # pairs: the last two tenths have one each
_VALIDATED = 2000  # users that are ranked for validation; the test ranks all


# ---- data ------------------------------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, eq=False)
class Interactions:
    """The pairs of users and items in three parts, over the same ids.

    Held-out pairs whose user or item is in no training pair are left out, because no factorisation can rank them; a
    note counts them. A pair that is in two parts stays in the earlier one.

    Args:
        train: Pairs to train on.
        validation: Pairs that choose the learning rate and the best step.
        test: Pairs that are measured once.
        notes: Sentences about the data.

    Raises:
        NaysayError: If sizes differ, or a part is empty, also after leaving out.

    Examples:
        >>> import naysay as ns
        >>> parts = [ns.Positives.from_pairs([0, 1, 0], [0, 1, 2], 2, 3)]
        >>> parts += [ns.Positives.from_pairs([user], [1 - user], 2, 3) for user in (0, 1)]
        >>> ns.lab.Interactions(*parts)
        Interactions(2 users, 3 items, train 3 pairs, validation 1 pair, test 1 pair)
    """

    train: Positives
    validation: Positives
    test: Positives
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parts(self, Positives, "pair")
        users_seen, items_seen = self.train.count() > 0, self.train.item_counts() > 0
        keep_new_pairs(
            self,
            "at least one pair of a user and an item that training has, and that is in no earlier part",
            lambda users, items: {
                "items that training never saw": ~items_seen[items],
                "users that training never saw": ~users_seen[users],
            },
        )

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.train.n_anchors

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.train.n_items

    def fingerprint(self) -> str:
        """A checksum of all pairs, 16 digits."""
        sizes = f"{self.n_users} {self.n_items}"
        return checksum(sizes, *(ids for name in PARTS for ids in getattr(self, name).pairs()))

    def __repr__(self) -> str:
        sizes = f"{counted(self.n_users, 'user')}, {counted(self.n_items, 'item')}"
        return f"Interactions({sizes}, {sizes_of_parts(self, 'pair')})"


@public
def split_by_user(
    users: ArrayLike, items: ArrayLike, n_users: int | None = None, n_items: int | None = None, *, seed: int = 0
) -> Interactions:
    """Hold out a tenth of each user's pairs for validation and a tenth for the test, at random.

    Tenths are rounded down, but a user of three pairs or more has at least one in each part. A user of one or two pairs
    has them all in training.

    Args:
        users: (n,) ids from 0.
        items: (n,) ids from 0. Repeated pairs count once.
        n_users: By default the largest id plus one.
        n_items: By default the largest id plus one.
        seed: Of the choice.

    Raises:
        NaysayError: If no user has three pairs.

    Examples:
        >>> users, items = np.repeat(range(6), 10), [*range(10)] * 6
        >>> split_by_user(users, items)
        Interactions(6 users, 10 items, train 48 pairs, validation 6 pairs, test 6 pairs)
    """
    return Interactions(*_parts_by_user(users, items, n_users, n_items, seed=seed))


def _parts_by_user(users: Any, items: Any, n_users: int | None, n_items: int | None, *, seed: int) -> Parts:
    """The three parts of `split_by_user`, with the held-out pairs that cannot be ranked."""
    pairs = Positives.from_pairs(_ids("users", users), _ids("items", items), n_users, n_items)
    pair_users, pair_items = pairs.pairs()
    counts = pairs.count()
    if not (counts >= 3).any():
        got = f"at most {counts.max() if len(counts) else 0} for each of {counted(len(counts), 'user')}"
        raise_invalid("users", "at least three pairs of one user, for a split by user", got)
    order = np.lexsort((np.random.default_rng(seed).random(len(pair_users)), pair_users))
    place = np.arange(len(pair_users)) - pairs.indptr[:-1][pair_users]  # among the pairs of the user
    held_out = np.where(counts >= 3, np.maximum(1, counts // 10), 0)[pair_users]
    part = np.where(place < held_out, 1, np.where(place < 2 * held_out, 2, 0))
    return pairs_by_part(pair_users, pair_items[order], part, pairs)


@public
def split_by_time(users: ArrayLike, items: ArrayLike, times: ArrayLike) -> Interactions:
    """Train on the earliest eight tenths of all pairs, validate on the next tenth, and test on the last tenth.

    Of repeated pairs the earliest counts. Pairs of equal time stay in the order given.

    Args:
        users: (n,) ids from 0.
        items: (n,) ids from 0.
        times: (n,) numbers.

    Raises:
        NaysayError: If there are fewer than ten different pairs.

    Examples:
        >>> users, items = np.repeat(range(6), 10), [*range(10)] * 6
        >>> split_by_time(users, items, times=np.arange(60) % 7)
        Interactions(6 users, 10 items, train 48 pairs, validation 6 pairs, test 6 pairs)
    """
    user_ids, item_ids, numbers = _ids("users", users), _ids("items", items), as_floats("times", times)
    check_lengths(users=len(user_ids), items=len(item_ids), times=len(numbers))
    pairs = Positives.from_pairs(user_ids, item_ids)
    by_time = np.argsort(numbers, kind="stable")
    earliest = np.unique((user_ids * pairs.n_items + item_ids)[by_time], return_index=True)[1]
    order = by_time[np.sort(earliest)]
    if len(order) < _FEWEST_BY_TIME:
        raise_invalid("users", "at least ten different pairs, for a split by time", len(order))
    tenth = len(order) // 10
    part = np.repeat([0, 1, 2], [len(order) - 2 * tenth, tenth, tenth])
    return Interactions(*pairs_by_part(user_ids[order], item_ids[order], part, pairs))


def _ids(parameter: str, values: Any) -> Ids:
    return whole_numbers(parameter, to_numpy(values)).astype(np.int64)


@public
def read_interactions(
    path: File,
    *,
    validation: File | None = None,
    test: File | None = None,
    split: str = "auto",
    liked: float | None = None,
    seed: int = 0,
) -> Interactions:
    r"""Read a file of interactions, and split it.

    A table is .parquet, .jsonl, .csv, .tsv or .inter (RecBole: tabs, and headings such as user_id:token). Columns are
    found by their names: user or user_id (or anchor), item or item_id (or positive), and if there are any timestamp or
    time, and rating. A .csv, .tsv, .data or .txt file may lack headings: its columns are then user, item, rating and
    time, as in MovieLens's u.data; a third column of numbers above a million is of times. A .txt file without tabs or
    commas has a line "user item item ..." for each user, as LightGCN's train.txt. A note says how such a file was read.
    Ids are whole numbers or strings.

    Args:
        path: All interactions, or those to train on if `test` is given.
        validation: The interactions for validation; if only `test` is given, a tenth of each user's training pairs.
        test: The interactions for the test.
        split: "user" holds out a tenth of each user's pairs twice, "time" the last two tenths of all pairs. "auto" is
            "time" if there is a column of times and training knows user and item of at least half of the held-out
            pairs, else "user". Not used if the parts are given.
        liked: If given, only rows with a rating of at least this are positives.
        seed: Of the split by user.

    Raises:
        NaysayError: If a file or column is missing, a value is not valid, or there are too few pairs for the split.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "clicks.csv"
        ...     _ = file.write_text("user,item\n" + "".join(f"u{n % 6},i{n // 6}\n" for n in range(60)))
        ...     read_interactions(file)
        Interactions(6 users, 10 items, train 48 pairs, validation 6 pairs, test 6 pairs)
    """
    check_one_of("split", split, ("auto", "user", "time"))
    files = part_files(path, validation, test)
    if liked is not None:
        check_number("liked", liked, finite=True)
    read = [read_interaction_file(name, file) for name, file in files.items()]
    parts, notes = [part for part, _ in read], [note for _, note in read if note]
    if liked is not None:
        parts = [liked_rows(part, liked) for part in parts]
    elif "rating" in parts[0]:
        notes.append("Ratings are not used: every row is a positive. Pass `liked` to keep high ratings only.")
    users, items = (ids_of(name, [part[name] for part in parts])[0] for name in ("user", "item"))
    if test is not None:
        return _of_files(users, items, notes, seed)
    data = _split(users[0], items[0], parts[0].get("time"), split, seed)
    object.__setattr__(data, "notes", (*notes, *data.notes))
    return data


def _of_files(users: list[Ids], items: list[Ids], notes: list[str], seed: int) -> Interactions:
    """The parts of two or three files; validation is made of the training pairs if there are two."""
    sizes = [1 + max(int(ids.max()) for ids in side) for side in (users, items)]
    train, *held_out = (Positives.from_pairs(*pair, *sizes) for pair in zip(users, items, strict=True))
    if len(held_out) == 1:
        kept, validation, also_kept = _parts_by_user(*train.pairs(), *sizes, seed=seed)
        return Interactions(kept.union(also_kept), validation, held_out[0], tuple(notes))
    return Interactions(train, held_out[0], held_out[1], tuple(notes))


def _split(users: Ids, items: Ids, times: Any, split: str, seed: int) -> Interactions:
    """The interactions in three parts; with "auto", a note says why they are not split by their times."""
    if split == "time" and times is None:
        raise_invalid("split", "'user' for a table without a column of times", "'time'", "Call the column timestamp.")
    if split == "user" or times is None:
        return split_by_user(users, items, seed=seed)
    numbers = as_times(times)
    if split == "time":
        return split_by_time(users, items, numbers)
    later = 2 * (len(Positives.from_pairs(users, items)) // 10)
    try:
        by_time = split_by_time(users, items, numbers)
        known = len(by_time.validation) + len(by_time.test)
    except NaysayError:  # too few pairs, or a part of which training knows none
        known = 0
    if 2 * known >= later > 0:
        return by_time
    by_user = split_by_user(users, items, seed=seed)
    note = f"Split by user: training would know user and item of only {known:,} of {later:,} later pairs."
    object.__setattr__(by_user, "notes", (note, *by_user.notes))
    return by_user


# ---- model -----------------------------------------------------------------------------------------------------------


class SparseMatrix:
    """A matrix (n, m) of sparse rows, times vectors (m, d): `matrix @ vectors`, with gradients of the vectors."""

    def __init__(self, rows: Ids, columns: Ids, weights: Any, shape: tuple[int, int], device: Device) -> None:
        self.matrix = _sparse_rows(rows, columns, weights, shape, device)
        self.transposed = _sparse_rows(columns, rows, weights, shape[::-1], device)

    def __matmul__(self, vectors: Tensor) -> Tensor:
        multiply: Any = _SparseProduct.apply
        product: Tensor = multiply(self.matrix, self.transposed, vectors)
        return product


class _SparseProduct(torch.autograd.Function):
    """torch would transpose the matrix in every backward pass: four times the cost."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, vectors: Tensor) -> Tensor:
        """The product."""
        ctx.transposed = transposed
        return matrix @ vectors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        """The product with the transpose."""
        return None, None, ctx.transposed @ gradients[0]


def _sparse_rows(rows: Ids, columns: Ids, weights: Any, shape: tuple[int, int], device: Device) -> Tensor:
    places = torch.from_numpy(np.stack([rows, columns]).astype(np.int64))
    values = torch.from_numpy(np.asarray(weights, np.float32))
    with warnings.catch_warnings():  # torch says once a process that its sparse rows are young
        warnings.simplefilter("ignore")
        return torch.sparse_coo_tensor(places, values, shape).coalesce().to_sparse_csr().to(device)


class LightGCN(nn.Module):
    """A vector for each user and item, passed along the edges of the training data.

        e(l + 1) = D^-1/2 A D^-1/2 e(l)        score(user, item) = mean over l of e_user . mean over l of e_item

    With 0 hops it is matrix factorisation. He, Deng, Wang, Li, Zhang, Wang. LightGCN. SIGIR 2020.
    """

    def __init__(self, train: Positives, seed: int, *, dim: int = 64, hops: int = 2, device: Device = "cpu") -> None:
        super().__init__()
        self.hops = hops
        nodes = train.n_anchors + train.n_items
        self.graph = _normalised_graph(train, nodes, device) if hops else None
        random = torch.Generator().manual_seed(seed)
        self.vectors = nn.Parameter((0.1 * torch.randn(nodes, dim, generator=random)).to(device))

    def layers(self) -> Tensor:
        """(users + items, hops + 1, dim), layer 0 first."""
        if self.graph is None:
            return self.vectors[:, None]
        layers: list[Tensor] = [self.vectors]
        for _ in range(self.hops):
            layers.append(self.graph @ layers[-1])
        return torch.stack(layers, dim=1)


def _normalised_graph(train: Positives, nodes: int, device: Device) -> SparseMatrix:
    """D^-1/2 A D^-1/2 of the pairs, in both directions."""
    users, items = train.pairs()
    items = items + train.n_anchors
    rows, columns = np.concatenate([users, items]), np.concatenate([items, users])
    degree = np.maximum(np.bincount(rows, minlength=nodes), 1)
    weights = 1 / np.sqrt(degree[rows] * degree[columns])
    return SparseMatrix(rows, columns, weights, (nodes, nodes), device)


# ---- task ------------------------------------------------------------------------------------------------------------


@final
@public
class Recommendation(Task):
    """The task of ranking items for users: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of training pairs, k negatives for each, and minimises `losses.info_nce` at temperature 1,
    which is BPR for k = 1. Validation ranks 2,000 users at most; items of the training part are left out, for the test
    those of the validation part, too. The test also has the recall of the head, the middle and the tail: items
    sorted by training pairs, a third of all pairs in each.

    Args:
        data: The interactions.
        model: "mf" for matrix factorisation, or "lightgcn" with two hops.
        dim: The number of coordinates of a vector.
        batch: Pairs of a step; by default a hundredth of the training pairs, rounded to a power of two from 256 to
            4,096, and at most all.
        device: Where torch keeps the vectors and trains, such as "cuda". Draws and ranks are made on the processor.

    Examples:
        >>> import naysay as ns
        >>> task = Recommendation(ns.lab.split_by_user([0] * 9 + [1] * 9, [*range(9)] * 2))
        >>> task.measure, task.pairs, task.batch
        ('recall@20', 14, 14)
    """

    name = "recommendation"
    models = tuple(HOPS)
    measure = f"recall@{_TOP}"
    methods: Mapping[str, str] = MappingProxyType(
        {
            "whole-data": "whole_data(weight=0.1)",
            **ADAPTIVE_K,
            "learned": "Learned(pool, generator, generator_optimizer, sigmoid_score, candidates=64)",
            "IRGAN": (
                "with_loss(Learned(Everything(positives), generator, generator_optimizer, sigmoid_score), sampled_bce)"
            ),
            "markov-chain": "MarkovChain(positives, probability, power=0.25)",
        }
    )
    quick_steps = 160
    quick = ("uniform:8", "popularity:8", "dynamic:8", "softmax-weights:8")
    # MixGCF is left out: with 8 negatives it would take most of the time of all arms together.
    defaults = (
        *("uniform:8", "popularity:8", "dynamic:8", "dynamic-softmax:8"),
        *("warp:8", "softmax-weights:8", "whole-data"),
    )

    def __init__(
        self,
        data: Interactions,
        model: str = "mf",
        *,
        dim: int = 64,
        batch: int | None = None,
        device: Device = "cpu",
    ) -> None:
        """Keep the parts of the data in the forms that training needs."""
        super().__init__(data, Interactions, model, device)
        self.dim, self.decay = check_whole("dim", dim, 1), _DECAYS[model]
        self.known = data.train
        self.users, self.items = data.train.pairs()
        self.set_batch(len(data.train), batch)
        self.held = data.validation.union(data.test)
        self.validated = at_most_anchors(data.validation, _VALIDATED)
        validated, tested = (int((part.count() > 0).sum()) for part in (self.validated, data.test))
        self.test_work = tested / validated
        self.ranked = f"Validation ranks all items for {validated:,} users, the test for {tested:,}."
        self.bands = _by_popularity(data)
        self.sizes = {"dim": self.dim, "candidates": NUMBERS["candidates"], "false negatives": HELD_OUT}

    def pairs_of(self, rows: Ids) -> tuple[Ids, Ids]:
        """The users and the items of some training pairs."""
        return self.users[rows], self.items[rows]

    def start(self, seed: int) -> Recommender:
        """A model before training, the same for equal seeds."""
        return Recommender(self, seed)


def _by_popularity(data: Interactions) -> dict[str, Positives]:
    """{band: test pairs} of the most popular items, of those in the middle, and of the rest.

    Each band has items with a third of the training pairs. An item is in one band.
    """
    counts = data.train.item_counts()
    order = np.argsort(-counts, kind="stable")
    share_before = (np.cumsum(counts[order]) - counts[order]) / counts.sum()
    band = np.empty(data.n_items, np.int64)
    band[order] = np.minimum(len(BANDS) * share_before, len(BANDS) - 1).astype(np.int64)
    users, items = data.test.pairs()
    sizes = data.n_users, data.n_items
    return {
        name: Positives.from_pairs(users[band[items] == place], items[band[items] == place], *sizes)
        for place, name in enumerate(BANDS)
    }


@final
class Recommender(PairLearner):
    """A model of `Recommendation` in training."""

    def __init__(self, task: Recommendation, seed: int) -> None:
        self.task, self.seed = task, seed
        self.network: LightGCN = LightGCN(
            task.data.train, seed, dim=task.dim, hops=HOPS[task.model], device=task.device
        )
        self.first = task.data.n_users
        self.encode()

    def encode(self) -> None:
        """See `PairLearner.encode`."""
        self.layers = self.network.layers()
        self.vectors = self.layers.mean(dim=1) if self.network.hops else self.network.vectors
        self.table = self.vectors.detach()

    def similarity(self, positives: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the products of items (B, n) and items (B,), without gradients."""
        return self.score(positives + self.first, ids)

    def embed(self, ids: Tensor) -> Tensor:
        """(..., layers, dim) the vectors of items at each layer, with gradients."""
        flat = embedding(ids + self.first, self.layers.flatten(1))
        return flat.view(*ids.shape, *self.layers.shape[1:])

    def parts(self) -> dict[str, Any]:
        """See `Learner.parts`."""
        return {
            **super().parts(),
            "similarity": in_blocks(self.similarity),
            "embed": self.embed,
            "embed_anchors": lambda users: self.table[users],
            "item_vectors": self.table[self.first :],
            "whole_data": self._whole_data,
            "scale": max(1.0, 0.1 * self.task.data.n_items),
        }

    def after_step(self, *, epoch_ends: bool) -> None:
        """See `Learner.after_step`. A sampler that ranks items by their vectors gets those that have moved."""
        super().after_step(epoch_ends=epoch_ends)
        sampler = self._drawn[0]
        if getattr(sampler, "due", False):
            sampler.update(self.table[self.first :])

    def _whole_data(self, weight: float) -> Step:
        """A step without sampling: `losses.all_items`, each user's loss spread over the user's training pairs."""
        known = self.task.data.train
        counts = to_torch(known.count(), self.task.device)

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, None]:
            query = self.query(rows, step)
            values = all_items(query.vectors, self.vectors[self.first :], (known, query.anchors), weight=weight)
            return (values / counts[query.anchors]).mean(), None

        return uses("all", step_of)

    def measured(self, part: str) -> dict[str, float]:
        """See `Learner.measured`."""
        self.encode()
        data = self.task.data
        known, wanted = data.train, self.task.validated
        if part == "test":
            known, wanted = data.train.union(data.validation), data.test
        users, items = self.table[: self.first], self.table[self.first :]
        ranks = ranking(users, wanted, items=items, known=known)
        measures = {
            self.task.measure: ranks.recall(_TOP),
            f"ndcg@{_TOP}": ranks.ndcg(_TOP),
            "mrr": ranks.mrr,
            "auc": ranks.auc,
        }
        bands = self.task.bands if part == "test" else {}
        for band, pairs_of_band in bands.items():
            if len(pairs_of_band):
                ranks_of_band = ranking(users, pairs_of_band, items=items, known=known)
                measures[f"{self.task.measure}, {band}"] = ranks_of_band.recall(_TOP)
        return measures
