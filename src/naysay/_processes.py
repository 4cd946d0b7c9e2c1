"""The processes of torch.distributed: the place of this one, and an exchange that fails on all of them or on none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from naysay.arrays import need_torch
from naysay.checks import raise_invalid
from naysay.errors import NaysayError

_ALONE = ("", "1")
_UNSUPPORTED = ("No backend type", "not compiled with", "does not support", "not implemented", "no NVIDIA")


def rank_and_size(group: Any = None) -> tuple[int, int]:
    """The rank of this process in a group, and the number of its processes; (0, 1) without torch.distributed.

    Raises NaysayError if torchrun started several processes and torch.distributed was not initialised: each of them
    would train alone, on the same rows.
    """
    torch = need_torch()
    dist = torch.distributed
    if not (dist.is_available() and dist.is_initialized()):
        started = os.environ.get("WORLD_SIZE", "")
        if group is not None or started not in _ALONE:
            got = "a group without it" if group is not None else f"WORLD_SIZE={started} in the environment without it"
            raise_invalid("torch.distributed", "initialised first", got, "Call init_process_group.")
        return 0, 1
    rank = int(dist.get_rank(group))
    if rank < 0:
        raise_invalid("group", "one that this process belongs to", "another")
    size = int(dist.get_world_size(group))
    if size > 1 and torch.utils.data.get_worker_info() is not None:
        raise_invalid("group", "used in the main process", "a worker of a DataLoader", "Set workers=0.")
    return rank, size


@contextmanager
def exchanging(group: Any) -> Iterator[None]:
    """Name the backend in one sentence if it lacks what is called inside."""
    try:
        yield
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        if not any(words in str(error) for words in _UNSUPPORTED):
            raise
        rule = "of a backend that exchanges tensors of this device, such as gloo for the CPU"
        raise_invalid("group", rule, need_torch().distributed.get_backend(group))


def exchange(make: Callable[[], Any], group: Any) -> list[Any]:
    """What `make` returned in each process, in the order of their ranks, in every process.

    If it raises an error in one process, all raise one, so that none waits for another: a NaysayError is the same in
    all; another error, such as one of a model, is a RuntimeError that names the process in the others.
    """
    rank, size = rank_and_size(group)
    own: Any
    failed: Exception | None = None
    try:
        own = make()
    except NaysayError as error:
        own = error
    except Exception as error:
        own, failed = RuntimeError(f"process {rank} failed: {error!r}"), error
    everyone: list[Any] = [None] * size
    if len(everyone) == 1:
        everyone = [own]
    else:
        with exchanging(group):
            need_torch().distributed.all_gather_object(everyone, own, group=group)
    if failed is not None:
        raise failed
    for one in everyone:
        if isinstance(one, NaysayError | RuntimeError):
            raise one
    return everyone


def check_same(parameter: str, rule: str, values: list[Any], advice: str = "") -> None:
    """Raise, in all processes, if the values of the processes differ."""
    if any(value != values[0] for value in values):
        raise_invalid(parameter, f"{rule} in all processes", ", ".join(map(str, values)), advice)
