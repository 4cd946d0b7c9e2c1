"""AdCo in a few lines: negatives that are vectors of their own, moved to where they raise the loss.

The bank has its own optimiser, which ascends (maximize=True), with a sharper temperature. Points of ten classes are
encoded from two noisy views. The bank comes closer to the anchors than random vectors are; that is what makes its
vectors hard. Vectors of a class that move too close become false negatives: watch how similar they are.

Hu, Wang, Hu, Qi. AdCo. CVPR 2021.

Prints:
    highest cosine of an anchor with the bank: at the start 0.60, after training 0.80
    loss against the bank is finite: True
"""

import torch
from torch.nn.functional import normalize

import naysay as ns

BATCH, BANK, DIM, STEPS = 64, 32, 8, 60


def main() -> None:
    """Train an encoder and a bank against each other."""
    random = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    centres, weight, bank = normal(10, 16), normal(16, DIM).requires_grad_(), normal(BANK, DIM).requires_grad_()
    encoder_steps = torch.optim.Adam([weight], lr=0.01)
    bank_steps = torch.optim.SGD([bank], lr=3.0, momentum=0.9, weight_decay=1e-4, maximize=True)

    def encoded() -> tuple[torch.Tensor, torch.Tensor]:
        points = centres[torch.randint(10, (BATCH,), generator=random)]
        first, second = (normalize((points + 0.3 * normal(BATCH, 16)) @ weight, dim=1) for _ in range(2))
        return first, second

    def against_bank(anchors: torch.Tensor, keys: torch.Tensor, temperature: float) -> torch.Tensor:
        scores = anchors @ normalize(bank, dim=1).T
        return ns.losses.info_nce((anchors * keys).sum(dim=1), scores, temperature=temperature).mean()

    def nearest() -> float:
        with torch.no_grad():
            return (encoded()[0] @ normalize(bank, dim=1).T).max(dim=1).values.mean().item()

    before = nearest()
    for _ in range(STEPS):
        anchors, keys = encoded()
        loss = against_bank(anchors, keys, temperature=0.12)
        encoder_steps.zero_grad()
        loss.backward()
        encoder_steps.step()
        with torch.no_grad():
            anchors, keys = encoded()  # the bank moves against fixed vectors
        bank_steps.zero_grad()
        against_bank(anchors, keys, temperature=0.02).backward()
        bank_steps.step()
    after = nearest()
    print(f"highest cosine of an anchor with the bank: at the start {before:.2f}, after training {after:.2f}")
    print(f"loss against the bank is finite: {bool(loss.isfinite())}")


if __name__ == "__main__":
    main()
