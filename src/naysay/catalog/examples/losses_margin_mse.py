"""losses.margin_mse: gaps like those of a teacher, here one for which all gaps are 1."""

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = lambda positive, negatives, **options: ns.losses.margin_mse(  # noqa: E731
    positive,
    negatives,
    teacher_positive=torch.ones(len(positive)),
    teacher_negatives=torch.zeros(negatives.shape),
    **options,
)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
