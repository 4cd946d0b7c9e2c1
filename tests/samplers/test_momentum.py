"""momentum_update: the slow encoder follows the fast one."""

import copy

import pytest
import torch

from naysay.samplers import momentum_update


def network(seed):
    generator = torch.Generator().manual_seed(seed)
    made = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    with torch.no_grad():
        for value in made.parameters():
            value.copy_(torch.randn(value.shape, generator=generator))
        made[1].running_mean.copy_(torch.randn(4, generator=generator))
        made[1].num_batches_tracked.fill_(seed)
    return made


@pytest.mark.parametrize("momentum", [0, 0.25, 0.999, 1.0])
def test_parameters_are_mixed_and_buffers_copied(momentum):
    fast, slow = network(5), network(2)
    before = copy.deepcopy(slow)
    momentum_update(fast, slow, momentum)
    for name, value in slow.named_parameters():
        for mixed, old, new in zip(
            value.flatten().tolist(),
            before.get_parameter(name).flatten().tolist(),
            fast.get_parameter(name).flatten().tolist(),
            strict=True,
        ):
            assert mixed == pytest.approx(momentum * old + (1 - momentum) * new, abs=1e-6)
        assert value.grad_fn is None
    assert torch.equal(slow[1].running_mean, fast[1].running_mean)
    assert slow[1].num_batches_tracked.item() == 5


def test_shared_parameters_move_once_and_frozen_ones_move():
    fast, slow = torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
    tied_fast, tied_slow = torch.nn.Sequential(fast, fast), torch.nn.Sequential(slow, slow)
    slow.weight.requires_grad_(requires_grad=False)
    with torch.no_grad():
        fast.weight.fill_(1.0)
        slow.weight.fill_(0.0)
    momentum_update(tied_fast, tied_slow, 0.5)
    assert (slow.weight == 0.5).all()
