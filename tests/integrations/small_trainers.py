"""A model of word vectors that trains in milliseconds, its training set, and trainers of the real package."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import accelerate  # noqa: F401  (trainers fail without it)
    import datasets
    import tokenizers
    import torch
    import transformers
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )

    try:
        from sentence_transformers.sentence_transformer import losses
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    except ModuleNotFoundError:  # before 6.0
        from sentence_transformers import losses
        from sentence_transformers.models import StaticEmbedding

N = 24
WORDS = ["[UNK]", *(f"w{row}" for row in range(2 * N))]
ANCHORS, POSITIVES = [f"w{row}" for row in range(N)], [f"w{row + N} w{row}" for row in range(N)]
QUIET = ("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:'pin_memory':UserWarning")


def word_vectors(seed=0):
    """A SentenceTransformer of one table."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: row for row, word in enumerate(WORDS)}, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    table = torch.randn(len(WORDS), 8, generator=torch.Generator().manual_seed(seed))
    return SentenceTransformer(modules=[StaticEmbedding(words, embedding_weights=table.numpy())], device="cpu")


def training_set(**columns):
    return datasets.Dataset.from_dict({"anchor": ANCHORS, "positive": POSITIVES, **columns})


class Recorded(losses.MultipleNegativesRankingLoss):
    """The loss, with the texts of each batch: seen[step][column][row]."""

    def __init__(self, model):
        super().__init__(model)
        self.seen = []

    def forward(self, sentence_features, labels):
        features = list(sentence_features)
        self.seen.append([texts_of(column) for column in features])
        return super().forward(features, labels)


def texts_of(features):
    """The texts of the input of a StaticEmbedding: all words, and where each text begins."""
    ends = [*features["offsets"].tolist()[1:], len(features["input_ids"])]
    return [
        " ".join(WORDS[word] for word in features["input_ids"][start:end].tolist())
        for start, end in zip(features["offsets"].tolist(), ends, strict=True)
    ]


class Weights(transformers.TrainerCallback):
    """The table of vectors at the beginning of each epoch, and after each step."""

    def __init__(self):
        self.at = {}

    def on_epoch_begin(self, args, state, control, model=None, **given):
        self.at.setdefault(state.global_step, model[0].embedding.weight.detach().clone())

    def on_step_end(self, args, state, control, model=None, **given):
        self.at[state.global_step] = model[0].embedding.weight.detach().clone()


def arguments(folder, **options):
    given = {"num_train_epochs": 3, "per_device_train_batch_size": 8, "learning_rate": 0.3, "save_strategy": "no"}
    given |= {"report_to": "none", "disable_tqdm": True, "logging_strategy": "no", "use_cpu": True}
    return SentenceTransformerTrainingArguments(str(folder), **(given | options))


def trainer(folder, callbacks, dataset=None, loss=None, **options):
    loss = Recorded(word_vectors()) if loss is None else loss
    dataset = training_set() if dataset is None else dataset
    return SentenceTransformerTrainer(
        loss.model, arguments(folder, **options), train_dataset=dataset, loss=loss, callbacks=callbacks
    )


def nearest(table, k, anchors=ANCHORS, positives=POSITIVES):
    """{anchor: its k nearest documents by cosine that are not its positive}, in plain loops."""
    vector = {
        text: torch.stack([table[WORDS.index(word)] for word in text.split()]).mean(0).double()
        for text in (*anchors, *positives)
    }
    found = {}
    for anchor, own in zip(anchors, positives, strict=True):
        scores = {
            text: float(torch.cosine_similarity(vector[anchor], vector[text], dim=0))
            for text in dict.fromkeys(positives)
            if text != own
        }
        found[anchor] = sorted(scores, key=scores.get, reverse=True)[:k]
    return found
