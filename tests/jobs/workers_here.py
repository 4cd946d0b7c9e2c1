"""Workers of a job in this process: all that jobs on Ray do, but for Ray."""

from contextlib import contextmanager


class Here:
    """A pool of one worker."""

    def __init__(self, worker):
        self.worker, self.calls, self.shared = worker, [], 0

    def share(self, value):
        self.shared += 1
        return value

    def each(self, method, calls):
        for call in reversed(list(calls)):  # results come in any order
            self.calls.append((method, call.place))
            yield call, getattr(self.worker, method)(*call.arguments)

    def about(self):
        return [self.worker.about()]

    def close(self):
        self.worker = None


class ClusterHere:
    processors, devices = 8, 0

    def __init__(self):
        self.pools = []

    def pool(self, kind, arguments, count, *, cpus, gpus=0):
        self.pools.append(Here(kind(*arguments)))
        return self.pools[-1]


def jobs_here(monkeypatch, *modules):
    """Let jobs with the engine "ray" run here; returns the cluster."""
    cluster = ClusterHere()

    @contextmanager
    def cluster_of(job, mining, log):
        yield cluster if job.engine == "ray" else None

    for module in modules:
        monkeypatch.setattr(module, "cluster_of", cluster_of)
    return cluster
