"""cached_step: the gradients of one pass, with dropout; what is in memory; what it refuses."""

import pytest
import torch

from naysay.losses import cached_step, in_batch

INPUTS = tuple(torch.linspace(-2, 2, 2 * 7 * 5, dtype=torch.float64).sin().reshape(2, 7, 5))


START = torch.Generator().manual_seed(3).get_state()


@pytest.fixture(autouse=True)
def own_random_state():
    """Dropout draws from torch's own generator."""
    with torch.random.fork_rng():
        torch.set_rng_state(START)
        yield


def encoder():
    layers = torch.nn.Linear(5, 16), torch.nn.Dropout(0.4), torch.nn.ReLU(), torch.nn.Linear(16, 4)
    return torch.nn.Sequential(*layers).double()


def loss(one, two):
    return in_batch(one, two, temperature=0.5).mean()


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_gradients_equal_those_of_one_pass_with_dropout(chunk):
    """Dropout is drawn chunk by chunk, so the one pass encodes the same chunks, with everything in memory."""
    model = encoder()
    torch.set_rng_state(START)
    pieces = [torch.cat([model(part[i : i + chunk]) for i in range(0, 7, chunk)]) for part in INPUTS]
    value = loss(*pieces)
    value.backward()
    after = torch.get_rng_state()
    wanted = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    torch.set_rng_state(START)
    found = cached_step(model, INPUTS, loss, chunk=chunk)
    assert found.item() == pytest.approx(value.item(), abs=1e-12)
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-10)
    assert torch.equal(torch.get_rng_state(), after)  # the next step draws what it would have drawn


def test_only_one_chunk_has_activations():
    model, rows = encoder().eval(), []
    held = [0]

    def encode(part):
        out = model(part)
        if out.requires_grad:
            rows.append(len(part))
            held[0] += 1
            out.register_hook(lambda gradient: held.__setitem__(0, held[0] - 1))
            assert held[0] == 1
        return out

    cached_step(encode, INPUTS[0], lambda vectors: vectors.square().mean(), chunk=2)
    assert rows == [2, 2, 2, 1]
