"""Checks of values are optional: no loss waits for a device, and torch.compile sees a whole graph."""

import pytest
import torch
from loss_calls import BATCH_LOSSES, BLOCKS, ITEMS, LABELS, LOG_Q, PARTNER, ROWS, SLOT_LOSSES, SLOTS, SOFTMAX, random
from torch.utils._python_dispatch import TorchDispatchMode

from naysay import losses
from naysay.errors import NaysayError

READS = {"aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero", "aten::item"}
EACH_SLOT_LOSS = pytest.mark.parametrize("name", SLOT_LOSSES)
EACH_BATCH_LOSS = pytest.mark.parametrize("name", BATCH_LOSSES)
EACH_SIZE = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)


class NoReads(TorchDispatchMode):
    """Fails where an operation brings a value from the device to Python."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        assert operation.name().partition(".")[0] not in READS, operation.name()
        return operation(*args, **(kwargs or {}))


def scores(device="cpu"):
    parts = random(ROWS), random(ROWS, SLOTS, seed=1)
    return [part.to(device).requires_grad_() for part in parts]


def options(name, device="cpu"):
    """None, then all that a loss takes."""
    given = {"mask": random(ROWS, SLOTS, seed=2) > -1, "weights": random(ROWS, SLOTS, seed=3).abs()}
    if name in SOFTMAX:
        given["log_q"] = LOG_Q
    found = {key: value.to(device) for key, value in given.items()}
    if name in SOFTMAX:
        found["temperature"] = torch.tensor(0.5, device=device, requires_grad=True)
    return [{}, found]


# ---- the switch ------------------------------------------------------------------------------------------------------


def test_on_the_cpu_values_are_checked_unless_switched_off():
    positive, negatives = torch.tensor([torch.nan]), torch.zeros(1, 2)
    with pytest.raises(NaysayError) as caught:
        losses.info_nce(positive, negatives)
    assert caught.value.parameter == "positive"
    with losses.check_values(False):
        assert losses.info_nce(positive, negatives).isnan().all()
    with pytest.raises(NaysayError):
        losses.info_nce(positive, negatives)


def test_the_switch_is_a_function_too_and_blocks_nest():
    positive, negatives = torch.tensor([torch.nan]), torch.zeros(1, 2)
    try:
        losses.check_values(False)
        losses.bpr(positive, negatives)
        with losses.check_values(True), pytest.raises(NaysayError):
            losses.bpr(positive, negatives)
        losses.bpr(positive, negatives)
    finally:
        losses.check_values(None)
    with pytest.raises(NaysayError):
        losses.bpr(positive, negatives)
    with pytest.raises(NaysayError) as caught:
        losses.check_values("off")
    assert caught.value.parameter == "enabled"


def test_shapes_are_checked_in_any_case():
    with losses.check_values(False), pytest.raises(NaysayError) as caught:
        losses.info_nce(torch.zeros(2), torch.zeros(3, 4))
    assert caught.value.parameter == "negatives"


# ---- no reads --------------------------------------------------------------------------------------------------------


@EACH_SLOT_LOSS
def test_a_slot_loss_reads_no_value(name):
    for given in options(name):
        with losses.check_values(False), NoReads():
            SLOT_LOSSES[name](*scores(), **given).sum().backward()


@EACH_BATCH_LOSS
def test_a_batch_loss_reads_no_value(name):
    z = random(ITEMS, 3).requires_grad_()
    with losses.check_values(False), NoReads():
        BATCH_LOSSES[name](z).sum().backward()


def test_with_checks_values_are_read():
    """The test above can fail."""
    with losses.check_values(True), pytest.raises(AssertionError, match="aten::"), NoReads():
        losses.info_nce(*scores())


@EACH_SLOT_LOSS
def test_a_slot_loss_on_another_device(name):
    """meta has no values at all: whoever reads one fails. What is given on the CPU is moved."""
    for given in options(name, "meta"):
        leaves = scores("meta")
        values = SLOT_LOSSES[name](*leaves, **given)
        assert (values.device.type, values.shape) == ("meta", (ROWS,))
        values.sum().backward()
        assert leaves[1].grad.device.type == "meta"


@EACH_BATCH_LOSS
@EACH_SIZE
def test_a_batch_loss_on_another_device(name, block):
    z = random(ITEMS, 3).to("meta").requires_grad_()
    BATCH_LOSSES[name](z, block=block).sum().backward()
    assert z.grad.device.type == "meta"


@pytest.fixture
def compiled():
    """Of a loss: the same, compiled as one graph, or an error."""
    yield lambda loss: torch.compile(loss, fullgraph=True, backend="eager")
    torch._dynamo.reset()


# ---- torch.compile ---------------------------------------------------------------------------------------------------


def test_info_nce_has_no_graph_break():
    for given in options("info_nce")[1:]:
        assert torch._dynamo.explain(losses.info_nce)(*scores(), **given).graph_break_count == 0


def test_a_slot_loss_compiles_whole(compiled):
    """With everything it takes; the values and gradients are those without compilation. Others read no value."""
    given = options("hard_negative_nce")[1]
    loss = compiled(losses.hard_negative_nce)
    assert_same(lambda *leaves: loss(*leaves, **given), lambda *leaves: losses.hard_negative_nce(*leaves, **given))


def test_a_batch_loss_in_several_blocks_compiles_whole(compiled):
    def loss(z):
        return BATCH_LOSSES["in_batch, labels"](z, block=1)

    assert_same(compiled(loss), loss, [random(ITEMS, 3).requires_grad_()])


def assert_same(one, other, leaves=None):
    leaves = scores() if leaves is None else leaves
    values = [call(*leaves) for call in (one, other)]
    torch.testing.assert_close(*values)
    found, wanted = (torch.autograd.grad(value.sum(), leaves) for value in values)
    torch.testing.assert_close(found, wanted)


# ---- second derivatives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["in_batch, labels", "eliminate", "sup_con, negatives"])
@EACH_SIZE
def test_gradients_have_gradients(name, block):
    z = random(ITEMS, 2).double().requires_grad_()
    factor = torch.linspace(0.5, 1.5, ITEMS).double()

    def total(z):
        return (factor * BATCH_LOSSES[name](z, block=block)).sum()

    assert torch.autograd.gradgradcheck(total, z, fast_mode=True)


# ---- autocast --------------------------------------------------------------------------------------------------------


PRODUCTS = {
    "in_batch": lambda z: BATCH_LOSSES["in_batch, labels"](z, block=1),
    "sup_con": lambda z: BATCH_LOSSES["sup_con"](z),
    "further negatives": lambda z: losses.in_batch(z, z.roll(1, 0), negatives=z[:, None].expand(-1, 2, -1)),
    "proto_nce": lambda z: losses.proto_nce(z, random(4, 3, seed=1), LABELS, temperatures=0.5),
    "all_items": lambda z: losses.all_items(z, z.roll(1, 0), (PARTNER, PARTNER)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_under_autocast_are_computed_in_full_precision(name):
    leaves = [random(ITEMS, 3).requires_grad_()]
    assert_same(torch.autocast("cpu", torch.bfloat16)(PRODUCTS[name]), PRODUCTS[name], leaves)
