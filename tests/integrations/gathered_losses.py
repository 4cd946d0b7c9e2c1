"""`mask_false_negatives` in two and three processes over gloo: the loss and the gradient of each process."""

from datetime import timedelta

import torch
import torch.distributed as dist

try:
    from sentence_transformers.sentence_transformer import losses
except ModuleNotFoundError:  # before 6.0
    from sentence_transformers import losses

from naysay.integrations.sentence_transformers import mask_false_negatives

SECONDS = 240  # for all processes to start, meet and end, on a busy machine
BATCH, COLUMNS, SCALE = 12, 3, 7.0
LABELS = torch.tensor([4, 9, 2, 7, 4, 1, 8, 3, 9, 5, 6, 0])  # rows 0 and 4, and 1 and 8, have the same positive
CASES = {
    "judged": ("margin:-0.1", {}, None),
    "own": ("margin:-0.1", {"own_negatives": True}, None),
    "alone": ("max_score:2", {"in_batch": False}, None),
    "labels": ("margin:-0.1", {}, LABELS),
}
KINDS = (losses.MultipleNegativesRankingLoss, losses.CachedMultipleNegativesRankingLoss)


class Table(torch.nn.Sequential):
    """A model of one vector per row of a table, with what these losses use of a SentenceTransformer."""

    def __init__(self, rows, seed=0):
        super().__init__(torch.nn.Identity())
        self.table = torch.nn.Parameter(torch.randn(rows, 5, generator=torch.Generator().manual_seed(seed)).double())

    def forward(self, features):
        return {"sentence_embedding": self.table[features["input_ids"][:, 0]]}


def loss_of_rows(kind, case, rows, *, gather):
    """(loss, gradient, masked) of some rows of the batch."""
    judge, options, labels = CASES[case]
    model = Table(BATCH * COLUMNS)
    more = {"mini_batch_size": 2} if kind else {}
    plain = KINDS[kind](model, scale=SCALE, gather_across_devices=gather, **more)
    loss = mask_false_negatives(plain, judge, **options)
    features = [{"input_ids": torch.arange(BATCH)[rows, None] + BATCH * column} for column in range(COLUMNS)]
    value = loss(features, None if labels is None else labels[rows])
    value.backward()
    return value.item(), model.table.grad, int(loss.false_negatives.masked)


def work(rank, folder):
    """One of three processes; the third is not among two."""
    torch.set_num_threads(1)
    found = {}
    for size in (3, 2):
        if rank >= size:
            continue
        meeting = f"file://{folder}/meeting{size}"
        dist.init_process_group("gloo", meeting, timedelta(seconds=SECONDS), world_size=size, rank=rank)
        rows = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        for kind in range(len(KINDS)):
            for case in CASES:
                found[size, kind, case] = loss_of_rows(kind, case, rows, gather=True)
        dist.destroy_process_group()
    torch.save(found, f"{folder}/{rank}.pt")
