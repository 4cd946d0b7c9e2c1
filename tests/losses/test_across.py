"""The batch across processes: two of them have the loss and the gradients of one with the whole batch."""

from datetime import timedelta

import numpy as np
import pytest
import torch
import torch.distributed as dist

from naysay.errors import NaysayError
from naysay.losses import gather_rows, in_batch

SECONDS = 120  # for both processes to start, meet and end, on a busy machine
WIDTH = 5


def vectors(n, seed):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, WIDTH)))


def pairs(anchors, keys, gather):
    """In-batch negatives of pairs."""
    rows, first = gather(keys)
    return in_batch(anchors, rows, partner=first + torch.arange(len(anchors)), temperature=0.5)


def both_ways(anchors, keys, gather):
    """Anchors against all keys and keys against all anchors, debiased and hardened."""
    every, first = gather(keys)
    others, _ = gather(anchors)
    here = first + torch.arange(len(anchors))
    forms = {"prior": 0.1, "beta": 0.5, "min_score": -30.0}
    return in_batch(anchors, every, partner=here, **forms) + in_batch(keys, others, partner=here, **forms)


def views(one, two, gather):
    """SimCLR: a view against the other views of all processes, and against all but itself of its own kind."""
    (ones, first), (twos, _) = gather(one), gather(two)
    total, here = len(ones), first + torch.arange(len(one))

    def others(rows):
        mask = torch.ones(rows.stop - rows.start, 2 * total, dtype=torch.bool)
        mask[torch.arange(len(mask)), here[rows]] = False
        return mask

    return in_batch(one, torch.cat([ones, twos]), partner=total + here, mask=others, temperature=0.2)


LOSSES = {"pairs": pairs, "both ways": both_ways, "views": views}
SIZES = {"even": (4, 4), "uneven": (3, 6), "one process has none": (0, 5)}


def grads(loss, parts, gather):
    """The losses, and the gradients of their weighted sum in both parts."""
    leaves = [part.clone().requires_grad_() for part in parts]
    values = LOSSES[loss](*leaves, gather)
    (values * values.detach().sin()).sum().backward()  # a factor of its own for each row
    return [values.detach(), *(leaf.grad for leaf in leaves)]


def invalid(call):
    """The parameter that the error names."""
    try:
        call()
    except NaysayError as error:
        return error.parameter
    return None


def work(rank, folder):
    """One of two processes: everything it found goes to a file."""
    dist.init_process_group("gloo", f"file://{folder}/meeting", timedelta(seconds=SECONDS), world_size=2, rank=rank)
    found = {}
    for size, counts in SIZES.items():
        own = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
        whole = [vectors(sum(counts), seed) for seed in (0, 1)]
        for loss in LOSSES:
            found[loss, size] = grads(loss, [part[own] for part in whole], gather_rows)
    layer = torch.nn.Linear(WIDTH, 3).double()
    with torch.no_grad():
        layer.weight.copy_(vectors(3, 2))
        layer.bias.zero_()
    model = torch.nn.parallel.DistributedDataParallel(layer)
    for size in ("even", "uneven"):
        counts, half = SIZES[size], 0
        own = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
        made = model(torch.cat([vectors(sum(counts), seed)[own] for seed in (0, 1)]))
        half = len(made) // 2
        values = pairs(made[:half], made[half:], gather_rows)
        layer.zero_grad()
        (values.mean() if size == "even" else values.sum() * 2 / sum(counts)).backward()
        found["model", size] = [layer.weight.grad.clone()]
    found["ids"] = gather_rows(torch.arange(2 + rank) + 10 * rank)
    found["single"] = gather_rows(torch.full((2, 3), float(rank)).T)  # not contiguous
    with torch.no_grad():
        found["no gradients"] = gather_rows(vectors(2, rank).requires_grad_())[0].requires_grad
    found["empty"] = gather_rows(torch.empty(0, 3))
    alone = [dist.new_group([member]) for member in range(2)]
    mine = vectors(2, 0)
    found["alone"] = gather_rows(mine, alone[rank])[0] is mine
    found["invalid"] = [
        invalid(lambda: gather_rows(torch.ones(2, 3 + rank))),
        invalid(lambda: gather_rows(torch.ones(2, 3) if rank else torch.ones(2))),
        invalid(lambda: gather_rows(torch.ones(2, 3, dtype=torch.float64 if rank else torch.float32))),
        invalid(lambda: gather_rows(torch.ones(2, 3, requires_grad=bool(rank)))),
        invalid(lambda: gather_rows(mine, alone[1 - rank])),
    ]
    torch.save(found, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def found(run_processes):
    """What each of two processes found, over gloo on this machine."""
    return run_processes(work, 2, SECONDS)


def one_process(rows):
    return rows, 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("loss", LOSSES)
def test_loss_and_gradients_are_those_of_one_process(found, loss, size):
    whole = grads(loss, [vectors(sum(SIZES[size]), seed) for seed in (0, 1)], one_process)
    for place, expected in enumerate(whole):
        parts = torch.cat([process[loss, size][place] for process in found])
        torch.testing.assert_close(parts, expected, rtol=1e-9, atol=1e-9)
        assert expected.abs().max() > 1e-3


@pytest.mark.parametrize("size", ["even", "uneven"])
def test_a_distributed_model_has_the_gradient_of_the_mean_over_the_whole_batch(found, size):
    weight = vectors(3, 2).requires_grad_()
    anchors, keys = (vectors(sum(SIZES[size]), seed) @ weight.T for seed in (0, 1))
    pairs(anchors, keys, one_process).mean().backward()
    for process in found:
        torch.testing.assert_close(process["model", size][0], weight.grad, rtol=1e-9, atol=1e-9)


def test_rows_come_in_the_order_of_ranks(found):
    for rank, process in enumerate(found):
        rows, first = process["ids"]
        assert rows.tolist() == [0, 1, 10, 11, 12]
        assert first == (0, 2)[rank]
        rows, first = process["single"]
        assert rows.tolist() == [[0.0, 0.0]] * 3 + [[1.0, 1.0]] * 3
        assert (rows.dtype, first) == (torch.float32, 3 * rank)
        assert process["no gradients"] is False
        assert process["empty"][0].shape == (0, 3)
        assert process["alone"] is True


def test_what_does_not_fit_together_is_an_error_on_all(found):
    for process in found:
        assert process["invalid"] == ["vectors", "vectors", "vectors", "vectors", "group"]


def test_one_process_gets_back_what_it_gave():
    mine = vectors(3, 0).requires_grad_()
    rows, first = gather_rows(mine)
    assert rows is mine
    assert first == 0
    assert gather_rows(mine).rows is mine  # by name too
