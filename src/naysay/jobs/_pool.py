"""A pool of Ray's actors: calls are spread over them, and made again if one of them ends.

A call that raises, or whose worker ends, is made again, three times at most. A worker that ended is replaced if the
cluster can; otherwise the others do its work. Bad data is an error at once. Every wait has a limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any, NoReturn, final

from naysay.checks import raise_invalid
from naysay.errors import MissingExtraError, NaysayError
from naysay.jobs._sharded import Call
from naysay.jobs._worker import SAME
from naysay.text import first_line, versions

_TRIES = 3  # of a call
_START, _POLL, _SILENCE = 120.0, 5.0, 60.0  # seconds to wait for a new worker, for any result, for a sign of life
_RESUME = "Nothing is lost: run again with --resume."
_FEWER = "Pass fewer `workers`, or a smaller `budget`, which is that of each worker."


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """A worker that has answered."""

    place: int
    actor: Any
    name: str  # for sentences


@final
class Pool:
    """Workers of one class. Several threads may call `each` at a time."""

    def __init__(self, ray: Any, log: Callable[[str], None], make: Callable[[], Any], count: int) -> None:
        """Start `count` workers; `make` returns an actor. Return when all have answered, or those that could."""
        self._ray, self._log, self._make = ray, log, make
        self._members: list[_Member | None] = [None] * count
        self._starting: dict[int, tuple[Any, Any]] = {}  # place: actor, and its answer to come
        self._lock, self._left = RLock(), _TRIES * count  # how many may yet be replaced
        for place in range(count):
            self._start(place)
        self._ray.wait([answer for _, answer in self._starting.values()], num_returns=count, timeout=_START)
        self._arrived(first=True)
        there = sum(member is not None for member in self._members)
        if there == 0:
            self.close()
            _raise_lost(f"no worker of Ray has started within {_START:g} s", "Look at `ray status`.")
        if there < count:
            self._log(f"Ray: {there} of {count} workers have started; the job goes on with these.")

    def share(self, value: Any) -> Any:
        """Put a value in the store of Ray."""
        return self._ray.put(value)

    def each(self, method: str, calls: Iterable[Call]) -> Iterator[tuple[Call, Any]]:
        """Make all calls, two for each worker at a time, and yield their results as they come."""
        left, again = iter(calls), deque[Call]()
        pending: dict[Any, tuple[Call, _Member]] = {}
        while True:
            while len(pending) < 2 * len(self._members):
                call = again.popleft() if again else next(left, None)
                if call is None:
                    break
                member = self._member(call.place)
                pending[getattr(member.actor, method).remote(*call.arguments)] = call, member
            if not pending:
                return
            done, _ = self._ray.wait(list(pending), num_returns=1, timeout=_POLL)
            self._arrived()
            if not done:
                self._check_alive({member.place: member for _, member in pending.values()})
            for reference in done:
                call, member = pending.pop(reference)
                try:
                    result = self._ray.get(reference, timeout=_SILENCE)
                except Exception as error:  # of Ray, or of the worker
                    again.append(self._to_repeat(call, member, error))
                else:
                    yield call, result

    def about(self) -> list[dict[str, Any]]:
        """What each worker that lives tells about itself."""
        asked = [member.actor.about.remote() for member in self._members if member is not None]
        return list(self._ray.get(asked, timeout=_SILENCE))

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            actors = [member.actor for member in self._members if member is not None]
            for actor in [*actors, *(actor for actor, _ in self._starting.values())]:
                with suppress(Exception):
                    self._ray.kill(actor)
            self._members, self._starting = [None] * len(self._members), {}

    def _start(self, place: int) -> None:
        actor = self._make()
        self._starting[place] = actor, actor.about.remote()

    def _arrived(self, *, first: bool = False) -> None:
        """Take in workers that have answered; one that cannot start is an error when the job begins."""
        with self._lock:
            for place, (actor, answer) in list(self._starting.items()):
                if not self._ray.wait([answer], timeout=0)[0]:
                    continue
                del self._starting[place]
                try:
                    about = self._ray.get(answer, timeout=_SILENCE)
                    _check_versions(about)
                except Exception as error:
                    text = f"a worker of Ray cannot start: {_why(error)}"
                    if first:
                        self.close()
                        raise error if isinstance(error, NaysayError) else NaysayError(text) from None
                    self._log(f"{text}; the others do its work.")
                    continue
                name = f"process {about['pid']} on {about['node']}"
                self._members[place] = _Member(place, actor, name)
                if not first:
                    self._log(f"Ray: a new worker has started ({name}).")

    def _member(self, place: int) -> _Member:
        """The worker of a place, or the next that lives; waits for one that is starting if there is none."""
        with self._lock:
            for step in range(len(self._members)):
                member = self._members[(place + step) % len(self._members)]
                if member is not None:
                    return member
            if self._starting:
                self._ray.wait([answer for _, answer in self._starting.values()], timeout=_START)
                self._arrived()
                if any(self._members):
                    return self._member(place)
        _raise_lost("all workers of Ray have ended, and no other could be started", _RESUME)

    def _to_repeat(self, call: Call, member: _Member, error: Exception) -> Call:
        """Return the call to make again; raise if it must not be, or failed too often."""
        cause = getattr(error, "cause", None)
        if isinstance(cause, NaysayError | MissingExtraError):
            message = f"{cause.args[0]} This is {call.name}, {member.name}."
            raise NaysayError(message) from None
        if _lacks_memory(error):
            _raise_lost(f"{call.name}: its worker ({member.name}) is out of memory", _FEWER)
        ended = cause is None
        what = f"its worker ({member.name}) has ended" if ended else f"{_reason(error)} in {member.name}"
        if ended:
            self._lost(member)
        if call.tries + 1 == _TRIES:
            advice = f"If its memory was too small: {_FEWER[0].lower()}{_FEWER[1:]}" if ended else _RESUME
            _raise_lost(f"{call.name} failed {_TRIES} times: {what}", advice)
        self._log(f"Ray: {call.name}: {what}. It is done again.")
        return replace(call, tries=call.tries + 1)

    def _lost(self, member: _Member) -> None:
        """Forget a worker, and start another in its place."""
        with self._lock:
            if self._members[member.place] is not member:
                return
            self._members[member.place] = None
            with suppress(Exception):
                self._ray.kill(member.actor)
            if self._left > 0:
                self._left -= 1
                self._start(member.place)

    def _check_alive(self, members: dict[int, _Member]) -> None:
        """End workers that give no sign of life, so that their calls are made again."""
        answers = {member.actor.about.remote(): member for member in members.values()}
        _, silent = self._ray.wait(list(answers), num_returns=len(answers), timeout=_SILENCE)
        for answer in silent:
            self._log(f"Ray: a worker ({answers[answer].name}) has not answered for {_SILENCE:g} s: it is ended.")
            with suppress(Exception):
                self._ray.kill(answers[answer].actor)


def _lacks_memory(error: Exception) -> bool:
    """Whether a worker could not get memory, or Ray ended it because its node had too little."""
    return isinstance(getattr(error, "cause", None), MemoryError) or "OutOfMemory" in type(error).__name__


def _why(error: Exception) -> str:
    """The last line of an error: that of the worker, where Ray's own come before."""
    if _lacks_memory(error):
        return "its node is out of memory"
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def _check_versions(about: dict[str, Any]) -> None:
    here = versions(*SAME)
    for package in SAME:
        if about["versions"][package] != here[package]:
            got = f"{about['versions'][package]} on {about['node']} and {here[package]} here"
            raise_invalid("address", f"a cluster with the same version of {package}", got)


def _reason(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {first_line(cause)}"


def _raise_lost(what: str, advice: str) -> NoReturn:
    message = f"{what}. {advice}"
    raise NaysayError(message)
