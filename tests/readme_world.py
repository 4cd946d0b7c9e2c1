"""What the code of the README finds: pairs.csv, and a model in place of one of the Hugging Face hub."""

import csv

import numpy as np

from naysay.demo import read_library, tutorial

NAME = "all-MiniLM-L6-v2"


def prepare(folder, monkeypatch):
    """Write pairs.csv, and make `SentenceTransformer(NAME)` a table of word vectors."""
    pairs = tutorial.Pairs(read_library().documents[:1500], seed=0)
    rows = [(question, pairs.passages[label]) for question, label in zip(pairs.questions, pairs.labels, strict=True)]
    with (folder / "pairs.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("question", "answer"), *rows])

    import sentence_transformers
    import tokenizers
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    words = sorted({word for row in rows for text in row for word in text.lower().split()})
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: row for row, word in enumerate(["[UNK]", *words])}, "[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    table = np.random.default_rng(0).normal(size=(len(words) + 1, 64)).astype(np.float32)
    model_class = sentence_transformers.SentenceTransformer

    def model(name):
        assert name == NAME
        return model_class(modules=[StaticEmbedding(tokenizer, embedding_weights=table)], device="cpu")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", model)
