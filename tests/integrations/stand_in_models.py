"""Models of fixed vectors, which answer as those of sentence-transformers do."""

from types import SimpleNamespace

import numpy as np


class Encoder:
    """Texts to vectors by a table, or by a seed where a text is in none.

    similarity_fn_name   what the model says that it compares by
    calls                the texts of each call
    """

    device = "cpu"
    model_card_data = SimpleNamespace(base_model=None)
    similarity_fn_name = "cosine"

    def __init__(self, table, cache_key=None):
        self.table = {text: np.asarray(vector, np.float32) for text, vector in table.items()}
        self.calls, self.options = [], []
        if cache_key is not None:
            self.cache_key = cache_key

    def encode(self, texts, normalize_embeddings=False, **options):
        self.calls.append(list(texts))
        self.options.append(options)
        rows = np.stack([self.table[text] for text in texts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) if normalize_embeddings else rows

    encode_query = encode_document = encode

    def get_embedding_dimension(self):
        return len(next(iter(self.table.values())))

    def similarity(self, left, right):
        import torch

        left, right = (torch.nn.functional.normalize(torch.as_tensor(side), dim=1) for side in (left, right))
        return left @ right.T

    def similarity_pairwise(self, left, right):
        import torch

        left, right = (torch.nn.functional.normalize(torch.as_tensor(side), dim=1) for side in (left, right))
        return (left * right).sum(dim=1)


class Scorer:
    """A cross-encoder: pairs of texts to numbers, by a function."""

    def __init__(self, score):
        self.score, self.calls = score, []

    def predict(self, pairs, convert_to_tensor=False, **options):
        self.calls.append(list(pairs))
        scores = np.array([self.score(*pair) for pair in pairs], np.float32)
        if not convert_to_tensor:
            return scores
        import torch

        return torch.from_numpy(scores)


def on_a_circle(**degrees):
    """{text: unit vector at an angle}: the smaller the angle between two, the higher their cosine."""
    return {text: (np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))) for text, angle in degrees.items()}


def random_table(texts, seed, width=6):
    """{text: a random vector}, in the precision in which a model answers."""
    rng = np.random.default_rng(seed)
    return {text: rng.standard_normal(width).astype(np.float32) for text in texts}
