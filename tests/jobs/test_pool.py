"""The pool of workers on a stand-in for Ray: what is done again, who does it, and when to give up.

The real package is in tests/integrations/own_environment.
"""

import time
from types import SimpleNamespace

import pytest

from naysay.errors import NaysayError
from naysay.jobs import _ray
from naysay.jobs._pool import Pool
from naysay.jobs._sharded import Call
from naysay.jobs._worker import about


class ActorDiedError(Exception):
    pass


class OutOfMemoryError(Exception):
    pass


class RayTaskError(Exception):
    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


class Actor:
    """A worker. It works as `act` says; `hangs` lets nothing of it come back until it is killed."""

    def __init__(self, number, act):
        self.number, self.act, self.dead, self.hangs = number, act, act == "does not start", False
        self.about = SimpleNamespace(remote=lambda: Reference(self, "about"))
        self.work = SimpleNamespace(remote=lambda value: Reference(self, act, value))


class Reference:
    def __init__(self, actor, act, value=None):
        self.actor, self.act, self.value = actor, act, value


class StandInRay:
    """What the pool asks of Ray; the last of `acts` is that of all further workers."""

    def __init__(self, *acts, about=about):
        self.acts, self.about, self.made, self.killed = acts, about, [], []

    def make(self):
        self.made.append(Actor(len(self.made), self.acts[min(len(self.made), len(self.acts) - 1)]))
        return self.made[-1]

    def wait(self, references, num_returns=1, timeout=None):
        late = [one for one in references if one.actor.hangs and not one.actor.dead]
        return [one for one in references if one not in late][:num_returns], late

    def get(self, reference, timeout=None):
        if isinstance(reference, list):
            return [self.get(one) for one in reference]
        actor, act = reference.actor, reference.act
        if actor.dead or act == "dies":
            actor.dead = True
            raise ActorDiedError("its process has ended\nModuleNotFoundError: No module named 'naysay'")
        if act == "about":
            return self.about()
        if isinstance(act, Exception):
            raise act
        return (actor.number, reference.value)

    def kill(self, actor):
        self.killed.append(actor.number)
        actor.dead = True

    def put(self, value):
        return value


def calls(count=6):
    return [Call(f"shard {place + 1}", place, (place,)) for place in range(count)]


def pool_of(ray, count=2):
    said = []
    return Pool(ray, said.append, ray.make, count), said


def test_each_place_has_its_worker():
    pool, said = pool_of(StandInRay("works"), 3)
    assert sorted(result for _, result in pool.each("work", calls())) == [
        (0, 0), (0, 3), (1, 1), (1, 4), (2, 2), (2, 5)]  # fmt: skip
    assert said == []
    assert len(pool.about()) == 3


def test_calls_are_bounded():
    pool, _ = pool_of(StandInRay("works"), 2)
    taken = []

    def many():
        for call in calls(100):
            taken.append(call.place)
            yield call

    found = pool.each("work", many())
    next(found)
    assert len(taken) == 4  # two for each worker


def test_a_worker_that_dies_is_replaced_and_its_calls_are_made_again():
    ray = StandInRay("dies", "works", "works")
    pool, said = pool_of(ray)
    assert sorted(value for _, (_, value) in pool.each("work", calls())) == list(range(6))
    assert len(ray.made) == 3
    assert said[0].startswith("Ray: shard 1: its worker (process ")
    assert said[0].endswith("has ended. It is done again.")
    assert any(line.startswith("Ray: a new worker has started (process ") for line in said)


def test_the_others_do_the_work_of_one_that_cannot_be_replaced():
    ray = StandInRay("dies", "works", "does not start")
    pool, said = pool_of(ray)
    assert sorted(value for _, (_, value) in pool.each("work", calls())) == list(range(6))
    text = "a worker of Ray cannot start: ModuleNotFoundError: No module named 'naysay'; the others do its work."
    assert text in said


def test_a_call_that_fails_three_times():
    ray = StandInRay(RayTaskError(RuntimeError("no")))
    pool, said = pool_of(ray)
    rule = r"^shard 1 failed 3 times: RuntimeError: no in process .*\. Nothing is lost: run again with --resume\.$"
    with pytest.raises(NaysayError, match=rule):
        list(pool.each("work", calls(1)))
    assert len(said) == 2
    assert len(ray.made) == 2  # no worker ended


