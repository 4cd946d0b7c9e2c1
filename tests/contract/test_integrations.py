"""Other frameworks: the drop-in of sentence-transformers, refreshed negatives, masked losses, PyG, metric learning."""

import math
import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import accelerate  # noqa: F401  (trainers need it)
    import datasets
    import tokenizers
    import torch
    import transformers
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

import naysay as ns
from naysay.integrations import metric_learning, pyg
from naysay.integrations import sentence_transformers as st_side
from tests.contract import names, oracles

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:'pin_memory':UserWarning"
)
N = 24
WORDS = ["[UNK]", *(f"w{row}" for row in range(2 * N))]
ANCHORS, POSITIVES = [f"w{row}" for row in range(N)], [f"w{row + N} w{row}" for row in range(N)]


def word_vectors(seed=0):
    """A model of one table of word vectors, which trains in milliseconds."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: row for row, word in enumerate(WORDS)}, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    table = torch.randn(len(WORDS), 8, generator=torch.Generator().manual_seed(seed))
    return SentenceTransformer(modules=[StaticEmbedding(words, embedding_weights=table.numpy())], device="cpu")


def texts_of(features):
    ends = [*features["offsets"].tolist()[1:], len(features["input_ids"])]
    return [
        " ".join(WORDS[word] for word in features["input_ids"][start:end].tolist())
        for start, end in zip(features["offsets"].tolist(), ends, strict=True)
    ]


class Recorded(losses.MultipleNegativesRankingLoss):
    """The loss, with the texts of each batch: seen[step][column][row]."""

    def __init__(self, model):
        super().__init__(model)
        self.seen = []

    def forward(self, sentence_features, labels):
        features = list(sentence_features)
        self.seen.append([texts_of(column) for column in features])
        return super().forward(features, labels)


class Weights(transformers.TrainerCallback):
    """The table at the beginning of each epoch."""

    def __init__(self):
        self.at = []

    def on_epoch_begin(self, args, state, control, model=None, **given):
        self.at.append(model[0].embedding.weight.detach().clone())


def trained(folder, callbacks, loss, **options):
    settings = {"num_train_epochs": 2, "per_device_train_batch_size": 8, "learning_rate": 0.3, "save_strategy": "no"}
    settings |= {"report_to": "none", "disable_tqdm": True, "logging_strategy": "no", "use_cpu": True}
    args = SentenceTransformerTrainingArguments(str(folder), **(settings | options))
    data = datasets.Dataset.from_dict({"anchor": ANCHORS, "positive": POSITIVES})
    run = SentenceTransformerTrainer(loss.model, args, train_dataset=data, loss=loss, callbacks=callbacks)
    run.train()
    return run


def nearest_texts(table, k):
    """{anchor: its k nearest documents that are not its positive}, in plain loops."""
    vectors = {
        text: torch.stack([table[WORDS.index(word)] for word in text.split()]).mean(0).double().numpy()
        for text in (*ANCHORS, *POSITIVES)
    }
    found = {}
    for anchor, own in zip(ANCHORS, POSITIVES, strict=True):
        others = [text for text in POSITIVES if text != own]
        others.sort(key=lambda text, anchor=anchor: -oracles.pair_score64(vectors[anchor], vectors[text]))
        found[anchor] = others[:k]
    return found


# ---- sentence-transformers ------------------------------------------------------------------------------------------


class Encoder:
    """Texts to fixed vectors, as a SentenceTransformer answers."""

    device = "cpu"
    similarity_fn_name = "cosine"

    def __init__(self, table):
        self.table = table

    def encode(self, texts, normalize_embeddings=False, **options):
        rows = np.stack([self.table[text] for text in texts]).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) if normalize_embeddings else rows

    encode_query = encode_document = encode


@pytest.mark.parametrize("margin", [None, 0.1])
def test_the_drop_in_gives_the_negatives_of_plain_loops(margin):
    rng = np.random.default_rng(0)
    anchors, positives = [f"q{row}" for row in range(20)], [f"d{row}" for row in range(20)]
    table = {text: rng.standard_normal(6).astype(np.float32) for text in (*anchors, *positives)}
    found = st_side.mine_hard_negatives(
        {"anchor": anchors, "positive": positives},
        Encoder(table),
        num_negatives=3,
        absolute_margin=margin,
        output_format="triplet",
        verbose=False,
    ).to_pydict()
    wanted = []
    for anchor, own in zip(anchors, positives, strict=True):
        scores = {text: oracles.pair_score(table[anchor], table[text]) for text in positives}
        others = [text for text in positives if text != own]
        if margin is not None:
            others = [text for text in others if scores[text] + np.float32(margin) <= scores[own]]
        others.sort(key=lambda text, scores=scores: -scores[text])
        wanted += [(anchor, own, text) for text in others[:3]]
    assert list(zip(found["anchor"], found["positive"], found["negative"], strict=True)) == wanted


def test_refreshed_negatives_are_those_of_the_model_at_the_start_of_each_epoch(tmp_path):
    weights, loss = Weights(), Recorded(word_vectors())
    trained(tmp_path, [weights, st_side.RefreshNegatives("epoch", 2, judge=None)], loss)
    assert len(loss.seen) == 6
    for step, (anchors, _, *negatives) in enumerate(loss.seen):
        wanted = nearest_texts(weights.at[step // 3], 2)
        for row, anchor in enumerate(anchors):
            assert [column[row] for column in negatives] == wanted[anchor]
    assert nearest_texts(weights.at[0], 2) != nearest_texts(weights.at[1], 2)


def test_planned_batches_are_those_of_the_trainer(tmp_path):
    plan = ns.batches.Shuffled(N, 8, forbid=[row // 2 for row in range(N)])
    loss = Recorded(word_vectors())
    trained(tmp_path, [], loss, num_train_epochs=1, seed=5, batch_sampler=st_side.batch_sampler(plan))
    wanted = [batch[batch >= 0].tolist() for batch in plan.plan(0, rng=ns.rng_for(5, 0))]
    assert [[ANCHORS.index(anchor) for anchor in batch[0]] for batch in loss.seen] == wanted


class Table(torch.nn.Sequential):
    """One vector per row of a table, with what these losses use of a SentenceTransformer."""

    def __init__(self, rows):
        super().__init__(torch.nn.Identity())
        self.table = torch.nn.Parameter(torch.randn(rows, 5, generator=torch.Generator().manual_seed(0)).double())

    def forward(self, features):
        return {"sentence_embedding": self.table[features["input_ids"][:, 0]]}


@pytest.mark.parametrize(
    ("judge", "suspected"),
    [
        (names.max_score_judge(2), lambda own, score: False),
        ("share:0.9", lambda own, score: score > own - 0.1 * abs(own)),
        (names.MaxScore(0.3), lambda own, score: score >= 0.3),
    ],
    ids=["nothing", "share", "threshold"],
)
def test_suspected_cells_leave_the_loss(judge, suspected):
    model = Table(18)
    loss = st_side.mask_false_negatives(losses.MultipleNegativesRankingLoss(model, scale=7.0), judge)
    features = [{"input_ids": torch.arange(6)[:, None] + 6 * column} for column in range(3)]
    found = loss(features, None).item()
    unit = [(row / row.norm()).detach() for row in model.table]
    total, masked = 0.0, 0
    for i in range(6):
        own = float(unit[i] @ unit[6 + i])
        terms = [math.exp(7 * own)]
        for j in range(12):
            score = float(unit[i] @ unit[6 + j])
            is_masked = j % 6 != i and suspected(own, score)  # the row's own hard negative is not judged
            if j != i and not is_masked:
                terms.append(math.exp(7 * score))
            masked += is_masked
        total += math.log(math.fsum(terms)) - 7 * own
    assert found == pytest.approx(total / 6, rel=1e-9)
    assert int(loss.false_negatives.masked) == masked


# ---- PyTorch Geometric ----------------------------------------------------------------------------------------------


def test_non_edges_are_exact_and_as_many_as_exist():
    edges = torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]])
    possible = {(i, j) for i in range(5) for j in range(5) if i != j} - set(map(tuple, edges.T.tolist()))
    for wanted in (3, 10, 100):
        drawn = pyg.negative_sampling(edges, 5, wanted, generator=torch.Generator().manual_seed(0))
        found = [tuple(pair) for pair in drawn.T.tolist()]
        assert set(found) <= possible
        assert len(set(found)) == len(found) == min(wanted, len(possible))
    i, j, k = pyg.structured_negative_sampling(edges, 5)
    known = set(map(tuple, edges.T.tolist()))
    assert not known & set(zip(i.tolist(), k.tolist(), strict=True))
    assert torch.equal(torch.stack([i, j]), edges)


# ---- pytorch-metric-learning ----------------------------------------------------------------------------------------


def labelled_batch():
    rng = np.random.default_rng(0)
    vectors = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(12, 5)))).requires_grad_()
    return vectors, torch.from_numpy(rng.integers(0, 3, 12))


def test_a_sampler_is_a_miner_of_triplets():
    from pytorch_metric_learning import miners

    vectors, labels = labelled_batch()
    ours = metric_learning.SamplerMiner(lambda pool, s: ns.samplers.SemiHard(pool, s, candidates=99, margin=0.3), k=30)
    theirs = miners.TripletMarginMiner(margin=0.3, type_of_triplets="semihard")
    found, wanted = (
        set(zip(*(part.tolist() for part in miner(vectors, labels)), strict=True)) for miner in (ours, theirs)
    )
    assert found == wanted
    assert found


def test_a_loss_over_slots_is_a_loss_of_the_package():
    vectors, labels = labelled_batch()
    value = metric_learning.SlotLoss(ns.losses.info_nce)(vectors, labels)
    value.backward()
    assert torch.isfinite(value)
    assert vectors.grad.abs().sum() > 0


# ---- Lightning, whose own package is tested in an environment of its own --------------------------------------------


def test_the_callback_of_lightning_passes_a_step_to_the_monitor(monkeypatch):
    import sys
    import types

    package = types.ModuleType("lightning.pytorch")
    package.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "lightning.pytorch", package)
    from naysay.integrations.lightning import monitor_callback

    seen = []
    callback = monitor_callback(ns.difficulty.Monitor(seen.append))
    step = {
        "query": ns.Query([0, 1], step=3),
        "negatives": ns.Negatives(np.array([[4, 5], [6, 7]])),
        "scores": np.ones((2, 2)),
        "positive_scores": np.zeros(2),
    }
    callback.on_train_batch_end(types.SimpleNamespace(loggers=[], global_step=9), None, {"naysay": step}, None, 0)
    assert seen[0]["step"] == 3
