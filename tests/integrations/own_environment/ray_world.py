"""What the tests with Ray share: a world, workers that fail, and the processes of a Ray that this process started."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import ray

from naysay.jobs import _parts as job_run
from naysay.jobs import _ray as on_ray
from naysay.jobs._worker import ShardWorker
from tests.jobs import job_world

for module in (__name__, job_world.__name__):
    ray.cloudpickle.register_pickle_by_value(sys.modules[module])  # the workers cannot import tests
SMALL = {"include_dashboard": False, "object_store_memory": 100 << 20, "log_to_driver": False, "logging_level": "ERROR"}


class RaisesOnce(ShardWorker):
    """The first search of any worker fails; `mark` is a file that says so."""

    def search(self, shard, block):
        try:
            (self._corpus.path.parent / "raised").touch(exist_ok=False)
        except FileExistsError:
            return super().search(shard, block)
        raise RuntimeError("a fault of the network")


class RaisesAlways(ShardWorker):
    def search(self, shard, block):
        raise RuntimeError("a fault that stays")


class Small(ShardWorker):
    """A process with hardly any memory left."""

    def search(self, shard, block):
        import resource

        size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        np.ones(1 << 28)
        return super().search(shard, block)


class Large(job_world.Families):
    """So many pairs that the search stops early, and goes on for some anchors."""

    def __init__(self, folder):
        super().__init__(folder, n=1500, others=45_000, width=16)


def descendants(name):
    """Processes that this one started, or they, by a part of their command."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
    own, found = {os.getpid()}, True
    while found:
        found = {one for one, parent in parents.items() if parent in own} - own
        own |= found
    return sorted(one for one in own if name in names.get(one, ""))


def after_a_part(monkeypatch, act):
    """Call `act` when the job has its first part; the job goes on after that."""
    own, left = job_run.write_part, [act]

    def write(folder, part):
        own(folder, part)
        while left:
            left.pop()()

    monkeypatch.setattr(job_run, "write_part", write)


def kill_a_worker():
    os.kill(descendants("ray::ShardWorker")[0], signal.SIGKILL)


def with_workers(monkeypatch, kind):
    monkeypatch.setattr(on_ray, "ShardWorker", kind)
