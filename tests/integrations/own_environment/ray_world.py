"""What the tests with Ray share: a world, and the processes of a Ray that this process started."""

import os
import signal
import sys
from pathlib import Path

import ray

from tests.jobs import job_world

for module in (__name__, job_world.__name__):
    ray.cloudpickle.register_pickle_by_value(sys.modules[module])  # the workers cannot import tests
SMALL = {"include_dashboard": False, "object_store_memory": 100 << 20, "log_to_driver": False, "logging_level": "ERROR"}


class Large(job_world.Families):
    """So many pairs that workers are busy for a moment."""

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


def kill_a_worker():
    """Kill a process that runs a task, or ran one and waits for the next."""
    found = descendants("ray::_checked_call") + descendants("ray::IDLE")
    os.kill(found[0], signal.SIGKILL)
