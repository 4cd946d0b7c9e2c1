"""Time one call of ``mine_hard_negatives``: sentence-transformers' own, with torch or faiss, or ours.

All in one environment. The model is a stand-in that looks fixed vectors up, so that nothing but the mining is timed:
pairs of texts in, a ``datasets.Dataset`` of (anchor, positive, negative_1 .. negative_k) out. The rows of the last call
go to CASE.npy beside the data, as numbers of texts. The harness puts this project's source on PYTHONPATH.
"""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["TQDM_DISABLE"] = "1"

import datasets
import faiss
import numpy as np
import torch
from memory import peak_extra_bytes
from protocol import Data, Repeat, serve

FILLER = (
    " which stands for a passage of some two hundred characters, as they are usual in the collections that people mine"
)
WARM_UP = 300


class Table:
    """A model of fixed vectors: what both miners ask of a SentenceTransformer, and nothing else."""

    device = torch.device("cpu")
    similarity_fn_name = "cosine"
    model_card_data = SimpleNamespace(base_model=None)

    def __init__(self, texts: dict[str, int], vectors: np.ndarray) -> None:
        """Unit vectors, by the number of a text."""
        self.texts, self.vectors = texts, vectors

    def encode(self, texts: list[str], **_options: Any) -> np.ndarray:
        """The vectors of some texts."""
        return self.vectors[np.fromiter((self.texts[text] for text in texts), np.int64, len(texts))]

    encode_query = encode_document = encode

    def get_embedding_dimension(self) -> int:
        """The width."""
        return int(self.vectors.shape[1])

    def similarity(self, left: Any, right: Any) -> torch.Tensor:
        """Cosines of all pairs; the vectors are of unit length."""
        return torch.as_tensor(left) @ torch.as_tensor(right).T

    def similarity_pairwise(self, left: Any, right: Any) -> torch.Tensor:
        """Cosines, pair by pair."""
        return (torch.as_tensor(left) * torch.as_tensor(right)).sum(dim=1)


def miner(case: str) -> Any:
    """The function of that case, and the arguments that only it has."""
    if case == "ours":
        import naysay as ns
        from naysay.integrations.sentence_transformers import mine_hard_negatives

        ns.set_threads(torch.get_num_threads())
        return mine_hard_negatives, {"duplicates": False}
    from sentence_transformers.util import mine_hard_negatives

    faiss.omp_set_num_threads(torch.get_num_threads())
    return mine_hard_negatives, {"use_faiss": case == "faiss"}


def prepare(data: Data, case: str) -> tuple[float, Repeat]:
    """Texts for all vectors, as a Dataset of pairs; the first repetition mines few, to load what is loaded once."""
    queries, documents = data["queries"], data["documents"]
    asked = [f"query {i}{FILLER}" for i in range(len(queries))]
    held = [f"passage {i}{FILLER}" for i in range(len(documents))]
    numbers = {text: i for i, text in enumerate(asked + held)}
    model = Table(numbers, np.concatenate([queries, documents]))
    pairs = datasets.Dataset.from_dict({"anchor": asked, "positive": [held[i] for i in data["positives"].tolist()]})
    function, more = miner(case)
    options = {"num_negatives": int(data["k"]), "relative_margin": float(data["margin"]), "output_format": "n-tuple"}
    rows = Path(str(data["folder"])) / f"{case}.npy"
    found: list[Any] = []
    warm = pairs.select(range(min(WARM_UP, len(pairs))))

    def mine(given: Any) -> None:
        found[:] = [function(given, model, corpus=held, verbose=False, **options, **more)]

    def repeat() -> dict[str, Any]:
        if not found:
            mine(warm)
            return {}
        found[:] = [None]
        spent: list[float] = []

        def timed() -> None:
            start, busy = time.perf_counter(), time.process_time()
            mine(pairs)
            spent[:] = [time.perf_counter() - start, time.process_time() - busy]

        extra = peak_extra_bytes(timed)
        table = found[0].to_dict()
        ids = np.array([[numbers[text] for text in column] for column in table.values()]).T
        np.save(rows, ids)
        report = {"seconds": spent[0], "cpu_seconds": spent[1], "peak_extra_bytes": extra}
        return report | {"rows": len(ids), "negatives": int(ids[:, 2:].size)}

    return 0.0, repeat


if __name__ == "__main__":
    serve("sentence_transformers_mining", "sentence-transformers", ["torch", "faiss", "ours"], prepare)