def test_workers_that_die_again_and_again():
    pool, _ = pool_of(StandInRay("dies"))
    rule = (
        r"^shard 1 failed 3 times: its worker \(.*\) has ended\. If its memory was too small: pass fewer `workers`, or"
    )
    with pytest.raises(NaysayError, match=rule):
        list(pool.each("work", calls(1)))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            RayTaskError(NaysayError("`corpus` must be finite, got nan.")),
            r"^`corpus` must be finite, got nan\. This is",
        ),
        (
            RayTaskError(MemoryError()),
            r"^shard 1: its worker \(process .*\) is out of memory\. Pass fewer `workers`, or",
        ),
        (OutOfMemoryError(), r"^shard 1: its worker \(process .*\) is out of memory\. Pass fewer `workers`, or"),
    ],
)
def test_what_is_not_done_again(act, message):
    pool, said = pool_of(StandInRay(act))
    with pytest.raises(NaysayError, match=message):
        list(pool.each("work", calls(1)))
    assert said == []


def test_a_worker_without_a_sign_of_life():
    ray = StandInRay("works")
    pool, said = pool_of(ray)
    ray.made[0].hangs = True
    assert sorted(value for _, (_, value) in pool.each("work", calls())) == list(range(6))
    assert "has not answered for 60 s: it is ended." in said[0]
    assert 0 in ray.killed


def test_all_workers_are_lost():
    pool, _ = pool_of(StandInRay("works", "works", "does not start"))
    for member in list(pool._members):
        pool._lost(member)
    rule = (
        r"^all workers of Ray have ended, and no other could be started\. Nothing is lost: run again with --resume\.$"
    )
    with pytest.raises(NaysayError, match=rule):
        list(pool.each("work", calls(1)))


def test_no_worker_starts(monkeypatch):
    monkeypatch.setattr(StandInRay, "wait", lambda self, references, num_returns=1, timeout=None: ([], references))
    ray = StandInRay("works")
    with pytest.raises(NaysayError, match=r"^no worker of Ray has started within 120 s\. Look at `ray status`\.$"):
        pool_of(ray)
    assert ray.killed == [0, 1]


def test_a_worker_that_cannot_start():
    with pytest.raises(NaysayError, match=r"^a worker of Ray cannot start: ModuleNotFoundError: No module named"):
        pool_of(StandInRay("does not start"))


def test_a_node_without_memory():
    def about():
        raise OutOfMemoryError("1 worker was killed\nRefer to the documentation")

    with pytest.raises(NaysayError, match=r"^a worker of Ray cannot start: its node is out of memory$"):
        pool_of(StandInRay("works", about=about))


@pytest.mark.parametrize("package", ["naysay", "numpy"])
def test_other_versions_on_a_node(package):
    other = about() | {"versions": about()["versions"] | {package: "0.0.1"}, "node": "there"}
    rule = rf"^`address` must be a cluster with the same version of {package}, got 0\.0\.1 on there and .* here\.$"
    with pytest.raises(NaysayError, match=rule):
        pool_of(StandInRay("works", about=lambda: other))


@pytest.mark.parametrize(
    ("error", "address", "message"),
    [
        (
            ConnectionError("nobody there"),
            "auto",
            r"^`address` must be a Ray that answers, got 'auto'\. nobody there\. "
            r"If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN\.$",
        ),
        (OSError("no space"), None, r"^Ray could not be started on this machine: no space$"),
        (
            RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.1\n    Python: 3.9"),
            "auto",
            "same versions of Ray and Python, got Version mismatch: The cluster was started with: Ray: 2.1 Python: 3.9",
        ),
    ],
)
def test_a_ray_that_does_not_start(error, address, message, monkeypatch):
    def init(**options):
        raise error

    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with pytest.raises(NaysayError, match=message):
        _ray._init(SimpleNamespace(init=init), address, {})
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(NaysayError) as raised:
        _ray._init(SimpleNamespace(init=init), address, {})
    assert "RAY_AUTH_TOKEN" not in str(raised.value)


def test_a_ray_that_never_answers(monkeypatch):
    monkeypatch.setattr(_ray, "_JOIN", 0.01)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    hang = SimpleNamespace(init=lambda **options: time.sleep(1))
    with pytest.raises(NaysayError, match=r"got '10\.0\.0\.1:6379'\. It has not answered within 0\.01 s\.$"):
        _ray._init(hang, "10.0.0.1:6379", {})
